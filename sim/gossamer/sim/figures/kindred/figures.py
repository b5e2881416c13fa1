"""`gossamer sim figures kindred`: V1 to V10 with `kindred` beside the others, and our own bounds.

claims.json     verdicts: V1 to V10 with `kindred` in Vinifera's place, and K1 to K12
checks.json     the numbers and bounds behind them
report.md       the same as tables, with the growth, the ablation and the other workloads
points.parquet  every run: what was varied, and all measures
load.parquet    load of every node, at the standard size and with several attributes
hours.parquet   the runs under churn, hour by hour
plots/          SVG and PNG

Until all of it is there, the outcomes of runs are kept in ``OUT.unfinished``: the same command goes
on with them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs

from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.figures.common.experiments import CHECKOUT, write_figures
from gossamer.sim.figures.common.measurements import (
    Measurements,
    hours_table,
    load_table,
    points_table,
)
from gossamer.sim.figures.common.points import kept_beside, run_kept_points
from gossamer.sim.figures.common.rows import check_claims
from gossamer.sim.figures.kindred.bounds import check_bounds
from gossamer.sim.figures.kindred.plots import draw
from gossamer.sim.figures.kindred.promises import promises
from gossamer.sim.figures.kindred.report import report_of
from gossamer.sim.figures.kindred.setup import FULL, QUICK, Data, Plan
from gossamer.sim.figures.kindred.studies import (
    BACKWARDS,
    FAST,
    MONTH,
    SILENT,
    plan_points,
)
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    CHURN,
    REAL_TRACE,
    SIZES,
    find_trace,
)
from gossamer.sim.figures.vinifera.studies import FULL as PAPER_FULL
from gossamer.sim.results.results import check_destination
from gossamer.sim.studies.peers.inputs.scenario import Churn
from gossamer.sim.study.tasks import Progress


def reproduce_kindred(
    out: Path,
    *,
    quick: bool,
    processes: int,
    progress: Progress | None = None,
    checkout: Path = CHECKOUT,
    plan: Plan | None = None,
) -> list[Claim]:
    """Run everything, check V1 to V10 and K1 to K12, write ``out`` whole.

    Args:
        out: the new folder; on any error it is not made, and what has been run is kept beside it.
        quick: a fraction of the sizes, one seed, and no month of churn.
        processes: points that run at a time.
        progress: called with "figures", points done and points in all.
        checkout: where the bundled traces are, and beside it ``shared/data``.
        plan: how much is run, in place of what ``quick`` says.

    Raises:
        ResultsError: ``out`` is taken.
        ScenarioError: there is no churn trace, or what is kept beside ``out`` is of other sources.
        SimulationError: a run failed.
        OSError: the disk is full or not writable.
    """
    out = Path(out)
    check_destination(out)
    chosen = plan or (QUICK if quick else FULL)
    data = find_data(chosen, checkout)
    kept = kept_beside(out)
    outcomes = run_kept_points(plan_points(chosen, data), processes, kept, progress)
    found = Measurements(outcomes)
    claims = [
        *check_claims(promises(data), found),
        *check_bounds(found, real_trace=data.real is not None),
    ]
    tables = {
        "points": points_table(outcomes),
        "load": load_table(outcomes, (SIZES, ATTRIBUTES)),
        "hours": hours_table(outcomes, _first_hours(chosen, data)),
    }
    report = report_of(found, claims)
    write_figures(out, claims, tables, lambda: draw(found, data), readings=False, report=report)
    shutil.rmtree(kept, ignore_errors=True)
    return claims


def find_data(plan: Plan, checkout: Path) -> Data:
    """The traces that are there; raises `ScenarioError` where there is none at all."""
    asked = attrs.evolve(PAPER_FULL, churn_hours=plan.churn_hours, bundled_hours=plan.bundled_hours)
    trace = find_trace(asked, checkout)
    is_real = trace.churn.trace.name == REAL_TRACE
    return Data(trace=trace, real=Churn(trace=trace.churn.trace) if is_real else None)


def _first_hours(plan: Plan, data: Data) -> dict[str, float]:
    """The hour of the trace at which each study under churn begins."""
    begins = dict.fromkeys((MONTH, FAST, BACKWARDS), 0.0)
    silent = 0.0 if plan.silence is None else plan.silence[0]
    return {**begins, CHURN: data.trace.first_hour, SILENT: silent}
