"""The result folder: written whole or not at all, read back.

summary.json                    measures of every system, see `gossamer.sim.results.results`
scenario.toml                   the scenario as the user wrote it
<system>/<table>.parquet        the tables of each system's record
<system>/snapshot_links/, _nodes/   overlays, see `gossamer.sim.results.overlay_files`
plots/<name>.svg, .png          what the study draws
report.html                     one page, needs no network
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.command.paths import foreign_storage
from gossamer.sim.errors import ResultsError
from gossamer.sim.study.records import Column, RunRecord, Table
from gossamer.sim.study.scenarios import study_of_values

if TYPE_CHECKING:
    import pyarrow as pa


def summarise(record: RunRecord[Any]) -> dict[str, Any]:
    """The content of ``summary.json``: plain values only, NaN and infinity replaced by None.

    Raises:
        ScenarioError: there is no study of the run's kind.
    """
    study = study_of_values(record.scenario)
    summary: dict[str, Any] = {
        "scenario": dict(record.scenario),
        "seed": record.seed,
        "versions": dict(record.versions),
        "wall_s": record.wall_s,
        "peak_rss_bytes": record.peak_rss_bytes,
        "result_hash": result_hash(record),
        "systems": {name: study.summarise(system) for name, system in record.systems.items()},
    }
    plain: dict[str, Any] = _plain(summary)
    return plain


def result_hash(record: RunRecord[Any]) -> str:
    """SHA-256, in hexadecimal, over everything in ``record`` that seed and scenario decide.

    Covers the tables, overlays and totals of every system and the seed; not wall-clock time,
    memory, versions, tables that the study names `unhashed`, the scenario's wording, the byte
    order of the machine or the order of rows.
    """
    # Tables whose rows an engine may write in any order are hashed in one.
    study = study_of_values(record.scenario)
    row_order = study.row_order
    digest = hashlib.sha256()
    digest.update(f"gossamer result 1\nseed {record.seed}\n".encode())
    for name in sorted(record.systems):
        system = record.systems[name]
        totals = json.dumps(_plain(dict(system.totals)), sort_keys=True)
        digest.update(f"system {name}\ntotals {totals}\n".encode())
        for table_name, table in system.tables():
            if table_name not in study.unhashed:
                _hash_table(digest, table_name, table, row_order.get(table_name, ()))
    return digest.hexdigest()


def dump_json(summary: Mapping[str, Any]) -> str:
    """The text of ``summary.json``, ending in a newline."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _hash_table(digest: hashlib._Hash, name: str, table: Table, order_by: Sequence[str]) -> None:
    """Feed the canonical bytes of ``table``, its rows in the order of columns, to ``digest``."""
    keys = [table[column] for column in reversed(order_by)]
    order = np.lexsort(keys) if keys else slice(None)
    for column in sorted(table):
        values = table[column][order]
        digest.update(f"{name}.{column} {values.dtype.name} {len(values)}\n".encode())
        digest.update(_canonical(values))


def _canonical(values: Column) -> bytes:
    """Little-endian bytes of ``values``, with one bit pattern for zero and one for NaN."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.nan, values + 0.0)
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()


def _plain(value: Any) -> Any:
    """``value`` with only the types that JSON has; NaN and infinities become None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, PathLike):
        return fspath(value)
    return value


SUMMARY_FILE = "summary.json"
SCENARIO_FILE = "scenario.toml"
REPORT_FILE = "report.html"
PLOTS_FOLDER = "plots"
_NO_TABLES: Mapping[str, Table] = MappingProxyType({})


def check_destination(path: Path, *, resumed: bool = False) -> None:
    """Check, before any work is done, that results could be written to ``path``; make its parent.

    Raises:
        ResultsError: see `check_place`.
        OSError: its parent folder cannot be made.
    """
    check_place(path, resumed=resumed)
    Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)


def check_place(path: Path, *, resumed: bool = False) -> None:
    """Check that results could be written to ``path``, and make nothing.

    Raises:
        ResultsError: ``path`` is a file, a folder that is not empty (unless ``resumed``), on
            storage that is not this machine's, or lies where nothing can be made.
    """
    elsewhere = foreign_storage(path)
    if elsewhere is not None:
        raise ResultsError(path, elsewhere)
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise ResultsError(path, "is a file, expected a new folder for the results")
    if not resumed and path.is_dir() and any(path.iterdir()):
        raise ResultsError(
            path, "already holds results; choose another folder, or move this one away"
        )
    above = next(one for one in path.absolute().parents if one.exists())
    if not above.is_dir():
        raise ResultsError(above, "is a file, expected a folder to make the result folder in")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ResultsError(above, "is not writable, expected to make the result folder in it")


def write_results(
    record: RunRecord[Any],
    path: Path,
    *,
    resumed: bool = False,
    pictures: bool = True,
    tables: Mapping[str, Table] = _NO_TABLES,
    beside: Path | None = None,
) -> dict[str, Any]:
    """Write ``record`` as the result folder ``path`` and return its summary.

    The folder is built under another name beside ``path`` and renamed when it is whole; on any
    error it is removed again. With ``resumed`` an existing folder is replaced, and whatever else
    it held (checkpoints, say) is kept; without, it is refused. ``pictures`` adds plots and report,
    ``tables`` further tables by name. What the folder ``beside`` holds, if it exists, is copied in.

    Raises:
        ResultsError: ``path`` is taken; it is left as it was.
        OSError: the disk is full or not writable; nothing is left behind.
    """
    path = Path(path)
    check_destination(path, resumed=resumed)
    summary = summarise(record)
    with whole_folder(path, replace=resumed) as folder:
        (folder / SUMMARY_FILE).write_text(dump_json(summary), encoding="utf-8")
        (folder / SCENARIO_FILE).write_text(record.scenario_text, encoding="utf-8")
        for name, system in record.systems.items():
            (folder / name).mkdir()
            for table_name, table in system.tables():
                write_table(table, folder / name / f"{table_name}.parquet")
        for name, table in tables.items():
            write_table(table, folder / f"{name}.parquet")
        if beside is not None and beside.is_dir():
            shutil.copytree(beside, folder, dirs_exist_ok=True, copy_function=_linked_or_copied)
        if pictures:
            _write_pictures(record, summary, folder)
    return summary


@dataclass(frozen=True, slots=True)
class Results:
    """A result folder read back; tables are loaded when asked for.

    Attributes:
        path: the folder.
        summary: the content of ``summary.json``.
    """

    path: Path
    summary: dict[str, Any]

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems that were run."""
        return tuple(self.summary["systems"])

    def table_names(self, system: str) -> list[str]:
        """Names of the tables that there are of ``system``."""
        return sorted(file.stem for file in (self.path / system).glob("*.parquet"))

    def table(self, system: str, name: str) -> dict[str, Column]:
        """Table ``name`` of ``system``, its columns as NumPy arrays; raises as `arrow`."""
        table = self.arrow(system, name)
        return {column: table[column].to_numpy() for column in table.column_names}

    def arrow(self, system: str, name: str) -> pa.Table:
        """Table ``name`` of ``system``.

        Raises:
            ResultsError: the results hold no such table, or its file is damaged.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = self.path / system / f"{name}.parquet"
        try:
            return pq.read_table(file, page_checksum_verification=True)
        except FileNotFoundError:
            raise ResultsError(file, "does not exist, expected a table of the results") from None
        except pa.ArrowInvalid as error:
            raise ResultsError(file, f"is not a readable Parquet table ({error})") from error


def read_results(path: Path) -> Results:
    """Read the result folder ``path``.

    Raises:
        ResultsError: there is no ``summary.json`` in it, or it is damaged.
    """
    file = Path(path) / SUMMARY_FILE
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
        summary["systems"].items()
    except (FileNotFoundError, NotADirectoryError):
        raise ResultsError(file, "does not exist, expected a folder with results") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ResultsError(file, f"is not the summary of a run ({error})") from error
    return Results(Path(path), summary)


@contextmanager
def whole_folder(path: Path, *, replace: bool) -> Iterator[Path]:
    """A new folder beside ``path`` that becomes ``path`` at the end, or vanishes on any error."""
    with scratch_folder(path) as folder:
        yield folder
        if replace and path.exists():
            _take_place(folder, path)
        else:
            rename_to_free(folder, path)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A new folder beside ``path``, of a name that is never used again; it is gone at the end."""
    folder = _sibling(path, "tmp")
    folder.mkdir()
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder in which others may still be writing, who do not find it any more."""
    gone = folder.with_name(re.sub(r"[0-9a-f]{12}(?=\.tmp$)", uuid.uuid4().hex[:12], folder.name))
    try:
        folder.rename(gone)
    except FileNotFoundError:
        return
    except OSError:
        gone = folder
    shutil.rmtree(gone, ignore_errors=True)


def unfinished_siblings(path: Path) -> list[Path]:
    """What `whole_folder` made for ``path`` in processes that were killed, or are at work."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\.tmp")
    return [one for one in path.absolute().parent.iterdir() if pattern.fullmatch(one.name)]


@contextmanager
def new_file(file: Path, what: str) -> Iterator[Path]:
    """A hidden file beside ``file`` that becomes it at the end, or vanishes on any error.

    Raises:
        ResultsError: there is a file of that name, or no folder to make it in for ``what``.
        OSError: it cannot be written.
    """
    if os.path.lexists(file):
        raise ResultsError(file, "exists, expected a new file")
    if not file.absolute().parent.is_dir():
        raise ResultsError(file.absolute().parent, f"is no folder, expected one for {what}")
    with replaced(file, file.with_name(f".{file.name}.tmp")) as aside:
        yield aside


@contextmanager
def replaced(file: Path, aside: Path) -> Iterator[Path]:
    """A file that takes the name of ``file`` at the end, or vanishes on any error."""
    try:
        yield aside
        os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)


def rename_to_free(folder: Path, path: Path) -> None:
    """Rename ``folder`` to ``path``, which must not exist or be an empty folder.

    Raises:
        ResultsError: it is neither; both are as they were.
    """
    try:
        folder.rename(path)
    except OSError as error:
        if path.exists():
            raise ResultsError(path, "was taken by another run in the meantime") from error
        raise


def _take_place(folder: Path, path: Path) -> None:
    """Put ``folder`` where ``path`` is, moving over what only the old folder held."""
    old = _sibling(path, "old")
    path.rename(old)
    try:
        folder.rename(path)
    except BaseException:
        old.rename(path)
        raise
    for entry in old.iterdir():
        if not (path / entry.name).exists():
            entry.rename(path / entry.name)
    shutil.rmtree(old, ignore_errors=True)


def _sibling(path: Path, suffix: str) -> Path:
    """A free hidden name beside ``path``, on the same file system."""
    return path.absolute().parent / f".{path.name}.{uuid.uuid4().hex[:12]}.{suffix}"


def _linked_or_copied(source: str, target: str) -> None:
    """A second name for a file where the file system has such, else a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def write_table(table: Table, file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Damage within a page is else read as other numbers.
    pq.write_table(pa.table(dict(table)), file, compression="zstd", write_page_checksum=True)


def _write_pictures(record: RunRecord[Any], summary: dict[str, Any], folder: Path) -> None:
    from gossamer.sim.results.plot_style import save_all
    from gossamer.sim.results.report import write_report

    drawings = study_of_values(record.scenario).drawings(record)
    plots = save_all(drawings, folder / PLOTS_FOLDER)
    write_report(record, summary, plots, folder / REPORT_FILE)
