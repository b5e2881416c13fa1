"""Simulations of peers that take subscriptions and events from the tables of a workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gossamer.sim.commands.workloads import workload_overrides
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.storage.place import PlaceError
from gossamer.sim.results.storage.workloads import WORKLOAD_FILE
from gossamer.sim.row_tables.kinds import Wish, make_workload
from gossamer.sim.studies.peers.inputs import scenario as inputs_scenario
from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.inputs.table_workload import workload_of
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.studies.peers.running.preparation import prepare
from gossamer.sim.studies.peers.simulation import simulate
from gossamer.sim.study.scenarios import read_scenario

SETTINGS: dict[str, Any] = {"attributes": 2, "per_node": 2, "width": 0.2, "subscribers": 0.8}
SEED = 5


def written(folder: Path, kind: str = "vinifera", files: int = 3, **changes: Any) -> Path:
    """A workload in a folder, its tables in several files."""
    asked: dict[str, Any] = {
        "seed": SEED,
        "subscriptions": 80,
        "events": 30,
        "settings": SETTINGS,
        **changes,
    }
    wish = Wish(**asked)
    tables = make_workload(kind, wish).tables()
    for table in tables:
        (folder / table.name).mkdir(parents=True)
        rows = table.table()
        for part in range(files):
            first, end = (at * len(rows) // files for at in (part, part + 1))
            file = folder / table.name / f"part-{part:05}.parquet"
            pq.write_table(rows.slice(first, end - first), file)
    told = {
        "kind": kind,
        "seed": wish.seed,
        "settings": {"subscriptions": wish.subscriptions, "events": wish.events, **wish.settings},
        "tables": {table.name: {"rows": table.units} for table in tables},
    }
    (folder / WORKLOAD_FILE).write_text(json.dumps(told))
    return folder


def scenario(folder: Path | None, **changes: Any) -> inputs_scenario.Scenario:
    given: dict[str, Any] = {
        "nodes": 40,
        "rounds": 14,
        "seed": SEED,
        "subscriptions": inputs_scenario.Subscriptions(**SETTINGS),
        "events": inputs_scenario.Events(per_round=3, warm_up_rounds=6),
        "systems": (inputs_scenario.System(name="vinifera"),),
        "workload": None if folder is None else inputs_scenario.TakenFrom(folder=folder),
    }
    return inputs_scenario.Scenario(**given | changes)


def test_rows_of_tables_are_those_that_are_drawn(tmp_path: Path) -> None:
    taken = workload_of(scenario(written(tmp_path / "w")))
    drawn = Workload(inputs_scenario.Subscriptions(**SETTINGS), SEED)
    for one, other in zip(taken.subscriptions(40), drawn.subscriptions(40), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(taken.events(7, 20), drawn.events(7, 20))
    np.testing.assert_array_equal(taken.publisher_draws(3, 9), drawn.publisher_draws(3, 9))


def test_a_simulation_of_tables_is_that_of_what_is_drawn(tmp_path: Path) -> None:
    taken = simulate(scenario(written(tmp_path / "w")))
    drawn = simulate(scenario(None))
    for (name, one), (_, other) in zip(
        taken.systems["vinifera"].tables(), drawn.systems["vinifera"].tables(), strict=True
    ):
        for column in other:
            np.testing.assert_array_equal(one[column], other[column], err_msg=f"{name}.{column}")
    told = taken.scenario["workload"]
    assert told["folder"] == "w"
    assert len(told["fingerprint"]) == 64
    assert "workload" not in drawn.scenario


def test_the_same_workload_elsewhere_has_the_same_fingerprint(tmp_path: Path) -> None:
    one, other = (
        simulate(scenario(written(tmp_path / name / "w", files=files), rounds=8)).scenario
        for name, files in (("a", 1), ("b", 4))
    )
    assert one["workload"] == other["workload"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"nodes": 41}, "nodes is 41, expected at most 40, for which the workload"),
        ({"rounds": 18}, "expected a rate by which no more are published than the 30"),
        (
            {"subscriptions": inputs_scenario.Subscriptions(**SETTINGS | {"width": 0.3})},
            "subscriptions.width is 0.3, expected 0.2, as in the workload",
        ),
    ],
)
def test_what_the_workload_cannot_give_is_refused(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        prepare(scenario(written(tmp_path / "w"), **changes))
    assert sentence in str(refused.value)


def test_a_workload_has_no_further_subscriptions(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"drift\.replaced"):
        scenario(tmp_path, drift=Drift(every_s=60.0, replaced=0.1))


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="holds no workload, expected"):
        prepare(scenario(tmp_path))
    siena = written(tmp_path / "s", "siena", settings={})
    with pytest.raises(ScenarioError, match="expected 'vinifera', for a simulation of peers"):
        prepare(scenario(siena))
    file = tmp_path / "peers.toml"
    file.write_text("nodes = 40\n")
    with pytest.raises(ScenarioError, match=r"--workload is 'siena', expected a workload that"):
        workload_overrides(file, [str(siena)], {})


def test_a_missing_file_of_a_table_is_named(tmp_path: Path) -> None:
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
    assert isinstance(found, inputs_scenario.Scenario)
    assert found.workload == inputs_scenario.TakenFrom(folder=folder)
    assert found.subscriptions == inputs_scenario.Subscriptions(**SETTINGS)
    assert found.nodes == 30
    trees = tmp_path / "trees.toml"
    trees.write_text('kind = "trees"\n')
    with pytest.raises(ScenarioError, match="expected a workload that scenarios of kind 'trees'"):
        workload_overrides(trees, [str(folder)], {})
