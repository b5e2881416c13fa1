"""The entries of a shard, found by row and put in order: what a window begins with."""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.records import LENGTH, Words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.sim.engine.windows.event_calendar import (
    CELL,
    CELL_BEGIN,
    CELLS,
    CHUNK_HEAD,
    DUE,
    ENTRIES,
    FILLED,
    KEY,
    NEXT,
    RECORD,
    USED_WORDS,
    detach,
    list_at,
    post,
    receiver_of,
    untouched,
    words_for,
)
from gossamer.sim.engine.windows.worker_pool import (
    ENTRIES_WANTED,
    ENTRY_AT,
    ENTRY_DUE,
    ENTRY_KEY,
    ENTRY_NEXT,
    WANTED,
    Worker,
)

# More entries of a row than these are put in order by a heap.
_FEW = 24


@rule
def collect(worker: Worker, shard: int, workers: int, end: int) -> Any:
    """Note the entries of the present cell that are due before ``end`` in the table, by row.

    Those due later are posted again. Returns False where there is no room for either, with how much
    there should be at WANTED and ENTRIES_WANTED; nothing has happened then.
    """
    calendar = worker.calendar
    slot = calendar.clock[CELL] & (CELLS - 1)
    entries, words_used = 0, 0
    for number in range(workers):
        box = list_at(calendar, number, slot, shard)
        entries += calendar.lists[box + ENTRIES]
        words_used += calendar.lists[box + USED_WORDS]
    if end == calendar.clock[CELL_BEGIN] + calendar.span:
        words_used = 0
    worker.place[WANTED] = 2 * words_used
    worker.place[ENTRIES_WANTED] = entries
    if entries > len(worker.picked) or untouched(calendar, worker.number) < words_for(
        2 * words_used
    ):
        return False
    count = 0
    for number in range(workers):
        first = detach(calendar, list_at(calendar, number, slot, shard))
        worker.chains[number] = first
        count = read_chain(worker, first, shard << calendar.shift, count, end)
    return True


@inline_rule
def read_chain(worker: Worker, first: int, first_row: int, count: int, end: int) -> Any:
    """Note the entries of a chain of chunks after ``count`` others; returns how many there are."""
    calendar, table, heads = worker.calendar, worker.table, worker.heads
    words = calendar.words
    chunk = first
    while chunk >= 0:
        at, filled = chunk + CHUNK_HEAD, words[chunk + FILLED]
        while at < filled:
            row = receiver_of(words, at + RECORD)
            if words[at + DUE] < end:
                table[count, ENTRY_DUE] = words[at + DUE]
                table[count, ENTRY_KEY] = words[at + KEY]
                table[count, ENTRY_AT] = at + RECORD
                table[count, ENTRY_NEXT] = heads[row - first_row]
                heads[row - first_row] = count
                count += 1
            else:
                due, key = words[at + DUE], words[at + KEY]
                post(calendar, worker.number, due, key, row, words, at + RECORD)
            at += RECORD + words[at + RECORD + LENGTH]
        chunk = words[chunk + NEXT]
    return count


@inline_rule
def approach_entries(worker: Worker, place: int) -> None:
    """Bring near the records of the shard's row number ``place``."""
    entry = worker.heads[place]
    while entry >= 0:
        prefetch(worker.calendar.words, worker.table[entry, ENTRY_AT], 0)
        entry = worker.table[entry, ENTRY_NEXT]


@inline_rule
def pick(worker: Worker, place: int) -> Any:
    """Put the entries of the shard's row number ``place`` in order; returns how many there are."""
    table, picked = worker.table, worker.picked
    entry = worker.heads[place]
    count = 0
    while entry >= 0 and count < _FEW:
        # Sorted as they come: most rows have a few.
        at = count
        while at > 0 and comes_before(table, entry, picked[at - 1]):
            picked[at] = picked[at - 1]
            at -= 1
        picked[at] = entry
        count += 1
        entry = table[entry, ENTRY_NEXT]
    if entry >= 0:
        while entry >= 0:
            picked[count] = entry
            count += 1
            entry = table[entry, ENTRY_NEXT]
        sort_many(table, picked, count)
    return count


@inline_rule
def comes_before(table: Words, one: int, other: int) -> Any:
    """Whether an entry is taken before another; no two have tick and key in common."""
    if table[one, ENTRY_DUE] != table[other, ENTRY_DUE]:
        return table[one, ENTRY_DUE] < table[other, ENTRY_DUE]
    return table[one, ENTRY_KEY] < table[other, ENTRY_KEY]


@rule
def sort_many(table: Words, picked: Words, count: int) -> None:
    """Heapsort of the first ``count`` of ``picked``."""
    for root in range(count // 2 - 1, -1, -1):
        sift_down(table, picked, root, count)
    for last in range(count - 1, 0, -1):
        largest = picked[0]
        picked[0] = picked[last]
        picked[last] = largest
        sift_down(table, picked, 0, last)


@inline_rule
def sift_down(table: Words, picked: Words, root: int, count: int) -> None:
    """Let the entry at ``root`` sink to its place in a heap of ``count``."""
    moving = picked[root]
    hole = root
    child = 2 * hole + 1
    while child < count:
        if child + 1 < count and comes_before(table, picked[child], picked[child + 1]):
            child += 1
        if not comes_before(table, moving, picked[child]):
            break
        picked[hole] = picked[child]
        hole = child
        child = 2 * hole + 1
    picked[hole] = moving
