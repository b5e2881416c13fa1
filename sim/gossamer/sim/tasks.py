"""Runs that are independent of each other, in several processes.

A task is independent of all others and of the process that it runs in. The first task runs alone,
so that what it compiles is there for the others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol, TypeVar

import attrs

from gossamer.protocol.errors import ProtocolError
from gossamer.sim.errors import SimulationError

Progress = Callable[[str, int, int], None]
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Task(Protocol[T_co]):
    """Something to run; it is pickled to get to its process, and its outcome to come back."""

    @property
    def label(self) -> str:
        """For progress and errors."""

    def run(self) -> T_co:
        """Run it; raises `SimulationError` or `ProtocolError`."""


@attrs.frozen
class _Failure:
    """What went wrong in words, which can cross processes."""

    reason: str


def run_tasks(
    tasks: Sequence[Task[T]],
    processes: int,
    progress: Progress | None = None,
    *,
    name: str = "figures",
    finished: Callable[[T], None] = lambda _outcome: None,
) -> list[T]:
    """Run ``tasks`` and return their outcomes in the same order.

    Args:
        tasks: what to run; each begins as soon as a process is free, in this order.
        processes: how many run at a time.
        progress: called with ``name``, tasks done and tasks in all.
        name: of what is run.
        finished: called with each outcome as it comes.

    Raises:
        SimulationError: a task failed, or its process; the others are given up.
    """
    outcomes: dict[int, T] = {}
    for index, answer in _answers(tasks, processes):
        if isinstance(answer, _Failure):
            raise SimulationError(f"{tasks[index].label}: {answer.reason}")
        outcomes[index] = answer
        finished(answer)
        if progress is not None:
            progress(name, len(outcomes), len(tasks))
    return [outcomes[index] for index in range(len(tasks))]


def _answers(tasks: Sequence[Task[T]], processes: int) -> Iterator[tuple[int, T | _Failure]]:
    if processes <= 1:
        for index, task in enumerate(tasks):
            yield index, _attempt(task)
        return
    # Spawned, not forked: a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_stop_silently)
    try:
        if tasks:
            yield 0, pool.submit(_attempt, tasks[0]).result()
        waiting = {pool.submit(_attempt, tasks[i]): i for i in range(1, len(tasks))}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BrokenProcessPool:
        raise SimulationError(
            "a process of the run ended before its time; perhaps the memory does not suffice"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _stop_silently() -> None:
    """Let Ctrl-C, which reaches every process of a terminal, end this one without a word."""
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(1))


def _attempt(task: Task[T]) -> T | _Failure:
    try:
        return task.run()
    except (ProtocolError, SimulationError) as error:
        return _Failure(str(error))
