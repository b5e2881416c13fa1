"""Runs that are independent of each other, in several processes.

A task is independent of all others and of the process that it runs in. The first task runs alone,
so that what it compiles is there for the others. Who has machines beyond this one can run tasks on
them: `answered_by`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import attrs

from gossamer.protocol.kernel.errors import ProtocolError
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
class Failure:
    """What went wrong in words, which can cross processes."""

    reason: str


# The number of each task, as it comes, with its outcome.
Answers = Iterator[tuple[int, Any]]
_elsewhere: ContextVar[Callable[[Sequence[Task[Any]]], Answers] | None] = ContextVar(
    "elsewhere", default=None
)


@contextmanager
def answered_by(elsewhere: Callable[[Sequence[Task[Any]]], Answers]) -> Iterator[None]:
    """Let `run_tasks` have its tasks run elsewhere, which calls `attempt` for each."""
    token = _elsewhere.set(elsewhere)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def run_tasks(
    tasks: Sequence[Task[T]],
    processes: int,
    progress: Progress | None = None,
    *,
    name: str = "figures",
    finished: Callable[[T], None] = lambda _outcome: None,
) -> list[T]:
    """Run ``tasks`` and return their outcomes in the same order.

    Each begins as soon as one of the processes is free. ``progress`` is called with ``name``, tasks
    done and tasks in all, at the beginning and after each task, ``finished`` with each outcome.

    Raises:
        SimulationError: a task failed, or its process; the others are given up.
    """
    outcomes: dict[int, T] = {}
    if progress is not None:
        progress(name, 0, len(tasks))
    elsewhere = _elsewhere.get()
    answers = _answers(tasks, processes) if elsewhere is None else elsewhere(tasks)
    for index, answer in answers:
        if isinstance(answer, Failure):
            raise SimulationError(f"{tasks[index].label}: {answer.reason}")
        outcomes[index] = answer
        finished(answer)
        if progress is not None:
            progress(name, len(outcomes), len(tasks))
    return [outcomes[index] for index in range(len(tasks))]


def _answers(tasks: Sequence[Task[T]], processes: int) -> Iterator[tuple[int, T | Failure]]:
    if processes <= 1:
        for index, task in enumerate(tasks):
            yield index, attempt(task)
        return
    # Spawned, not forked: a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_stop_silently)
    try:
        if tasks:
            yield 0, pool.submit(attempt, tasks[0]).result()
        waiting = {pool.submit(attempt, tasks[i]): i for i in range(1, len(tasks))}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BrokenProcessPool:
        raise SimulationError(
            "a process of the run ended before its time; perhaps the memory does not suffice"
        ) from None
    except KeyboardInterrupt:
        # Ctrl-C has reached them as well; other signals come to this process alone.
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _stop_silently() -> None:
    """Let Ctrl-C, which reaches every process of a terminal, end this one without a word."""
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(1))


def attempt(task: Task[T]) -> T | Failure:
    """The outcome of a task, or why there is none."""
    try:
        return task.run()
    except (ProtocolError, SimulationError) as error:
        return Failure(str(error))
