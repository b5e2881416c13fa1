"""Sums of tasks, whose mean does not depend on tasks, and conditions as columns."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gossamer.spark.crunch.counting.quantiles import _total, sums_of
from gossamer.spark.crunch.folders import ConditionColumns

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


def test_columns_have_the_type_that_all_values_have() -> None:
    conditions = [
        (("nodes", 100), ("width", 1), ("kind", "random"), ("mixed", 1), ("on", True)),
        (("nodes", 200), ("width", 0.5), ("kind", "skewed"), ("mixed", "x"), ("on", False)),
    ]
    first = ConditionColumns(conditions).of(conditions[0])
    wanted = {"nodes": 100, "width": 1.0, "kind": "random", "mixed": "1", "on": True}
    assert first == {f"condition.{name}": value for name, value in wanted.items()}
    assert [*map(type, first.values())] == [*map(type, wanted.values())]


def test_what_a_condition_lacks_is_empty() -> None:
    columns = ConditionColumns([(("nodes", 100),), (("width", None),)])
    assert columns.of(()) == {"condition.nodes": None}
    assert columns.of((("nodes", 7),)) == {"condition.nodes": 7}
