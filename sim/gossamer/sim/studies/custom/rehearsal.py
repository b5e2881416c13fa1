"""A rehearsal before a run, and whether two ways of writing a protocol do the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.debugging.checked_arrays import UnknownPeer
from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.custom.conditions import Conditions, whole_seconds
from gossamer.sim.custom.faults import HandlerError, at_most
from gossamer.sim.custom.language.declarations import ConfiguredProtocol, ProtocolType
from gossamer.sim.custom.node import Node
from gossamer.sim.custom.simulation import Simulation
from gossamer.sim.custom.tally import Taken
from gossamer.sim.engine.latency import constant_latency
from gossamer.sim.errors import ScenarioError, SimulationError
from gossamer.sim.studies.custom.scenario import FORMAT, CustomScenario, CustomSystem
from gossamer.sim.studies.custom.simulation import (
    attributes_of,
    conditions_of,
    down_beyond,
    make_driver,
    prepare,
)

# Of a rehearsal: enough for timers to fire and messages to arrive. Protocols that know rows by
# their numbers are rehearsed with more.
_REHEARSED_NODES: Final = (12, 200)
_REHEARSED_ROUNDS: Final = 4
_REHEARSED_TICKS: Final = 250
# Seconds of computing that a round of it may take: a thousand times what most take.
_REHEARSED_S: Final = 10.0


def rehearse(scenario: CustomScenario, nodes: int) -> None:
    """Run some rounds of a few nodes with every rule checked, before the run itself.

    It finds what compiled rules would do in silence: a write to another node's row, an index
    outside of a column, a message that is too large.

    Raises:
        ProtocolError: a rule did what rules may not; names its file and line.
        ScenarioError: what the protocol declares is impossible.
    """
    for system in scenario.systems:
        if issubclass(system.protocol.declared.owner, Node):
            continue
        first, *more = sorted({min(nodes, few) for few in _REHEARSED_NODES})
        try:
            _rehearse(scenario, system, first)
        except ProtocolError as error:
            if not more or not _is_of_rows(error):
                raise
            _rehearse(scenario, system, more[0])


def _is_of_rows(error: BaseException) -> bool:
    """Whether it comes of a record to a row that there is not."""
    cause = error.__cause__ or error.__context__
    return isinstance(error, UnknownPeer) or (cause is not None and _is_of_rows(cause))


def _rehearse(scenario: CustomScenario, system: CustomSystem, nodes: int) -> None:
    """Run some rounds of so many nodes of a system; raises as `rehearse`."""
    declared = system.protocol.declared
    whose = "{}, line {}: {}".format(*declared.place, declared.owner.__name__)
    conditions = _rehearsal(scenario, system, nodes, nodes)
    try:
        run = Simulation(make_driver(system, conditions, debug=True), _REHEARSED_ROUNDS)
        with at_most(_REHEARSED_S, whose):
            run.begin()
        while not run.is_finished:
            with at_most(_REHEARSED_S, whose):
                run.run_round()
    except (ScenarioError, ProtocolError, HandlerError):
        raise
    except SimulationError:
        # Controls and measures may ask for more nodes than a rehearsal has; where they are at
        # fault themselves, the run says so.
        return


def _rehearsal(
    scenario: CustomScenario, system: CustomSystem, first: int, nodes: int
) -> Conditions:
    """What a rehearsal happens in that begins with ``first`` nodes and has so many now."""
    return Conditions(
        nodes=nodes,
        seed=scenario.seed,
        engine=scenario.engine,
        round_ticks=min(_REHEARSED_TICKS, whole_seconds(scenario.round_s)),
        latency=constant_latency(0 if scenario.engine == "cycle" else 5),
        reports_unreachable=scenario.network.reports_unreachable,
        attributes=attributes_of(scenario, system, nodes),
        up=down_beyond(None, first, nodes),
        grown=lambda more: _rehearsal(scenario, system, first, more),
    )


# Whether two ways of writing a protocol do the same, record by record.
#
# Each system of a scenario runs beside the first one; every record that a node takes (messages,
# timers, what it lets itself have after a delay) is compared with the first system's.


@attrs.frozen
class Difference:
    """Where two systems part.

    Attributes:
        names: of the two systems.
        number: of the first record that differs, from 1 on.
        first, second: that record in each; None where there are no more.
    """

    names: tuple[str, str]
    number: int
    first: Taken | None
    second: Taken | None

    def __str__(self) -> str:
        sides = zip(self.names, (self.first, self.second), strict=True)
        said = " and ".join(f"in {name} {_described(record)}" for name, record in sides)
        return f"record {self.number:,} differs: {said}"


def _described(record: Taken | None) -> str:
    if record is None:
        return "there is none"
    body = f" {record.body}" if record.body else ""
    if record.sender == record.to:
        return f"node {record.to} takes its own {record.name}{body} at tick {record.tick:,}"
    return f"node {record.to} takes {record.name}{body} of node {record.sender} at {record.tick:,}"


def first_difference(scenario: CustomScenario, *, interpreted: bool = False) -> Difference | None:
    """Run the systems of a scenario beside its first one.

    Args:
        scenario: with two systems at least; use few nodes.
        interpreted: whether rules run interpreted.

    Returns:
        Where the first system that differs does so; None if all do the same.

    Raises:
        ScenarioError: the scenario cannot be run.
    """
    first, *others = scenario.systems
    for other in others:
        number = 0
        pairs = zip(
            _rounds(scenario, first, interpreted),
            _rounds(scenario, other, interpreted),
            strict=True,
        )
        for one, two in pairs:
            if one != two:
                return _first_of(one, two, number, (first.name, other.name))
            number += len(one)
    return None


def scenario_of(
    *protocols: str | ProtocolType | ConfiguredProtocol, folder: Path | None = None, **keys: Any
) -> CustomScenario:
    """A scenario in which protocols run side by side, for scripts.

    Args:
        protocols: as "rumor.py:Rumor", classes, or calls of these with settings; the systems are
            called by number and class.
        folder: that files are relative to; the working folder if None.
        keys: of the scenario: numbers of nodes and rounds, tables as dictionaries.

    Raises:
        ScenarioError: as of a file.
    """
    systems = []
    for number, given in enumerate(protocols, start=1):
        one = given.owner if isinstance(given, ConfiguredProtocol) else given
        settings = given.settings if isinstance(given, ConfiguredProtocol) else {}
        name = one.rpartition(":")[2] if isinstance(one, str) else one.__name__
        systems.append({"name": f"{number}-{name}", "protocol": one, **settings})
    document = {"name": "side by side", "system": systems, **keys}
    FORMAT.resolve_paths(document, (folder or Path()).absolute())
    return FORMAT.read(document, {})


def _rounds(
    scenario: CustomScenario, system: CustomSystem, interpreted: bool
) -> Iterator[list[Taken]]:
    """What nodes take, round by round; an empty one for every round after the run has ended."""
    prepared = prepare(scenario)
    conditions, changes = conditions_of(scenario, prepared, system)

    def taken() -> list[Taken]:
        trace = list(driver.trace())
        if scenario.engine == "windows":  # It fixes the order of what each node takes, no other.
            trace.sort(key=lambda record: (record.tick, record.to))
        return trace

    with _form(interpreted):
        driver: Any = make_driver(system, conditions, traced=True)
        run = Simulation(driver, prepared.rounds, changes)
        run.begin()
    yield taken()
    for _ in range(prepared.rounds):
        if not run.is_finished:
            with _form(interpreted):
                run.run_round()
        yield taken()


def _form(interpreted: bool) -> AbstractContextManager[None]:
    return use_compiled(False) if interpreted else nullcontext()


def _first_of(
    one: list[Taken], two: list[Taken], before: int, names: tuple[str, str]
) -> Difference:
    same = 0
    while same < min(len(one), len(two)) and one[same] == two[same]:
        same += 1
    return Difference(
        names,
        before + same + 1,
        one[same] if same < len(one) else None,
        two[same] if same < len(two) else None,
    )
