"""A broker's counters and gauges for Prometheus, and its snapshot for the page and `top`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs
import trio
from attrs import frozen

from gossamer.client.frames import BROKER
from gossamer.node.broker.assembly import BrokerNode
from gossamer.node.broker.links import Neighbour
from gossamer.node.monitoring.members import cluster_view
from gossamer.node.monitoring.metrics import Gauges, metrics_text
from gossamer.node.page.snapshot import PeerView, Queues, Rates, Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family


@frozen
class BrokerNumbers:
    """What is read from a broker when somebody asks."""

    node: BrokerNode

    def collect(self) -> Iterable[Family]:
        """The families of metrics, as prometheus_client asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        node = self.node
        broker, composites = node.engine.broker, node.composites
        for field, (label, text) in node.family.counted.items():
            value: Any = getattr(broker.counters, field)
            name = f"gossamer_broker_{field}"
            family = CounterMetricFamily(name, text, labels=[label] if label else [])
            for key, number in value.items() if label else [("", value)]:
                family.add_metric([str(key)] if label else [], number)
            yield family
        lost = CounterMetricFamily(
            "gossamer_broker_composites_lost",
            "Of composite subscriptions: publications dropped that waited, searches for matches"
            " that were cut short, and matches too long to send.",
            labels=["cause"],
        )
        for cause, number in attrs.asdict(composites.losses).items():
            lost.add_metric([cause], number)
        yield lost
        sizes = node.family.sizes(broker)
        gauges = {f"table_{name}": found for name, found in sizes.items()}
        gauges["input_queue"] = (node.engine.waiting, "Messages that wait for the broker.")
        gauges["output_queue"] = (node.backlog, "Frames in the longest queue to a neighbour.")
        gauges["composites"] = (len(composites), "Composite subscriptions of clients.")
        waiting = "Publications that wait to match together with others, for each filter."
        gauges["composites_waiting"] = (composites.waiting, waiting)
        for name, (number, text) in gauges.items():
            yield GaugeMetricFamily(f"gossamer_broker_{name}", text, value=number)


def broker_metrics_text(node: BrokerNode, gauges: Gauges) -> bytes:
    """All metrics of a broker in Prometheus' text format, those of every node included."""
    return metrics_text(node.counters, gauges, node.version, BrokerNumbers(node))


def broker_cluster(node: BrokerNode) -> dict[str, Any]:
    """The members that a broker has met; brokers tell each other no more of themselves."""
    members = node.cluster_members.to_json()["members"]
    return cluster_view(members, {}, 0, BROKER, name=node.cluster_name)


def broker_gauges(node: BrokerNode, clients: int) -> Gauges:
    """What is the case right now; what only peers have is zero."""
    counters, traffic = node.counters, node.pool.traffic
    counters.bytes_received, counters.bytes_sent = traffic.taken, traffic.written
    counters.reads_paused = traffic.throttled
    counters.dials, counters.dials_failed = node.pool.dials, node.pool.dials_failed
    sizes = node.family.sizes(node.engine.broker)
    subscriptions = sizes["subscriptions"][0]
    certificate = node.certificate
    return Gauges(
        links={},
        connections=len(node.pool),
        known_peers=len(node.neighbours.known),
        subscriptions=subscriptions,
        routing_entries=subscriptions + sizes.get("advertisements", (0, ""))[0],
        clients=clients,
        queued_bytes=_queued_bytes(node),
        queued_frames=sum(len(one.waiting) for one in node.neighbours.known.values()),
        overloading=0,
        stored_events=node.members.deliveries,
        load=0.0,
        position=0.0,
        certificate_expires_s=None if certificate is None else certificate.not_after,
        troubles=node.standing.counts(),
        members=node.cluster_members.counts(),
    )


def broker_snapshot(node: BrokerNode, clients: int) -> Snapshot:
    """The overlay as a broker sees it: neighbours in place of links, spread over the ring."""
    gauges = broker_gauges(node, clients)
    known = list(node.neighbours.known.values())
    return Snapshot(
        key=node.key,
        name=node.name,
        cluster=node.cluster,
        version=node.version,
        uptime_s=trio.current_time() - node.started_at,
        round=0,
        round_s=1.0,
        position=0.0,
        arc_start=0.0,
        load=0.0,
        subscriptions=gauges.subscriptions,
        clients=clients,
        routing_entries=gauges.routing_entries,
        stored_events=gauges.stored_events,
        rates=Rates(),
        queues=Queues(frames=gauges.queued_frames, bytes=gauges.queued_bytes),
        dropped=node.counters.dropped,
        known_peers=len(known),
        peers=tuple(_view(one, (i + 1) / (len(known) + 1)) for i, one in enumerate(known)),
        troubles=node.standing.troubles(),
        role=BROKER,
        members=gauges.members,
        changes=node.cluster_members.recent(),
        cluster_name=node.cluster_name,
    )


def _view(one: Neighbour, position: float) -> PeerView:
    connection = one.connection
    return PeerView(
        key=one.key,
        name=one.label,
        position=position,
        links=("neighbour",),
        connected=connection is not None,
        round_trip_s=None if connection is None else connection.stats.round_trip_s,
        queued_bytes=one.waiting_bytes + (0 if connection is None else connection.queued_bytes),
    )


def _queued_bytes(node: BrokerNode) -> int:
    waiting = sum(one.waiting_bytes for one in node.neighbours.known.values())
    return waiting + sum(connection.queued_bytes for connection in node.pool)
