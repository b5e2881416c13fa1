"""`gossamer sim figures covering`: both papers on filter aggregation, P1 to P9 and I1 to I6.

claims.json       verdicts, see `gossamer.sim.figures.common.claims`
checks.json       the numbers and bounds behind them
readings.md       both readings of every claim side by side
<table>.parquet   what the runs measured, see the modules of the experiments
plots/            named after the papers' figures: selective7a is Fig. 7(a) of the selective paper
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

import numpy as np

from gossamer.sim.figures.common.claims import (
    ALTERNATIVE,
    LITERAL,
    Claim,
    side_by_side,
)
from gossamer.sim.figures.common.experiments import Experiment, row_of, stacked, write_figures
from gossamer.sim.figures.common.rows import check_claims
from gossamer.sim.figures.covering.burst_runs import Bursts, RunResult
from gossamer.sim.figures.covering.burst_studies import FULL, QUICK, plan_bursts
from gossamer.sim.figures.covering.claims import INCREMENTAL_CLAIMS, SELECTIVE_CLAIMS
from gossamer.sim.figures.covering.plots import Outcomes, draw_bursts
from gossamer.sim.figures.covering.readings import CONTRADICTIONS, READINGS
from gossamer.sim.figures.covering.scene_claims import MOBILE, WORKFLOWS
from gossamer.sim.figures.covering.table import TABLE
from gossamer.sim.results.results import check_destination
from gossamer.sim.study.records import Column, Table
from gossamer.sim.study.tasks import Progress, run_tasks

# P1 to P8 and I2 to I4: the controlled scenarios of both papers, as a part of the figures.
#
# bursts.parquet  one row a burst: what was varied, and all measures
# core.parquet    one row a core broker of a burst
# delays.parquet  delays over time, the publications of a burst in 120 groups
# queues.parquet  input queues of the core over time


_KEYS: Final = ("run.study", "run.reading", "run.covering", "run.x")


def _tasks(quick: bool) -> list[Bursts]:
    return plan_bursts(QUICK if quick else FULL)


def _check(outcomes: Sequence[Sequence[RunResult]]) -> list[Claim]:
    claims = (*SELECTIVE_CLAIMS, *INCREMENTAL_CLAIMS)
    literal, alternative = (
        check_claims(claims, Outcomes.of(outcomes, reading)) for reading in (LITERAL, ALTERNATIVE)
    )
    return side_by_side(literal, alternative, READINGS, CONTRADICTIONS)


def _tables(outcomes: Sequence[Sequence[RunResult]]) -> dict[str, Table]:
    found = list(chain.from_iterable(outcomes))
    return {
        "bursts": _bursts_table(found),
        "core": stacked(found, _KEYS, [one.core for one in found]),
        "delays": stacked(found, _KEYS, [one.delays for one in found]),
        "queues": stacked(found, _KEYS, [one.queues for one in found]),
    }


def _bursts_table(found: Sequence[RunResult]) -> dict[str, Column]:
    workloads = [one.run.burst.workload for one in found]
    return {
        **stacked(found, _KEYS, [row_of(one.measures) for one in found]),
        "roots": np.array([workload.roots for workload in workloads]),
        "degree": np.array([workload.degree for workload in workloads]),
        "seed": np.array([one.run.burst.seed for one in found]),
    }


BURSTS: Final = Experiment(
    claims=("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "I2", "I3", "I4"),
    tasks=_tasks,
    check=_check,
    tables=_tables,
    draw=lambda outcomes: draw_bursts(Outcomes.of(outcomes)),
)


EXPERIMENTS: Final[tuple[Experiment, ...]] = (TABLE, BURSTS, MOBILE, WORKFLOWS)


def reproduce_covering(
    out: Path,
    *,
    quick: bool,
    processes: int,
    progress: Progress | None = None,
    experiments: Sequence[Experiment] = EXPERIMENTS,
) -> list[Claim]:
    """Run everything behind the evaluations of both papers (Sec. V), judge it, write ``out`` whole.

    Takes and raises what `reproduce_vinifera` does, but needs no trace.
    ``quick`` runs a tenth of the papers' sizes and less.
    ``experiments`` are those that are run.
    """
    check_destination(out)
    planned = [list(experiment.tasks(quick)) for experiment in experiments]
    outcomes = run_tasks([task for tasks in planned for task in tasks], processes, progress)
    bounds = np.cumsum([0, *map(len, planned)]).tolist()
    found = [outcomes[begin:end] for begin, end in pairwise(bounds)]
    pairs = list(zip(experiments, found, strict=True))
    claims = [claim for one, its in pairs for claim in one.check(its)]
    claims.sort(key=lambda claim: ("PI".index(claim.id[0]), int(claim.id[1:])))
    tables = {name: table for one, its in pairs for name, table in one.tables(its).items()}
    write_figures(out, claims, tables, lambda: chain(*(one.draw(its) for one, its in pairs)))
    return claims
