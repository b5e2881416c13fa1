"""Every number that a node tells Prometheus: its name, its meaning, and how it is kept.

The runtime adds to plain integers (`Counters`) and says on demand what is the case right now
(`Gauges`); prometheus_client is imported and the text made only when somebody asks for it.

Causes, links and queues are closed sets, so that no peer can make up label values: an unknown one
raises `KeyError`, which is a defect of the caller.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from gossamer.node.monitoring.metric_labels import (
    CLOSE_CAUSES,
    DROP_CAUSES,
    FORGERY_CAUSES,
    LINKS,
    MEMBER_CHANGES,
    MEMBER_STATES,
    NO_LINK,
    REDUNDANT_CAUSES,
    REFUSAL_CAUSES,
    TABLES,
    TROUBLES,
)

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

LATENCY_BOUNDS_S: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 60.0),
)


class Histogram:
    """Counts of values between fixed bounds."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = LATENCY_BOUNDS_S) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count ``value``; negative ones, which a clock set back makes, count as zero."""
        value = max(value, 0.0)
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, int]]:
        """Upper bounds and how many values were at most that, as Prometheus wants them."""
        names = [*map(repr, self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


def _counts(causes: Iterable[str]) -> Callable[[], dict[str, int]]:
    return lambda: dict.fromkeys(causes, 0)


@attrs.define
class Counters:
    """What has happened since the node started; add to the fields directly.

    `METRICS` says what each means.
    """

    frames_received: int = 0
    frames_sent: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    reads_paused: int = 0
    link_frames_received: dict[str, int] = attrs.field(factory=_counts((*LINKS, NO_LINK)))
    link_frames_sent: dict[str, int] = attrs.field(factory=_counts((*LINKS, NO_LINK)))
    events_published: int = 0
    events_acknowledged: int = 0
    events_unacknowledged: int = 0
    events_forwarded: int = 0
    events_delivered: int = 0
    events_recovered: int = 0
    events_forged: dict[str, int] = attrs.field(factory=_counts(FORGERY_CAUSES))
    overloads: int = 0
    rounds: int = 0
    rounds_late: int = 0
    dials: int = 0
    dials_failed: int = 0
    accepted: int = 0
    page_requests: int = 0
    page_refused: int = 0
    dropped: dict[str, int] = attrs.field(factory=_counts(DROP_CAUSES))
    redundant: dict[str, int] = attrs.field(factory=_counts(REDUNDANT_CAUSES))
    outgrown: dict[str, int] = attrs.field(factory=_counts(TABLES))
    refused: dict[str, int] = attrs.field(factory=_counts(REFUSAL_CAUSES))
    closed: dict[str, int] = attrs.field(factory=_counts(CLOSE_CAUSES))
    member_changes: dict[str, int] = attrs.field(factory=_counts(MEMBER_CHANGES))
    delivery_latency: Histogram = attrs.field(factory=Histogram)
    acknowledge_latency: Histogram = attrs.field(factory=Histogram)

    def drop(self, cause: str) -> None:
        """Count something dropped; ``cause`` is one of DROP_CAUSES."""
        self.dropped[cause] += 1

    def repeat(self, cause: str) -> None:
        """Count something that brought nothing new; ``cause`` is one of REDUNDANT_CAUSES."""
        self.redundant[cause] += 1

    def refuse(self, cause: str) -> None:
        """Count a peer not admitted; ``cause`` is one of REFUSAL_CAUSES."""
        self.refused[cause] += 1

    def close(self, cause: str) -> None:
        """Count a connection's end; ``cause`` is one of CLOSE_CAUSES."""
        self.closed[cause] += 1


@attrs.frozen(kw_only=True)
class Gauges:
    """What is the case right now.

    Attributes:
        links: how many of each of LINKS.
        connections, known_peers, subscriptions, routing_entries, clients: how many.
        queued_bytes, queued_frames: waiting to be sent, over all peers.
        overloading: who sends more events than can be dealt with, how many.
        stored_events: kept for subscribers that are away.
        load: events seen a round, as load shifting counts them.
        position: on the ring, 0 to 1.
        certificate_expires_s: seconds since 1970, None without TLS.
        troubles: for each of TROUBLES 1 while it is the case, else 0.
        members: how many there are of each of MEMBER_STATES, this peer included.
        groups, group_workers, group_events: queue groups that this peer is of, their workers here,
            and their events that nobody is known to have dealt with.
        open_requests: of applications here, that wait for replies.
        last_values: kept for newcomers, and marks of deleted ones.
    """

    links: Mapping[str, int]
    connections: int
    known_peers: int
    subscriptions: int
    routing_entries: int
    clients: int
    queued_bytes: int
    queued_frames: int
    overloading: int
    stored_events: int
    load: float
    position: float
    certificate_expires_s: float | None = None
    troubles: Mapping[str, int] = attrs.field(factory=_counts(TROUBLES))
    members: Mapping[str, int] = attrs.field(factory=_counts(MEMBER_STATES))
    groups: int = 0
    group_workers: int = 0
    group_events: int = 0
    open_requests: int = 0
    last_values: int = 0


@attrs.frozen
class Metric:
    """One documented metric.

    Attributes:
        name: without the prefix ``gossamer_`` and without ``_total``.
        kind: counter, gauge or histogram.
        field: of `Counters` or `Gauges`.
        help: what it means.
        label: name of its label, "" for none.
    """

    name: str
    kind: str
    field: str
    help: str
    label: str = ""


METRICS: Final = (
    Metric(
        "frames_received", "counter", "frames_received", "Frames of the protocol taken from peers."
    ),
    Metric("frames_sent", "counter", "frames_sent", "Frames of the protocol for peers."),
    Metric("received_bytes", "counter", "bytes_received", "Bytes taken from peers, before TLS."),
    Metric("sent_bytes", "counter", "bytes_sent", "Bytes sent to peers, before TLS."),
    Metric(
        "reads_paused",
        "counter",
        "reads_paused",
        "Pauses in reading from peers that sent more than they may.",
    ),
    Metric(
        "link_frames_received",
        "counter",
        "link_frames_received",
        "Frames taken, by the best link to the peer in the round; with pings and the like.",
        "type",
    ),
    Metric(
        "link_frames_sent",
        "counter",
        "link_frames_sent",
        "Frames sent, by the best link to the peer in the round; with pings and the like.",
        "type",
    ),
    Metric("events_published", "counter", "events_published", "Events published here."),
    Metric(
        "events_acknowledged",
        "counter",
        "events_acknowledged",
        "Events published here that the rendezvous nodes and their successors hold.",
    ),
    Metric(
        "events_unacknowledged",
        "counter",
        "events_unacknowledged",
        "Events published here whose publisher was told that nobody acknowledged them.",
    ),
    Metric("events_forwarded", "counter", "events_forwarded", "Event copies sent on to peers."),
    Metric("events_delivered", "counter", "events_delivered", "Events given to applications."),
    Metric(
        "events_recovered",
        "counter",
        "events_recovered",
        "Events given to applications that had missed them while away.",
    ),
    Metric(
        "events_forged",
        "counter",
        "events_forged",
        "Events not delivered since they are not their publisher's, or cannot be proven to be.",
        "cause",
    ),
    Metric(
        "overloads",
        "counter",
        "overloads",
        "Times that somebody began to send more events than can be dealt with.",
    ),
    Metric("rounds", "counter", "rounds", "Gossip rounds."),
    Metric("rounds_late", "counter", "rounds_late", "Rounds begun more than half a round late."),
    Metric("dials", "counter", "dials", "Attempts to connect to a peer."),
    Metric("dials_failed", "counter", "dials_failed", "Attempts to connect that failed."),
    Metric("connections_accepted", "counter", "accepted", "Connections that peers opened."),
    Metric("page_requests", "counter", "page_requests", "Requests to the page and to /metrics."),
    Metric("page_refused", "counter", "page_refused", "Requests to the page that were refused."),
    Metric("dropped", "counter", "dropped", "Frames, events and descriptors dropped.", "cause"),
    Metric(
        "redundant",
        "counter",
        "redundant",
        "Event copies and descriptors that brought nothing new.",
        "cause",
    ),
    Metric("outgrown", "counter", "outgrown", "What found no room in a table.", "table"),
    Metric("peers_refused", "counter", "refused", "Peers not admitted.", "cause"),
    Metric("connections_closed", "counter", "closed", "Connections that ended.", "cause"),
    Metric(
        "member_changes",
        "counter",
        "member_changes",
        "What happened to members of the cluster.",
        "change",
    ),
    Metric(
        "delivery_latency_seconds",
        "histogram",
        "delivery_latency",
        "From publishing, by the publisher's clock, to delivery here.",
    ),
    Metric(
        "acknowledge_latency_seconds",
        "histogram",
        "acknowledge_latency",
        "From publishing here to acknowledgement.",
    ),
    Metric("links", "gauge", "links", "Links to other peers.", "type"),
    Metric("connections", "gauge", "connections", "Open connections to admitted peers."),
    Metric("known_peers", "gauge", "known_peers", "Peers in the address book."),
    Metric("subscriptions", "gauge", "subscriptions", "Subscriptions of applications here."),
    Metric("routing_table_entries", "gauge", "routing_entries", "Content routing table entries."),
    Metric("clients", "gauge", "clients", "Applications connected to the local socket."),
    Metric("queue_bytes", "gauge", "queued_bytes", "Bytes waiting to be sent to peers."),
    Metric("queue_frames", "gauge", "queued_frames", "Frames waiting to be sent to peers."),
    Metric("overloading", "gauge", "overloading", "Who sends more events than can be dealt with."),
    Metric("stored_events", "gauge", "stored_events", "Events kept for absent subscribers."),
    Metric("load", "gauge", "load", "Events a round, as load shifting counts them."),
    Metric("ring_position", "gauge", "position", "Position on the identifier ring, 0 to 1."),
    Metric(
        "certificate_expiry_timestamp_seconds",
        "gauge",
        "certificate_expires_s",
        "When this peer's certificate expires, seconds since 1970.",
    ),
    Metric("trouble", "gauge", "troubles", "1 while this is wrong, else 0.", "kind"),
    Metric(
        "members",
        "gauge",
        "members",
        "Members of the cluster that were met, by state.",
        "state",
    ),
    Metric("groups", "gauge", "groups", "Queue groups that this peer is of."),
    Metric("group_workers", "gauge", "group_workers", "Workers of queue groups at this peer."),
    Metric(
        "group_events",
        "gauge",
        "group_events",
        "Events of queue groups kept here that nobody is known to have dealt with.",
    ),
    Metric("open_requests", "gauge", "open_requests", "Requests that wait for replies here."),
    Metric("last_values", "gauge", "last_values", "Last values kept for newcomers."),
)


def metrics_text(counters: Counters, gauges: Gauges, version: str) -> bytes:
    """All metrics in Prometheus' text format, those of the process (``process_...``) included.

    Args:
        counters, gauges: the values.
        version: of this software, told as a label of ``gossamer_build_info``.
    """
    return exposed(counters, gauges, version)


class Source(Protocol):
    """More metrics, for `exposed`."""

    def collect(self) -> Iterable[Family]:
        """The families, as prometheus_client asks for them."""
        ...


def exposed(counters: Counters, gauges: Gauges, version: str, *more: Source) -> bytes:
    """As `metrics_text`, with the metrics of ``more``."""
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    for source in (_Collector(counters, gauges, version), *more):
        registry.register(source)
    return generate_latest(registry)


class RateMeter:
    """The rate of a growing count, for the page.

    Args:
        clock: seconds, never going back.
    """

    __slots__ = ("_at", "_clock", "_count", "_rate")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock()
        self._count = 0
        self._rate = 0.0

    def rate(self, count: int) -> float:
        """Growth per second since the last call; within the same instant, the rate told then."""
        now = self._clock()
        if now > self._at:
            self._rate = (count - self._count) / (now - self._at)
            self._at, self._count = now, count
        return self._rate


@attrs.frozen(eq=False)
class _Collector:
    """What prometheus_client asks for its metrics."""

    counters: Counters
    gauges: Gauges
    version: str

    def collect(self) -> Iterable[Family]:
        from prometheus_client.core import InfoMetricFamily

        yield InfoMetricFamily(
            "gossamer_build", "What this peer runs.", value={"version": self.version}
        )
        for metric in METRICS:
            source = self.gauges if metric.kind == "gauge" else self.counters
            value = getattr(source, metric.field)
            if value is not None:
                yield _family(metric, value)


def _family(metric: Metric, value: Any) -> Family:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    name = f"gossamer_{metric.name}"
    if metric.kind == "histogram":
        made = HistogramMetricFamily(name, metric.help)
        made.add_metric([], buckets=value.buckets(), sum_value=value.total)
        return made
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(name, metric.help, labels=[metric.label] if metric.label else [])
    for label, number in value.items() if metric.label else [("", value)]:
        family.add_metric([label] if metric.label else [], number)
    return family
