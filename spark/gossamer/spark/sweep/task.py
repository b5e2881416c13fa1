"""A point as a Spark task: run where there is room, its result folder carried back as bytes.

Nothing is written but into a temporary folder of the worker, so that workers need to share no file
system with the machine that keeps the results.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from gossamer.protocol.errors import ProtocolError
from gossamer.sim.errors import SimulationError
from gossamer.spark.jobs import job_errors

_SCHEMA: Final = pa.schema(
    [("file", pa.string()), ("content", pa.large_binary()), ("error", pa.string())]
)
_COLUMNS: Final = "file string, content binary, error string"


class PointFailed(SimulationError):
    """A point cannot be run, however often it is tried; nothing came of it."""


@attrs.frozen
class _Task:
    """Runs one scenario."""

    text: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch) == 0:
                continue
            try:
                files = run_apart(self.text)
            except (SimulationError, ProtocolError) as error:
                yield _batch([("", b"", str(error))])
                return
            for name, content in files.items():
                yield _batch([(name, content, "")])


def run_apart(text: str) -> dict[str, bytes]:
    """Run a scenario in a temporary folder, without plots; its result folder, file by file.

    Raises:
        SimulationError, ProtocolError: the scenario cannot be run.
    """
    from gossamer.sim.commands.run import Options, run_scenario
    from gossamer.sim.commands.scenarios import read_scenario

    with tempfile.TemporaryDirectory(prefix="gossamer-point-") as scratch:
        file, out = Path(scratch) / "scenario.toml", Path(scratch) / "results"
        file.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            scenario, kept = read_scenario(file, {})
            # Its progress is that of the sweep, told by the machine that keeps the results.
            options = Options(out=out, json=True, plots=False, threads=1, progress=False)
            run_scenario(scenario, kept, options)
        return {
            path.relative_to(out).as_posix(): path.read_bytes()
            for path in sorted(out.rglob("*"))
            if path.is_file()
        }


def run_on(session: Any, text: str, label: str) -> Mapping[str, bytes]:
    """Run a scenario as a task of a session; its result folder, file by file.

    Raises:
        PointFailed: the scenario cannot be run.
        WorkerLost: the worker is gone.
        JobError: Spark failed.
    """
    with job_errors(label):
        rows = session.range(0, 1, 1, 1).mapInArrow(_Task(text), _COLUMNS).collect()
    failed = [row["error"] for row in rows if row["error"]]
    if failed:
        raise PointFailed(f"{label}: {failed[0]}")
    return {row["file"]: bytes(row["content"]) for row in rows}


def _batch(rows: list[tuple[str, bytes, str]]) -> pa.RecordBatch:
    files, contents, errors = zip(*rows, strict=True)
    columns = [
        pa.array(files, pa.string()),
        pa.array(contents, pa.binary()),
        pa.array(errors, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=_SCHEMA.names)
