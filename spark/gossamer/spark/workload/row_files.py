"""Row tables as Parquet files: each task makes the rows of one file and writes it itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.results.storage.place import AnyPlace, Place, as_place
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.sim.row_tables.table import CHUNK, RowTable
from gossamer.spark.handover import Handed, Handover, SharedFolder, Uploads
from gossamer.spark.storage.folders import local_of

# Units of a row group, about: large enough for a column to compress, small enough for memory.
GROUP_UNITS: Final = 16 * CHUNK
# Of the different values of a column, beyond which each is written where it comes: most columns
# are of numbers that hardly come twice, and a large dictionary of them is written in vain.
_DICTIONARY_BYTES: Final = 1 << 16
_COLUMNS: Final = "part int, attempt string, rows long, bytes long"
_SCHEMA: Final = pa.schema(
    [("part", pa.int32()), ("attempt", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64())]
)
_CODEC: Final = "spark.sql.parquet.compression.codec"


@attrs.frozen
class _Writer:
    """Writes the files whose numbers a task gets."""

    table: RowTable
    files: int
    codec: str
    handover: Handover

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
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
        told = session.range(0, files, 1, files).mapInArrow(writer, _COLUMNS).collect()
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
