"""`gossamer sim figures scot`: the evaluation of the SCOT paper (OctopiS), O1 to O7.

claims.json       verdicts, see `gossamer.sim.figures.common.claims`
checks.json       the numbers and bounds behind them
readings.md       both readings of every claim side by side
runs.parquet      one row a run: what was varied, and all measures
delays.parquet    largest delay of every 1,000 notifications received, over time
queues.parquet    longest output queue over time
plots/            named after the paper's figures: scot9a is like Fig. 9(a)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from gossamer.sim.figures.common.claims import (
    ALTERNATIVE,
    LITERAL,
    Claim,
    side_by_side,
)
from gossamer.sim.figures.common.experiments import row_of, stacked, write_figures
from gossamer.sim.figures.common.rows import check_claims
from gossamer.sim.figures.scot.claims import CLAIMS
from gossamer.sim.figures.scot.plots import Outcomes, draw
from gossamer.sim.figures.scot.studies import (
    CONTRADICTIONS,
    FULL,
    QUICK,
    READINGS,
    RunResult,
    find_quotes,
    plan_runs,
)
from gossamer.sim.results.results import check_destination
from gossamer.sim.study.records import Column
from gossamer.sim.study.tasks import Progress, run_tasks

_KEYS: Final = ("run.study", "run.reading", "run.routing", "run.x")


def reproduce_scot(
    out: Path, *, quick: bool, processes: int, progress: Progress | None = None
) -> list[Claim]:
    """Run everything behind Fig. 9 to 11 (Sec. 7), judge O1 to O7, write ``out`` whole.

    Takes and raises what `reproduce_vinifera` does, but needs no trace.
    ``quick`` runs a fiftieth of the paper's sizes and less.
    """
    check_destination(out)
    plan = QUICK if quick else FULL
    workload = find_quotes(plan.quotes, Path.cwd())
    found = run_tasks(plan_runs(plan, workload), processes, progress)
    literal, alternative = (
        check_claims(CLAIMS, Outcomes.of(found, reading)) for reading in (LITERAL, ALTERNATIVE)
    )
    claims = side_by_side(literal, alternative, READINGS, CONTRADICTIONS)
    tables = {
        "runs": _runs(found),
        "delays": stacked(found, _KEYS, [one.delays for one in found]),
        "queues": stacked(found, _KEYS, [one.queues for one in found]),
    }
    write_figures(out, claims, tables, lambda: draw(Outcomes.of(found)))
    return claims


def _runs(found: Sequence[RunResult]) -> dict[str, Column]:
    """One row a run."""
    return {
        **stacked(found, _KEYS, [row_of(one.measures) for one in found]),
        "seed": np.array([one.run.burst.seed for one in found]),
        "subscribers": np.array([one.run.burst.subscribers for one in found]),
        "publishers": np.array([one.run.burst.publishers for one in found]),
    }
