"""The event queue: records in order of time, ties in order of insertion.

A hierarchical timing wheel (Varghese and Lauck, SOSP 1987, scheme 7) over a pool of slots. The
lowest level has a list of records for every tick of the block that the clock is in, each higher
level a list for every block of the one below; when the clock enters a block, that block's list is
dealt out to the lists below. Adding and taking a record cost the same however many there are, and
because every list is kept in order of insertion, so are the records of one tick.

The lists are threaded through the slots. A slot holds 8 * 2^k words; freed slots of each size are
kept in a list of their own and the one freed last, still in the processor's cache, is used first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.records import LENGTH, Words
from gossamer.protocol.kernel.rules import inline_rule

# Words of a slot: the next slot of its list (-1: none), the tick its record is due, the record.
NEXT, DUE, RECORD = 0, 1, 2

NOW, USED, PENDING = 0, 1, 2

_BITS = 12
_TICKS = 1 << _BITS
_MASK = _TICKS - 1
_LEVELS = 4
HORIZON = 1 << (_BITS * _LEVELS)

_SMALLEST_SLOT = 8
_SIZES = 40

# Words of slots that a word of records takes at most: one of 7 words needs a slot of 16.
SLOT_WORDS_A_WORD = 3

_CACHE_LINE_BYTES = 64


class EventQueue(NamedTuple):
    """Records waiting for their tick.

    Attributes:
        words: int64[capacity], the slots; begins at a cache line.
        first, last: int64[levels * 4096], ends of the lists by level and block, -1 where empty.
        free: int64[sizes], first free slot of 8 * 2^k words, -1 where there is none.
        marks: int64[3]: the tick it is (NOW), words of the pool ever used, records waiting.
    """

    words: Words
    first: Words
    last: Words
    free: Words
    marks: Words


def make_event_queue(capacity: int) -> EventQueue:
    """An empty queue at tick 0 with a pool of ``capacity`` words."""
    return EventQueue(
        words=_aligned(capacity),
        first=np.full(_LEVELS * _TICKS, -1, np.int64),
        last=np.full(_LEVELS * _TICKS, -1, np.int64),
        free=np.full(_SIZES, -1, np.int64),
        marks=np.zeros(3, np.int64),
    )


def enlarged(queue: EventQueue, room: int, limit: int) -> EventQueue:
    """The same queue with a pool at least twice as large, and ``room`` words of it never used.

    Raises:
        CapacityError: the pool would exceed ``limit`` words; the queue is as it was.
    """
    used = int(queue.marks[USED])
    capacity = max(min(2 * len(queue.words), limit), used + room)
    if capacity > limit:
        raise CapacityError("the event queue", limit, "raise queue_words_limit")
    words = _aligned(capacity)
    words[:used] = queue.words[:used]
    return queue._replace(words=words)


def _aligned(capacity: int) -> Words:
    spare = _CACHE_LINE_BYTES // 8
    words = np.zeros(capacity + spare, np.int64)
    begin = (-words.ctypes.data % _CACHE_LINE_BYTES) // 8
    return words[begin : begin + capacity]


@inline_rule
def has_room(queue: EventQueue, room: int) -> Any:
    """Whether records whose slots take ``room`` words can be added whatever their sizes."""
    return len(queue.words) - queue.marks[USED] >= room


@inline_rule
def size_of_slot(length: int) -> Any:
    """k of the smallest slot, of 8 * 2^k words, that holds a record of ``length`` words."""
    size = 0
    while _SMALLEST_SLOT << size < RECORD + length:
        size += 1
    return size


@inline_rule
def push(queue: EventQueue, due: int, words: Words, at: int) -> None:
    """Add a copy of the record at ``words[at:]``, due at tick ``due``.

    The caller has made sure of the room, and that NOW <= due < HORIZON.
    """
    length = words[at + LENGTH]
    size = size_of_slot(length)
    slot = queue.free[size]
    if slot >= 0:
        queue.free[size] = queue.words[slot + NEXT]
    else:
        slot = queue.marks[USED]
        queue.marks[USED] = slot + (_SMALLEST_SLOT << size)
    for i in range(length):
        queue.words[slot + RECORD + i] = words[at + i]
    queue.marks[PENDING] += 1
    enlist(queue, slot, due)


@inline_rule
def enlist(queue: EventQueue, slot: int, due: int) -> None:
    """Append a slot to the list for ``due``."""
    queue.words[slot + NEXT] = -1
    queue.words[slot + DUE] = due
    level = 0
    while (due ^ queue.marks[NOW]) >> (_BITS * (level + 1)) != 0:
        level += 1
    place = (level << _BITS) + ((due >> (_BITS * level)) & _MASK)
    last = queue.last[place]
    if last >= 0:
        queue.words[last + NEXT] = slot
    else:
        queue.first[place] = slot
    queue.last[place] = slot


@inline_rule
def place_of_tick(tick: int) -> Any:
    """Where the list of a tick of the block that the clock is in stands."""
    return tick & _MASK


def set_aside(queue: EventQueue) -> tuple[int, int]:
    """Take the list of the present tick off the queue, for `put_back`."""
    place = place_of_tick.interpreted(int(queue.marks[NOW]))
    ends = int(queue.first[place]), int(queue.last[place])
    queue.first[place] = queue.last[place] = -1
    return ends


def put_back(queue: EventQueue, ends: tuple[int, int]) -> None:
    """Append what was set aside to the list of the present tick."""
    place = place_of_tick.interpreted(int(queue.marks[NOW]))
    if ends[0] < 0:
        return
    if queue.first[place] < 0:
        queue.first[place] = ends[0]
    else:
        queue.words[queue.last[place] + NEXT] = ends[0]
    queue.last[place] = ends[1]


@inline_rule
def pop(queue: EventQueue) -> Any:
    """Take the first record due at this tick off its list; returns its slot, -1 for none.

    The slot stays in use until it is released or enlisted again.
    """
    place = place_of_tick(queue.marks[NOW])
    slot = queue.first[place]
    if slot >= 0:
        following = queue.words[slot + NEXT]
        queue.first[place] = following
        if following < 0:
            queue.last[place] = -1
        else:
            prefetch(queue.words, following, 0)
    return slot


@inline_rule
def release(queue: EventQueue, slot: int, size: int) -> None:
    """Give back a popped slot of 8 * 2^size words."""
    queue.words[slot + NEXT] = queue.free[size]
    queue.free[size] = slot
    queue.marks[PENDING] -= 1


@inline_rule
def advance(queue: EventQueue) -> None:
    """Go on to the next tick; the present one must have no record left."""
    queue.marks[NOW] += 1
    level = 1
    while level < _LEVELS and queue.marks[NOW] & ((1 << (_BITS * level)) - 1) == 0:
        deal_out(queue, level)
        level += 1


@inline_rule
def deal_out(queue: EventQueue, level: int) -> None:
    """Move the records of the block just entered to the lists of the levels below."""
    place = (level << _BITS) + ((queue.marks[NOW] >> (_BITS * level)) & _MASK)
    slot = queue.first[place]
    queue.first[place] = -1
    queue.last[place] = -1
    while slot >= 0:
        following = queue.words[slot + NEXT]
        enlist(queue, slot, queue.words[slot + DUE])
        slot = following
