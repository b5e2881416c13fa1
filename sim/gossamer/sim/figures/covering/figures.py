"""`gossamer sim figures covering`: both papers on filter aggregation, P1 to P9 and I1 to I6.

claims.json       verdicts, see `gossamer.sim.figures.common.claims`
checks.json       the numbers and bounds behind them
readings.md       both readings of every claim side by side
<table>.parquet   what the runs measured, see the modules of the experiments
plots/            named after the papers' figures: selective7a is Fig. 7(a) of the selective paper
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from gossamer.sim.figures.common.claims import Claim, write_claims
from gossamer.sim.figures.common.experiments import Experiment
from gossamer.sim.figures.common.readings import write_readings
from gossamer.sim.figures.covering.bursts.burst_figures import BURSTS
from gossamer.sim.figures.covering.readings.readings import with_contradictions
from gossamer.sim.figures.covering.scenes.mobile import MOBILE
from gossamer.sim.figures.covering.scenes.workflow import WORKFLOWS
from gossamer.sim.figures.covering.table import TABLE
from gossamer.sim.results.plot_style import plot_style, save
from gossamer.sim.results.results import check_destination, whole_folder, write_table
from gossamer.sim.study.tasks import Progress, run_tasks

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

    Args:
        out: the new folder; on any error it is not made.
        quick: a tenth of the papers' sizes and less.
        processes: runs that go on at a time.
        progress: called with "figures", runs done and runs in all.
        experiments: of the figures.

    Raises:
        ResultsError: ``out`` is taken.
        SimulationError: a run failed.
        OSError: the disk is full or not writable.
    """
    check_destination(out)
    planned = [list(experiment.tasks(quick)) for experiment in experiments]
    outcomes = run_tasks([task for tasks in planned for task in tasks], processes, progress)
    bounds = np.cumsum([0, *map(len, planned)]).tolist()
    found = [outcomes[begin:end] for begin, end in pairwise(bounds)]
    claims = [
        claim
        for experiment, its in zip(experiments, found, strict=True)
        for claim in experiment.check(its)
    ]
    claims.sort(key=lambda claim: ("PI".index(claim.id[0]), int(claim.id[1:])))
    claims = with_contradictions(claims)
    with whole_folder(Path(out), replace=False) as folder:
        write_claims(claims, folder)
        write_readings(claims, folder)
        for experiment, its in zip(experiments, found, strict=True):
            _write_experiment(experiment, its, folder)
    return claims


def _write_experiment(experiment: Experiment, outcomes: Sequence[Any], folder: Path) -> None:
    for name, table in experiment.tables(outcomes).items():
        write_table(table, folder / f"{name}.parquet")
    plots = folder / "plots"
    plots.mkdir(exist_ok=True)
    with plot_style():
        for name, figure in experiment.draw(outcomes):
            save(figure, plots, name)
