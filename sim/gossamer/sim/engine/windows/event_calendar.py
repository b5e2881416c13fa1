"""EventCalendar: records that wait for their window, sorted by nothing but window and shard.

It is a calendar queue (Brown, CACM 1988) whose days are not sorted. Time is cut into cells of equal
span, rows into shards of 2^shift that follow each other. Every worker has a list of its own for
every cell and shard, so that workers post without waiting for each other. Cells further away than
the ring of lists reaches share a list, dealt out again when they are near.

An entry is the tick it is due, its key (see `key_of`) and the record. Lists are chains of chunks in
one store; a chunk holds CHUNK * 2^k words. Each worker takes fresh chunks from its own part of the
store, and keeps those that it has read, whoever filled them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer.protocol.kernel.records import FROM, KIND, LENGTH, TO, UNREACHABLE, Words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.sim.engine.link_conditions import IN_SERVICE

# Words of an entry.
DUE, KEY, RECORD = 0, 1, 2

# Lists a shard has for cells that are near, and the list of those that are not.
CELLS = 64
FAR = CELLS

# Words of a list: its first chunk and its last (-1: none), where the next entry goes, where the
# last chunk ends, entries, words of entries.
FIRST, LAST, AT, END, ENTRIES, USED_WORDS, LIST_WORDS = 0, 1, 2, 3, 4, 5, 8

# Words of a chunk before its entries: the next chunk, where its entries end, its size k.
NEXT, FILLED, SIZE, CHUNK_HEAD = 0, 1, 2, 4
CHUNK = 1024

# Words of a worker's marks: the part of the store that it has not touched yet, then free chunks by
# size. Workers' marks lie a cache line or more apart.
FRESH, LIMIT, FREE, MARK_WORDS = 0, 1, 8, 64

# Words of the clock: the tick at which the present window begins, its cell, that cell's beginning.
NOW, CELL, CELL_BEGIN = 0, 1, 2


class EventCalendar(NamedTuple):
    """Records under way.

    Attributes:
        words: int64[capacity], the store.
        lists: int64[workers * (CELLS + 1) * shards * LIST_WORDS].
        marks: int64[workers * MARK_WORDS].
        clock: int64[3], changed between windows only.
        shards: how many there are.
        shift: rows of a shard, as a power of two.
        span: ticks of a cell.
    """

    words: Words
    lists: Words
    marks: Words
    clock: Words
    shards: int
    shift: int
    span: int


def make_calendar(
    workers: int, rows: int, shift: int, span: int, tick: int, capacity: int
) -> EventCalendar:
    """A calendar without entries at ``tick``; its ``capacity`` words are nobody's yet."""
    shards = max(1, (rows + (1 << shift) - 1) >> shift)
    calendar = EventCalendar(
        words=np.zeros(capacity, np.int64),
        lists=np.zeros(workers * (CELLS + 1) * shards * LIST_WORDS, np.int64),
        marks=np.zeros(workers * MARK_WORDS, np.int64),
        clock=np.zeros(3, np.int64),
        shards=shards,
        shift=shift,
        span=span,
    )
    lists = calendar.lists.reshape(-1, LIST_WORDS)
    lists[:, FIRST] = lists[:, LAST] = -1
    calendar.marks.reshape(workers, MARK_WORDS)[:, FREE:] = -1
    set_clock(calendar, tick)
    return calendar


def set_clock(calendar: EventCalendar, tick: int) -> None:
    """Let a window begin at ``tick``."""
    cell = tick // calendar.span
    calendar.clock[:] = tick, cell, cell * calendar.span


@inline_rule
def list_at(calendar: EventCalendar, worker: int, slot: int, shard: int) -> Any:
    """Where the list of a worker for a cell and shard stands."""
    return ((worker * (CELLS + 1) + slot) * calendar.shards + shard) * LIST_WORDS


@inline_rule
def slot_of(calendar: EventCalendar, due: int) -> Any:
    """Which list of a shard a tick belongs to."""
    away = due - calendar.clock[CELL_BEGIN]
    if away >= calendar.span * CELLS:
        return FAR
    cells = 0
    if away >= 4 * calendar.span:
        cells = away // calendar.span
    else:
        while away >= calendar.span:
            away -= calendar.span
            cells += 1
    return (calendar.clock[CELL] + cells) & (CELLS - 1)


@inline_rule
def words_for(length: int) -> Any:
    """Words never touched that posting a record of ``length`` words may take."""
    return CHUNK + 2 * (RECORD + length + CHUNK_HEAD)


@inline_rule
def untouched(calendar: EventCalendar, worker: int) -> Any:
    """Words of the store that a worker has not touched yet."""
    return calendar.marks[worker * MARK_WORDS + LIMIT] - calendar.marks[worker * MARK_WORDS + FRESH]


@inline_rule
def post(
    calendar: EventCalendar, worker: int, due: int, key: int, row: int, words: Words, at: int
) -> None:
    """Post a copy of the record at ``words[at:]`` to ``row``; the worker has made sure of room."""
    length = words[at + LENGTH]
    box = list_at(calendar, worker, slot_of(calendar, due), row >> calendar.shift)
    lists = calendar.lists
    if lists[box + LAST] < 0 or lists[box + AT] + RECORD + length > lists[box + END]:
        append_chunk(calendar, worker, box, RECORD + length)
    to = lists[box + AT]
    calendar.words[to + DUE] = due
    calendar.words[to + KEY] = key
    for i in range(length):
        calendar.words[to + RECORD + i] = words[at + i]
    lists[box + AT] = to + RECORD + length
    lists[box + ENTRIES] += 1
    lists[box + USED_WORDS] += RECORD + length


@rule
def append_chunk(calendar: EventCalendar, worker: int, box: int, needed: int) -> None:
    """Give a list a chunk more, which has room for ``needed`` words."""
    lists, marks, words = calendar.lists, calendar.marks, calendar.words
    mine = worker * MARK_WORDS
    size = 0
    while CHUNK << size < CHUNK_HEAD + needed:
        size += 1
    chunk = marks[mine + FREE + size]
    if chunk >= 0:
        marks[mine + FREE + size] = words[chunk + NEXT]
    else:
        chunk = marks[mine + FRESH]
        marks[mine + FRESH] = chunk + (CHUNK << size)
    words[chunk + NEXT] = -1
    words[chunk + SIZE] = size
    last = lists[box + LAST]
    if last < 0:
        lists[box + FIRST] = chunk
    else:
        words[last + NEXT] = chunk
        words[last + FILLED] = lists[box + AT]
    lists[box + LAST] = chunk
    lists[box + AT] = chunk + CHUNK_HEAD
    lists[box + END] = chunk + (CHUNK << size)


@inline_rule
def detach(calendar: EventCalendar, box: int) -> Any:
    """Empty a list; returns its first chunk, -1 for none. The chunks stay in use."""
    lists = calendar.lists
    first = lists[box + FIRST]
    if first >= 0:
        calendar.words[lists[box + LAST] + FILLED] = lists[box + AT]
    lists[box + FIRST] = -1
    lists[box + LAST] = -1
    lists[box + ENTRIES] = 0
    lists[box + USED_WORDS] = 0
    return first


@inline_rule
def release_chunks(calendar: EventCalendar, worker: int, first: int) -> None:
    """Let a worker keep a chain of chunks that has been read."""
    mine = worker * MARK_WORDS
    chunk = first
    while chunk >= 0:
        following = calendar.words[chunk + NEXT]
        free = mine + FREE + calendar.words[chunk + SIZE]
        calendar.words[chunk + NEXT] = calendar.marks[free]
        calendar.marks[free] = chunk
        chunk = following


@inline_rule
def receiver_of(words: Words, at: int) -> Any:
    """Who is to take the record at ``words[at:]``: its sender where it comes back."""
    kind = words[at + KIND]
    if kind >= UNREACHABLE and kind < IN_SERVICE:
        return words[at + FROM]
    return words[at + TO]


@rule
def deal_out_far(calendar: EventCalendar, workers: int) -> None:
    """Sort what waits for cells that were far away into the lists; worker 0 has made sure of room.

    No other worker may be at work.
    """
    words = calendar.words
    for worker in range(workers):
        for shard in range(calendar.shards):
            chunk = detach(calendar, list_at(calendar, worker, FAR, shard))
            first = chunk
            while chunk >= 0:
                at, filled = chunk + CHUNK_HEAD, words[chunk + FILLED]
                while at < filled:
                    row = receiver_of(words, at + RECORD)
                    post(calendar, 0, words[at + DUE], words[at + KEY], row, words, at + RECORD)
                    at += RECORD + words[at + RECORD + LENGTH]
                chunk = words[chunk + NEXT]
            release_chunks(calendar, 0, first)


@rule
def find_entries(calendar: EventCalendar, workers: int, found: Words) -> None:
    """Write to ``found`` where every entry begins; it has room for all of them."""
    words, lists = calendar.words, calendar.lists
    count = 0
    for box in range(0, workers * (CELLS + 1) * calendar.shards * LIST_WORDS, LIST_WORDS):
        chunk = lists[box + FIRST]
        while chunk >= 0:
            at, filled = chunk + CHUNK_HEAD, words[chunk + FILLED]
            if chunk == lists[box + LAST]:
                filled = lists[box + AT]
            while at < filled:
                found[count] = at
                count += 1
                at += RECORD + words[at + RECORD + LENGTH]
            chunk = words[chunk + NEXT]


@rule
def copy_entries(words: Words, found: Words, copy: Words) -> None:
    """Write the entries that begin at ``found`` to ``copy``, one after another."""
    to = 0
    for i in range(len(found)):
        at = found[i]
        for k in range(RECORD + words[at + RECORD + LENGTH]):
            copy[to] = words[at + k]
            to += 1


@rule
def post_entries(calendar: EventCalendar, entries: Words) -> None:
    """Post entries as `copy_entries` wrote them; worker 0 has made sure of room."""
    at = 0
    while at < len(entries):
        row = receiver_of(entries, at + RECORD)
        post(calendar, 0, entries[at + DUE], entries[at + KEY], row, entries, at + RECORD)
        at += RECORD + entries[at + RECORD + LENGTH]
