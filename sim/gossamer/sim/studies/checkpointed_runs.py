"""Systems that run round by round: side by side in threads, with checkpoints on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Thread
from typing import Any, Final, Protocol, TypeVar

import attrs

from gossamer.sim.engine.windows.worker_threads import pinned, spread_over_cores
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.checkpoints import Checkpoints
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.tasks import Progress, Task, run_tasks
from gossamer.sim.study.watching import Watched

CHECKPOINT_EVERY_S: Final = 180.0
# A run spends at most one part in so many of its time on checkpoints, however large they are.
CHECKPOINT_SHARE: Final = 20


S = TypeVar("S")
T = TypeVar("T")


class RoundByRound(Watched, Protocol):
    """One system of a run."""

    def run_round(self) -> None:
        """Run one round."""

    def use_cores(self, cores: Sequence[int | None]) -> None:
        """Run on these cores from now on; changes no result."""

    def kept(self) -> Any:
        """What a checkpoint keeps."""

    def record(self) -> Any:
        """What it leaves."""


def only(scenario: T, system: str) -> T:
    """``scenario`` with that of its ``systems`` alone; raises `ScenarioError`."""
    whole: Any = scenario
    chosen = tuple(one for one in whole.systems if one.name == system)
    if not chosen:
        known = ", ".join(one.name for one in whole.systems)
        raise ScenarioError(None, "system", system, f"one of {known}")
    alone: T = attrs.evolve(whole, systems=chosen)
    return alone


def run_rounds(
    scenario: Any, execution: Execution, begin: Callable[[Any, Any], RoundByRound], every_s: float
) -> dict[str, Any]:
    """The records of the systems of a scenario by name, each run to its end in a thread.

    Args:
        scenario: with ``systems``.
        execution: how to run. Each of its workers is kept on a core of its own where there are that
            many cores; a single one is left to the operating system. Where there are fewer systems,
            they share the rows of one, if its engine can (see `suits_windows`).
        begin: makes the run of a system, of what a checkpoint has kept of it (None for nothing).
        every_s: wall-clock time between checkpoints, at least; more where writing one takes so long
            that it would be more than a twentieth of the run.

    Raises:
        ScenarioError: the checkpoints are of another scenario.
        KeyboardInterrupt: from the progress, between two rounds; the runs are kept.
    """
    folder = execution.checkpoint
    checkpoints = Checkpoints(folder, scenario) if folder is not None else None

    def run_one(system: Any, cores: Sequence[int | None]) -> Any:
        resumes = checkpoints is not None and execution.resume
        run = begin(system, checkpoints.load(system.name) if checkpoints and resumes else None)
        run.use_cores(cores)
        _run_to_end(run, execution, checkpoints, every_s)
        return run.record()

    records = _run_in_threads(run_one, scenario.systems, max(1, execution.workers))
    return {system.name: record for system, record in zip(scenario.systems, records, strict=True)}


def _run_to_end(
    run: RoundByRound, execution: Execution, checkpoints: Checkpoints | None, every_s: float
) -> None:
    """Run all rounds that are left, and keep them where there are checkpoints."""
    started = saved = time.monotonic()
    pause = every_s

    def report() -> None:
        if execution.watch is not None:
            execution.watch(run)
        if execution.progress is not None:
            execution.progress(run.name, run.round, run.rounds)

    report()
    try:
        while not run.is_finished:
            run.run_round()
            report()
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


def _run_in_threads(
    run_one: Callable[[S, Sequence[int | None]], T], systems: Sequence[S], threads: int
) -> list[T]:
    """What ``run_one(system, cores)`` returns for each system, or what the first to fail raises.

    The first core is the calling thread's. Threads are divided among systems where these are fewer.
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
    tasks: Mapping[str, Task[One]], scenario: object, execution: Execution, *, name: str
) -> dict[str, One]:
    """The records of systems, in the order of ``tasks``.

    Args:
        tasks: by system, what runs it; those that are kept are not run again on resuming.
        scenario: of the run, by which what is kept is known.
        execution: how to run.
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
