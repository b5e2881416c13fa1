"""Workloads of peers: topics, widths, drifting interests, who publishes; and those of tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gossamer.protocol.peer.space.ring import RING, RING_MASK
from gossamer.sim.commands.run import workload_overrides
from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results.storage.workloads import WORKLOAD_FILE
from gossamer.sim.row_tables.kinds import WorkloadRequest, make_workload
from gossamer.sim.studies.peers.inputs import workload as drifting
from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.inputs.own_workload import workload_of
from gossamer.sim.studies.peers.inputs.publications import Publishers
from gossamer.sim.studies.peers.inputs.scenario import Events, Scenario, Subscriptions, System
from gossamer.sim.studies.peers.inputs.taken_from import TakenFrom
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.studies.peers.running.preparation import prepare
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.study.scenarios import read_scenario

SEED = 5


def wanted(boxes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """bool[n, S]: which subscriptions match the values."""
    return np.asarray(((boxes[..., 0::2] <= values) & (values <= boxes[..., 1::2])).all(axis=2))


@pytest.mark.parametrize("attributes", [1, 3])
def test_topics_are_the_same_for_all_and_apart_from_each_other(attributes: int) -> None:
    spec = Subscriptions(
        kind="topics", places=30, per_node=4, width=0.2, exponent=1.0, attributes=attributes
    )
    workload = Workload(spec, SEED)
    boxes, constrained = workload.subscriptions(500)
    assert (constrained == (1 << attributes) - 1).all()
    topics = np.unique(boxes.reshape(-1, 2 * attributes), axis=0)
    assert len(topics) == 30
    for own in boxes:
        assert len(np.unique(own, axis=0)) == 4
    for event in workload.events(0, 50):
        of = wanted(topics[:, np.newaxis], event)
        assert of.sum() == 1, event
        expected = (boxes == topics[of.argmax()]).all(axis=2).any(axis=1)
        assert (wanted(boxes, event).any(axis=1) == expected).all()


def test_popular_topics_have_more_subscribers_whichever_rows_are_drawn() -> None:
    spec = Subscriptions(kind="topics", places=10, exponent=1.5, per_node=1)
    ranks = Workload(spec, SEED).subscription_rows(np.arange(20_000))[2]
    shares = np.bincount(ranks, minlength=10) / 20_000
    weights = np.arange(1, 11) ** -1.5
    assert np.abs(shares - weights / weights.sum()).max() < 0.01
    everything = Workload(Subscriptions(kind="topics", places=6, per_node=6), SEED)
    drawn = everything.subscription_rows(np.arange(60))[2].reshape(10, 6)
    assert (np.sort(drawn, axis=1) == np.arange(6)).all()
    workload = Workload(Subscriptions(kind="topics", places=12, per_node=3), SEED)
    together = workload.subscription_rows(np.arange(30_000))
    rows = np.array([29_999, 7, 12_288, 3])
    for all_of_it, some in zip(together, workload.subscription_rows(rows), strict=True):
        assert (all_of_it[rows] == some).all()


def test_widths_spread_evenly_over_their_decades_around_the_mean() -> None:
    spec = Subscriptions(kind="random", width=0.01, width_decades=3.0)
    widths = Workload(spec, SEED)._widths(np.arange(100_000), 0)
    assert widths.mean() == pytest.approx(0.01, rel=0.02)
    decades = np.log10(widths / widths.min())
    assert decades.max() == pytest.approx(3.0, abs=0.01)
    assert np.histogram(decades, 6)[0] / 100_000 == pytest.approx(np.full(6, 1 / 6), abs=0.01)


def test_an_aspect_makes_ranges_wide_on_one_attribute_and_keeps_their_volume() -> None:
    spec = Subscriptions(kind="random", attributes=2, width=0.1, aspect=25.0)
    plain, stripes = (
        Workload(one, SEED) for one in (Subscriptions(kind="random", attributes=2), spec)
    )
    rows = np.arange(10_000)
    before, after = (
        np.array([workload._widths(rows, a) for a in range(2)]) for workload in (plain, stripes)
    )
    factors = after / before
    assert np.sort(factors, axis=0) == pytest.approx(np.tile([[0.2], [5.0]], 10_000))
    assert (factors[0] > 1).mean() == pytest.approx(0.5, abs=0.02)
    least, most = stripes.extreme_widths()
    assert least <= after.min() <= 1.01 * least
    assert 0.99 * most <= after.max() <= most
    with pytest.raises(ScenarioError, match=r"subscriptions\.aspect is 2\.0, expected 1 with"):
        Subscriptions(kind="random", aspect=2.0)


def test_impossible_topics_are_refused() -> None:
    for fields, words in (
        ({"places": 9999}, r"places is 9999, expected at most 4096 topics"),
        ({"places": 3, "per_node": 4}, r"per_node is 4, expected at most 3"),
        ({"width_decades": 1.0}, r"width_decades is 1\.0, expected 0, as topics"),
    ):
        with pytest.raises(ScenarioError, match=rf"subscriptions\.{words}"):
            Subscriptions(kind="topics", **fields)


def test_a_share_of_the_subscribers_replaces_what_it_wants() -> None:
    workload = Workload(Subscriptions(kind="random", per_node=2, subscribers=0.5), SEED)
    drift = Drift(replaced=0.3)
    boxes, constrained = workload.subscriptions(2000)
    nodes, first = drifting.changed_boxes(workload, drift, 1, boxes, constrained)
    silent = constrained[:, 0] < 0
    assert len(nodes) / (~silent).sum() == pytest.approx(0.3, abs=0.05)
    assert not silent[nodes].any()
    assert (first != boxes[nodes]).any(axis=2).all()
    again, second = drifting.changed_boxes(workload, drift, 2, boxes, constrained)
    assert set(again) != set(nodes)
    both, one, other = np.intersect1d(nodes, again, return_indices=True)
    assert len(both)
    assert (first[one] != second[other]).any(axis=2).all()


def test_shifted_ranges_keep_their_widths_and_others_are_replaced() -> None:
    workload = Workload(Subscriptions(kind="random", attributes=2, width=0.2), SEED)
    boxes, constrained = workload.subscriptions(1000)
    nodes, moved = drifting.changed_boxes(
        workload, Drift(shifted=1.0, shift=0.1), 1, boxes, constrained
    )
    assert (nodes == np.arange(1000)).all()
    low, high = moved[..., 0::2], moved[..., 1::2]
    assert low.min() >= 0
    assert high.max() <= RING_MASK
    assert (high - low == boxes[..., 1::2] - boxes[..., 0::2]).all()
    inner = (low > 0) & (high < RING_MASK)
    assert ((low - boxes[..., 0::2])[inner] / RING).std() == pytest.approx(0.1, rel=0.1)
    workload = Workload(Subscriptions(kind="random", width=0.01), SEED)
    boxes, constrained = workload.subscriptions(5000)
    drift = Drift(replaced=0.2, shifted=0.3, shift=0.001)
    nodes, moved = drifting.changed_boxes(workload, drift, 1, boxes, constrained)
    far = np.abs(moved - boxes[nodes])[:, 0, 0] > 0.005 * RING
    assert len(nodes) / 5000 == pytest.approx(0.5, abs=0.03)
    assert far.mean() == pytest.approx(0.4, abs=0.03)


def test_changes_come_at_their_times_of_no_more_than_everybody_and_events_move_around() -> None:
    drift = Drift(every_s=100.0, event_shift=0.25)
    assert [drifting.changes_before(drift, time_s) for time_s in (0, 99.9, 100, 250)] == [
        0,
        0,
        1,
        2,
    ]
    values = np.array([[0, RING // 2], [RING - 1, 5]])
    assert (drifting.drifted_values(drift, values, 0.0) == values).all()
    assert (drifting.drifted_values(drift, values, 400.0) == values).all()
    assert (drifting.drifted_values(drift, values, 200.0) == (values + RING // 2) % RING).all()
    with pytest.raises(ScenarioError, match=r"drift\.shifted is 0\.5, expected at most 0\.4"):
        Drift(replaced=0.6, shifted=0.5)


def test_all_publish_as_often_unless_a_subset_does_and_some_of_it_more() -> None:
    online = np.array([True, False, True, True])
    everybody = Publishers(Events(), 4, SEED)
    assert [everybody.choose(draw, online) for draw in (0.0, 0.34, 0.99)] == [0, 2, 3]
    assert everybody.choose(0.5, np.zeros(4, np.bool_)) is None
    draws, online = np.random.default_rng(SEED).random(4000), np.ones(200, np.bool_)
    few = Publishers(Events(publishers=0.05, publisher_exponent=1.0), 200, SEED)
    chosen = [one for draw in draws if (one := few.choose(draw, online)) is not None]
    assert len(chosen) == len(draws)
    counts = np.sort(np.unique(chosen, return_counts=True)[1])[::-1]
    weights = 1 / np.arange(1, 11)
    assert counts / 4000 == pytest.approx(weights / weights.sum(), abs=0.03)
    first = max(set(chosen), key=chosen.count)
    assert first is not None
    online[first] = False
    assert first not in [few.choose(draw, online) for draw in draws[:200]]


def test_a_share_of_the_nodes_subscribes_late_spread_over_the_changes_if_it_is_asked_for() -> None:
    workload, drift, nodes = Workload(Subscriptions(), 7), Drift(late=0.5, late_changes=10), 4000
    found, again = (drifting.late_changes(workload, drift, nodes) for _ in range(2))
    counts = np.bincount(found, minlength=11)
    assert len(counts) == 11
    assert 0.45 < counts[0] / nodes < 0.55
    assert (counts[1:] > nodes * 0.5 / 10 * 0.7).all()
    assert np.array_equal(found, again)
    assert not drifting.late_changes(workload, Drift(), nodes).any()


# Workloads that are taken from tables


SETTINGS: dict[str, Any] = {"attributes": 2, "per_node": 2, "width": 0.2, "subscribers": 0.8}
ASKED: dict[str, Any] = {"seed": SEED, "subscriptions": 80, "events": 30, "settings": SETTINGS}


def written(folder: Path, kind: str = "vinifera", files: int = 3, **changes: Any) -> Path:
    """A workload in a folder, its tables in several files."""
    asked = WorkloadRequest(**(ASKED | changes))
    tables = make_workload(kind, asked).tables()
    for table in tables:
        (folder / table.name).mkdir(parents=True)
        rows = table.table()
        for part in range(files):
            first, end = (at * len(rows) // files for at in (part, part + 1))
            file = folder / table.name / f"part-{part:05}.parquet"
            pq.write_table(rows.slice(first, end - first), file)
    counts = {"subscriptions": asked.subscriptions, "events": asked.events}
    told: dict[str, Any] = {
        "kind": kind,
        "seed": asked.seed,
        "settings": {**counts, **asked.settings},
    }
    told["tables"] = {table.name: {"rows": table.units} for table in tables}
    (folder / WORKLOAD_FILE).write_text(json.dumps(told))
    return folder


def scenario(folder: Path | None, **changes: Any) -> Scenario:
    given: dict[str, Any] = {"nodes": 40, "rounds": 14, "seed": SEED}
    given["subscriptions"] = Subscriptions(**SETTINGS)
    given["events"] = Events(per_round=3, warm_up_rounds=6)
    given["systems"] = (System(name="vinifera"),)
    given["workload"] = None if folder is None else TakenFrom(folder=folder)
    return Scenario(**given | changes)


def test_rows_of_tables_and_their_simulation_are_those_of_what_is_drawn(tmp_path: Path) -> None:
    taken = workload_of(scenario(written(tmp_path / "w")))
    drawn = Workload(Subscriptions(**SETTINGS), SEED)
    np.testing.assert_equal(taken.subscriptions(40), drawn.subscriptions(40))
    np.testing.assert_array_equal(taken.events(7, 20), drawn.events(7, 20))
    rows = np.arange(3, 12)
    np.testing.assert_array_equal(taken.publisher_rows(rows), drawn.publisher_rows(rows))
    run, same = simulate(scenario(tmp_path / "w")), simulate(scenario(None))
    found, expected = (dict(one.systems["vinifera"].tables()) for one in (run, same))
    np.testing.assert_equal(found, expected)
    told = run.scenario["workload"]
    assert (told["folder"], len(told["fingerprint"])) == ("w", 64)
    assert "workload" not in same.scenario


def test_the_same_workload_elsewhere_has_the_same_fingerprint(tmp_path: Path) -> None:
    one, other = (
        simulate(scenario(written(tmp_path / name / "w", files=files), rounds=8)).scenario
        for name, files in (("a", 1), ("b", 4))
    )
    assert one["workload"] == other["workload"]


def test_what_no_workload_gives_is_refused(tmp_path: Path) -> None:
    folder, wider = written(tmp_path / "w"), Subscriptions(**SETTINGS | {"width": 0.3})
    for changes, words in (
        ({"nodes": 41}, "nodes is 41, expected at most 40, for which the workload"),
        ({"rounds": 18}, "expected a rate by which no more are published than the 30"),
        ({"subscriptions": wider}, "subscriptions.width is 0.3, expected 0.2, as in the workload"),
    ):
        with pytest.raises(ScenarioError, match=re.escape(words)):
            prepare(scenario(folder, **changes))


def test_other_folders_changes_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"drift\.replaced"):
        scenario(tmp_path, drift=Drift(every_s=60.0, replaced=0.1))
    with pytest.raises(ResultsError, match="holds no workload, expected"):
        prepare(scenario(tmp_path))
    siena = written(tmp_path / "s", "siena", settings={})
    with pytest.raises(ScenarioError, match="expected 'vinifera', for a simulation of peers"):
        prepare(scenario(siena))
    file = tmp_path / "peers.toml"
    file.write_text("nodes = 40\n")
    with pytest.raises(ScenarioError, match=r"--workload is 'siena', expected a workload that"):
        workload_overrides(file, [str(siena)], {})
    folder = written(tmp_path / "w")
    (folder / "events" / "part-00001.parquet").unlink()
    with pytest.raises(ScenarioError, match="rows is 20, expected 30"):
        workload_of(scenario(folder)).events(0, 1)


def test_the_command_line_takes_workloads_by_kind(tmp_path: Path) -> None:
    folder, file = written(tmp_path / "w"), tmp_path / "peers.toml"
    file.write_text("nodes = 40\n[subscriptions]\nwidth = 0.7\n")
    churn = written(tmp_path / "c", "churn", subscriptions=30, settings={"days": 1.0})
    overrides = workload_overrides(file, [str(folder), f"file://{churn}"], {"nodes": 30})
    assert overrides["churn.trace"] == churn / "trace.parquet"
    found, _ = read_scenario(file, overrides)
    assert isinstance(found, Scenario)
    assert found.workload == TakenFrom(folder=folder)
    assert (found.subscriptions, found.nodes) == (Subscriptions(**SETTINGS), 30)
    trees = tmp_path / "trees.toml"
    trees.write_text('kind = "trees"\n')
    with pytest.raises(ScenarioError, match="expected a workload that scenarios of kind 'trees'"):
        workload_overrides(trees, [str(folder)], {})
