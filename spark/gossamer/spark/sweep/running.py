"""`gossamer spark sweep`: points as Spark tasks."""

from __future__ import annotations

import pickle
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import pyarrow as pa

from gossamer.protocol.content.encodings import decoded
from gossamer.sim.commands.progress import progress_bars
from gossamer.sim.errors import ResultsError
from gossamer.sim.results.results import SUMMARY_FILE
from gossamer.sim.results.storage.place import AnyPlace, LocalPlace, Place, as_place
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.sim.results.sweeps.folder import (
    RUNS,
    FolderStore,
    SweepStore,
    kept_sentence,
    what_is_kept,
    write_points,
)
from gossamer.sim.results.sweeps.plan import SCENARIO, SEED, Point, SweepPlan, read_sweep
from gossamer.sim.results.sweeps.scheduling import PointRunner, SweepOutcome, run_points
from gossamer.sim.study.tasks import Answers, Task, answered_by, attempt
from gossamer.spark.errors import WorkerLost
from gossamer.spark.handover import SharedFolder, Uploads
from gossamer.spark.jobs import java_may_be_gone, job_errors
from gossamer.spark.session import SessionSettings, runs_here, slots, spark_session
from gossamer.spark.storage.folders import local_of
from gossamer.spark.storage.lineage import lineage_of, write_lineage
from gossamer.spark.sweep.task import RemoteStore, finished_points, run_on, send_from, with_points

COMMAND: Final = ("gossamer", "spark", "sweep")
Result = TypeVar("Result")
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


def run_sweep(
    session: Any, plan: SweepPlan, out: AnyPlace, options: SweepOptions
) -> SweepOutcome[Place]:
    """Run the points of a sweep that are not there yet.

    Args:
        session: of Spark. Its workers need gossamer installed, and to see the folder of ``out``.
        plan: what to run.
        out: the new folder.
        options: how to run it.

    Raises:
        ResultsError: ``out`` is taken, another process is at work on it, or it holds
            an unfinished sweep, or one of another plan.
        ClusterLost: there is no worker, no session any more, or workers do not see the folder
            (`ClusterLost`); what is finished is kept.
        OSError: the disk is full or not writable; what is finished is kept.
    """
    points = SparkPoints(session, options)
    place = as_place(out)
    # Now, as the session may be lost when all points are there.
    lineage = lineage_of(session, [point.values[SEED] for point in plan.points], [])

    def finish(plan: SweepPlan, folder: Path) -> None:
        write_points(plan, folder)
        summaries = {
            point.name: (folder / RUNS / point.name / SUMMARY_FILE).read_bytes()
            for point in plan.points
        }
        write_lineage(LocalPlace(folder), with_points(lineage, plan, summaries))

    with progress_bars("points") as bars:
        if isinstance(place, RemotePlace):
            store: SweepStore[Place] = RemoteStore(place, points.send_point, lineage)
            return run_points(plan, store, points, resume=options.resume, progress=bars)
        folder = FolderStore(local_of(place), finish)
        found = run_points(plan, folder, points, resume=options.resume, progress=bars)
        return SweepOutcome(
            folder=LocalPlace(found.folder), points=found.points, ran=found.ran, failed=found.failed
        )


class SparkPoints(PointRunner):
    """Runs each point as a job of Spark."""

    def __init__(self, session: Any, options: SweepOptions) -> None:
        at_once = options.at_once
        if at_once is None:
            at_once = slots(session) if options.shares_memory else _MOST_WAITING
        super().__init__(at_once, options.shares_memory)
        self._session = session
        self._retries = options.retries

    def run_point(self, point: Point, folder: Path, sweep: Path) -> Path:
        """Run a point, again if its worker was lost."""
        shared = SharedFolder(folder, sweep)
        return self._retried(lambda: run_on(self._session, point.text, point.name, shared))

    def send_point(self, point: Point, uploads: Uploads) -> None:
        """Run a point whose task sends its results, again if its worker was lost."""
        self._retried(lambda: send_from(self._session, point.text, point.name, uploads))

    def _retried(self, run: Callable[[], Result]) -> Result:
        for _ in range(self._retries):
            try:
                return run()
            except WorkerLost:
                if self.is_stopped:
                    raise
        return run()

    def stop(self) -> None:
        """Let nothing go on; threads end when their jobs do."""
        with java_may_be_gone():
            try:
                self._session.sparkContext.cancelAllJobs()
            except Exception:  # a Spark Connect session has no context, and says so in many ways
                self._session.interruptAll()


def what_is_kept_at(sweep: str, out: Place) -> str:
    """What an interrupted sweep left, and how to go on with it, in words.

    Args:
        sweep: the sweep file.
        out: the folder asked for.
    """
    if not isinstance(out, RemotePlace):
        return what_is_kept(COMMAND, Path(sweep), local_of(out))
    try:
        is_kept = bool(finished_points(out))
    except ResultsError as error:
        return f"what is kept is not known: {error}"
    return kept_sentence(COMMAND, sweep, str(out), is_kept)


# Sweep files from any storage: fetched with the scenarios that they name.


def read_sweep_at(place: Place) -> SweepPlan:
    """Read a sweep file, and check every point of it.

    Raises:
        ScenarioError: as `read_sweep`.
        ResultsError: the storage fails, or the file or a scenario of it is not there.
    """
    if not isinstance(place, RemotePlace):
        return read_sweep(local_of(place))
    with _fetched_with_scenarios(place) as file:
        return read_sweep(file)


@contextmanager
def _fetched_with_scenarios(place: RemotePlace) -> Iterator[Path]:
    """The files on this machine, in the places to each other that they have there."""
    with tempfile.TemporaryDirectory(prefix="gossamer-sweep-") as folder:
        file = Path(folder) / place.name
        file.write_bytes(_content(place))
        for name in _scenarios(file):
            copy = Path(folder) / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(_content(place.beside(name)))
        yield file


def _content(place: RemotePlace) -> bytes:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        raise ResultsError(place, "does not exist, expected a file") from None


def _scenarios(file: Path) -> list[str]:
    """The scenarios that a sweep file names beside itself; `read_sweep` reports faults in it."""
    try:
        named = tomllib.loads(decoded(file.read_bytes())).get(SCENARIO)
    except ValueError:
        return []
    names = named if isinstance(named, list) else [named]
    return [name for name in names if isinstance(name, str) and _is_beside(name)]


def _is_beside(name: str) -> bool:
    path = Path(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts


# Tasks of `gossamer.sim.study.tasks` as Spark tasks: `gossamer sim figures ... --spark`.


_RETRIES: Final = 2


@contextmanager
def tasks_on_spark(master: str | None) -> Iterator[None]:
    """Let `run_tasks` run on a session of Spark, this machine's if there is no address.

    Raises:
        SimulationError: there is no such session.
    """
    settings = SessionSettings(master=master)
    with spark_session(settings) as session:
        at_once = slots(session) if runs_here(session) else _MOST_WAITING
        with answered_by(lambda tasks: run_on_spark(session, tasks, at_once)):
            yield


def run_on_spark(session: Any, tasks: Sequence[Task[Any]], at_once: int) -> Answers:
    """The outcomes of tasks as they come; the first alone, for what it compiles.

    Raises:
        JobError: Spark failed; the other tasks are given up.
    """
    if not tasks:
        return
    yield 0, _outcome(session, tasks[0])
    with ThreadPoolExecutor(at_once) as pool:
        waiting = {
            pool.submit(_outcome, session, task): number
            for number, task in enumerate(tasks)
            if number > 0
        }
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@attrs.frozen
class _Attempt:
    """Runs a task where Spark has room for it."""

    task: Task[Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch):
                outcome = pickle.dumps(attempt(self.task))
                yield pa.RecordBatch.from_pydict({"outcome": pa.array([outcome], pa.binary())})


def _outcome(session: Any, task: Task[Any]) -> Any:
    """What came of a task, tried again if its worker was lost."""
    for _ in range(_RETRIES):
        try:
            return _outcome_once(session, task)
        except WorkerLost:
            continue
    return _outcome_once(session, task)


def _outcome_once(session: Any, task: Task[Any]) -> Any:
    with job_errors(task.label):
        frame = session.range(0, 1, 1, 1).mapInArrow(_Attempt(task), "outcome binary")
        return pickle.loads(bytes(frame.first()["outcome"]))
