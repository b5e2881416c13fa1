"""Sweep files, TOML: a scenario, seeds, and a grid or a list of values to replace in it.

    name = "sizes"
    scenario = "scenario.toml"     # or several: ["a.toml", "b.toml"]; relative to the sweep file
    seeds = [1, 2, 3]

    [grid]                         # every combination
    nodes = [500, 1000]
    "events.per_round" = [1, 5]
    system = ["kindred", "baseline"]

    [[point]]                      # or, in place of the grid, these and no others
    nodes = 500

Keys are those of ``--set`` of `gossamer sim run`; ``system`` runs one of the scenario's systems
alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.command.paths import StorageError, local_path
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.held import file_name
from gossamer.sim.study.contract import AnyScenario
from gossamer.sim.study.scenario_format import check_keys, parse_document, read_text, require_table
from gossamer.sim.study.scenarios import read_scenario, study_of, to_whole

SCENARIO, SYSTEM, SEED = "scenario", "system", "seed"
_KEYS: Final = ("name", SCENARIO, "seeds", "grid", "point")
_MOST_POINTS: Final = 1_000_000

Values = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Point:
    """One run of a sweep.

    Attributes:
        name: of its folder.
        values: what is varied, and the seed.
        text: the scenario file that it runs.
        memory_bytes: about what it needs.
    """

    name: str
    values: Values
    text: str
    memory_bytes: int


@attrs.frozen(kw_only=True)
class SweepPlan:
    """All runs of a sweep.

    Attributes:
        name: of the sweep.
        points: its runs, in the order in which they are begun.
    """

    name: str
    points: tuple[Point, ...]


def read_sweep(path: Path) -> SweepPlan:
    """Read a sweep file, and check every point of it.

    Raises:
        ScenarioError: the file is missing, unreadable or no sweep, or a point of it no possible
            scenario.
    """
    document = parse_document(read_text(path), str(path))
    if document and not document.keys() & {SCENARIO, "seeds"}:
        expected = "a sweep, which names scenarios and seeds; 'gossamer sim run' takes a scenario"
        raise ScenarioError(str(path), SCENARIO, None, expected, found="missing")
    try:
        return _plan(document, path)
    except ScenarioError as error:
        raise attrs.evolve(error, file=error.file or str(path)) from None


def plan_sweep(
    scenario: AnyScenario | str | Path,
    seeds: Sequence[int],
    *,
    grid: Mapping[str, Sequence[Any]] | None,
    points: Sequence[Mapping[str, Any]] | None,
    scratch: Path,
) -> SweepPlan:
    """The sweep that a script asks for, checked as a sweep file is.

    Args:
        scenario: one, or the path of its file.
        seeds: of the runs of each point.
        grid: lists of values by key.
        points: in place of the grid.
        scratch: folder for the file of a scenario that has none.

    Raises:
        ScenarioError: as `read_sweep`.
    """
    if isinstance(scenario, str | Path):
        file = Path(scenario).absolute()
    else:
        file = scratch / "scenario.toml"
        file.write_text(study_of(scenario).write(scenario), encoding="utf-8")
    document: dict[str, Any] = {"name": file.stem, SCENARIO: str(file), "seeds": list(seeds)}
    if grid is not None:
        document["grid"] = {key: list(values) for key, values in grid.items()}
    if points is not None:
        document["point"] = [dict(values) for values in points]
    return _plan(document, file)


def _plan(document: dict[str, Any], path: Path) -> SweepPlan:
    check_keys("", document, _KEYS)
    files = _files(document.get(SCENARIO), path.absolute().parent)
    seeds = _seeds(document.get("seeds"))
    chosen = list(_points(document))
    name = document.get("name", path.stem)
    if not isinstance(name, str) or not name.strip():
        raise ScenarioError(None, "name", name, "a text")
    combinations = [
        ({SCENARIO: file.name} if len(files) > 1 else {}, file, values, seed)
        for file in files
        for values in chosen
        for seed in seeds
    ]
    if len(combinations) > _MOST_POINTS:
        raise ScenarioError(None, "points", len(combinations), f"at most {_MOST_POINTS}")
    memory: dict[str, int] = {}
    points = []
    for number, (which, file, values, seed) in enumerate(combinations, start=1):
        scenario, text = _scenario(file, values, seed)
        taken = {key: _as_taken(scenario, key, value) for key, value in values.items()}
        shown = {**which, **taken, SEED: seed}
        same = repr(sorted((*which.items(), *values.items()), key=lambda pair: pair[0])) + str(file)
        if same not in memory:
            memory[same] = study_of(scenario).check(scenario)
        label = "-".join(f"{key.rpartition('.')[2]}-{value}" for key, value in shown.items())
        points.append(
            Point(
                name=f"{number:04}-{file_name(label)}",
                values=shown,
                text=text,
                memory_bytes=memory[same],
            )
        )
    return SweepPlan(name=name, points=tuple(points))


def _as_taken(scenario: AnyScenario, key: str, value: Any) -> Any:
    """A value as the scenario has it where that is a whole number, which 1e3 stands for too."""
    found: Any = scenario
    for part in key.split("."):
        found = getattr(found, part, None)
    return found if type(found) is int and found == value else value


def _files(given: object, folder: Path) -> list[Path]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        found = "missing" if given is None else None
        expected = "the path of a scenario file, or a list of such"
        raise ScenarioError(None, SCENARIO, given, expected, found=found)
    try:
        return [folder / local_path(name) for name in names]
    except StorageError as error:
        expected = "the path of a file of this machine"
        raise ScenarioError(None, SCENARIO, error.path, expected) from None


def _seeds(given: object) -> list[int]:
    """Seeds are listed, never counted: a repetition would look like another sample."""
    expected = "a list of different whole numbers of at least 0"
    found = "missing" if given is None else None
    if not isinstance(given, list) or not given:
        raise ScenarioError(None, "seeds", given, expected, found=found)
    seeds = list(map(to_whole, given))
    if not all(type(seed) is int and seed >= 0 for seed in seeds) or len({*seeds}) < len(seeds):
        raise ScenarioError(None, "seeds", given, expected)
    return seeds


def _points(document: dict[str, Any]) -> Iterator[Values]:
    """What is varied in each point, seeds and files aside."""
    if "grid" in document and "point" in document:
        raise ScenarioError(None, "point", document["point"], "either [grid] or [[point]]")
    if "point" in document:
        entries = document["point"]
        if not isinstance(entries, list):
            raise ScenarioError(None, "point", entries, "one [[point]] table per point")
        for entry in entries:
            yield dict(_dotted("", require_table(entry, "point")))
        return
    grid = dict(_dotted("", require_table(document.get("grid", {}), "grid")))
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ScenarioError(None, f"grid.{key}", values, "a list of values")
    for combination in itertools.product(*grid.values()):
        yield dict(zip(grid, combination, strict=True))


def _dotted(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keys of nested tables with dots between them: ``events.per_round`` may be written plainly."""
    for key, value in table.items():
        name = f"{prefix}.{key}" if prefix else key
        if key in (SEED, "seeds"):
            raise ScenarioError(None, name, value, "seeds at the top of the file")
        if isinstance(value, dict):
            yield from _dotted(name, value)
        else:
            yield name, value


def _scenario(file: Path, values: Values, seed: int) -> tuple[AnyScenario, str]:
    """The scenario of a point with the text of its file."""
    overrides = {key: value for key, value in values.items() if key != SYSTEM} | {SEED: seed}
    try:
        scenario, text = read_scenario(file, overrides)
    except ScenarioError as error:
        raise attrs.evolve(error, file=error.file or f"{file} in a point of the sweep") from None
    if SYSTEM not in values:
        return scenario, text
    study = study_of(scenario)
    try:
        alone: AnyScenario = study.alone(scenario, values[SYSTEM])
    except ScenarioError as error:
        raise attrs.evolve(error, file=str(file)) from None
    return alone, study.write(alone)
