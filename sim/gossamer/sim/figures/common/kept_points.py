"""Points whose outcomes are kept until all are there, so that hours of work can be gone on with.

Each outcome is a checkpoint (`gossamer.sim.study.checkpoints`): it serves the same point under the
same sources only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gossamer.sim.figures.common.points import Outcome, Point
from gossamer.sim.study.checkpoints import Checkpoints
from gossamer.sim.study.tasks import Progress, run_tasks

# What is kept beside the folder of the figures until it is written, as of an unfinished run.
UNFINISHED: Final = ".unfinished"


def kept_beside(out: Path) -> Path:
    """Where the outcomes of figures are kept that are written to ``out`` in the end."""
    return out.with_name(out.name + UNFINISHED)


def run_kept_points(
    points: Sequence[Point], processes: int, folder: Path, progress: Progress | None = None
) -> list[Outcome]:
    """Run ``points``, but for those that ``folder`` has outcomes of, and return all in order.

    Args:
        points: of different labels.
        processes: how many run at a time.
        folder: each outcome is saved there as it comes; whoever has used them removes it.
        progress: as of `run_tasks`; counts those that were kept, too.

    Raises:
        ScenarioError: an outcome there is damaged, or of other sources than these.
        SimulationError: as `run_tasks`.
    """
    kept = {point.label: Checkpoints(folder, point.scenario) for point in points}
    found: dict[str, Outcome] = {}
    for label, checkpoints in kept.items():
        outcome = checkpoints.load(_name(label))
        if outcome is not None:
            found[label] = outcome
    missing = [point for point in points if point.label not in found]
    already = len(found)

    def save(outcome: Outcome) -> None:
        label = outcome.point.label
        kept[label].save(_name(label), outcome)
        found[label] = outcome

    def show(name: str, done: int, _total: int) -> None:
        if progress is not None:
            progress(name, already + done, len(points))

    run_tasks(missing, processes, show, finished=save)
    return [found[point.label] for point in points]


def _name(label: str) -> str:
    """The file of a point, whose label may hold anything."""
    return hashlib.sha256(label.encode()).hexdigest()[:20]
