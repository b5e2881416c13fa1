"""The folder of a workload read back, and checked against what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from gossamer.sim.results.storage.place import AnyPlace, Place, PlaceError, as_place
from gossamer.sim.results.storage.workloads import WORKLOAD_FILE, described
from gossamer.sim.row_tables.kinds import KINDS
from gossamer.spark.storage.frames import opened_table, unreadable


def read_description(folder: AnyPlace) -> dict[str, Any]:
    """The content of a workload's ``workload.json``.

    Raises:
        PlaceError: it is damaged, or of a kind that is not known.
    """
    place = as_place(folder)
    told = described(place)
    if told["kind"] not in KINDS:
        expected = f"expected one of {', '.join(KINDS)}"
        reason = f"is of the kind {told['kind']!r}, {expected}"
        raise PlaceError(place / WORKLOAD_FILE, reason)
    return told


def check_table(folder: Place, name: str, told: Mapping[str, Any]) -> int:
    """The rows of a workload's table.

    Args:
        folder: of the workload.
        name: of the table.
        told: its entry in ``workload.json``.

    Raises:
        PlaceError: a file is damaged, a column is missing or of another type, or rows are.
    """
    try:
        columns = {one["name"]: one["type"] for one in told["columns"]}
        expected = int(told["rows"])
    except (KeyError, TypeError, ValueError):
        reason = f"does not tell columns and rows of {name}, expected it to"
        raise PlaceError(folder / WORKLOAD_FILE, reason) from None
    rows = sum(_check_file(file, columns) for file in (folder / name).tables())
    if rows != expected:
        raise PlaceError(folder / name, f"has {rows:,} rows, expected {expected:,}")
    return rows


def _check_file(file: Place, columns: Mapping[str, str]) -> int:
    try:
        with opened_table(file) as opened:
            schema, rows = opened.schema_arrow, int(opened.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise PlaceError(file, unreadable(file, error, "is damaged or no Parquet table")) from error
    for name, kind in columns.items():
        if name not in schema.names:
            raise PlaceError(file, f"has no column {name}, expected one of {kind}")
        found = str(schema.field(name).type)
        if _bare(found) != _bare(kind):
            raise PlaceError(file, f"has a column {name} of {found}, expected {kind}")
    return rows


def _bare(kind: str) -> str:
    """A type without the names of items of lists, which writers of Parquet choose themselves."""
    return kind.replace("element:", "item:").replace(" not null", "")
