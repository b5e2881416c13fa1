"""Jobs and what becomes of their failures: one sentence, whatever Spark and Java have to say."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gossamer.command.signals import interrupt_behind
from gossamer.sim.commands.progress import ProgressLines
from gossamer.sim.errors import SimulationError
from gossamer.spark import internals as words
from gossamer.spark.errors import NO_WORKERS, ClusterLost, JobError, WorkerLost
from gossamer.spark.handover import unseen_sentence
from gossamer.spark.repeating import repeated

_LOOKING_S: Final = 0.3

_OWN_ERROR: Final = re.compile(r"gossamer\.[\w.]+(?:Error|Lost|Missing): ([^\n]+)")
_UNSEEN: Final = re.compile(r"gossamer\.spark\.errors\.ClusterLost: ([^\n]+)")
# The last line of a traceback of a task.
_RAISED: Final = re.compile(r"^\s*((?:OSError|[A-Z]\w*(?:Error|Exception|Interrupt)): .*)$", re.M)
_LONGEST: Final = 400
_NO_WORKERS: Final = re.compile(rf"{NO_WORKERS} for [\d.]+ seconds")


@contextmanager
def disk_errors(out: object) -> Iterator[None]:
    """Name the folder that is written to where the disk is full: the system's error does not."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(out)) from error


@contextmanager
def job_errors(what: str) -> Iterator[None]:
    """Turn what Spark raises into errors that say what went wrong in ``what``.

    Raises:
        WorkerLost: the process or machine of a task is gone.
        ClusterLost: there is no worker at all or no master, or workers do not see a folder of this
            machine.
        JobError: anything else of Spark's.
        KeyboardInterrupt: the job was interrupted. Spark speaks to Java once more when it clears
            up, over a connection that the interrupt has closed, and often fails in that.
    """
    try:
        yield
    except SimulationError:
        raise
    except Exception as error:
        if not is_of_spark(error):
            raise
        interrupt = interrupt_behind(error)
        if interrupt is not None:
            raise interrupt from None
        raise explained(what, error) from error


@contextmanager
def java_may_be_gone() -> Iterator[None]:
    """Let what is asked of Spark fail: a signal to a whole process group ends Java as well."""
    try:
        yield
    except Exception as error:
        if not is_of_spark(error):
            raise


def sentence_of(error: Exception) -> str:
    """What an error says; of the system's errors the file first, as elsewhere."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def is_of_spark(error: BaseException) -> bool:
    """Whether Spark, or the bridge to Java, raised an error."""
    origin = type(error).__module__.partition(".")[0]
    return origin in ("pyspark", "py4j", "grpc") or isinstance(error, ConnectionError)


def explained(what: str, error: BaseException) -> JobError:
    """The error of a job, from what Spark says of it."""
    text = str(error)
    no_workers = _NO_WORKERS.search(text)
    if no_workers:
        return ClusterLost(f"{what}: {no_workers[0]}, expected some to come (--patience)")
    unseen = _UNSEEN.findall(text)
    if unseen:
        return ClusterLost(f"{what}: {unseen[-1].strip()}")
    own = _OWN_ERROR.findall(text)
    if own:
        return JobError(f"{what}: {own[-1].strip()}")
    if words.FULL in text:
        return JobError(f"{what}: no space is left on the device")
    if "OutOfMemoryError" in text or re.search(r"\bMemoryError\b", text):
        return JobError(f"{what}: the memory does not suffice; give Spark more with --memory")
    if words.TOO_LARGE.search(text):
        expected = "expected less, or --conf spark.driver.maxResultSize=SIZE with --memory"
        return JobError(f"{what}: the results of tasks do not fit into Spark's memory, {expected}")
    file = words.FILE.search(text)
    if file and words.NOT_THERE.search(text):
        folder = Path("/" + unquote(file[1]).lstrip("/")).parent
        return ClusterLost(f"{what}: {unseen_sentence(folder, 'a worker')}")
    if words.DAMAGED.search(text):
        named = "/" + unquote(file[1]).lstrip("/") if file else "a file"
        return JobError(f"{what}: {named} is damaged, expected a whole Parquet table")
    program = words.NO_PROGRAM.search(text)
    if program:
        return JobError(f"{what}: Spark cannot run the program {program[1]}, expected it on PATH")
    if words.GONE.search(text):
        return ClusterLost(f"{what}: the cluster ended the session, or is gone")
    if words.LOST.search(text) or isinstance(error, ConnectionError):
        return WorkerLost(f"{what}: a worker was lost while it was at work")
    return JobError(f"{what}: {_essence(text) or type(error).__name__}")


def _essence(text: str) -> str:
    """The cause among the lines of an error, without stack traces and Java's class names."""
    raised = _RAISED.findall(text)
    if raised:
        return str(raised[-1].strip()[:_LONGEST])
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith(words.BRIDGE):
        del lines[0]  # the name that the bridge to Java has for what was called
    causes = [line for line in lines if line.startswith("Caused by: ")]
    chosen = causes[-1].removeprefix("Caused by: ") if causes else (lines or [""])[0]
    return re.sub(r"^([\w$]+\.)+[\w$]+: ", "", chosen)[:_LONGEST].rstrip(".")


# Rows of which a command says first what they cost.
_MANY: Final = 10_000_000


def say_cost(doing: str, rows: int, size: int, tasks: int) -> None:
    """Say on standard error how many rows and bytes tasks have before them, where it is many."""
    if rows >= _MANY:
        told = f"{doing} {rows:,} rows of {size / 1e9:,.1f} GB, uncompressed, in {tasks:,} tasks"
        print(f"gossamer: {told}", file=sys.stderr, flush=True)


@contextmanager
def watched(session: Any, label: str) -> Iterator[None]:
    """How many tasks are done, on standard error: a bar on a terminal, elsewhere lines."""
    tracker = _tracker(session)
    if tracker is None:
        yield
        return
    with (
        _bar(label) if sys.stderr.isatty() else _lines(label) as show,
        repeated(lambda: _look(tracker, show), _LOOKING_S),
    ):
        yield


@contextmanager
def _bar(label: str) -> Iterator[Callable[[int, int], None]]:
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tasks"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def _lines(label: str) -> Iterator[Callable[[int, int], None]]:
    report = ProgressLines("tasks", beginning="begun")
    yield lambda done, total: report(label, done, total)


def _tracker(session: Any) -> Any:
    try:
        return session.sparkContext.statusTracker()
    except Exception:  # a Spark Connect session has none, and says so in many ways
        return None


def _look(tracker: Any, show: Callable[[int, int], None]) -> None:
    with java_may_be_gone():
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        if known:
            done = sum(stage.numCompletedTasks for stage in known)
            show(done, sum(stage.numTasks for stage in known))
