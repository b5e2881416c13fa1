"""Finds the runs that are to be crunched, and checks them before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from gossamer.sim.results import SUMMARY_FILE, ResultsError, read_results
from gossamer.spark.crunch.tables import OTHERS, TABLES, check_file, kind_of


@attrs.frozen(kw_only=True)
class SystemTables:
    """The tables of one system of one run.

    Attributes:
        number: of this system among all that are crunched.
        run: name of the run, its folder below what was named.
        system: its name.
        folder: of its tables.
        kind: of its tables, see `tables`.
        deliveries: rows of that table.
        lacking: columns that are missing, as table.column.
    """

    number: int
    run: str
    system: str
    folder: Path
    kind: str
    deliveries: int
    lacking: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Run:
    """One run.

    Attributes:
        name: its folder below what was named.
        path: the folder.
        summary: its ``summary.json``.
        systems: its systems.
    """

    name: str
    path: Path
    summary: Mapping[str, Any]
    systems: tuple[SystemTables, ...]


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """The runs in these folders, which are result folders or hold some at any depth.

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
        run = _read(name, folder, number)
        number += len(run.systems)
        runs.append(run)
    return runs


def _named(paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Every result folder with a name that tells it from the others."""
    for path in map(Path, paths):
        folders = [path] if (path / SUMMARY_FILE).exists() else _below(path)
        if not folders:
            raise ResultsError(path, "holds no results, expected a folder with summary.json")
        for folder in folders:
            below = folder.relative_to(path).as_posix()
            yield (str(path) if below == "." else f"{path}/{below}"), folder


def _below(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    found = (file.parent for file in path.rglob(SUMMARY_FILE))
    hidden = (folder for folder in found if not _is_hidden(folder.relative_to(path)))
    return sorted(hidden)


def _is_hidden(folder: Path) -> bool:
    """Whether a folder is one that is still being written."""
    return any(part.startswith(".") for part in folder.parts)


def _read(name: str, folder: Path, number: int) -> Run:
    summary = read_results(folder).summary
    for field, kind in (("seed", int), ("scenario", dict), ("systems", dict)):
        if not isinstance(summary.get(field), kind):
            file = folder / SUMMARY_FILE
            raise ResultsError(file, f"has no {field}, expected the summary of a run")
    systems = tuple(
        _system(number + place, name, system, folder / system)
        for place, system in enumerate(summary["systems"])
    )
    return Run(name=name, path=folder, summary=summary, systems=systems)


def _system(number: int, run: str, system: str, folder: Path) -> SystemTables:
    kind = kind_of(folder)
    deliveries, lacking = 0, []
    for table, expected in TABLES.get(kind, {}).items():
        rows, missing = check_file(folder / f"{table}.parquet", expected)
        lacking += [f"{table}.{column}" for column in missing]
        if table == "deliveries":
            deliveries = rows
    return SystemTables(
        number=number,
        run=run,
        system=system,
        folder=folder.absolute(),
        kind=kind,
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
