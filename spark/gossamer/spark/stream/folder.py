"""The folder of a stream that is followed.

stream.json               what is followed, and how; the same when it is resumed
deliveries/batch=N/       every line as it came, those that are none as `damaged`
windows/batch=N/          windows that changed; of each the latest batch counts
_checkpoint/              Spark's own, from which it resumes
lineage.json              what made it, see `gossamer.spark.storage.lineage`

A batch that a killed process left half-written is written anew by the next, as the same batch: its
folder is whole when its ``_SUCCESS`` is there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.results.storage.place import Place, PlaceError
from gossamer.spark.storage.folders import MARKER

STREAM_FILE: Final = "stream.json"
DELIVERIES, WINDOWS, CHECKPOINT = "deliveries", "windows", "_checkpoint"
_KEY: Final = ("begin", "subscriber")


def was_begun(out: Place, told: Mapping[str, Any]) -> bool:
    """Whether the same was followed in a folder before; if not it is empty, or not there.

    Raises:
        PlaceError: it follows something else or otherwise, or holds other things.
    """
    file = out / STREAM_FILE
    if not file.exists():
        there = [one.name for one in out.files() if not one.name.rpartition("/")[2].startswith(".")]
        if there:
            expected = f"expected a new folder, or one with {STREAM_FILE}"
            raise PlaceError(out, f"holds files ({there[0]}), {expected}")
        return False
    try:
        before = json.loads(file.read_bytes())
    except ValueError as error:
        raise PlaceError(file, f"is not the description of a stream ({error})") from error
    for name, value in told.items():
        if not isinstance(before, dict) or before.get(name) != value:
            found = before.get(name) if isinstance(before, dict) else before
            expected = "expected the same to go on, or another folder"
            raise PlaceError(out, f"was begun with {name} {found!r}, not {value!r}; {expected}")
    return True


def describe(out: Place, told: Mapping[str, Any]) -> None:
    """Say in a new folder what is followed."""
    (out / STREAM_FILE).write_bytes(json.dumps(told, indent=2).encode() + b"\n")


def batches_of(out: Place, part: str) -> dict[int, list[Place]]:
    """The files of each whole batch, by its number."""
    files: dict[int, list[Place]] = {}
    whole = set()
    for one in (out / part).files():
        batch, _, name = one.name.partition("/")
        number = int(batch.removeprefix("batch="))
        if name == MARKER:
            whole.add(number)
        elif name.endswith(".parquet"):
            files.setdefault(number, []).append(out / part / one.name)
    return {number: files.get(number, []) for number in sorted(whole)}


def windows_of(out: Place) -> pa.Table | None:
    """The windows as they are now, in the order of their beginnings; None if there are none."""
    latest: dict[tuple[Any, ...], dict[str, Any]] = {}
    schema = None
    for files in batches_of(out, WINDOWS).values():
        for file in files:
            table = pq.ParquetFile(file.source()).read()
            schema = table.schema
            for row in table.to_pylist():
                latest[tuple(row[name] for name in _KEY)] = row
    if schema is None:
        return None
    rows = [latest[key] for key in sorted(latest)]
    return pa.Table.from_pylist(rows, schema=schema)
