"""What the points and runs of figures measured, and claims as rows of data."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np

from gossamer.sim.figures.common.claims import (
    ALTERNATIVE,
    COUNT,
    HOPS,
    LITERAL,
    RATIO,
    SECONDS,
    SHARE,
    Check,
    Claim,
    Reading,
    side_by_side,
)
from gossamer.sim.figures.common.points import Floats, Outcome, row_of, stacked
from gossamer.sim.results.intervals import half_width
from gossamer.sim.study.records import Column, Table

# Measures of a point that claims ask for most.
OVERHEAD, PATH, TREE, LOOKUP = (
    "traffic_overhead",
    "path_length_mean",
    "tree_length_mean",
    "lookup_hops",
)


@attrs.frozen(eq=False)
class Measurements:
    """Outcomes of points by study, system, kind and place on the x axis; values are means over
    the seeds of a point."""

    outcomes: Sequence[Outcome]

    def select(self, study: str, system: str, kind: str, x: float | None = None) -> list[Outcome]:
        """The outcomes of one system and kind, at ``x`` or wherever."""
        return [
            outcome
            for outcome in self.outcomes
            if (outcome.point.study, outcome.point.system, outcome.point.kind)
            == (study, system, kind)
            and (x is None or outcome.point.x == x)
        ]

    def has(self, study: str) -> bool:
        """Whether the study was run."""
        return any(outcome.point.study == study for outcome in self.outcomes)

    def nodes(self, study: str) -> int:
        """The number of nodes of a study without churn that does not vary it."""
        sizes = {o.point.scenario.nodes for o in self.outcomes if o.point.study == study}
        (nodes,) = sizes
        assert nodes is not None
        return nodes

    def value(self, measure: str, study: str, system: str, kind: str, x: float) -> float:
        """Mean of a measure over seeds; NaN where there is no such point."""
        found = self.values(measure, study, system, kind, x)
        return float(np.mean(found)) if found else math.nan

    def values(self, measure: str, study: str, system: str, kind: str, x: float) -> list[float]:
        """A measure by seed."""
        return [outcome.measures[measure] for outcome in self.select(study, system, kind, x)]

    def places(self, study: str, system: str, kind: str) -> list[float]:
        """The values of x that were run, in order."""
        return sorted({outcome.point.x for outcome in self.select(study, system, kind)})

    def series(self, measure: str, study: str, system: str, kind: str) -> tuple[Floats, Floats]:
        """float64[x], float64[x]: the values of x, and the measure at each."""
        places = self.places(study, system, kind)
        values = [self.value(measure, study, system, kind, x) for x in places]
        return np.array(places, np.float64), np.array(values, np.float64)

    def ratios(self, measure: str, study: str, system: str, other: str, kind: str) -> Floats:
        """float64[x]: the measure of one system over that of another at each place."""
        _, ours = self.series(measure, study, system, kind)
        return np.asarray(ours / self.series(measure, study, other, kind)[1])

    def hit_ratios(self, study: str, system: str, kind: str) -> Floats:
        """float64: hit ratios of those hours in which something was expected."""
        ratios = self.hours(study, system, kind)["hit_ratio"]
        return np.asarray(ratios[np.isfinite(ratios)])

    def half_interval(self, measure: str, study: str, system: str, kind: str, x: float) -> float:
        """Half the 95 % interval (Student) of `value` over the seeds; NaN of a single one."""
        return half_width(np.array(self.values(measure, study, system, kind, x)))

    def half_intervals(self, measure: str, study: str, system: str, kind: str) -> Floats:
        """float64[x]: half the interval of each point of `series`."""
        places = self.places(study, system, kind)
        return np.array([self.half_interval(measure, study, system, kind, x) for x in places])

    def note_of(self, study: str) -> str:
        """What plots of a study say of its seeds."""
        found: dict[tuple[str, str, float], int] = {}
        for one in (outcome.point for outcome in self.outcomes if outcome.point.study == study):
            at = (one.system, one.kind, one.x)
            found[at] = found.get(at, 0) + 1
        most, least = max(found.values(), default=1), min(found.values(), default=1)
        if most == 1:
            return "one seed"
        several = f"{most} seeds" if least == most else f"{least} to {most} seeds"
        return f"means over {several}, with 95 % intervals"

    def load(self, study: str, system: str, kind: str, x: float) -> Floats:
        """float64, sorted: the loads of all nodes of all seeds."""
        loads = [outcome.load for outcome in self.select(study, system, kind, x)]
        return np.sort(np.concatenate(loads)) if loads else np.empty(0)

    def hours(self, study: str, system: str, kind: str) -> Mapping[str, Column]:
        """The hourly table of the first seed."""
        return self.select(study, system, kind)[0].hours

    def hourly(
        self, measure: str, study: str, system: str, kind: str
    ) -> tuple[Floats, Floats, Floats]:
        """The hours, the mean of a measure over the seeds in each, and half its interval.

        All are float64[hours]. A mean is NaN where a seed knows nothing, an interval also where
        there is one seed.
        """
        tables = [outcome.hours for outcome in self.select(study, system, kind)]
        values = np.array([table[measure] for table in tables], np.float64)
        halves = np.array([half_width(column) for column in values.T])
        return tables[0]["hour"].astype(np.float64), values.mean(axis=0), halves


# Tables of what points measured, as figures write them to Parquet.
_KEYS: Final = ("point.study", "point.system", "point.kind", "point.x", "point.scenario.seed")


def points_table(outcomes: Sequence[Outcome]) -> dict[str, Column]:
    """One row a point: what was varied, the seed, and all measures."""
    return stacked(outcomes, _KEYS, [row_of(outcome.measures) for outcome in outcomes])


def load_table(outcomes: Sequence[Outcome], studies: Collection[str]) -> dict[str, Column]:
    """One row a node of a point of these studies, least load first."""
    chosen = [outcome for outcome in outcomes if outcome.point.study in studies]
    return stacked(chosen, _KEYS, [{"load": outcome.load} for outcome in chosen])


def hours_table(outcomes: Sequence[Outcome], first_hours: Mapping[str, float]) -> dict[str, Column]:
    """One row an hour of a point of these studies, by the hour at which each begins."""
    chosen = [outcome for outcome in outcomes if outcome.point.study in first_hours]
    hours = [
        {**one.hours, "hour": one.hours["hour"] + first_hours[one.point.study]} for one in chosen
    ]
    return stacked(chosen, _KEYS, hours)


@attrs.frozen(kw_only=True, eq=False)
class RunResult:
    """What a run of brokers measured.

    Attributes:
        run: what was run, in which study and under which reading of the paper.
        measures: values by name.
        tables: what else is known of it, by name.
    """

    run: Any
    measures: Mapping[str, float]
    tables: Mapping[str, Table]


@attrs.frozen(eq=False)
class Runs:
    """Results of runs under one reading of a paper, or under both.

    Subclasses name the attributes of a run that hold what is compared, and what a study varies.
    """

    found: Sequence[RunResult]
    compared: ClassVar[str] = "covering"
    varied: ClassVar[str] = "x"

    @classmethod
    def of(cls, found: Iterable[RunResult], *readings: str) -> Self:
        """Those of some readings, or of all."""
        return cls([one for one in found if not readings or one.run.reading in readings])

    def has(self, study: str) -> bool:
        """Whether the study was run."""
        return any(one.run.study == study for one in self.found)

    def select(self, study: str, compared: str, x: Any = None) -> list[RunResult]:
        """The results of a study in the order of x, or those at one x."""
        of, at = attrgetter("study", self.compared), attrgetter(self.varied)
        chosen = [one for one in self.found if of(one.run) == (study, compared)]
        return sorted(
            (one for one in chosen if x in (None, at(one.run))), key=lambda one: at(one.run)
        )

    def one(self, study: str, compared: str, x: Any = None) -> RunResult:
        """The only result there."""
        (found,) = self.select(study, compared, x)
        return found

    def value(self, measure: str, study: str, compared: str, x: Any = None) -> float:
        """A measure of the only result there."""
        return self.one(study, compared, x).measures[measure]

    def series(self, measure: str, study: str, compared: str) -> tuple[Floats, Floats]:
        """float64[x], float64[x]: the values of x, and the measure at each."""
        chosen = self.select(study, compared)
        places = [getattr(one.run, self.varied) for one in chosen]
        values = [one.measures[measure] for one in chosen]
        return np.array(places, np.float64), np.array(values, np.float64)


def run_tables(
    found: Sequence[RunResult],
    name: str,
    keys: Sequence[str],
    further: Sequence[str] = (),
    prefix: str = "",
) -> dict[str, dict[str, Column]]:
    """All that runs measured, by name of the table: one row a run, and their tables stacked.

    Args:
        found: one a run.
        name: of the table with their measures.
        keys: see `stacked`.
        further: like these, for columns of that table behind the measures.
        prefix: of the names of other tables.
    """
    rows = stacked(found, keys, [row_of(one.measures) for one in found])
    for key in further:
        rows[key.rpartition(".")[-1]] = np.array([attrgetter(key)(one) for one in found])
    others = {
        prefix + other: stacked(found, keys, [one.tables[other] for one in found])
        for other in found[0].tables
    }
    return {name: rows, **others}


# Claims as rows of data: what a paper says, where it is measured, and what we accept of it.
#
# A claim is a `Statement`, and its checks are `Row`s. What a row sets against its bounds is a
# `Quantity`: a measure `at` a place, the `first`, `last`, `least` or `most` of a series, or one of
# these over or less another. `check_claims` reads all of them. Units follow from measures.


# Measures that are neither times, whose names end in "_s", nor numbers of something.
_UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("path_length_mean", "path_length_p99", "tree_length_mean"), HOPS),
        **dict.fromkeys(("hit_ratio", "hit_ratio_worst_hour", "traffic_overhead"), SHARE),
        **dict.fromkeys(("load_max", "load_p95", "load_zero", "load_above_60"), SHARE),
        **dict.fromkeys(("false_positives", "false_positives_core", "share_below_1_s"), SHARE),
    }
)


def unit_of(measure: str) -> str:
    """The unit of a measure, see `Check`."""
    return _UNITS.get(measure) or (SECONDS if measure.endswith("_s") else COUNT)


@attrs.frozen
class Quantity:
    """What is looked up in measurements or computed from them, with its unit.

    Attributes:
        of: the value, of whatever a paper's measurements are.
        unit: see `Check`.
    """

    of: Callable[[Any], float]
    unit: str

    def over(self, other: Quantity, at_least: float = 0.0) -> Quantity:
        """The ratio of both, the other taken as ``at_least`` so much; infinite over nothing."""

        def ratio(found: Any) -> float:
            below = max(other.of(found), at_least) if at_least else other.of(found)
            return self.of(found) / below if below else math.inf

        return Quantity(ratio, RATIO)

    def or_more(self, other: Quantity) -> Quantity:
        """The greater of both."""
        return Quantity(lambda found: max(self.of(found), other.of(found)), self.unit)

    def __truediv__(self, other: Quantity) -> Quantity:
        return self.over(other)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(lambda found: self.of(found) - other.of(found), self.unit)


def at(measure: str, *where: Any) -> Quantity:
    """A measure at a place: what ``found.value`` takes."""
    return Quantity(lambda found: found.value(measure, *where), unit_of(measure))


def _of_series(take: Callable[[Any], float]) -> Callable[..., Quantity]:
    def quantity(measure: str, *where: Any) -> Quantity:
        return Quantity(lambda found: take(found.series(measure, *where)[1]), unit_of(measure))

    return quantity


# A value of a measure over all places: what ``found.series`` takes.
first = _of_series(lambda values: values[0])
last = _of_series(lambda values: values[-1])
least = _of_series(lambda values: values.min())
most = _of_series(lambda values: values.max())


@attrs.frozen
class Row:
    """A check of a claim, see `Check`.

    Attributes:
        name: what is measured, in words.
        value: where it is found, or the value itself.
        paper: what the paper says of it, in words.
        low, high: the bounds that we accept, both included.
        unit: where it does not follow from the quantity; a value itself is a RATIO.
    """

    name: str
    value: Quantity | float
    paper: str = ""
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""

    def check(self, found: object) -> Check:
        """The check, with the value that was measured."""
        known = self.value
        value, unit = (
            (known.of(found), known.unit) if isinstance(known, Quantity) else (known, RATIO)
        )
        return Check(self.name, float(value), self.unit or unit, self.paper, self.low, self.high)


@attrs.frozen
class Statement:
    """A claim of a paper before anything is measured.

    Attributes:
        id, claim: see `Claim`.
        rows: its checks, or what makes them where they depend on what was run.
        explanation, note: see `Claim`, or what makes them of the measurements.
    """

    id: str
    claim: str
    rows: Sequence[Row] | Callable[[Any], Iterable[Row]]
    explanation: str | Callable[[Any], str] = ""
    note: str | Callable[[Any], str] = ""

    def check(self, found: object) -> Claim:
        """The claim with its verdict."""
        rows = self.rows(found) if callable(self.rows) else self.rows
        explanation, note = (
            text(found) if callable(text) else text for text in (self.explanation, self.note)
        )
        checks = [row.check(found) for row in rows]
        return Claim(self.id, self.claim, checks, explanation, note)


def check_claims(statements: Iterable[Statement], found: object) -> list[Claim]:
    """All claims, in order."""
    return [one.check(found) for one in statements]


def check_readings(
    statements: Iterable[Statement],
    found: Callable[[str], Any],
    readings: Mapping[str, Reading],
    contradictions: Mapping[str, str] = MappingProxyType({}),
) -> list[Claim]:
    """All claims as read literally, each with its alternative where there is one.

    Args:
        statements: in order.
        found: the measurements under a reading.
        readings, contradictions: see `side_by_side`.
    """
    literal = check_claims(statements, found(LITERAL))
    read_otherwise = [one for one in statements if one.id in readings]
    alternative = check_claims(read_otherwise, found(ALTERNATIVE))
    return side_by_side(literal, alternative, readings, contradictions)
