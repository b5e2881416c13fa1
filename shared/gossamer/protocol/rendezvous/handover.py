"""Handing a newcomer the part of the routing table that its place on the ring brings with it.

Goes beyond the paper: there a newcomer that takes over part of an arc knows no subscriber until
they install themselves anew, and loses the events published until then.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.messages import (
    BODY,
    FROM,
    HANDOVER,
    LENGTH,
    Outbox,
    close_record,
    open_record,
)
from gossamer.protocol.rendezvous.showering import anchor, own_arc_begins
from gossamer.protocol.rules import rule
from gossamer.protocol.space.ring import RING_MASK, clockwise
from gossamer.protocol.state import (
    BOX,
    EXPIRES,
    IDENTIFIER,
    MALFORMED,
    SOURCE,
    SOURCE_IDENTIFIER,
)


@rule
def entry_meets_arc(s: Any, p: int, e: int, start: int, end: int) -> bool:
    """Whether entry ``e`` asks for values of the arc (start, end]."""
    attribute = s.table[p, e, BOX]
    if s.params.by_value == 0:
        low = anchor(attribute)
        high = low
    else:
        low = s.table[p, e, BOX + 1 + 2 * attribute]
        high = s.table[p, e, BOX + 2 + 2 * attribute]
    first = (start + 1) & RING_MASK
    length = clockwise(first, end)
    return clockwise(first, low) <= length or clockwise(low, first) <= high - low


@rule
def hand_over(s: Any, p: int, newcomer: int, identifier: int, out: Outbox) -> None:
    """Send a newcomer the entries for the part of our arc up to ``identifier``.

    The body is a count, then per entry its source, the source's identifier and the box.
    """
    me = s.sampler.profile[p, IDENTIFIER]
    start = (me + own_arc_begins(s, p)) & RING_MASK
    size = 2 + s.work.box.shape[0]
    at = open_record(out, HANDOVER, newcomer, s.sampler.handle[p], 1 + s.table_count[p] * size)
    if at < 0:
        return
    count = 0
    for e in range(s.table_count[p]):
        if s.table[p, e, SOURCE] == newcomer or not entry_meets_arc(s, p, e, start, identifier):
            continue
        place = at + BODY + 1 + count * size
        out.words[place] = s.table[p, e, SOURCE]
        out.words[place + 1] = s.table[p, e, SOURCE_IDENTIFIER]
        for w in range(s.work.box.shape[0]):
            out.words[place + 2 + w] = s.table[p, e, BOX + w]
        count += 1
    out.words[at + BODY] = count
    close_record(out, at, 1 + count * size)


@rule
def on_handover(s: Any, p: int, words: Any, at: int) -> None:
    """Take over entries as a newcomer: only while we have none of our own making."""
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
    if s.table_count[p] > 0:
        return
    for i in range(count):
        place = at + BODY + 1 + i * size
        attribute = words[place + 2]
        if attribute < 0 or attribute >= s.params.attributes:
            s.counters[p, MALFORMED] += 1
            continue
        e = s.table_count[p]
        s.table[p, e, SOURCE] = words[place]
        s.table[p, e, EXPIRES] = s.round[p] + s.params.entry_lifetime
        s.table[p, e, SOURCE_IDENTIFIER] = words[place + 1]
        for w in range(s.work.box.shape[0]):
            s.table[p, e, BOX + w] = words[place + 2 + w]
        s.table_count[p] = e + 1
