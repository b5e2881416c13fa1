"""The figures of kindred: a quick run of all, their bounds, and work that is gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow.parquet as pq
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.figures import FIGURES
from gossamer.sim.figures.common.claims import SHARE, Check, Claim
from gossamer.sim.figures.common.kept_points import kept_beside, run_kept_points
from gossamer.sim.figures.common.measurements import PATH, TREE, Measurements
from gossamer.sim.figures.common.points import Outcome, Point, run_points
from gossamer.sim.figures.kindred.bounds import CLAIMS, check_bounds
from gossamer.sim.figures.kindred.figures import find_data
from gossamer.sim.figures.kindred.plots import plot_sweep
from gossamer.sim.figures.kindred.report import formatted
from gossamer.sim.figures.kindred.setup import FULL, KINDRED, QUICK, SYSTEMS
from gossamer.sim.figures.kindred.studies import WITHOUT, plan_points
from gossamer.sim.results.plot_style import plot_style
from gossamer.sim.study.checkpoints import source_fingerprint
from support.checkout import ROOT

PROMISES = [f"V{number}" for number in range(1, 11)]
BOUNDS = [f"K{number}" for number in range(1, 13)]
PLOTS = (
    *("growth_overhead", "growth_hops", "growth_degree", "attributes", "congestion"),
    *("load", "churn", "ablation"),
)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run in a checkout with the bundled trace only."""
    checkout = tmp_path_factory.mktemp("somewhere") / "checkout"
    checkout.mkdir()
    (checkout / "traces").symlink_to(ROOT / "traces", target_is_directory=True)
    out = tmp_path_factory.mktemp("figures") / "kindred"
    FIGURES["kindred"](out, quick=True, processes=1, checkout=checkout)
    return out


def table_of(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / name).to_pylist()
    return rows


@pytest.mark.slow
def test_a_quick_run_judges_every_promise_and_says_what_was_not_run(reproduced: Path) -> None:
    claims = json.loads((reproduced / "claims.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in claims] == [*PROMISES, *BOUNDS]
    for claim in claims[:10]:
        assert claim["verdict"] in ("holds", "differs")
        assert "not measured" not in claim["measured"]
    reasons = {claim["id"]: claim["reason"] for claim in claims[10:]}
    assert {claim["verdict"] for claim in claims[10:]} == {"skipped"}
    assert "skype.avt.gz is not in shared/data" in reasons["K9"]
    assert "without --quick" in reasons["K1"]


@pytest.mark.slow
def test_a_quick_run_leaves_data_and_plots_and_nothing_else(reproduced: Path) -> None:
    names = {path.relative_to(reproduced).as_posix() for path in reproduced.rglob("*.*")}
    tables = {"points.parquet", "load.parquet", "hours.parquet"}
    plots = {f"plots/{plot}.{kind}" for plot in PLOTS for kind in ("pdf", "svg", "png")}
    assert names == tables | plots | {"claims.json", "checks.json", "report.md"}
    assert [path.name for path in reproduced.parent.iterdir()] == [reproduced.name]
    for table in tables:
        assert table_of(reproduced, table)


@pytest.mark.slow
def test_kindred_beats_the_others_wherever_they_stand_beside_it(reproduced: Path) -> None:
    rows = table_of(reproduced, "points.parquet")
    values = {(row["study"], row["system"], row["kind"], row["x"]): row for row in rows}
    for (study, system, kind, x), row in values.items():
        if study not in ("sizes", "attributes", "churn") or system == KINDRED:
            continue
        ours = values[study, KINDRED, kind, x]
        assert ours["traffic_overhead"] < row["traffic_overhead"], (study, system, kind, x)
        assert ours["path_length_mean"] < row["path_length_mean"], (study, system, kind, x)
        assert ours["hit_ratio"] >= row["hit_ratio"] - 0.001, (study, system, kind, x)


@pytest.mark.slow
def test_without_an_idea_something_is_worse(reproduced: Path) -> None:
    rows = table_of(reproduced, "points.parquet")
    for without in ("no-placement", "no-fingers", "no-nearest-routing", "no-guests", "no-key"):
        worse = set()
        for row in rows:
            if row["system"] != without:
                continue
            (whole,) = [
                other
                for other in rows
                if other["system"] == KINDRED
                and all(other[key] == row[key] for key in ("study", "kind", "x", "seed"))
            ]
            costs = ("traffic_overhead", "path_length_mean", "load_max")
            worse |= {cost for cost in costs if row[cost] > 1.1 * whole[cost]}
        assert worse, without


@pytest.mark.slow
def test_nothing_had_to_be_merged_or_came_twice(reproduced: Path) -> None:
    for row in table_of(reproduced, "points.parquet"):
        if row["system"] == KINDRED:
            assert row["merged"] == row["refused"] == row["duplicates"] == 0, row


@pytest.mark.slow
def test_the_report_has_a_row_for_every_check_and_workload(reproduced: Path) -> None:
    report = (reproduced / "report.md").read_text(encoding="utf-8")
    checks = json.loads((reproduced / "checks.json").read_text(encoding="utf-8"))
    for check in checks:
        assert f"| {check['name']} |" in report
    for words in ("eight of fifty topics a node", "half of the nodes replaced in an hour"):
        assert f"| {words} |" in report
    widths = {line.count("|") for line in report.splitlines() if line.startswith("| set-up")}
    assert widths == {10}
    assert "nan" not in report


def test_points_of_the_full_plan_are_distinct_and_say_which_preset_they_have() -> None:
    points = plan_points(FULL, find_data(FULL, ROOT))
    labels = [point.label for point in points]
    assert len(set(labels)) == len(labels)
    assert {point.system for point in points} == {*SYSTEMS, *WITHOUT} - (
        {"no-suspicion"} if find_data(FULL, ROOT).real is None else set()
    )
    for point in points:
        (system,) = point.scenario.systems
        assert (system.preset == "kindred") == (point.system == KINDRED or point.system in WITHOUT)


def test_with_the_real_trace_the_month_is_played_forwards_backwards_and_faster(
    tmp_path: Path,
) -> None:
    data = tmp_path / "shared" / "data"
    data.mkdir(parents=True)
    (data / "skype.avt.gz").touch()
    points = plan_points(FULL, find_data(FULL, tmp_path / "checkout"))
    played = {point.study: point.scenario.churn for point in points}
    assert played["month"] is not None
    assert played["fast"] == attrs.evolve(played["month"], time_scale=0.25)
    assert played["backwards"] == attrs.evolve(played["month"], backwards=True)
    assert all(
        not point.scenario.network.reports_unreachable
        for point in points
        if point.study in ("silent", "ablation_silent")
    )
    quick = plan_points(QUICK, find_data(QUICK, tmp_path / "checkout"))
    assert {"month", "silent"}.isdisjoint(point.study for point in quick)


def outcome_of(point: Point, value: float) -> Outcome:
    """What a point might have measured: one and the same of everything."""
    measures = {bound.measure: value for _, bounds in CLAIMS.values() for bound in bounds}
    return Outcome(point=point, measures=measures, load=np.empty(0), hours={})


def test_bounds_are_judged_at_their_own_sizes_by_means_of_all_seeds() -> None:
    points = [
        point
        for point in plan_points(FULL, find_data(FULL, ROOT))
        if (point.study, point.system, point.x) == ("sizes", KINDRED, 1000.0)
    ]
    assert len(points) == 6
    values = {1: 0.0, 2: 0.01, 3: 0.02}
    found = Measurements([outcome_of(one, values[one.scenario.seed]) for one in points])
    claims = {claim.id: claim for claim in check_bounds(found, real_trace=True)}
    assert list(claims) == BOUNDS
    assert {name for name, claim in claims.items() if not claim.skipped} == {"K1"}
    assert claims["K1"].holds
    assert [check.value for check in claims["K1"].checks] == pytest.approx([0.01] * 12)
    assert "mean of 3 seeds" in claims["K1"].reason
    worse = Measurements([outcome_of(one, 30.0) for one in points])
    (first, *_) = check_bounds(worse, real_trace=True)
    assert first.verdict == "differs"
    assert not any(check.holds for check in first.checks)


def test_bounds_of_another_size_are_not_judged() -> None:
    smaller = attrs.evolve(FULL, nodes=300, attribute_nodes=100)
    found = Measurements(
        [outcome_of(point, 1.0) for point in plan_points(smaller, find_data(FULL, ROOT))]
    )
    claims = {claim.id: claim for claim in check_bounds(found, real_trace=True)}
    assert all(claims[name].skipped for name in ("K4", "K5", "K6", "K7", "K12"))
    assert not any(claims[name].skipped for name in ("K1", "K2", "K3", "K8"))


def test_both_panels_of_a_sweep_show_all_of_their_lines() -> None:
    points = [point for point in plan_points(FULL, find_data(FULL, ROOT)) if point.study == "sizes"]
    values = {"random": 1.0, "skewed": 50.0}
    found = Measurements([outcome_of(point, values[point.kind]) for point in points])
    with plot_style():
        figure = plot_sweep(found, "sizes", [PATH, TREE], "Path length (hops)", "nodes")
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low == 0.0
        assert high >= 50.0
        assert len(axes.containers) == 2 * len(SYSTEMS)


def test_a_skipped_claim_neither_holds_nor_differs() -> None:
    skipped = Claim(id="K9", claim="c", checks=[], explanation="", skipped="not run: no trace")
    assert (skipped.verdict, skipped.reason) == ("skipped", "not run: no trace")
    assert not skipped.holds


def test_a_check_without_a_paper_names_its_bounds_alone() -> None:
    check = Check(name="overhead", value=0.3, unit=SHARE, high=0.24)
    assert check.finding() == "overhead 30.0 % (accepted: at most 24.0 %)"


@pytest.mark.parametrize(
    ("value", "how", "text"),
    [
        (0.1234, "%", "12.3 %"),
        (1.0, "%%", "100 %"),
        (0.99999, "%%", "99.9990 %"),
        (0.98, "%%", "98.0 %"),
        (4.123, ".1f", "4.1"),
        (1234.0, ".0f", "1,234"),
        (float("nan"), "%", "-"),
    ],
)
def test_values_of_tables(value: float, how: str, text: str) -> None:
    assert formatted(value, how) == text


def tiny_points() -> list[Point]:
    """Three points that take no time."""
    plan = attrs.evolve(QUICK, nodes=40, events=20, seeds=(1, 2, 3))
    chosen = [
        point
        for point in plan_points(plan, find_data(plan, ROOT))
        if (point.study, point.system, point.kind) == ("ablation", KINDRED, "random")
    ]
    assert len(chosen) == 3
    return chosen


@pytest.mark.slow
def test_what_was_measured_before_an_interruption_is_not_measured_again(tmp_path: Path) -> None:
    points = tiny_points()
    kept = kept_beside(tmp_path / "out")
    told: list[int] = []

    def interrupt(_name: str, done: int, total: int) -> None:
        assert total == 3
        told.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_kept_points(points, 1, kept, interrupt)
    assert len(list(kept.iterdir())) == 2
    again: list[int] = []
    outcomes = run_kept_points(points, 1, kept, lambda _name, done, _total: again.append(done))
    assert (told, again) == ([0, 1, 2], [2, 3])
    for one, other in zip(outcomes, run_points(points, 1), strict=True):
        assert one.point == other.point
        assert one.measures == pytest.approx(other.measures, nan_ok=True, rel=0, abs=0)


@pytest.mark.slow
def test_what_other_sources_measured_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = tiny_points()[:1]
    run_kept_points(points, 1, tmp_path / "kept")
    monkeypatch.setattr(
        "gossamer.sim.study.checkpoints.source_fingerprint", lambda: source_fingerprint()[::-1]
    )
    with pytest.raises(ScenarioError, match="of another version, expected one of this version"):
        run_kept_points(points, 1, tmp_path / "kept")
