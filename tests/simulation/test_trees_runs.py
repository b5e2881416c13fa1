"""Runs of dissemination trees: measures, tables, pictures and the page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gossamer.sim.results.results import write_results
from gossamer.sim.studies.dissemination.measures import summarise_strategy
from gossamer.sim.studies.dissemination.pictures import places_of
from gossamer.sim.studies.dissemination.plots import pictures_of
from gossamer.sim.studies.dissemination.records import TreesRunRecord
from gossamer.sim.studies.dissemination.scenario import (
    Planning,
    TopologySection,
    TreesScenario,
    WorkloadSection,
)
from gossamer.sim.studies.dissemination.simulation import simulate_trees
from gossamer.sim.studies.dissemination.strategies import STRATEGIES
from gossamer.sim.study.plot import FORMATS, PlotOptions, plots_as
from support.draws import larger

KINDS = larger(("svg",), FORMATS)
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


def scenario(seed: int = 3, strategies: tuple[str, ...] = tuple(STRATEGIES)) -> TreesScenario:
    """A run of a second or two."""
    return TreesScenario(
        name="small",
        seed=seed,
        strategies=strategies,
        topology=TopologySection(brokers=60, stub_stub_links=20, capacity=60),
        workload=WorkloadSection(
            neighbourhood=0.1, keywords=60, documents=200, document_keywords=2, largest_size=2.0
        ),
        planning=Planning(sample_share=0.3, states=4),
    )


@pytest.fixture(scope="module")
def finished() -> TreesRunRecord:
    """The run that others have to equal."""
    return simulate_trees(scenario(), "# text\n", processes=1)


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
    with plots_as(PlotOptions(KINDS)):
        summary = write_results(finished, tmp_path / "out")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("*.*")}
    tables = ("documents", "links", "trees", "pictured", "mergers", "states")
    expected = {f"{name}/{table}.parquet" for name in STRATEGIES for table in tables}
    plots = ("cost", "mergers", "states", "trees")
    expected |= {f"plots/{plot}.{kind}" for plot in plots for kind in KINDS}
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
