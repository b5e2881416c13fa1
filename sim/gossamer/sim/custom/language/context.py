"""What a handler knows besides its node's row: the time, and where it writes."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from gossamer.protocol.kernel.records import Outbox
from gossamer.protocol.kernel.rules import inline_rule
from gossamer.sim.engine.link_conditions import DELAY_BITS, LONGEST_DELAY

TICKS_A_SECOND: Final = 1000

# Delays that a record can have, in words.
DELAYS: Final = f"from 0 s to {LONGEST_DELAY / TICKS_A_SECOND:.0e} s"

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
    """

    out: Outbox
    me: int
    now: int
    round: int
    life: int
    rate: float


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
