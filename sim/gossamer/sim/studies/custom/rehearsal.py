"""A rehearsal before a run: a few nodes for some rounds, every rule checked."""

from __future__ import annotations

from typing import Final

from gossamer.protocol.kernel.debugging.checked_arrays import UnknownPeer
from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.sim.custom import Node
from gossamer.sim.custom.conditions import Conditions, whole_seconds
from gossamer.sim.custom.faults import HandlerError, at_most
from gossamer.sim.custom.simulation import Simulation
from gossamer.sim.engine.latency import constant_latency
from gossamer.sim.errors import ScenarioError, SimulationError
from gossamer.sim.studies.custom.scenario import CustomScenario, CustomSystem
from gossamer.sim.studies.custom.simulation import attributes_of, down_beyond, make_driver

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
