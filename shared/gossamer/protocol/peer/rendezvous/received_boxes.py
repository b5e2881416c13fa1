"""What a peer makes of the boxes that an INSTALL brings, before it takes any of them in."""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, LENGTH
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.rendezvous.box_aggregation import take_own_box
from gossamer.protocol.peer.routing.table import (
    entry_covers,
    is_handed_over,
    listed_box_covers,
    source_of,
)
from gossamer.protocol.peer.state.links import descriptor_words
from gossamer.protocol.peer.state.state import MALFORMED, State

# What is to be done with a box received.
KNOWN, HELD_ELSEWHERE, NEW = 0, 1, 2


@inline_rule
def head_words(s: State) -> Any:
    """Words of an INSTALL's body before the boxes."""
    return descriptor_words(s) + 2


@rule
def boxes_are_well_formed(s: State, p: int, words: Any, at: int) -> bool:
    """Whether the boxes of a record fit its length, our tables and the schema."""
    head = head_words(s)
    size = s.work.box.shape[0]
    fits = words[at + LENGTH] >= BODY + head
    if fits:
        count = words[at + BODY + head - 1]
        fits = 0 <= count <= s.params.boxes and words[at + LENGTH] == BODY + head + count * size
        for i in range(count if fits else 0):
            attribute = words[at + BODY + head + i * size]
            if attribute < 0 or attribute >= s.params.attributes:
                fits = False
    if not fits:
        s.counters[p, MALFORMED] += 1
    return fits


@rule
def covered_by_own(s: State, p: int, words: Any, at: int) -> bool:
    """Whether a subscription of ``p`` itself covers the box at ``words[at:]``."""
    own = s.links.shape[1] * s.params.boxes
    size = s.work.box.shape[0]
    for k in range(s.constrained.shape[1]):
        if s.constrained[p, k] >= 0:
            take_own_box(s, p, k)
            for w in range(size):
                s.work.lists[own, w] = s.work.box[w]
            if listed_box_covers(s, own, words, at, size):
                return True
    return False


@rule
def classify_box(s: State, p: int, words: Any, at: int, source: int) -> int:
    """What the box at ``words[at:]`` is to the routing table."""
    size = s.work.box.shape[0]
    found = NEW
    for e in range(s.table_count[p]):
        if entry_covers(s, p, e, words, at, size):
            if source_of(s, p, e) == source and not is_handed_over(s, p, e):
                return KNOWN
            found = HELD_ELSEWHERE
    return found


@rule
def classify_boxes(s: State, p: int, words: Any, first: int, count: int, source: int) -> int:
    """Write to ``work.news`` what each box received is; return how many are not known."""
    unknown = 0
    for i in range(count):
        at = first + i * s.work.box.shape[0]
        s.work.news[i] = classify_box(s, p, words, at, source)
        if s.work.news[i] != KNOWN:
            unknown += 1
            if s.work.news[i] == NEW and covered_by_own(s, p, words, at):
                s.work.news[i] = HELD_ELSEWHERE
    return unknown
