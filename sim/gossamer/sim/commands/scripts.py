"""Runs from scripts and notebooks: `simulate`, `sweep`, `load` and `compare` of `gossamer.sim`.

Their keyword arguments are the keys of scenario files, so that they are read, checked and refused
as those are.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, overload

import attrs

from gossamer.sim.commands.finished_run import PeersResult, Run, SystemResult
from gossamer.sim.commands.looking import Look, looked_at
from gossamer.sim.commands.printed import ComparedRuns
from gossamer.sim.commands.progress import Callback, progress_bars, stops_between_rounds
from gossamer.sim.custom.language.declarations import ConfiguredProtocol, ProtocolType
from gossamer.sim.errors import ScenarioError, SimulationError
from gossamer.sim.results.held import file_name
from gossamer.sim.results.results import Results, read_results, summarise
from gossamer.sim.results.tables import compare as compare_summaries
from gossamer.sim.study.contract import AnyScenario, Execution
from gossamer.sim.study.scenario_format import Document, parse_document
from gossamer.sim.study.scenarios import (
    AnyStudy,
    kind_of_document,
    read_scenario,
    study_of,
    study_of_kind,
)

if TYPE_CHECKING:
    import pandas as pd

    from gossamer.sim.custom.node import Node
    from gossamer.sim.custom.protocol import Protocol
    from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
    from gossamer.sim.studies.peers.inputs.scenario import (
        Churn,
        Events,
        Scenario,
        Subscriptions,
        System,
    )
    from gossamer.sim.studies.peers.inputs.taken_from import TakenFrom
    from gossamer.sim.studies.worlds.network import Link
    from gossamer.sim.studies.worlds.sessions import Sessions

    # A class of a protocol, or a call of it with settings, which type checkers take for an object.
    OwnProtocol = ProtocolType | ConfiguredProtocol | Node | Protocol

Table = Mapping[str, Any]
_SYSTEM: Final = "system"
_PROTOCOL: Final = "protocol"
_OWN: Final = (ProtocolType, ConfiguredProtocol)


class ScenarioKeys(TypedDict, total=False):
    """What a scenario says: of peers, and of protocols of one's own (`docs/scenario.md`).

    Tables, such as ``events``, are objects of their classes or mappings of their keys.
    """

    kind: str
    name: str
    nodes: int | None
    rounds: int | None
    round_s: float
    seed: int
    engine: str
    systems: Sequence[str | System | Table | OwnProtocol] | Mapping[str, str | Table | OwnProtocol]
    subscriptions: Subscriptions | Table
    events: Events | Table
    drift: Drift | Table | None
    churn: Churn | Table | str | Path | None
    turnover: Turnover | Table | None
    workload: TakenFrom | Table | None
    network: Link | Table
    measure_every: int
    start: str
    sessions: Sessions | Table | None
    clock_drift: float
    leaving: float
    attributes: Table
    settings: Table


@overload
def simulate(
    scenario: Scenario | None = None,
    /,
    *,
    threads: int = 2,
    snapshots: int | None = None,
    progress: bool | None = None,
    **keys: Unpack[ScenarioKeys],
) -> Run[PeersResult]: ...


@overload
def simulate(
    scenario: AnyScenario | str | Path | OwnProtocol,
    /,
    *,
    threads: int = 2,
    snapshots: int | None = None,
    progress: bool | None = None,
    **keys: Unpack[ScenarioKeys],
) -> Run[SystemResult]: ...


@overload
def simulate(
    *,
    kind: str,
    threads: int = 2,
    snapshots: int | None = None,
    progress: bool | None = None,
    **keys: Any,
) -> Run[SystemResult]: ...


def simulate(
    scenario: AnyScenario | str | Path | OwnProtocol | None = None,
    /,
    *,
    threads: int = 2,
    snapshots: int | None = None,
    progress: bool | None = None,
    **keys: Any,
) -> Run[Any]:
    """Run a scenario to its end, with the same results as `gossamer sim run` of it.

        run = simulate(nodes=1_000, systems=["kindred", "baseline"], events={"per_round": 5})
        run = simulate("scenario.toml", seed=2)
        run = simulate(Rumor(fanout=2), nodes=10_000, rounds=12)

    Args:
        scenario: of any kind, the path of its file, or a protocol of one's own (a class, a call of
            it with settings, or "file.py:Class"); without it, the keys say all.
        threads: of systems side by side, and of the nodes of one; changes no result. Kinds whose
            systems need processes of their own run one after another.
        snapshots: rounds between snapshots of the overlays; the last alone, and only of up to
            20,000 nodes, if None.
        progress: whether to show how far it is, on standard error; if that is a terminal if None.
        keys: of the scenario, in place of what it says; None leaves out what it says.

    Raises:
        ScenarioError: a key is unknown, or a value impossible; nothing was run.
        SimulationError: the run failed.
    """
    chosen, text = scenario_meant(scenario, keys)
    study = study_of(chosen)
    _check_snapshots(study, snapshots)
    scratch = Path(tempfile.mkdtemp(prefix="gossamer-run-"))
    try:
        study.check(chosen)
        with (
            looked_at(chosen, Look(snapshots=snapshots), scratch) as watch,
            _shown(study.progress_unit, study.compiles(chosen), progress) as shown,
            _stoppable(study, shown) as report,
        ):
            execution = Execution(
                progress=report, workers=threads if study.threaded else 1, watch=watch
            )
            record = study.run(chosen, text, execution)
        return Run(Results(scratch, summarise(record)), record)
    except BaseException as error:
        rmtree(scratch, ignore_errors=True)
        if isinstance(error, MemoryError):
            raise SimulationError("the memory of this machine does not suffice") from error
        raise


def sweep(
    scenario: AnyScenario | str | Path | OwnProtocol | None = None,
    /,
    *,
    seeds: Iterable[int],
    grid: Mapping[str, Sequence[Any]] | None = None,
    points: Sequence[Mapping[str, Any]] | None = None,
    out: str | Path | None = None,
    processes: int | None = None,
    progress: bool | None = None,
    **keys: Unpack[ScenarioKeys],
) -> pd.DataFrame:
    """Run a scenario over values and seeds, on all cores.

        frame = sweep("scenario.toml", seeds=range(1, 11), grid={"nodes": [100, 200, 400]})

    Args:
        scenario: as of `simulate`; a protocol is in a file of its own.
        seeds: different whole numbers; every combination of values runs with each.
        grid: lists of values by key of ``--set`` of `gossamer sim run`, and ``system`` for one of
            its systems alone; every combination is run.
        points: in place of the grid, combinations to be run, and no others.
        out: new folder for all results; nothing but the table is kept if None.
        processes: runs at a time; one a core if None.
        progress: as of `simulate`.
        keys: as of `simulate`.

    Returns:
        a row a run and system: ``point``, the values by key, ``seed``, ``system``,
        ``result_hash``, and all measures of ``summary.json`` by name. See `means_of`.

    Raises:
        ScenarioError: a key or value is impossible; nothing was begun.
        SimulationError: there is no pandas, and nothing was begun; or runs failed: with ``out`` the
            others are kept, and `gossamer sim sweep --resume` runs those again.
        ResultsError: ``out`` is taken.
    """
    from gossamer.sim.results.sweeps.table import sweep as sweep_scenario

    chosen: Any = scenario
    if keys or not isinstance(scenario, str | Path) or _is_protocol_name(scenario):
        chosen, _ = scenario_meant(scenario, keys)
        _check_importable(scenario, keys)
    with _shown("points", True, progress) as shown:
        return sweep_scenario(
            chosen,
            seeds=seeds,
            grid=grid,
            points=points,
            out=out,
            processes=processes,
            progress=shown,
        )


def load(folder: str | Path) -> Run[Any]:
    """The run of a result folder; its tables are read when they are asked for.

    Raises:
        ResultsError: there are no results in it, or its summary is damaged.
    """
    return Run(read_results(Path(folder)))


def compare(*runs: Run[Any] | str | Path) -> ComparedRuns:
    """Set runs side by side, or result folders, the first as the reference.

    Raises:
        ResultsError: one of the folders holds no results.
        SimulationError: there is nothing to compare.
    """
    if not runs:
        raise SimulationError("compare takes runs or result folders, expected at least one")
    named: dict[str, Mapping[str, Any]] = {}
    for one in runs:
        run = one if isinstance(one, Run) else load(one)
        name = file_name(f"{run.name}-{run.seed}") if isinstance(one, Run) else str(one)
        again = sum(known == name or known.startswith(f"{name} (") for known in named)
        named[f"{name} ({again + 1})" if again else name] = run.summary
    return ComparedRuns(compare_summaries(list(named.items())))


def scenario_meant(scenario: Any, keys: Mapping[str, Any]) -> tuple[AnyScenario, str]:
    """The scenario that is meant, and the text of its file.

    Both arguments are those of `simulate`; raises `ScenarioError` as that does.
    """
    given = _plain(keys)
    left_out = {key: None for key, value in keys.items() if value is None}
    if isinstance(scenario, Path) or (
        isinstance(scenario, str) and not _is_protocol_name(scenario)
    ):
        made, text = read_scenario(scenario, _dotted(given))
        return scenario_meant(made, left_out) if left_out else (made, text)
    if scenario is None or isinstance(scenario, str | ProtocolType | ConfiguredProtocol):
        document = given if scenario is None else _with_protocol(given, scenario)
        study = study_of_kind(_kind_of(document))
        study.resolve_paths(document, Path.cwd())
        made = study.read(document, {})
        return made, study.write(made)
    if not attrs.has(type(scenario)):
        expected = "a scenario, the path of its file, or a protocol"
        raise ScenarioError(None, "the scenario", scenario, expected)
    study = study_of(scenario)
    text = study.write(scenario)
    if given or left_out:
        said = parse_document(text, "the scenario")
        kept = {key: value for key, value in said.items() if key not in left_out}
        made = study.read(kept, _dotted(given))
        return made, study.write(made)
    return scenario, text


def _plain(keys: Mapping[str, Any]) -> Document:
    """Keys as the content of a file has them, without those that are None."""
    given = {key: _absolute(value) for key, value in keys.items() if value is not None}
    if "systems" in given:
        given[_SYSTEM] = list(_systems(given.pop("systems")))
    if isinstance(given.get("churn"), str | Path):
        given["churn"] = {"trace": str(given["churn"])}
    return given


def _systems(given: Any) -> Iterator[Any]:
    if isinstance(given, Mapping):
        for name, one in given.items():
            yield _system(one, name, "preset")
    elif isinstance(given, Sequence) and not isinstance(given, str):
        for one in given:
            yield _system(one, None, "name")
    else:
        expected = 'systems or names of presets, such as ["kindred", "baseline"]'
        raise ScenarioError(None, "systems", given, expected)


def _system(one: Any, name: str | None, plain: str) -> Any:
    """One of the systems as scenario files have it, or as it is."""
    own = {} if name is None else {"name": name}
    if isinstance(one, ProtocolType | ConfiguredProtocol):
        owner, settings = _parts(one)
        return {"name": owner.__name__.lower(), **own, _PROTOCOL: owner, **settings}
    if isinstance(one, str) and _is_protocol_name(one):
        return {"name": one.rpartition(":")[2].lower(), **own, _PROTOCOL: one}
    if isinstance(one, Mapping):
        return {**own, **one}
    return one if name is None else {**own, plain: one}


def _with_protocol(given: Document, protocol: str | ProtocolType | ConfiguredProtocol) -> Document:
    owner, settings = (protocol, {}) if isinstance(protocol, str) else _parts(protocol)
    return {**given, _PROTOCOL: owner, "settings": {**settings, **given.get("settings", {})}}


def _parts(protocol: ProtocolType | ConfiguredProtocol) -> tuple[Any, Mapping[str, Any]]:
    if isinstance(protocol, ConfiguredProtocol):
        return protocol.owner, protocol.settings
    return protocol, {}


def _is_protocol_name(text: str | Path) -> bool:
    return isinstance(text, str) and text.rpartition(":")[0].endswith(".py")


def _kind_of(document: Document) -> object:
    systems = document.get(_SYSTEM)
    # Beside a shipped system a protocol is an overlay of a scenario of peers.
    if systems and all(isinstance(one, dict) and _PROTOCOL in one for one in systems):
        return document.setdefault("kind", _PROTOCOL)
    return kind_of_document(document)


def _dotted(given: Document) -> dict[str, Any]:
    """Values by dotted key: of a table those that are given, in place of the scenario's."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{name}": one for name, one in value.items()}
        else:
            found[key] = value
    return found


def _absolute(value: Any) -> Any:
    """An object of an attrs class with its paths absolute, so that its text may lie anywhere."""
    if not attrs.has(type(value)) or isinstance(value, ConfiguredProtocol):
        return value
    fields = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    paths = {name: one.absolute() for name, one in fields.items() if isinstance(one, Path)}
    return attrs.evolve(value, **paths) if paths else value


def _check_snapshots(study: AnyStudy, snapshots: int | None) -> None:
    if snapshots is None:
        return
    if type(snapshots) is not int or snapshots < 1:
        raise ScenarioError(None, "snapshots", snapshots, "a number of rounds from 1")
    if not study.watched:
        expected = f"left out, as runs of kind {study.kind!r} have no rounds to look at"
        raise ScenarioError(None, "snapshots", snapshots, expected)


def _check_importable(scenario: Any, keys: Mapping[str, Any]) -> None:
    """Refuse protocols that the processes of a sweep cannot import."""
    systems = keys.get("systems", ())
    given = [scenario, *(systems.values() if isinstance(systems, Mapping) else systems)]
    classes = (_parts(one)[0] for one in given if isinstance(one, _OWN))
    held = (getattr(one, _PROTOCOL, None) for one in (*given, *getattr(scenario, "systems", ())))
    of_systems = (one.declared.owner for one in held if one and hasattr(one, "declared"))
    for owner in (*classes, *of_systems):
        expected = "a class of another file than the script, as processes of a sweep import it"
        if owner.__module__ == "__main__" or not Path(owner.declared.place[0]).is_file():
            raise ScenarioError(None, _PROTOCOL, owner.__name__, expected)


@contextmanager
def _shown(unit: str, compiles: bool, progress: bool | None) -> Iterator[Callback]:
    if sys.stderr.isatty() if progress is None else progress:
        with progress_bars(unit, compiles=compiles) as bars:
            yield bars
    else:
        yield lambda *_report: None


def _stoppable(study: AnyStudy, report: Callback) -> Any:
    """Ctrl-C stops systems in threads between two rounds, where it can be met at all."""
    main = threading.current_thread() is threading.main_thread()
    return stops_between_rounds(report) if study.threaded and main else nullcontext(report)
