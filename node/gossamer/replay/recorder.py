"""What was seen of the peers, as workers reported it, in seconds of the trace."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final

import attrs

from gossamer.replay.lines import Line

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
