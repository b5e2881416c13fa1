"""Handing the points of a sweep out, to whatever runs them, and keeping results as they come."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final, Generic

import attrs
import psutil

from gossamer.sim.errors import SimulationError, SweepStopped
from gossamer.sim.results.sweeps.folder import Place, SweepStore
from gossamer.sim.results.sweeps.plan import Point, SweepPlan
from gossamer.sim.study.tasks import Progress

# Of the memory that is free when a sweep begins.
_SHARE: Final = 0.8


@attrs.frozen(kw_only=True)
class SweepOutcome(Generic[Place]):
    """What came of a sweep.

    Attributes:
        folder: where the results are: as asked for, or the unfinished ones.
        points: how many there are.
        ran: how many ran now; the others were there.
        failed: points that could not be run, and why.
    """

    folder: Place
    points: int
    ran: int
    failed: Mapping[str, str]


class PointRunner(ABC):
    """Runs the points of a sweep, each waited for by a thread of its own.

    Attributes:
        at_once: points at a time, at most.
        shares_memory: whether all points run on this machine, whose memory they share.
    """

    def __init__(self, at_once: int, shares_memory: bool) -> None:
        self.at_once = at_once
        self.shares_memory = shares_memory
        self._stopped = threading.Event()

    @abstractmethod
    def run_point(self, point: Point, folder: Path, sweep: Path) -> Path:
        """Run a point; returns its result folder, within ``folder``.

        Args:
            point: what to run.
            folder: of this point alone, to be removed afterwards.
            sweep: the folder of the unfinished sweep, above it.

        Raises:
            SweepStopped: nothing that is tried can help; the sweep ends.
            SimulationError: the point cannot be run.
            OSError: no space is left; the sweep ends.
        """

    @abstractmethod
    def stop(self) -> None:
        """Let no point go on."""

    @property
    def is_stopped(self) -> bool:
        """Whether the sweep has ended early, so that nothing is to be tried again."""
        return self._stopped.is_set()

    def run(
        self,
        plan: SweepPlan,
        left: Sequence[Point],
        keep: Callable[[Point], None],
        progress: Progress,
    ) -> dict[str, str]:
        """Run the points of a sweep that are left; those that failed, with reasons.

        Args:
            plan: of the sweep.
            left: its points to run.
            keep: runs one and keeps its results; called in threads.
            progress: see `run_points`.
        """
        waiting = list(left)
        done = len(plan.points) - len(left)
        failed: dict[str, str] = {}
        under_way: dict[Future[None], Point] = {}
        threads = max(1, min(self.at_once, len(left)))
        with ThreadPoolExecutor(threads) as pool:
            progress(plan.name, done, len(plan.points))
            try:
                while waiting or under_way:
                    for point in self.next_points(waiting, list(under_way.values()), done):
                        waiting.remove(point)
                        under_way[pool.submit(keep, point)] = point
                    ended, _ = wait(under_way, return_when=FIRST_COMPLETED)
                    for future in ended:
                        point = under_way.pop(future)
                        reason = _reason(future)
                        if reason is not None:
                            failed[point.name] = reason
                        done += 1
                        progress(plan.name, done, len(plan.points))
            except BaseException:
                self._stopped.set()
                self.stop()
                raise
        return failed

    def next_points(
        self, waiting: Sequence[Point], under_way: Sequence[Point], done: int
    ) -> list[Point]:
        """The points to begin now: as many as there is room for, threads and memory."""
        free = self.at_once - len(under_way)
        if not self.shares_memory:
            return list(waiting[:free])
        # What the first compiles is there for the others.
        if done == 0:
            return [] if under_way else list(waiting[:1])
        budget = psutil.virtual_memory().available * _SHARE
        chosen: list[Point] = []
        for point in waiting:
            if len(chosen) >= free:
                break
            if point.memory_bytes <= budget or not (under_way or chosen):
                chosen.append(point)
                budget -= point.memory_bytes
        return chosen


def _reason(future: Future[None]) -> str | None:
    """Why a point failed; None if it did not. What is no fault of the point is raised."""
    try:
        future.result()
    except SweepStopped:
        raise
    except SimulationError as error:
        return str(error)
    return None


def report_nothing(_name: str, _done: int, _all: int) -> None:
    """The progress of sweeps that tell nobody."""


def run_points(
    plan: SweepPlan,
    store: SweepStore[Place],
    runner: PointRunner,
    *,
    resume: bool,
    progress: Progress = report_nothing,
) -> SweepOutcome[Place]:
    """Run the points of a sweep that are not there yet.

    Args:
        plan: what to run.
        store: where results are kept.
        runner: what runs points.
        resume: go on with an unfinished sweep.
        progress: called with the name of the sweep, points done, and all; at the beginning and
            after each.

    Raises:
        ResultsError: the place is taken, another process is at work on it, or it holds an
            unfinished sweep, or one of another plan.
        SweepStopped: the sweep cannot go on; what is finished is kept.
        OSError: the disk is full or not writable; what is finished is kept.
    """
    with store.held():
        store.claim(plan, resume)
        there = frozenset(store.finished())
        left = [point for point in plan.points if point.name not in there]
        try:
            failed = runner.run(plan, left, lambda one: store.keep(one, runner.run_point), progress)
        except BaseException:
            store.give_up()
            raise
        ran = len(left) - len(failed)
        folder = store.unfinished() if failed else store.complete(plan)
        return SweepOutcome(folder=folder, points=len(plan.points), ran=ran, failed=failed)
