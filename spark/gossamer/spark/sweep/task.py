"""A point as a Spark task: run where there is room, its result folder written to the sweep's.

Tables of hundreds of megabytes do not pass through Spark: the task hands back the names and sizes
of its files (see `gossamer.spark.handover`).
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.sim.errors import SimulationError
from gossamer.sim.results.results import SUMMARY_FILE
from gossamer.sim.results.sweeps.worker import RESULTS, run_apart, system_number
from gossamer.spark.handover import Handed, Handover, SharedFolder, Uploads, files_below
from gossamer.spark.jobs import job_errors

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


class PointFailed(SimulationError):
    """A point cannot be run, however often it is tried; nothing came of it."""


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
        PointFailed: the scenario cannot be run.
        FolderUnseen: the worker does not see the folder.
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
        PointFailed, WorkerLost, JobError, OSError: as `run_on`.
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
            raise PointFailed(f"{label}: {row['error']}")
    return [Handed(row["attempt"], row["file"], row["bytes"]) for row in rows]


def _batch(rows: list[tuple[str, str, int, str, int]]) -> pa.RecordBatch:
    columns = [
        pa.array(values, field.type)
        for values, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
