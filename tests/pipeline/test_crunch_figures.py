"""Crunched figures against slow oracles that read rows one by one, and claims; no Spark needed."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.errors import ScenarioError
from gossamer.sim.figures.vinifera.studies import BASELINE, PAPER, RANDOM, SKEWED
from gossamer.sim.results.interval_plots import averaged, strengths_of
from gossamer.sim.results.intervals import (
    Value,
    cliffs_delta,
    comparisons,
    condition_of,
    conditions,
    half_width,
    hedges_g,
    intervals,
    variant,
)
from gossamer.sim.results.storage.place import LocalPlace
from gossamer.sim.studies.peers.measuring.summary import peer_rows
from gossamer.sim.studies.tree_brokers.records import broker_rows
from gossamer.sim.study import records
from gossamer.spark.crunch import claims, deliveries
from gossamer.spark.crunch.curves import Curve
from gossamer.spark.crunch.folders import Run
from support.made_up_runs import made_up_system

numbers = st.floats(0, 1e6, allow_nan=False).map(lambda value: round(value, 3))
delivery = st.tuples(
    st.integers(0, 5),
    st.one_of(st.none(), st.integers(0, 5)),
    st.one_of(st.none(), st.sampled_from([0.0, 60.0, 120.0, 0.1])),
)
SIZES = (500, 1000)
# What overhead is without chance, such that V3 holds.
OVERHEADS = {
    (BASELINE, RANDOM): 0.82,
    (PAPER, RANDOM): 0.6,
    (BASELINE, SKEWED): 0.41,
    (PAPER, SKEWED): 0.1,
}


def slow_percentile(values: Sequence[float], per_cent: int) -> float:
    """The smallest value that so many per cent do not exceed."""
    places = enumerate(sorted(values), start=1)
    return next(one for place, one in places if 100 * place >= per_cent * len(values))


def slow_gini(values: Sequence[float]) -> float:
    """Half the relative mean difference over all pairs."""
    pairs = sum(abs(one - other) for one in values for other in values)
    return pairs / (2 * len(values) * sum(values)) if sum(values) else 0.0


@given(st.lists(numbers, min_size=1, max_size=60))
def test_gini_is_half_the_mean_difference_and_lorenz_curves_convex(
    values: list[float],
) -> None:
    assert records.gini(np.array(values)) == pytest.approx(slow_gini(values), abs=1e-9)
    curve = records.lorenz(np.array(values))
    assert (curve[0], curve[-1]) == (0.0, pytest.approx(1.0))
    assert (np.diff(curve, 2) >= -1e-9).all()
    assert (curve <= np.arange(101) / 100 + 1e-9).all()


@given(st.lists(st.integers(0, 20), min_size=1, max_size=100), st.integers(0, 100))
def test_percentiles_of_counts_are_those_of_the_values(values: list[int], per_cent: int) -> None:
    different, times = np.unique(np.array(values, np.float64), return_counts=True)
    found = deliveries.counted_percentile(different, times, per_cent)
    assert found == slow_percentile([float(value) for value in values], per_cent)
    assert found == records.percentile(np.array(values), per_cent)


@given(st.lists(delivery, min_size=1, max_size=80))
def test_deliveries_are_counted_by_rows(
    rows: list[tuple[int, int | None, float | None]],
) -> None:
    names = deliveries.COUNT_SCHEMA.names
    columns = [[7] * len(rows), *(list(column) for column in zip(*rows, strict=True))]
    schema = pa.schema([deliveries.COUNT_SCHEMA.field(name) for name in names[:-1]])
    table = deliveries.counted(pa.table(dict(zip(names, columns, strict=False)), schema=schema))
    assert sum(table["count"].to_pylist()) == len(rows)
    plain = {
        name: np.array([math.nan if one is None else one for one in table[name].to_pylist()])
        for name in names[1:]
    }
    found = {
        row.name: row.value for row in deliveries.count_rows(plain) if row.part == records.MEASURE
    }
    hops = [float(hops) for hops, _, _ in rows]
    assert found["deliveries"] == len(rows)
    assert found["path_length_mean"] == pytest.approx(sum(hops) / len(hops), rel=1e-12)
    for per_cent in (50, 90, 95, 99):
        assert found[f"path_length_p{per_cent}"] == slow_percentile(hops, per_cent)
    delays = [delay for _, _, delay in rows if delay is not None]
    assert ("delay_mean_s" in found) is bool(delays)
    if delays:
        assert (found["delay_max_s"], found["delay_p90_s"]) == (
            max(delays),
            slow_percentile(delays, 90),
        )


@given(
    cycles=st.lists(st.integers(0, 30), unique=True, max_size=8),
    events=st.lists(st.integers(0, 30), max_size=12),
    lacking=st.sampled_from([None, "events", "cycles"]),
)
def test_delays_begin_with_the_round_that_an_event_was_published_in(
    cycles: list[int], events: list[int], lacking: str | None
) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        tables: dict[str, dict[str, Sequence[float]]] = {
            "events": {"event": list(range(len(events))), "cycle": events},
            "cycles": {"cycle": cycles, "time_s": [60.0 * cycle for cycle in cycles]},
        }
        for name, columns in tables.items():
            if name == lacking:
                del columns["cycle"]
            types = {key: pa.float64() if key == "time_s" else pa.int64() for key in columns}
            schema = pa.schema(list(types.items()))
            pq.write_table(pa.table(columns, schema=schema), folder / f"{name}.parquet")
        known, began = deliveries.published(LocalPlace(folder))
    expected = {event: 60.0 * cycle for event, cycle in enumerate(events) if cycle in cycles}
    assert dict(zip(known.tolist(), began.tolist(), strict=True)) == ({} if lacking else expected)


def slow_event_figures(events: dict[str, Any]) -> dict[str, float]:
    rows = [dict(zip(events, row, strict=True)) for row in zip(*events.values(), strict=True)]
    missed = [max(int(row["expected"]) - int(row["delivered"]), 0) for row in rows]
    nobody = sum(m for m, row in zip(missed, rows, strict=True) if row["delivered"] == 0)
    expected, received, delivered, duplicates, uninterested = (
        sum(int(row[name]) for row in rows)
        for name in ("expected", "received", "delivered", "duplicates", "uninterested")
    )
    return {
        "hit_ratio": delivered / expected if expected else math.nan,
        "traffic_overhead": uninterested / received if received else math.nan,
        "missed": sum(missed),
        "missed_events": sum(m > 0 for m in missed),
        "missed_event_reached_nobody": nobody,
        "missed_event_reached_others": sum(missed) - nobody,
        "duplicates": duplicates,
        "duplicate_ratio": duplicates / came if (came := duplicates + delivered) else math.nan,
    }


@given(seed=st.integers(0, 2**31), nodes=st.integers(1, 40), cycles=st.integers(0, 30))
def test_measures_of_peers_are_those_of_single_rows(seed: int, nodes: int, cycles: int) -> None:
    system = made_up_system("paper", seed, max(nodes, 2), cycles, 60.0)
    few = {name: column[:nodes] for name, column in system.nodes.items()}
    rows = list(peer_rows(system.events, few, system.cycles))
    found = {row.name: row.value for row in rows if row.part == records.MEASURE}
    for name, value in slow_event_figures(dict(system.events)).items():
        assert found[name] == pytest.approx(value, nan_ok=True), name
    load = few["load"].tolist()
    assert found["nodes"] == len(load)
    assert found["load_gini"] == pytest.approx(slow_gini(load), abs=1e-9)
    for per_cent in (50, 90, 95, 99, 100):
        name = "load_max" if per_cent == 100 else f"load_p{per_cent}"
        assert found[name] == slow_percentile(load, per_cent)
    assert found["load_mean"] == pytest.approx(sum(load) / len(load))
    population = sum(system.cycles["population"].tolist())
    ratio = sum(system.cycles["control_messages"].tolist()) / population if population else math.nan
    assert found["control_messages_per_node_cycle"] == pytest.approx(ratio, nan_ok=True)
    curve = [row for row in rows if (row.part, row.name) == (records.CDF, "load")]
    assert [row.value for row in curve] == [slow_percentile(load, p) for p in range(101)]
    assert sum(row.part == records.LORENZ for row in rows) == 101


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=900))
def test_a_series_keeps_the_sums_of_its_groups(pairs: list[tuple[int, int]]) -> None:
    parts, wholes = np.array(pairs, np.int64).reshape(-1, 2).T
    points = list(records.series("x", np.arange(len(pairs)) * 60.0, parts, wholes))
    size = max(1, -(-len(pairs) // records.MOST_POINTS))
    expected = []
    for first in range(0, len(pairs), size):
        shares, sums = (sum(column) for column in zip(*pairs[first : first + size], strict=True))
        if sums:
            expected.append((first * 60.0, shares / sums))
    about: list[tuple[float, object]] = [(x, pytest.approx(value)) for x, value in expected]
    assert [(row.x, row.value) for row in points] == about
    assert all(row.part == records.SERIES for row in points)


def test_queues_of_any_brokers_are_crunched() -> None:
    queues = {"time_s": np.array([1.0, 2.0]), "B1": np.array([3, 0]), "B7": np.array([1, 9])}
    counts = {"table": [4, 6], "handled": [0, 10], "publications": [5, 5]}
    counts["false_positives"] = [1, 0]
    rows = list(broker_rows(queues, {name: np.array(two) for name, two in counts.items()}))
    found = {row.name: row.value for row in rows if row.part == records.MEASURE}
    names = ("queue_max", "false_positive_ratio", "handled_gini")
    assert [found[name] for name in names] == [9, 0.1, 0.5]
    assert math.isnan(found["triggered_messages"])
    assert [row.value for row in rows if row.part == records.SERIES] == [3.0, 9.0]


def owner(seed: int, system: str = "a", run: str = "") -> dict[str, Any]:
    return {"run": run or f"{seed}", "condition": (), "seed": seed, "system": system}


def value(seed: int, number: float, system: str = "a") -> Value:
    return Value(**owner(seed, system), measure="m", value=number, method="exact")


@given(st.lists(numbers, min_size=1, max_size=12))
def test_intervals_are_student_s_of_the_values_that_are_there(values: list[float]) -> None:
    (found,) = intervals([value(1, 2.0), value(2, math.nan), value(3, 4.0)])
    assert (found.seeds, found.mean) == (2, 3.0)
    assert intervals([value(1, math.nan)]) == []
    (found,) = intervals(value(seed, one) for seed, one in enumerate(values))
    assert found.seeds == len(values)
    assert found.mean == pytest.approx(sum(values) / len(values))
    if len(values) == 1:
        assert math.isnan(found.low)
        return
    from scipy.stats import t

    error = np.std(values, ddof=1) / math.sqrt(len(values))
    low, high = t.interval(0.95, len(values) - 1, np.mean(values), max(error, 1e-300))
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=10))
def test_systems_are_compared_over_the_seeds_of_both(pairs: list[tuple[float, float]]) -> None:
    values = [value(seed, one) for seed, (one, _) in enumerate(pairs)]
    values += [value(seed, other, "b") for seed, (_, other) in enumerate(pairs)]
    (found,) = comparisons([*values, value(99, 5.0, "b")])
    assert (found.first, found.second, found.seeds) == ("a", "b", len(pairs))
    differences = [other - one for one, other in pairs]
    assert found.difference == pytest.approx(sum(differences) / len(pairs), abs=1e-9)
    larger = sum((other > one) - (other < one) for one, _ in pairs for _, other in pairs)
    assert found.cliffs_delta == pytest.approx(larger / len(pairs) ** 2)


def test_effect_sizes_have_their_textbook_values() -> None:
    one, other = [1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0]
    assert hedges_g(one, other) == pytest.approx((1 - 3 / 23) * 2 / math.sqrt(5 / 3))
    assert cliffs_delta(one, other) == pytest.approx(12 / 16)
    assert math.isnan(hedges_g([1.0], [2.0]))
    assert math.isnan(hedges_g([1.0, 1.0], [1.0, 1.0]))


def test_conditions_are_what_differs_but_the_seed_and_other_systems() -> None:
    def scenario(nodes: int, seed: int, friends: int) -> dict[str, Any]:
        systems = [
            {"name": "v", "settings": {"friend_links": friends}},
            {"name": "b", "settings": {"small_world_links": 8}},
        ]
        return {"nodes": nodes, "seed": seed, "rounds": 5, "systems": systems, "name": f"{seed}"}

    runs = [scenario(100, 1, 4), scenario(100, 2, 8), scenario(200, 1, 4)]
    given = [(system, condition_of(run, system)) for run in runs for system in ("v", "b")]
    found = conditions(given)
    assert found[0] == (("nodes", 100), ("settings.friend_links", 4))
    assert found[1] == (("nodes", 100),)
    assert found[2] == (("nodes", 100), ("settings.friend_links", 8))
    assert variant("v", found[2]) == "v (friend_links=8)"
    assert conditions(given[:1]) == [()]


def test_curves_are_averaged_over_seeds_place_by_place_and_drawn_more_and_more_weakly() -> None:
    assert strengths_of(["a", "b", "a", "a"]) == pytest.approx([0.95, 0.95, 0.6, 0.25])
    points = [np.array([(0.0, 1.0), (50.0, one), (100.0, 4.0)]) for one in (1.0, 2.0, 6.0)]
    alike = [Curve(**owner(1), part=records.CDF, name="load", points=one) for one in points]
    places, means, halves = averaged(alike)
    assert (places.tolist(), means.tolist()) == ([0, 50, 100], [1, 3, 4])
    assert halves.tolist() == pytest.approx([0, half_width([1.0, 2.0, 6.0]), 0])
    assert averaged(alike[:1])[2].tolist() == [0, 0, 0]


def swept(folder: Path, seeds: Sequence[int]) -> tuple[list[Run], list[Value]]:
    """Runs of a sweep over sizes, kinds, systems and seeds, with their overheads."""
    draw = np.random.default_rng(1)
    runs, values = [], []
    for seed, nodes, ((system, kind), overhead) in product(seeds, SIZES, OVERHEADS.items()):
        path = folder / f"{seed}-{nodes}-{system}-{kind}"
        path.mkdir()
        (path / "scenario.toml").write_text(
            f"nodes = {nodes}\nrounds = 20\nseed = {seed}\n"
            f'[subscriptions]\nkind = "{kind}"\n'
            f'[[system]]\nname = "{system}"\n'
        )
        runs.append(Run(name=path.name, path=LocalPlace(path), summary={}, systems=(), digest=""))
        found = overhead + float(draw.normal(0, 0.005))
        of_run = owner(seed, system, path.name)
        values.append(Value(**of_run, measure="traffic_overhead", value=found, method="exact"))
    return runs, values


def test_a_claim_is_judged_with_student_s_interval_of_a_mean(tmp_path: Path) -> None:
    runs, values = swept(tmp_path, seeds=(1, 2, 3, 4, 5))
    (checked,) = claims.check_claims(["V3"], runs, values)
    assert (checked.claim.id, checked.claim.verdict, checked.seeds) == ("V3", "holds", 5)
    rows = {check.name: (check, low, high) for check, low, high in checked.rows()}
    there = np.array([one.value for one in values if "-1000-baseline-random" in one.run])
    check, low, high = rows["baseline, random at 1,000 nodes"]
    mean, half = there.mean(), half_width(there)
    assert (check.value, low, high) == pytest.approx((mean, mean - half, mean + half))
    skewed = np.array([one.value for one in values if "-1000-baseline-skewed" in one.run])
    check, low, high = rows["baseline, skewed over random at 1,000 nodes"]
    assert check.value == pytest.approx(skewed.mean() / there.mean())
    assert low < check.value < high


def test_a_value_out_of_bounds_decides(tmp_path: Path) -> None:
    runs, values = swept(tmp_path, seeds=(1, 2))
    high = [attrs.evolve(one, value=0.9) if "paper-random" in one.run else one for one in values]
    (checked,) = claims.check_claims(["V3"], runs, high)
    assert checked.claim.verdict == "differs"
    assert "Vinifera, random at 1,000 nodes 90.0 %" in checked.claim.reason
    assert "nan" not in checked.claim.reason


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    (checked,) = claims.check_claims(["V3"], *swept(tmp_path, seeds=(1,)))
    assert checked.seeds == 1
    assert all(math.isnan(end) for ends in checked.ends for end in ends)


def test_runs_that_decide_have_to_be_there(tmp_path: Path) -> None:
    runs, values = swept(tmp_path, seeds=(1,))
    some = [one for one in values if "baseline-skewed" not in one.run]
    expected = r"--claim is 'V6', expected runs of baseline \(skewed\) among"
    with pytest.raises(ScenarioError, match=expected):
        claims.check_claims(["V6"], runs, some)
    with pytest.raises(ScenarioError, match="--claim is 'V9', expected one of V3, V6"):
        claims.check_names(["V3", "V9"])
