"""`gossamer spark sweep`: points handed out, results kept as they come.

Beside the folder OUT, a sweep in progress holds OUT.unfinished, which becomes OUT when all points
are there:

sweep.json          the points of the sweep
runs/<point>/       the result folder of each, as `gossamer sim run` makes it, without plots
points.parquet, .csv   when all are there: a row a point and system, with all measures

A point is there or it is not: its folder is renamed into place whole. What is resumed runs those
that are not there.
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final

import attrs
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.commands.destination import UNFINISHED
from gossamer.sim.commands.progress import progress_bars
from gossamer.sim.errors import SimulationError
from gossamer.sim.results.held import held
from gossamer.sim.results.results import ResultsError, read_results, rename_to_free, scratch_folder
from gossamer.spark.errors import ClusterLost, WorkerLost
from gossamer.spark.handover import SharedFolder
from gossamer.spark.jobs import java_may_be_gone
from gossamer.spark.session import slots
from gossamer.spark.sweep.plan import SEED, SYSTEM, Point, SweepPlan
from gossamer.spark.sweep.task import run_on

PLAN_FILE: Final = "sweep.json"
RUNS: Final = "runs"
# Columns of the table of points beside what is varied, and what tells measures from all of these.
POINT, RESULT_HASH = "point", "result_hash"
MEASURED: Final = "measured."
# Of the memory that is free when a sweep begins.
_SHARE: Final = 0.8
# Jobs that wait at a cluster, which then knows how many workers are wanted.
_MOST_WAITING: Final = 256


@attrs.frozen(kw_only=True)
class SweepOptions:
    """How to run a sweep.

    Attributes:
        resume: go on with an unfinished one.
        at_once: points at a time; as many as the session has room for if None.
        retries: times that a point is tried again whose worker was lost.
        shares_memory: whether all points run on this machine, whose memory they share.
    """

    resume: bool = False
    at_once: int | None = None
    retries: int = 2
    shares_memory: bool = True


@attrs.frozen(kw_only=True)
class SweepOutcome:
    """What came of a sweep.

    Attributes:
        folder: where the results are: the folder asked for, or the unfinished one.
        points: how many there are.
        ran: how many ran now; the others were there.
        failed: points that could not be run, and why.
    """

    folder: Path
    points: int
    ran: int
    failed: Mapping[str, str]


def run_sweep(session: Any, plan: SweepPlan, out: Path, options: SweepOptions) -> SweepOutcome:
    """Run the points of a sweep that are not there yet.

    Args:
        session: of Spark. Its workers need gossamer installed, and to see the folder of ``out``.
        plan: what to run.
        out: the new folder.
        options: how to run it.

    Raises:
        ResultsError: ``out`` is taken, another process is at work on it, or it holds an unfinished
            sweep, or one of another plan.
        ClusterLost: there is no worker, no session any more, or workers do not see the folder
            (`FolderUnseen`); what is finished is kept.
        OSError: the disk is full or not writable; what is finished is kept.
    """
    out = Path(out)
    with held(out):
        return _run_alone(session, plan, out, options)


def _run_alone(session: Any, plan: SweepPlan, out: Path, options: SweepOptions) -> SweepOutcome:
    """Run a sweep on whose folder nobody else is at work."""
    unfinished = out.with_name(out.name + UNFINISHED)
    _claim(plan, unfinished, options.resume)
    runs = unfinished / RUNS
    left = [point for point in plan.points if not (runs / point.name).is_dir()]
    try:
        failed = _PointRunner(session, plan, runs, options).run(left)
    except BaseException:
        if not any(runs.iterdir()):
            shutil.rmtree(unfinished, ignore_errors=True)
        raise
    ran = len(left) - len(failed)
    if failed:
        return SweepOutcome(folder=unfinished, points=len(plan.points), ran=ran, failed=failed)
    _write_points(plan, unfinished)
    unfinished.rename(out)
    return SweepOutcome(folder=out, points=len(plan.points), ran=ran, failed={})


def _claim(plan: SweepPlan, unfinished: Path, resume: bool) -> None:
    """Make the folder of the sweep, or check that the one there is of this plan."""
    told = json.dumps(_description(plan), indent=2) + "\n"
    if not resume:
        try:
            unfinished.mkdir()
        except FileExistsError:
            raise ResultsError(
                unfinished,
                "holds an unfinished sweep; go on with it by --resume, choose another folder, or "
                "move it away",
            ) from None
        try:
            (unfinished / RUNS).mkdir()
            (unfinished / PLAN_FILE).write_text(told, encoding="utf-8")
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        return
    file = unfinished / PLAN_FILE
    if not file.is_file():
        raise ResultsError(unfinished, "does not exist, expected an unfinished sweep there")
    if file.read_text(encoding="utf-8") != told:
        raise ResultsError(file, "is of another sweep, expected the one that is to be resumed")
    (unfinished / RUNS).mkdir(exist_ok=True)
    for aside in (unfinished / RUNS).glob(".*.tmp"):
        shutil.rmtree(aside, ignore_errors=True)


def _description(plan: SweepPlan) -> dict[str, Any]:
    points = [
        {"name": point.name, "values": dict(point.values), "scenario": point.text}
        for point in plan.points
    ]
    return {"name": plan.name, "points": points}


class _PointRunner:
    """Hands points out to threads, each of which waits for one job of Spark."""

    def __init__(self, session: Any, plan: SweepPlan, runs: Path, options: SweepOptions) -> None:
        self._session = session
        self._plan = plan
        self._runs = runs
        self._options = options
        self._stopped = threading.Event()

    def run(self, left: Sequence[Point]) -> dict[str, str]:
        """Run these points; those that failed, with reasons."""
        waiting = list(left)
        done = len(self._plan.points) - len(left)
        failed: dict[str, str] = {}
        under_way: dict[Future[None], Point] = {}
        with progress_bars("points") as bars, ThreadPoolExecutor(self._at_once(left)) as pool:
            bars(self._plan.name, done, len(self._plan.points))
            try:
                while waiting or under_way:
                    for point in self._next(waiting, list(under_way.values()), done):
                        waiting.remove(point)
                        under_way[pool.submit(self._keep, point)] = point
                    ended, _ = wait(under_way, return_when=FIRST_COMPLETED)
                    for future in ended:
                        point = under_way.pop(future)
                        reason = _reason(future)
                        if reason is not None:
                            failed[point.name] = reason
                        done += 1
                        bars(self._plan.name, done, len(self._plan.points))
            except BaseException:
                self._stop()
                raise
        return failed

    def _at_once(self, left: Sequence[Point]) -> int:
        if self._options.at_once is not None:
            return self._options.at_once
        room = slots(self._session) if self._options.shares_memory else _MOST_WAITING
        return max(1, min(room, len(left)))

    def _next(self, waiting: Sequence[Point], under_way: Sequence[Point], done: int) -> list[Point]:
        """The points to begin now: as many as there is room for, threads and memory."""
        free = self._at_once(self._plan.points) - len(under_way)
        if not self._options.shares_memory:
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

    def _keep(self, point: Point) -> None:
        """Run a point, again if its worker was lost, and keep its results."""
        place = self._runs / point.name
        with scratch_folder(place) as folder:
            shared = SharedFolder(folder, self._runs.parent.absolute())
            for attempt in range(self._options.retries + 1):
                try:
                    found = run_on(self._session, point.text, point.name, shared)
                    break
                except WorkerLost:
                    if attempt == self._options.retries or self._stopped.is_set():
                        raise
            rename_to_free(found, place)

    def _stop(self) -> None:
        """Let nothing go on; threads end when their jobs do."""
        self._stopped.set()
        with java_may_be_gone():
            try:
                self._session.sparkContext.cancelAllJobs()
            except Exception:  # a Spark Connect session has no context, and says so in many ways
                self._session.interruptAll()


def _reason(future: Future[None]) -> str | None:
    """Why a point failed; None if it did not. What is no fault of the point is raised."""
    try:
        future.result()
    except ClusterLost:
        raise
    except SimulationError as error:
        return str(error)
    return None


def _write_points(plan: SweepPlan, folder: Path) -> None:
    """The table of all points, from their summaries."""
    summaries = {
        point.name: read_results(folder / RUNS / point.name).summary for point in plan.points
    }
    rows = point_rows(plan, summaries)
    names = list(dict.fromkeys(name for row in rows for name in row))
    full = [{name: row.get(name) for name in names} for row in rows]
    pq.write_table(pa.Table.from_pylist(full), folder / "points.parquet", compression="zstd")
    with (folder / "points.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=names)
        writer.writeheader()
        writer.writerows(full)


def point_rows(plan: SweepPlan, summaries: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row a point and system: what was varied, and all measures.

    Args:
        plan: of the sweep.
        summaries: the ``summary.json`` of each point, by its name.

    Returns:
        Rows by column. A measure that is called as what is varied in any point (or as another
        column) has `MEASURED` before its name, in all rows.
    """
    varied = [
        {key: value for key, value in point.values.items() if key not in (SEED, SYSTEM)}
        for point in plan.points
    ]
    taken = {POINT, SEED, SYSTEM, RESULT_HASH}.union(*varied)
    rows = []
    for point, values in zip(plan.points, varied, strict=True):
        summary = summaries[point.name]
        for system, measures in summary["systems"].items():
            numbers = {
                f"{MEASURED}{name}" if name in taken else name: float(value)
                for name, value in sorted(measures.items())
                if isinstance(value, int | float) and not isinstance(value, bool)
            }
            row = {POINT: point.name, **values, SEED: point.values[SEED], SYSTEM: system}
            rows.append(row | {RESULT_HASH: summary["result_hash"]} | numbers)
    return rows


def what_is_kept(sweep: Path, out: Path) -> str:
    """What an interrupted sweep left, and how to go on with it, in words."""
    if not out.with_name(out.name + UNFINISHED).is_dir():
        return "no point was finished yet, nothing is kept"
    words = ["gossamer", "spark", "sweep", os.fspath(sweep), "--out", os.fspath(out), "--resume"]
    return f"finished points are kept, go on by '{shlex.join(words)}'"
