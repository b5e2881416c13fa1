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
from gossamer.sim.study.records import MEASURE, REAL, TEXT, Expected, Row
from gossamer.sim.study.scenarios import study_of_kind, study_of_values
from gossamer.spark.handover import Mark, mark_of
from gossamer.spark.storage.frames import opened_table, unreadable
from gossamer.spark.workload.writing import check_table, read_description

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


def check_file(file: Place, expected: Expected) -> tuple[int, tuple[str, ...]]:
    """Rows of a table, and the welcome columns that it lacks.

    Raises:
        ResultsError: it is missing, damaged, or a column is missing or of another type.
    """
    try:
        with opened_table(file) as opened:
            schema, rows = opened.schema_arrow, opened.metadata.num_rows
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
    return rows, lacking


def _fits(kind: pa.DataType, expected: str) -> bool:
    if expected == TEXT:
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    whole = pa.types.is_integer(kind)
    return bool(whole or (expected == REAL and pa.types.is_floating(kind)))


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
class SystemTables:
    """The tables of one system of one run.

    Attributes:
        number: of this system among all that are crunched.
        run: name of the run, its folder below what was named.
        system: its name.
        folder: of its tables.
        kind: that of its study, or see `tables`.
        mark: by which tasks tell that they see the same run as this process.
        deliveries: rows of that table.
        lacking: columns that are missing, as table.column.
        table_rows: of a workload, the rows of each table.
    """

    number: int
    run: str
    system: str
    folder: Place
    kind: str
    mark: Mark
    deliveries: int
    lacking: tuple[str, ...] = ()
    table_rows: Mapping[str, int] = attrs.field(factory=dict)


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


def find_runs(paths: Sequence[AnyPlace]) -> list[Run]:
    """The runs and workloads in these folders, which are such or hold some at any depth.

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
    return runs


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
        _system(number + place, name, system, folder / system, mark, of_study)
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
        run=name,
        system=kind,
        folder=folder.absolute(),
        kind=WORKLOADS,
        mark=mark_of(folder.absolute() / WORKLOAD_FILE),
        deliveries=0,
        table_rows={
            table: check_table(folder, table, one) for table, one in told["tables"].items()
        },
    )
    scenario = {"workload": kind, **told["settings"]}
    summary = {"seed": told["seed"], "scenario": scenario, "systems": {kind: {}}}
    return Run(
        name=name, path=folder, summary=summary, systems=(system,), digest=system.mark.digest
    )


def _system(
    number: int,
    run: str,
    system: str,
    folder: Place,
    mark: Mark,
    of_study: tuple[str, Mapping[str, Expected]],
) -> SystemTables:
    kind, tables = of_study
    if not any((folder / f"{table}.parquet").exists() for table in tables):
        kind, tables = OTHERS, {}  # known by its summary alone
    deliveries, lacking = 0, []
    for table, expected in tables.items():
        rows, missing = check_file(folder / f"{table}.parquet", expected)
        lacking += [f"{table}.{column}" for column in missing]
        if table == DELIVERIES:
            deliveries = rows
    return SystemTables(
        number=number,
        run=run,
        system=system,
        folder=folder.absolute(),
        kind=kind,
        mark=mark,
        deliveries=deliveries,
        lacking=tuple(lacking),
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
