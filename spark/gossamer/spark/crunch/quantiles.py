"""Mean and percentiles of a column, exact at any size: executors do it, the driver keeps little.

Three jobs: count, ends and sum; how many values fall into each of some thousand equal parts
between the ends; and the values, with how often each comes, of those parts that hold a percentile.
These are a few per cent of the different values, unless nearly all lie in one part. Sums are kept
as whole numbers by exponent, so that the mean does not depend on how rows are spread over tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gossamer.sim.study.statistics import PER_CENTS, percentile_place

# Equal parts between the least and the largest value.
_PARTS: Final = 4096
_DIGITS: Final = 53
_HALF: Final = 26
_COLUMNS: Final = "rows long, low double, high double, exponent int, upper long, lower long"

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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
    """The distribution of the column ``value`` of a frame of Spark; None of no rows.

    Args:
        values: numbers, none of which is null or NaN; a column ``times``, if there is one, tells
            how often each comes.
    """
    numbers = values.withColumn("value", values["value"].cast("double"))
    told = numbers.mapInArrow(sums_of, _COLUMNS).toArrow().to_pylist()
    rows = sum(one["rows"] for one in told)
    if rows == 0:
        return None
    low, high = (bound(one[end] for one in told) for bound, end in ((min, "low"), (max, "high")))
    mean = float(_total(told) / rows)
    places = [percentile_place(rows, per_cent) for per_cent in PER_CENTS.tolist()]
    if low == high:
        return Distribution(mean, [low] * len(places))
    return Distribution(mean, _at(numbers, low, high, places))


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
        values = batch["value"].to_numpy()
        times = batch["times"].to_numpy() if "times" in batch.schema.names else None
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
    found = {}
    for exponent in np.unique(exponents).tolist():
        chosen = exponents == exponent
        above, below = digits[chosen] >> _HALF, digits[chosen] & ((1 << _HALF) - 1)
        if times is not None:
            above, below = above * times[chosen], below * times[chosen]
        found[exponent] = (int(above.sum()), int(below.sum()))
    return found


def _total(told: Sequence[Mapping[str, Any]]) -> Fraction:
    """The exact sum of all values."""
    total = Fraction(0)
    for one in told:
        digits = (one["upper"] << _HALF) + one["lower"]
        total += digits * Fraction(2) ** (one["exponent"] - _DIGITS)
    return total


def _at(numbers: Any, low: float, high: float, places: Sequence[int]) -> list[float]:
    """The values at places of the whole order."""
    from pyspark.sql import functions as f

    times = f.sum("times") if "times" in numbers.columns else f.count("*")
    share = (f.col("value") - f.lit(low)) / f.lit(high - low)
    part = f.least(f.floor(share * _PARTS), f.lit(_PARTS - 1)).cast("int")
    counts = np.zeros(_PARTS, np.int64)
    for row in numbers.groupBy(part.alias("part")).agg(times.alias("times")).collect():
        counts[row["part"]] = row["times"]
    begins = np.cumsum(counts) - counts
    wanted = np.searchsorted(begins + counts, places, side="right")
    chosen = numbers.where(part.isin(*np.unique(wanted).tolist())).groupBy("value")
    found = chosen.agg(times.alias("times")).toArrow().sort_by("value")
    # Parts that were not chosen come before some that were: places are counted among the chosen.
    kept = np.zeros(_PARTS, np.int64)
    kept[np.unique(wanted)] = counts[np.unique(wanted)]
    skipped = begins - (np.cumsum(kept) - kept)
    among = np.asarray(places) - skipped[wanted]
    at = np.searchsorted(np.cumsum(found["times"].to_numpy()), among, side="right")
    return [float(value) for value in found["value"].to_numpy()[at]]
