"""Peers without servers as a study, see `gossamer.sim.study.contract`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import psutil
from rich.console import Group, RenderableType

from gossamer.command.tables import FittingTable
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import make_state
from gossamer.sim.churn import ChurnTrace
from gossamer.sim.custom.loading import PROTOCOL
from gossamer.sim.custom.protocol import bytes_a_node
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.checkpointed_runs import CHECKPOINT_EVERY_S, only, run_rounds
from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.inputs.overlays import overlay_settings
from gossamer.sim.studies.peers.inputs.own_tables import content_of
from gossamer.sim.studies.peers.inputs.own_workload import KIND as WORKLOAD_KIND
from gossamer.sim.studies.peers.inputs.own_workload import paced, taken_from, values_for
from gossamer.sim.studies.peers.inputs.scenario import (
    KIND,
    SHARED_SETTINGS,
    Events,
    Scenario,
    System,
)
from gossamer.sim.studies.peers.inputs.scenario_file import FORMAT
from gossamer.sim.studies.peers.measuring.kept_workload import KEEPABLE, kept_tables
from gossamer.sim.studies.peers.measuring.overlay_measures import course_of, places_of
from gossamer.sim.studies.peers.measuring.records import (
    TRAFFIC_TABLES,
    RunRecord,
    SystemRecord,
    restored,
)
from gossamer.sim.studies.peers.measuring.summary import (
    MEASURES,
    ROW_ORDER,
    TABLES,
    outgrown,
    peer_rows,
    summarise_system,
)
from gossamer.sim.studies.peers.running.overlay_run import OverlayRun, rehearse
from gossamer.sim.studies.peers.running.peers_run import PeersRun
from gossamer.sim.studies.peers.running.preparation import prepare
from gossamer.sim.studies.peers.running.system_run import SystemRun
from gossamer.sim.studies.worlds.network import make_latency
from gossamer.sim.studies.worlds.sessions import latency_words, network_words
from gossamer.sim.study.contract import Execution, Study, size_table
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Columns, Row, Table
from gossamer.sim.study.watching import Course, Floats

# What a scenario would run: checked against its trace and the machine, shown as a table.


# Memory of a process with the compiler and all libraries loaded, and what compiling takes beyond
# it in a first run; both measured and rounded up.
PROCESS_BYTES = 400 * 2**20
COMPILING_BYTES = 512 * 2**20


@attrs.frozen(kw_only=True)
class Preview:
    """The size of a run.

    Attributes:
        scenario: what would run.
        nodes: nodes that take part.
        rounds: rounds to run.
        events: how much is published.
        published, late: events in the rounds that are run, and those of a file after them.
        settings: of every shipped system, by its name.
        memory_bytes: about what the process will need when all systems run at a time.
        population: fewest, mean and most nodes online at the beginning of a round.
    """

    scenario: Scenario
    nodes: int
    rounds: int
    events: Events
    published: int
    late: int
    settings: dict[str, Settings]
    memory_bytes: int
    population: tuple[int, float, int]


def preview(scenario: Scenario) -> Preview:
    """Check ``scenario`` against its trace and this machine, without running it.

    Raises:
        TraceError: the churn trace is missing or impossible.
        ScenarioError: the scenario cannot be run, see `prepare`, or asks for more than the machine
            has.
    """
    prepared = prepare(scenario)
    trace, nodes, rounds = prepared.trace, prepared.nodes, prepared.rounds
    spec, events = scenario.subscriptions, paced(scenario, prepared.timetable)
    settings = {
        system.name: system.settings_for(nodes, spec, events, scenario.seed)
        for system in scenario.systems
        if system.protocol is None
    }
    needed = PROCESS_BYTES + nodes * sum(map(bytes_per_node, settings.values()))
    needed += nodes * sum(
        bytes_a_node(system.protocol.declared, overlay_settings(system, spec))
        for system in scenario.systems
        if system.protocol is not None
    )
    _check_memory(scenario, nodes, needed)
    return Preview(
        scenario=scenario,
        nodes=nodes,
        rounds=rounds,
        events=events,
        published=prepared.timetable.size,
        late=prepared.timetable.late,
        settings=settings,
        memory_bytes=needed,
        population=_population(trace, scenario, nodes, rounds),
    )


def preview_table(seen: Preview) -> Group:
    """What ``seen`` says, for people."""
    sizes = size_table(seen.scenario.name, _size_rows(seen))
    systems = FittingTable("system", "preset", "settings of its own")
    for system in seen.scenario.systems:
        if system.protocol is None:
            systems.add_row(system.name, str(system.preset), _differences(seen, system))
        else:
            given = (f"{name} = {json.dumps(value)}" for name, value in system.settings.items())
            systems.add_row(system.name, system.protocol.label, ", ".join(given) or "nothing")
    return Group(sizes, systems)


def bytes_per_node(settings: Settings) -> int:
    """Bytes that one more node adds to the protocol's state."""
    return _array_bytes(make_state(settings, 2)) - _array_bytes(make_state(settings, 1))


def _array_bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Struct):
        return sum(_array_bytes(part) for part in value.__getstate__().values())
    if isinstance(value, tuple):
        return sum(map(_array_bytes, value))
    return 0


def _check_memory(scenario: Scenario, nodes: int, needed: int) -> None:
    present = psutil.virtual_memory().total
    if needed > present:
        expected = (
            f"fewer: with {len(scenario.systems)} systems they need {_gib(needed)}, "
            f"and this machine has {_gib(present)}"
        )
        raise ScenarioError(None, "nodes", nodes, expected)


def _population(
    trace: ChurnTrace | None, scenario: Scenario, nodes: int, rounds: int
) -> tuple[int, float, int]:
    if trace is None:
        return nodes, float(nodes), nodes
    online = trace.limited(nodes).population(np.arange(rounds) * scenario.round_s)
    return int(online.min()), float(online.mean()), int(online.max())


def _size_rows(seen: Preview) -> list[tuple[str, str]]:
    scenario, spec = seen.scenario, seen.scenario.subscriptions
    fewest, mean, most = seen.population
    hours = seen.rounds * scenario.round_s / 3600
    memory, compiling = _gib(seen.memory_bytes), _gib(COMPILING_BYTES)
    return [
        ("nodes", f"{seen.nodes:,}"),
        ("online", f"{fewest:,} to {most:,}, on average {mean:,.0f}"),
        ("churn", _churn(scenario)),
        ("rounds", f"{seen.rounds:,} of {scenario.round_s:g} s, {hours:,.1f} h in all"),
        ("engine", scenario.engine),
        *_network_rows(seen),
        ("subscriptions", _subscriptions(scenario)),
        ("attributes", f"{spec.attributes}"),
        ("drift", _drift(scenario.drift)),
        ("events", _events(seen)),
        ("seed", f"{scenario.seed}"),
        ("memory", f"about {memory}, in a first run, which compiles, {compiling} more"),
    ]


def _network_rows(seen: Preview) -> list[tuple[str, str]]:
    """Where messages take time, what links do."""
    scenario = seen.scenario
    if scenario.engine != "event":
        return []
    latency = make_latency(scenario.network, seen.nodes, scenario.seed)
    return [
        ("latency", latency_words(latency, seen.nodes, scenario.seed)),
        ("links", network_words(scenario.network)),
    ]


def _churn(scenario: Scenario) -> str:
    if scenario.turnover is not None:
        return f"{100 * scenario.turnover.share:g} % of the nodes online are replaced in an hour"
    return str(scenario.churn.trace) if scenario.churn else "none"


def _subscriptions(scenario: Scenario) -> str:
    spec, taken = scenario.subscriptions, scenario.workload
    if taken is not None and taken.subscriptions is not None:
        return f"those of {taken.subscriptions}, at most {spec.per_node} a node"
    ranges = f"{100 * spec.width:g} % of the domain on average"
    return f"{spec.per_node} a node, {spec.kind}, {ranges}"


def _events(seen: Preview) -> str:
    taken = seen.scenario.workload
    if taken is not None and taken.events is not None:
        most = f"at most {seen.events.per_round:g} a round"
        late = f", {seen.late:,} after the last round" if seen.late else ""
        return f"{seen.published:,} of {taken.events}, {most}{late}"
    return f"{seen.published:,}, {seen.events.per_round:g} a round"


def _drift(drift: Drift | None) -> str:
    if drift is None:
        return "none"
    return (
        f"every {drift.every_s:g} s {100 * drift.replaced:g} % of the subscribers replace and "
        f"{100 * drift.shifted:g} % shift what they want; events move by "
        f"{100 * drift.event_shift:g} % of the domain"
    )


def _differences(seen: Preview, system: System) -> str:
    """The settings in which a system differs from its preset, as `name = value`."""
    assert system.preset is not None
    preset = System(name=system.preset).settings_for(
        seen.nodes, seen.scenario.subscriptions, seen.events, seen.scenario.seed
    )
    own = attrs.asdict(seen.settings[system.name])
    changed = [
        f"{name} = {json.dumps(own[name])}"
        for name, value in attrs.asdict(preset).items()
        if own[name] != value and name not in SHARED_SETTINGS
    ]
    return ", ".join(changed) or "nothing"


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


# A run as one object: a scenario in, a `RunRecord` out; interrupted runs go on where they were.
#
# Systems run side by side: compiled loops let go of the interpreter's lock, and no system reads
# another's state. Where there are more threads than systems, each system has several.


def simulate(
    scenario: Scenario,
    text: str = "",
    execution: Execution | None = None,
    *,
    checkpoint_every_s: float = CHECKPOINT_EVERY_S,
) -> RunRecord:
    """Run a scenario to its end; ``text`` is that of its file.

    Raises:
        ScenarioError: the scenario cannot be run, see `prepare`, or the checkpoints are of
            another one.
        CapacityError: a table was too small for the run.
    """
    started = time.monotonic()
    trace = prepare(scenario).trace

    def begin(system: System, kept: PeersRun | None) -> PeersRun:
        if kept is not None:
            return kept
        kind: type[PeersRun] = SystemRun if system.protocol is None else OverlayRun
        return kind(scenario, system, trace)

    systems = run_rounds(scenario, execution or Execution(), begin, checkpoint_every_s)
    return RunRecord(
        scenario=_described(scenario, trace),
        scenario_text=text,
        seed=scenario.seed,
        wall_s=time.monotonic() - started,
        systems=systems,
    )


def _described(scenario: Scenario, trace: ChurnTrace | None) -> dict[str, Any]:
    """The scenario as plain values; files by name and content, not by where they lie."""
    plain = attrs.asdict(scenario, filter=lambda field, _: field.name != PROTOCOL)
    for described, system in zip(plain["systems"], scenario.systems, strict=True):
        if system.protocol is not None:
            del described["preset"]
            described |= {PROTOCOL: system.protocol.label, "sources": system.protocol.sources}
    taken, found = scenario.workload, taken_from(scenario)
    if taken is None:
        del plain["workload"]
    elif found is not None:
        plain["workload"] = {"folder": found.path.name, "fingerprint": found.fingerprint}
    else:
        files = {"subscriptions": taken.subscriptions, "events": taken.events}
        plain["workload"] = {
            name: content_of(file) for name, file in files.items() if file is not None
        }
    if scenario.churn is not None and trace is not None:
        plain["churn"]["trace"] = scenario.churn.trace.name
        plain["churn"]["fingerprint"] = trace.fingerprint()
    return plain


class PeersStudy(Study[Scenario, RunRecord]):
    """Vinifera and its baseline on one workload, under churn."""

    kind = KIND
    format = FORMAT
    progress_unit = "rounds"
    threaded = True
    watched = True
    keepable = KEEPABLE
    measures = MEASURES
    row_order = ROW_ORDER
    unhashed = TRAFFIC_TABLES
    tables = TABLES

    def alone(self, scenario: Scenario, system: str) -> Scenario:
        return only(scenario, system)

    def taken_from(self, kind: str, folder: Path) -> Mapping[str, object]:
        """Subscriptions and events of a workload "vinifera", or the trace of one of churn."""
        if kind == "churn":
            return {"churn.trace": folder / "trace.parquet"}
        return values_for(folder) if kind == WORKLOAD_KIND else super().taken_from(kind, folder)

    def check(self, scenario: Scenario) -> int:
        needed = preview(scenario).memory_bytes
        rehearse(scenario)
        return needed

    def preview(self, scenario: Scenario) -> RenderableType:
        seen = preview(scenario)
        rehearse(scenario)
        return preview_table(seen)

    def run(self, scenario: Scenario, text: str, execution: Execution) -> RunRecord:
        return simulate(scenario, text, execution)

    def summarise(self, system: Any) -> dict[str, Any]:
        return summarise_system(system)

    def facts(self, record: RunRecord, summary: Mapping[str, Any]) -> str:
        del record
        systems = summary["systems"].values()
        nodes, cycles, events = (
            max((system[name] for system in systems), default=0)
            for name in ("nodes", "cycles", "events")
        )
        memory = summary["peak_rss_bytes"] / 2**20
        return (
            f"{nodes:,} nodes, {cycles:,} cycles, {events:,} events, seed {summary['seed']}; "
            f"{summary['wall_s']:.1f} s of computing, at most {memory:,.0f} MiB of memory"
        )

    def drawings(self, record: RunRecord) -> Iterable[Drawing]:
        from gossamer.sim.studies.peers.measuring.plots import drawings

        return drawings(record.systems)

    def restored(
        self, name: str, summary: Mapping[str, Any], tables: Mapping[str, Table]
    ) -> SystemRecord:
        return restored(name, summary, tables)

    def course(self, tables: Callable[[str], Table], scenario: Mapping[str, Any]) -> Course:
        del scenario
        return course_of(tables("cycles"))

    def places(self, nodes: Table) -> Mapping[str, Floats]:
        return places_of(nodes)

    def keep(self, scenario: Scenario, record: RunRecord, what: str) -> Iterator[tuple[str, Table]]:
        return kept_tables(scenario, record, what)

    def too_small(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        return outgrown(systems)

    def rows(self, tables: Mapping[str, Columns]) -> Iterator[Row]:
        return peer_rows(tables["events"], tables["nodes"], tables["cycles"])


PEERS: Final = PeersStudy()
