"""Repairing the ring in the round in which neighbours fail. Goes beyond the paper.

Failures come together: a network, a site or a crowd leaves at once. Who finds one of its neighbours
on the ring gone therefore trades links with the nearest on both sides at once, instead of with one
of them a round. That shows whether they live, and tells of those that do further along. Who has a
new predecessor makes sure of it in the same way; a new successor is greeted in any case
(`stabilise`). So a gap closes within a round, if anybody known lies past it; fingers do.
"""

from __future__ import annotations

from gossamer.protocol.kernel.records import Outbox
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import TMAN_REQUEST
from gossamer.protocol.peer.state.links import handle_in, note_asked, slot_of
from gossamer.protocol.peer.state.state import DISTURBED_IN, REPAIRED_IN, REPAIRS, State
from gossamer.protocol.peer.topology.tman import send_links


@rule
def is_on_ring(s: State, p: int, handle: int) -> bool:
    """Whether ``handle`` is one of the neighbours of ``p`` on the ring."""
    k = slot_of(s, p, handle)
    return k >= 0 and (k < 2 * s.params.ring_links or k == s.successor[p] or k == s.predecessor[p])


@rule
def repair_ring(
    s: State, p: int, has_failed: bool, successor: int, predecessor: int, out: Outbox
) -> None:
    """Make sure of the ring after a step, before which these were the nearest on it.

    Args:
        s: `State`; row ``p`` of it may change.
        p: the row.
        has_failed: whether the step showed that a neighbour on the ring has failed.
        successor, predecessor: handles of the nearest neighbours before the step, -1 for none.
        out: where questions are appended.
    """
    if s.alarm.shape[1] == 0:
        return
    after = handle_at(s, p, s.successor[p])
    before = handle_at(s, p, s.predecessor[p])
    if has_failed or after != successor or before != predecessor:
        s.alarm[p, DISTURBED_IN] = s.round[p]
        if has_failed and after >= 0:
            trade_at_once(s, p, s.successor[p], out)
        if (has_failed or before != predecessor) and before >= 0 and before != after:
            trade_at_once(s, p, s.predecessor[p], out)


@rule
def handle_at(s: State, p: int, k: int) -> int:
    """The handle in link slot ``k``, -1 for no slot."""
    if k < 0:
        return -1
    return handle_in(s.links[p, k])


@rule
def trade_at_once(s: State, p: int, k: int, out: Outbox) -> None:
    """Trade links with the neighbour in slot ``k``, if there were not too many repairs yet."""
    if s.alarm[p, REPAIRED_IN] != s.round[p]:
        s.alarm[p, REPAIRED_IN] = s.round[p]
        s.alarm[p, REPAIRS] = 0
    if s.alarm[p, REPAIRS] < s.params.ring_repairs:
        s.alarm[p, REPAIRS] += 1
        send_links(s, p, TMAN_REQUEST, handle_in(s.links[p, k]), out)
        note_asked(s, p, k)
