"""The compiled loops of an exploration: one action, all actions of many states, a lap of timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gossamer.protocol.kernel.records import (
    BODY,
    CURSORS,
    FROM,
    KIND,
    LENGTH,
    REFUSED,
    TO,
    Words,
)
from gossamer.protocol.kernel.rules import Rule, inline_rule, rule
from gossamer.sim.custom.language.context import LATER_WORDS, LEAVE, START, drop_handle, handle_of
from gossamer.sim.engine.link_conditions import LATER, find_fault
from gossamer.sim.engine.loops import loop_factory
from gossamer.sim.exploration.packed import (
    BUDGETS,
    CRASHES,
    DOWN,
    DREW,
    DUPLICATES,
    LEAVES,
    LOSSES,
    RESTARTS,
    ROUNDS,
    STATUS,
    UP,
    Prints,
    Workspace,
    are_equal,
    assemble,
    crosses_link,
    find_records,
    insert,
    left,
    load,
    spent,
    status_of,
    taker_of,
    with_status,
)
from gossamer.sim.exploration.symmetry import canonical_digest

# What can happen: to a message, by its place among those in flight; at a node; to all.
DELIVER, DUPLICATE, LOSE, FIRE, CRASH, DEPART, BEGIN, ADVANCE = range(8)
# An action as one number: which, of what, with what (timer, or contact plus 1), with which draws.
ACTION_BITS: Final = 30

# What `apply` returns, and the loops: a state was made; a rule wrote a wrong record; no room for
# the records of a state. Of the loops: why they stopped.
MADE, WRONG, FULL = 1, -1, -2
DONE, OUTPUT_FULL, TABLE_FULL, VIOLATED = 2, 3, 4, 5

# What the loop over a frontier has counted, by place in `marks`.
# FOUND are the states that are kept, IN_TABLE also those that an assumption leaves out.
AT, PARENT, WRITTEN, NEW, FOUND, IN_TABLE, ACTIONS, HELD_BACK, FAILING = range(9)
MARKS: Final = 9
ASSUMED: Final = 1 << 40


@inline_rule
def code_of(kind: int, a: int, b: int, choice: int) -> Any:
    """An action as one number."""
    return ((((kind << 10) | a) << 8) | b) << 8 | choice


def action_of(code: int) -> tuple[int, int, int, int]:
    """Kind, node or message, timer or contact, and choice of an action; undoes `code_of`."""
    return code >> 26, (code >> 16) & 1023, (code >> 8) & 255, code & 255


@inline_rule
def count_slots(w: Workspace, records: int) -> Any:
    """How many actions there could be in a state of so many records."""
    return 3 * records + w.nodes * (len(w.timers) + w.nodes + 3) + 1


@rule
def action_at(w: Workspace, words: Words, at: int, records: int, slot: int) -> Any:
    """The action of this number in a state: its kind, -1 where there is none, and of what."""
    status, budgets = words[at + STATUS], words[at + BUDGETS]
    if slot < 3 * records:
        place, kind = slot // 3, slot % 3
        offset = w.offsets[place]
        if place > 0 and are_equal(words, offset, w.offsets[place - 1]):
            return -1, 0, 0
        if kind == DELIVER:
            return kind, place, 0
        which = DUPLICATES if kind == DUPLICATE else LOSSES
        if left(budgets, which) == 0 or not crosses_link(words, offset):
            return -1, 0, 0
        if kind == DUPLICATE and status_of(status, words[offset + TO]) != UP:
            return -1, 0, 0
        return kind, place, 0
    slot -= 3 * records
    timers = len(w.timers)
    if slot < w.nodes * timers:
        p = slot // timers
        fires = status_of(status, p) == UP and records < w.in_flight
        return FIRE if fires else -1, p, slot % timers
    slot -= w.nodes * timers
    if slot < 2 * w.nodes:
        p, which = slot // 2, LEAVES if slot % 2 else CRASHES
        goes = status_of(status, p) == UP and left(budgets, which) > 0
        return DEPART - 1 + slot % 2 if goes else -1, p, 0
    slot -= 2 * w.nodes
    if slot < w.nodes * (w.nodes + 1):
        p, b = slot // (w.nodes + 1), slot % (w.nodes + 1)
        its = status_of(status, p)
        if its == UP or (its == DOWN and left(budgets, RESTARTS) == 0) or b - 1 == p:
            return -1, 0, 0
        others = 0
        for q in range(w.nodes):
            others += status_of(status, q) == UP
        fits = others == 0 if b == 0 else status_of(status, b - 1) == UP
        return BEGIN if fits else -1, p, b
    return ADVANCE if left(budgets, ROUNDS) > 0 else -1, 0, 0


@inline_rule
def write_own(w: Workspace, kind: int, p: int, contact: int) -> None:
    """The record of a timer or transition, with a contact where there is one."""
    w.own[LENGTH] = BODY + (contact >= 0)
    w.own[KIND], w.own[TO], w.own[FROM], w.own[BODY] = kind, p, p, contact


@loop_factory(inline=False)
def make_apply(step: Rule) -> Callable[..., Any]:
    """The rule that makes a state of another one by one action."""

    def apply(
        s: Any, w: Workspace, words: Words, at: int, kind: int, a: int, b: int, choice: int
    ) -> Any:
        load(w, words, at)
        status, budgets = words[at + STATUS], words[at + BUDGETS]
        cut, p, begin, takes, arrived = -1, a, 0, True, False
        for i in range(CURSORS):
            w.out.cursor[i] = 0
        w.counts[DREW] = 0
        now = (w.rounds - left(budgets, ROUNDS)) * w.round_ticks
        if kind <= LOSE:
            offset = w.offsets[a]
            p = taker_of(words, offset)
            for i in range(words[offset + LENGTH]):
                w.own[i] = words[offset + i]
            if kind == DUPLICATE:
                budgets = spent(budgets, DUPLICATES)
            else:
                cut = offset
            takes = kind != LOSE and w.alive[p]
            arrived = kind == DELIVER and not takes
            if kind == LOSE:
                budgets = spent(budgets, LOSSES)
            elif w.own[KIND] == LATER:
                drop_handle(w.handles, p, handle_of(w.own, 0))
                begin = LATER_WORDS
                w.own[begin + LENGTH] = w.own[LENGTH] - LATER_WORDS
        elif kind == FIRE:
            write_own(w, w.timers[b], p, -1)
        elif kind == BEGIN:
            if status_of(status, p) == DOWN:
                budgets = spent(budgets, RESTARTS)
            status = with_status(status, p, UP)
            w.alive[p] = True
            write_own(w, START, p, b - 1)
        elif kind == DEPART:
            budgets = spent(budgets, LEAVES)
            write_own(w, LEAVE, p, -1)
        else:
            takes = False
            budgets = spent(budgets, CRASHES if kind == CRASH else ROUNDS)
        if takes:
            for part in range(len(w.draws)):
                w.draws[part, p] = w.positions[part, p, choice]
            step(s, p, now, w.own, begin, w.out)
            if find_fault(w.out, 0, w.nodes) >= 0:
                return WRONG
            if w.out.cursor[REFUSED] > 0:
                return FULL
            for part in range(len(w.draws)):
                if w.draws[part, p] != w.positions[part, p, choice]:
                    w.counts[DREW] = 1
            w.life[p] = 0
        if kind in (CRASH, DEPART):
            status = with_status(status, p, DOWN)
        return MADE if assemble(w, words, at, cut, arrived, status, budgets) else FULL

    return apply


@loop_factory(inline=False)
def make_expand(apply: Rule, holds: Rule) -> Callable[..., Any]:
    """The loop over a frontier: makes every state that follows, and keeps those that are new.

    It goes on where its ``marks`` say, so that it can be called again when there is room.
    """

    def expand(
        s: Any,
        w: Workspace,
        source: Words,
        marks: Words,
        made: Words,
        starts: Words,
        trace: Words,
        prints: Prints,
        table: Prints,
    ) -> Any:
        while marks[AT] < len(source):
            at = marks[AT]
            records = find_records(w, source, at)
            slots = count_slots(w, records)
            most = slots * w.choices
            if marks[WRITTEN] + most * len(w.made) > len(made) or marks[NEW] + most > len(trace):
                return OUTPUT_FULL
            if 10 * (marks[IN_TABLE] + most) > 7 * len(table):
                return TABLE_FULL
            marks[HELD_BACK] += records >= w.in_flight and len(w.timers) > 0
            for slot in range(slots):
                kind, a, b = action_at(w, source, at, records, slot)
                if kind < 0:
                    continue
                for choice in range(w.choices):
                    verdict = apply(s, w, source, at, kind, a, b, choice)
                    if verdict < 0:
                        return verdict
                    marks[ACTIONS] += 1
                    canonical_digest(w)
                    if insert(table, w.digest[0], w.digest[1]):
                        marks[IN_TABLE] += 1
                        failing = holds(s, w.alive)
                        if failing < ASSUMED:
                            new, end = marks[NEW], marks[WRITTEN]
                            starts[new] = end
                            for i in range(w.made[LENGTH]):
                                made[end + i] = w.made[i]
                            action = code_of(kind, a, b, choice)
                            trace[new] = (marks[PARENT] << ACTION_BITS) | action
                            prints[new, 0], prints[new, 1] = w.digest[0], w.digest[1]
                            marks[NEW] = new + 1
                            marks[WRITTEN] = end + w.made[LENGTH]
                            marks[FOUND] += 1
                            marks[FAILING] = failing
                            if failing != 0:
                                return VIOLATED
                    if w.counts[DREW] == 0:
                        break
            marks[AT] += source[at + LENGTH]
            marks[PARENT] += 1
        return DONE

    return expand


@loop_factory(inline=False)
def make_lap(apply: Rule) -> Callable[..., Any]:
    """The loop by which every timer fires once, with all that follows, and nothing goes wrong.

    It changes a state in place, in which no message is in flight before and after. Messages are
    delivered in their order; after ``most`` of them the lap ends, whatever is in flight.
    """

    def lap(s: Any, w: Workspace, words: Words, choice: int, most: int) -> Any:
        deliveries = 0
        timers = len(w.timers)
        for turn in range(max(w.nodes * timers, 1)):
            if timers > 0:
                p = turn // timers
                if status_of(words[STATUS], p) != UP:
                    continue
                verdict = apply(s, w, words, 0, FIRE, p, turn % timers, choice)
                if verdict < 0:
                    return verdict
                for i in range(w.made[LENGTH]):
                    words[i] = w.made[i]
            while find_records(w, words, 0) > 0 and deliveries < most:
                verdict = apply(s, w, words, 0, DELIVER, 0, 0, choice)
                if verdict < 0:
                    return verdict
                for i in range(w.made[LENGTH]):
                    words[i] = w.made[i]
                deliveries += 1
        return MADE

    return lap


@inline_rule
def _fails_nothing(_s: Any, _alive: Any) -> Any:
    return 0


def failing_rule(assumptions: list[Rule], checks: list[Rule]) -> Rule:
    """The rule that returns which checks fail, a bit each, and `ASSUMED` if an assumption does."""
    found = _fails_nothing
    for number, check in enumerate(checks):
        found = _link(1 << number, check, found)
    for check in assumptions:
        found = _link(ASSUMED, check, found)
    return found


def _link(bit: int, check: Rule, others: Rule) -> Rule:
    @inline_rule
    def failing(s: Any, alive: Any) -> Any:
        before = others(s, alive)
        return before if check(s, alive) else before | bit

    return failing
