"""Mean and percentiles of a column, exact at any size: executors do it, the driver keeps little.

Floating-point numbers are in the order of their bits, so that percentiles are found by bits,
whatever the distribution. A first job finds number, ends and sum; each further one divides what may
hold a percentile into parts, in which it finds how many values there are, the least and the
largest, until these are the same. The driver sees some ten thousand parts a job. Sums are kept as
whole numbers by exponent, so that the mean does not depend on how rows are spread over tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.sim.study.records import PER_CENTS, percentile_place
from gossamer.spark.errors import JobError

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


# Parts of a job, about.
_PARTS: Final = 1 << 15
_DIGITS: Final = 53
_HALF: Final = 26
# Values whose halves add up to less than 2^53.
_MOST_EXACT: Final = 1 << (_DIGITS - 1 - (_DIGITS - _HALF))
_COLUMNS: Final = "rows long, low double, high double, exponent int, upper long, lower long"
_COUNTED: Final = "part long, times long, low long, high long"
_OF_PARTS: Final = ("part", "times", "low", "high")
# All bits of a number but that of its sign.
_BITS: Final = (1 << 63) - 1

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
    told = _added(values.mapInArrow(sums_of, _COLUMNS), "exponent", ("rows", "upper", "lower"))
    rows = sum(told["rows"].to_pylist())
    if rows == 0:
        return None
    low, high = pc.min(told["low"]).as_py(), pc.max(told["high"]).as_py()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise JobError("a column holds infinity, expected finite numbers")
    places = np.array([percentile_place(rows, per_cent) for per_cent in PER_CENTS.tolist()])
    ends = ordered_bits(np.array([low, high])).tolist()
    return Distribution(float(_total(told.to_pylist()) / rows), _at(values, ends, places))


def _added(frame: Any, key: str, sums: Sequence[str]) -> pa.Table:
    """By key, in its order, sums of columns, and the least ``low`` and the largest ``high``."""
    from pyspark.sql import functions as f

    added = [f.sum(name).alias(name) for name in sums]
    ends = (f.min("low").alias("low"), f.max("high").alias("high"))
    return frame.groupBy(key).agg(*added, *ends).toArrow().sort_by(key)


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


def ordered_bits(values: Floats) -> Ints:
    """int64[n], in the order of float64[n]: the bits of numbers, of negative ones reversed."""
    bits = (values + 0.0).view(np.int64)  # of -0.0 those of 0.0, which is equal
    return bits ^ ((bits >> 63) & _BITS)


@attrs.frozen(eq=False)
class _Counter:
    """Counts the values of a task in parts of intervals, and finds the ends of each part.

    Attributes:
        lows, highs: int64[k], ascending: the ends of the intervals, both included, see
            `ordered_bits`.
    """

    lows: Ints
    highs: Ints

    @property
    def bits(self) -> int:
        """Of the number of parts of an interval."""
        return (_PARTS // len(self.lows)).bit_length() - 1

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = np.zeros(len(self.lows) << self.bits, np.int64)
        ends = np.full(len(found), _BITS), np.full(len(found), -_BITS)
        # By how much an interval is too wide for a part a value.
        widths = (self.highs - self.lows).view(np.uint64)
        shifts = np.array([max(one.bit_length() - self.bits, 0) for one in widths.tolist()])
        for batch in batches:
            values, times = _numbers(batch)
            at = ordered_bits(values)
            place = np.minimum(np.searchsorted(self.highs, at), len(self.highs) - 1)
            inside = (at >= self.lows[place]) & (at <= self.highs[place])
            at, place = at[inside], place[inside]
            within = (at - self.lows[place]).view(np.uint64) >> shifts[place].astype(np.uint64)
            part = (place << self.bits) + within.astype(np.int64)
            np.add.at(found, part, 1 if times is None else times[inside])
            np.minimum.at(ends[0], part, at)
            np.maximum.at(ends[1], part, at)
        hit = np.flatnonzero(found)
        columns = [hit, found[hit], *(one[hit] for one in ends)]
        yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), _OF_PARTS)


def _at(values: Any, ends: Sequence[int], places: Ints) -> list[float]:
    """The values at places of the whole order, which has these ends."""
    # Rows of parts in order: the place of the first value, and the ends.
    parts = np.array([[0, *ends]])
    while np.any(is_open := parts[:, 1] < parts[:, 2]):
        divided = np.concatenate([parts[~is_open], _divided(values, parts[is_open])])
        divided = divided[np.argsort(divided[:, 0])]
        parts = divided[np.unique(_part_of(divided, places))]
    found = parts[_part_of(parts, places), 1]
    numbers: list[float] = (found ^ ((found >> 63) & _BITS)).view(np.float64).tolist()
    return numbers


def _part_of(parts: Ints, places: Ints) -> Ints:
    return np.searchsorted(parts[:, 0], places, side="right") - 1


def _divided(values: Any, parts: Ints) -> Ints:
    """The parts of parts that hold a value."""
    counter = _Counter(parts[:, 1], parts[:, 2])
    told = _added(values.mapInArrow(counter, _COUNTED), "part", ("times",))
    part, times, low, high = (told[name].to_numpy() for name in _OF_PARTS)
    of = part >> counter.bits
    before = np.cumsum(times) - times
    first = parts[of, 0] + before - before[np.searchsorted(of, of)]
    return np.stack([first, low, high], axis=1)
