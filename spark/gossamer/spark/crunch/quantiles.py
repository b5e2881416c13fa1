"""Mean and percentiles of a column, exact at any size: executors do it, the driver keeps little.

Three jobs: count, ends and sum; how many values fall into each of some thousand equal parts
between the ends; and the values, with how often each comes, of those parts that hold a percentile.
These are a few per cent of the values, unless nearly all lie in one part. Sums are kept as whole
numbers by exponent, so that the mean does not depend on how rows are spread over tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gossamer.sim.study.records import PER_CENTS, percentile_place

# How often values come: counted by tasks, added up by Spark, told without the values.


COUNTED: Final = "name string, value long, times long"
# Counts of batches that are kept before they are added up.
_MOST_KEPT: Final = 64

Ints = npt.NDArray[np.int64]
Counts = tuple[npt.NDArray[Any], Ints]


@attrs.frozen(eq=False)
class Tallies:
    """How often things were chosen, without the things: few numbers of however many things.

    Attributes:
        counts: int64[k], ascending and different.
        times: int64[k], how many things were chosen so often.
    """

    counts: Ints
    times: Ints

    @property
    def different(self) -> int:
        """How many things were chosen at all."""
        return int(self.times.sum())

    @property
    def choices(self) -> int:
        """How many choices there were."""
        return int(self.counts @ self.times)

    def of_ranks(self, ranks: Ints) -> Ints:
        """How often the things of these ranks were chosen; the most popular has rank 1."""
        last = np.cumsum(self.times[::-1])
        return np.asarray(self.counts[::-1][np.searchsorted(last, ranks)], np.int64)

    def gini(self) -> float:
        """Gini's coefficient of how often each thing was chosen, see `study.records.gini`."""
        last = np.cumsum(self.times).tolist()
        # In Python's numbers, which do not overflow: the sum of ranks times counts.
        ranked = sum(
            count * ((end - times + 1 + end) * times // 2)
            for count, times, end in zip(
                self.counts.tolist(), self.times.tolist(), last, strict=True
            )
        )
        different = self.different
        return float(2 * ranked / (different * self.choices) - (different + 1) / different)


def tallies_of(counts: Any) -> Tallies:
    """The tallies of a frame of Spark with a row a thing, and its ``count``."""
    found = counts.groupBy("count").agg({"*": "count"}).toArrow().sort_by("count")
    return Tallies(*(found[name].to_numpy() for name in ("count", "count(1)")))


def added_up(parts: Sequence[Counts]) -> Counts:
    """Values in order, and how often each comes in all parts together.

    Args:
        parts: values, and how often each comes; the same value may be in several.
    """
    values, times = (np.concatenate(one) for one in zip(*parts, strict=True))
    different, places = np.unique(values, return_inverse=True)
    added = np.zeros(len(different), np.int64)
    np.add.at(added, places, times)
    return different, added


def _counts_of(values: npt.NDArray[Any]) -> Counts:
    """The different values of some, ascending, and how often each comes."""
    if len(values):
        least, largest = int(values.min()), int(values.max())
        if largest - least <= len(values):
            # So close together that counting places is quicker than sorting.
            counts = np.bincount(values.astype(np.int64) - least)
            hit = np.flatnonzero(counts)
            return hit + least, counts[hit]
    return np.unique(values, return_counts=True)


def count_columns(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How often each value comes in each column of a task's rows: whole numbers, none null."""
    found: dict[str, list[Counts]] = {}
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kept = found.setdefault(name, [])
            kept.append(_counts_of(column.to_numpy()))
            if len(kept) > _MOST_KEPT:
                found[name] = [added_up(kept)]
    for name, kept in found.items():
        values, times = added_up(kept)
        names = pa.array([name] * len(values), pa.string())
        columns = [names, pa.array(values.astype(np.int64)), pa.array(times)]
        yield pa.RecordBatch.from_arrays(columns, ["name", "value", "times"])


# Equal parts between the least and the largest value.
_PARTS: Final = 4096
_DIGITS: Final = 53
_HALF: Final = 26
# Values whose halves add up to less than 2^53.
_MOST_EXACT: Final = 1 << (_DIGITS - 1 - (_DIGITS - _HALF))
_COLUMNS: Final = "rows long, low double, high double, exponent int, upper long, lower long"
_COUNTED: Final = "value double, times long"
# Counts of batches that are kept before they are added up.


Floats = npt.NDArray[np.float64]


@attrs.frozen
class Distribution:
    """What is told of a column.

    Attributes:
        mean: correctly rounded.
        centiles: the value at every per cent, see `PER_CENTS`.
    """

    mean: float
    centiles: Sequence[float]


def distribution(values: Any) -> Distribution | None:
    """The distribution of the column ``value``; None of no rows.

    Args:
        values: a frame of Spark, or a scan: numbers, none of which is null or NaN. A column
            ``times``, if there is one, tells how often each comes.
    """
    told = values.mapInArrow(sums_of, _COLUMNS).toArrow().to_pylist()
    rows = sum(one["rows"] for one in told)
    if rows == 0:
        return None
    low, high = (bound(one[end] for one in told) for bound, end in ((min, "low"), (max, "high")))
    mean = float(_total(told) / rows)
    places = [percentile_place(rows, per_cent) for per_cent in PER_CENTS.tolist()]
    if low == high:
        return Distribution(mean, [low] * len(places))
    return Distribution(mean, _at(values, low, high, places))


def sums_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Number, ends and sum of the values of a task: a row an exponent, numbers in the first.

    Args:
        batches: of the column ``value``, and ``times`` if values come more than once.
    """
    rows, low, high = 0, np.inf, -np.inf
    upper: dict[int, int] = {}
    lower: dict[int, int] = {}
    for batch in batches:
        if len(batch) == 0:
            continue
        values, times = _numbers(batch)
        rows += len(values) if times is None else int(times.sum())
        low, high = min(low, float(values.min())), max(high, float(values.max()))
        for exponent, (above, below) in exact_sums(values, times).items():
            upper[exponent] = upper.get(exponent, 0) + above
            lower[exponent] = lower.get(exponent, 0) + below
    if rows:
        kept = len(upper)
        yield pa.RecordBatch.from_pydict(
            {
                "rows": [rows] + [0] * (kept - 1),
                "low": [low] * kept,
                "high": [high] * kept,
                "exponent": pa.array(list(upper), pa.int32()),
                "upper": list(upper.values()),
                "lower": list(lower.values()),
            }
        )


def exact_sums(values: Floats, times: Ints | None = None) -> dict[int, tuple[int, int]]:
    """By exponent the sums of the upper and lower halves of the digits of values.

    Args:
        values: float64[n].
        times: int64[n], how often each comes; once if None.
    """
    shares, exponents = np.frexp(values)
    digits = (shares * float(1 << _DIGITS)).astype(np.int64)
    above, below = digits >> _HALF, digits & ((1 << _HALF) - 1)
    if times is None and len(values) <= _MOST_EXACT:
        return _summed(exponents, above, below)
    found = {}
    for exponent in np.unique(exponents).tolist():
        chosen = exponents == exponent
        often = 1 if times is None else times[chosen]
        found[exponent] = (int((above[chosen] * often).sum()), int((below[chosen] * often).sum()))
    return found


def _summed(exponents: Ints, above: Ints, below: Ints) -> dict[int, tuple[int, int]]:
    """Sums by exponent of so few halves that a double has room for them."""
    least = int(exponents.min(initial=0))
    places = exponents - least
    found = np.flatnonzero(np.bincount(places))
    halves = (np.bincount(places, one)[found].astype(np.int64) for one in (above, below))
    rows = zip((found + least).tolist(), *(one.tolist() for one in halves), strict=True)
    return {exponent: (upper, lower) for exponent, upper, lower in rows}


def _total(told: Sequence[Mapping[str, Any]]) -> Fraction:
    """The exact sum of all values."""
    total = Fraction(0)
    for one in told:
        digits = (one["upper"] << _HALF) + one["lower"]
        total += digits * Fraction(2) ** (one["exponent"] - _DIGITS)
    return total


def _numbers(batch: pa.RecordBatch) -> tuple[Floats, Ints | None]:
    """float64[n] and int64[n]: the values of a batch, and how often each comes, None for once."""
    values = batch["value"].cast(pa.float64()).to_numpy()
    return values, batch["times"].to_numpy() if "times" in batch.schema.names else None


@attrs.frozen
class _Sections:
    """Equal parts between two numbers, `_PARTS` of them."""

    low: float
    high: float

    def of(self, values: Floats) -> Ints:
        """int64[n]: the part of each value."""
        share = (values - self.low) / (self.high - self.low)
        return np.minimum((share * _PARTS).astype(np.int64), _PARTS - 1)


@attrs.frozen
class _Counter:
    """Counts the values of a task in each part."""

    parts: _Sections

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = np.zeros(_PARTS, np.int64)
        for batch in batches:
            values, times = _numbers(batch)
            if times is None:
                found += np.bincount(self.parts.of(values), minlength=_PARTS)
            else:
                np.add.at(found, self.parts.of(values), times)
        hit = np.flatnonzero(found)
        yield _counted((hit.astype(np.float64), found[hit]))


@attrs.frozen(eq=False)
class _Chosen:
    """Counts the different values of a task in some of the parts."""

    parts: _Sections
    wanted: npt.NDArray[np.bool_]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kept: list[Counts] = [(np.empty(0), np.empty(0, np.int64))]
        for batch in batches:
            values, times = _numbers(batch)
            inside = self.wanted[self.parts.of(values)]
            often = np.ones(len(values), np.int64) if times is None else times
            kept.append((values[inside], often[inside]))
            if len(kept) > _MOST_KEPT:
                kept = [added_up(kept)]
        yield _counted(added_up(kept))


def _counted(counts: Counts) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(one) for one in counts], ["value", "times"])


def _at(values: Any, low: float, high: float, places: Sequence[int]) -> list[float]:
    """The values at places of the whole order."""
    parts = _Sections(low, high)
    told = values.mapInArrow(_Counter(parts), _COUNTED).toArrow()
    counts = np.zeros(_PARTS, np.int64)
    np.add.at(counts, told["value"].to_numpy().astype(np.int64), told["times"].to_numpy())
    begins = np.cumsum(counts) - counts
    chosen = np.searchsorted(begins + counts, places, side="right")
    wanted = np.zeros(_PARTS, np.bool_)
    wanted[chosen] = True
    told = values.mapInArrow(_Chosen(parts, wanted), _COUNTED).toArrow()
    found, times = added_up([(told["value"].to_numpy(), told["times"].to_numpy())])
    # Parts that were not chosen come before some that were: places are counted among the chosen.
    kept = np.where(wanted, counts, 0)
    skipped = begins - (np.cumsum(kept) - kept)
    among = np.asarray(places) - skipped[chosen]
    at = np.searchsorted(np.cumsum(times), among, side="right")
    return [float(value) for value in found[at]]
