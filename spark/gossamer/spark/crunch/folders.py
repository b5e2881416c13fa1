"""Finds the runs and workloads that are to be crunched, and checks them before anything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from gossamer.sim.results.results import SUMMARY_FILE, ResultsError, read_results
from gossamer.sim.study.records import Expected
from gossamer.spark.crunch.small import DELIVERIES
from gossamer.spark.crunch.tables import OTHERS, WORKLOADS, check_file, expected_tables
from gossamer.spark.handover import Mark, mark_of
from gossamer.spark.workload.reading import WORKLOAD_FILE, check_table, read_description


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
    folder: Path
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
        summary: its ``summary.json``; of a workload, seed and settings in that form.
        systems: its systems; a workload is one, called by its kind.
    """

    name: str
    path: Path
    summary: Mapping[str, Any]
    systems: tuple[SystemTables, ...]


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """The runs and workloads in these folders, which are such or hold some at any depth.

    Raises:
        ResultsError: there is none in one of them, or a run is damaged or of an unknown form.
    """
    runs: list[Run] = []
    seen: set[Path] = set()
    number = 0
    for name, folder in _named(paths):
        if folder.resolve() in seen:
            continue
        seen.add(folder.resolve())
        is_run = (folder / SUMMARY_FILE).exists()
        run = _read(name, folder, number) if is_run else _read_workload(name, folder, number)
        number += len(run.systems)
        runs.append(run)
    return runs


def _named(paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Every result folder with a name that tells it from the others."""
    for path in map(Path, paths):
        is_one = any((path / name).exists() for name in (SUMMARY_FILE, WORKLOAD_FILE))
        folders = [path] if is_one else _below(path)
        if not folders:
            expected = f"expected a folder with {SUMMARY_FILE} or {WORKLOAD_FILE}"
            raise ResultsError(path, f"holds no results, {expected}")
        for folder in folders:
            below = folder.relative_to(path).as_posix()
            yield (str(path) if below == "." else f"{path}/{below}"), folder


def _below(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    names = (SUMMARY_FILE, WORKLOAD_FILE)
    found = {file.parent for name in names for file in path.rglob(name)}
    return sorted(folder for folder in found if not _is_hidden(folder.relative_to(path)))


def _is_hidden(folder: Path) -> bool:
    """Whether a folder is one that is still being written."""
    return any(part.startswith(".") for part in folder.parts)


def _read(name: str, folder: Path, number: int) -> Run:
    summary = read_results(folder).summary
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
    return Run(name=name, path=folder, summary=summary, systems=systems)


def _read_workload(name: str, folder: Path, number: int) -> Run:
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
    return Run(name=name, path=folder, summary=summary, systems=(system,))


def _system(
    number: int,
    run: str,
    system: str,
    folder: Path,
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


def notes_on(runs: Sequence[Run]) -> list[str]:
    """Sentences on what the tables of these runs do not tell."""
    systems = [system for run in runs for system in run.systems]
    notes = []
    lacking: dict[str, int] = {}
    for system in systems:
        for column in system.lacking:
            lacking[column] = lacking.get(column, 0) + 1
    notes += [
        f"{count} of {len(systems)} tables have no column {column}: "
        "what hangs on it is left out for them."
        for column, count in lacking.items()
    ]
    others = sum(system.kind == OTHERS for system in systems)
    if others:
        notes.append(f"The measures of {others} systems are those of their summaries alone.")
    return notes
