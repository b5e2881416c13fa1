"""Every number that a node tells Prometheus: its name, its meaning, and how it is kept.

The runtime adds to plain integers (`Counters`) and says on demand what is the case right now
(`Gauges`); prometheus_client is imported and the text made only when somebody asks for it.

Causes, links and queues are closed sets, so that no peer can make up label values: an unknown one
raises `KeyError`, which is a defect of the caller.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from gossamer.protocol.peer.settings.profile import LINK_KINDS

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

# What is counted by cause, and by kind: the labels of metrics.

RANDOM_VIEW: Final = "random view"
LINKS: Final = (*LINK_KINDS, RANDOM_VIEW)
# What a connected peer is that no link leads to: mostly one that has a link to us.
NO_LINK: Final = "none"

# Why something that came or was to go was dropped.
DROP_CAUSES: Final = (
    "hop limit",
    "bad frame",
    "too large",
    "flood",  # more frames a second than allowed
    "queue full",  # the addressee takes them too slowly
    "overload",  # new events of a publisher of whom too many wait to be passed on
    "unreachable",
    "forged",  # a descriptor that its owner did not sign
    "forged event",  # an event that is not its publisher's, see FORGERY_CAUSES
    "unproven",  # an event whose publisher is not known yet, while too many of these wait
    "stale",  # a descriptor or certificate that is not valid now, or contradicts another
    "expired",  # an event kept longer than the retention time
)
# What came and brought nothing new, as it does where an overlay repeats itself to lose nothing.
REDUNDANT_CAUSES: Final = (
    "duplicate",  # an event copy seen before
    "delivered before",  # an event that came anew, as what was asked for again does
    "older descriptor",  # a descriptor older than the one known
)
# Why an event is not believed to be its publisher's.
FORGERY_CAUSES: Final = (
    "changed",  # its identifier is not that of its content: the neighbour changed it
    "signature",  # nobody has signed it, or not all of it
    "name",  # another member has signed it
    "revoked",  # its publisher belongs to the cluster no more
    "unknown key",  # nobody knows whose key it was signed by
    "two contents",  # an identifier that is another event's
)
# Tables of the protocol that may be too small for what comes.
TABLES: Final = (
    "event memory",  # copies forgotten that may still come again or be asked for
    "held events",  # copies that made room before the retention time was over
    "giving back",  # copies that a predecessor was not given at once
    "routing table",  # subscriptions that found no room
    "boxes",  # subscriptions merged with a loss of precision
    "failures",  # failed peers forgotten whom others may still name
)
REFUSAL_CAUSES: Final = (
    "certificate",
    "revoked",
    "cluster",
    "version",
    "too many",
    "bad hello",
    "timeout",
)
# What members of the cluster are, and what happens to them; see `members`.
MEMBER_STATES: Final = ("alive", "suspect", "gone", "revoked")
MEMBER_CHANGES: Final = ("joined", "left", "failed", "returned", "revoked")
# What may be wrong with a node, the worst first; what is the case is told as sentences, too.
TROUBLES: Final = (
    "revoked",
    "certificate",  # it expires soon, or is not valid yet
    "alone",  # others are known, and none is reached
    "clock",  # it differs from those of all neighbours
    "unreachable",  # pairs of members that do not reach each other
    "identity",  # another process runs under this node's key
    "disk",  # something could not be written
    "address",  # one that is advertised, the machine does not have
    "flood",  # somebody publishes more than is kept for all
    "overload",  # more comes than can be dealt with
)
CLOSE_CAUSES: Final = ("goodbye", "broken", "silent", "stalled", "bad frame", "flood", "unused")

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


def _said(help: str, *, name: str = "", label: str = "") -> dict[str, str]:
    return {"help": help, "name": name, "label": label}


def _counts(causes: Iterable[str]) -> Callable[[], dict[str, int]]:
    return lambda: dict.fromkeys(causes, 0)


def _metric(help: str, *, name: str = "", default: Any = 0) -> Any:
    return attrs.field(default=default, metadata=_said(help, name=name))


_required: Final = partial(_metric, default=attrs.NOTHING)


@attrs.define
class Counters:
    """What has happened since the node started; add to the fields directly."""

    frames_received: int = _metric("Frames of the protocol taken from peers.")
    frames_sent: int = _metric("Frames of the protocol for peers.")
    bytes_received: int = _metric("Bytes taken from peers, before TLS.", name="received_bytes")
    bytes_sent: int = _metric("Bytes sent to peers, before TLS.", name="sent_bytes")
    reads_paused: int = _metric("Pauses in reading from peers that sent more than they may.")
    link_frames_received: dict[str, int] = attrs.field(
        factory=_counts((*LINKS, NO_LINK)),
        metadata=_said(
            "Frames taken, by the best link to the peer in the round; with pings and the like.",
            label="type",
        ),
    )
    link_frames_sent: dict[str, int] = attrs.field(
        factory=_counts((*LINKS, NO_LINK)),
        metadata=_said(
            "Frames sent, by the best link to the peer in the round; with pings and the like.",
            label="type",
        ),
    )
    events_published: int = _metric("Events published here.")
    events_acknowledged: int = _metric(
        "Events published here that the rendezvous nodes and their successors hold."
    )
    events_unacknowledged: int = _metric(
        "Events published here whose publisher was told that nobody acknowledged them."
    )
    events_forwarded: int = _metric("Event copies sent on to peers.")
    events_delivered: int = _metric("Events given to applications.")
    events_recovered: int = _metric("Events given to applications that had missed them while away.")
    events_forged: dict[str, int] = attrs.field(
        factory=_counts(FORGERY_CAUSES),
        metadata=_said(
            "Events not delivered since they are not their publisher's, or cannot be proven to be.",
            label="cause",
        ),
    )
    overloads: int = _metric(
        "Times that somebody began to send more events than can be dealt with."
    )
    rounds: int = _metric("Gossip rounds.")
    rounds_late: int = _metric("Rounds begun more than half a round late.")
    dials: int = _metric("Attempts to connect to a peer.")
    dials_failed: int = _metric("Attempts to connect that failed.")
    accepted: int = _metric("Connections that peers opened.", name="connections_accepted")
    page_requests: int = _metric("Requests to the page and to /metrics.")
    page_refused: int = _metric("Requests to the page that were refused.")
    dropped: dict[str, int] = attrs.field(
        factory=_counts(DROP_CAUSES),
        metadata=_said("Frames, events and descriptors dropped.", label="cause"),
    )
    redundant: dict[str, int] = attrs.field(
        factory=_counts(REDUNDANT_CAUSES),
        metadata=_said("Event copies and descriptors that brought nothing new.", label="cause"),
    )
    outgrown: dict[str, int] = attrs.field(
        factory=_counts(TABLES), metadata=_said("What found no room in a table.", label="table")
    )
    refused: dict[str, int] = attrs.field(
        factory=_counts(REFUSAL_CAUSES),
        metadata=_said("Peers not admitted.", name="peers_refused", label="cause"),
    )
    closed: dict[str, int] = attrs.field(
        factory=_counts(CLOSE_CAUSES),
        metadata=_said("Connections that ended.", name="connections_closed", label="cause"),
    )
    member_changes: dict[str, int] = attrs.field(
        factory=_counts(MEMBER_CHANGES),
        metadata=_said("What happened to members of the cluster.", label="change"),
    )
    delivery_latency: Histogram = attrs.field(
        factory=Histogram,
        metadata=_said(
            "From publishing, by the publisher's clock, to delivery here.",
            name="delivery_latency_seconds",
        ),
    )
    acknowledge_latency: Histogram = attrs.field(
        factory=Histogram,
        metadata=_said(
            "From publishing here to acknowledgement.", name="acknowledge_latency_seconds"
        ),
    )

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
        queued_bytes, queued_frames: over all peers.
        troubles: for each of TROUBLES.
        members: how many there are of each of MEMBER_STATES, this peer included.
        last_values: also marks of deleted ones.
    """

    links: Mapping[str, int] = attrs.field(metadata=_said("Links to other peers.", label="type"))
    connections: int = _required("Open connections to admitted peers.")
    known_peers: int = _required("Peers in the address book.")
    subscriptions: int = _required("Subscriptions of applications here.")
    routing_entries: int = _required("Content routing table entries.", name="routing_table_entries")
    clients: int = _required("Applications connected to the local socket.")
    queued_bytes: int = _required("Bytes waiting to be sent to peers.", name="queue_bytes")
    queued_frames: int = _required("Frames waiting to be sent to peers.", name="queue_frames")
    overloading: int = _required("Who sends more events than can be dealt with.")
    stored_events: int = _required("Events kept for absent subscribers.")
    load: float = _required("Events a round, as load shifting counts them.")
    position: float = _required("Position on the identifier ring, 0 to 1.", name="ring_position")
    certificate_expires_s: float | None = _metric(
        "When this peer's certificate expires, seconds since 1970.",
        name="certificate_expiry_timestamp_seconds",
        default=None,
    )
    troubles: Mapping[str, int] = attrs.field(
        factory=_counts(TROUBLES),
        metadata=_said("1 while this is wrong, else 0.", name="trouble", label="kind"),
    )
    members: Mapping[str, int] = attrs.field(
        factory=_counts(MEMBER_STATES),
        metadata=_said("Members of the cluster that were met, by state.", label="state"),
    )
    groups: int = _metric("Queue groups that this peer is of.")
    group_workers: int = _metric("Workers of queue groups at this peer.")
    group_events: int = _metric(
        "Events of queue groups kept here that nobody is known to have dealt with."
    )
    open_requests: int = _metric("Requests that wait for replies here.")
    last_values: int = _metric("Last values kept for newcomers.")


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


def _metrics_of(kind: type[Counters | Gauges]) -> Iterator[Metric]:
    for field in attrs.fields(kind):
        is_histogram = field.name.endswith("_latency")
        what = "gauge" if kind is Gauges else "histogram" if is_histogram else "counter"
        said = field.metadata
        yield Metric(said["name"] or field.name, what, field.name, said["help"], said["label"])


METRICS: Final = (*_metrics_of(Counters), *_metrics_of(Gauges))


class Source(Protocol):
    """More metrics, for `metrics_text`."""

    def collect(self) -> Iterable[Family]:
        """The families, as prometheus_client asks for them."""


def metrics_text(counters: Counters, gauges: Gauges, version: str, *more: Source) -> bytes:
    """All metrics in Prometheus' text format, those of the process (``process_...``) included.

    Args:
        counters, gauges: the values.
        version: of this software, told as a label of ``gossamer_build_info``.
        more: further ones.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    for source in (_Collector(counters, gauges, version), *more):
        registry.register(source)
    return generate_latest(registry)


class RateMeter:
    """The rate of a growing count, for the page."""

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
