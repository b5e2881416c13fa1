"""The search, breadth first: every state that can be reached, and whether all hold in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

from gossamer.protocol.kernel.records import LENGTH
from gossamer.protocol.kernel.rules import Rule
from gossamer.sim.custom.faults import explained_faults
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.exploration.levels import Levels
from gossamer.sim.exploration.loops import (
    ACTIONS,
    AT,
    DONE,
    FAILING,
    FOUND,
    HELD_BACK,
    IN_TABLE,
    MARKS,
    NEW,
    OUTPUT_FULL,
    PARENT,
    TABLE_FULL,
    VIOLATED,
    WRITTEN,
    failing_rule,
    make_expand,
    make_lap,
)
from gossamer.sim.exploration.model import Model
from gossamer.sim.exploration.packed import BUDGETS, COLUMNS, STATUS, Prints, insert_all
from gossamer.sim.exploration.properties import Property
from gossamer.sim.exploration.symmetry import canonical_digest

# Words and states that the loop writes before it returns, and the least table.
_WORDS: Final = 1 << 21
_STATES: Final = 1 << 17
_TABLE: Final = 1 << 16
# Laps of timers in which what is eventual has to come, and messages of one.
MOST_LAPS: Final = 100
_MOST_DELIVERIES: Final = 10_000

Report = Callable[[int, int, int, int, int], None]


@attrs.frozen
class Violation:
    """A state in which a property does not hold.

    Attributes:
        property: which.
        state: its number in order of discovery.
        laps: of what is eventual, after how many laps states come again without it.
    """

    property: Property
    state: int
    laps: int = 0


class Search:
    """One exploration.

    Args:
        model: of the protocol.
        properties: assumptions, invariants, and what is eventual.
        levels: keeps what is found.
        report: called after every part of the work with the level, the states and actions so far,
            and how many states of the level before are done, of how many.
        about: of what it is an exploration, as plain values; kept with each level.

    Attributes:
        violation: the first that was found, None if none was.
        exhausted: whether every state has been explored, within bounds other than depth and states.
        held_back: in how many states timers did not fire, as too many messages are in flight.
    """

    def __init__(
        self,
        model: Model,
        properties: list[Property],
        levels: Levels,
        report: Report,
        about: dict[str, Any] | None = None,
    ) -> None:
        self.model, self.levels, self._report, self._about = model, levels, report, about
        invariants = [one for one in properties if one.kind == "invariant"]
        assumed = [_rule_of(one) for one in properties if one.kind == "assumption"]
        self._compiled = [one for one in invariants if isinstance(one.check, Rule)]
        self._called = [one for one in invariants if not isinstance(one.check, Rule)]
        self._eventual = [one for one in properties if one.kind == "eventually"]
        self._failing = failing_rule(assumed, [_rule_of(one) for one in self._compiled])
        self._expand = make_expand(model.apply, self._failing)
        self._lap = make_lap(model.apply)
        self._settled: dict[str, set[tuple[bytes, int]]] = {}
        self._marks = np.zeros(MARKS, np.int64)
        self._table: Prints = np.zeros((_TABLE, 2), np.uint64)
        self._make_room(_WORDS, _STATES)
        self.violation: Violation | None = None
        self.exhausted = False

    @property
    def states(self) -> int:
        """How many states were found."""
        return int(self._marks[FOUND])

    @property
    def actions(self) -> int:
        """How many actions were taken, each of which led to a state that was new or known."""
        return int(self._marks[ACTIONS])

    @property
    def held_back(self) -> int:
        """In how many states timers did not fire."""
        return int(self._marks[HELD_BACK])

    @property
    def depth(self) -> int:
        """How many actions from the beginning the last states are."""
        counts = self.levels.counts
        return len(counts) - 1 - (counts[-1] == 0)

    def begin(self) -> None:
        """Take the first state as found."""
        model, w = self.model, self.model.workspace
        w.made[: len(model.first)] = model.first
        canonical_digest.run(w)
        digest = w.digest.reshape(1, 2).copy()
        self._marks[[FOUND, IN_TABLE]] = insert_all.run(self._table, digest)
        self.levels.add(model.first, np.zeros(1, np.int64), digest)
        self._look_at(model.first, np.zeros(1, np.int64), 0)
        if self.violation is None:
            model.look_at(model.first)
            self._check_compiled(int(self._failing.run(model.state, w.alive)), 0)
        self._finish_level()

    def resume(self) -> None:
        """Go on from what the levels have kept; raises `ResultsError` if that is of another."""
        about, prints = self.levels.resume()
        if about["about"] != self._about:
            raise self.levels.refused("holds another exploration, or one of other rules")
        while 2 * sum(self.levels.counts) > len(self._table):
            self._table = np.zeros((2 * len(self._table), 2), np.uint64)
        for some in prints:
            insert_all.run(self._table, some)
        self._marks[:] = about["marks"]

    def run(self) -> None:
        """Go on until all is explored, a property does not hold, or a bound is met."""
        bounds = self.model.bounds
        while self.violation is None:
            self.exhausted = self.levels.counts[-1] == 0
            if self.exhausted:
                return
            if bounds.depth is not None and self.depth >= bounds.depth:
                return
            if bounds.states is not None and self.states >= bounds.states:
                return
            if not all(self._explore(source) for source in self.levels.frontier()):
                return
            self._finish_level()

    def _finish_level(self) -> None:
        self.levels.finish({"marks": self._marks.tolist(), "about": self._about})

    def _explore(self, source: Int64s) -> bool:
        """Make all that follows from some states of the frontier; whether all holds there."""
        model, marks = self.model, self._marks
        marks[AT] = 0
        verdict = 0
        while verdict != DONE and self.violation is None:
            out = self._made, self._starts, self._trace, self._prints
            verdict = self._expand(model.state, model.workspace, source, marks, *out, self._table)
            new, written = int(marks[NEW]), int(marks[WRITTEN])
            if new:
                made, starts = self._made[:written], self._starts[:new]
                first = self.states - new
                self.levels.add(made, self._trace[:new].copy(), self._prints[:new].copy())
                self._look_at(made, starts, first)
            marks[NEW] = marks[WRITTEN] = 0
            if verdict == VIOLATED:
                self._check_compiled(int(marks[FAILING]), self.states - 1)
            elif verdict == TABLE_FULL:
                larger = np.zeros((2 * len(self._table), 2), np.uint64)
                insert_all.run(larger, self._table)
                self._table = larger
            elif verdict == OUTPUT_FULL and not new:
                self._make_room(2 * len(self._made), 2 * len(self._trace))
            elif verdict < 0:
                model.refuse(verdict)
            total = self.levels.counts[-1]
            done = int(marks[PARENT]) - sum(self.levels.counts) + total
            self._report(self.depth + 1, self.states, self.actions, done, total)
        return self.violation is None

    def _make_room(self, words: int, states: int) -> None:
        self._made = np.empty(words, np.int64)
        self._starts = np.empty(states, np.int64)
        self._trace = np.empty(states, np.int64)
        self._prints = np.empty((states, 2), np.uint64)

    def _check_compiled(self, failing: int, state: int) -> None:
        for number, one in enumerate(self._compiled):
            if failing >> number & 1 and (self.violation is None or self.violation.state > state):
                self.violation = Violation(one, state)

    def _look_at(self, made: Int64s, starts: Int64s, first: int) -> None:
        """Check what is not compiled, of new states in their order."""
        if not self._called and not self._eventual:
            return
        model = self.model
        quiet = COLUMNS + model.workspace.width
        for number, begin in enumerate(starts.tolist(), start=first):
            words = made[begin : begin + made[begin]]
            if self._called:
                model.look_at(words)
                for one in self._called:
                    if not _holds(one, model):
                        self.violation = Violation(one, number)
                        return
            for one in self._eventual if len(words) == quiet else ():
                laps = self.laps_without(one, words)
                if laps is not None:
                    self.violation = Violation(one, number, laps)
                    return

    def fails(self, one: Property, words: Int64s) -> bool:
        """Whether a property does not hold of a state."""
        if one.kind == "eventually":
            return self.laps_without(one, words) is not None
        self.model.look_at(words)
        return not _holds(one, self.model)

    def laps_without(self, one: Property, words: Int64s) -> int | None:
        """After how many laps from a quiet state states come again without a property.

        None where it comes to hold.
        """
        model, settled = self.model, self._settled.setdefault(one.name, set())
        w, choices = model.workspace, model.bounds.draws
        now = np.zeros(len(w.made), np.int64)
        now[: len(words)] = words
        now[BUDGETS] = 0
        seen: set[tuple[bytes, int]] = set()
        for lap in range(MOST_LAPS):
            place = (now[STATUS : now[LENGTH]].tobytes(), lap % choices)
            if place in settled:
                break
            if place in seen:
                return lap
            seen.add(place)
            model.look_at(now)
            if _holds(one, model):
                break
            if len(w.timers) == 0:
                return 0
            verdict = self._lap(model.state, w, now, lap % choices, _MOST_DELIVERIES)
            if verdict < 0:
                model.refuse(verdict)
        else:
            return MOST_LAPS
        settled |= seen
        return None


def _rule_of(one: Property) -> Rule:
    assert isinstance(one.check, Rule)
    return one.check


def _holds(one: Property, model: Model) -> bool:
    with explained_faults():
        check = one.check.run if isinstance(one.check, Rule) else one.check
        return bool(check(model.state, model.workspace.alive))
