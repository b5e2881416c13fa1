"""A run of an overlay of one's own, a class derived from `PubSub`, beside the shipped systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO, Words
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.churn import ChurnTrace
from gossamer.sim.custom.conditions import Conditions, whole_seconds
from gossamer.sim.custom.faults import at_most
from gossamer.sim.custom.language.context import LATER_WORDS, LOGGED
from gossamer.sim.custom.loading import PROTOCOL
from gossamer.sim.custom.pubsub.overlay import (
    Delivered,
    Publish,
    Resubscribe,
    columns_of,
    event_words,
    in_some_box,
    matching,
    table_entries,
)
from gossamer.sim.custom.rule_driver import RuleDriver
from gossamer.sim.custom.simulation import Simulation, overlay_of
from gossamer.sim.custom.tally import Tally
from gossamer.sim.custom.tally import observe as count_message
from gossamer.sim.engine.latency import WORD_BYTES, Bandwidth, Latency, Sizes, no_latency
from gossamer.sim.studies.peers.inputs.overlays import overlay_settings
from gossamer.sim.studies.peers.inputs.publications import Bools
from gossamer.sim.studies.peers.inputs.scenario import Events, Scenario, System
from gossamer.sim.studies.peers.measuring.records import TrafficTables
from gossamer.sim.studies.peers.running.collector import Collector, count_copy, count_delivery
from gossamer.sim.studies.peers.running.peers_run import PeersRun
from gossamer.sim.studies.worlds.network import (
    Link,
    bandwidth,
    loss_periods,
    make_latency,
    partitions,
)
from gossamer.sim.study.draws import Int64s
from gossamer.sim.study.records import message_table
from gossamer.sim.study.watching import Overlay

# Of every message, as in records of the shipped systems.
HEADER_BYTES: Final = BODY * WORD_BYTES

_DELIVERED: Final = int(Delivered.kind)
# In the record of what is logged: the kind, and the first field.
_LOGGED_KIND: Final = BODY + KIND
_LOGGED_FIELDS: Final = BODY + LATER_WORDS


class OverlayCounts(Struct, shared=True):
    """What the observer of an overlay writes and reads.

    Attributes:
        tally: messages and bytes.
        costs: what events cost, and whom they reached.
        event_word: int64[KINDS], the word of a record that is the number of its event, -1 of none.
        values: int64[events, A], of those that were published.
        low, high: int64[n, S * A], what nodes want.
    """

    tally: Tally
    costs: Collector
    event_word: Int64s
    values: Int64s
    low: Int64s
    high: Int64s


@rule
def observe_overlay(c: Any, s: Any, words: Words, at: int, now: int) -> None:
    """Count a message, and what it brings: a copy of an event, or word of a delivery."""
    kind, node = words[at + KIND], words[at + TO]
    if kind == LOGGED:
        if words[at + _LOGGED_KIND] == _DELIVERED:
            event = words[at + _LOGGED_FIELDS]
            hops, tree_hops = words[at + _LOGGED_FIELDS + 1], words[at + _LOGGED_FIELDS + 2]
            if 0 <= event < c.values.shape[0]:
                cycle = now * s.ticks_a_now // s.round_ticks
                count_delivery(c.costs, event, node, hops, tree_hops, cycle)
        return
    count_message(c.tally, s, words, at, now)
    if words[at + FROM] != node and kind < c.event_word.shape[0] and c.event_word[kind] >= 0:
        event = words[at + c.event_word[kind]]
        if 0 <= event < c.values.shape[0]:
            wanted = in_some_box(c.low[node], c.high[node], c.values[event])
            count_copy(c.costs, event, words[at + FROM], node, wanted)


class OverlayRun(PeersRun):
    """Runs an overlay of one's own; as `PeersRun`.

    It runs on one thread, in whichever engine: its rules may read what others write.
    """

    def __init__(
        self,
        scenario: Scenario,
        system: System,
        trace: ChurnTrace | None,
        *,
        debug: bool | None = None,
    ) -> None:
        super().__init__(scenario, system, trace)
        self._debug = debug
        self._low, self._high = columns_of(*self.interests.present)
        attributes = scenario.subscriptions.attributes
        self._values = np.zeros((self._timetable.size, attributes), np.int64)
        self._up_at_first = np.zeros(self.nodes, np.bool_)
        self.population.start(self._up_at_first)
        self._build()
        for name, wanted in (("low", self._low), ("high", self._high)):
            getattr(self._rules.state, name)[...] = wanted
        self._simulation.start_nodes()

    def _build(self) -> None:
        """Make the driver of a run that has not begun."""
        assert self.system.protocol is not None
        self._declared = self.system.protocol.declared
        self._settings = overlay_settings(self.system, self.scenario.subscriptions)
        self._rules = RuleDriver(
            self._declared,
            self._settings,
            self._conditions(),
            debug=self._debug,
            observer=(observe_overlay, self._counts_beside),
            header_bytes=HEADER_BYTES,
        )
        self._simulation = Simulation(self._rules, self.rounds)

    def _counts_beside(self, tally: Tally) -> OverlayCounts:
        return OverlayCounts(
            tally=tally,
            costs=self.collector,
            event_word=event_words(self._declared),
            values=self._values,
            low=self._low,
            high=self._high,
        )

    def _conditions(self) -> Conditions:
        scenario, nodes = self.scenario, self.nodes
        link, seed = scenario.network, scenario.seed

        def band(sizes: Sizes) -> Bandwidth:
            return bandwidth(link, nodes, seed, sizes, {})

        return Conditions(
            nodes=nodes,
            seed=seed,
            engine=scenario.engine,
            round_ticks=whole_seconds(scenario.round_s),
            latency=self._latency(),
            loss=link.loss,
            loss_periods=loss_periods(link),
            duplication=link.duplication,
            partitions=partitions(link, nodes, seed, {}),
            bandwidth=band if link.takes_time else None,
            reports_unreachable=link.reports_unreachable,
            up=self._up_at_first,
        )

    def _latency(self) -> Latency:
        if self.scenario.engine == "cycle":
            return no_latency()
        return make_latency(self.scenario.network, self.nodes, self.scenario.seed)

    def __getstate__(self) -> dict[str, Any]:
        made = ("_rules", "_simulation", "_declared")
        kept = {name: value for name, value in self.__dict__.items() if name not in made}
        return {**kept, "rules": self._rules.dynamic_state()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        dynamic = kept.pop("rules")
        self.__dict__.update(kept)
        self._build()
        self._rules.restore(dynamic)

    @property
    def alive(self) -> Bools:
        return self._rules.alive

    @property
    def round(self) -> int:
        return self._rules.tick // self._rules.conditions.round_ticks

    def use_cores(self, cores: Sequence[int | None]) -> None:
        """Nothing: nodes take their turns one after another."""

    def overlay(self) -> Overlay | None:
        return overlay_of(self._links(), self.alive)

    def _links(self) -> dict[str, Int64s]:
        """Pairs of rows by kind, the first of which knows the second."""
        self._simulation.round = self.round
        return self._simulation.links()

    def _begin_round(self) -> None:
        self._simulation.round = self.round

    def _run_part(self, part: int) -> None:
        self._rules.run_part(part, self._parts)

    def _end_round(self) -> None:
        self._simulation.round = self.round

    def _join(self, node: int, contact: int | None) -> None:
        self._rules.start(node, -1 if contact is None else contact)

    def _subscribe(self, node: int, boxes: Int64s, constrained: Int64s) -> None:
        size = boxes.shape[1] // 2
        wanted = columns_of(boxes[np.newaxis], constrained[np.newaxis])
        state, counted = self._rules.state, (self._low, self._high)
        for name, mine, column in zip(("low", "high"), counted, wanted, strict=True):
            mine[node] = -1 if name == "high" else 0
            mine[node, : len(boxes) * size] = column[0]
            getattr(state, name)[node] = mine[node]
        if self.alive[node]:
            self._rules.hand(node, Resubscribe())

    def _wanting(self, values: Int64s) -> Bools:
        return matching(self._low, self._high, values)

    def _hand_over(self, publisher: int, event: int, values: Int64s) -> None:
        self._values[event] = values
        self._rules.hand(publisher, Publish(event, values.tolist()))

    def _control_messages(self) -> int:
        tally = self._rules.tally
        return int(tally.count[event_words(self._declared) < 0].sum())

    def _messages_and_bytes(self) -> Int64s:
        tally = self._rules.tally
        return np.array([tally.count.sum(), tally.bytes_of.sum()])

    def _traffic_tables(self) -> TrafficTables:
        traffic = self._rules.traffic()
        names = sorted(name for name, count in traffic.messages.items() if count)
        columns = (
            np.array([of[name] for name in names], np.int64)
            for of in (traffic.messages, traffic.size_bytes)
        )
        messages, fates = message_table(names, *columns), self._rules.counts()
        return self._traffic.tables(messages, traffic.sent, traffic.received, fates)

    def _table_entries(self) -> Int64s:
        return table_entries(self._declared, self._rules.state, self._simulation, self.nodes)

    def _in_degrees(self) -> Int64s:
        found = np.zeros(self.nodes, np.int64)
        pairs: list[npt.NDArray[np.int64]] = list(self._links().values())
        if pairs:
            known = np.unique(np.concatenate(pairs), axis=0)
            known = known[self.alive[known[:, 0]]]
            found += np.bincount(known[:, 1], minlength=self.nodes)
        return found

    def _settings_run(self) -> dict[str, Any]:
        assert self.system.protocol is not None
        return {PROTOCOL: self.system.protocol.label, **self._settings}


# Of a rehearsal: enough nodes and rounds for timers to fire and events to arrive.
_REHEARSED_NODES: Final = 12
_REHEARSED_ROUNDS: Final = 5
# Seconds of computing that a round of it may take: a thousand times what most take.
_REHEARSED_S: Final = 10.0


def rehearse(scenario: Scenario) -> None:
    """Run some rounds of a few nodes of each overlay of one's own, with every rule checked.

    Raises:
        ProtocolError: a rule did what rules may not; names its file and line.
        SimulationError: code of the protocol's file raised something.
    """
    for system in scenario.systems:
        if system.protocol is None:
            continue
        few = attrs.evolve(
            scenario,
            nodes=_REHEARSED_NODES,
            rounds=_REHEARSED_ROUNDS,
            round_s=min(scenario.round_s, 1.0),
            churn=None,
            turnover=None,
            workload=None,
            drift=None,
            network=Link(),
            systems=(system,),
            subscriptions=attrs.evolve(scenario.subscriptions, subscribers=1.0),
            events=Events(per_round=2, warm_up_rounds=1),
        )
        place = "{}, line {}".format(*system.protocol.declared.place)
        with at_most(_REHEARSED_S, f"{place}: {system.protocol.name}"):
            run = OverlayRun(few, system, None, debug=True)
        while not run.is_finished:
            with at_most(_REHEARSED_S, f"{place}: {system.protocol.name}"):
                run.run_round()
