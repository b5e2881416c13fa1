"""The figures of mobile clients and of business processes: a quick run of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gossamer.sim.figures import FIGURES
from gossamer.sim.figures.covering.scenes.mobile import MOBILE
from gossamer.sim.figures.covering.scenes.mobile_studies import plan_mobile
from gossamer.sim.figures.covering.scenes.scene_plots import plot_overlay
from gossamer.sim.figures.covering.scenes.workflow import WORKFLOWS
from gossamer.sim.figures.covering.scenes.workflow_studies import plan_workflow
from gossamer.sim.results.plot_style import plot_style, save
from gossamer.sim.studies.tree_brokers.overlay.topology import OVERLAYS
from support.golden import check_golden, measured_by_checks

PLOTS = (
    *(f"selective{name}" for name in ("11", "12ab", "12cd", "12ef")),
    *(f"incremental{name}" for name in ("8", "9a", "9b", "9c", "10a", "10b", "10c")),
    "workflow_overlay",
)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run."""
    out = tmp_path_factory.mktemp("figures") / "covering"
    FIGURES["covering"](out, quick=True, processes=1, experiments=(MOBILE, WORKFLOWS))
    return out


@pytest.mark.slow
def test_a_quick_run_judges_its_claims_in_order(reproduced: Path) -> None:
    claims = json.loads((reproduced / "claims.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in claims] == ["P9", "I5", "I6"]
    for claim in claims:
        assert claim["verdict"] in ("holds", "differs")
        assert "not measured" not in claim["measured"]
        assert claim["reason"]


@pytest.mark.slow
def test_a_quick_run_measures_what_it_did(reproduced: Path) -> None:
    check_golden("figures covering, scenes", measured_by_checks(reproduced))


@pytest.mark.slow
def test_a_quick_run_leaves_data_and_plots_and_nothing_else(reproduced: Path) -> None:
    names = {path.relative_to(reproduced).as_posix() for path in reproduced.rglob("*.*")}
    tables = {
        f"{name}{part}.parquet"
        for name in ("mobile", "workflow")
        for part in ("", "_times", "_brokers")
    }
    plots = {f"plots/{plot}.{kind}" for plot in PLOTS for kind in ("pdf", "svg", "png")}
    assert names == tables | plots | {"claims.json", "checks.json", "readings.md"}
    for table in tables:
        assert pq.read_table(reproduced / table).num_rows > 0


@pytest.mark.slow
def test_active_and_pruned_runs_deliver_the_same_in_the_end(reproduced: Path) -> None:
    rows: list[dict[str, Any]] = pq.read_table(reproduced / "mobile.parquet").to_pylist()
    for reading, case in {(row["reading"], row["case"]) for row in rows}:
        one, other = [row for row in rows if (row["reading"], row["case"]) == (reading, case)]
        assert one["publications"] == other["publications"] > 0
        # Whoever moves while a publication is under way may get it or not; under the alternative
        # monitors move four times as often.
        share = 0.02 if reading == "literal" else 0.05
        assert abs(one["deliveries"] - other["deliveries"]) < share * one["deliveries"]


@pytest.mark.slow
def test_only_pruning_has_more_false_positives_than_what_is_under_way(reproduced: Path) -> None:
    for name in ("mobile", "workflow"):
        for row in pq.read_table(reproduced / f"{name}.parquet").to_pylist():
            if (row["covering"], row["reading"]) == ("active", "literal"):
                assert row["false_positives"] < 0.01


def test_the_full_plan_has_the_sizes_of_the_papers() -> None:
    runs = [run for task in plan_mobile(False) for run in task.runs if run.reading == "literal"]
    scenes = {run.case: run.scene for run in runs}
    game: Any = scenes["all move"].workload
    city: Any = scenes["rush hour"].workload
    assert (game.players, game.publishers, game.monitor_every) == (5_000, 40, 120_000_000)
    assert game.player_every == 1_000_000
    assert (city.subscribers, len(city.overlay.graph)) == (200_000, 17)
    (work, *_) = (task.runs[0].scene.workload for task in plan_workflow(False))
    sizes: Any = work
    assert (sizes.small, sizes.medium, sizes.large, sizes.monitored) == (80, 80, 40, 0.3)
    assert (sizes.auditors, sizes.audit, sizes.audit_every) == (4, 60_000_000, 600_000_000)


@pytest.mark.parametrize("quick", [False, True])
def test_runs_of_a_task_differ_in_covering_alone(quick: bool) -> None:
    for task in [*plan_mobile(quick), *plan_workflow(quick)]:
        first, *others = (run.scene for run in task.runs)
        assert len(others) == 1
        for scene in others:
            assert scene.workload is first.workload
            assert (scene.service, scene.span, scene.drain) == (
                first.service,
                first.span,
                first.drain,
            )
            assert scene.settings.covering != first.settings.covering


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OVERLAYS))
def test_every_overlay_can_be_drawn(name: str, tmp_path: Path) -> None:
    with plot_style():
        figure = plot_overlay(OVERLAYS[name]())
        svg, files = save(figure, tmp_path, name)
    assert len(svg) > 1_000
    assert all(file.stat().st_size > 1_000 for file in files)
    (axes,) = figure.axes
    places = np.concatenate([np.asarray(group.get_offsets()) for group in axes.collections])
    assert len(np.unique(places.round(6), axis=0)) == len(OVERLAYS[name]().graph)
