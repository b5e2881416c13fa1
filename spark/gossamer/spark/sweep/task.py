"""A point as a Spark task: run where there is room, its result folder written to the sweep's.

Tables of hundreds of megabytes do not pass through Spark: the task hands back the names and sizes
of its files (see `gossamer.spark.handover`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.sim.errors import ResultsError, SimulationError
from gossamer.sim.results.results import SUMMARY_FILE
from gossamer.sim.results.storage.place import LocalPlace, Place
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.sim.results.sweeps.folder import (
    PLAN_FILE,
    RUNS,
    RunPoint,
    SweepStore,
    plan_text,
    point_rows,
    write_rows,
)
from gossamer.sim.results.sweeps.plan import SEED, Point, SweepPlan
from gossamer.sim.results.sweeps.worker import RESULTS, run_apart, system_number
from gossamer.spark.handover import Handed, Handover, SharedFolder, Uploads, files_below
from gossamer.spark.jobs import job_errors
from gossamer.spark.storage.folders import (
    ALREADY,
    CLAIMS,
    MARKER,
    WRITING,
    claimed,
    clear,
    commit,
    sent_folder,
)
from gossamer.spark.storage.lineage import write_lineage

# What made a sweep: its plan, and every point with the versions that ran it.
#
# A sweep that was resumed may have points of several versions; each tells its own.


def with_points(
    lineage: Mapping[str, Any], plan: SweepPlan, summaries: Mapping[str, bytes]
) -> dict[str, Any]:
    """The lineage of a whole sweep.

    Args:
        lineage: of its command, without inputs.
        plan: of the sweep.
        summaries: the content of the ``summary.json`` of each point, by its name.
    """
    inputs = [{"place": PLAN_FILE, "sha256": _digest(plan_text(plan).encode())}]
    for point in plan.points:
        content = summaries[point.name]
        told = json.loads(content)
        inputs.append(
            {
                "place": f"{RUNS}/{point.name}",
                "sha256": _digest(content),
                "seed": point.values[SEED],
                "result_hash": told["result_hash"],
                "versions": told["versions"],
            }
        )
    return {**lineage, "inputs": inputs}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_SCHEMA: Final = pa.schema(
    [
        ("attempt", pa.string()),
        ("file", pa.string()),
        ("bytes", pa.int64()),
        ("error", pa.string()),
        ("number", pa.int32()),
    ]
)
_COLUMNS: Final = "attempt string, file string, bytes long, error string, number int"


@attrs.frozen
class _Task:
    """Runs one scenario."""

    text: str
    handover: Handover

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch) == 0:
                continue
            with self.handover.attempt() as own:
                try:
                    found = run_apart(self.text, own)
                except (SimulationError, ProtocolError) as error:
                    yield _batch([("", "", 0, str(error), system_number(error))])
                    return
                handed = self.handover.hand_over(found, _summary_last(files_below(found)))
            yield _batch([(one.attempt, one.file, one.size, "", 0) for one in handed])


def _summary_last(files: list[Path]) -> list[Path]:
    """Files in an order in which the one by which a run is known comes last."""
    return sorted(files, key=lambda file: file.name == SUMMARY_FILE)


def run_on(session: Any, text: str, label: str, shared: SharedFolder) -> Path:
    """Run a scenario as a task of a session; its result folder, within the one that is shared.

    Raises:
        SimulationError: the scenario cannot be run.
        ClusterLost: the worker does not see the folder.
        WorkerLost: the worker is gone.
        JobError: Spark failed, or the results are not what the worker wrote.
        OSError: no space is left.
    """
    handed = _handed(session, text, label, shared, shared.shown)
    shared.check(handed, below=RESULTS)
    return shared.path / handed[0].attempt / RESULTS


def send_from(session: Any, text: str, label: str, uploads: Uploads) -> None:
    """Run a scenario as a task of a session that sends its results to an object store.

    Raises:
        SimulationError, WorkerLost, JobError, OSError: as `run_on`.
    """
    uploads.check(_handed(session, text, label, uploads, tempfile.gettempdir()))


def _handed(
    session: Any, text: str, label: str, handover: Handover, written: object
) -> list[Handed]:
    """The files that a scenario's task hands over; ``written`` is what it writes to."""
    with job_errors(label):
        rows = session.range(0, 1, 1, 1).mapInArrow(_Task(text, handover), _COLUMNS).collect()
    for row in rows:
        if row["number"] == errno.ENOSPC:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(written))
        if row["error"]:
            raise SimulationError(f"{label}: {row['error']}")
    return [Handed(row["attempt"], row["file"], row["bytes"]) for row in rows]


def _batch(rows: list[tuple[str, str, int, str, int]]) -> pa.RecordBatch:
    columns = [
        pa.array(values, field.type)
        for values, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


# A sweep in an object store: points are where they belong at once, and the marker comes last.
#
# A point is there when its summary is, which its task sends after all else. Until the marker
# `_SUCCESS` says that the sweep is whole, ``--resume`` runs the points that are not there.


# Summaries that are read at a time.
_READERS: Final = 16


@attrs.frozen
class RemoteStore(SweepStore[Place]):
    """A folder of an object store.

    Attributes:
        out: the new folder.
        send: runs a point, whose task sends its results.
        lineage: of the command, without inputs.
    """

    out: RemotePlace
    send: Callable[[Point, Uploads], None]
    lineage: Mapping[str, Any]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep every other process from working on the sweep."""
        with claimed(self.out):
            if (self.out / MARKER).exists():
                raise ResultsError(self.out, ALREADY)
            try:
                yield
            finally:
                with suppress(ResultsError):
                    (self.out / WRITING).delete()

    def claim(self, plan: SweepPlan, resume: bool) -> None:
        """Begin the sweep, or check that the one that was begun is of this plan."""
        file, told = self.out / PLAN_FILE, plan_text(plan).encode()
        if resume:
            try:
                found = file.read_bytes()
            except FileNotFoundError:
                reason = "does not exist, expected an unfinished sweep there"
                raise ResultsError(self.out, reason) from None
            if found != told:
                raise ResultsError(file, "is of another sweep, expected the one to be resumed")
        else:
            self._require_empty()
            file.write_bytes(told)
        (self.out / WRITING).write_bytes(b"")

    def _require_empty(self) -> None:
        there = [one.name for one in self.out.files() if not one.name.startswith(f"{CLAIMS}/")]
        if PLAN_FILE in there:
            action = "go on with it by --resume, choose another folder, or move it away"
            raise ResultsError(self.out, f"holds an unfinished sweep; {action}")
        if there:
            raise ResultsError(self.out, ALREADY.replace("results", f"files ({there[0]})"))

    def finished(self) -> Collection[str]:
        """The names of points whose summaries are there."""
        return finished_points(self.out)

    def keep(self, point: Point, run: RunPoint) -> None:
        """Run a point, whose task sends its results to where they belong."""
        del run
        self.send(point, Uploads(self.out / RUNS / point.name, self.out))

    def give_up(self) -> None:
        """Remove all where no point is finished."""
        with suppress(ResultsError):  # what went wrong first is told
            if not self.finished():
                clear(self.out)

    def unfinished(self) -> Place:
        """Where finished points are while others are not."""
        return self.out

    def complete(self, plan: SweepPlan) -> Place:
        """Write the table of all points, what made them, and the marker."""

        def summary(point: Point) -> bytes:
            return (self.out / RUNS / point.name / SUMMARY_FILE).read_bytes()

        with ThreadPoolExecutor(_READERS) as pool:
            contents = list(pool.map(summary, plan.points))
        names = [point.name for point in plan.points]
        summaries = dict(zip(names, contents, strict=True))
        with sent_folder(self.out) as here:
            rows = point_rows(plan, {name: json.loads(one) for name, one in summaries.items()})
            write_rows(rows, here / "points")
            write_lineage(LocalPlace(here), with_points(self.lineage, plan, summaries))
        commit(self.out)
        return self.out


def finished_points(out: RemotePlace) -> list[str]:
    """The names of the points of a sweep whose results are there."""
    parts = [one.name.split("/") for one in (out / RUNS).files()]
    return [part[0] for part in parts if part[1:] == [SUMMARY_FILE]]
