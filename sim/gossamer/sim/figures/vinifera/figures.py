"""`gossamer sim figures vinifera`: Fig. 3 to 5 of the Vinifera paper and its claims V1 to V10.

claims.json     verdicts, see `gossamer.sim.figures.common.claims`
checks.json     the numbers and bounds behind them
points.parquet  every run: what was varied, and all measures
load.parquet    load of every node of the runs with 1 to 5 attributes (Fig. 4(e))
hours.parquet   the runs under churn, hour by hour (Fig. 5)
plots/          fig3a to fig5c, SVG and PNG
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gossamer.sim.figures.common.checkout import CHECKOUT
from gossamer.sim.figures.common.claims import Claim, write_claims
from gossamer.sim.figures.common.measurements import Measurements
from gossamer.sim.figures.common.points import Outcome, run_points
from gossamer.sim.figures.vinifera.claims import check_claims
from gossamer.sim.figures.vinifera.plots import write_figures
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    CHURN,
    FULL,
    QUICK,
    find_trace,
    plan_points,
)
from gossamer.sim.results.results import check_destination, whole_folder, write_table
from gossamer.sim.study.records import Column
from gossamer.sim.study.tasks import Progress


def reproduce_vinifera(
    out: Path,
    *,
    quick: bool,
    processes: int,
    progress: Progress | None = None,
    checkout: Path = CHECKOUT,
) -> list[Claim]:
    """Run everything behind Fig. 3 to 5 (Sec. V), check V1 to V10, write ``out`` whole.

    Args:
        out: the new folder; on any error it is not made.
        quick: fewer points, seeds and events, and some hours of churn instead of a week.
        processes: points that run at a time.
        progress: called with "figures", points done and points in all.
        checkout: where the bundled traces are, and beside it ``shared/data``.

    Raises:
        ResultsError: ``out`` is taken.
        ScenarioError: there is no churn trace.
        SimulationError: a run failed.
        OSError: the disk is full or not writable.
    """
    check_destination(out)
    plan = QUICK if quick else FULL
    trace = find_trace(plan, checkout)
    outcomes = run_points(plan_points(plan, trace), processes, progress)
    found = Measurements(outcomes)
    claims = check_claims(found, trace)
    with whole_folder(Path(out), replace=False) as folder:
        write_claims(claims, folder)
        write_table(_points_table(outcomes), folder / "points.parquet")
        write_table(_load_table(outcomes), folder / "load.parquet")
        write_table(_hours_table(outcomes, trace.first_hour), folder / "hours.parquet")
        write_figures(found, trace, folder / "plots")
    return claims


def _points_table(outcomes: Sequence[Outcome]) -> dict[str, Column]:
    """One row a point."""
    points = [outcome.point for outcome in outcomes]
    return {
        "study": np.array([point.study for point in points]),
        "system": np.array([point.system for point in points]),
        "kind": np.array([point.kind for point in points]),
        "x": np.array([point.x for point in points]),
        "seed": np.array([point.scenario.seed for point in points]),
        **{
            name: np.array([outcome.measures[name] for outcome in outcomes])
            for name in outcomes[0].measures
        },
    }


def _load_table(outcomes: Sequence[Outcome]) -> dict[str, Column]:
    """One row a node of a point with 1 to 5 attributes, least load first."""
    chosen = [outcome for outcome in outcomes if outcome.point.study == ATTRIBUTES]
    return _stack([(outcome, {"load": outcome.load}) for outcome in chosen])


def _hours_table(outcomes: Sequence[Outcome], first_hour: float) -> dict[str, Column]:
    """One row an hour of a point under churn."""
    chosen = [outcome for outcome in outcomes if outcome.point.study == CHURN]
    return _stack(
        [
            (outcome, {**outcome.hours, "hour": outcome.hours["hour"] + first_hour})
            for outcome in chosen
        ]
    )


def _stack(parts: Sequence[tuple[Outcome, Mapping[str, Column]]]) -> dict[str, Column]:
    """Tables of points under one another, with columns that tell them apart."""
    lengths = [len(next(iter(table.values()))) for _, table in parts]
    points = [outcome.point for outcome, _ in parts]
    return {
        "system": np.repeat([point.system for point in points], lengths),
        "kind": np.repeat([point.kind for point in points], lengths),
        "x": np.repeat([point.x for point in points], lengths),
        "seed": np.repeat([point.scenario.seed for point in points], lengths),
        **{name: np.concatenate([table[name] for _, table in parts]) for name in parts[0][1]},
    }
