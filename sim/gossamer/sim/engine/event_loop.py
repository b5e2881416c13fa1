"""The event engine's compiled loops: what happens at a tick, and the ticks of a round.

At one tick things happen in this order: nodes go up and down, timers fire, records are taken in
order of insertion, including those that are sent without latency during that tick; or, where an
engine is to do as the windows engine does, in the order of `sort_tick`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    HEAD,
    KIND,
    LENGTH,
    TAIL,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
)
from gossamer.protocol.kernel.rules import Rule, inline_rule, rule
from gossamer.sim.engine.cycle_engine import (
    DROPPED,
    HINT_LATER,
    HINT_SOON,
    LOST,
    PASSED,
    Network,
    return_to_sender,
)
from gossamer.sim.engine.event_queue import (
    NEXT,
    NOW,
    RECORD,
    EventQueue,
    advance,
    enlist,
    has_room,
    place_of_tick,
    pop,
    release,
    size_of_slot,
)
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.engine.link_conditions import (
    IN_SERVICE,
    IN_TRANSFER,
    STOPPED,
    LinkConditions,
    all_closed,
    come_in,
    is_sound,
    join_input_queue,
    return_ticks,
    send,
)
from gossamer.sim.engine.loops import loop_factory

# The order in which a row takes what is due at one tick, whoever else does what.
#
# First its timers; then what it has let in over its link or served of its input queue; then what
# arrives, by (row that sent or returned it, that row's number of it); then records to itself, first
# in first out. It depends on no row but sender and taker, so that engines may run rows in any order
# they like.
#
# The windows engine takes records in this order. The event queue keeps the order of insertion, in
# which the records of one sender lie by their number already; a stable sort by taker and sender
# makes it this one.

_SERVED = -1


@inline_rule
def taker_of(words: Words, at: int) -> Any:
    """Who is to take the record at ``words[at:]``: its sender where it comes back."""
    kind = words[at + KIND]
    if kind >= STOPPED or (kind >= UNREACHABLE and kind < IN_SERVICE):
        return words[at + FROM]
    return words[at + TO]


@inline_rule
def giver_of(words: Words, at: int, nobody: int) -> Any:
    """Whose record it is to its taker: `_SERVED`, a row, or ``nobody`` for the taker's own.

    What a partition stops never left its sender.
    """
    kind = words[at + KIND]
    if kind >= STOPPED or words[at + FROM] == words[at + TO]:
        return nobody
    if kind >= IN_SERVICE:
        return _SERVED
    if kind >= UNREACHABLE:
        return words[at + TO]
    return words[at + FROM]


@rule
def sort_tick(queue: EventQueue, rows: int) -> None:
    """Sort what is due now, all of it sent before, to one of ``rows`` rows."""
    place = place_of_tick(queue.marks[NOW])
    if queue.first[place] >= 0:
        merge_sort(queue, place, rows)


@inline_rule
def precedes(words: Words, slot: int, other: int, rows: int) -> Any:
    """Whether the record in ``slot`` is to be taken before that in ``other``, which came later."""
    one, two = slot + RECORD, other + RECORD
    taker, other_taker = taker_of(words, one), taker_of(words, two)
    if taker != other_taker:
        return taker < other_taker
    return giver_of(words, one, rows) <= giver_of(words, two, rows)


@inline_rule
def merge_sort(queue: EventQueue, place: int, rows: int) -> None:
    """Sort a list of slots in place, from runs of one to runs of all; stable."""
    words = queue.words
    run = 1
    while True:
        rest = queue.first[place]
        last = -1
        merges = 0
        while rest >= 0:
            merges += 1
            one, two = rest, rest
            ones = 0
            while ones < run and two >= 0:
                ones += 1
                two = words[two + NEXT]
            twos = run
            while ones > 0 or (twos > 0 and two >= 0):
                if ones > 0 and (twos == 0 or two < 0 or precedes(words, one, two, rows)):
                    slot = one
                    one = words[one + NEXT]
                    ones -= 1
                else:
                    slot = two
                    two = words[two + NEXT]
                    twos -= 1
                if last < 0:
                    queue.first[place] = slot
                else:
                    words[last + NEXT] = slot
                last = slot
            rest = two
        words[last + NEXT] = -1
        queue.last[place] = last
        if merges <= 1:
            return
        run *= 2


# Places in the clock: the round, its next timer, the next transition, the tick sorted last.
ROUND, NEXT_TIMER, NEXT_TRANSITION, SORTED_TICK = 0, 1, 2, 3

# How a loop ended.
DONE, NO_ROOM, FAULT = 0, 1, 2


class Agenda(NamedTuple):
    """The timers of one round in the order in which they fire.

    Attributes:
        offsets: int64[m], ticks after the beginning of the round, ascending.
        rows, kinds: int64[m], whose timer, and which.
        record: int64[4], where the timer's record is written.
    """

    offsets: Int64s
    rows: Int64s
    kinds: Int64s
    record: Words


class Transitions(NamedTuple):
    """When nodes go up and down.

    Attributes:
        ticks: int64[m], ascending.
        rows: int64[m].
        up: bool[m].
    """

    ticks: Int64s
    rows: Int64s
    up: npt.NDArray[np.bool_]


class World(NamedTuple):
    """Everything the loops work on, the protocol's state apart.

    Attributes:
        network: who is up.
        links: what messages go through.
        queue: records that wait for their tick; its clock is the engine's.
        by_sender: whether the records of a tick are sorted.
        out: what the step in hand has written.
        agenda: timers of the present round.
        transitions: when nodes go up and down.
        clock: int64[4], see ROUND.
        period: ticks of a round.
        room: words of the queue's pool that one step may need.
        tells_ticks: whether rules are told the tick it is, and not the round.
    """

    network: Network
    links: LinkConditions
    queue: EventQueue
    by_sender: bool
    out: Outbox
    agenda: Agenda
    transitions: Transitions
    clock: Int64s
    period: int
    room: int
    tells_ticks: bool


@inline_rule
def dispatch(world: World) -> bool:
    """Send the records that a step has written.

    Returns False where one cannot be sent, with HEAD of the outbox at it.
    """
    words, cursor = world.out.words, world.out.cursor
    tick = world.queue.marks[NOW]
    population = len(world.network.alive)
    if not all_closed(world.out, 0):
        return False
    at = 0
    while at < cursor[TAIL]:
        if not is_sound(words, at, cursor[TAIL], population):
            cursor[HEAD] = at
            return False
        length = words[at + LENGTH]
        send(world.links, world.network.reports_unreachable, world.queue, tick, words, at)
        at += length
    cursor[HEAD] = 0
    cursor[TAIL] = 0
    return True


@inline_rule
def apply_transitions(world: World) -> None:
    """Let nodes go up and down that do so by now."""
    schedule = world.transitions
    i = world.clock[NEXT_TRANSITION]
    while i < len(schedule.ticks) and schedule.ticks[i] <= world.queue.marks[NOW]:
        world.network.alive[schedule.rows[i]] = schedule.up[i]
        i += 1
    world.clock[NEXT_TRANSITION] = i


@inline_rule
def find_taker(world: World, slot: int) -> Any:
    """Who takes the record in ``slot`` now: a row, or -1 if nobody does.

    In that case the slot has been released, or waits for another tick.
    """
    network, links, queue = world.network, world.links, world.queue
    words = queue.words
    at = slot + RECORD
    p = words[at + TO]
    served = len(links.service) == 0 or words[at + FROM] == p
    inside = len(links.bandwidth.down) == 0 or words[at + FROM] == p
    if words[at + KIND] >= STOPPED:
        words[at + KIND] -= STOPPED
    elif words[at + KIND] >= IN_TRANSFER:
        words[at + KIND] -= IN_TRANSFER
        inside = True
    elif words[at + KIND] >= IN_SERVICE:
        words[at + KIND] -= IN_SERVICE
        links.waiting[p] -= 1
        served = True
        inside = True
    if words[at + KIND] >= UNREACHABLE:
        if network.alive[words[at + FROM]]:
            return words[at + FROM]
    elif not network.alive[p]:
        network.counts[LOST] += 1
        sender = return_to_sender(network, words, at)
        if sender >= 0:
            delay = return_ticks(links, words, at)
            if delay == 0:
                return sender
            enlist(queue, slot, queue.marks[NOW] + delay)
            return -1
    elif not inside:
        if come_in(links, queue, slot, p):
            return -1
    elif not served:
        if join_input_queue(links, queue, slot, p):
            return -1
    elif words[at + KIND] == network.limited_kind and network.taken[p] >= network.capacity:
        network.counts[DROPPED] += 1
    else:
        return p
    release(queue, slot, size_of_slot(words[at + LENGTH]))
    return -1


@loop_factory(inline=True)
def make_take(step: Rule, observe: Rule) -> Any:
    """The compiled code by which row p takes one record."""

    def take(state: Any, world: World, p: int, words: Any, at: int, collector: Any) -> None:
        network = world.network
        now = world.queue.marks[NOW] if world.tells_ticks else world.clock[ROUND]
        if words[at + KIND] < UNREACHABLE:
            if words[at + KIND] == network.limited_kind:
                network.taken[p] += 1
            network.counts[PASSED] += 1
            observe(collector, state, words, at, now)
        step(state, p, now, words, at, world.out)

    return take


@loop_factory(inline=False)
def make_settle(step: Rule, observe: Rule) -> Any:
    """The compiled loop that takes all records of the present tick.

    It returns DONE; or NO_ROOM where the queue's pool must be enlarged first, after which calling
    it again continues; or FAULT where a step wrote what cannot be sent.
    """
    take = make_take(step, observe)

    def settle(state: Any, world: World, collector: Any) -> int:
        queue = world.queue
        while has_room(queue, world.room):
            slot = pop(queue)
            if slot < 0:
                return DONE
            p = find_taker(world, slot)
            if p >= 0:
                size = size_of_slot(queue.words[slot + RECORD + LENGTH])
                take(state, world, p, queue.words, slot + RECORD, collector)
                release(queue, slot, size)
                if not dispatch(world):
                    return FAULT
        return NO_ROOM

    return settle


@loop_factory(inline=True)
def make_fire(step: Rule, observe: Rule, hint: Rule) -> Any:
    """The compiled loop that fires the timers of the present tick; returns as `make_settle`."""
    take = make_take(step, observe)

    def fire(state: Any, world: World, collector: Any) -> int:
        agenda, clock, record = world.agenda, world.clock, world.agenda.record
        timers = len(agenda.offsets)
        offset = world.queue.marks[NOW] - clock[ROUND] * world.period
        while clock[NEXT_TIMER] < timers and agenda.offsets[clock[NEXT_TIMER]] <= offset:
            if not has_room(world.queue, world.room):
                return NO_ROOM
            i = clock[NEXT_TIMER]
            clock[NEXT_TIMER] = i + 1
            if i + HINT_LATER < timers:
                soon, later = agenda.rows[i + HINT_SOON], agenda.rows[i + HINT_LATER]
                hint(state, agenda.kinds[i], soon, later)
            p = agenda.rows[i]
            if world.network.alive[p]:
                record[LENGTH] = BODY
                record[KIND] = agenda.kinds[i]
                record[TO] = p
                record[FROM] = p
                take(state, world, p, record, 0, collector)
                if not dispatch(world):
                    return FAULT
        return DONE

    return fire


@loop_factory(inline=False)
def make_run(step: Rule, observe: Rule, hint: Rule) -> Any:
    """The compiled loop over the ticks before ``until``, all of one round.

    It returns as `make_settle`.
    """
    fire = make_fire(step, observe, hint)
    settle = make_settle(step, observe)

    def run(state: Any, world: World, until: int, collector: Any) -> int:
        while world.queue.marks[NOW] < until:
            apply_transitions(world)
            if world.by_sender and world.clock[SORTED_TICK] != world.queue.marks[NOW]:
                world.clock[SORTED_TICK] = world.queue.marks[NOW]
                sort_tick(world.queue, len(world.network.alive))
            ended: int = fire(state, world, collector)
            if ended == DONE:
                ended = settle(state, world, collector)
            if ended != DONE:
                return ended
            advance(world.queue)
        return DONE

    return run
