"""Sums of tasks, from which a mean follows that does not depend on tasks."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gossamer.spark.crunch.counting.quantiles import _total, sums_of

VALUES = st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30)


def batch(values: list[float]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": np.array(values, np.float64)})


@given(VALUES, st.integers(0, 30), st.integers(0, 30))
def test_the_sum_is_exact_however_values_are_spread_and_of_none_there_is_nothing(
    values: list[float], first: int, second: int
) -> None:
    assert list(sums_of(iter([batch([])]))) == []
    first, second = sorted((first, second))
    parts = [values[:first], values[first:second], values[second:]]
    tasks = [sums_of(iter([batch(parts[0]), batch(parts[1])])), sums_of(iter([batch(parts[2])]))]
    told = [row for task in tasks for made in task for row in made.to_pylist()]
    assert sum(row["rows"] for row in told) == len(values)
    assert min(row["low"] for row in told) == min(values)
    assert max(row["high"] for row in told) == max(values)
    assert _total(told) == sum(map(Fraction, values))
    assert math.isclose(float(_total(told)), math.fsum(values))
