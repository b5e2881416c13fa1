"""Finds the runs and workloads that are to be crunched, and checks them before anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy.typing as npt
import pyarrow as pa

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results.intervals import Condition
from gossamer.sim.results.results import SUMMARY_FILE, read_results
from gossamer.sim.results.storage.place import AnyPlace, LocalPlace, Place, as_place
from gossamer.sim.results.storage.workloads import WORKLOAD_FILE
from gossamer.sim.study.records import MEASURE, REAL, TEXT, WHOLE, Expected, Row
from gossamer.sim.study.scenarios import study_of_kind, study_of_values
from gossamer.spark.handover import Mark, mark_of
from gossamer.spark.storage.frames import opened_table, unreadable
from gossamer.spark.workload.writing import read_description

# The tables of one system, which its study expects: checked against that, and what they tell.
#
# All but that of deliveries are small, so that a task reads them apart from all others.


# Beside the kinds of studies: workloads, and kinds of which no tables are read.
WORKLOADS, OTHERS = "workloads", "others"

DELIVERIES: Final = "deliveries"


def expected_tables(scenario: Mapping[str, Any]) -> tuple[str, Mapping[str, Expected]]:
    """The kind of a run, and by name what is expected of the tables of each of its systems.

    Args:
        scenario: that of the run's summary.

    Returns:
        `OTHERS` and nothing where its study has no tables that are read, or is not here.
    """
    try:
        study = study_of_values(scenario)
    except ScenarioError:
        return OTHERS, {}
    return (study.kind, study.tables) if study.tables else (OTHERS, {})


@attrs.frozen
class Footer:
    """What the footer of a table's file tells.

    Attributes:
        rows, row_groups: how many it has.
        size: bytes of the rows, uncompressed.
        lacking: the welcome columns that it lacks.
    """

    rows: int
    row_groups: int
    size: int
    lacking: Sequence[str] = ()


def check_file(file: Place, expected: Expected) -> Footer:
    """What a table's file has of what is expected.

    Raises:
        ResultsError: it is missing, damaged, or a column is missing or of another type.
    """
    try:
        with opened_table(file) as opened:
            schema, told = opened.schema_arrow, opened.metadata
    except FileNotFoundError:
        raise ResultsError(file, "does not exist, expected a table of the results") from None
    except (pa.ArrowException, OSError) as error:
        raise ResultsError(
            file, unreadable(file, error, "is damaged or no Parquet table")
        ) from error
    for name, kind in expected.needed.items():
        if name not in schema.names:
            raise ResultsError(file, f"has no column {name}, expected one of {kind}")
    for name, kind in (*expected.needed.items(), *expected.welcome.items()):
        if name in schema.names and not _fits(schema.field(name).type, kind):
            found = schema.field(name).type
            raise ResultsError(file, f"has a column {name} of {found}, expected {kind}")
    lacking = tuple(name for name in expected.welcome if name not in schema.names)
    size = sum(told.row_group(one).total_byte_size for one in range(told.num_row_groups))
    return Footer(told.num_rows, told.num_row_groups, size, lacking)


def _fits(kind: pa.DataType, expected: str) -> bool:
    if expected == TEXT:
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    if expected in (WHOLE, REAL):
        whole = pa.types.is_integer(kind)
        return bool(whole or (expected == REAL and pa.types.is_floating(kind)))
    return _bare(str(kind)) == _bare(expected)


def _bare(kind: str) -> str:
    """A type without the names of items of lists, which writers of Parquet choose themselves."""
    return kind.replace("element:", "item:").replace(" not null", "")


def rows_of(kind: str, folder: Place) -> Iterator[Row]:
    """All that is told by the tables of a system in a folder.

    Args:
        kind: of its study.
        folder: of its tables.
    """
    study = study_of_kind(kind)
    names = [name for name in study.tables if name != DELIVERIES]
    yield from study.rows({name: _columns(folder / f"{name}.parquet") for name in names})


def _columns(file: Place) -> dict[str, npt.NDArray[Any]]:
    with opened_table(file) as opened:
        table = opened.read()
    return {name: table[name].to_numpy() for name in table.column_names}


def summary_rows(measures: Mapping[str, Any]) -> Iterator[Row]:
    """The numbers of a summary's entry, totals included."""
    for name, value in measures.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield Row(MEASURE, name, 0.0, float(value))
    for name, value in (measures.get("totals") or {}).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield Row(MEASURE, f"total_{name}", 0.0, float(value))


@attrs.frozen(kw_only=True)
class Files:
    """A table of a system: one file of a run, all in a folder of a workload.

    Attributes:
        place: of the table.
        files: the files, as users name them.
        expected: of each of them.
        rows: that the workload tells of; None of a run.
    """

    place: Place
    files: Sequence[Place]
    expected: Expected
    rows: int | None = None


@attrs.frozen(kw_only=True)
class SystemTables:
    """The tables of one system of one run.

    Attributes:
        number: of this system among all that are crunched.
        system: its name.
        folder: of its tables.
        kind: that of its study, or see `tables`.
        mark: by which tasks tell that they see the same run as this process.
        tables: those that are read, by name.
        footers: of all files of each table; none until they are read, see `with_footers`.
    """

    number: int
    system: str
    folder: Place
    kind: str
    mark: Mark
    tables: Mapping[str, Files]
    footers: Mapping[str, Sequence[Footer]] = attrs.field(factory=dict)

    @property
    def row_groups(self) -> int:
        """Those of the table of deliveries; 0 where that has no rows."""
        return sum(one.row_groups for one in self.footers.get(DELIVERIES, ()) if one.rows)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The columns that are missing, as table.column."""
        told = ((name, one) for name, found in self.footers.items() for one in found)
        return tuple(f"{name}.{column}" for name, one in told for column in one.lacking)

    @property
    def table_rows(self) -> Mapping[str, int]:
        """The rows of each table."""
        return {name: sum(one.rows for one in found) for name, found in self.footers.items()}


@attrs.frozen(kw_only=True)
class Run:
    """One run, or one workload.

    Attributes:
        name: its folder below what was named.
        path: the folder.
        summary: of its ``summary.json`` seed, scenario, hash and versions, and what only it
            tells of systems; of a workload, seed and settings in that form.
        systems: its systems; a workload is one, called by its kind.
        digest: SHA-256 of the file that describes it.
    """

    name: str
    path: Place
    summary: Mapping[str, Any]
    systems: tuple[SystemTables, ...]
    digest: str


# A file whose footer is to be read, and what is expected of it.
Wanted = tuple[Place, Expected]
# Files whose footers the driver reads itself, before Spark starts; of more, tasks do.
_MOST_FOOTERS: Final = 1_000


def find_runs(paths: Sequence[AnyPlace]) -> list[Run]:
    """The runs and workloads in these folders, which are such or hold some at any depth.

    Their tables are checked, unless there are too many of them, see `with_footers`.

    Raises:
        ResultsError: there is none in one of them, or a run is damaged or of an unknown form.
    """
    runs: list[Run] = []
    seen: set[object] = set()
    number = 0
    for name, folder, is_run in _named(paths):
        itself = folder.path.resolve() if isinstance(folder, LocalPlace) else folder
        if itself in seen:
            continue
        seen.add(itself)
        run = _read(name, folder, number) if is_run else _read_workload(name, folder, number)
        number += len(run.systems)
        runs.append(run)
    few = sum(1 for _ in _files(runs)) <= _MOST_FOOTERS
    return with_footers(runs, lambda files: [check_file(*one) for one in files]) if few else runs


def with_footers(
    runs: Sequence[Run], read: Callable[[Sequence[Wanted]], Sequence[Footer]]
) -> list[Run]:
    """The same runs with the footers of their tables, those that have none yet.

    Args:
        runs: what `find_runs` found.
        read: the footers of files of which something is expected, in their order.

    Raises:
        ResultsError: a table is damaged, or lacks columns or rows.
    """
    files = list(_files(runs))
    left = iter(read(files) if files else ())
    return [
        attrs.evolve(run, systems=tuple(_with_footers(one, left) for one in run.systems))
        for run in runs
    ]


def _files(runs: Iterable[Run]) -> Iterator[Wanted]:
    """All files of which the footers are not known."""
    for system in (one for run in runs for one in run.systems if not one.footers):
        for table in system.tables.values():
            yield from ((file, table.expected) for file in table.files)


def _with_footers(system: SystemTables, left: Iterator[Footer]) -> SystemTables:
    """A system with its footers, which come next if it has none yet."""
    if system.footers:
        return system
    found = {name: [next(left) for _ in one.files] for name, one in system.tables.items()}
    checked = attrs.evolve(system, footers=found)
    for name, rows in checked.table_rows.items():
        expected = system.tables[name].rows
        if expected not in (None, rows):
            reason = f"has {rows:,} rows, expected {expected:,}"
            raise ResultsError(system.tables[name].place, reason)
    return checked


def _named(paths: Sequence[AnyPlace]) -> Iterator[tuple[str, Place, bool]]:
    """Every result folder with a name that tells it from the others, and whether it is a run."""
    for path in map(as_place, paths):
        found = _below(path)
        if not found:
            expected = f"expected a folder with {SUMMARY_FILE} or {WORKLOAD_FILE}"
            raise ResultsError(path, f"holds no results, {expected}")
        for below, is_run in found:
            yield (
                (f"{path}/{below}" if below else str(path)),
                path / below if below else path,
                is_run,
            )


def _below(path: Place) -> list[tuple[str, bool]]:
    """The result folders at or below a place, by their relative names, and which are runs."""
    for name in (SUMMARY_FILE, WORKLOAD_FILE):
        if (path / name).exists():
            return [("", name == SUMMARY_FILE)]
    found: dict[str, bool] = {}
    for file in path.files():
        folder, _, name = file.name.rpartition("/")
        if name in (SUMMARY_FILE, WORKLOAD_FILE) and not _is_hidden(folder):
            found[folder] = found.get(folder, False) or name == SUMMARY_FILE
    return sorted(found.items())


def _is_hidden(folder: str) -> bool:
    """Whether a folder is one that is still being written."""
    return any(part.startswith(".") for part in folder.split("/"))


def _read(name: str, folder: Place, number: int) -> Run:
    summary = _summary(folder)
    for field, kind in (("seed", int), ("scenario", dict), ("systems", dict)):
        if not isinstance(summary.get(field), kind):
            file = folder / SUMMARY_FILE
            raise ResultsError(file, f"has no {field}, expected the summary of a run")
    mark = mark_of(folder.absolute() / SUMMARY_FILE)
    of_study = expected_tables(summary["scenario"])
    systems = tuple(
        _system(number + place, system, folder / system, mark, of_study)
        for place, system in enumerate(summary["systems"])
    )
    kept = _kept(summary, systems)
    return Run(name=name, path=folder, summary=kept, systems=systems, digest=mark.digest)


def _kept(summary: Mapping[str, Any], systems: Sequence[SystemTables]) -> dict[str, Any]:
    """What is needed of a summary: little, as there may be thousands of them."""
    entries = summary["systems"]
    told = {
        one.system: entries[one.system]
        if one.kind == OTHERS
        else {"totals": entries[one.system].get("totals")}
        for one in systems
    }
    known = ("seed", "scenario", "result_hash", "versions")
    return {name: summary[name] for name in known if name in summary} | {"systems": told}


def _summary(folder: Place) -> dict[str, Any]:
    """The content of a run's ``summary.json``."""
    with (folder / SUMMARY_FILE).fetched() as file:
        try:
            return read_results(file.parent).summary
        except ResultsError as error:
            raise ResultsError(folder / SUMMARY_FILE, error.reason) from error


def _read_workload(name: str, folder: Place, number: int) -> Run:
    told = read_description(folder)
    kind = told["kind"]
    system = SystemTables(
        number=number,
        system=kind,
        folder=folder.absolute(),
        kind=WORKLOADS,
        mark=mark_of(folder.absolute() / WORKLOAD_FILE),
        tables={name: _files_of(folder, name, one) for name, one in told["tables"].items()},
    )
    scenario = {"workload": kind, **told["settings"], **told.get("effective", {})}
    summary = {"seed": told["seed"], "scenario": scenario, "systems": {kind: {}}}
    return Run(
        name=name, path=folder, summary=summary, systems=(system,), digest=system.mark.digest
    )


def _files_of(folder: Place, name: str, told: Mapping[str, Any]) -> Files:
    """A table of a workload, as its ``workload.json`` tells of it."""
    try:
        columns = {one["name"]: one["type"] for one in told["columns"]}
        rows = int(told["rows"])
    except (KeyError, TypeError, ValueError):
        reason = f"does not tell columns and rows of {name}, expected it to"
        raise ResultsError(folder / WORKLOAD_FILE, reason) from None
    place = folder / name
    return Files(place=place, files=place.tables(), expected=Expected(columns), rows=rows)


def _system(
    number: int,
    system: str,
    folder: Place,
    mark: Mark,
    of_study: tuple[str, Mapping[str, Expected]],
) -> SystemTables:
    kind, tables = of_study
    if not any((folder / f"{table}.parquet").exists() for table in tables):
        kind, tables = OTHERS, {}  # known by its summary alone
    return SystemTables(
        number=number,
        system=system,
        folder=folder.absolute(),
        kind=kind,
        mark=mark,
        tables={
            name: Files(place=file, files=[file], expected=expected)
            for name, expected in tables.items()
            for file in [folder / f"{name}.parquet"]
        },
    )


# Conditions as columns: what differs between runs by its key, of the type that its values have.
#
# The text of a condition is for people. For queries each key has a column of its own besides,
# called ``condition.<key>``: whole numbers, numbers, true or false, or texts where values are of
# several kinds. A run that says nothing of a key has none there.


PREFIX: Final = "condition."


class ConditionColumns:
    """The columns of some conditions.

    Args:
        conditions: all that are to be told apart.
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        kinds: dict[str, set[type]] = {}
        for condition in dict.fromkeys(conditions):
            for key, value in condition:
                if value is not None:
                    kinds.setdefault(key, set()).add(type(value))
        self._types = {key: _common(found) for key, found in kinds.items()}

    def of(self, condition: Condition) -> dict[str, Any]:
        """The values of one condition by column; None for keys that it lacks."""
        given = dict(condition)
        return {
            PREFIX + key: None if given.get(key) is None else kind(given[key])
            for key, kind in self._types.items()
        }


def _common(kinds: set[type]) -> Callable[[Any], Any]:
    """The type of a column whose values are of these types."""
    for some, common in (({bool}, bool), ({int}, int), ({int, float}, float)):
        if kinds <= some:
            return common
    return str
