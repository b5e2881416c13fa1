"""`gossamer spark workload`: the folder of a workload, whole or not at all.

workload.json         kind, seed, settings, all that are in effect, tables, checks
lineage.json          command, versions and inputs, see `gossamer.spark.storage.lineage`
<table>/*.parquet     the rows, see `gossamer.sim.row_tables`
trace.parquet         of churn, all sessions in one file, as `gossamer sim replay` reads it
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import AnyPlace, LocalPlace, Place, as_place
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.sim.results.storage.workloads import WORKLOAD_FILE, described
from gossamer.sim.row_tables.kinds import (
    KINDS,
    RowWorkload,
    WorkloadRequest,
    effective_settings,
    make_workload,
)
from gossamer.sim.row_tables.table import CHUNK, RowTable
from gossamer.sim.row_tables.vinifera import ChurnRows
from gossamer.sim.study.records import versions
from gossamer.spark.handover import Handed, Handover, SharedFolder, Uploads
from gossamer.spark.jobs import job_errors, say_cost, watched
from gossamer.spark.session import slots
from gossamer.spark.storage.delta import as_delta
from gossamer.spark.storage.folders import local_of, new_folder, sent_file
from gossamer.spark.storage.frames import by_tasks, opened_table
from gossamer.spark.storage.lineage import input_of, lineage_of, write_lineage
from gossamer.spark.workload.checks import Check, check_workload

# Row tables as Parquet files: each task makes the rows of one file and writes it itself.


# Units of a row group, about: large enough for a column to compress, small enough for memory.
GROUP_UNITS: Final = 16 * CHUNK
# Of the different values of a column, beyond which each is written where it comes: most columns
# are of numbers that hardly come twice, and a large dictionary of them is written in vain.
_DICTIONARY_BYTES: Final = 1 << 16
_SCHEMA: Final = pa.schema(
    [("part", pa.int32()), ("attempt", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64())]
)
_CODEC: Final = "spark.sql.parquet.compression.codec"


@attrs.frozen
class _Writer:
    """Writes the file of a number; called in tasks."""

    table: RowTable
    files: int
    codec: str
    handover: Handover

    def __call__(self, part: int) -> Iterator[pa.RecordBatch]:
        with self.handover.attempt() as own:
            file = own / file_name(part)
            rows = write_part(self.table, file, part, self.files, self.codec)
            (handed,) = self.handover.hand_over(own, [file])
        told = {"part": part, "attempt": handed.attempt, "rows": rows}
        yield pa.RecordBatch.from_pylist([told | {"bytes": handed.size}], schema=_SCHEMA)


def file_name(part: int) -> str:
    """The name of one of a table's files; in the order of names, rows are in theirs."""
    return f"part-{part:05}.parquet"


def write_part(table: RowTable, file: Path, part: int, files: int, codec: str = "zstd") -> int:
    """Write one of so many files of a table, about as large as the others; its rows."""
    first, end = part * table.units // files, (part + 1) * table.units // files
    rows = 0
    with pq.ParquetWriter(
        file,
        table.schema,
        compression=codec,
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
        write_page_checksum=True,
    ) as writer:
        for group in range(first, end, GROUP_UNITS):
            stop = min(group + GROUP_UNITS, end)
            made = [table.part(at, min(CHUNK, stop - at)) for at in range(group, stop, CHUNK)]
            writer.write_table(pa.Table.from_batches(made, table.schema), GROUP_UNITS)
            rows += sum(map(len, made))
    return rows


def write_row_table(
    session: Any, table: RowTable, folder: AnyPlace, files: int, whole: AnyPlace
) -> int:
    """Write a table into a new folder, exactly so many files; returns its rows.

    Args:
        session: of Spark.
        table: what is made.
        folder: of the files; on any error it is not made, or left to whoever made the whole.
        files: how many, each by a task of its own; some are empty where there are fewer units.
        whole: the folder that it will be part of.

    Raises:
        Exception: of Spark's, see `gossamer.spark.jobs`.
        JobError: a file is not what a task wrote.
    """
    codec = session.conf.get(_CODEC, "zstd")
    with _handover(as_place(folder), as_place(whole)) as handover:
        writer = _Writer(table, files, codec, handover)
        told = by_tasks(session, range(files), writer, _SCHEMA, files).collect()
        handed = [Handed(row["attempt"], file_name(row["part"]), row["bytes"]) for row in told]
        handover.check(handed)
        if isinstance(handover, SharedFolder):
            target = local_of(as_place(folder))
            target.mkdir()
            for one in handed:
                (handover.path / one.attempt / one.file).rename(target / one.file)
    return sum(row["rows"] for row in told)


@contextmanager
def _handover(folder: Place, whole: Place) -> Iterator[Handover]:
    """Where tasks put the files of a table."""
    if isinstance(folder, RemotePlace):
        assert isinstance(whole, RemotePlace)
        yield Uploads(folder, whole)
        return
    # Workers import this module as well, and have no use for all that results are made of.
    from gossamer.sim.results.results import scratch_folder

    with scratch_folder(local_of(folder)) as scratch:
        yield SharedFolder(scratch, local_of(whole).absolute())


TRACE_FILE: Final = "trace.parquet"
# Units from which a table is large, and of which some are made first, to tell what it costs.
_LARGE_UNITS: Final = 100_000
_LOOKED_AT: Final = 1_000


@attrs.frozen(kw_only=True)
class Written:
    """What was written.

    Attributes:
        folder: where.
        rows: of each table.
        checks: of what was asked for against what is there.
    """

    folder: Place
    rows: dict[str, int]
    checks: Sequence[Check]


def write_workload(
    session: Any,
    kind: str,
    request: WorkloadRequest,
    out: AnyPlace,
    partitions: int | None = None,
    *,
    delta: bool = False,
) -> Written:
    """Make a workload, write it to a new folder and check it.

    Args:
        session: of Spark. All its workers need to see ``out``.
        kind: one of `gossamer.sim.row_tables.kinds.KINDS`.
        request: what it is to be like.
        out: the new folder, see `gossamer.spark.storage.folders`; on any error it is not made.
        partitions: files of each table, exactly; chosen by size if None.
        delta: whether the folders of tables are Delta tables as well, of the same files.

    Raises:
        ResultsError: ``out`` is taken, or another process is at work on it.
        ScenarioError: the workload is impossible.
        ClusterLost: workers do not see the folder of ``out``.
        JobError: a job failed.
        OSError: the disk is full or not writable.
    """
    out = as_place(out)
    workload = make_workload(kind, request)
    with new_folder(out) as folder:
        tables = [(one, partitions or max(files_of(session, one), 1)) for one in workload.tables()]
        count, size = (sum(one) for one in zip(*(_size_of(one) for one, _ in tables), strict=True))
        say_cost("making", count, size, sum(files for _, files in tables))
        rows = {one.name: _write_table(session, one, folder, files, out) for one, files in tables}
        if isinstance(workload, ChurnRows):
            _write_trace(workload, folder)
        with job_errors("checking the workload"), watched(session, "checking"):
            checks = check_workload(session, workload, folder)
        if delta:
            for table, _ in tables:
                as_delta(folder / table.name)
        described = _description(kind, request, workload, rows, checks)
        (folder / WORKLOAD_FILE).write_bytes(json.dumps(described, indent=2).encode() + b"\n")
        write_lineage(folder, lineage_of(session, [request.seed], _inputs(request)))
    return Written(folder=out, rows=rows, checks=checks)


def _inputs(request: WorkloadRequest) -> list[dict[str, Any]]:
    """The file that a workload is made from, where there is one."""
    if request.source is None:
        return []
    digest = hashlib.sha256(request.source.read_bytes()).hexdigest()
    return [input_of(LocalPlace(request.source), digest)]


def _write_table(session: Any, table: RowTable, folder: Place, files: int, out: Place) -> int:
    """Write the table's files; returns its rows."""
    with job_errors(f"writing {table.name}"), watched(session, table.name):
        return write_row_table(session, table, folder / table.name, files, out)


def _size_of(table: RowTable) -> tuple[int, int]:
    """About the rows of a table, and their bytes in memory where it is large."""
    if table.units < _LARGE_UNITS:
        return table.units, 0
    some = min(table.units, _LOOKED_AT)
    made = table.part(0, some)
    return len(made) * table.units // some, made.nbytes * table.units // some


def files_of(session: Any, table: RowTable) -> int:
    """As many files as keep all cores busy, and none large."""
    by_size = -(-table.units // 2_000_000)
    return max(by_size, slots(session)) if table.units > 200_000 else 1


def _write_trace(workload: ChurnRows, folder: Place) -> None:
    """All sessions in one file, with what rows cannot tell (see `gossamer.sim.churn.parquet`)."""
    extras = {"duration_s": workload.spec.duration_s, "sessionless": []}
    schema = pa.schema(
        [("node", pa.string()), ("start_s", pa.float64()), ("end_s", pa.float64())],
        metadata={b"gossamer.churn": json.dumps(extras).encode()},
    )
    with (
        sent_file(folder / TRACE_FILE) as target,
        pq.ParquetWriter(target, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for file in (folder / "sessions").tables():
            for batch in opened_table(file).iter_batches():
                names = pc.binary_join_element_wise("n", pc.cast(batch["node"], pa.string()), "")
                columns = [names, batch["start_s"], batch["end_s"]]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _description(
    kind: str,
    request: WorkloadRequest,
    workload: RowWorkload,
    rows: dict[str, int],
    checks: Sequence[Check],
) -> dict[str, Any]:
    return {
        "kind": kind,
        "seed": request.seed,
        "settings": {
            "subscriptions": request.subscriptions,
            "events": request.events,
            **({"source": request.source.name} if request.source else {}),
            **request.settings,
        },
        "effective": effective_settings(kind, request),
        "versions": versions(),
        "tables": {
            table.name: {
                "rows": rows[table.name],
                "columns": [
                    {"name": field.name, "type": str(field.kind), "meaning": field.meaning}
                    for field in table.fields
                ],
            }
            for table in workload.tables()
        },
        "checks": [attrs.asdict(check) | {"holds": check.holds} for check in checks],
    }


# The folder of a workload read back, and checked against what it says of itself.


def read_description(folder: AnyPlace) -> dict[str, Any]:
    """The content of a workload's ``workload.json``.

    Raises:
        ResultsError: it is damaged, or of a kind that is not known.
    """
    place = as_place(folder)
    told = described(place)
    if told["kind"] not in KINDS:
        expected = f"expected one of {', '.join(KINDS)}"
        reason = f"is of the kind {told['kind']!r}, {expected}"
        raise ResultsError(place / WORKLOAD_FILE, reason)
    return told
