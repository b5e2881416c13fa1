"""Worlds of protocols of one's own: one meaning in both ways of writing, resumed, run by files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.sim.results.results import read_results, result_hash, summarise
from gossamer.sim.studies.custom.rehearsal import first_difference, scenario_of
from gossamer.sim.studies.custom.simulation import simulate_custom
from gossamer.sim.study.contract import Execution
from support.checkout import ROOT
from support.draws import with_campaigns
from support.own_protocols import PROTOCOLS, scenario_file
from support.sim_commands import interrupted_after, sim

RULES, PLAIN = "travellers.py:Travellers", "travellers_nodes.py:Travellers"
TRAVELLERS = (PROTOCOLS / "travellers.py").read_text()
SMALL = "nodes = 20\nrounds = 9\n[attributes]\nweight = 1.0\n"
ATTRIBUTES = {"weight": {"normal": [1, 0.2]}, "speed": {"lognormal": [5000, 0.5]}}
WORLDS: dict[str, dict[str, Any]] = {
    "narrow": {
        "network": {
            "latency": "uniform",
            "latency_s": 0.08,
            "up_rate": [2000, 9000],
            "down_rate": 6000,
            "up_queue": 2000,
            "down_queue": 1500,
        }
    },
    "parted": {
        "network": {
            "latency": "constant",
            "latency_s": 0.05,
            "up_rate": "speed",
            "loss_period": [{"begin_s": 3, "end_s": 6, "loss": 0.3}],
            "partition": [
                {"begin_s": 2, "end_s": 5, "shares": [0.4]},
                {"begin_s": 7, "end_s": 9, "by": "heavy"},
            ],
        }
    },
    "restless": {
        "sessions": {"online_s": 4, "offline_s": 3},
        "leaving": 0.5,
        "network": {"latency": "constant", "latency_s": 0.05, "down_rate": 20000},
    },
    "replaced": {"turnover": {"share": 60.0}, "round_s": 5.0},
    "cycles": {"engine": "cycle", "sessions": {"online_s": 4, "offline_s": 3}, "leaving": 0.5},
}


def scenario(world: str, *protocols: str) -> Any:
    keys = {"nodes": 40, "rounds": 14, "attributes": dict(ATTRIBUTES), **WORLDS[world]}
    return scenario_of(*protocols, folder=PROTOCOLS, **keys)


@pytest.mark.parametrize("world", WORLDS)
def test_both_ways_of_writing_do_the_same(world: str) -> None:
    """With nodes that leave, return and are new, attributes, bandwidth, loss and partitions."""
    assert first_difference(scenario(world, RULES, PLAIN)) is None


@pytest.mark.parametrize("world", WORLDS)
def test_much_happens_in_them(world: str) -> None:
    run = simulate_custom(scenario(world, RULES))
    record = run.systems["1-Travellers"]
    assert len(record.nodes["node"]) == 60
    assert record.rounds["carried_mean"][-1] > 10
    assert record.rounds["started_again"][-1] > 0.02
    assert record.rounds["farewells_sum"][-1] > 1
    if world == "parted":
        assert record.totals["parted"] > 20
    if world == "narrow":
        assert record.totals["up_overflowed"] > 20
        assert record.totals["down_overflowed"] > 5
        measures = summarise(run)["systems"]["1-Travellers"]
        sizes = measures["bytes_by_message"]
        assert sizes["farewell"] == 30 * measures["by_message"]["farewell"]
        assert sum(sizes.values()) == measures["size_bytes"]


# With messages, timers and delays under way, under a churn trace; and with handles and logs.
OTHERS: dict[str, dict[str, Any]] = {
    "errands": {
        "nodes": 120,
        "rounds": 20,
        "round_s": 2.0,
        "churn": {"trace": str(ROOT / "traces" / "flash_crowd.avt.gz"), "time_scale": 0.002},
        "network": {"latency": "uniform", "latency_s": 0.3, "loss": 0.02},
    },
    "alarms": {
        "nodes": 20,
        "rounds": 10,
        "network": {"latency": "constant", "latency_s": 0.05},
    },
}


@with_campaigns(
    "world, protocol",
    [
        *((one, name) for one in WORLDS if one != "replaced" for name in (RULES, PLAIN)),
        ("errands", "errands_nodes.py:Errands"),
        ("alarms", "alarms.py:Alarms"),
        ("alarms", "alarms_nodes.py:Alarms"),
    ],
    [("errands", "errands.py:Errands")],
)
def test_an_interrupted_run_goes_on_as_a_whole_one(
    world: str, protocol: str, tmp_path: Path
) -> None:
    """After nodes have joined that were not there at first, with links and queues in use."""
    if world in WORLDS:
        given = scenario(world, protocol)
    else:
        given = scenario_of(protocol, folder=PROTOCOLS, **OTHERS[world])
    whole = simulate_custom(given)
    with pytest.raises(KeyboardInterrupt):
        simulate_custom(given, "", Execution(progress=interrupted_after(8), checkpoint=tmp_path))
    resumed = simulate_custom(given, "", Execution(checkpoint=tmp_path, resume=True))
    assert result_hash(resumed) == result_hash(whole)
    (record,) = whole.systems.values()
    if world in WORLDS:
        assert len(record.nodes["node"]) == 60
    if world == "errands":
        assert len(np.unique(record.rounds["population"])) > 3
        assert record.rounds["messages"][-1] > 1000


def test_attributes_are_what_the_scenario_says() -> None:
    """Of all systems alike, of new nodes as of the first, and written with the results."""
    one, other = simulate_custom(scenario("narrow", RULES, PLAIN)).systems.values()
    for name in ("strength", "weight", "heavy", "speed"):
        np.testing.assert_array_equal(one.nodes[name], other.nodes[name])
    assert set(one.nodes["strength"]) == {1, 2, 3}
    assert 0.9 < one.nodes["weight"].mean() < 1.1
    few = scenario_of(RULES, folder=PROTOCOLS, nodes=9, rounds=2, attributes=ATTRIBUTES)
    weights = simulate_custom(few).systems["1-Travellers"].nodes["weight"]
    np.testing.assert_array_equal(weights, one.nodes["weight"][:9])


WORLD = f"""\
protocol = "{PROTOCOLS}/travellers.py:Travellers"
nodes = 30
rounds = 6
leaving = 0.5
[attributes]
weight = {{ file = "weights.csv", column = "w", placing = "drawn" }}
[sessions]
online_s = 20
offline_s = 5
[network]
latency = "matrix"
matrix = "king.txt"
unit_s = 0.0000005
access_s = 0.001
up_rate = 20_000
up_queue = 5000
[[network.partition]]
begin_s = 1
end_s = 2
by = "heavy"
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.csv").write_text("id,w\n1,0.5\n2,1.5\n")
    (tmp_path / "king.txt").write_text("node 1\nnode 2\nnode 3\n1,2 90000\n2,3 50000\n1,3 -1\n")
    file = tmp_path / "world.toml"
    file.write_text(WORLD)
    return file


def test_a_world_of_files_is_run_and_run_again_from_its_results(world: Path) -> None:
    assert sim("check", world) == 0
    assert sim("run", world, "--out", "a", "--plots", "svg") == 0
    assert sim("run", Path("a") / "scenario.toml", "--out", "b", "--no-plots") == 0
    first, again = (read_results(Path(name)) for name in "ab")
    assert first.summary["result_hash"] == again.summary["result_hash"]
    assert set(first.table("travellers", "nodes")["weight"]) == {0.5, 1.5}
    assert (Path("a") / "plots" / "traffic.svg").is_file()
    assert (Path("a") / "plots" / "traffic_by_message.svg").is_file()


@pytest.mark.usefixtures("interpreted")
def test_the_end_that_an_observer_makes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the run, in the summary and in the report."""
    monkeypatch.chdir(tmp_path)
    end = "def end(self, run):\n        run.stop('enough is known')\n"
    (tmp_path / "ending.py").write_text(f"{TRAVELLERS}\n    @gs.observer(begin=2)\n    {end}")
    scenario_file(tmp_path, "ending.py:Travellers", SMALL)
    assert sim("run", "own.toml", "--out", "a", "--no-plots") == 0
    told = "travellers was ended by an observer after 3 rounds: enough is known."
    assert told in capsys.readouterr().out
    assert read_results(Path("a")).summary["systems"]["travellers"]["stopped"] == "enough is known"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("network.matrix=king.txt", None),
        ("network.matrix=none.txt", "none.txt: the latency matrix is No such file or directory"),
        ("network.matrix=weights.csv", "weights.csv, line 1: the line is one of names, expected"),
        ("network.matrix_form=triangular", "king.txt, line 5: number of latencies is 3, expected"),
        ("network.up_rate=wide", "network.up_rate is no attribute (wide), expected one of weight"),
        ("network.up_rate=weight", "network.up_rate, weight is an attribute with the value 0.5"),
        ("network.partition=[{begin_s=1,end_s=2,by='x'}]", "network.partition.by is no attribute"),
        ("attributes.strength=1.5", "attributes.strength is 1.5, expected whole numbers at every"),
        ("attributes.up=1", "attributes.up is 1, expected a name that tables of nodes do not use"),
        ("attributes.weight={file='weights.csv',column='w'}", "number of rows is 2, expected 30"),
        ("sessions.distribution=normal", "sessions.distribution is 'normal', expected one of"),
        ("sessions.shape=0.05", "sessions.shape is 0.05, expected a number above 0.1"),
        ("turnover.share=0.5", "expected only one of [churn], [sessions] and [turnover]"),
        ("leaving=1.5", "leaving is 1.5, expected a share from 0 to 1"),
        ("engine=cycle", "network.latency is 'matrix', expected 'none' in the cycle engine"),
    ],
)
def test_what_is_wrong_with_a_world_is_one_sentence(
    world: Path, key: str, message: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sim("check", world, "--set", key)
    said = capsys.readouterr().err
    if message is None:
        assert found == 0
        return
    assert found == 2
    assert message in said
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_an_attribute_that_nobody_says_is_asked_for(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.write_text(WORLD.replace("weight = {", "height = {"))
    assert sim("run", world) == 2
    said = capsys.readouterr().err
    assert "attributes.weight is missing, expected a value, as Travellers" in said


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("module", "count"),
    [("growing_below", "-1"), ("growing_vastly", "10**9"), ("growing_by_parts", "1.5")],
)
def test_growth_beyond_reason_is_refused(
    module: str, count: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TRAVELLERS.replace("run.grow(5)", f"run.grow({count})")
    (tmp_path / f"{module}.py").write_text(text)
    file = scenario_file(tmp_path, f"{module}.py:Travellers", SMALL)
    assert sim("run", file, "--out", tmp_path / "a") != 0
    assert "run.grow is asked for" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
