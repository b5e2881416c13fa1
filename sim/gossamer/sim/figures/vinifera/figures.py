"""`gossamer sim figures vinifera`: Fig. 3 to 5 of the Vinifera paper and its claims V1 to V10.

claims.json     verdicts, see `gossamer.sim.figures.common.claims`
checks.json     the numbers and bounds behind them
points.parquet  every run: what was varied, and all measures
load.parquet    load of every node of the runs with 1 to 5 attributes (Fig. 4(e))
hours.parquet   the runs under churn, hour by hour (Fig. 5)
plots/          fig3a to fig5c, SVG and PNG
"""

from __future__ import annotations

from pathlib import Path

from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.figures.common.experiments import CHECKOUT, write_figures
from gossamer.sim.figures.common.measurements import (
    Measurements,
    hours_table,
    load_table,
    points_table,
)
from gossamer.sim.figures.common.points import run_points
from gossamer.sim.figures.common.rows import check_claims
from gossamer.sim.figures.vinifera.claims import claims_of
from gossamer.sim.figures.vinifera.plots import draw
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    CHURN,
    FULL,
    QUICK,
    find_trace,
    plan_points,
)
from gossamer.sim.results.results import check_destination
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
    claims = check_claims(claims_of(trace), found)
    tables = {
        "points": points_table(outcomes),
        "load": load_table(outcomes, (ATTRIBUTES,)),
        "hours": hours_table(outcomes, {CHURN: trace.first_hour}),
    }
    write_figures(out, claims, tables, lambda: draw(found, trace), readings=False)
    return claims
