"""Event copies that are acknowledged hop by hop on their way to the rendezvous node.

Goes beyond the paper. Where nobody learns that a peer is gone, a copy sent to one that is gone is
lost, with all that would have followed from it. With `acknowledged_hops` whoever takes such a copy
says so to whom it came from, which remembers it until then. In its next turn a peer sends what was
not acknowledged by another way (`event_routing.send_again`), and asks the neighbour whether it
lives. A copy goes on its way a second time once; what arrives twice is dropped as always.

Copies in a tree are not acknowledged: neighbours offer each other what they took (`ring_offers`),
which mends a tree and its last hop alike.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, FROM, LENGTH, Outbox, close_record, open_record
from gossamer.protocol.kernel.rows.row_search import position_in_column
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    EVENT_ATTRIBUTE,
    EVENT_ID,
    EVENT_MODE,
    EVENT_TAKEN,
    EVENT_VALUES,
    TREE,
)
from gossamer.protocol.peer.state.links import note_heard
from gossamer.protocol.peer.state.state import (
    COPY,
    MALFORMED,
    RECORD,
    SENT_IN,
    SENT_TO,
    UNDER_WAY,
    State,
)

NOTHING = -1
# The mode of a remembered copy that only the next hop lacks: all others that should have it do.
NO_OTHER_WAY = TREE


@rule
def await_next_hop(s: State, p: int, to: int, mode: int, words: Any, body: int) -> bool:
    """Remember the copy at ``words[body:]``, sent to ``to`` in a mode, until it is acknowledged.

    One that finds no room is not remembered: as without acknowledgements, it arrives or does not.
    Returns whether there was no need of room, or some.
    """
    if s.under_way.shape[1] == 0:
        return True
    copy = words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
    i = position_in_column(s.under_way, p, COPY, copy)
    if i < 0:
        i = position_in_column(s.under_way, p, COPY, NOTHING)
        if i < 0:
            return False
        s.alarm[p, UNDER_WAY] += 1
    s.under_way[p, i, COPY] = copy
    s.under_way[p, i, SENT_TO] = to
    s.under_way[p, i, SENT_IN] = s.round[p]
    for w in range(EVENT_VALUES + s.params.attributes):
        s.under_way[p, i, RECORD + w] = words[body + w]
    s.under_way[p, i, RECORD + EVENT_MODE] = mode
    return True


@rule
def acknowledge_hop(s: State, p: int, to: int, words: Any, body: int, out: Outbox) -> None:
    """Tell ``to`` that its copy at ``words[body:]`` is here."""
    if s.under_way.shape[1] == 0:
        return
    at = open_record(out, EVENT_TAKEN, to, s.sampler.handle[p], 1)
    if at >= 0:
        copy = words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
        out.words[at + BODY] = copy
        close_record(out, at, 1)


@rule
def on_event_taken(s: State, p: int, _now: int, words: Any, at: int, _out: Outbox) -> None:
    """The next hop has a copy: forget it, unless it went to somebody else since."""
    if words[at + LENGTH] != BODY + 1 or words[at + BODY] < 0:
        s.counters[p, MALFORMED] += 1
        return
    note_heard(s, p, words[at + FROM])
    if s.under_way.shape[1] == 0:
        return
    i = position_in_column(s.under_way, p, COPY, words[at + BODY])
    if i >= 0 and s.under_way[p, i, SENT_TO] == words[at + FROM]:
        s.under_way[p, i, COPY] = NOTHING
        s.alarm[p, UNDER_WAY] -= 1


@rule
def take_unacknowledged(s: State, p: int, i: int) -> int:
    """Take copy ``i`` out, if it was sent before this turn; the event goes to ``work.event``.

    Returns who it was sent to, -1 where there is nothing to take.
    """
    if s.under_way[p, i, COPY] < 0 or s.under_way[p, i, SENT_IN] >= s.round[p]:
        return NOTHING
    s.under_way[p, i, COPY] = NOTHING
    s.alarm[p, UNDER_WAY] -= 1
    for w in range(s.work.event.shape[0]):
        s.work.event[w] = s.under_way[p, i, RECORD + w]
    return s.under_way[p, i, SENT_TO]
