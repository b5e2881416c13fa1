"""What becomes of a record that a row has written: posted to others, or kept for the row itself.

The rules are those of `link_conditions`, over a calendar in place of a queue.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.records import FROM, HEAD, KIND, LENGTH, TAIL, TO, UNREACHABLE, Words
from gossamer.protocol.kernel.rules import inline_rule
from gossamer.sim.engine.bandwidth import ticks_to_enter, ticks_to_leave
from gossamer.sim.engine.latency import trip_ticks
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
from gossamer.sim.engine.windows.event_calendar import DUE, KEY, RECORD, post, untouched, words_for
from gossamer.sim.engine.windows.worker_pool import (
    LATER_COUNT,
    LATER_TAIL,
    OWN_FIRST,
    OWN_HEAD,
    OWN_TAIL,
    WANTED,
    Worker,
)

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
