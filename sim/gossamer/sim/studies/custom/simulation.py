"""A run of protocols of one's own: a scenario in, a `CustomRunRecord` out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.sim.churn import ChurnTrace
from gossamer.sim.churn.synthetic import make_turnover
from gossamer.sim.custom.conditions import Conditions, whole_seconds
from gossamer.sim.custom.language.declarations import Declarations
from gossamer.sim.custom.language.functions import MeasureOf
from gossamer.sim.custom.node import Node
from gossamer.sim.custom.plain_driver import PlainDriver
from gossamer.sim.custom.protocol import parts_of
from gossamer.sim.custom.rule_driver import RuleDriver
from gossamer.sim.custom.simulation import NO_CHANGES, Simulation, overlay_of
from gossamer.sim.engine.event_loop import Transitions
from gossamer.sim.engine.latency import Bandwidth, Latency, Sizes, least_ticks, make_sizes
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.checkpointed_runs import CHECKPOINT_EVERY_S, run_rounds
from gossamer.sim.studies.custom.records import CustomRecord, CustomRunRecord, course_of
from gossamer.sim.studies.custom.scenario import TIME_FOR_WINDOWS, CustomScenario, CustomSystem
from gossamer.sim.studies.peers.running.population import changes_of, load_trace, size_of
from gossamer.sim.studies.worlds.attributes import FILE, Attribute, Values
from gossamer.sim.studies.worlds.network import (
    TICKS_A_SECOND,
    bandwidth,
    loss_periods,
    make_latency,
    partitions,
)
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.records import message_table
from gossamer.sim.study.watching import Course, Overlay


@attrs.frozen(eq=False)
class Prepared:
    """What a scenario comes to: its files read, and how many nodes and rounds that makes."""

    trace: ChurnTrace | None
    nodes: int
    rounds: int


def prepare(scenario: CustomScenario) -> Prepared:
    """Read the files of a scenario; raises `ScenarioError`."""
    trace = load_trace(scenario.churn) if scenario.churn is not None else None
    nodes, rounds = size_of(scenario, trace)  # type: ignore[arg-type]
    duration_s = rounds * scenario.round_s
    if scenario.sessions is not None:
        trace = scenario.sessions.trace(nodes, duration_s, scenario.seed)
    elif scenario.turnover is not None:
        trace = make_turnover(nodes, duration_s, scenario.turnover.share, scenario.seed)
    prepared = Prepared(trace, nodes, rounds)
    for system in scenario.systems:
        conditions, _ = conditions_of(scenario, prepared, system)
        if conditions.bandwidth is not None:
            conditions.bandwidth(make_sizes())
    return prepared


class CustomRun:
    """One system of a scenario, round by round.

    Args:
        scenario: the run.
        system: which of its systems.
        prepared: what the scenario comes to.
        kept: of a checkpoint, to go on from.
    """

    def __init__(
        self, scenario: CustomScenario, system: CustomSystem, prepared: Prepared, kept: Any = None
    ) -> None:
        self.system = system
        conditions, changes = conditions_of(scenario, prepared, system)
        self._declared = system.protocol.declared
        self._driver = make_driver(system, conditions)
        self.simulation = Simulation(self._driver, prepared.rounds, changes, scenario.leaving)
        if kept is None:
            self.simulation.begin()
        else:
            self.simulation.restore(kept)

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def round(self) -> int:
        return self.simulation.round

    @property
    def rounds(self) -> int:
        return self.simulation.rounds

    @property
    def is_finished(self) -> bool:
        return self.simulation.is_finished

    def run_round(self) -> None:
        self.simulation.run_round()

    def use_cores(self, cores: Sequence[int | None]) -> None:
        self._driver.use_cores(cores)

    @property
    def size(self) -> int:
        return len(self._driver.alive)

    def course(self) -> Course:
        measures = {name: about_measure(one) for name, one in self._declared.measures.items()}
        return course_of(self.simulation.table(), measures)

    def overlay(self) -> Overlay | None:
        """Who knows whom now, as far as its samplers and its classes say."""
        return overlay_of(self.simulation.links(), self._driver.alive)

    def kept(self) -> Any:
        return self.simulation.dynamic_state()

    def record(self) -> CustomRecord:
        driver, traffic = self._driver, self._driver.traffic()
        names = sorted(traffic.messages)
        taken = (
            np.array([of[name] for name in names], np.int64)
            for of in (traffic.messages, traffic.size_bytes)
        )
        return CustomRecord(
            name=self.name,
            settings={"protocol": self.system.protocol.label, **self.system.settings},
            rounds=self.simulation.table(),
            messages=message_table(names, *taken),
            nodes={
                "node": np.arange(len(driver.alive)),
                "up": driver.alive.copy(),
                "sent_bytes": traffic.sent.copy(),
                "received_bytes": traffic.received.copy(),
                **driver.conditions.attributes,
            },
            logs=self.simulation.logs(),
            totals=dict(driver.counts()),
            stopped=self.simulation.stopped,
        )


def simulate_custom(
    scenario: CustomScenario,
    text: str = "",
    execution: Execution | None = None,
    *,
    checkpoint_every_s: float = CHECKPOINT_EVERY_S,
) -> CustomRunRecord:
    """Run a scenario to its end; ``text`` is that of its file.

    Raises:
        ScenarioError: the scenario cannot be run, or the checkpoints are of another one.
        SimulationError: code of the protocol's file raised something.
        ProtocolError: a rule did what rules may not.
    """
    started = time.monotonic()
    prepared = prepare(scenario)

    def begin(system: CustomSystem, kept: Any) -> CustomRun:
        return CustomRun(scenario, system, prepared, kept)

    systems = run_rounds(scenario, execution or Execution(), begin, checkpoint_every_s)
    return CustomRunRecord(
        scenario=described(scenario, prepared),
        scenario_text=text,
        seed=scenario.seed,
        wall_s=time.monotonic() - started,
        systems=systems,
    )


def described(scenario: CustomScenario, prepared: Prepared) -> dict[str, Any]:
    """The scenario as plain values, files by name and content; with the measures of protocols."""
    churn = None if scenario.churn is None else attrs.asdict(scenario.churn)
    if churn is not None and scenario.churn is not None and prepared.trace is not None:
        churn["trace"] = scenario.churn.trace.name
        churn["fingerprint"] = prepared.trace.fingerprint()
    network = attrs.asdict(scenario.network)
    network.pop("event_capacity")
    return {
        "kind": scenario.kind,
        "name": scenario.name,
        "nodes": prepared.nodes,
        "rounds": prepared.rounds,
        "round_s": scenario.round_s,
        "seed": scenario.seed,
        "engine": scenario.engine,
        "clock_drift": scenario.clock_drift,
        "attributes": {name: _plain(one.given) for name, one in scenario.attributes.items()},
        "churn": churn,
        "sessions": scenario.sessions and attrs.asdict(scenario.sessions),
        "turnover": scenario.turnover and attrs.asdict(scenario.turnover),
        "leaving": scenario.leaving,
        "network": network,
        "systems": [
            {
                "name": system.name,
                "protocol": system.protocol.label,
                "sources": system.protocol.sources,
                "settings": dict(system.settings),
            }
            for system in scenario.systems
        ],
        "measures": {
            name: about_measure(one)
            for system in scenario.systems
            for name, one in system.protocol.declared.measures.items()
        },
    }


def about_measure(one: MeasureOf) -> dict[str, Any]:
    """A measure of a protocol as plain values."""
    return {"label": one.label, "kind": one.kind, "better": one.better, "meaning": one.meaning}


def make_driver(
    system: CustomSystem, conditions: Conditions, *, traced: bool = False, debug: bool | None = None
) -> RuleDriver | PlainDriver:
    """What runs a system, whichever way its protocol is written."""
    declared, settings = system.protocol.declared, system.settings
    if issubclass(declared.owner, Node):
        return PlainDriver(declared, settings, conditions, traced=traced)
    return RuleDriver(declared, settings, conditions, traced=traced, debug=debug)


def attributes_of(scenario: CustomScenario, system: CustomSystem, nodes: int) -> dict[str, Values]:
    """What each node is: by the scenario, and where it says nothing by the system's protocol.

    Raises:
        ScenarioError: neither says it, or it is not of the type that a protocol declares.
    """
    given = dict(scenario.attributes)
    declared = [part.declared for part in parts_of(system.protocol.declared)]
    for each in declared:
        for name, one in each.attributes.items():
            if name not in given and one.default is None:
                expected = f"a value, as {each.owner.__name__} declares it without a default"
                raise ScenarioError(None, f"attributes.{name}", None, expected, found="missing")
            if name not in given:
                given[name] = Attribute(name, one.default)
    found = {name: one.of_nodes(nodes, scenario.seed) for name, one in given.items()}
    for each in declared:
        for name, one in each.attributes.items():
            found[name] = _of_kind(each, name, one.kind, found[name])
    return found


def _of_kind(declared: Declarations, name: str, kind: type, values: Values) -> Values:
    """Values as a protocol declares them; raises `ScenarioError` about one that is not so."""
    as_declared: Values = values.astype({bool: np.bool_, int: np.int64, float: np.float64}[kind])
    wrong = values[as_declared != values]
    if wrong.size:
        words = {bool: "true or false", int: "whole numbers", float: "numbers"}[kind]
        expected = f"{words} at every node, as {declared.owner.__name__} declares it"
        raise ScenarioError(None, f"attributes.{name}", wrong[0].item(), expected)
    return as_declared


def conditions_of(
    scenario: CustomScenario, prepared: Prepared, system: CustomSystem
) -> tuple[Conditions, Transitions]:
    """What a run happens in, and who comes and goes in it; raises `ScenarioError`."""
    nodes = prepared.nodes
    up, changes = None, NO_CHANGES
    if prepared.trace is not None:
        found = changes_of(prepared.trace.limited(nodes))
        ticks = np.floor(found.time_s * TICKS_A_SECOND).astype(np.int64)
        first = int(np.searchsorted(ticks, 0, "right"))
        up = np.zeros(nodes, np.bool_)
        for i in range(first):
            up[found.node[i]] = found.up[i]
        changes = Transitions(ticks[first:], found.node[first:].astype(np.int64), found.up[first:])
    return _world_of(scenario, system, up, nodes), changes


def _world_of(
    scenario: CustomScenario, system: CustomSystem, up: npt.NDArray[np.bool_] | None, nodes: int
) -> Conditions:
    """The conditions of so many nodes; the first ones are the same whatever their number."""
    link, seed = scenario.network, scenario.seed
    attributes = attributes_of(scenario, system, nodes)

    def band(sizes: Sizes) -> Bandwidth:
        return bandwidth(link, nodes, seed, sizes, attributes)

    return Conditions(
        nodes=nodes,
        seed=seed,
        engine=scenario.engine,
        round_ticks=whole_seconds(scenario.round_s),
        latency=_latency_of(scenario, nodes),
        loss=link.loss,
        loss_periods=loss_periods(link),
        duplication=link.duplication,
        partitions=partitions(link, nodes, seed, attributes),
        bandwidth=band if link.takes_time else None,
        attributes=attributes,
        reports_unreachable=link.reports_unreachable,
        drift=scenario.clock_drift,
        up=up,
        grown=lambda more: _world_of(scenario, system, down_beyond(up, nodes, more), more),
    )


def _latency_of(scenario: CustomScenario, nodes: int) -> Latency:
    """How long messages take; raises `ScenarioError` where the engine needs them to take more."""
    latency = make_latency(scenario.network, nodes, scenario.seed)
    if scenario.engine == "windows" and least_ticks(latency) < 1:
        raise ScenarioError(None, "engine", scenario.engine, TIME_FOR_WINDOWS)
    return latency


def down_beyond(up: npt.NDArray[np.bool_] | None, nodes: int, more: int) -> npt.NDArray[np.bool_]:
    """Who is up of more nodes than there were, of whom the new ones are down."""
    first = np.ones(nodes, np.bool_) if up is None else up
    return np.concatenate([first, np.zeros(more - nodes, np.bool_)])


def _plain(given: Any) -> Any:
    """An attribute as the result tells it, files by name."""
    if isinstance(given, dict):
        return {key: Path(x).name if key == FILE else x for key, x in given.items()}
    return given
