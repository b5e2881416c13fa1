"""Percentiles that executors find, held against those of sorted values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gossamer.sim.study.statistics import PER_CENTS, percentile_place
from gossamer.spark.crunch.counting.quantiles import distribution

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize(
    "values",
    [
        RANDOM.exponential(3.0, 20_000),
        np.repeat(RANDOM.normal(size=40), 300),
        np.concatenate((np.full(5_000, 2.5), [-1e9, 1e9])),
        np.arange(7.0),
        np.full(50, -3.0),
        np.array([4.25]),
    ],
    ids=["continuous", "repeated", "outlying", "few", "alike", "one"],
)
def test_percentiles_are_those_of_the_whole_order(session: Any, values: Any) -> None:
    frame = session.createDataFrame(pa.table({"value": values})).repartition(3)
    found = distribution(frame)
    assert found is not None
    ordered = np.sort(values)
    places = [percentile_place(len(ordered), per_cent) for per_cent in PER_CENTS.tolist()]
    assert found.centiles == ordered[places].tolist()
    assert found.mean == pytest.approx(ordered.mean(), rel=1e-12)


def test_values_may_come_with_how_often(session: Any) -> None:
    values, times = RANDOM.integers(0, 500, 3_000), RANDOM.integers(1, 9, 3_000)
    frame = session.createDataFrame(pa.table({"value": values, "times": times})).repartition(3)
    found = distribution(frame)
    assert found is not None
    alone = session.createDataFrame(pa.table({"value": np.repeat(values, times)}))
    assert found == distribution(alone)


def test_of_no_rows_there_is_nothing(session: Any) -> None:
    assert distribution(session.createDataFrame(pa.table({"value": np.empty(0)}))) is None
