"""Measures follow their definitions, as do warm-ups; the result hash depends on results alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.errors import InvariantError
from gossamer.sim.results.intervals import mser5
from gossamer.sim.results.results import dump_json, result_hash, summarise
from gossamer.sim.results.tables import measures_by_key
from gossamer.sim.studies.peers.measuring.records import (
    DELIVERY_COLUMNS,
    EVENT_COLUMNS,
    RunRecord,
    SystemRecord,
)
from gossamer.sim.studies.peers.measuring.summary import (
    MEASURES,
    summarise_system,
    worst_hour_hit_ratio,
)
from gossamer.sim.study.records import check_table, empty_table, percentile
from support.made_up_runs import made_up_run, made_up_system
from support.sim_commands import printed_by


@pytest.fixture
def system() -> SystemRecord:
    return made_up_system("kindred", seed=5, nodes=60, cycles=40, period_s=60.0)


def with_table(system: SystemRecord, name: str, **columns: np.ndarray) -> SystemRecord:
    """``system`` with some columns of one table replaced."""
    return replace(system, **{name: {**getattr(system, name), **columns}})  # type: ignore[arg-type]


def with_system(record: RunRecord, system: SystemRecord) -> RunRecord:
    return replace(record, systems={**record.systems, system.name: system})


def test_the_final_overlay_is_the_last_one_measured_of_anybody(system: SystemRecord) -> None:
    population = np.array(system.cycles["population"])
    utility = np.linspace(0.1, 0.9, len(population))
    population[-2:] = 0
    utility[-4] = np.nan
    utility[-3] = np.nan
    emptied = with_table(system, "cycles", population=population, friend_utility=utility)
    assert summarise_system(emptied)["friend_utility_final"] == utility[-5]
    population[:] = 0
    nobody = with_table(system, "cycles", population=population)
    assert math.isnan(summarise_system(nobody)["friend_utility_final"])


def test_ratios_are_of_sums_and_control_messages_a_node_and_cycle(system: SystemRecord) -> None:
    events, measures = system.events, summarise_system(system)
    assert measures["hit_ratio"] == sum(events["delivered"]) / sum(events["expected"])
    assert measures["traffic_overhead"] == sum(events["uninterested"]) / sum(events["received"])
    assert measures["path_length_mean"] == pytest.approx(np.mean(system.deliveries["hops"]))
    population, messages = np.full(40, 50, np.int32), np.full(40, 200, np.int64)
    steady = with_table(system, "cycles", population=population, control_messages=messages)
    assert summarise_system(steady)["control_messages_per_node_cycle"] == 4.0


def test_worst_hour_ignores_hours_without_anything_due(system: SystemRecord) -> None:
    events = {column: values[:4] for column, values in system.events.items()} | {
        "time_s": np.array([0.0, 3599.0, 3600.0, 90000.0]),
        "expected": np.array([10, 10, 10, 0], dtype=np.int32),
        "delivered": np.array([10, 8, 7, 0], dtype=np.int32),
    }
    assert worst_hour_hit_ratio(events) == (1, 0.7)


def test_sums_do_not_overflow_and_nothing_to_measure_becomes_null(system: SystemRecord) -> None:
    large = np.full(40, 2**31 - 1, dtype=np.int32)
    measures = summarise_system(with_table(system, "events", received=large, expected=large))
    assert measures["received"] == 40 * (2**31 - 1)
    events, deliveries = empty_table(EVENT_COLUMNS), empty_table(DELIVERY_COLUMNS)
    silent = replace(system, events=events, deliveries=deliveries)
    assert math.isnan(summarise_system(silent)["hit_ratio"])
    summary = summarise(with_system(made_up_run(), silent))
    for key in ("hit_ratio", "worst_hour", "path_length_p99"):
        assert summary["systems"]["kindred"][key] is None
    assert json.loads(dump_json(summary)) == summary


@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=50),
    st.floats(0.01, 100, exclude_min=True),
)
def test_percentile_is_the_least_value_few_exceed(values: list[int], per_cent: float) -> None:
    answer = percentile(np.array(values), per_cent)
    needed = per_cent / 100 * len(values) * (1 - 1e-12)
    smaller = [value for value in values if value < answer]
    assert answer in values
    assert sum(value <= answer for value in values) >= needed
    assert not smaller or sum(value <= max(smaller) for value in values) <= needed * (1 + 2e-12)


def test_every_measure_is_in_the_summary_and_formats(system: SystemRecord) -> None:
    measures = summarise_system(system)
    for measure in MEASURES:
        assert measure.key in measures
        assert measure.format(measures[measure.key]).strip()
    assert measures_by_key()["hit_ratio"].format(0.99942) == "99.94 %"
    assert measures_by_key()["duplicates"].format(1200) == "1,200"
    assert measures_by_key()["path_length_mean"].format(None) == "-"


def test_scenario_values_become_plain(tmp_path: Path) -> None:
    scenario = {
        "day": date(2005, 9, 12),
        "trace": tmp_path,
        "sizes": (np.int64(3), np.float32(0.5)),
        "weights": np.array([1.0, math.inf]),
    }
    assert summarise(replace(made_up_run(), scenario=scenario))["scenario"] == {
        "day": "2005-09-12",
        "trace": str(tmp_path),
        "sizes": [3, 0.5],
        "weights": [1.0, None],
    }


def test_hash_ignores_what_the_seed_does_not_decide_orders_and_signs_of_zero() -> None:
    record = made_up_run(seed=4)
    elsewhere = replace(
        record,
        wall_s=99.0,
        peak_rss_bytes=1,
        versions={"python": "3.13"},
        scenario_text="other words",
        systems=dict(reversed(list(record.systems.items()))),
    )
    assert result_hash(elsewhere) == result_hash(record)
    system = record.systems["kindred"]
    deliveries = system.deliveries
    order = np.random.default_rng(0).permutation(len(deliveries["event"]))
    is_zero = system.cycles["ring_correct"] == 0
    straight, negative = (
        with_table(system, "cycles", ring_correct=np.where(is_zero, zero, 1.0))
        for zero in (0.0, -0.0)
    )
    mixed = {name: deliveries[name][order] for name in reversed(list(deliveries))}
    shuffled = replace(negative, deliveries=mixed)
    assert result_hash(with_system(record, shuffled)) == result_hash(with_system(record, straight))


@pytest.mark.parametrize("name", ["events", "deliveries", "nodes", "cycles"])
def test_hash_sees_every_column(system: SystemRecord, name: str) -> None:
    record = with_system(made_up_run(), system)
    for column, values in getattr(system, name).items():
        changed = values.copy()
        changed[-1] = 0 if np.isnan(values[-1]) else changed[-1] + 1
        other = with_system(record, with_table(system, name, **{column: changed}))
        assert result_hash(other) != result_hash(record), column


def test_hash_sees_seed_totals_and_overlay(system: SystemRecord) -> None:
    record = with_system(made_up_run(), system)
    others = [
        replace(record, seed=record.seed + 1),
        with_system(record, replace(system, totals={"messages_lost": -1})),
        with_system(record, replace(system, overlay=None)),
    ]
    assert len({result_hash(other) for other in others} | {result_hash(record)}) == 4


@pytest.mark.parametrize("hash_seed", ["1", pytest.param("0", marks=pytest.mark.campaign)])
def test_hash_is_independent_of_string_hashing(hash_seed: str) -> None:
    program = (
        "from support.made_up_runs import made_up_run;"
        "from gossamer.sim.results.results import result_hash;"
        "print(result_hash(made_up_run(seed=8)))"
    )
    assert printed_by(program, hash_seed) == result_hash(made_up_run(seed=8))


def test_engine_defects_in_tables_are_found(system: SystemRecord) -> None:
    short = {**system.events, "cycle": system.events["cycle"][:-1]}
    with pytest.raises(InvariantError, match="unequal shape"):
        replace(system, events=short)
    with pytest.raises(InvariantError, match="column cycle of table events is int64"):
        with_table(system, "events", cycle=system.events["cycle"].astype(np.int64))
    with pytest.raises(InvariantError, match="foreign columns: extra"):
        with_table(system, "events", extra=system.events["cycle"])
    check_table("deliveries", empty_table(DELIVERY_COLUMNS), DELIVERY_COLUMNS)


def slow_mser5(values: list[float]) -> int:
    """Values to be left out, by the definition: the least sum of squares over the square of n."""
    batches = [sum(values[i : i + 5]) / 5 for i in range(0, len(values) - len(values) % 5, 5)]
    best, least = 0, math.inf
    for cut in range(len(batches) - 3):
        kept = batches[cut:]
        mean = sum(kept) / len(kept)
        error = sum((one - mean) ** 2 for one in kept) / len(kept) ** 2
        if error < least * (1 - 1e-9):
            best, least = cut, error
    return 5 * best


@given(st.lists(st.integers(-50, 50), min_size=20, max_size=80))
def test_it_leaves_out_what_the_definition_says(values: list[int]) -> None:
    found = mser5(values)
    expected = slow_mser5([float(one) for one in values])
    if found.left_out != expected:  # equal errors but for rounding
        assert mser_error(values, found.left_out) == pytest.approx(mser_error(values, expected))
    assert found.mean == pytest.approx(float(np.mean(values[found.left_out :])))


def mser_error(values: list[int], left_out: int) -> float:
    """The standard error squared of the batches that are kept."""
    batches = np.array(values[: len(values) - len(values) % 5], float).reshape(-1, 5).mean(axis=1)
    kept = batches[left_out // 5 :]
    return float(kept.var()) / len(kept)


def test_a_start_from_nothing_is_left_out_and_a_series_that_never_settles_says_so() -> None:
    noise = np.random.Generator(np.random.Philox(key=3)).normal(0, 0.01, 200)
    found = mser5(1 - np.exp(-np.arange(200) / 8) + noise)
    assert 20 <= found.left_out <= 60
    assert found.settled
    assert abs(found.mean - 1) < 0.01
    assert not mser5(np.arange(100.0) ** 2).settled


@pytest.mark.parametrize("count", [0, 1, 19])
def test_too_short_a_series_tells_its_mean_and_that_it_is_not_to_be_trusted(count: int) -> None:
    found = mser5(np.ones(count))
    assert (found.left_out, found.settled) == (0, False)
    assert math.isnan(found.mean) if count == 0 else found.mean == 1
