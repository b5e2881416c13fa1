"""The compiled loop of a worker: all that happens to the rows of a shard within a window.

A row's turn is the whole window: its timers, what arrives, and what it sends itself, in the order
of `event_loop`. Nothing that another row does in the window can matter to it.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    OPEN,
    TAIL,
    TO,
    UNREACHABLE,
    Words,
)
from gossamer.protocol.kernel.rules import Rule, inline_rule
from gossamer.sim.engine.cycle_engine import DROPPED, LOST, PASSED, SEVERAL_KINDS
from gossamer.sim.engine.link_conditions import IN_SERVICE, IN_TRANSFER
from gossamer.sim.engine.loops import loop_factory
from gossamer.sim.engine.windows.event_calendar import DUE, KEY, RECORD, release_chunks
from gossamer.sim.engine.windows.shard_entries import (
    DONE,
    NO_ROOM,
    approach_entries,
    can_keep,
    can_post,
    collect,
    come_in,
    dispatch,
    join_input_queue,
    pick,
    send_back,
)
from gossamer.sim.engine.windows.worker_pool import (
    BEGUN,
    COLLECTED,
    COUNT,
    ENTRY,
    ENTRY_AT,
    ENTRY_DUE,
    ENTRY_KEY,
    LATER_COUNT,
    LATER_TAIL,
    NEVER,
    OWN_HEAD,
    OWN_TAIL,
    ROUND,
    ROUND_BEGIN,
    ROW,
    TELLS_TICKS,
    TICK,
    TIMER,
    Worker,
)

# How many rows ahead memory is brought near.
_AHEAD = 2

_TAKEN = -1
# The key of a timer, which comes before everything else that is due.
_BEFORE_ALL = -(1 << 62)
_NOBODY = -1
# What a row takes next.
NOTHING, TIMER_FIRES, ENTRY_ARRIVES, LATER_COMES, OWN_COMES = 0, 1, 2, 3, 4


@inline_rule
def first_later(worker: Worker) -> Any:
    """Where in ``later`` the entry that comes first stands, -1 for none."""
    found = -1
    if worker.place[LATER_COUNT] == 0:
        return found
    later, at = worker.later, 0
    while at < worker.place[LATER_TAIL]:
        if later[at + DUE] != _TAKEN and (
            found < 0
            or later[at + DUE] < later[found + DUE]
            or (later[at + DUE] == later[found + DUE] and later[at + KEY] < later[found + KEY])
        ):
            found = at
        at += RECORD + later[at + RECORD + LENGTH]
    return found


@inline_rule
def drop_later(worker: Worker, at: int) -> None:
    """Strike the entry at ``at`` off ``later``."""
    place = worker.place
    worker.later[at + DUE] = _TAKEN
    place[LATER_COUNT] -= 1
    if place[LATER_COUNT] == 0:
        place[LATER_TAIL] = 0


@inline_rule
def timer_tick(worker: Worker, p: int, timer: int) -> Any:
    """When a timer of row p fires, NEVER if there is none of that number in this round."""
    timers = worker.timers
    if timer < timers.offsets.shape[1] and timers.offsets[p, timer] < NEVER:
        return timers.offsets[p, timer] + timers.round[ROUND_BEGIN]
    return NEVER


@inline_rule
def begin_row(worker: Worker, p: int, shard: int, begin: int, end: int) -> Any:
    """Note what row p has to do in a window; returns whether it has anything to do."""
    place, timers = worker.place, worker.timers
    place[COUNT] = pick(worker, p - (shard << worker.calendar.shift))
    place[ENTRY] = 0
    timer = 0
    offset = begin - timers.round[ROUND_BEGIN]
    while timer < timers.offsets.shape[1] and timers.offsets[p, timer] < offset:
        timer += 1
    place[TIMER] = timer
    place[TICK] = begin
    return place[COUNT] > 0 or timer_tick(worker, p, timer) < end


@inline_rule
def write_timer(worker: Worker, p: int, timer: int) -> None:
    """Write the record of a timer of row p to the beginning of ``own``."""
    words = worker.own
    words[LENGTH] = BODY
    words[KIND] = worker.timers.kinds[p, timer]
    words[TO] = p
    words[FROM] = p


@inline_rule
def is_taken(worker: Worker, p: int, tick: int, end: int, words: Words, at: int) -> Any:
    """Whether row p takes the record at ``words[at:]`` now; if not, what has to be is done."""
    network, links = worker.network, worker.links
    served = len(links.service) == 0 or words[at + FROM] == p
    inside = len(links.bandwidth.down) == 0 or words[at + FROM] == p
    if words[at + KIND] >= IN_TRANSFER:
        words[at + KIND] -= IN_TRANSFER
        inside = True
    elif words[at + KIND] >= IN_SERVICE:
        words[at + KIND] -= IN_SERVICE
        links.waiting[p] -= 1
        served = True
        inside = True
    if words[at + KIND] >= UNREACHABLE:
        return network.alive[p]
    if not network.alive[p]:
        network.counts[LOST] += 1
        send_back(worker, p, tick, words, at)
        return False
    if not inside:
        come_in(worker, p, tick, end, words, at)
        return False
    if not served:
        join_input_queue(worker, p, tick, end, words, at)
        return False
    if words[at + KIND] == network.limited_kind:
        if network.taken[p] >= network.capacity:
            network.counts[DROPPED] += 1
            return False
        network.taken[p] += 1
    network.counts[PASSED] += 1
    return True


@loop_factory(inline=True)
def make_row_turn(step: Rule, observe: Rule) -> Any:
    """The compiled loop by which one row takes what is due before ``end``, in order.

    It returns DONE; or NO_ROOM where a buffer must be enlarged first, after which calling it again
    continues; or FAULT where a step wrote what cannot be sent.
    """

    def turn(state: Any, worker: Worker, p: int, end: int, collector: Any) -> int:
        place, table, picked = worker.place, worker.table, worker.picked
        cursor, network = worker.out.cursor, worker.network
        tick, entry, count, timer = place[TICK], place[ENTRY], place[COUNT], place[TIMER]
        fires = timer_tick(worker, p, timer)
        may_wait = len(worker.links.service) > 0 or len(worker.links.bandwidth.down) > 0
        ended = DONE
        while True:
            if cursor[TAIL] > 0 or cursor[OPEN] != 0:
                ended = dispatch(worker, p, tick, end)
                if ended != DONE:
                    break
            due, key, what, at = end, 0, NOTHING, 0
            if fires < due:
                due, key, what = fires, _BEFORE_ALL, TIMER_FIRES
            if entry < count and table[picked[entry], ENTRY_DUE] < due:
                due, key = table[picked[entry], ENTRY_DUE], table[picked[entry], ENTRY_KEY]
                what, at = ENTRY_ARRIVES, table[picked[entry], ENTRY_AT]
            waiting = first_later(worker)
            if waiting >= 0:
                then, rank = worker.later[waiting + DUE], worker.later[waiting + KEY]
                if then < due or (then == due and rank < key):
                    due, key, what, at = then, rank, LATER_COMES, waiting + RECORD
            if place[OWN_HEAD] < place[OWN_TAIL] and tick < due:
                due, what, at = tick, OWN_COMES, place[OWN_HEAD]
            if what == NOTHING:
                break
            if what == TIMER_FIRES:
                tick = due
                write_timer(worker, p, timer)
                words = worker.own
                timer += 1
                fires = timer_tick(worker, p, timer)
                takes = network.alive[p]
                if takes:
                    network.taken[p] += words[KIND] == network.limited_kind
                    network.counts[PASSED] += 1
            else:
                words = worker.calendar.words
                if what == LATER_COMES:
                    words = worker.later
                elif what == OWN_COMES:
                    words = worker.own
                length = words[at + LENGTH]
                if (may_wait or not network.alive[p]) and not (
                    can_post(worker, length) and can_keep(worker, length)
                ):
                    ended = NO_ROOM
                    break
                tick = due
                if what == ENTRY_ARRIVES:
                    entry += 1
                elif what == LATER_COMES:
                    drop_later(worker, waiting)
                else:
                    place[OWN_HEAD] = at + length
                takes = is_taken(worker, p, tick, end, words, at)
            if takes:
                now = tick if worker.timers.round[TELLS_TICKS] else worker.timers.round[ROUND]
                if words[at + KIND] < UNREACHABLE:
                    observe(collector, state, words, at, now)
                step(state, p, now, words, at, worker.out)
        place[TICK], place[ENTRY], place[TIMER] = tick, entry, timer
        return ended

    return turn


@loop_factory(inline=False)
def make_shard_turn(step: Rule, observe: Rule, approach: Rule) -> Any:
    """The compiled loop over the rows of a shard in a window.

    It returns as `make_row_turn`.
    """
    turn = make_row_turn(step, observe)

    def shard_turn(
        state: Any, worker: Worker, shard: int, workers: int, begin: int, end: int, collector: Any
    ) -> int:
        place, calendar = worker.place, worker.calendar
        first = shard << calendar.shift
        rows = min(1 << calendar.shift, len(worker.posted) - first)
        if place[COLLECTED] == 0:
            if not collect(worker, shard, workers, end):
                return NO_ROOM
            place[COLLECTED] = 1
            place[ROW] = 0
            place[BEGUN] = 0
        while place[ROW] < rows:
            i = place[ROW]
            p = first + i
            if place[BEGUN] == 0:
                if i + _AHEAD < rows and worker.heads[i + _AHEAD] >= 0:
                    approach_entries(worker, i + _AHEAD)
                    approach(state, p + _AHEAD, SEVERAL_KINDS)
                place[BEGUN] = 1
                if not begin_row(worker, p, shard, begin, end):
                    place[BEGUN] = 0
                    place[ROW] = i + 1
                    continue
            ended: int = turn(state, worker, p, end, collector)
            if ended != DONE:
                return ended
            worker.heads[i] = _NOBODY
            place[BEGUN] = 0
            place[ROW] = i + 1
        for number in range(workers):
            release_chunks(calendar, worker.number, worker.chains[number])
            worker.chains[number] = _NOBODY
        place[COLLECTED] = 0
        return DONE

    return shard_turn


@loop_factory(inline=False)
def make_command_turn(step: Rule, observe: Rule) -> Any:
    """The compiled loop by which a row takes the command in its ``own``, at once.

    It returns as `make_row_turn`.
    """
    turn = make_row_turn(step, observe)

    def command_turn(state: Any, worker: Worker, p: int, collector: Any) -> int:
        return turn(state, worker, p, worker.place[TICK] + 1, collector)  # type: ignore[no-any-return]

    return command_turn
