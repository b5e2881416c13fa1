"""Folders of workloads, as `gossamer spark workload` makes them, for whoever simulates them.

workload.json         kind, seed, settings, tables with their columns and rows
<table>/*.parquet     the rows, in the order of the names of files
trace.parquet         of churn, all sessions

One in an object store is copied to this machine first, once for each content, so that a run can be
resumed without the store.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.compiled.store import cache_root
from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results.storage.place import LocalPlace, Place, place_of

WORKLOAD_FILE: Final = "workload.json"
_FIELDS: Final = (("kind", str), ("seed", int), ("settings", dict), ("tables", dict))
_COPIES: Final = "workloads"


@attrs.frozen(kw_only=True)
class WorkloadFolder:
    """A workload on this machine.

    Attributes:
        path: the folder.
        kind: such as "vinifera".
        seed: that it was made with.
        settings: that it was made with, by name.
        rows: of each table.
        fingerprint: of what it was made with, the same wherever it lies.
    """

    path: Path
    kind: str
    seed: int
    settings: Mapping[str, Any]
    rows: Mapping[str, int]
    fingerprint: str

    def columns(self, table: str, names: Sequence[str]) -> pa.Table:
        """Columns of a table, in the order of its rows.

        Raises:
            ScenarioError: a file is missing or damaged, or lacks a column or rows.
        """
        folder = self.path / table
        try:
            files = [
                pq.read_table(file, columns=list(names), page_checksum_verification=True)
                for file in sorted(folder.glob("*.parquet"))
            ]
        except (pa.ArrowException, OSError) as error:
            found = str(error).partition("\n")[0].rstrip(".")
            raise ScenarioError(str(folder), table, None, "its Parquet files", found) from error
        rows = sum(map(len, files))
        if not files or rows != self.rows.get(table):
            expected = f"{self.rows.get(table, 0):,}, as {WORKLOAD_FILE} tells"
            raise ScenarioError(str(folder), "rows", rows, expected)
        lacking = [name for name in names if name not in files[0].column_names]
        if lacking:
            raise ScenarioError(str(folder), lacking[0], None, "a column", "missing")
        return pa.concat_tables(files)


def described(place: Place) -> dict[str, Any]:
    """The content of a workload's ``workload.json``.

    Raises:
        ResultsError: it is not there, or damaged.
    """
    file = place / WORKLOAD_FILE
    try:
        told = json.loads(file.read_bytes())
        lacking = [name for name, kind in _FIELDS if not isinstance(told.get(name), kind)]
    except (FileNotFoundError, NotADirectoryError):
        raise ResultsError(place, f"holds no workload, expected {WORKLOAD_FILE} in it") from None
    except (ValueError, AttributeError) as error:
        raise ResultsError(file, f"is not the description of a workload ({error})") from error
    if lacking:
        raise ResultsError(file, f"has no {lacking[0]}, expected the description of a workload")
    return dict(told)


def workload_folder(path: Path) -> WorkloadFolder:
    """A workload in a folder of this machine.

    Raises:
        ResultsError: there is none, or its description is damaged.
    """
    told = described(LocalPlace(path))
    try:
        rows = {name: int(one["rows"]) for name, one in told["tables"].items()}
    except (KeyError, TypeError, ValueError):
        raise ResultsError(path / WORKLOAD_FILE, "does not tell the rows of its tables") from None
    made_with = {name: told[name] for name in ("kind", "seed", "settings")} | {"rows": rows}
    return WorkloadFolder(
        path=path,
        kind=told["kind"],
        seed=told["seed"],
        settings=told["settings"],
        rows=rows,
        fingerprint=hashlib.sha256(json.dumps(made_with, sort_keys=True).encode()).hexdigest(),
    )


def workload_here(text: str) -> WorkloadFolder:
    """The workload that a path or URL names; one elsewhere is copied into the folder of caches.

    Raises:
        StorageError, ResultsError: there is none, or its storage fails.
        OSError: it cannot be copied.
    """
    place = place_of(text)
    if isinstance(place, LocalPlace):
        return workload_folder(place.path.absolute())
    described(place)
    content = (place / WORKLOAD_FILE).read_bytes() + str(place).encode()
    copy = cache_root() / _COPIES / hashlib.sha256(content).hexdigest()[:32]
    if not copy.is_dir():
        _copy(place, copy)
    return workload_folder(copy)


def _copy(place: Place, target: Path) -> None:
    """Copy a folder to a new one of this machine, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".copying-") as scratch:
        made = Path(scratch) / "whole"
        for one in place.files():
            file = made / one.name
            file.parent.mkdir(parents=True, exist_ok=True)
            with (place / one.name).fetched() as found:
                shutil.copyfile(found, file)
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # another process was as fast
                raise
