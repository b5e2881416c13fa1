"""What was seen of the peers, as workers reported it, and the tables of a run made of that."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.replay.lines import Line
from gossamer.replay.plan import Plan
from gossamer.sim.studies.peers.inputs.publications import due_at, matching, per_cycle_sums
from gossamer.sim.studies.peers.measuring.overlay_measures import (
    in_degrees,
    mean_friend_utility,
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
from gossamer.sim.study.records import Column, percentile, table_of_rows

FOREVER: Final = float("inf")


@attrs.define
class Session:
    """A time for which a peer took part."""

    joined_s: float
    left_s: float = FOREVER


@attrs.define
class Publication:
    """An event that is on its way."""

    number: int
    publisher: int
    time_s: float


@attrs.define
class Passage:
    """What one event cost; counts by node.

    Attributes:
        received: copies taken.
        uninterested: of these, by peers that did not want it.
        false_positives: of these, new to peers from which it went nowhere.
    """

    received: Counter[int] = attrs.field(factory=Counter)
    uninterested: Counter[int] = attrs.field(factory=Counter)
    false_positives: int = 0


@attrs.define
class Arrival:
    """The first delivery of an event to the application of a node."""

    time_s: float
    hops: int
    tree_hops: int
    latency_s: float


@attrs.define
class Look:
    """A peer as it was at some time; see the report `seen`."""

    time_s: float
    fields: Line


@attrs.define(eq=False)
class Recorder:
    """Collects reports; `take` is for the crew.

    Attributes:
        time_s: seconds of the trace for a time of the monotonic clock.
        keys: node by permanent key.
        addresses: of the peers that run.
        sessions: of every node.
        publications: by the id that events have on the wire.
        unpublished: numbers of events that no peer could publish, and why.
        passages: by id.
        arrivals: by id and node.
        duplicates: further deliveries to the same application, by id.
        tallies: counts by cycle.
        forwarded: event copies sent, by node.
        looks: by number and node.
        failures: why a peer could not start, by node.
        on_change: told of every report, once it is noted.
    """

    time_s: Callable[[float], float]
    round_s: float
    keys: dict[int, int] = attrs.field(factory=dict)
    addresses: dict[int, str] = attrs.field(factory=dict)
    sessions: defaultdict[int, list[Session]] = attrs.field(factory=lambda: defaultdict(list))
    publications: dict[int, Publication] = attrs.field(factory=dict)
    unpublished: dict[int, str] = attrs.field(factory=dict)
    passages: defaultdict[int, Passage] = attrs.field(factory=lambda: defaultdict(Passage))
    arrivals: dict[tuple[int, int], Arrival] = attrs.field(factory=dict)
    duplicates: Counter[int] = attrs.field(factory=Counter)
    tallies: defaultdict[int, Counter[str]] = attrs.field(factory=lambda: defaultdict(Counter))
    forwarded: Counter[int] = attrs.field(factory=Counter)
    looks: defaultdict[int, dict[int, Look]] = attrs.field(factory=lambda: defaultdict(dict))
    failures: dict[int, str] = attrs.field(factory=dict)
    on_change: Callable[[], None] = lambda: None

    def take(self, report: Line) -> None:
        """Note what a worker reports."""
        node, at = report["node"], self.time_s(report["at"])
        getattr(self, f"_on_{report['report']}")(node, at, report)
        self.on_change()

    def lose(self, node: int, at: float) -> None:
        """A peer is gone without a word."""
        self._close_session(node, self.time_s(at))

    def has_answered(self, node: int) -> bool:
        """Whether a peer that was started takes part, or could not."""
        return node in self.addresses or node in self.failures

    def _on_started(self, node: int, time_s: float, report: Line) -> None:
        self.keys[report["key"]] = node
        self.addresses[node] = report["address"]
        self.sessions[node].append(Session(time_s))

    def _on_stopped(self, node: int, time_s: float, _: Line) -> None:
        self._close_session(node, time_s)

    def _close_session(self, node: int, time_s: float) -> None:
        if self.addresses.pop(node, None) is not None:
            self.sessions[node][-1].left_s = time_s

    def _on_failed(self, node: int, time_s: float, report: Line) -> None:
        self._close_session(node, time_s)
        self.failures[node] = report["why"]

    def _on_published(self, node: int, time_s: float, report: Line) -> None:
        self.publications[report["id"]] = Publication(report["event"], node, time_s)

    def _on_unpublished(self, _node: int, _time_s: float, report: Line) -> None:
        self.unpublished[report["event"]] = report["why"]

    def _on_taken(self, node: int, _time_s: float, report: Line) -> None:
        passage = self.passages[report["id"]]
        passage.received[node] += 1
        if not report["interested"]:
            passage.uninterested[node] += 1
            passage.false_positives += report["false_positive"]

    def _on_delivered(self, node: int, time_s: float, report: Line) -> None:
        event = report["id"]
        if (event, node) in self.arrivals:
            self.duplicates[event] += 1
            return
        hops, tree_hops, latency_s = (report[name] for name in ("hops", "tree_hops", "latency_s"))
        self.arrivals[event, node] = Arrival(time_s, hops, tree_hops, latency_s)

    def _on_tally(self, node: int, time_s: float, report: Line) -> None:
        counts: dict[str, Any] = report["counts"]
        self.tallies[max(0, int(time_s // self.round_s))].update(counts)
        self.forwarded[node] += counts.get("forwarded", 0)

    def _on_seen(self, node: int, time_s: float, report: Line) -> None:
        self.looks[report["number"]][node] = Look(time_s, report)


# From what was seen of real peers to the tables of a run, as the simulator keeps them.

Table = dict[str, Column]


@attrs.define(eq=False)
class Accounts:
    """Makes the record of one replay, of which so many ``cycles`` count."""

    plan: Plan
    recorder: Recorder
    cycles: int

    def record(self, name: str, totals: Mapping[str, int | float]) -> SystemRecord:
        """What real peers did, in the tables of a simulated system; ``totals`` go with it."""
        published = self._published()
        events = table_of_rows([self._event_row(*one) for one in published], EVENT_COLUMNS)
        deliveries = self._deliveries([event for event, _ in published])
        looks = self.recorder.looks.get(self.plan.rounds, {})
        alive = self._mirror(looks)
        nodes = self._nodes([event for event, _ in published], alive)
        overlay = snapshot(self.plan.state, alive)
        return SystemRecord(
            name=name,
            settings={**attrs.asdict(self.plan.settings)},
            events=events,
            deliveries=deliveries,
            nodes=nodes,
            cycles=self._cycle_table(events, deliveries),
            overlay=overlay,
            totals={**totals, **self._latencies()},
        )

    def _published(self) -> list[tuple[int, Publication]]:
        """Id and publication of the events that count, in the order of their numbers."""
        end_s = self.cycles * self.plan.scenario.round_s
        known = self.recorder.publications.items()
        counting = [(event, made) for event, made in known if made.time_s < end_s]
        return sorted(counting, key=lambda one: one[1].number)

    # Events and deliveries

    def _event_row(self, event: int, made: Publication) -> tuple[float, ...]:
        round_s = self.plan.scenario.round_s
        due = self._due(made)
        passage = self.recorder.passages[event]
        reached = np.array(
            [(event, node) in self.recorder.arrivals for node in range(self.plan.nodes)]
        )
        return (
            made.number,
            int(made.time_s // round_s),
            made.time_s,
            made.publisher,
            int(due.sum()),
            int((due & reached).sum()),
            passage.received.total(),
            passage.uninterested.total(),
            self.recorder.duplicates[event],
            passage.false_positives,
        )

    def _due(self, made: Publication) -> npt.NDArray[np.bool_]:
        """bool[n]: who had to get an event."""
        round_s, time_s = self.plan.scenario.round_s, made.time_s
        sessions = [self._session_at(node, time_s) for node in range(self.plan.nodes)]
        online = np.array([one is not None for one in sessions])
        joined_s = np.array([np.inf if one is None else one.joined_s for one in sessions])
        leaves_s = np.array([-np.inf if one is None else one.left_s for one in sessions])
        wanting = matching(self.plan.state, self.plan.values[made.number])
        return due_at(time_s, round_s, online, joined_s, leaves_s, wanting)

    def _session_at(self, node: int, time_s: float) -> Session | None:
        sessions = self.recorder.sessions.get(node, [])
        return next((one for one in sessions if one.joined_s <= time_s < one.left_s), None)

    def _deliveries(self, events: Sequence[int]) -> Table:
        numbers = {event: self.recorder.publications[event].number for event in events}
        rows = [
            (numbers[event], node, arrival.hops, arrival.tree_hops, arrival.time_s)
            for (event, node), arrival in self.recorder.arrivals.items()
            if event in numbers
        ]
        return table_of_rows(rows, DELIVERY_COLUMNS)

    def _latencies(self) -> dict[str, float]:
        """Real seconds from publication to the application."""
        arrivals = self.recorder.arrivals.values()
        latencies = np.array([arrival.latency_s for arrival in arrivals])
        return {f"latency_p{share}_s": percentile(latencies, share) for share in (50, 99)}

    # Nodes and cycles

    def _mirror(self, looks: Mapping[int, Look]) -> npt.NDArray[np.bool_]:
        """Put what peers told of themselves into the plan's state; bool[n], who did."""
        state = self.plan.state
        alive = np.zeros(self.plan.nodes, np.bool_)
        for node, look in looks.items():
            alive[node] = True
            told = look.fields
            state.sampler.profile[node] = told["profile"]
            rows = [self.recorder.keys.get(key, -1) for key in told["links"]]
            state.links[node] = rows
            state.link_profile[node] = told["link_profiles"]
            state.successor[node] = told["successor"]
            state.table_count[node] = told["table"]
        return alive

    def _nodes(self, events: Sequence[int], alive: npt.NDArray[np.bool_]) -> Table:
        nodes, state = self.plan.nodes, self.plan.state
        received, uninterested, burdened = (np.zeros(nodes, np.int64) for _ in range(3))
        for event in events:
            passage = self.recorder.passages[event]
            for counts, sums in (
                (passage.received, received),
                (passage.uninterested, uninterested),
            ):
                for node, count in counts.items():
                    sums[node] += count
            burdened[list(passage.uninterested)] += 1
        forwarded = [self.recorder.forwarded[node] for node in range(nodes)]
        columns: dict[str, Any] = {
            "node": np.arange(nodes),
            "load": burdened / max(len(events), 1),
            "received": received,
            "uninterested": uninterested,
            "forwarded": np.array(forwarded),
            "routing_table_entries": state.table_count,
            "identifier": state.sampler.profile[:, IDENTIFIER],
            "in_degree": in_degrees(state, alive),
        }
        return {name: columns[name].astype(kind) for name, kind in NODE_COLUMNS.items()}

    def _cycle_table(self, events: Table, deliveries: Table) -> Table:
        rows = [self._cycle_row(cycle, events) for cycle in range(self.cycles)]
        names = (
            "cycle",
            "time_s",
            "population",
            "control_messages",
            "events",
            "routing_table_entries",
            "ring_correct",
            "friend_utility",
        )
        table = table_of_rows(rows, {name: CYCLE_COLUMNS[name] for name in names})
        for name, sums in per_cycle_sums(self.cycles, events, deliveries).items():
            table[name] = sums.astype(CYCLE_COLUMNS[name])
        return {name: table[name] for name in CYCLE_COLUMNS}

    def _cycle_row(self, cycle: int, events: Table) -> tuple[float, ...]:
        round_s = self.plan.scenario.round_s
        online = sum(
            self._session_at(node, (cycle + 1) * round_s) is not None
            for node in range(self.plan.nodes)
        )
        ring, utility, entries = self._look_row(cycle)
        return (
            cycle,
            cycle * round_s,
            online,
            self.recorder.tallies[cycle]["control"],
            int((events["cycle"] == cycle).sum()),
            entries,
            ring,
            utility,
        )

    def _look_row(self, cycle: int) -> tuple[float, float, int]:
        """Ring, friend links and table entries at the end of a cycle; NaN where nobody looked."""
        last = cycle + 1 == self.cycles
        looks = self.recorder.looks.get(self.plan.rounds if last else cycle)
        if not looks:
            return float("nan"), float("nan"), 0
        state, alive = self.plan.state, self._mirror(looks)
        entries = int(state.table_count[alive].sum())
        return ring_correctness(state, alive), mean_friend_utility(state, alive), entries
