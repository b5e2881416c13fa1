"""Workloads crunched by Spark, and percentiles: exact where they say so; odd ones refused."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gossamer.spark.crunch.matches as matches
import gossamer.spark.crunch.quantiles as tallies
from gossamer.protocol.peer.space.ring import RING
from gossamer.sim.errors import ResultsError
from gossamer.sim.row_tables.kinds import WorkloadRequest, make_workload
from gossamer.sim.study.plot import PlotOptions, plots_as
from gossamer.sim.study.records import PER_CENTS, gini, percentile, percentile_place
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.crunch.matches import Cutter, matched_by_all, matched_in_part
from gossamer.spark.crunch.quantiles import Tallies, count_columns, distribution
from gossamer.spark.crunch.workloads import quantity, ranking
from gossamer.spark.errors import JobError
from support import made_up_results, spark_results

ALL = 10**9
GUARD = "spark.driver.maxResultSize"
RANDOM = np.random.default_rng(5)
RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted), max_size=30)
COLUMNS = st.lists(st.lists(st.tuples(st.integers(-3, 3), st.integers()), max_size=9), max_size=9)


def write_by_hand(folder: Path, kind: str, asked: WorkloadRequest) -> None:
    """A workload's folder without Spark, one file a table."""
    rows: dict[str, Any] = {}
    for one in make_workload(kind, asked).tables():
        (folder / one.name).mkdir(parents=True)
        pq.write_table(one.table(), folder / one.name / "part-0.parquet", write_page_checksum=True)
        columns = [{"name": field.name, "type": str(field.kind)} for field in one.fields]
        rows[one.name] = {"rows": len(one.table()), "columns": columns}
    told = {"kind": kind, "seed": asked.seed, "settings": dict(asked.settings), "tables": rows}
    (folder / "workload.json").write_text(json.dumps(told))


def matches_by_hand(asked: WorkloadRequest, attributes: int) -> list[int]:
    """How many subscriptions each event matches, one after another."""
    subscriptions, events = (one.table() for one in make_workload("vinifera", asked).tables())
    domain = range(attributes)

    def matches(one: dict[str, int], event: dict[str, int]) -> bool:
        inside = (one[f"low_{a}"] <= event[f"value_{a}"] <= one[f"high_{a}"] for a in domain)
        return one["constrained"] >= 0 and all(inside)

    ranges = subscriptions.to_pylist()
    return [sum(matches(one, event) for one in ranges) for event in events.to_pylist()]


@pytest.mark.parametrize(
    ("attributes", "exact_up_to"),
    [(1, ALL), pytest.param(1, 0, marks=pytest.mark.campaign), (2, 0)],
)
def test_figures_of_ranges(session: Any, tmp_path: Path, attributes: int, exact_up_to: int) -> None:
    settings = {"attributes": attributes, "width": 0.3, "kind": "skewed", "subscribers": 0.8}
    asked = WorkloadRequest(seed=5, subscriptions=300, events=80, settings=settings)
    write_by_hand(tmp_path / "w", "vinifera", asked)
    options = {"plots": attributes == 2, "exact_up_to": exact_up_to}
    with plots_as(PlotOptions(formats=("svg",))):
        found = spark_results.crunch(session, tmp_path / "w", tmp_path / "out", **options)
    values = {one.measure: one for one in found.values}
    matched = np.array(matches_by_hand(asked, attributes))
    name = "subscriptions_that_an_event_matches"
    assert values[f"{name}_mean"].value == pytest.approx(matched.mean())
    assert values[f"{name}_p90"].value == percentile(matched, 90)
    assert values[f"{name}_max"].value == matched.max()
    method = "exact" if attributes == 1 and exact_up_to else "sample"
    assert values[f"{name}_max"].method == method
    assert any("sample of 1,000 events" in note for note in found.notes) == (method == "sample")
    rows = make_workload("vinifera", asked).tables()[0].table().to_pylist()
    wanted = [one for one in rows if one["constrained"] >= 0]
    assert 0 < len(wanted) < len(rows)
    last = attributes - 1
    widths = np.array([(one[f"high_{last}"] - one[f"low_{last}"]) / RING for one in wanted])
    assert values[f"width_on_attribute_{last}_mean"].value == pytest.approx(widths.mean())
    median = values[f"width_on_attribute_{last}_p50"]
    assert median.method == "exact"
    assert median.value == pytest.approx(percentile(widths, 50))
    assert values[f"subscriptions_on_attribute_{last}"].value == len(wanted)
    places = np.bincount([one["place"] for one in rows])
    assert values["places_of_subscriptions_first_share"].value == places.max() / len(rows)
    assert "places of events" in found.curves.names("ranks")
    (widths_drawn,) = found.curves.of("cdf", "width on attribute 0")
    assert widths_drawn.points.shape == (101, 2)
    if attributes == 2:
        drawn = {path.stem for path in (tmp_path / "out" / "plots").glob("*.svg")}
        assert drawn >= {"ranks-places-of-events", "lorenz-events-over-the-domain-of-attribute-1"}


@given(RANGES, st.lists(st.integers(0, 20), min_size=1, max_size=20), st.sets(st.integers(-1, 22)))
def test_counts_of_ranges(ranges: list[list[int]], values: list[int], drawn: set[int]) -> None:
    rows = [{"begin": a, "event": None, "end": b} for a, b in ranges]
    rows += [{"begin": None, "event": value, "end": None} for value in values]
    schema = pa.schema([(name, pa.int64()) for name in ("begin", "event", "end")])
    batches = [pa.RecordBatch.from_pylist([row], schema=schema) for row in rows]
    cuts = np.array(sorted(drawn), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matches, "_PORTION_POINTS", 7)
        portions = pa.Table.from_batches(Cutter(cuts)(batches))
    found: list[int] = []
    before = 0
    for part in sorted(set(portions["part"].to_pylist())):
        (told,) = matched_in_part(portions.filter(pc.field("part") == part)).to_pylist()
        assert told["part"] == part
        numbers, times = (np.frombuffer(told[name], np.int64) for name in ("value", "times"))
        found += np.repeat(before + numbers, times).tolist()
        before += told["more"]
    assert before == 0  # every range ends
    assert sorted(found) == sorted(sum(a <= v <= b for a, b in ranges) for v in values)


@pytest.mark.parametrize("part_points", [pytest.param(1_000_000, marks=pytest.mark.campaign), 40])
def test_matches_do_not_depend_on_parts(session: Any, part_points: int) -> None:
    draws = np.random.default_rng(3)
    low = draws.integers(0, 200, 300)
    high, values = low + draws.integers(0, 50, 300), draws.integers(0, 250, 400)
    ends = pa.table({"begin": low, "event": pa.nulls(len(low), pa.int64()), "end": high})
    none = pa.nulls(len(values), pa.int64())
    points = session.createDataFrame(
        pa.concat_tables([ends, pa.table({"begin": none, "event": values, "end": none})])
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matches, "_PART_POINTS", part_points)
        patch.setattr(matches, "_SAMPLED", 20)
        with matched_by_all(points) as matched:
            told = matched.mapInArrow(iter, "value long, times long").collect()
    found = [row["value"] for row in told for _ in range(row["times"])]
    assert sorted(found) == sorted(int(((low <= v) & (v <= high)).sum()) for v in values)


@pytest.fixture
def little_to_the_driver(session: Any) -> Iterator[list[int]]:
    """Lets Spark refuse all tasks of a job that return 2 MB; rows of each that come as a table."""
    rows: list[int] = []
    frames = type(session.range(1))
    read = frames.toArrow
    guards = session.sparkContext._jsc.sc().conf()
    before = guards.get(GUARD)
    guards.set(GUARD, "2m")

    def counted(frame: Any) -> pa.Table:
        found = read(frame)
        rows.append(len(found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "toArrow", counted)
        yield rows
    guards.set(GUARD, before)


@pytest.mark.parametrize(
    "values",
    [
        RANDOM.exponential(3.0, 20_000),
        np.repeat(RANDOM.normal(size=40), 300),
        np.concatenate((np.full(5_000, 2.5), [-1e9, 1e9])),
        np.arange(7.0),
        np.array([4.25]),
        RANDOM.pareto(0.5, 150_000),
        RANDOM.lognormal(0.0, 8.0, 150_000),
        np.full(150_000, -3.1),
        RANDOM.choice([-1e300, 5e-324], 150_000),
    ],
    ids=["continuous", "repeated", "outlying", "few", "one", "pareto", "log", "alike", "two"],
)
def test_percentiles_are_those_of_the_whole_order(
    session: Any, values: Any, little_to_the_driver: list[int]
) -> None:
    """Before, a part in which most values lie went to the driver."""
    found = distribution(session.createDataFrame(pa.table({"value": values})).repartition(3))
    assert found is not None
    ordered = np.sort(values)
    places = [percentile_place(len(ordered), per_cent) for per_cent in PER_CENTS.tolist()]
    assert found.centiles == ordered[places].tolist()
    assert found.mean == pytest.approx(ordered.mean(), rel=1e-12)
    assert max(little_to_the_driver) <= min(len(np.unique(values)), tallies._PARTS)
    assert len(little_to_the_driver) <= 6


def test_infinity_has_no_mean_and_is_refused(session: Any) -> None:
    with pytest.raises(JobError, match="holds infinity, expected finite numbers"):
        distribution(session.createDataFrame(pa.table({"value": [1.0, math.inf]})))


def test_values_may_come_with_how_often_and_of_no_rows_there_is_nothing(session: Any) -> None:
    values, times = RANDOM.integers(0, 500, 3_000), RANDOM.integers(1, 9, 3_000)
    frame = session.createDataFrame(pa.table({"value": values, "times": times})).repartition(3)
    found = distribution(frame)
    assert found is not None
    alone = session.createDataFrame(pa.table({"value": np.repeat(values, times)}))
    assert found == distribution(alone)
    assert distribution(session.createDataFrame(pa.table({"value": np.empty(0)}))) is None


@given(COLUMNS)
def test_values_are_counted_over_all_batches(rows: list[list[tuple[int, int]]]) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int32())])
    columns = [([b % 2**40 for _, b in one], [a for a, _ in one]) for one in rows]
    batches = [pa.record_batch([*one], schema=schema) for one in columns]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tallies, "_MOST_KEPT", 2)
        told = [row for batch in count_columns(batches) for row in batch.to_pylist()]
    for place, name in enumerate("ab"):
        found = {row["value"]: row["times"] for row in told if row["name"] == name}
        assert found == Counter(value for one in columns for value in one[place])


def tallied(counts: list[int]) -> Tallies:
    return Tallies(*np.unique(np.array(counts, np.int64), return_counts=True))


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=40))
def test_tallies_tell_what_the_counts_do(counts: list[int]) -> None:
    tallies = tallied(counts)
    assert tallies.gini() == pytest.approx(gini(np.array(counts)), abs=1e-9)
    assert (tallies.different, tallies.choices) == (len(counts), sum(counts))
    assert tallies.of_ranks(np.arange(1, len(counts) + 1)).tolist() == sorted(counts, reverse=True)


def test_a_ranking_goes_from_the_most_popular_on_and_of_nothing_is_empty() -> None:
    rows = {(row.part, row.name, row.x): row.value for row in ranking("a b", tallied([1, 6, 3]))}
    assert [rows["ranks", "a b", float(rank)] for rank in (1, 2, 3)] == [0.6, 0.3, 0.1]
    assert rows["measure", "a_b_first_share", 0.0] == 0.6
    assert list(ranking("x", tallied([]))) == []
    assert list(quantity("x", np.empty(0))) == []


@pytest.mark.parametrize(
    ("kind", "table", "settings"),
    [
        pytest.param("churn", "sessions", {"days": 1.0}, marks=pytest.mark.campaign),
        ("vinifera", "subscriptions", {}),
    ],
)
def test_a_workload_that_is_damaged_inside_leaves_nothing(
    session: Any, tmp_path: Path, kind: str, table: str, settings: dict[str, Any]
) -> None:
    asked = WorkloadRequest(subscriptions=200, events=10, settings=settings)
    write_by_hand(tmp_path / "w", kind, asked)
    made_up_results.damage(tmp_path / "w" / table / "part-0.parquet")
    with pytest.raises(JobError, match=r"part-0\.parquet is damaged, expected a whole Parquet"):
        spark_results.crunch(session, tmp_path, tmp_path / "out", plots=True)
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


EVENTS, TOLD = "events/part-0.parquet", "workload.json"
AS_FLOAT = {"value_0": lambda column: column.cast(pa.float64(), safe=False)}


@pytest.mark.parametrize(
    ("file", "how", "sentence"),
    [
        (EVENTS, lambda old: old[:-20], "part-0.parquet is damaged or no Parquet table"),
        (EVENTS, AS_FLOAT, "has a column value_0 of double, expected int64"),
        (
            "subscriptions/part-0.parquet",
            {"low_0": None},
            "has no column low_0, expected one of int64",
        ),
        (EVENTS, None, "events has 0 rows, expected 10"),
        (
            TOLD,
            lambda old: old.replace(b"vinifera", b"sorcery"),
            "is of the kind 'sorcery', expected one of vinifera, siena",
        ),
        (TOLD, lambda old: old[:40], "workload.json is not the description of a workload"),
        (
            TOLD,
            lambda _: b"{}",
            "workload.json has no kind, expected the description of a workload",
        ),
    ],
)
def test_an_unreadable_workload_is_refused(
    tmp_path: Path, file: str, how: Any, sentence: str
) -> None:
    write_by_hand(tmp_path / "w", "vinifera", WorkloadRequest(subscriptions=20, events=10))
    assert [run.name for run in find_runs([tmp_path])] == [f"{tmp_path}/w"]
    made_up_results.spoil(tmp_path / "w" / file, how)
    with pytest.raises(ResultsError, match=re.escape(sentence)) as refused:
        find_runs([tmp_path])
    assert "\n" not in str(refused.value)
