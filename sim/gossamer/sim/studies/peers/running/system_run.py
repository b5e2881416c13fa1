"""A run of one of the shipped systems: Vinifera, or the baseline, through all its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import coarse_range
from gossamer.protocol.peer.space.ring import held_boxes, points_of
from gossamer.protocol.peer.state.state import COUNTER_NAMES, State, identifiers, make_state
from gossamer.protocol.peer.step import join_record, publish_record, restart, subscribe
from gossamer.protocol.peer.topology.placement import (
    NOWHERE,
    off_the_ring,
    places_of,
    take_place,
    want_place,
)
from gossamer.sim.churn import ChurnTrace
from gossamer.sim.engine.cycle_engine import fill_random_views
from gossamer.sim.studies.peers.inputs.own_workload import paced
from gossamer.sim.studies.peers.inputs.publications import Bools, matching
from gossamer.sim.studies.peers.inputs.scenario import FORMED, Scenario, System
from gossamer.sim.studies.peers.measuring.overlay_measures import (
    in_degrees,
    mean_friend_utility,
    numbered_overlay,
    ring_correctness,
    snapshot,
)
from gossamer.sim.studies.peers.measuring.records import OverlaySnapshot, TrafficTables
from gossamer.sim.studies.peers.running.collector import KINDS, NOT_CONTROL, messages_by_kind
from gossamer.sim.studies.peers.running.driver import make_driver
from gossamer.sim.studies.peers.running.peers_run import PeersRun
from gossamer.sim.studies.peers.running.population import form_overlay
from gossamer.sim.study.draws import Int64s
from gossamer.sim.study.watching import Overlay


class SystemRun(PeersRun):
    """Runs a shipped system, by its preset; as `PeersRun`.

    Attributes:
        settings, state: of its peers.
        engine: that runs them.
    """

    def __init__(self, scenario: Scenario, system: System, trace: ChurnTrace | None) -> None:
        super().__init__(scenario, system, trace)
        events = paced(scenario, self._timetable)
        spec = scenario.subscriptions
        self.settings = system.settings_for(self.nodes, spec, events, scenario.seed)
        self.state = make_state(self.settings, self.nodes)
        subscribe_all(self.state, self.settings, *self.interests.present)
        self.engine = make_driver(scenario, self.settings, self.state, self.collector)
        self.population.start(self.alive)
        sampler = self.state.sampler
        fill_random_views(sampler, self.alive, scenario.seed, sampler.view_size)
        if scenario.start == FORMED:
            form_overlay(self.state, self.alive)

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
    def alive(self) -> Bools:
        return self.engine.network.alive

    @property
    def round(self) -> int:
        return self.engine.cycle

    def use_cores(self, cores: Sequence[int | None]) -> None:
        self.engine.use_cores(cores)

    def overlay(self) -> Overlay:
        return numbered_overlay(snapshot(self.state, self.alive), np.flatnonzero(self.alive))

    def _begin_round(self) -> None:
        self.engine.begin_round()

    def _run_part(self, part: int) -> None:
        self.engine.run_part(part, self._parts)

    def _end_round(self) -> None:
        self.engine.end_round()

    def _join(self, node: int, contact: int | None) -> None:
        restart.run(self.state, node)
        if contact is not None:
            profile = self.state.sampler.profile[contact]
            self.engine.inject(join_record(node, contact, profile))

    def _subscribe(self, node: int, boxes: Int64s, constrained: Int64s) -> None:
        """Let a node have its subscriptions, and want to stand where they are."""
        settings = self.settings
        subscribe(self.state, node, *held_boxes(settings, boxes, constrained))
        if settings.placement == "interest":
            want_place(self.state, settings, node, boxes, constrained)

    def _as_routed(self, event: int, values: Int64s) -> Int64s:
        return np.asarray(points_of(self.settings, values, np.array([event]))[0])

    def _wanting(self, values: Int64s) -> Bools:
        return matching(self.state, values)

    def _hand_over(self, publisher: int, event: int, values: Int64s) -> None:
        self.engine.inject(publish_record(publisher, event, values))

    def _control_messages(self) -> int:
        kinds = self.collector.kinds
        return int(kinds.sum()) - int(kinds[[kind for kind in NOT_CONTROL if kind < KINDS]].sum())

    def _messages_and_bytes(self) -> Int64s:
        return np.asarray(self.collector.messages.sum(axis=0))

    def _traffic_tables(self) -> TrafficTables:
        collector = self.collector
        messages, sent = messages_by_kind(collector), collector.sent_bytes
        return self._traffic.tables(messages, sent, collector.received_bytes, self.engine.fates())

    def _ring_and_utility(self) -> tuple[float, float]:
        state, alive = self.state, self.alive
        return ring_correctness(state, alive), mean_friend_utility(state, alive)

    def _table_entries(self) -> Int64s:
        return self.state.table_count

    def _in_degrees(self) -> Int64s:
        return in_degrees(self.state, self.alive)

    def _identifiers(self) -> Int64s:
        return identifiers(self.state)

    def _snapshot(self) -> OverlaySnapshot:
        return snapshot(self.state, self.alive)

    def _counters(self) -> dict[str, int | float]:
        counters = self.state.counters.sum(axis=0)
        return {name: int(value) for name, value in zip(COUNTER_NAMES, counters, strict=True)}

    def _settings_run(self) -> dict[str, Any]:
        return {"preset": self.system.preset, **attrs.asdict(self.settings)}


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
