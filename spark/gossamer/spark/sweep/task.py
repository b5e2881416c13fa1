"""A point as a Spark task: run where there is room, its result folder written to the sweep's.

Tables of hundreds of megabytes do not pass through Spark: the task hands back the names and sizes
of its files (see `gossamer.spark.handover`).
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.sim.errors import SimulationError
from gossamer.spark.handover import Handed, SharedFolder, files_below
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
_RESULTS: Final = "results"


class PointFailed(SimulationError):
    """A point cannot be run, however often it is tried; nothing came of it."""


@attrs.frozen
class _Task:
    """Runs one scenario."""

    text: str
    shared: SharedFolder

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch) == 0:
                continue
            own = self.shared.own_folder()
            try:
                written = run_apart(self.text, own)
            except (SimulationError, ProtocolError) as error:
                yield _batch([("", "", 0, str(error), _number(error))])
                return
            yield _batch(
                [
                    (own.name, one.path.relative_to(own / _RESULTS).as_posix(), one.size, "", 0)
                    for one in written
                ]
            )


def run_apart(text: str, folder: Path) -> list[Handed]:
    """Run a scenario within ``folder``, without plots; the files of its results.

    Raises:
        SimulationError, ProtocolError: the scenario cannot be run.
    """
    from gossamer.sim.commands.run import Options, run_scenario
    from gossamer.sim.study.scenarios import read_scenario

    file, out = folder / "scenario.toml", folder / _RESULTS
    file.write_text(text, encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        scenario, kept = read_scenario(file, {})
        # Its progress is that of the sweep, told by the machine that keeps the results.
        options = Options(out=out, json=True, plots=False, threads=1, progress=False)
        run_scenario(scenario, kept, options)
    return list(files_below(out))


def run_on(session: Any, text: str, label: str, shared: SharedFolder) -> Path:
    """Run a scenario as a task of a session; its result folder, within the one that is shared.

    Raises:
        PointFailed: the scenario cannot be run.
        FolderUnseen: the worker does not see the folder.
        WorkerLost: the worker is gone.
        JobError: Spark failed, or the results are not what the worker wrote.
        OSError: no space is left.
    """
    with job_errors(label):
        rows = session.range(0, 1, 1, 1).mapInArrow(_Task(text, shared), _COLUMNS).collect()
    for row in rows:
        if row["number"] == errno.ENOSPC:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(shared.shown))
        if row["error"]:
            raise PointFailed(f"{label}: {row['error']}")
    found: Path = shared.path / rows[0]["attempt"] / _RESULTS
    for row in rows:
        Handed(found / row["file"], row["bytes"]).check()
    return found


def _number(error: BaseException) -> int:
    """The system's number of what an error came from; 0 if it did not come from the system."""
    cause = error.__cause__
    return cause.errno or 0 if isinstance(cause, OSError) else 0


def _batch(rows: list[tuple[str, str, int, str, int]]) -> pa.RecordBatch:
    columns = [
        pa.array(values, field.type)
        for values, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
