"""Statistics of the columns of tables, and the rows in which they are gathered.

Everything here is exact, and a function of its arguments alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.sim.study.records import Column

Floats = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]

MEASURE, CDF, LORENZ, SERIES, RANKS = "measure", "cdf", "lorenz", "series", "ranks"

# Points of a distribution that are kept: whole per cents.
PER_CENTS: Final = np.arange(101)
# Points of a series that are kept; longer ones are drawn in groups.
MOST_POINTS: Final = 400


class Row(NamedTuple):
    """One value: of a measure (x is 0), or a point (x, value) of a curve."""

    part: str
    name: str
    x: float
    value: float


def percentile(values: Column, per_cent: float) -> float:
    """The smallest observed value that ``per_cent`` of ``values`` do not exceed; NaN of none."""
    if len(values) == 0:
        return math.nan
    place = percentile_place(len(values), per_cent)
    return float(np.partition(values, place)[place])


def percentile_place(count: int, per_cent: float) -> int:
    """The place of that value among ``count`` values in order, of which there is one at least."""
    # In fractions: in floating point 28 % of 25 values are a little more than 7.
    return max(math.ceil(Fraction(per_cent) * count / 100), 1) - 1


def measure_rows(found: Mapping[str, float]) -> Iterator[Row]:
    """Measures by name as rows."""
    for name, value in found.items():
        yield Row(MEASURE, name, 0.0, value)


def series(
    name: str, time: npt.NDArray[Any], parts: npt.NDArray[Any], wholes: npt.NDArray[Any]
) -> Iterator[Row]:
    """Parts over wholes in the course of time, long ones in groups; none where no whole is."""
    size = max(1, -(-len(time) // MOST_POINTS))
    group = np.arange(len(time)) // size
    known = ~np.isnan(parts.astype(np.float64))
    over = np.bincount(group, np.where(known, wholes, 0).astype(np.float64))
    under = np.bincount(group, np.where(known, parts, 0).astype(np.float64))
    for place in np.flatnonzero(over > 0):
        yield Row(SERIES, name, float(time[place * size]), float(under[place] / over[place]))


def distribution(name: str, values: npt.NDArray[Any]) -> Iterator[Row]:
    """Percentiles and the Lorenz curve of values, at every per cent."""
    if len(values) == 0:
        return
    ordered = np.sort(values.astype(np.float64))
    for per_cent in PER_CENTS.tolist():
        yield Row(CDF, name, float(per_cent), percentile(ordered, per_cent))
    for share, part in zip(PER_CENTS / 100, lorenz(ordered), strict=True):
        yield Row(LORENZ, name, float(share), float(part))


def lorenz(values: npt.NDArray[Any]) -> Floats:
    """float64[101]: the part of the sum that the lowest 0, 1, .. 100 % of the values have.

    Between two values the curve is straight; of values that are all 0 it is the diagonal.
    """
    ordered = np.sort(values.astype(np.float64))
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    if sums[-1] <= 0:
        return PER_CENTS / 100
    places = np.linspace(0, len(ordered), len(PER_CENTS))
    return np.asarray(np.interp(places, np.arange(len(sums)), sums) / sums[-1])


def gini(values: npt.NDArray[Any]) -> float:
    """Gini's coefficient: 0 where all values are equal, near 1 where one has everything.

    Twice the area between the Lorenz curve and the diagonal; 0 of values that are all 0, NaN of
    none.
    """
    if len(values) == 0:
        return math.nan
    ordered = np.sort(values.astype(np.float64))
    whole = float(ordered.sum())
    if whole <= 0:
        return 0.0
    count = len(ordered)
    ranks = np.arange(1, count + 1)
    return float(2 * (ranks @ ordered) / (count * whole) - (count + 1) / count)


def mean(values: npt.NDArray[Any]) -> float:
    """The mean; NaN of none."""
    return float(values.mean(dtype=np.float64)) if len(values) else math.nan


def total(table: Columns, column: str) -> float:
    """The sum of a column of whole numbers; NaN where it is missing."""
    return float(table[column].sum(dtype=np.int64)) if column in table else math.nan


def ratio(part: float, whole: float) -> float:
    """A part of a whole; NaN where there is none."""
    return float(part) / float(whole) if whole > 0 else math.nan
