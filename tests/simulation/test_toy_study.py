"""Studies from outside the package: run, checked, compared, swept and crunched as any other."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.command.main import main
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.results import read_results
from gossamer.sim.results.sweeps.plan import read_sweep
from gossamer.sim.study import scenarios
from support import toy_study
from support.installed_command import content_of
from support.sim_commands import sim
from support.spark_processes import environment, needs_spark, run_spark_command

STUDY, FLOODS = "support.toy_study:TOY", "support.flooding_study:FLOODS"
SCENARIO = 'kind = "toy"\nname = "gamblers"\nseed = 3\nrounds = 40\n'
SWEEP = 'scenario = "s.toml"\nseeds = [1, 2]\n[grid]\nrounds = [10, 20]\n'
FLOODING = 'kind = "flooding"\nname = "flood"\nseed = 3\nbrokers = 6\n'
PATHS = (environment()["PYTHONPATH"], str(Path(__file__).parents[1]))
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def work(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(scenarios.NAMED, "")
    (work / "s.toml").write_text(SCENARIO)
    (work / "sweep.toml").write_text(SWEEP)
    return work


@pytest.fixture
def named(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(scenarios.NAMED, STUDY)
    return work


def test_a_run_leaves_results_like_any_other(named: Path, capsys: Capture) -> None:
    assert sim("run s.toml --out out") == 0
    assert "coins at the end" in capsys.readouterr().out
    found = read_results(named / "out")
    assert found.systems == ("fair", "biased")
    assert found.summary["scenario"]["kind"] == "toy"
    coins = found.table("fair", "purse")["coins"]
    assert len(coins) == 40
    assert found.summary["systems"]["fair"]["coins_final"] == coins[-1]
    page = (named / "out" / "report.html").read_text()
    for words in ("2 gamblers, seed 3", "Won less lost.", "Coins after each round."):
        assert words in page
    assert (named / "out" / "plots" / "coins.svg").is_file()
    assert (named / "out" / "scenario.toml").read_text() == SCENARIO


def test_a_fourth_family_of_brokers_is_a_study_of_its_own(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(scenarios.NAMED, FLOODS)
    (work / "s.toml").write_text(FLOODING)
    assert sim("run s.toml --out out") == 0
    found = read_results(work / "out")
    line, star = (found.summary["systems"][name] for name in ("line", "star"))
    # Each of 20 publications crosses each of five links once, on either overlay.
    assert (line["messages"], star["messages"]) == (100, 100)
    assert line["deliveries"] == star["deliveries"] > 0
    assert found.table("line", "floods")["hops"].max() == 5
    assert found.table("star", "floods")["hops"].max() == 1
    page = (work / "out" / "report.html").read_text()
    assert "6 flooding brokers, seed 3" in page
    assert "Sent between brokers." in page


def test_runs_are_compared_by_the_measures_of_the_study_which_has_to_be_here(
    named: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert sim("run s.toml --out a --no-plots") == 0
    assert sim("run s.toml --out b --no-plots --seed 4") == 0
    capsys.readouterr()
    assert sim("compare a b") == 0
    assert "most coins" in capsys.readouterr().out
    assert read_results(named / "a").systems == ("fair", "biased")
    monkeypatch.setenv(scenarios.NAMED, "")
    assert sim("compare a") == 2
    assert "kind is 'toy', expected nothing for peers" in capsys.readouterr().err


def test_scenarios_and_points_of_sweeps_are_checked_by_the_study(
    named: Path, capsys: Capture
) -> None:
    before = content_of(named)
    assert sim("check s.toml --set rounds=70") == 0
    assert "70" in capsys.readouterr().out
    assert sim("check s.toml --set name=impossible") == 2
    assert "expected a name that is possible" in capsys.readouterr().err
    assert sim("run s.toml --set rouds=7") == 2
    assert "did you mean 'rounds'?" in capsys.readouterr().err
    assert content_of(named) == before
    plan = read_sweep(named / "sweep.toml")
    assert [point.memory_bytes for point in plan.points] == [80, 80, 160, 160]
    (named / "odd.toml").write_text(SWEEP.replace("rounds = [10, 20]", 'system = ["fair"]'))
    with pytest.raises(ScenarioError, match="no such key in a scenario of kind 'toy'"):
        read_sweep(named / "odd.toml")


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize("place", [STUDY, f"{toy_study.__file__}:TOY"])
def test_it_is_named_on_the_command_line(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert sim("check s.toml") == 2
    told = capsys.readouterr().err
    assert "servers, or one of brokers, scot, trees, protocol" in told
    assert main(["sim", "--study", place, "check", "s.toml"]) == 0
    assert "toy" in scenarios.known_kinds()


@pytest.mark.usefixtures("work")
def test_it_is_an_entry_point_of_an_installed_package(tmp_path: Path, capsys: Capture) -> None:
    info = next((tmp_path / "site").glob("*.dist-info"))
    points = info / "entry_points.txt"
    points.write_text(f"{points.read_text()}\n[{scenarios.GROUP}]\ntoy = {STUDY}\n")
    assert scenarios.study_of_kind("toy").kind == "toy"
    assert scenarios.known_kinds()[-1] == "toy"
    assert sim("run s.toml --out out --json") == 0
    assert json.loads(capsys.readouterr().out)["systems"].keys() == {"fair", "biased"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("support.toy_study", "module:name"),
        ("support.nowhere:TOY", "a study that can be imported"),
        ("support.toy_study:NOTHING", "a study that can be imported"),
        ("missing.py:TOY", "a study that can be imported"),
        ("support.toy_study:COINS", "an object of Study"),
    ],
)
@pytest.mark.usefixtures("work")
def test_what_is_no_study_is_refused_in_a_sentence(text: str, expected: str) -> None:
    with pytest.raises(ScenarioError, match=expected):
        scenarios.name_studies([text])


@pytest.mark.usefixtures("named")
def test_an_interrupted_run_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    asked: list[str] = []
    run = toy_study.Gambler.run

    def stumbles(gambler: toy_study.Gambler) -> toy_study.Purse:
        asked.append(gambler.coin)
        if asked == ["fair", "biased"]:
            raise KeyboardInterrupt
        return run(gambler)

    monkeypatch.setattr(toy_study.Gambler, "run", stumbles)
    assert sim("run s.toml --out out --threads 1") == 130
    assert f"--study {STUDY} run" in capsys.readouterr().err
    assert sim("run s.toml --out out --threads 1 --resume") == 0
    assert asked == ["fair", "biased", "biased"]


@pytest.mark.campaign
@needs_spark
@pytest.mark.parametrize("study", [STUDY, FLOODS])
def test_it_is_swept_and_crunched(work: Path, monkeypatch: pytest.MonkeyPatch, study: str) -> None:
    """By processes of their own: the study is named to workers by the environment."""
    monkeypatch.setenv(scenarios.NAMED, study)
    if study == FLOODS:
        (work / "s.toml").write_text(FLOODING)
        (work / "sweep.toml").write_text(SWEEP.replace("rounds = [10, 20]", "brokers = [3, 6]"))
    for words in ("sweep sweep.toml --out swept", "crunch swept --out crunched"):
        done = run_spark_command(*words.split(), PYTHONPATH=os.pathsep.join(PATHS))
        assert done.returncode == 0, done.stderr
    rows = pq.read_table(work / "swept" / "points.parquet").to_pylist()
    page = (work / "crunched" / "report.html").read_text()
    if study == STUDY:
        assert [row["rounds"] for row in rows if row["system"] == "fair"] == [10, 10, 20, 20]
        assert "coins at the end" in page
    else:
        # Each of 20 publications crosses each link once.
        assert [row["messages"] for row in rows if row["system"] == "star"] == [40, 40, 100, 100]
        assert "deliveries" in page
