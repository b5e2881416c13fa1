"""Tasks of `gossamer.sim.study.tasks` as Spark tasks: `gossamer sim figures ... --spark`."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, Final

import attrs
import pyarrow as pa

from gossamer.sim.study.tasks import Answers, Task, answered_by, attempt
from gossamer.spark.errors import WorkerLost
from gossamer.spark.jobs import job_errors
from gossamer.spark.session import SessionSettings, runs_here, slots, spark_session

_RETRIES: Final = 2
_MOST_WAITING: Final = 256


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
