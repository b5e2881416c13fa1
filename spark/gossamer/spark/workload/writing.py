"""`gossamer spark workload`: the folder of a workload, whole or not at all.

workload.json         kind, seed, settings, tables with their columns, checks
lineage.json          command, versions and inputs, see `gossamer.spark.storage.lineage`
<table>/*.parquet     the rows, see `gossamer.sim.row_tables`
trace.parquet         of churn, all sessions in one file, as `gossamer sim replay` reads it
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.sim.results.storage.place import AnyPlace, LocalPlace, Place, as_place
from gossamer.sim.results.storage.workloads import WORKLOAD_FILE
from gossamer.sim.row_tables.churn import ChurnRows
from gossamer.sim.row_tables.kinds import RowWorkload, Wish, make_workload
from gossamer.sim.row_tables.table import RowTable
from gossamer.sim.study.environment import versions
from gossamer.spark.jobs import job_errors, watched
from gossamer.spark.session import slots
from gossamer.spark.storage.folders import new_folder, sent_file
from gossamer.spark.storage.frames import opened_table
from gossamer.spark.storage.lineage import input_of, lineage_of, write_lineage
from gossamer.spark.workload.checks import Check, check_workload
from gossamer.spark.workload.row_files import write_row_table

TRACE_FILE: Final = "trace.parquet"


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
    session: Any, kind: str, wish: Wish, out: AnyPlace, partitions: int | None = None
) -> Written:
    """Make a workload, write it to a new folder and check it.

    Args:
        session: of Spark. All its workers need to see ``out``.
        kind: one of `gossamer.sim.row_tables.kinds.KINDS`.
        wish: what it is to be like.
        out: the new folder, see `gossamer.spark.storage.folders`; on any error it is not made.
        partitions: files of each table, exactly; chosen by size if None.

    Raises:
        ResultsError, PlaceError: ``out`` is taken, or another process is at work on it.
        ScenarioError: the workload is impossible.
        FolderUnseen: workers do not see the folder of ``out``.
        JobError: a job failed.
        OSError: the disk is full or not writable.
    """
    out = as_place(out)
    workload = make_workload(kind, wish)
    with new_folder(out) as folder:
        rows = {}
        for table in workload.tables():
            rows[table.name] = _write_table(session, table, folder, partitions, out)
        if isinstance(workload, ChurnRows):
            _write_trace(workload, folder)
        with job_errors("checking the workload"), watched(session, "checking"):
            checks = check_workload(session, workload, folder)
        described = _description(kind, wish, workload, rows, checks)
        (folder / WORKLOAD_FILE).write_bytes(json.dumps(described, indent=2).encode() + b"\n")
        write_lineage(folder, lineage_of(session, [wish.seed], _inputs(wish)))
    return Written(folder=out, rows=rows, checks=checks)


def _inputs(wish: Wish) -> list[dict[str, Any]]:
    """The file that a workload is made from, where there is one."""
    if wish.source is None:
        return []
    digest = hashlib.sha256(wish.source.read_bytes()).hexdigest()
    return [input_of(LocalPlace(wish.source), digest)]


def _write_table(
    session: Any, table: RowTable, folder: Place, partitions: int | None, out: Place
) -> int:
    """Write the table's files; returns its rows."""
    files = partitions or max(files_of(session, table), 1)
    with job_errors(f"writing {table.name}"), watched(session, table.name):
        return write_row_table(session, table, folder / table.name, files, out)


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
    kind: str, wish: Wish, workload: RowWorkload, rows: dict[str, int], checks: Sequence[Check]
) -> dict[str, Any]:
    return {
        "kind": kind,
        "seed": wish.seed,
        "settings": {
            "subscriptions": wish.subscriptions,
            "events": wish.events,
            **({"source": wish.source.name} if wish.source else {}),
            **wish.settings,
        },
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
