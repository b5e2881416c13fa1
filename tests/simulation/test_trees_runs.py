"""Runs of dissemination trees: results, one hash a seed, strategies kept when interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import numpy as np
import pyarrow.parquet as pq
import pytest

import gossamer.sim.studies.dissemination.simulation as simulation
from gossamer.sim.errors import SimulationError
from gossamer.sim.results.results import write_results
from gossamer.sim.results.summary import result_hash, summarise
from gossamer.sim.studies.dissemination.measures import summarise_strategy
from gossamer.sim.studies.dissemination.pictures import places_of
from gossamer.sim.studies.dissemination.plots import pictures_of
from gossamer.sim.studies.dissemination.records import TreesRunRecord
from gossamer.sim.studies.dissemination.scenario import (
    DEFAULT_STRATEGIES,
    Planning,
    TopologySection,
    TreesScenario,
    WorkloadSection,
)
from gossamer.sim.studies.dissemination.simulation import simulate_trees
from gossamer.sim.studies.dissemination.strategies import STRATEGIES, Outcome, Setting, run_strategy
from support.checkout import ROOT
from support.sim_commands import printed_by, sim

EXAMPLE = ROOT / "examples" / "trees" / "scenario.toml"

SCENARIO = """
kind = "trees"
name = "small"
strategies = ["SINGLE", "MULT", "OPT"]
[topology]
brokers = 60
stub_stub_links = 20
[workload]
keywords = 60
documents = 200
[planning]
sample_share = 0.2
states = 3
"""


def scenario(seed: int = 3, **changes: object) -> TreesScenario:
    """A run of a second or two."""
    made = TreesScenario(
        name="small",
        seed=seed,
        strategies=tuple(STRATEGIES),
        topology=TopologySection(brokers=60, stub_stub_links=20, capacity=60),
        workload=WorkloadSection(
            neighbourhood=0.1, keywords=60, documents=200, document_keywords=2, largest_size=2.0
        ),
        planning=Planning(sample_share=0.3, states=4),
    )
    return attrs.evolve(made, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def finished() -> TreesRunRecord:
    """The run that others have to equal."""
    return simulate_trees(scenario(), "# text\n", processes=1)


@pytest.fixture
def work(work: Path) -> Path:
    """The working folder with a scenario in it."""
    (work / "s.toml").write_text(SCENARIO)
    return work


def test_every_strategy_has_its_measures(finished: TreesRunRecord) -> None:
    measures = {name: summarise_strategy(one) for name, one in finished.systems.items()}
    assert tuple(measures) == tuple(STRATEGIES)
    for found in measures.values():
        assert found["cost_over_optimum"] > 0.9
        assert found["load_max"] > 0
        assert found["documents"] == 200
    assert measures["OPT"]["cost_over_optimum"] == 1
    assert measures["SPT-flooded"]["cost"] > measures["SPT"]["cost"]
    assert measures["SemCast"]["cost"] >= measures["SemCast-filtered"]["cost"]
    assert measures["SINGLE"]["trees"] == 1
    assert measures["SINGLE"]["duplicate_visits"] == 0
    assert measures["WITHIN"]["overload"] <= measures["MULT"]["overload"]


def test_measures_follow_from_the_tables(finished: TreesRunRecord) -> None:
    record = finished.systems["MULT"]
    measures = summarise_strategy(record)
    links = record.links
    assert (links["load"] * links["cost"]).sum() == pytest.approx(measures["cost"])
    over = links["load"] > links["capacity"]
    assert measures["overloaded_links"] == over.sum() > 0
    worst = measures["worst_links"][0]
    assert worst["load"] == links["load"].max()
    assert record.trees["load"].sum() == pytest.approx(links["load"].sum())
    assert record.trees["documents"].sum() == record.documents["trees"].sum()
    assert record.mergers["trees"][-1] == 1
    last = record.states["trees"].tolist().index(1)
    assert record.states["duplicates"][last] == 0


def test_the_folder_holds_tables_plots_and_a_page_that_needs_no_network(
    finished: TreesRunRecord, tmp_path: Path
) -> None:
    summary = write_results(finished, tmp_path / "out")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("*.*")}
    tables = ("documents", "links", "trees", "pictured", "mergers", "states")
    expected = {f"{name}/{table}.parquet" for name in STRATEGIES for table in tables}
    plots = ("cost", "mergers", "states", "trees")
    expected |= {f"plots/{plot}.{kind}" for plot in plots for kind in ("pdf", "svg", "png")}
    assert names == expected | {"summary.json", "scenario.toml", "report.html"}
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
    assert pq.read_table(tmp_path / "out" / "MULT" / "documents.parquet").num_rows == 200
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Links beyond their capacity" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_two_trees_are_pictured_of_a_strategy_that_makes_several(finished: TreesRunRecord) -> None:
    several = {name: one for name, one in finished.systems.items() if one.totals["trees"] > 1}
    pictures = pictures_of(finished.systems)
    assert len(pictures) == 2
    assert all(len(picture.links) == 59 for picture in pictures)
    assert several
    one_each = pictures_of({name: finished.systems[name] for name in ("SPT", "SINGLE", "OPT")})
    assert [picture.title.split(",")[0] for picture in one_each] == ["SPT", "SINGLE"]


def test_brokers_without_a_place_are_put_somewhere() -> None:
    topology = TopologySection(kind="barabasi_albert", brokers=20).build(seed=1)
    assert np.isfinite(places_of(topology)).all()


def test_states_are_spread_from_all_groups_to_one(finished: TreesRunRecord) -> None:
    states = finished.systems["MULT"].states["trees"]
    merged = finished.systems["MULT"].mergers["trees"]
    assert states[0] == merged[0]
    assert states[-1] == 1
    assert (np.diff(states) < 0).all()


def test_a_seed_fixes_the_result_in_any_process(finished: TreesRunRecord) -> None:
    program = (
        "from simulation.test_trees_runs import scenario, simulate_trees, result_hash;"
        "print(result_hash(simulate_trees(scenario(), processes=1)))"
    )
    assert printed_by(program, "77") == result_hash(finished)
    assert result_hash(finished) == summarise(finished)["result_hash"]


def test_an_interrupted_run_goes_on_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scenario(strategies=("SPT", "MULT", "OPT"))
    whole = simulate_trees(made, processes=1)

    def fails_at_mult(name: str, setting: Setting) -> Outcome:
        if name == "MULT":
            raise SimulationError("interrupted")
        return run_strategy(name, setting)

    monkeypatch.setattr(simulation, "run_strategy", fails_at_mult)
    with pytest.raises(SimulationError, match="MULT: interrupted"):
        simulate_trees(made, checkpoint=tmp_path, processes=1)
    ran = []

    def notes(name: str, setting: Setting) -> Outcome:
        ran.append(name)
        return run_strategy(name, setting)

    monkeypatch.setattr(simulation, "run_strategy", notes)
    resumed = simulate_trees(made, checkpoint=tmp_path, resume=True, processes=1)
    assert ran == ["MULT", "OPT"]
    assert result_hash(resumed) == result_hash(whole)
    with pytest.raises(SimulationError, match="one of the same scenario and seed"):
        simulate_trees(attrs.evolve(made, seed=4), checkpoint=tmp_path, resume=True, processes=1)


def test_a_run_prints_a_table_and_leaves_results(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    smaller = "--set topology.brokers=60 --set topology.stub_stub_links=20 "
    smaller += "--set workload.keywords=60 --set workload.documents=150 --set planning.states=3"
    assert sim(f"run {EXAMPLE} --threads 1 {smaller}") == 0
    shown = capsys.readouterr()
    assert "SemCast-filtered" in shown.out
    assert shown.out.endswith(f"Results: {Path('results/trees-1/report.html')}\n")
    assert shown.err.startswith("gossamer: strategies 0 of")
    assert all(line.startswith("gossamer: strategies ") for line in shown.err.splitlines())
    summary = json.loads((work / "results/trees-1/summary.json").read_text())
    assert summary["scenario"]["workload"]["documents"] == 150
    assert list(summary["systems"]) == list(DEFAULT_STRATEGIES)
    assert sim("run s.toml --no-plots --threads 1 --seed 2 --json --out other") == 0
    assert capsys.readouterr().out == (work / "other/summary.json").read_text()
    assert sim("compare results/trees-1 other") == 0
    assert "cost of all documents" in capsys.readouterr().out
