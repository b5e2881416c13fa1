"""The scenes behind the workflow figure of the incremental paper (Sec. V-C): what is run.

The paper does not say whether the four auditors audit at the same time: its claim is judged where
they do, and they are run one after another as well. Aggregates stay for good, as in the paper
(`drop_unpaid` is off); service times are its Table II.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import attrs

from gossamer.sim.figures.common.claims import ALTERNATIVE, LITERAL
from gossamer.sim.figures.covering.readings import incremental_times, settings_of
from gossamer.sim.figures.covering.scenes import SceneRun, SharedRuns
from gossamer.sim.studies.tree_brokers.workloads.processes import (
    EVERYTHING,
    TRIGGERS,
    Processes,
)
from gossamer.sim.studies.tree_brokers.workloads.scene import MINUTE, SECOND, Scene

WORKFLOW: Final = "workflow"
ACTIVE, INCREMENTAL = "active", "incremental"
TOGETHER, STAGGERED = "auditors together", "auditors one after another"
CASES: Final = (TOGETHER, STAGGERED)


def plan_workflow(quick: bool) -> list[SharedRuns]:
    """Active covering and incremental pruning, for both readings of the paper and of when the
    auditors audit."""
    whole = Processes()
    processes = attrs.evolve(whole, small=4, medium=4, large=2) if quick else whole
    minutes = 4 if quick else 11
    every = 3 if quick else 10
    tasks = []
    cases = CASES[:1] if quick else CASES
    for reading, case in product((LITERAL, ALTERNATIVE), cases):
        stagger = 0 if case == TOGETHER else every * MINUTE // 4
        workload = attrs.evolve(
            processes,
            audit_every=every * MINUTE,
            stagger=stagger,
            audited=EVERYTHING if reading == LITERAL else TRIGGERS,
        )
        runs = []
        for covering in (ACTIVE, INCREMENTAL):
            scene = Scene(
                workload=workload,
                settings=settings_of(reading, covering),
                service=incremental_times(reading, ACTIVE),
                span=minutes * MINUTE,
                drain=minutes * MINUTE,
                sample_every=SECOND,
            )
            runs.append(
                SceneRun(study=WORKFLOW, reading=reading, case=case, covering=covering, scene=scene)
            )
        tasks.append(SharedRuns(runs=runs))
    return tasks
