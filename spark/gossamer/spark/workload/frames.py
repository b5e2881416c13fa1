"""Row tables as data frames: tasks make the rows, Spark only carries them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs
import pyarrow as pa

from gossamer.sim.row_tables.table import CHUNK, RowTable

# Rows of a file, about: large enough for a column to compress, small enough to be read in parts.
_FILE_UNITS: Final = 2_000_000
_MOST_FILES: Final = 10_000


@attrs.frozen
class _Maker:
    """Makes the chunks whose numbers a task gets."""

    table: RowTable
    chunk: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield self.table.part(number * self.chunk, self.chunk)


def table_frame(
    session: Any, table: RowTable, partitions: int | None = None, chunk: int = CHUNK
) -> Any:
    """The rows of a table as a data frame.

    Args:
        session: of Spark.
        table: what is made.
        partitions: tasks, and files when it is written; chosen by size if None.
        chunk: units that a task makes at a time.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    chunks = -(-table.units // chunk)
    wanted = partitions or min(-(-table.units // _FILE_UNITS), _MOST_FILES)
    numbers = session.range(0, chunks, 1, max(1, min(wanted, max(chunks, 1))))
    return numbers.mapInArrow(_Maker(table, chunk), from_arrow_schema(table.schema))
