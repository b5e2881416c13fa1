"""The figures of both papers on filter aggregation: a quick run, and the parts they are made of."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest

from gossamer.sim.figures import FIGURES
from gossamer.sim.figures.common.claims import COUNT, MILLISECONDS, SECONDS, SHARE, Check, Claim
from gossamer.sim.figures.common.readings import side_by_side
from gossamer.sim.figures.covering.bursts.burst_figures import BURSTS
from gossamer.sim.figures.covering.bursts.runs import GROUPS, delay_groups
from gossamer.sim.figures.covering.bursts.studies import FULL, QUICK, plan_bursts
from gossamer.sim.figures.covering.figures import EXPERIMENTS
from gossamer.sim.figures.covering.readings.readings import READINGS
from gossamer.sim.figures.covering.table import TABLE
from gossamer.sim.results.results import ResultsError
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.studies.tree_brokers.overlay.service import CongestedTimes
from gossamer.sim.studies.tree_brokers.overlay.topology import controlled_49, controlled_55
from gossamer.sim.studies.tree_brokers.placement import (
    BEHIND_CORE,
    REGION,
    clusters,
    linked_clusters,
    placed,
)
from support.golden import check_golden, measured_by_checks

PLOTS = (
    *(f"selective{name}" for name in ("7a", "7b", "7c", "7d", "7e", "8", "9", "10a", "10b", "10c")),
    *(f"incremental{name}" for name in ("6a", "6b", "6c", "6d", "7", "_table_ii")),
)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run of the controlled scenarios and Table II."""
    out = tmp_path_factory.mktemp("figures") / "covering"
    FIGURES["covering"](out, quick=True, processes=1, experiments=(TABLE, BURSTS))
    return out


def checks_of(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    checks = json.loads((folder / "checks.json").read_text(encoding="utf-8"))
    return {(check["claim"], check["name"]): check for check in checks if "reading" not in check}


@pytest.mark.slow
def test_a_quick_run_judges_its_claims_in_order(reproduced: Path) -> None:
    claims = json.loads((reproduced / "claims.json").read_text(encoding="utf-8"))
    names = [*(f"P{number}" for number in range(1, 9)), *(f"I{number}" for number in range(1, 5))]
    assert [claim["id"] for claim in claims] == names
    for claim in claims:
        assert claim["verdict"] in ("holds", "differs")
        assert "not measured" not in claim["measured"]
        assert claim["reason"]


@pytest.mark.slow
def test_a_quick_run_measures_what_it_did(reproduced: Path) -> None:
    check_golden("figures covering", measured_by_checks(reproduced))


@pytest.mark.slow
def test_a_quick_run_leaves_data_and_plots_and_nothing_else(reproduced: Path) -> None:
    names = {path.relative_to(reproduced).as_posix() for path in reproduced.rglob("*.*")}
    tables = {f"{name}.parquet" for name in ("bursts", "core", "delays", "queues", "table_ii")}
    plots = {f"plots/{plot}.{kind}" for plot in PLOTS for kind in ("pdf", "svg", "png")}
    assert names == tables | plots | {"claims.json", "checks.json", "readings.md"}
    for table in tables:
        assert pq.read_table(reproduced / table).num_rows > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "name", "low", "high"),
    [
        # What follows from the workload and the rules, whatever a broker's speed.
        ("P2", "active at E for each unsubscription", 29, 31),
        ("P2", "packed, most at a broker, for each unsubscription", 0.5, 1),
        ("P2", "selective, E over A", 0, 6),
        ("P5", "selective", 0, 0.01),
        ("P6", "active, 12 over 4 unsubscriptions", 3, 1e4),
        ("P8", "active over selective", 2, 1e4),
        ("I2", "mean delay, active over incremental", 3, 1e4),
        ("I3", "incremental over active at E", 0, 0.2),
        ("I4", "active's mean delay, 75 over 25 triggered", 1.5, 100),
    ],
)
def test_quick_values_are_in_their_bands(
    reproduced: Path, claim: str, name: str, low: float, high: float
) -> None:
    assert low <= checks_of(reproduced)[claim, name]["value"] <= high


def test_every_claim_about_brokers_has_a_part_of_its_own() -> None:
    claims = [claim for part in EXPERIMENTS for claim in part.claims]
    assert len(set(claims)) == len(claims)
    controlled = {f"P{number}" for number in range(1, 9)} | {f"I{number}" for number in range(1, 5)}
    assert set(claims) >= controlled


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_bursts_of_a_task_share_their_subscriptions_and_none_is_run_twice(plan: Any) -> None:
    tasks = plan_bursts(plan)
    runs = [run for task in tasks for run in task.runs]
    keys = [(run.study, run.reading, run.covering, run.x) for run in runs]
    assert len(set(keys)) == len(keys)
    assert len({task.label for task in tasks}) == len(tasks)
    for task in tasks:
        first = task.runs[0].burst
        for run in task.runs:
            assert run.burst.workload == first.workload
            assert run.burst.placement == first.placement
            assert (run.covering == "lazy") == (task.runs[0].covering == "lazy")
            assert run.burst.settings.covering == run.covering
            assert not run.burst.settings.drop_unpaid


def test_the_full_plan_has_the_sizes_of_the_papers() -> None:
    bursts = {task.runs[0].study: task.runs[0].burst for task in plan_bursts(FULL)}
    selective, incremental = bursts["compared"], bursts["incremental"]
    assert (len(selective.overlay.graph), len(incremental.overlay.graph)) == (55, 49)
    for burst, subscriptions in ((selective, 30_000), (incremental, 80_000)):
        found = burst.workload.roots * burst.workload.step
        assert abs(found - subscriptions) < burst.workload.step
    assert (selective.unsubscriptions, incremental.unsubscriptions) == (300, 20)
    assert (selective.publish_every, incremental.publish_every) == (400_000, 10_000)
    assert (selective.unsubscribe_every, incremental.unsubscribe_every) == (500_000, 500_000)


@pytest.mark.parametrize("overlay", [controlled_55(), controlled_49()])
def test_clusters_are_two_to_four_brokers_behind_one_core_broker(overlay: Any) -> None:
    parts = clusters(overlay)
    assert sorted(host for part in parts for host in part) == sorted(overlay.subscriber_hosts)
    assert {len(part) for part in parts} <= {2, 3, 4}
    for part in parts:
        inner = {next(iter(overlay.graph[host])) for host in part}
        assert len({name for one in inner for name in overlay.graph[one] if name in "ABCDE"}) == 1


@pytest.mark.parametrize("overlay", [controlled_55(), controlled_49()])
def test_linked_clusters_are_two_to_four_brokers_that_are_adjacent(overlay: Any) -> None:
    parts = linked_clusters(overlay)
    assert {host for part in parts for host in part} >= set(overlay.subscriber_hosts)
    assert {len(part) for part in parts} <= {2, 3, 4}
    for part in parts:
        assert nx.is_connected(overlay.graph.subgraph(part))


def test_a_root_and_what_it_covers_have_their_clients_in_one_cluster() -> None:
    overlay, workload = controlled_55(), CoveringWorkload(20, 10)
    wanted = list(workload.subscriptions())
    for placement, parts in ((BEHIND_CORE, clusters(overlay)), (REGION, linked_clusters(overlay))):
        hosts = placed(placement, overlay, wanted, 3)
        for root in range(20):
            used = {host for host, one in zip(hosts, wanted, strict=True) if one.root == root}
            assert any(used <= set(part) for part in parts)


def test_both_readings_are_run_and_only_the_alternative_departs_from_the_letter() -> None:
    for reading, rule, displaced in (
        ("literal", "below", "triggered"),
        ("alternative", "at_most", "quenched"),
    ):
        runs = [run for task in plan_bursts(QUICK) for run in task.runs if run.reading == reading]
        assert {run.burst.settings.critical_rule for run in runs} == {rule}
        assert {run.burst.settings.displaced for run in runs} == {displaced}
        slow = {
            isinstance(run.burst.service, CongestedTimes)
            for run in runs
            if run.study != "incremental"
        }
        assert slow == {reading == "alternative"}


@pytest.mark.slow
def test_claims_are_judged_under_both_readings_with_the_same_bounds(reproduced: Path) -> None:
    checks = json.loads((reproduced / "checks.json").read_text(encoding="utf-8"))
    literal = {(one["claim"], one["name"]): one for one in checks if "reading" not in one}
    others = [one for one in checks if "reading" in one]
    assert {one["claim"] for one in others} == set(READINGS) - {"P9", "I5", "I6"}
    for one in others:
        beside = literal[one["claim"], one["name"]]
        assert (one["low"], one["high"], one["paper"]) == (
            beside["low"],
            beside["high"],
            beside["paper"],
        )
    claims = json.loads((reproduced / "claims.json").read_text(encoding="utf-8"))
    for claim in claims:
        assert ("alternative" in claim) == (claim["id"] in READINGS)
        if "alternative" in claim:
            assert claim["alternative"]["sentences"] == list(READINGS[claim["id"]].sentences)


@pytest.mark.slow
def test_readings_stand_side_by_side_in_a_table(reproduced: Path) -> None:
    lines = (reproduced / "readings.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")]
    assert {len(row) for row in rows} == {6}
    named = [row[0].strip("|* ") for row in rows if row[0].startswith("| **")]
    assert named == [*(f"P{n}" for n in range(1, 9)), *(f"I{n}" for n in range(1, 5))]


def test_an_alternative_with_other_bounds_is_refused() -> None:
    def claim(high: float) -> Claim:
        checks = [Check(name="n", value=1.0, unit=COUNT, paper="", high=high)]
        return Claim(id="P1", claim="c", checks=checks, explanation="e")

    (paired,) = side_by_side([claim(2.0)], [claim(2.0)], READINGS)
    assert paired.alternative is not None
    assert paired.entry()["alternative"]["verdict"] == "holds"
    with pytest.raises(ValueError, match="claim P1 has other bounds"):
        side_by_side([claim(2.0)], [claim(3.0)], READINGS)


def test_groups_of_delays_keep_what_they_are_of() -> None:
    times = np.array([0.0, 0.0, 10.0])
    groups = delay_groups(times, np.array([1.0, 3.0, 5.0]))
    assert {len(column) for column in groups.values()} == {GROUPS}
    means = groups["delay_mean_s"]
    assert (means[0], means[-1]) == (2.0, 5.0)
    assert np.isnan(means[1:-1]).all()


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.25, SECONDS, "0.25 s"),
        (4_400, SECONDS, "4,400 s"),
        (12.81, MILLISECONDS, "12.8 ms"),
        (23_999.6, COUNT, "24,000"),
        (0.0038, SHARE, "0.38 %"),
        (0.0, SHARE, "0 %"),
        (math.inf, COUNT, "not measured"),
    ],
)
def test_values_are_printed_with_their_unit(value: float, unit: str, shown: str) -> None:
    assert Check(name="n", value=value, unit=unit, paper="").measured() == f"n {shown}"


def test_a_taken_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(ResultsError, match="already holds results"):
        FIGURES["covering"](tmp_path, quick=True, processes=1)
