"""The figures about content-aware trees: a quick run, and the plan of the full one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gossamer.sim.figures import FIGURES
from gossamer.sim.figures.dissemination.readings import READINGS
from gossamer.sim.figures.dissemination.studies import (
    COSTS,
    FULL,
    LOCALIZED1,
    MADE_UP,
    ONE_KEYWORD,
    QUICK,
    REAL,
    SHARES,
    find_networks,
    plan_runs,
)
from gossamer.sim.results.results import ResultsError
from support.golden import check_golden, measured_by_checks

PLOTS = ("fig4", "fig5", "fig5_graphs", "fig6", "fig7", "fig8")
NETWORK = """graph [
  node [ id 0 label "a" ] node [ id 1 label "b" ] node [ id 2 label "c" ] node [ id 3 label "d" ]
  edge [ source 0 target 1 ] edge [ source 1 target 2 ] edge [ source 2 target 3 ]
  edge [ source 3 target 0 ]
]
"""


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run, with one network in place of the real ones."""
    folder = tmp_path_factory.mktemp("figures")
    networks = folder / "shared" / "data" / "topologies"
    networks.mkdir(parents=True)
    (networks / "Square.gml").write_text(NETWORK)
    FIGURES["trees"](folder / "trees", quick=True, processes=1, checkout=folder / "checkout")
    return folder / "trees"


def checks_of(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    checks = json.loads((folder / "checks.json").read_text(encoding="utf-8"))
    return {(check["claim"], check["name"]): check for check in checks if "reading" not in check}


@pytest.mark.slow
def test_a_quick_run_judges_its_claims_in_order(reproduced: Path) -> None:
    claims = json.loads((reproduced / "claims.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in claims] == [f"T{number}" for number in range(1, 8)]
    for claim in claims:
        assert claim["verdict"] in ("holds", "differs")
        assert "not measured" not in claim["measured"]
        assert claim["reason"]


@pytest.mark.slow
def test_claims_of_many_trees_are_judged_under_both_readings(reproduced: Path) -> None:
    claims = json.loads((reproduced / "claims.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in claims if "alternative" in claim] == list(READINGS)
    assert [claim["id"] for claim in claims if "contradiction" in claim] == ["T1", "T4"]
    checks = json.loads((reproduced / "checks.json").read_text(encoding="utf-8"))
    gains = {
        one.get("reading", "literal"): one["value"]
        for one in checks
        if one["name"] == "MULT over SINGLE, Localized1"
    }
    # More groups to tell apart, and trees that have a choice, make many trees worth their while.
    assert len(gains) == 2
    assert min(gains.values()) < 0.9 < gains["literal"]


@pytest.mark.slow
def test_a_quick_run_measures_what_it_did(reproduced: Path) -> None:
    check_golden("figures trees", measured_by_checks(reproduced))


@pytest.mark.slow
def test_a_quick_run_leaves_data_and_plots_and_nothing_else(reproduced: Path) -> None:
    names = {path.relative_to(reproduced).as_posix() for path in reproduced.rglob("*.*")}
    tables = {f"{name}.parquet" for name in ("costs", "mergers", "states")}
    plots = {f"plots/{plot}.{kind}" for plot in (*PLOTS, "real") for kind in ("pdf", "svg", "png")}
    assert names == tables | plots | {"claims.json", "checks.json", "readings.md"}
    for table in tables:
        assert pq.read_table(reproduced / table).num_rows > 0
    costs = pq.read_table(reproduced / "costs.parquet").to_pydict()
    assert set(costs["topology"]) == {"Square", *MADE_UP, ONE_KEYWORD}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "name", "low", "high"),
    [
        # What follows from the definitions of the strategies, whatever the graph.
        ("T1", "MULT, Localized1: 30 % over 3 % sampled", 0.5, 1.2),
        ("T2", "SemCast filtered over SemCast, Uniform", 0.05, 1),
        ("T3", "SPT over SINGLE, the most anywhere", 0.9, 3),
        ("T4", "SINGLE over OPT, Localized1", 1, 2),
        ("T5", "MULT over SINGLE", 0.8, 1.2),
        ("T6", "MULT, least cost over that of all apart", 0.05, 1),
        ("T7", "cost of MULT2 over MULT, Uniform", 0.8, 1.5),
    ],
)
def test_quick_values_are_in_their_bands(
    reproduced: Path, claim: str, name: str, low: float, high: float
) -> None:
    assert low <= checks_of(reproduced)[claim, name]["value"] <= high


@pytest.mark.slow
def test_figures_are_not_written_over_others(reproduced: Path) -> None:
    with pytest.raises(ResultsError, match="already holds results"):
        FIGURES["trees"](reproduced, quick=True, processes=1)


def test_the_full_plan_has_the_sizes_of_the_paper() -> None:
    runs = plan_runs(FULL, [])
    costs = [
        run
        for run in runs
        if (run.study, run.topology, run.reading) == (COSTS, "transit-stub", "literal")
    ]
    assert {run.scenario.topology.brokers for run in costs} == {500, 1000, 2000, 5000}
    assert {run.scenario.workload.neighbourhood for run in costs} == {0.02, 0.15, 1.0}
    for run in costs:
        workload = run.scenario.workload
        assert (workload.keywords, workload.documents, workload.subscribers) == (1000, 10_000, 10)
        assert run.scenario.planning.sample_share == 0.03
        assert run.exact
    shares = next(run for run in runs if run.study == SHARES and run.locality == LOCALIZED1)
    assert shares.scenario.topology.brokers == 2000
    assert (min(shares.shares), max(shares.shares)) == (0.001, 0.5)


def test_no_run_is_planned_twice_and_real_networks_come_along(tmp_path: Path) -> None:
    for plan in (FULL, QUICK):
        runs = plan_runs(plan, [tmp_path / "Geant2012.gml"])
        keys = [(run.label, run.scenario.topology.brokers) for run in runs]
        assert len(set(keys)) == len(keys)
        assert [run.topology for run in runs if run.study == REAL] == ["Geant2012"]
    assert find_networks(tmp_path / "nowhere") == []
