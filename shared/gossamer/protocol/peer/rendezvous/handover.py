"""Handing over the part of the routing table that goes with a part of the ring.

Goes beyond the paper: there a peer that takes over part of an arc, as a newcomer or to relieve its
successor of load, knows no subscriber until they install themselves anew, and loses the events
published until then.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, FROM, LENGTH, Outbox, close_record, open_record
from gossamer.protocol.kernel.rows.row_search import copy_row
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import HANDOVER
from gossamer.protocol.peer.rendezvous.box_aggregation import take_own_box
from gossamer.protocol.peer.routing.lookup import (
    anchor,
    handle_of_slot,
    own_arc_begins,
)
from gossamer.protocol.peer.routing.table import fresh_owner, is_covered_by, source_of
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.state import (
    BOX,
    HANDED_OVER,
    MALFORMED,
    REFUSED_ENTRIES,
    SOURCE_IDENTIFIER,
    State,
)


@rule
def box_meets_arc(s: State, box: Any, at: int, start: int, end: int) -> bool:
    """Whether the box at ``box[at:]`` asks for values of the arc (start, end]."""
    attribute = box[at]
    if s.params.by_value == 0:
        low = anchor(attribute)
        high = low
    else:
        low = box[at + 1 + 2 * attribute]
        high = box[at + 2 + 2 * attribute]
    first = (start + 1) & RING_MASK
    length = clockwise(first, end)
    return clockwise(first, low) <= length or clockwise(low, first) <= high - low


@rule
def write_entry(
    s: State, source: int, identifier: int, box: Any, at: int, out: Outbox, place: int
) -> None:
    """Write an entry to ``out.words`` from ``place`` on: source, its identifier, box."""
    out.words[place] = source
    out.words[place + 1] = identifier
    for w in range(s.work.box.shape[0]):
        out.words[place + 2 + w] = box[at + w]


@rule
def hand_over(s: State, p: int, newcomer: int, identifier: int, out: Outbox) -> None:
    """Send our new predecessor the entries for the part of our arc up to ``identifier``.

    Our own subscriptions are among them, as entries that we asked for.

    The body is a count, then per entry its source, the source's identifier and the box.
    """
    me = s.sampler.profile[p, IDENTIFIER]
    start = (me + own_arc_begins(s, p)) & RING_MASK
    size = 2 + s.work.box.shape[0]
    most = s.table_count[p] + s.constrained.shape[1]
    at = open_record(out, HANDOVER, newcomer, s.sampler.handle[p], 1 + most * size)
    if at < 0:
        return
    count = 0
    for e in range(s.table_count[p]):
        source = source_of(s, p, e)
        copy_row(s.table, p, e, s.work.entry)
        if source != newcomer and box_meets_arc(s, s.work.entry, BOX, start, identifier):
            place = at + BODY + 1 + count * size
            where = s.table[p, e, SOURCE_IDENTIFIER] & RING_MASK
            write_entry(s, source, where, s.work.entry, BOX, out, place)
            count += 1
    for k in range(s.constrained.shape[1]):
        if s.constrained[p, k] < 0 or count == s.table.shape[1]:
            continue
        take_own_box(s, p, k)
        if box_meets_arc(s, s.work.box, 0, start, identifier):
            place = at + BODY + 1 + count * size
            write_entry(s, s.sampler.handle[p], me, s.work.box, 0, out, place)
            count += 1
    out.words[at + BODY] = count
    close_record(out, at, 1 + count * size)


@rule
def is_predecessor(s: State, p: int, handle: int) -> bool:
    """Whether ``handle`` is our predecessor, and may leave."""
    k = s.predecessor[p]
    return s.params.move_rounds > 0 and k >= 0 and handle_of_slot(s, p, k) == handle


@rule
def is_successor(s: State, p: int, handle: int) -> bool:
    """Whether ``handle`` is our successor."""
    k = s.successor[p]
    return k >= 0 and handle_of_slot(s, p, k) == handle


@rule
def on_handover(s: State, p: int, _now: int, words: Any, at: int, _out: Outbox) -> None:
    """Take over entries, as a newcomer who has none, or from who stands next to us.

    That is the successor, where we relieve it of load or move in before it, or a predecessor that
    is about to leave.
    """
    size = 2 + s.work.box.shape[0]
    count = -1
    if words[at + LENGTH] > BODY:
        count = words[at + BODY]
    if (
        count < 0
        or count > s.table.shape[1]
        or words[at + LENGTH] != BODY + 1 + count * size
        or words[at + FROM] == s.sampler.handle[p]
    ):
        s.counters[p, MALFORMED] += 1
        return
    giver = words[at + FROM]
    is_beside = is_successor(s, p, giver) or is_predecessor(s, p, giver)
    if s.table_count[p] > 0 and not is_beside:
        return
    for i in range(count):
        place = at + BODY + 1 + i * size
        attribute = words[place + 2]
        if attribute < 0 or attribute >= s.params.attributes:
            s.counters[p, MALFORMED] += 1
            continue
        source = words[place] & HANDLE_MASK
        if source == s.sampler.handle[p] or is_covered_by(s, p, words, place + 2, source):
            continue
        if s.table_count[p] == s.table.shape[1]:
            s.counters[p, REFUSED_ENTRIES] += 1
            continue
        e = s.table_count[p]
        s.owner[p, e] = fresh_owner(s, p, source)
        s.table[p, e, SOURCE_IDENTIFIER] = words[place + 1] & RING_MASK
        if s.params.replay_rounds > 0:
            s.table[p, e, SOURCE_IDENTIFIER] |= HANDED_OVER
        for w in range(s.work.box.shape[0]):
            s.table[p, e, BOX + w] = words[place + 2 + w]
        s.table_count[p] = e + 1
