"""Systems of a run side by side: a process each, which share nothing.

A system that is finished is kept at once, so that an interrupted run goes on with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from gossamer.sim.study.checkpoints import Checkpoints
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.tasks import Progress, Task, run_tasks


class Named(Protocol):
    """The outcome of a task, which says whose it is."""

    @property
    def name(self) -> str:
        """Of the system."""


T = TypeVar("T", bound=Named)


def run_systems(
    tasks: Mapping[str, Task[T]], scenario: Any, execution: Execution, *, name: str
) -> dict[str, T]:
    """The records of systems, in the order of ``tasks``.

    Args:
        tasks: by system, what runs it.
        scenario: of the run, by which what is kept is known.
        execution: how to run; those that are kept at its checkpoint are not run again on resuming.
        name: of all of them, for progress.

    Raises:
        ScenarioError: what is kept is of another scenario.
        SimulationError: a system failed; those that are finished are kept.
    """
    folder = execution.checkpoint
    checkpoints = Checkpoints(folder, scenario) if folder is not None else None
    kept: dict[str, T] = {}
    if execution.resume and checkpoints is not None:
        kept = checkpoints.load_all(tasks)
    missing = [task for system, task in tasks.items() if system not in kept]

    def keep(record: T) -> None:
        kept[record.name] = record
        if checkpoints is not None:
            checkpoints.save(record.name, record)

    progress = _counting(execution.progress, len(kept))
    run_tasks(missing, execution.workers, progress, name=name, finished=keep)
    return {system: kept[system] for system in tasks}


def _counting(progress: Progress | None, before: int) -> Callable[[str, int, int], None]:
    """Progress that counts those that were finished before this run."""

    def report(name: str, done: int, total: int) -> None:
        if progress is not None:
            progress(name, before + done, before + total)

    return report
