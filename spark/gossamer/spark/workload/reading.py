"""The folder of a workload read back, and checked against what it says of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.results.results import ResultsError
from gossamer.sim.row_tables.kinds import KINDS

WORKLOAD_FILE: Final = "workload.json"

_FIELDS: Final = (("kind", str), ("seed", int), ("settings", dict), ("tables", dict))


def read_description(folder: Path) -> dict[str, Any]:
    """The content of a workload's ``workload.json``.

    Raises:
        ResultsError: it is damaged, or of a kind that is not known.
    """
    file = folder / WORKLOAD_FILE
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        lacking = [name for name, kind in _FIELDS if not isinstance(told.get(name), kind)]
    except (ValueError, AttributeError) as error:
        raise ResultsError(file, f"is not the description of a workload ({error})") from error
    if lacking:
        raise ResultsError(file, f"has no {lacking[0]}, expected the description of a workload")
    if told["kind"] not in KINDS:
        expected = f"expected one of {', '.join(KINDS)}"
        raise ResultsError(file, f"is of the kind {told['kind']!r}, {expected}")
    return dict(told)


def check_table(folder: Path, name: str, told: Mapping[str, Any]) -> int:
    """The rows of a workload's table.

    Args:
        folder: of the workload.
        name: of the table.
        told: its entry in ``workload.json``.

    Raises:
        ResultsError: a file is damaged, a column is missing or of another type, or rows are.
    """
    try:
        columns = {one["name"]: one["type"] for one in told["columns"]}
        expected = int(told["rows"])
    except (KeyError, TypeError, ValueError):
        reason = f"does not tell columns and rows of {name}, expected it to"
        raise ResultsError(folder / WORKLOAD_FILE, reason) from None
    files = sorted((folder / name).glob("*.parquet"))
    rows = sum(_check_file(file, columns) for file in files)
    if rows != expected:
        raise ResultsError(folder / name, f"has {rows:,} rows, expected {expected:,}")
    return rows


def _check_file(file: Path, columns: Mapping[str, str]) -> int:
    try:
        with pq.ParquetFile(file) as opened:
            schema, rows = opened.schema_arrow, int(opened.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ResultsError(file, f"is damaged or no Parquet table ({reason})") from error
    for name, kind in columns.items():
        if name not in schema.names:
            raise ResultsError(file, f"has no column {name}, expected one of {kind}")
        found = str(schema.field(name).type)
        if _bare(found) != _bare(kind):
            raise ResultsError(file, f"has a column {name} of {found}, expected {kind}")
    return rows


def _bare(kind: str) -> str:
    """A type without the names of items of lists, which writers of Parquet choose themselves."""
    return kind.replace("element:", "item:").replace(" not null", "")
