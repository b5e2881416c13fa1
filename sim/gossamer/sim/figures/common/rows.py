"""Claims as rows of data: what a paper says, where it is measured, and what we accept of it.

A claim is a `Statement`, and its checks are `Row`s. What a row sets against its bounds is a
`Quantity`: a measure `at` a place, the `first`, `last`, `least` or `most` of a series, or one of
these over or less another. `check_claims` reads all of them. Units follow from measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.sim.figures.common.claims import COUNT, HOPS, RATIO, SECONDS, SHARE, Check, Claim

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

    def check(self, found: Any) -> Check:
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

    def check(self, found: Any) -> Claim:
        """The claim with its verdict."""
        rows = self.rows(found) if callable(self.rows) else self.rows
        explanation, note = (
            text(found) if callable(text) else text for text in (self.explanation, self.note)
        )
        checks = [row.check(found) for row in rows]
        return Claim(self.id, self.claim, checks, explanation, note)


def check_claims(statements: Iterable[Statement], found: Any) -> list[Claim]:
    """All claims, in order."""
    return [one.check(found) for one in statements]
