"""The entries of a shard, found by row and put in order: what a window begins with."""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.records import FROM, HEAD, KIND, LENGTH, TAIL, TO, UNREACHABLE, Words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.sim.engine.latency import ticks_to_enter, ticks_to_leave, trip_ticks
from gossamer.sim.engine.link_conditions import (
    DUPLICATED,
    DUPLICATION,
    FULL_DOWN,
    FULL_UP,
    IN_SERVICE,
    IN_TRANSFER,
    LATENCY,
    LATENCY_OF_COPY,
    LOSS,
    LOST_ON_WAY,
    OVERFLOWED,
    PARTED,
    all_closed,
    are_parted,
    delay_ticks,
    is_sound,
    loss_at,
    next_draws,
)
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
    LATER_COUNT,
    LATER_TAIL,
    OWN_FIRST,
    OWN_HEAD,
    OWN_TAIL,
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


# What becomes of a record that a row has written: posted to others, or kept for the row itself.
#
# The rules are those of `link_conditions`, over a calendar in place of a queue.

# How the compiled loops end; the second because the store, a buffer or a table is to be enlarged.
DONE, NO_ROOM, FAULT = 0, 1, 2

_NUMBER_BITS = 32
_NUMBERS = (1 << _NUMBER_BITS) - 1
# Whose a record is that the row itself has served or let in: before everything that arrives.
_SERVED = -1
# Whose a record is that the row has sent itself: behind everything that arrives, from however many
# rows.
TO_ITSELF = 1 << 30


@inline_rule
def key_of(worker: Worker, giver: int, poster: int) -> Any:
    """What the place of a record among those that a row takes at a tick depends on.

    Args:
        worker: of the worker that runs the poster.
        giver: who sent or returned it; TO_ITSELF where it is the taker's own, -1 where the taker
            has served it.
        poster: the row whose number of it counts.
    """
    worker.posted[poster] += 1
    return giver << _NUMBER_BITS | (worker.posted[poster] & _NUMBERS)


@inline_rule
def can_post(worker: Worker, length: int) -> Any:
    """Whether a record of ``length`` words can be posted twice; notes at WANTED if not."""
    if untouched(worker.calendar, worker.number) >= 2 * words_for(length):
        return True
    worker.place[WANTED] = length + RECORD
    return False


@inline_rule
def can_keep(worker: Worker, length: int) -> Any:
    """Whether the row in hand can keep a record of ``length`` words; notes at WANTED if not."""
    place, needed = worker.place, length + RECORD
    if place[OWN_TAIL] + needed <= len(worker.own) and place[LATER_TAIL] + needed <= len(
        worker.later
    ):
        return True
    place[WANTED] = needed
    return False


@inline_rule
def dispatch(worker: Worker, p: int, tick: int, end: int) -> Any:
    """Send on what row p has written at ``tick`` of a window that ends at ``end``.

    Returns DONE; or NO_ROOM, and goes on when called again; or FAULT, with HEAD of the outbox at a
    record that cannot be sent.
    """
    words, cursor = worker.out.words, worker.out.cursor
    if not all_closed(worker.out, 0):
        return FAULT
    at, tail = cursor[HEAD], cursor[TAIL]
    population = len(worker.posted)
    while at < tail:
        if not is_sound(words, at, tail, population):
            cursor[HEAD] = at
            return FAULT
        length = words[at + LENGTH]
        if words[at + TO] == p:
            if not can_keep(worker, length) or not can_post(worker, length):
                cursor[HEAD] = at
                return NO_ROOM
            delay = delay_ticks(words, at)
            if delay == 0:
                keep(worker, words, at)
            else:
                key = key_of(worker, TO_ITSELF, p)
                keep_until(worker, p, tick, tick + delay, end, key, words, at)
        else:
            if not can_post(worker, length):
                cursor[HEAD] = at
                return NO_ROOM
            send(worker, p, tick, words, at)
        at += length
    cursor[HEAD] = 0
    cursor[TAIL] = 0
    return DONE


@inline_rule
def keep(worker: Worker, words: Words, at: int) -> None:
    """Let the row in hand take a record at the present tick, after all else that is due."""
    place, own = worker.place, worker.own
    if place[OWN_HEAD] == place[OWN_TAIL]:
        place[OWN_HEAD] = OWN_FIRST
        place[OWN_TAIL] = OWN_FIRST
    to = place[OWN_TAIL]
    length = words[at + LENGTH]
    for i in range(length):
        own[to + i] = words[at + i]
    place[OWN_TAIL] = to + length


@inline_rule
def keep_until(
    worker: Worker, p: int, tick: int, due: int, end: int, key: int, words: Words, at: int
) -> None:
    """Let the row in hand take a record at tick ``due``, in this window or a later one."""
    place, later = worker.place, worker.later
    if due == tick:
        keep(worker, words, at)
        return
    if due >= end:
        post(worker.calendar, worker.number, due, key, p, words, at)
        return
    to = place[LATER_TAIL]
    length = words[at + LENGTH]
    later[to + DUE] = due
    later[to + KEY] = key
    for i in range(length):
        later[to + RECORD + i] = words[at + i]
    place[LATER_TAIL] = to + RECORD + length
    place[LATER_COUNT] += 1


@inline_rule
def send(worker: Worker, p: int, tick: int, words: Words, at: int) -> None:
    """Put the record at ``words[at:]``, which row p has written, on its way to another row.

    The kind of a record that a partition stops is changed in place.
    """
    links, calendar, number = worker.links, worker.calendar, worker.number
    to = words[at + TO]
    leaves = ticks_to_leave(links.bandwidth, p, tick, words, at)
    if leaves < 0:
        links.counts[FULL_UP] += 1
        return
    leaves += tick
    draws = next_draws(links, p)
    loss = loss_at(links, tick)
    if loss > 0 and mix(links.seed, p, draws + LOSS) < loss:
        links.counts[LOST_ON_WAY] += 1
        return
    arrives = leaves + trip_ticks(links.latency, p, to, links.seed, draws + LATENCY)
    if are_parted(links, p, to, tick):
        links.counts[PARTED] += 1
        if worker.network.reports_unreachable:
            back = next_draws(links, p)
            arrives += trip_ticks(links.latency, to, p, links.seed, back + LATENCY)
            words[at + KIND] += UNREACHABLE
            post(calendar, number, arrives, key_of(worker, TO_ITSELF, p), p, words, at)
        return
    post(calendar, number, arrives, key_of(worker, p, p), to, words, at)
    if links.duplication > 0 and mix(links.seed, p, draws + DUPLICATION) < links.duplication:
        links.counts[DUPLICATED] += 1
        copy = trip_ticks(links.latency, p, to, links.seed, draws + LATENCY_OF_COPY)
        post(calendar, number, leaves + copy, key_of(worker, p, p), to, words, at)


@inline_rule
def send_back(worker: Worker, p: int, tick: int, words: Words, at: int) -> None:
    """Report to the sender of the record at ``words[at:]`` that row p, its addressee, is down."""
    network, links = worker.network, worker.links
    source = words[at + FROM]
    if not network.reports_unreachable or not network.alive[source]:
        return
    words[at + KIND] += UNREACHABLE
    draws = next_draws(links, p)
    due = tick + trip_ticks(links.latency, p, source, links.seed, draws + LATENCY)
    post(worker.calendar, worker.number, due, key_of(worker, p, p), source, words, at)


@inline_rule
def join_input_queue(worker: Worker, p: int, tick: int, end: int, words: Words, at: int) -> None:
    """Let a record that has arrived wait until row p has served it, if p has room for it."""
    links = worker.links
    if links.waiting[p] >= links.queue_limit:
        links.counts[OVERFLOWED] += 1
        return
    links.waiting[p] += 1
    links.longest[p] = max(links.longest[p], links.waiting[p])
    links.free_at[p] = max(links.free_at[p], tick) + links.service[p]
    words[at + KIND] += IN_SERVICE
    key = key_of(worker, _SERVED, p)
    keep_until(worker, p, tick, links.free_at[p], end, key, words, at)


@inline_rule
def come_in(worker: Worker, p: int, tick: int, end: int, words: Words, at: int) -> None:
    """Let a record that has arrived pass row p's link, if that has room for it."""
    ticks = ticks_to_enter(worker.links.bandwidth, p, tick, words, at)
    if ticks < 0:
        worker.links.counts[FULL_DOWN] += 1
        return
    words[at + KIND] += IN_TRANSFER
    keep_until(worker, p, tick, tick + ticks, end, key_of(worker, _SERVED, p), words, at)
