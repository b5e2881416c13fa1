"""The content routing table: who asked for what (Vinifera, Sec. IV-B3).

The paper's entry is <neighbour, attribute, ranges, subscriptions>. Here an entry is one *box*: the
attribute it is routed by and a range on every attribute, so that the range on the routed attribute
and the whole subscription are one record; a neighbour has as many entries as it takes to hold what
it asked for, at most B. Boxes are aggregated: one that another covers vanishes, two whose union is
a box become that box. Past B the two whose hull adds least volume are merged, which lets events
through that nobody asked for (counted where they arrive) and never stops one that somebody did.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import Words
from gossamer.protocol.kernel.rows.row_search import find_boxes
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.space.ring import RING, RING_MASK
from gossamer.protocol.peer.state.links import AGE_SHIFT, HANDLE_MASK
from gossamer.protocol.peer.state.resting import install_soon
from gossamer.protocol.peer.state.state import (
    BOX,
    MERGED,
    REFUSED_ENTRIES,
    SOURCE_IDENTIFIER,
    State,
)


@rule
def is_interested(s: State, p: int, words: Words, at: int) -> bool:
    """Whether a subscription of ``p`` matches the values at ``words[at:]`` on every attribute."""
    found = s.work.found
    count = s.constrained.shape[1]
    size = s.params.attributes
    for i in range(find_boxes(s, s.subscriptions, p, count, 0, words, at, size, found)):
        if s.constrained[p, found[i]] >= 0:
            return True
    return False


@inline_rule
def source_of(s: State, p: int, e: int) -> Any:
    """The handle of the neighbour that installed entry ``e``."""
    return s.owner[p, e] & HANDLE_MASK


@inline_rule
def is_handed_over(s: State, p: int, e: int) -> Any:
    """Whether entry ``e`` was handed over and its owner has not asked for it here yet.

    Events that came before the entry did not go to its owner; they do when it asks.
    """
    return s.table[p, e, SOURCE_IDENTIFIER] > RING_MASK


@inline_rule
def fresh_owner(s: State, p: int, source: int, rounds: int) -> Any:
    """The owner word of an entry that ``source`` has just installed, for so many rounds."""
    return (s.round[p] + rounds) << AGE_SHIFT | source


@inline_rule
def move_entry(s: State, p: int, e: int, place: int) -> None:
    """Copy entry ``e`` over another."""
    s.owner[p, place] = s.owner[p, e]
    for w in range(s.table.shape[2]):
        s.table[p, place, w] = s.table[p, e, w]


@rule
def listed_box_covers(s: State, i: int, inner: Any, at: int, words: int) -> bool:
    """Whether listed box ``i`` covers the box at ``inner[at:]``; same attribute."""
    lists = s.work.lists
    if lists[i, 0] != inner[at]:
        return False
    for w in range(1, words, 2):
        if lists[i, w] > inner[at + w] or lists[i, w + 1] < inner[at + w + 1]:
            return False
    return True


@rule
def entry_covers(s: State, p: int, e: int, inner: Any, at: int, words: int) -> bool:
    """Whether the box of entry ``e`` covers the box at ``inner[at:]``; same attribute."""
    if s.table[p, e, BOX] != inner[at]:
        return False
    for w in range(1, words, 2):
        if s.table[p, e, BOX + w] > inner[at + w]:
            return False
        if s.table[p, e, BOX + w + 1] < inner[at + w + 1]:
            return False
    return True


@rule
def volume(box: Any, words: int) -> float:
    """The share of the attribute space that a box takes up."""
    share = 1.0
    for w in range(1, words, 2):
        share *= (box[w + 1] - box[w] + 1) / RING
    return share


@rule
def make_hull(s: State, i: int, j: int) -> None:
    """Write the hull of two listed boxes to ``work.hull``; j = -1 stands for ``work.box``."""
    for w in range(s.work.hull.shape[0]):
        mine = s.work.lists[i, w]
        other = s.work.box[w] if j < 0 else s.work.lists[j, w]
        if w > 0 and w % 2 == 0:
            s.work.hull[w] = max(mine, other)
        else:
            s.work.hull[w] = min(mine, other)


@rule
def union_is_box(s: State, i: int) -> bool:
    """Whether listed box ``i`` and ``work.box`` differ in one attribute and touch or overlap."""
    lists = s.work.lists
    box = s.work.box
    differing = 0
    for w in range(1, box.shape[0], 2):
        low, high = lists[i, w], lists[i, w + 1]
        other_low, other_high = box[w], box[w + 1]
        if low != other_low or high != other_high:
            differing += 1
            if differing > 1 or low > other_high + 1 or other_low > high + 1:
                return False
    return True


@rule
def listed_box_volume(s: State, i: int) -> float:
    """The volume of listed box ``i``."""
    share = 1.0
    for w in range(1, s.work.box.shape[0], 2):
        share *= (s.work.lists[i, w + 1] - s.work.lists[i, w] + 1) / RING
    return share


@rule
def absorb(s: State, first: int, count: int, i: int) -> int:
    """Take listed box ``i`` off the list and let ``work.box`` be the hull of the two."""
    make_hull(s, i, -1)
    last = first + count - 1
    for w in range(s.work.box.shape[0]):
        s.work.box[w] = s.work.hull[w]
        s.work.lists[i, w] = s.work.lists[last, w]
    return count - 1


@rule
def cheapest_merge(s: State, first: int, count: int) -> int:
    """The listed box of the same attribute whose hull with ``work.box`` adds least, or -1."""
    best = -1
    least = 0.0
    for i in range(first, first + count):
        if s.work.lists[i, 0] != s.work.box[0]:
            continue
        make_hull(s, i, -1)
        added = volume(s.work.hull, s.work.hull.shape[0]) - listed_box_volume(s, i)
        if best < 0 or added < least:
            best = i
            least = added
    return best


@rule
def aggregate(s: State, p: int, first: int, count: int) -> int:
    """Add ``work.box`` to the list of ``count`` boxes from ``work.lists[first]`` on.

    Returns the new count, at most B. A list that is full of boxes routed by other attributes makes
    room by merging two of those; with B > A there are two of one attribute.
    """
    lists = s.work.lists
    box = s.work.box
    words = box.shape[0]
    i = first
    while i < first + count:
        if lists[i, 0] == box[0]:
            if listed_box_covers(s, i, box, 0, words):
                return count
            if union_is_box(s, i) or listed_inside_box(s, i):
                count = absorb(s, first, count, i)
                i = first
                continue
        i += 1
    if count == s.params.boxes:
        s.counters[p, MERGED] += 1
        cheapest = cheapest_merge(s, first, count)
        if cheapest >= 0:
            count = absorb(s, first, count, cheapest)
            return aggregate_after_merge(s, first, count)
        count = merge_listed_pair(s, first, count)
    for w in range(words):
        lists[first + count, w] = box[w]
    return count + 1


@rule
def merge_listed_pair(s: State, first: int, count: int) -> int:
    """Let the two listed boxes of one attribute whose hull adds least become one."""
    one = -1
    other = -1
    least = 0.0
    for i in range(first, first + count):
        for j in range(i + 1, first + count):
            if s.work.lists[i, 0] != s.work.lists[j, 0]:
                continue
            make_hull(s, i, j)
            added = volume(s.work.hull, s.work.hull.shape[0])
            added -= listed_box_volume(s, i) + listed_box_volume(s, j)
            if one < 0 or added < least:
                one = i
                other = j
                least = added
    make_hull(s, one, other)
    last = first + count - 1
    for w in range(s.work.hull.shape[0]):
        s.work.lists[one, w] = s.work.hull[w]
        s.work.lists[other, w] = s.work.lists[last, w]
    return count - 1


@rule
def listed_inside_box(s: State, i: int) -> bool:
    """Whether ``work.box`` covers listed box ``i``; same attribute."""
    lists = s.work.lists
    box = s.work.box
    for w in range(1, box.shape[0], 2):
        if box[w] > lists[i, w] or box[w + 1] < lists[i, w + 1]:
            return False
    return True


@rule
def aggregate_after_merge(s: State, first: int, count: int) -> int:
    """Add the hull left in ``work.box`` to a list that has room, dropping what it covers."""
    i = first
    while i < first + count:
        if s.work.lists[i, 0] == s.work.box[0] and listed_inside_box(s, i):
            count = absorb(s, first, count, i)
        else:
            i += 1
    for w in range(s.work.box.shape[0]):
        s.work.lists[first + count, w] = s.work.box[w]
    return count + 1


@rule
def is_covered_by(s: State, p: int, words: Words, at: int, source: int) -> bool:
    """Whether an entry of ``source`` covers the box at ``words[at:]``."""
    size = s.work.box.shape[0]
    for e in range(s.table_count[p]):
        if source_of(s, p, e) == source and entry_covers(s, p, e, words, at, size):
            return True
    return False


@rule
def remove_source(s: State, p: int, source: int) -> None:
    """Drop all entries of one neighbour, keeping the order of the others."""
    kept = 0
    for e in range(s.table_count[p]):
        if source_of(s, p, e) != source:
            if kept != e:
                move_entry(s, p, e, kept)
            kept += 1
    if kept < s.table_count[p]:
        install_soon(s, p)
    s.table_count[p] = kept


@rule
def remove_expired(s: State, p: int) -> None:
    """Drop the entries that were not refreshed in time (Sec. IV-C)."""
    kept = 0
    for e in range(s.table_count[p]):
        if s.owner[p, e] >> AGE_SHIFT >= s.round[p]:
            if kept != e:
                move_entry(s, p, e, kept)
            kept += 1
    if kept < s.table_count[p]:
        install_soon(s, p)
    s.table_count[p] = kept


@rule
def replace_source(
    s: State,
    p: int,
    source: int,
    source_identifier: int,
    boxes: Any,
    first: int,
    count: int,
    rounds: int,
) -> None:
    """Let the entries of ``source`` be the boxes ``boxes[first:first + count]`` and no others.

    They live for so many rounds. Where the table is full, entries of one neighbour are merged to
    make room; a box that finds none even so joins an entry of its own neighbour, or is counted as
    refused.
    """
    install_soon(s, p)
    remove_source(s, p, source)
    for i in range(first, first + count):
        if s.table_count[p] == s.table.shape[1] and not make_room(s, p):
            widen_last_entry(s, p, source, boxes, i)
            continue
        e = s.table_count[p]
        s.owner[p, e] = fresh_owner(s, p, source, rounds)
        s.table[p, e, SOURCE_IDENTIFIER] = source_identifier
        for w in range(boxes.shape[1]):
            s.table[p, e, BOX + w] = boxes[i, w]
        s.table_count[p] = e + 1


@rule
def make_room(s: State, p: int) -> bool:
    """Halve the entries of the neighbour that has most of one attribute, merging them in pairs.

    Returns whether any entry was freed. Merging the entries of one neighbour and attribute costs
    precision and no match; it is counted.
    """
    count = s.table_count[p]
    most = 1
    heaviest = -1
    attribute = -1
    e = 0
    while e < count:
        length = 0
        for other in range(e, count):
            if same_tree(s, p, e, source_of(s, p, other), s.table[p, other, BOX]):
                length += 1
        if length > most:
            most = length
            heaviest = source_of(s, p, e)
            attribute = s.table[p, e, BOX]
        e += run_length(s, p, e)
    waiting = -1
    kept = 0
    for e in range(count):
        if most > 1 and same_tree(s, p, e, heaviest, attribute):
            if waiting >= 0:
                widen_entry(s, p, waiting, e)
                waiting = -1
                continue
            waiting = kept
        if kept != e:
            move_entry(s, p, e, kept)
        kept += 1
    s.table_count[p] = kept
    s.counters[p, MERGED] += count - kept
    return kept < count


@rule
def run_length(s: State, p: int, e: int) -> int:
    """How many entries from ``e`` on are of one and the same neighbour and attribute."""
    source = source_of(s, p, e)
    attribute = s.table[p, e, BOX]
    length = 1
    while e + length < s.table_count[p] and same_tree(s, p, e + length, source, attribute):
        length += 1
    return length


@rule
def same_tree(s: State, p: int, e: int, source: int, attribute: int) -> bool:
    """Whether entry ``e`` is of this neighbour and routed by this attribute."""
    return source_of(s, p, e) == source and s.table[p, e, BOX] == attribute


@rule
def widen_last_entry(s: State, p: int, source: int, boxes: Any, i: int) -> None:
    """Let the last entry of ``source`` take in ``boxes[i]``; where it has none, refuse the box."""
    for e in range(s.table_count[p] - 1, -1, -1):
        if same_tree(s, p, e, source, boxes[i, 0]):
            for w in range(1, boxes.shape[1], 2):
                s.table[p, e, BOX + w] = min(s.table[p, e, BOX + w], boxes[i, w])
                s.table[p, e, BOX + w + 1] = max(s.table[p, e, BOX + w + 1], boxes[i, w + 1])
            s.counters[p, MERGED] += 1
            return
    s.counters[p, REFUSED_ENTRIES] += 1


@rule
def widen_entry(s: State, p: int, e: int, other: int) -> None:
    """Let entry ``e`` be the hull of itself and entry ``other``."""
    for w in range(BOX + 1, s.table.shape[2], 2):
        s.table[p, e, w] = min(s.table[p, e, w], s.table[p, other, w])
        s.table[p, e, w + 1] = max(s.table[p, e, w + 1], s.table[p, other, w + 1])
