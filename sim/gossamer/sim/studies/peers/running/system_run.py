"""One system of a run: Vinifera, or the baseline, through all its rounds.

What counts as a hit is said in `gossamer.sim.studies.peers.inputs.publications`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import coarse_range
from gossamer.protocol.peer.space.ring import held_boxes, points_of
from gossamer.protocol.peer.state.state import COUNTER_NAMES, State, identifiers, make_state
from gossamer.protocol.peer.step import publish_record, subscribe
from gossamer.protocol.peer.topology.placement import NOWHERE, off_the_ring, places_of, take_place
from gossamer.sim.churn import ChurnTrace
from gossamer.sim.studies.peers.inputs.own_workload import paced, timetable_of, workload_of
from gossamer.sim.studies.peers.inputs.publications import (
    ROUNDS_TO_ARRIVE,
    Publishers,
    due_at,
    end_of_part,
    matching,
    parts_of,
    per_cycle_sums,
)
from gossamer.sim.studies.peers.inputs.scenario import FORMED, Scenario, System
from gossamer.sim.studies.peers.inputs.workload import drifted_values
from gossamer.sim.studies.peers.measuring.overlay_measures import (
    course_of,
    in_degrees,
    mean_friend_utility,
    numbered_overlay,
    ring_correctness,
    snapshot,
)
from gossamer.sim.studies.peers.measuring.records import (
    CYCLE_COLUMNS,
    DELIVERY_COLUMNS,
    EVENT_COLUMNS,
    NODE_COLUMNS,
    SystemRecord,
)
from gossamer.sim.studies.peers.running.collector import (
    COSTS,
    KINDS,
    LOG_CYCLE,
    LOG_EVENT,
    LOG_HOPS,
    LOG_NODE,
    LOG_TREE_HOPS,
    NOT_CONTROL,
    UNWRITTEN,
    WRITTEN,
    TrafficLog,
    make_collector,
)
from gossamer.sim.studies.peers.running.driver import make_driver
from gossamer.sim.studies.peers.running.population import (
    Interests,
    Population,
    form_overlay,
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


class SystemRun:
    """Runs one system of a scenario round by round; can be pickled between rounds.

    Args:
        scenario: the run.
        system: which of its systems.
        trace: the churn trace, loaded; None for a steady population.
    """

    def __init__(self, scenario: Scenario, system: System, trace: ChurnTrace | None) -> None:
        self.scenario = scenario
        self.system = system
        self.nodes, self.rounds = size_of(scenario, trace)
        spec = scenario.subscriptions
        self.workload = workload_of(scenario)
        self._parts = parts_of(scenario.engine, trace is None)
        self._timetable = timetable_of(scenario, self.workload, self.rounds, self._parts)
        events = paced(scenario, self._timetable)
        self.settings = system.settings_for(self.nodes, spec, events, scenario.seed)
        self.state = make_state(self.settings, self.nodes)
        self.interests = Interests(self.workload, scenario.drift, self.settings, self.nodes)
        subscribe_all(self.state, self.settings, *self.interests.present)
        self.publishers = Publishers(scenario.events, self.nodes, scenario.seed)
        self.population = Population(self.nodes, trace, scenario.seed)
        self._counts = self._timetable.counts
        per_round, count = int(self._counts.max(initial=0)), self._timetable.size
        # Events are watched until the round is over in which they have to arrive, at least.
        needed = per_round * (ROUNDS_TO_ARRIVE + 1) + 1
        slots = max(needed, min(count, _WATCHED_BYTES // self.nodes))
        self.collector = make_collector(self.nodes, slots, count, self._log_rows(per_round))
        self.engine = make_driver(scenario, self.settings, self.state, self.collector)
        self.population.start(self.state, self.engine.network.alive)
        if scenario.start == FORMED:
            form_overlay(self.state, self.engine.network.alive)
        self._traffic = TrafficLog(scenario.round_s)
        self._watched: list[_Watched] = []
        self._logs: list[Int64s] = []
        self._event_rows: list[tuple[float, ...]] = []
        self._cycle_rows: list[tuple[float, ...]] = []

    def _log_rows(self, per_round: int) -> int:
        """How many deliveries there may be before the log is emptied, which is once a part."""
        together = -(-per_round // self._parts) * self.nodes
        return max(4 * self.nodes, _SMALLEST_LOG, min(together, _LARGEST_LOG))

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__)
        kept["engine"] = self.engine.dynamic_state()
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        dynamic = kept.pop("engine")
        self.__dict__.update(kept)
        self.engine = make_driver(self.scenario, self.settings, self.state, self.collector)
        self.engine.restore(dynamic)

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def round(self) -> int:
        return self.engine.cycle

    def kept(self) -> SystemRun:
        return self

    @property
    def is_finished(self) -> bool:
        return self.engine.cycle >= self.rounds

    def use_cores(self, cores: Sequence[int | None]) -> None:
        self.engine.use_cores(cores)

    def run_round(self) -> None:
        """Run one round: churn, publications and the nodes' turns, interleaved in parts."""
        engine, round_s = self.engine, self.scenario.round_s
        cycle = engine.cycle
        engine.begin_round()
        self.interests.advance(self.state, cycle * round_s)
        kinds_before = self.collector.kinds.copy()
        for part in range(self._parts):
            time_s = end_of_part(cycle, part, self._parts, round_s)
            self.population.advance(engine, time_s)
            for event in self._timetable.of_part(cycle, part):
                self._publish(event, time_s)
            engine.run_part(part, self._parts)
            self._flush_log()
        engine.end_round()
        self._flush_log()
        self._settle(cycle)
        self._measure(cycle, int(self._counts[cycle]), self.collector.kinds - kinds_before)

    def _publish(self, event: int, time_s: float) -> None:
        alive = self.engine.network.alive
        publisher = self.workload.publisher(event)
        if publisher is None:
            draw = self.workload.publisher_rows(np.array([event]))[0]
            publisher = self.publishers.choose(draw, alive)
        if publisher is None:
            return
        values = self._values_of(event, time_s)
        slot = event % len(self.collector.watched)
        self.collector.watched[slot] = event
        self.collector.reached[slot] = False
        self.collector.burdens[slot] = False
        online, wanting = self.population, matching(self.state, values)
        # To want something begins and ends as a session does.
        since_s = np.maximum(online.joined_s, self.interests.since_s)
        until_s = np.minimum(online.leaves_s, self.interests.until_s)
        due = due_at(time_s, self.scenario.round_s, alive, since_s, until_s, wanting)
        self._watched.append(_Watched(event, self.engine.cycle, time_s, publisher, due))
        self.engine.inject(publish_record(publisher, event, values))
        self._flush_log()

    def _values_of(self, event: int, time_s: float) -> Int64s:
        """int64[C]: an event as the overlay routes it, published at a time."""
        values = self.workload.events(event, 1)
        if self.scenario.drift is not None:
            values = drifted_values(self.scenario.drift, values, time_s)
        return np.asarray(points_of(self.settings, values, np.array([event]))[0])

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

    def _measure(self, cycle: int, events: int, kinds: Int64s) -> None:
        alive = self.engine.network.alive
        ring = utility = float("nan")
        if cycle % self.scenario.measure_every == 0 or cycle + 1 == self.rounds:
            ring = ring_correctness(self.state, alive)
            utility = mean_friend_utility(self.state, alive)
        control = int(kinds.sum() - sum(int(kinds[kind]) for kind in NOT_CONTROL if kind < KINDS))
        self._traffic.note(self.collector, int(alive.sum()))
        self._cycle_rows.append(
            (
                cycle,
                cycle * self.scenario.round_s,
                int(alive.sum()),
                control,
                events,
                int(self.state.table_count[alive].sum()),
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

    def overlay(self) -> Overlay:
        """Who has links to whom now."""
        alive = self.engine.network.alive
        return numbered_overlay(snapshot(self.state, alive), np.flatnonzero(alive))

    def record(self) -> SystemRecord:
        """What has happened so far, as tables."""
        deliveries, repeated = self._deliveries()
        events = self._event_table(repeated)
        cycles = self._cycle_table(events, deliveries)
        counters = self.state.counters.sum(axis=0)
        totals: dict[str, int | float] = {
            name: int(value) for name, value in zip(COUNTER_NAMES, counters, strict=True)
        }
        if self._timetable.late:
            totals["late_events"] = self._timetable.late
        alive = self.engine.network.alive
        return SystemRecord(
            name=self.system.name,
            settings={"preset": self.system.preset, **attrs.asdict(self.settings)},
            events=events,
            deliveries=deliveries,
            nodes=self._node_table(len(events["event"])),
            cycles=cycles,
            overlay=snapshot(self.state, alive) if self.nodes <= _LARGEST_PICTURE else None,
            totals=totals,
            traffic=self._traffic.tables(self.collector, self.engine.fates()),
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
        collector, state = self.collector, self.state
        columns = {
            "node": np.arange(self.nodes),
            "load": collector.burdened / max(events, 1),
            "received": collector.received,
            "uninterested": collector.uninterested,
            "forwarded": collector.forwarded,
            "routing_table_entries": state.table_count,
            "identifier": identifiers(state),
            "in_degree": in_degrees(state, self.engine.network.alive),
        }
        return {name: columns[name].astype(kind) for name, kind in NODE_COLUMNS.items()}


def subscribe_all(s: State, settings: Settings, boxes: Int64s, constrained: Int64s) -> None:
    """Give every row its subscriptions: int64[n, S, 2A] and int64[n, S], see `Workload`."""
    if settings.placement == "interest":
        places = places_of(settings, boxes, constrained, s.sampler.key)
        for node, place in enumerate(places[:, 0].tolist()):
            if place != NOWHERE:
                take_place(s, node, place)
            elif settings.entry_links > 0:
                take_place(s, node, off_the_ring(s.sampler.key[node]))
        elsewhere = places[:, 1 : 1 + settings.guest_links]
        s.guest_targets[:, : elsewhere.shape[1]] = elsewhere
    if s.constrained.shape[1] > 1 or s.params.profile_ranges > 1:
        for p in range(len(boxes)):
            wanted = constrained[p] >= 0
            subscribe(s, p, *held_boxes(settings, boxes[p][wanted], constrained[p][wanted]))
        return
    wanted = constrained[:, 0] >= 0
    held, bits = held_boxes(settings, boxes[wanted, 0], constrained[wanted, 0])
    s.constrained[wanted, 0] = bits
    s.subscriptions[wanted, 0] = held
    ranked = held[:, -2 * s.params.ranked_attributes :]
    low, high = ranked[:, 0::2], ranked[:, 1::2]
    s.sampler.profile[wanted, s.params.first_range :] = coarse_range(low, high)
