"""Systems that run round by round: side by side in threads, with checkpoints on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Thread
from typing import Any, Final, Protocol, TypeVar

from gossamer.sim.engine.windows.worker_threads import pinned, spread_over_cores
from gossamer.sim.study.checkpoints import Checkpoints
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.tasks import Progress, Task, run_tasks
from gossamer.sim.study.watching import Watch, Watched

CHECKPOINT_EVERY_S: Final = 180.0
# A run spends at most one part in so many of its time on checkpoints, however large they are.
CHECKPOINT_SHARE: Final = 20


S = TypeVar("S")
T = TypeVar("T")


class RoundByRound(Watched, Protocol):
    """One system of a run."""

    def run_round(self) -> None:
        """Run one round."""

    def kept(self) -> Any:
        """What a checkpoint keeps."""


def run_to_end(
    run: RoundByRound,
    progress: Progress | None,
    checkpoints: Checkpoints | None,
    every_s: float,
    watch: Watch | None = None,
) -> None:
    """Run all rounds that are left.

    Args:
        run: the system.
        progress: called at the beginning and after every round.
        checkpoints: where to keep the run; nowhere if None.
        every_s: wall-clock time between checkpoints, at least.
        watch: called before the first of them and after every round.

    Raises:
        KeyboardInterrupt: from ``progress``, between two rounds; the run is kept.
    """
    started = saved = time.monotonic()
    pause = every_s
    if watch is not None:
        watch(run)
    if progress is not None:
        progress(run.name, run.round, run.rounds)
    try:
        while not run.is_finished:
            run.run_round()
            if watch is not None:
                watch(run)
            if progress is not None:
                progress(run.name, run.round, run.rounds)
            if checkpoints is not None and time.monotonic() - saved >= pause:
                begun = time.monotonic()
                checkpoints.save(run.name, run.kept())
                saved = time.monotonic()
                pause = max(every_s, CHECKPOINT_SHARE * (saved - begun))
    except KeyboardInterrupt:
        if checkpoints is not None:
            checkpoints.save(run.name, run.kept())
        raise
    if checkpoints is not None and time.monotonic() - started >= every_s:
        checkpoints.save(run.name, run.kept())


def run_in_threads(
    run_one: Callable[[S, Sequence[int | None]], T], systems: Sequence[S], threads: int
) -> list[T]:
    """What ``run_one(system, cores)`` returns for each system, in their order.

    Args:
        run_one: runs a system with a thread for each of some cores; the first is the calling one's.
        systems: so many of them run at a time as there are threads.
        threads: divided among them where they are fewer.

    Raises:
        BaseException: what a run raised, of several that of the first system.
        KeyboardInterrupt: at once, without waiting for the runs.
    """
    side_by_side = min(threads, len(systems))
    cores = spread_over_cores(threads)
    numbers = count()
    done: dict[int, T] = {}
    failed: dict[int, BaseException] = {}

    def work(first: int) -> None:
        own = cores[first::side_by_side]
        with pinned(own[0]):
            while not failed and (number := next(numbers)) < len(systems):
                try:
                    done[number] = run_one(systems[number], own)
                except BaseException as error:
                    failed[number] = error

    # Daemons, which nobody waits for: a second Ctrl-C ends the process whatever a handler does.
    workers = [Thread(target=work, args=(first,), daemon=True) for first in range(side_by_side)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed:
        raise failed[min(failed)]
    return [done[number] for number in range(len(systems))]


# Systems of a run side by side: a process each, which share nothing.
#
# A system that is finished is kept at once, so that an interrupted run goes on with the others.


class Named(Protocol):
    """The outcome of a task, which says whose it is."""

    @property
    def name(self) -> str:
        """Of the system."""


One = TypeVar("One", bound=Named)


def run_systems(
    tasks: Mapping[str, Task[One]], scenario: Any, execution: Execution, *, name: str
) -> dict[str, One]:
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
    kept: dict[str, One] = {}
    if execution.resume and checkpoints is not None:
        kept = checkpoints.load_all(tasks)
    missing = [task for system, task in tasks.items() if system not in kept]

    def keep(record: One) -> None:
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
