"""Sweeps: what their files say, or why they are refused; points begin as there is room."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.sweeps.folder import point_rows
from gossamer.sim.results.sweeps.plan import Point, read_sweep
from gossamer.sim.results.sweeps.scheduling import PointRunner
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.study.scenarios import read_scenario
from support.checkout import ROOT

BASE = "nodes = 50\nrounds = 10\n[events]\nper_round = 2\nwarm_up_rounds = 5\n"
NAMED = 'name = "Zürich"\n' + BASE
ONE = 'scenario = "base.toml"\nseeds = [1]\n'


def sweep(folder: Path, text: str) -> Path:
    (folder / "base.toml").write_text(BASE)
    (folder / "sweep.toml").write_text(text)
    return folder / "sweep.toml"


def test_a_grid_is_every_combination_with_every_seed(tmp_path: Path) -> None:
    text = """
scenario = "base.toml"
seeds = [3, 1]
[grid]
nodes = [20, 30]
events.per_round = [1, 5]
system = ["kindred", "baseline"]
"""
    plan = read_sweep(sweep(tmp_path, text))
    assert (len(plan.points), len({point.name for point in plan.points})) == (2 * 2 * 2 * 2, 16)
    assert plan.name == "sweep"
    for point in plan.points:
        file = tmp_path / f"{point.name}.toml"
        file.write_text(point.text)
        scenario, _ = read_scenario(file, {})
        assert isinstance(scenario, Scenario)
        assert scenario.nodes == point.values["nodes"]
        assert scenario.events.per_round == point.values["events.per_round"]
        assert [one.name for one in scenario.systems] == [point.values["system"]]
        assert scenario.seed == point.values["seed"]
        assert point.memory_bytes > 0


def test_a_list_is_what_it_says_and_scenarios_may_be_several(tmp_path: Path) -> None:
    text = """
name = "list"
scenario = ["base.toml", "other.toml"]
seeds = [1]
[[point]]
nodes = 20
[[point]]
nodes = 40
rounds = 12
"""
    (tmp_path / "other.toml").write_text("nodes = 60\nrounds = 9\n[events]\nwarm_up_rounds = 5\n")
    plan = read_sweep(sweep(tmp_path, text))
    assert [dict(point.values) for point in plan.points] == [
        {"scenario": "base.toml", "nodes": 20, "seed": 1},
        {"scenario": "base.toml", "nodes": 40, "rounds": 12, "seed": 1},
        {"scenario": "other.toml", "nodes": 20, "seed": 1},
        {"scenario": "other.toml", "nodes": 40, "rounds": 12, "seed": 1},
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seeds = [1]", "scenario is missing, expected the path of a scenario file"),
        ("nodes = 5", "scenario is missing, expected a sweep, which names scenarios and seeds"),
        ('scenario = "base.toml"', "seeds is missing, expected a list of different whole"),
        ('scenario = "base.toml"\nseeds = 5', "seeds is 5, expected a list"),
        ('scenario = "base.toml"\nseeds = [1, 1]', "seeds is [1, 1], expected a list of different"),
        ('scenario = "base.toml"\nseeds = [-1]', "seeds is [-1], expected"),
        ('scenario = "gone.toml"\nseeds = [1]', "gone.toml: the scenario file is missing"),
        (ONE + "seed = 2", "seed is an unknown key, did you mean 'seeds'?"),
        (ONE + "[grid]\nnodes = 5", "grid.nodes is 5, expected a list"),
        (ONE + "[grid]\nnodez = [5]", "base.toml in a point of the sweep: nodez is an unknown key"),
        (ONE + "[grid]\nnodes = [1]", "of the sweep: nodes is 1, expected a whole number from 2"),
        (ONE + '[grid]\nsystem = ["other"]', "system is 'other', expected one of kindred, basel"),
        (ONE + "[grid]\nseed = [2]", "seed is [2], expected seeds at the top of the file"),
        (ONE + "[grid]\nnodes = [5]\n[[point]]\nnodes = 6", "expected either [grid] or [[point]]"),
        ("seeds = [", "expected valid TOML"),
    ],
)
def test_impossible_sweeps_are_refused_in_words(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read_sweep(sweep(tmp_path, text))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_marks_and_line_ends_change_nothing(encoding: str, end: str, tmp_path: Path) -> None:
    """Of scenarios and sweeps, as editors of any system save them."""
    for name, text in (("base.toml", NAMED), ("sweep.toml", ONE)):
        (tmp_path / name).write_bytes(text.replace("\n", end).encode(encoding))
    scenario, text = read_scenario(tmp_path / "base.toml")
    assert (scenario.name, text) == ("Zürich", NAMED)
    assert len(read_sweep(tmp_path / "sweep.toml").points) == 1


@pytest.mark.parametrize(
    ("encoding", "found"), [("utf-16", "not UTF-8 but UTF-16"), ("latin-1", "not UTF-8 at byte 10")]
)
def test_other_encodings_are_named(encoding: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "base.toml"
    path.write_bytes(NAMED.encode(encoding))
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    assert str(caught.value) == f"{path}: the scenario file is {found}, expected text in UTF-8"


@pytest.mark.parametrize(("name", "points"), [("sizes", 60), ("v3", 120), ("v6", 120)])
def test_the_examples_are_sweeps(name: str, points: int) -> None:
    plan = read_sweep(ROOT / "examples" / "spark" / f"{name}.toml")
    assert (plan.name, len(plan.points)) == (name, points)


def test_no_measure_takes_the_place_of_what_is_varied(tmp_path: Path) -> None:
    """Nor of any other column, in any row: also in points that leave the key as it is."""
    text = """
scenario = "base.toml"
seeds = [1]
[[point]]
nodes = 20
[[point]]
rounds = 12
events.per_round = 3
"""
    plan = read_sweep(sweep(tmp_path, text))
    measures = {"nodes": 17, "hit_ratio": 0.5, "rounds": 8, "seed": 4, "point": 3, "totals": {}}
    summary = {"result_hash": "h", "systems": {"kindred": measures, "baseline": measures}}
    rows = point_rows(plan, {point.name: summary for point in plan.points})
    assert [(row["point"], row["system"]) for row in rows] == [
        (point.name, system) for point in plan.points for system in ("kindred", "baseline")
    ]
    assert [row.get("nodes") for row in rows] == [20, 20, None, None]
    assert [row.get("rounds") for row in rows] == [None, None, 12, 12]
    measured = {f"measured.{key}": measures[key] for key in ("nodes", "rounds", "seed", "point")}
    for row in rows:
        assert (row["seed"], row["result_hash"], row["hit_ratio"]) == (1, "h", 0.5)
        assert {key: row[key] for key in row if key.startswith("measured.")} == measured


GIB = 2**30


class Nothing(PointRunner):
    def run_point(self, point: Point, folder: Path, sweep: Path) -> Path:
        raise NotImplementedError

    def stop(self) -> None: ...


def test_points_that_share_a_memory_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 4 * GIB

    def points(number: int, memory_bytes: int) -> list[Point]:
        names = [f"p{i}" for i in range(number)]
        return [Point(name=one, values={}, text="", memory_bytes=memory_bytes) for one in names]

    monkeypatch.setattr(psutil, "virtual_memory", Memory)
    here, small, large = Nothing(8, shares_memory=True), points(9, GIB), points(2, 9 * GIB)
    assert (len(here.next_points(small, [], 0)), len(here.next_points(small, [], 1))) == (1, 3)
    assert (len(here.next_points(large, [], 1)), here.next_points(large, small[:1], 1)) == (1, [])
    # Elsewhere only their number counts.
    assert len(Nothing(8, shares_memory=False).next_points(points(9, 9 * GIB), [], 0)) == 8
