"""The rounds of a run of peers, the same for every system: churn, publications, measures.

What counts as a hit is said in `gossamer.sim.studies.peers.inputs.publications`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.sim.churn import ChurnTrace
from gossamer.sim.studies.peers.inputs.own_workload import timetable_of, workload_of
from gossamer.sim.studies.peers.inputs.publications import (
    ROUNDS_TO_ARRIVE,
    Bools,
    Publishers,
    due_at,
    end_of_part,
    parts_of,
    per_cycle_sums,
)
from gossamer.sim.studies.peers.inputs.scenario import Scenario, System
from gossamer.sim.studies.peers.inputs.workload import drifted_values
from gossamer.sim.studies.peers.measuring.overlay_measures import (
    course_of,
)
from gossamer.sim.studies.peers.measuring.records import (
    CYCLE_COLUMNS,
    DELIVERY_COLUMNS,
    EVENT_COLUMNS,
    NODE_COLUMNS,
    OverlaySnapshot,
    SystemRecord,
    TrafficTables,
)
from gossamer.sim.studies.peers.running.collector import (
    COSTS,
    LOG_CYCLE,
    LOG_EVENT,
    LOG_HOPS,
    LOG_NODE,
    LOG_TREE_HOPS,
    UNWRITTEN,
    WRITTEN,
    TrafficLog,
    make_collector,
)
from gossamer.sim.studies.peers.running.population import (
    Interests,
    Population,
    size_of,
)
from gossamer.sim.study.draws import Int64s
from gossamer.sim.study.records import Column, empty_table, table_of_rows
from gossamer.sim.study.watching import Course, Overlay

_LARGEST_PICTURE = 20_000
_SMALLEST_LOG, _LARGEST_LOG = 1 << 16, 1 << 22
# As many events are watched as fit, so that whoever takes one again, late, is not counted again.
_WATCHED_BYTES = 1 << 24


@attrs.define
class _Watched:
    """An event under way, and who has to get it."""

    event: int
    cycle: int
    time_s: float
    publisher: int
    due: npt.NDArray[np.bool_]


class PeersRun(ABC):
    """Runs one system of a scenario round by round; can be pickled between rounds.

    Args:
        scenario: the run.
        system: which of its systems.
        trace: the churn trace, loaded; None for a steady population.

    Attributes:
        workload, publishers, population, interests: what the system is given.
        collector: what its observer counts.
    """

    def __init__(self, scenario: Scenario, system: System, trace: ChurnTrace | None) -> None:
        self.scenario = scenario
        self.system = system
        self.nodes, self.rounds = size_of(scenario, trace)
        self.workload = workload_of(scenario)
        self._parts = parts_of(scenario.engine, trace is None)
        self._timetable = timetable_of(scenario, self.workload, self.rounds, self._parts)
        self.interests = Interests(self.workload, scenario.drift, self.nodes)
        self.publishers = Publishers(scenario.events, self.nodes, scenario.seed)
        self.population = Population(self.nodes, trace, scenario.seed)
        self._counts = self._timetable.counts
        per_round, count = int(self._counts.max(initial=0)), self._timetable.size
        # Events are watched until the round is over in which they have to arrive, at least.
        needed = per_round * (ROUNDS_TO_ARRIVE + 1) + 1
        slots = max(needed, min(count, _WATCHED_BYTES // self.nodes))
        self.collector = make_collector(self.nodes, slots, count, self._log_rows(per_round))
        self._traffic = TrafficLog(scenario.round_s)
        self._watched: list[_Watched] = []
        self._logs: list[Int64s] = []
        self._event_rows: list[tuple[float, ...]] = []
        self._cycle_rows: list[tuple[float, ...]] = []

    def _log_rows(self, per_round: int) -> int:
        """How many deliveries there may be before the log is emptied, which is once a part."""
        together = -(-per_round // self._parts) * self.nodes
        return max(4 * self.nodes, _SMALLEST_LOG, min(together, _LARGEST_LOG))

    @property
    def name(self) -> str:
        return self.system.name

    def kept(self) -> PeersRun:
        return self

    @property
    def is_finished(self) -> bool:
        return self.round >= self.rounds

    def run_round(self) -> None:
        """Run one round: churn, publications and the nodes' turns, interleaved in parts."""
        cycle, round_s = self.round, self.scenario.round_s
        self._begin_round()
        self.interests.advance(cycle * round_s, self._subscribe)
        before = self._control_messages()
        for part in range(self._parts):
            time_s = end_of_part(cycle, part, self._parts, round_s)
            self.population.advance(self.alive, time_s, self._join)
            for event in self._timetable.of_part(cycle, part):
                self._publish(event, time_s)
            self._run_part(part)
            self._flush_log()
        self._end_round()
        self._flush_log()
        self._settle(cycle)
        self._measure(cycle, self._control_messages() - before)

    def _publish(self, event: int, time_s: float) -> None:
        alive = self.alive
        publisher = self.workload.publisher(event)
        if publisher is None:
            draw = self.workload.publisher_rows(np.array([event]))[0]
            publisher = self.publishers.choose(draw, alive)
        if publisher is None:
            return
        values = self.workload.events(event, 1)
        if self.scenario.drift is not None:
            values = drifted_values(self.scenario.drift, values, time_s)
        values = self._as_routed(event, values)
        slot = event % len(self.collector.watched)
        self.collector.watched[slot] = event
        self.collector.reached[slot] = False
        self.collector.burdens[slot] = False
        online, wanting = self.population, self._wanting(values)
        # To want something begins and ends as a session does.
        since_s = np.maximum(online.joined_s, self.interests.since_s)
        until_s = np.minimum(online.leaves_s, self.interests.until_s)
        due = due_at(time_s, self.scenario.round_s, alive, since_s, until_s, wanting)
        self._watched.append(_Watched(event, self.round, time_s, publisher, due))
        self._hand_over(publisher, event, values)
        self._flush_log()

    def _flush_log(self) -> None:
        written = int(self.collector.logged[WRITTEN])
        if self.collector.logged[UNWRITTEN]:
            raise CapacityError("the log of deliveries", len(self.collector.log))
        if written:
            self._logs.append(self.collector.log[:written].copy())
            self.collector.logged[WRITTEN] = 0

    def _settle(self, cycle: int) -> None:
        """Write the rows of events whose round after publication has passed."""
        final = cycle + 1 >= self.rounds
        while self._watched and (final or self._watched[0].cycle < cycle):
            watched = self._watched.pop(0)
            slot = watched.event % len(self.collector.watched)
            self._event_rows.append(
                (
                    watched.event,
                    watched.cycle,
                    watched.time_s,
                    watched.publisher,
                    int(watched.due.sum()),
                    int((watched.due & self.collector.reached[slot]).sum()),
                )
            )

    def _measure(self, cycle: int, control: int) -> None:
        ring = utility = float("nan")
        if cycle % self.scenario.measure_every == 0 or cycle + 1 == self.rounds:
            ring, utility = self._ring_and_utility()
        population = int(self.alive.sum())
        self._traffic.note(self._messages_and_bytes(), population)
        self._cycle_rows.append(
            (
                cycle,
                cycle * self.scenario.round_s,
                population,
                control,
                int(self._counts[cycle]),
                int(self._table_entries()[self.alive].sum()),
                ring,
                utility,
            )
        )

    @property
    def size(self) -> int:
        return self.nodes

    def course(self) -> Course:
        """What happened so far, but for path lengths, of which only the record has all."""
        events = self._event_table(np.empty(0, np.int64))
        return course_of(self._cycle_table(events, empty_table(DELIVERY_COLUMNS)))

    def record(self) -> SystemRecord:
        """What has happened so far, as tables."""
        deliveries, repeated = self._deliveries()
        events = self._event_table(repeated)
        cycles = self._cycle_table(events, deliveries)
        totals = self._counters()
        if self._timetable.late:
            totals["late_events"] = self._timetable.late
        return SystemRecord(
            name=self.system.name,
            settings=self._settings_run(),
            events=events,
            deliveries=deliveries,
            nodes=self._node_table(len(events["event"])),
            cycles=cycles,
            overlay=self._snapshot() if self.nodes <= _LARGEST_PICTURE else None,
            totals=totals,
            traffic=self._traffic_tables(),
        )

    def _event_table(self, repeated: Int64s) -> dict[str, Column]:
        """The table of events, with what they have cost so far; ``repeated`` are deliveries."""
        kinds = {
            name: kind
            for name, kind in EVENT_COLUMNS.items()
            if name not in COSTS and name != "duplicates"
        }
        table = table_of_rows(self._event_rows, kinds)
        costs = dict(zip(COSTS, self.collector.costs[table["event"]].T, strict=True))
        costs["duplicates"] = np.bincount(repeated, minlength=len(self.collector.costs))[
            table["event"]
        ]
        table |= {name: cost.astype(EVENT_COLUMNS[name]) for name, cost in costs.items()}
        return {name: table[name] for name in EVENT_COLUMNS}

    def _deliveries(self) -> tuple[dict[str, Column], Int64s]:
        """The table of first deliveries, and the event of every further one."""
        log = np.concatenate(self._logs) if self._logs else np.empty((0, 5), np.int64)
        _, first = np.unique(log[:, LOG_EVENT] * self.nodes + log[:, LOG_NODE], return_index=True)
        is_first = np.zeros(len(log), np.bool_)
        is_first[first] = True
        repeated, log = log[~is_first, LOG_EVENT], log[is_first]
        columns = {
            "event": log[:, LOG_EVENT],
            "node": log[:, LOG_NODE],
            "hops": log[:, LOG_HOPS],
            "tree_hops": log[:, LOG_TREE_HOPS],
            "time_s": log[:, LOG_CYCLE] * self.scenario.round_s,
        }
        table = {name: columns[name].astype(kind) for name, kind in DELIVERY_COLUMNS.items()}
        return table, repeated

    def _cycle_table(
        self, events: dict[str, Column], deliveries: dict[str, Column]
    ) -> dict[str, Column]:
        sums = per_cycle_sums(len(self._cycle_rows), events, deliveries)
        kinds = {name: kind for name, kind in CYCLE_COLUMNS.items() if name not in sums}
        table = table_of_rows(self._cycle_rows, kinds)
        table |= {name: column.astype(CYCLE_COLUMNS[name]) for name, column in sums.items()}
        return {name: table[name] for name in CYCLE_COLUMNS}

    def _node_table(self, events: int) -> dict[str, Column]:
        collector = self.collector
        columns = {
            "node": np.arange(self.nodes),
            "load": collector.burdened / max(events, 1),
            "received": collector.received,
            "uninterested": collector.uninterested,
            "forwarded": collector.forwarded,
            "routing_table_entries": self._table_entries(),
            "identifier": self._identifiers(),
            "in_degree": self._in_degrees(),
        }
        return {name: columns[name].astype(kind) for name, kind in NODE_COLUMNS.items()}

    # What the system does for it.

    @property
    @abstractmethod
    def alive(self) -> Bools:
        """bool[n], who is up."""

    @property
    @abstractmethod
    def round(self) -> int:
        """Rounds run so far."""

    @abstractmethod
    def use_cores(self, cores: Sequence[int | None]) -> None:
        """Run on these cores from now on; changes no result."""

    @abstractmethod
    def overlay(self) -> Overlay | None:
        """Who knows whom now; None where nobody says what a link is."""

    @abstractmethod
    def _begin_round(self) -> None:
        """Before the first part of a round."""

    @abstractmethod
    def _run_part(self, part: int) -> None:
        """Run one of the parts of the present round."""

    @abstractmethod
    def _end_round(self) -> None:
        """After the last part of a round."""

    @abstractmethod
    def _join(self, node: int, contact: int | None) -> None:
        """Let a node that has come up join, by a contact if there is one."""

    @abstractmethod
    def _subscribe(self, node: int, boxes: Int64s, constrained: Int64s) -> None:
        """Let a node want something else: int64[k, 2A], and int64[k] of bits."""

    def _as_routed(self, event: int, values: Int64s) -> Int64s:
        """int64[C]: an event of values int64[1, A] as the overlay compares it."""
        del event
        return np.asarray(values[0])

    @abstractmethod
    def _wanting(self, values: Int64s) -> Bools:
        """bool[n]: whose subscriptions match an event."""

    @abstractmethod
    def _hand_over(self, publisher: int, event: int, values: Int64s) -> None:
        """Let a node publish an event."""

    @abstractmethod
    def _control_messages(self) -> int:
        """Messages so far that carry no event."""

    @abstractmethod
    def _messages_and_bytes(self) -> Int64s:
        """int64[2]: messages that nodes took of each other so far, and their bytes."""

    @abstractmethod
    def _traffic_tables(self) -> TrafficTables:
        """All of it, by message and node."""

    def _ring_and_utility(self) -> tuple[float, float]:
        """Share of ring links that are right, and mean utility of friends; NaN without them."""
        return float("nan"), float("nan")

    @abstractmethod
    def _table_entries(self) -> Int64s:
        """int64[n]: entries of the nodes' routing tables."""

    @abstractmethod
    def _in_degrees(self) -> Int64s:
        """int64[n]: how many nodes that are up know each node."""

    def _identifiers(self) -> Int64s:
        """int64[n]: where nodes are on the ring; 0 where there is none."""
        return np.zeros(self.nodes, np.int64)

    def _snapshot(self) -> OverlaySnapshot | None:
        """The overlay for pictures and files, if it has a ring."""
        return None

    def _counters(self) -> dict[str, int | float]:
        """Further counts of the result."""
        return {}

    @abstractmethod
    def _settings_run(self) -> dict[str, Any]:
        """What it ran with, as plain values."""
