"""What a run needs of an engine, the same for both: rounds in parts, commands, who is up.

Churn and publications come between the parts of a round. The cycle engine gives a part of the
nodes their turns, the event engine lets a part of the round's time pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gossamer.protocol.peer.record_table.records import EVENT
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.step import TIMERS, approach, hint, largest_step, step
from gossamer.sim.engine.cycle_engine import CycleEngine, Network, make_network
from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.latency import (
    Latency,
    constant_latency,
    matrix_latency,
    no_latency,
    read_latency_matrix,
    uniform_latency,
)
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.studies.peers.inputs.scenario import Link, Scenario
from gossamer.sim.studies.peers.running.collector import Collector, observe

TICKS_A_SECOND = 1000


class Driver(Protocol):
    """An engine as a run sees it."""

    network: Network
    state: State

    @property
    def cycle(self) -> int:
        """The present round."""
        ...

    def inject(self, record: npt.NDArray[np.int64]) -> None:
        """Hand a command to the node that it names."""
        ...

    def begin_round(self) -> None:
        """Before the first part of a round."""
        ...

    def run_part(self, part: int, parts: int) -> None:
        """Run part ``part`` of ``parts`` of the present round."""
        ...

    def end_round(self) -> None:
        """After the last part of a round."""
        ...

    def dynamic_state(self) -> dict[str, Any]:
        """All that changes but for state and collector, for `restore`; may be pickled."""
        ...

    def restore(self, dynamic: dict[str, Any]) -> None:
        """Go on from a `dynamic_state`."""
        ...


def make_driver(
    scenario: Scenario, settings: Settings, state: State, collector: Collector
) -> Driver:
    """The engine that a scenario asks for, about to begin its first round."""
    nodes = len(state.round)
    link = scenario.network
    network = make_network(
        nodes,
        reports_unreachable=link.reports_unreachable,
        limited_kind=EVENT if link.event_capacity else 0,
        capacity=link.event_capacity or 0,
    )
    if scenario.engine == "cycle":
        return CycleDriver(scenario.seed, settings, state, network, collector)
    return EventDriver(scenario, settings, state, network, collector)


class CycleDriver:
    """The cycle engine: a part is every parts-th node of the round's visiting order."""

    def __init__(
        self,
        seed: int,
        settings: Settings,
        state: State,
        network: Network,
        collector: Collector,
    ) -> None:
        self.state = state
        self.network = network
        self._engine = CycleEngine(
            state,
            step,
            TIMERS,
            network,
            seed,
            observe=observe,
            collector=collector,
            hint=hint,
            approach=approach,
            reserve=largest_step(settings),
        )
        self._order = np.empty(0, np.int64)

    @property
    def cycle(self) -> int:
        return self._engine.cycle

    def inject(self, record: npt.NDArray[np.int64]) -> None:
        self._engine.inject(record)

    def begin_round(self) -> None:
        self._engine.begin_cycle()
        self._order = self._engine.visiting_order()

    def run_part(self, part: int, parts: int) -> None:
        self._engine.take_turns(np.ascontiguousarray(self._order[part::parts]))

    def end_round(self) -> None:
        self._engine.end_cycle()

    def dynamic_state(self) -> dict[str, Any]:
        return {"cycle": self._engine.cycle, "network": tuple(self.network)}

    def restore(self, dynamic: dict[str, Any]) -> None:
        self._engine.cycle = dynamic["cycle"]
        saved = Network(*dynamic["network"])
        self.network.alive[:] = saved.alive
        self.network.taken[:] = saved.taken
        self.network.counts[:] = saved.counts


class EventDriver:
    """The event engine: a part is a share of the round's time."""

    def __init__(
        self,
        scenario: Scenario,
        settings: Settings,
        state: State,
        network: Network,
        collector: Collector,
    ) -> None:
        self.state = state
        self.network = network
        link = scenario.network
        nodes = len(state.round)
        self._engine = EventEngine(
            state,
            step,
            TIMERS,
            network,
            scenario.seed,
            period=max(len(TIMERS), round(scenario.round_s * TICKS_A_SECOND)),
            links=make_link_conditions(
                nodes,
                seed=scenario.seed,
                latency=make_latency(link, nodes, scenario.seed),
                loss=link.loss,
                duplication=link.duplication,
            ),
            observe=observe,
            collector=collector,
            hint=hint,
            reserve=largest_step(settings),
        )
        self._begins = 0

    @property
    def cycle(self) -> int:
        return self._engine.cycle

    def inject(self, record: npt.NDArray[np.int64]) -> None:
        self._engine.inject(record)

    def begin_round(self) -> None:
        self._begins = self._engine.tick

    def run_part(self, part: int, parts: int) -> None:
        # The last tick of a round is left to `end_round`: at it the next round would begin.
        period = self._engine.period
        self._engine.run_until(
            min(self._begins + (part + 1) * period // parts, self._begins + period - 1)
        )

    def end_round(self) -> None:
        self._engine.run_until(self._begins + self._engine.period)

    def dynamic_state(self) -> dict[str, Any]:
        return {"snapshot": self._engine.snapshot(), "begins": self._begins}

    def restore(self, dynamic: dict[str, Any]) -> None:
        self._engine.restore(dynamic["snapshot"])
        self._begins = dynamic["begins"]


def make_latency(link: Link, nodes: int, seed: int) -> Latency:
    """The latency model of a scenario, in ticks of a millisecond."""
    ticks = round(link.latency_s * TICKS_A_SECOND)
    if link.latency == "constant":
        return constant_latency(ticks)
    if link.latency == "uniform":
        return uniform_latency(0, 2 * ticks)
    if link.latency == "matrix":
        milliseconds = read_latency_matrix(Path(str(link.matrix)))
        return matrix_latency(np.rint(milliseconds).astype(np.int64), nodes, seed)
    return no_latency()
