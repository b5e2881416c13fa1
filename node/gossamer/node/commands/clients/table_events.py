"""Events from the tables of a workload, a line of JSON each, for `gossamer pub --from`.

A workload is a folder of `gossamer spark workload`; its table ``events`` has a row an event. Rows
of SIENA's workload have names and values of their own, of any other the columns are the attributes.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from gossamer.command.extras import MissingLibraryError
from gossamer.node.errors import EventInputError

EVENTS: Final = "events"
NAMES, VALUES = "names", "values"
_BATCH_ROWS: Final = 1_000


@contextmanager
def opened_table(folder: Path, columns: Sequence[str]) -> Iterator[int]:
    """A pipe from which the events of a workload are read as lines.

    Args:
        folder: of the workload.
        columns: what is published, as ``ATTRIBUTE`` or ``ATTRIBUTE=COLUMN``; all that there is if
            none.

    Raises:
        EventInputError: there is no such table, it lacks a column, or it is damaged; what came
            before the damage was published.
    """
    files = sorted((folder / EVENTS).glob("*.parquet"))
    if not files:
        raise EventInputError(str(folder), "holds no table events, expected a workload")
    lines = event_lines(files, columns)
    first = list(islice(lines, 1))  # what is wrong with the table is told before anything begins
    read, write = os.pipe()
    faults: list[EventInputError] = []

    def feed() -> None:
        # Ended by the reader's end of the pipe being closed.
        with suppress(BrokenPipeError), os.fdopen(write, "wb") as pipe:
            try:
                for line in chain(first, lines):
                    pipe.write(line)
            except EventInputError as error:
                faults.append(error)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        yield read
    finally:
        os.close(read)
        feeder.join()
    if faults:
        raise faults[0]


def event_lines(files: Sequence[Path], columns: Sequence[str]) -> Iterator[bytes]:
    """The rows of Parquet files as lines of JSON, in their order.

    Raises:
        EventInputError: a file is damaged, or lacks a column.
        MissingLibraryError: what reads Parquet is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        # The extra of nodes is without it: few of them publish tables.
        raise MissingLibraryError("'gossamer pub' of tables", "sim", ("pyarrow",)) from None

    for file in files:
        try:
            with pq.ParquetFile(file, page_checksum_verification=True) as table:
                chosen = _chosen(file, table.schema_arrow.names, columns)
                for batch in table.iter_batches(_BATCH_ROWS, columns=list(chosen.values())):
                    for row in batch.to_pylist():
                        yield json.dumps(_event(row, chosen)).encode() + b"\n"
        except (pa.ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise EventInputError(str(file), f"is damaged or no Parquet table ({reason})") from None


def _chosen(file: Path, there: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """The column of each attribute."""
    if not columns:
        # The first column is the number of the row.
        return {name: name for name in there[1:]}
    pairs = [text.partition("=") for text in columns]
    chosen = {attribute: column or attribute for attribute, _, column in pairs}
    for column in chosen.values():
        if column not in there:
            raise EventInputError(
                str(file), f"has no column {column} (there are {', '.join(there)})"
            )
    return chosen


def _event(row: Mapping[str, Any], chosen: Mapping[str, str]) -> dict[str, Any]:
    if isinstance(row.get(NAMES), list) and isinstance(row.get(VALUES), list):
        return dict(zip(row[NAMES], row[VALUES], strict=True))
    return {attribute: row[column] for attribute, column in chosen.items()}
