"""What the runs on a SCOT measured, by study, way of routing and place on the x axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from gossamer.sim.figures.common.points import Floats
from gossamer.sim.figures.common.readings import LITERAL
from gossamer.sim.figures.scot.studies import RunResult


@attrs.frozen(eq=False)
class Outcomes:
    """The outcomes of all runs under a reading of the paper.

    Attributes:
        found: one a run.
    """

    found: Sequence[RunResult]

    @classmethod
    def of(cls, found: Sequence[RunResult], reading: str = LITERAL) -> Outcomes:
        """Those of the runs under a reading."""
        return cls([one for one in found if one.run.reading == reading])

    def places(self, study: str) -> list[int]:
        """The values of x that were run, in order."""
        return sorted({one.run.x for one in self.found if one.run.study == study})

    def one(self, study: str, routing: str, x: int) -> RunResult:
        """The only run there."""
        (found,) = (
            one
            for one in self.found
            if (one.run.study, one.run.routing, one.run.x) == (study, routing, x)
        )
        return found

    def value(self, measure: str, study: str, routing: str, x: int) -> float:
        """A measure of a run."""
        return self.one(study, routing, x).measures[measure]

    def series(self, measure: str, study: str, routing: str) -> tuple[Floats, Floats]:
        """float64[x], float64[x]: the values of x, and the measure at each."""
        places = self.places(study)
        values = [self.value(measure, study, routing, x) for x in places]
        return np.array(places, np.float64), np.array(values, np.float64)

    def mean(self, measure: str, study: str, routing: str) -> float:
        """A measure, mean over the values of x."""
        return float(self.series(measure, study, routing)[1].mean())

    def saved(
        self, measure: str, study: str, routing: str, other: str, x: int | None = None
    ) -> float:
        """How much less a measure is than by another way of routing, as a share of that.

        Of the means over x, or at one x; NaN where there is nothing to compare with.
        """
        if x is None:
            value, above = (self.mean(measure, study, name) for name in (routing, other))
        else:
            value, above = (self.value(measure, study, name, x) for name in (routing, other))
        return 1 - value / above if above else math.nan
