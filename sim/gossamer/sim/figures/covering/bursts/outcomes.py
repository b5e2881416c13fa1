"""What the bursts measured, by study, covering and place on the x axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import attrs
import numpy as np

from gossamer.sim.figures.common.points import Floats
from gossamer.sim.figures.common.readings import LITERAL
from gossamer.sim.figures.covering.bursts.runs import RunResult
from gossamer.sim.figures.covering.bursts.studies import COMPARED, DEGREES, UNSUBSCRIPTIONS


@attrs.frozen(eq=False)
class Outcomes:
    """The outcomes of all bursts under a reading of the papers.

    Attributes:
        found: one a burst.
        reading: LITERAL or ALTERNATIVE.
    """

    found: Sequence[RunResult]
    reading: str = LITERAL

    @classmethod
    def of(cls, outcomes: Sequence[Sequence[RunResult]], reading: str = LITERAL) -> Outcomes:
        """From what `run_tasks` returns."""
        every = chain.from_iterable(outcomes)
        return cls([one for one in every if one.run.reading == reading], reading)

    def has(self, study: str) -> bool:
        """Whether the study was run."""
        return any(one.run.study == study for one in self.found)

    def select(self, study: str, covering: str, x: float | None = None) -> list[RunResult]:
        """The bursts of a study in the order of x; the comparison is a point of two sweeps."""
        chosen = [
            one
            for one in self.found
            if one.run.study == study
            and one.run.covering == covering
            and (x is None or self._x(study, one) == x)
        ]
        if study in (UNSUBSCRIPTIONS, DEGREES):
            chosen += [
                one
                for one in self.select(COMPARED, covering)
                if x is None or self._x(study, one) == x
            ]
        return sorted(chosen, key=lambda one: self._x(study, one))

    def one(self, study: str, covering: str, x: float | None = None) -> RunResult:
        """The only burst of a study with that covering."""
        (found,) = self.select(study, covering, x)
        return found

    def value(self, measure: str, study: str, covering: str, x: float | None = None) -> float:
        """A measure of the only burst; NaN where there is none."""
        found = self.select(study, covering, x)
        return found[0].measures[measure] if len(found) == 1 else math.nan

    def ratio(
        self, measure: str, study: str, covering: str, other: str, x: float | None = None
    ) -> float:
        """A measure under one covering over that under another."""
        below = self.value(measure, study, other, x)
        return self.value(measure, study, covering, x) / below if below else math.inf

    def series(self, measure: str, study: str, covering: str) -> tuple[Floats, Floats]:
        """float64[x], float64[x]: the values of x, and the measure at each."""
        chosen = self.select(study, covering)
        places = [self._x(study, one) for one in chosen]
        return np.array(places), np.array([one.measures[measure] for one in chosen])

    @staticmethod
    def _x(study: str, one: RunResult) -> float:
        if study == DEGREES:
            return float(one.run.burst.workload.degree)
        return one.run.x
