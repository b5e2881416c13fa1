"""P1 to P8 and I2 to I4: the controlled scenarios of both papers, as a part of the figures.

bursts.parquet  one row a burst: what was varied, and all measures
core.parquet    one row a core broker of a burst
delays.parquet  delays over time, the publications of a burst in 120 groups
queues.parquet  input queues of the core over time
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.figures.common.experiments import Experiment
from gossamer.sim.figures.common.readings import ALTERNATIVE, LITERAL, side_by_side
from gossamer.sim.figures.covering.bursts.incremental import check_incremental
from gossamer.sim.figures.covering.bursts.outcomes import Outcomes
from gossamer.sim.figures.covering.bursts.plots import draw_bursts
from gossamer.sim.figures.covering.bursts.runs import Bursts, RunResult
from gossamer.sim.figures.covering.bursts.selective import check_comparison
from gossamer.sim.figures.covering.bursts.studies import FULL, QUICK, plan_bursts
from gossamer.sim.figures.covering.bursts.sweeps import check_sweeps
from gossamer.sim.figures.covering.readings.readings import READINGS
from gossamer.sim.study.records import Column, Table


def _tasks(quick: bool) -> list[Bursts]:
    return plan_bursts(QUICK if quick else FULL)


def _check(outcomes: Sequence[Sequence[RunResult]]) -> list[Claim]:
    literal, alternative = (
        _checked(Outcomes.of(outcomes, reading)) for reading in (LITERAL, ALTERNATIVE)
    )
    return side_by_side(literal, alternative, READINGS)


def _checked(found: Outcomes) -> list[Claim]:
    return [*check_comparison(found), *check_sweeps(found), *check_incremental(found)]


def _tables(outcomes: Sequence[Sequence[RunResult]]) -> dict[str, Table]:
    found = list(chain.from_iterable(outcomes))
    return {
        "bursts": _bursts_table(found),
        "core": _stack(found, [one.core for one in found]),
        "delays": _stack(found, [one.delays for one in found]),
        "queues": _stack(found, [one.queues for one in found]),
    }


def _bursts_table(found: Sequence[RunResult]) -> dict[str, Column]:
    names = found[0].measures
    rows = _stack(
        found, [{name: np.array([one.measures[name]]) for name in names} for one in found]
    )
    workloads = [one.run.burst.workload for one in found]
    return {
        **rows,
        "roots": np.array([workload.roots for workload in workloads]),
        "degree": np.array([workload.degree for workload in workloads]),
        "seed": np.array([one.run.burst.seed for one in found]),
    }


def _stack(found: Sequence[RunResult], parts: Sequence[Table]) -> dict[str, Column]:
    """Tables of bursts under one another, with columns that tell them apart."""
    lengths = [len(next(iter(part.values()))) for part in parts]
    runs = [one.run for one in found]
    keys: Mapping[str, Column] = {
        "study": np.repeat([run.study for run in runs], lengths),
        "reading": np.repeat([run.reading for run in runs], lengths),
        "covering": np.repeat([run.covering for run in runs], lengths),
        "x": np.repeat([run.x for run in runs], lengths),
    }
    return {**keys, **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}}


BURSTS: Final = Experiment(
    claims=("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "I2", "I3", "I4"),
    tasks=_tasks,
    check=_check,
    tables=_tables,
    draw=lambda outcomes: draw_bursts(Outcomes.of(outcomes)),
)
