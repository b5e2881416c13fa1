"""What a run needs of an engine, the same for both: rounds in parts, commands, who is up.

Churn and publications come between the parts of a round. The cycle engine gives a part of the
nodes their turns, the event engine lets a part of the round's time pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.peer.prefetching import approach, hint
from gossamer.protocol.peer.record_table.records import EVENT
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.step import TIMERS, largest_step, step
from gossamer.sim.engine.cycle_engine import DROPPED, LOST, CycleEngine, Network, make_network
from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.latency import constant_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.engine.windows.window_engine import WindowEngine, suits_windows
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.running.collector import (
    Collector,
    CollectorParts,
    observe,
    record_sizes,
    sort_log,
)
from gossamer.sim.studies.worlds.network import (
    TICKS_A_SECOND,
    bandwidth,
    loss_periods,
    make_latency,
    partitions,
)

# Of a synchronous round, a tick each. In the first of a timer's phases it fires at all nodes, in
# the next arrives what they sent, in the third the answers; an event travels on in each.
PHASES_A_TIMER = 8
PHASES = PHASES_A_TIMER * len(TIMERS)
# Counts of engines that are of no interest here, or of what peers have not.
_NO_FATES = ("passed", "queue_overflowed")


class Driver(ABC):
    """An engine as a run sees it.

    Args:
        engine: of either kind, about to begin its first round.
        state: of all nodes.
        network: who is up.
    """

    def __init__(self, engine: Any, state: State, network: Network) -> None:
        self._engine = engine
        self.state = state
        self.network = network

    @property
    def cycle(self) -> int:
        """The present round."""
        return int(self._engine.cycle)

    def inject(self, record: npt.NDArray[np.int64]) -> None:
        """Hand a command to the node that it names."""
        self._engine.inject(record)

    @abstractmethod
    def begin_round(self) -> None:
        """Before the first part of a round."""

    @abstractmethod
    def run_part(self, part: int, parts: int) -> None:
        """Run part ``part`` of ``parts`` of the present round."""

    @abstractmethod
    def end_round(self) -> None:
        """After the last part of a round."""

    @abstractmethod
    def fates(self) -> dict[str, int]:
        """What became so far of messages that were not taken as they were sent."""

    @abstractmethod
    def dynamic_state(self) -> dict[str, Any]:
        """All that changes but for state and collector, for `restore`; may be pickled."""

    @abstractmethod
    def restore(self, dynamic: dict[str, Any]) -> None:
        """Go on from a `dynamic_state`."""

    @abstractmethod
    def use_cores(self, cores: Sequence[int | None]) -> None:
        """Run on these cores from now on, the calling thread's first; changes no result."""


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


class CycleDriver(Driver):
    """The cycle engine: a part is every parts-th node of the round's visiting order."""

    def __init__(
        self, seed: int, settings: Settings, state: State, network: Network, collector: Collector
    ) -> None:
        engine = CycleEngine(
            *(state, step, TIMERS, network, seed),
            observe=observe,
            collector=collector,
            hint=hint,
            approach=approach,
            reserve=largest_step(settings),
        )
        super().__init__(engine, state, network)
        self._order = np.empty(0, np.int64)

    def begin_round(self) -> None:
        self._engine.begin_cycle()
        self._order = self._engine.visiting_order()

    def run_part(self, part: int, parts: int) -> None:
        self._engine.take_turns(np.ascontiguousarray(self._order[part::parts]))

    def end_round(self) -> None:
        self._engine.end_cycle()

    def fates(self) -> dict[str, int]:
        counts = self.network.counts
        return {"to_dead_nodes": int(counts[LOST]), "beyond_capacity": int(counts[DROPPED])}

    def dynamic_state(self) -> dict[str, Any]:
        return {"cycle": self._engine.cycle, "network": tuple(self.network)}

    def restore(self, dynamic: dict[str, Any]) -> None:
        self._engine.cycle = dynamic["cycle"]
        saved = Network(*dynamic["network"])
        self.network.alive[:] = saved.alive
        self.network.taken[:] = saved.taken
        self.network.counts[:] = saved.counts

    def use_cores(self, cores: Sequence[int | None]) -> None:
        """Nothing: nodes take their turns one after another."""


class EventDriver(Driver):
    """An event engine: a part is a share of the round's time.

    Which of the two it is follows from the scenario's latency, see `suits_windows`. Synchronous
    cycles are events as well: all nodes' timers fire together, and messages take a phase.
    """

    def __init__(
        self,
        scenario: Scenario,
        settings: Settings,
        state: State,
        network: Network,
        collector: Collector,
    ) -> None:
        link = scenario.network
        nodes = len(state.round)
        synchronous = scenario.engine == "synchronous"
        period = max(len(TIMERS), round(scenario.round_s * TICKS_A_SECOND))
        latency = make_latency(link, nodes, scenario.seed)
        if synchronous:
            period, latency = PHASES, constant_latency(1)
        common: dict[str, Any] = {
            "period": period,
            "links": make_link_conditions(
                nodes,
                seed=scenario.seed,
                latency=latency,
                loss=link.loss,
                loss_periods=loss_periods(link),
                duplication=link.duplication,
                partitions=partitions(link, nodes, scenario.seed, {}),
                bandwidth=bandwidth(link, nodes, scenario.seed, record_sizes(), {}),
            ),
            "observe": observe,
            "collector": collector,
            "reserve": largest_step(settings),
        }
        if synchronous:
            phases = np.tile(np.arange(0, PHASES, PHASES_A_TIMER), (nodes, 1))
            common["firing_ticks"] = lambda _round: phases
        engine: EventEngine | WindowEngine
        about = (state, step, TIMERS, network, scenario.seed)
        if suits_windows(latency, period):
            engine = WindowEngine(*about, approach=approach, collectors=CollectorParts(), **common)
        else:
            engine = EventEngine(*about, hint=hint, **common)
        super().__init__(engine, state, network)
        self._collector = collector
        self._begins = 0

    def begin_round(self) -> None:
        self._begins = self._engine.tick

    def run_part(self, part: int, parts: int) -> None:
        # The last tick of a round is left to `end_round`: at it the next round would begin.
        period = self._engine.period
        self._run_until(min(self._begins + (part + 1) * period // parts, self._begins + period - 1))

    def end_round(self) -> None:
        self._run_until(self._begins + self._engine.period)

    def _run_until(self, tick: int) -> None:
        self._engine.run_until(tick)
        sort_log(self._collector)

    def use_cores(self, cores: Sequence[int | None]) -> None:
        if isinstance(self._engine, WindowEngine):
            self._engine.use_cores(cores)

    def fates(self) -> dict[str, int]:
        found = self._engine.counts()
        return {name: found[name] for name in found if name not in _NO_FATES}

    def dynamic_state(self) -> dict[str, Any]:
        return {"snapshot": self._engine.snapshot(), "begins": self._begins}

    def restore(self, dynamic: dict[str, Any]) -> None:
        self._engine.restore(dynamic["snapshot"])
        self._begins = dynamic["begins"]
