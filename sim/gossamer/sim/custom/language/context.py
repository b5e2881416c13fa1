"""What a handler knows besides its node's row: the time, and where it writes."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from gossamer.protocol.kernel.records import BODY, LENGTH, Outbox, Words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.engine.link_conditions import DELAY_BITS, LATER, LONGEST_DELAY

TICKS_A_SECOND: Final = 1000

# Delays that a record can have, in words.
DELAYS: Final = f"from 0 s to {LONGEST_DELAY / TICKS_A_SECOND:.0e} s"

# The kinds of the records that a node takes when it comes up, whose body is the contact, if any;
# when it is about to leave; and of what it logs.
START: Final = LATER - 1
LEAVE: Final = LATER - 2
LOGGED: Final = LATER - 3

# Words of a record to oneself before its fields: delay and life (of what is logged 0), the kind,
# the handle (0 for none) and the node, so that from the first on it reads as a record. Those of
# timers are the first two.
LATER_WORDS: Final = 4
_HANDLE: Final = BODY + 2

# How often a node has started, as records to oneself remember it.
LIFE_BITS: Final = 62 - DELAY_BITS
LIVES: Final = 1 << LIFE_BITS


class Net(NamedTuple):
    """What a handler is given to send with, beside its state and row.

    Attributes:
        out: where records are written.
        me: the row of the node.
        now: the tick it is; there are 1000 in a second.
        round: the round it is.
        life: how often the node has come up, modulo 2^14.
        rate: seconds of simulated time in a second of the node's clock.
        handles: int64[n, 1 + m], how many handles each node has given out, and those of what is
            pending, 0 for none; int64[n, 0] where nothing can be cancelled.
    """

    out: Outbox
    me: int
    now: int
    round: int
    life: int
    rate: float
    handles: Int64s


@inline_rule
def seconds(net: Net) -> Any:
    """The time in seconds since the run began."""
    return net.now / TICKS_A_SECOND


@inline_rule
def delay_ticks(delay_s: float, rate: float) -> Any:
    """A delay by a node's clock in ticks, to the nearest; -1 of one that no record can have."""
    ticks = delay_s * rate * TICKS_A_SECOND + 0.5
    if not (ticks >= 0 and ticks < LONGEST_DELAY):
        return -1
    return int(ticks)


@inline_rule
def new_handle(net: Net) -> Any:
    """A handle of something more that is pending, no other of the node's; -1 without room."""
    places = net.handles.shape[1]
    for place in range(1, places):
        if net.handles[net.me, place] == 0:
            net.handles[net.me, 0] += 1
            net.handles[net.me, place] = net.handles[net.me, 0] * places + place
            return net.handles[net.me, place]
    return -1


@rule
def cancel(net: Net, handle: int) -> Any:
    """Cancel a message that the node has set for later, by the handle that ``after`` returned.

    Returns:
        Whether it was pending. If it has come, or was cancelled, or the node has gone down since
        then, nothing happens: no handle is given out twice. 0 is no handle.
    """
    return drop_handle(net.handles, net.me, handle)


@inline_rule
def drop_handle(handles: Int64s, p: int, handle: int) -> Any:
    """Let a handle of node p be pending no more; returns whether it was."""
    place = handle % max(handles.shape[1], 1)
    if handle <= 0 or handles[p, place] != handle:
        return False
    handles[p, place] = 0
    return True


@inline_rule
def is_due(s: Any, p: int, words: Words, at: int) -> Any:
    """Whether the LATER record at ``words[at:]`` counts: node p was not down, nor cancelled it."""
    if words[at + BODY] >> DELAY_BITS != s.life[p]:
        return False
    handle = handle_of(words, at)
    return handle == 0 or s.handles[p, handle % s.handles.shape[1]] == handle


@inline_rule
def handle_of(words: Words, at: int) -> Any:
    """The handle of a LATER record, 0 of what cannot be cancelled."""
    return words[at + _HANDLE] if words[at + LENGTH] > _HANDLE else 0
