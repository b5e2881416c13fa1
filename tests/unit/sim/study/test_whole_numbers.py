"""Scenarios take 1e3 where 1000 is meant, and no other float where a whole number is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.custom.language.members import Setting
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.sweeps.plan import read_sweep
from gossamer.sim.studies.peers.inputs.scenario import Scenario, System
from gossamer.sim.study.scenario_format import parse_override
from gossamer.sim.study.scenarios import read_scenario

PEERS = """
nodes = 1e3
rounds = 3.0e1
[subscriptions]
places = 1e2
[[system]]
name = "kindred"
ring_links = 4.0
"""
EXAMPLES = Path(__file__).parents[4] / "examples"


def scenario_of(folder: Path, text: str, *changes: str) -> Any:
    file = folder / "scenario.toml"
    file.write_text(text)
    return read_scenario(file, dict(map(parse_override, changes)))[0]


def test_whole_floats_are_whole_numbers_in_files(tmp_path: Path) -> None:
    found = scenario_of(tmp_path, PEERS)
    counts = (found.nodes, found.rounds, found.subscriptions.places)
    assert (counts, set(map(type, counts))) == ((1000, 30, 100), {int})
    assert repr(found.systems[0].settings["ring_links"]) == "4"


def test_they_are_so_in_changes(tmp_path: Path) -> None:
    found = scenario_of(tmp_path, PEERS, "nodes=1e4", "system.kindred.ring_links=6e0", "seed=7.0")
    assert (found.nodes, found.seed) == (10_000, 7)
    assert repr(found.systems[0].settings["ring_links"]) == "6"


def test_they_are_so_in_scripts() -> None:
    peers: Any = 1e5
    found = Scenario(nodes=peers, systems=(System(name="kindred", settings={"ring_links": 4.0}),))
    assert (repr(found.nodes), repr(found.systems[0].settings["ring_links"])) == ("100000", "4")


@pytest.mark.parametrize(
    ("example", "change", "field", "value"),
    [
        ("brokers", "workload.roots=1e2", "workload.roots", 100),
        ("scot", "workload.topics=2e1", "workload.topics", 20),
        ("trees", "workload.documents=1e3", "workload.documents", 1000),
    ],
)
def test_they_are_so_in_every_study(example: str, change: str, field: str, value: int) -> None:
    path = EXAMPLES / example / "scenario.toml"
    found: Any = read_scenario(path, dict([parse_override(change)]))[0]
    for name in field.split("."):
        found = getattr(found, name)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("example", "change"),
    [("brokers", "broker.statistics_entries=1e3"), ("scot", "scot.window=5e4")],
)
def test_they_are_so_in_settings_of_brokers(example: str, change: str) -> None:
    path = EXAMPLES / example / "scenario.toml"
    key, value = parse_override(change)
    found: Any = read_scenario(path, {key: value})[0]
    way = found.coverings[0] if example == "brokers" else found.routings[0]
    number = getattr(found.settings(way), key.partition(".")[2])
    assert (number, type(number)) == (value, int)


@pytest.mark.parametrize("value", ["1.5", "1e3000", "nan", "inf", "1e300", "true", '"1e3"'])
def test_nothing_else_is(tmp_path: Path, value: str) -> None:
    with pytest.raises(ScenarioError, match=r"expected a whole number from 2 to 10000000$"):
        scenario_of(tmp_path, PEERS, f"nodes={value}")
    with pytest.raises(ScenarioError, match=r"expected a whole number$"):
        scenario_of(tmp_path, PEERS, f"system.kindred.ring_links={value}")


def test_they_are_so_in_settings_of_own_protocols() -> None:
    fanout = Setting(3, low=1, high=2000)
    assert repr(fanout.checked("system.rumor.fanout", 1e3)) == "1000"
    with pytest.raises(ScenarioError, match=r"is 1\.5, expected a whole number from 1, at"):
        fanout.checked("system.rumor.fanout", 1.5)


def test_they_are_so_among_seeds(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(PEERS)
    sweep = tmp_path / "sweep.toml"
    sweep.write_text('scenario = "scenario.toml"\nseeds = [1e0, 2]\n')
    assert [point.values["seed"] for point in read_sweep(sweep).points] == [1, 2]
    sweep.write_text('scenario = "scenario.toml"\nseeds = [1]\n[grid]\nnodes = [2e2, 300]\n')
    points = read_sweep(sweep).points
    assert [repr(point.values["nodes"]) for point in points] == ["200", "300"]
    assert points[0].name == "0001-nodes-200-seed-1"
    sweep.write_text('scenario = "scenario.toml"\nseeds = [1.0, 1]\n')
    with pytest.raises(ScenarioError, match="different whole numbers"):
        read_sweep(sweep)
