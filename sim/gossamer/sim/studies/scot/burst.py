"""The experiments of the SCOT paper (Sec. 7.3) at any size: subscribers, publishers, and a burst.

Subscribers register; then publishers publish at a steady rate, and one with a high rate (the HRP)
may join them, whose subscribers are in all clusters. The run ends when every notification is
received.
"""

from __future__ import annotations

import random
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.brokers.core.effects import Effect, Send
from gossamer.protocol.brokers.core.messages import Attach, Hop, Id, Subscribe
from gossamer.protocol.brokers.scot import BrokerLabel, Scot, ScotSettings
from gossamer.protocol.brokers.scot.messages import BidSubscription, Message, Subscription
from gossamer.protocol.content.filters import Filter
from gossamer.sim.studies.scot.replay import Publications, replay
from gossamer.sim.studies.scot.replay_network import Links, ScotNetwork, ServiceTimes, Unobserved
from gossamer.sim.studies.scot.workloads import Topics, Workload

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
FIRST: Final = 5 * SECOND
"""Publishers begin "in the first 5 seconds" (Sec. 7.3); then the burst begins."""

Int64s = npt.NDArray[np.int64]


@attrs.frozen(kw_only=True)
class Burst:
    """What is to happen; all times are microseconds.

    Attributes:
        scot, settings, links, service: the overlay and its brokers.
        workload: what is published and subscribed to.
        subscribers: clients with one subscription each.
        subscribe_every: between two of them; 0: all at once.
        publishers: clients that publish anything.
        notifications, per_minute: of each publisher.
        burst_notifications, burst_per_minute: of the HRP; 0 notifications: there is none.
        burst_subscribers: in each cluster, at brokers other than that of the HRP.
        hrp: the broker of the HRP; drawn if None.
        seed: of who is where and publishes what.
    """

    scot: Scot
    settings: ScotSettings
    links: Links = attrs.field(factory=Links)
    service: ServiceTimes = attrs.field(factory=ServiceTimes)
    workload: Workload = attrs.field(factory=Topics)
    subscribers: int = 500
    subscribe_every: int = 0
    publishers: int = 20
    notifications: int = 20
    per_minute: int = 60
    burst_notifications: int = 2_000
    burst_per_minute: int = 100_000
    burst_subscribers: int = 2
    hrp: BrokerLabel | None = None
    seed: int = 1


@attrs.frozen(eq=False, kw_only=True)
class BurstResult:
    """What happened; times are microseconds.

    Attributes:
        subscription_delays: of each subscription, until the last broker had it.
        subscription_hops: of each subscription and broker, how far the broker is in its tree.
        longer_ways: how often that is farther than it could be.
        subscription_messages, subscription_duplicates: between brokers, and how many of them were
            dropped.
        kept_back: how often a broker did not pass a subscription on, as another covered it.
        table_entries: of all brokers.
        published, received, clients, burst: a row for each broker that handed a notification to
            clients, in order of receipt: when it was published, when they got it, how many they
            are, and whether the HRP published it.
        inter_messages, intra_messages: notifications sent between and within clusters.
        matchings: how often a broker matched a notification with its table.
        detours: copies that went around an overloaded link within the cluster.
        cases: notifications by case of Algorithm 4.
        windows: time, longest output queue, messages in all of them, and messages in those on the
            ways of the burst, at the end of each window.
        burst_links: links on the ways of the burst.
        started: when publishers began, after all subscriptions had registered.
        ended: when the last notification was received.
    """

    subscription_delays: Int64s
    subscription_hops: Int64s
    longer_ways: int
    subscription_messages: int
    subscription_duplicates: int
    kept_back: int
    table_entries: int
    published: Int64s
    received: Int64s
    clients: Int64s
    burst: npt.NDArray[np.bool_]
    inter_messages: int
    intra_messages: int
    matchings: int
    detours: int
    cases: dict[int, int]
    windows: Int64s
    burst_links: int
    started: int
    ended: int

    @property
    def delays(self) -> Int64s:
        """From publication to receipt, of each row."""
        return self.received - self.published

    @property
    def messages(self) -> int:
        """Notifications sent between brokers."""
        return self.inter_messages + self.intra_messages

    @property
    def deliveries(self) -> int:
        """Notifications handed to clients."""
        return int(self.clients.sum())

    def mean_delay(self, *, burst: bool | None = None) -> float:
        """Of all deliveries, or of those that the HRP published, or of the others; else NaN."""
        chosen = slice(None) if burst is None else self.burst == burst
        clients = self.clients[chosen]
        return float(np.average(self.delays[chosen], weights=clients)) if len(clients) else np.nan

    def share_below(self, delay: int) -> float:
        """Of all deliveries, those with less delay; NaN if there are none."""
        whole = self.deliveries
        return int(self.clients[self.delays < delay].sum()) / whole if whole else np.nan

    @property
    def burst_ended(self) -> int:
        """When the last notification of the HRP was received; when publishers began, if none."""
        return int(self.received[self.burst].max(initial=self.started))

    @property
    def mean_burst_queue(self) -> float:
        """Length of the output queues on the ways of the burst, while that lasted; NaN if none."""
        at = self.windows[:, 0]
        chosen = (at > self.started + FIRST) & (at <= self.burst_ended)
        queues = self.windows[chosen, 3]
        return float(queues.mean()) / self.burst_links if len(queues) else np.nan


@attrs.define(eq=False)
class _Observer(Unobserved):
    """Writes down how subscriptions get about."""

    subscribed: dict[Id, int] = attrs.field(factory=dict)
    reached: dict[Id, int] = attrs.field(factory=dict)
    hops: dict[tuple[Id, str], int] = attrs.field(factory=dict)

    def handled(
        self,
        now: int,
        arrived: int,  # noqa: ARG002
        broker: str,
        source: Hop,
        message: Message,
        effects: list[Effect],
    ) -> None:
        """See who has a subscription."""
        if isinstance(message, Subscription | BidSubscription):
            if (message.id, broker) not in self.hops:
                self.reached[message.id] = now
                self.hops[message.id, broker] = self.hops[message.id, source.name] + 1
            return
        for effect in effects:
            if isinstance(effect, Send) and isinstance(
                effect.message, Subscription | BidSubscription
            ):
                self.subscribed[effect.message.id] = now
                self.hops[effect.message.id, broker] = 0

    def longer_ways(self, scot: Scot) -> int:
        """How often a broker is farther from a host broker, in its tree, than it could be."""
        labels = {str(label): label for label in scot.brokers}
        shortest = {
            (one, other): scot.distance(labels[one], labels[other])
            for one in labels
            for other in labels
        }
        return sum(hops > shortest[id_.broker, name] for (id_, name), hops in self.hops.items())


@attrs.define(eq=False)
class _Run:
    """A burst under way: clients are placed, and publications drawn, by one generator."""

    burst: Burst
    network: ScotNetwork
    draw: random.Random
    hrp: str

    def subscribe(self) -> None:
        """Let subscribers register."""
        burst, draw = self.burst, self.draw
        names = sorted(self.network.brokers)
        for i in range(burst.subscribers):
            wanted = burst.workload.wanted(draw)
            self._add(i * burst.subscribe_every, f"S{i}", draw.choice(names), wanted)
        end = burst.subscribers * burst.subscribe_every
        for cluster in burst.scot.clusters if burst.burst_notifications else ():
            others = [str(label) for label in burst.scot.cluster(cluster)]
            others = [name for name in others if name != self.hrp] or others
            for i in range(burst.burst_subscribers):
                name = f"H{cluster}.{i}"
                self._add(end, name, draw.choice(others), burst.workload.burst_filter)

    def _add(self, at: int, name: str, broker: str, wanted: Filter) -> None:
        self.network.send(at, name, broker, Attach())
        self.network.send(at, name, broker, Subscribe("one", wanted))

    def publications(self, start: int) -> Publications:
        """What is published from ``start`` on; publishers are attached first."""
        burst, draw = self.burst, self.draw
        names = list(self.network.brokers)
        places = {name: place for place, name in enumerate(names)}
        contents = [*burst.workload.contents, burst.workload.burst_content]
        rows: list[tuple[int, int, int, int]] = []
        publishers: dict[str, str] = {}
        for i in range(burst.publishers):
            broker = draw.choice(names)
            publishers[broker] = f"P{i}"
            first = start + draw.randrange(FIRST)
            for j in range(burst.notifications):
                at = first + j * MINUTE // burst.per_minute
                rows.append((at, places[broker], draw.randrange(len(contents) - 1), 0))
        for j in range(burst.burst_notifications):
            at = start + FIRST + j * MINUTE // burst.burst_per_minute
            rows.append((at, places[self.hrp], len(contents) - 1, 1))
            publishers[self.hrp] = "HRP"
        for broker, name in publishers.items():
            self.network.send(self.network.now, name, broker, Attach())
        rows.sort(key=lambda row: row[0])
        table = np.array(rows, np.int64).reshape(-1, 4)
        return Publications(
            **{
                name: np.ascontiguousarray(table[:, place])
                for place, name in enumerate(("at", "broker", "content", "marked"))
            },
            contents=contents,
            publishers=publishers,
        )


def run_burst(burst: Burst) -> BurstResult:
    """Run a burst to its end; raises `SimulationError` if a broker refuses anything."""
    observer = _Observer()
    network = ScotNetwork(burst.scot, burst.settings, burst.links, burst.service, observer)
    draw = random.Random(burst.seed)
    drawn = draw.choice(burst.scot.brokers)
    run = _Run(burst, network, draw, hrp=str(burst.hrp or drawn))
    run.subscribe()
    network.run_until_idle()
    # As brokers counted while subscribers registered.
    brokers = list(network.brokers.values())
    messages = sum(sum(broker.counters.sent.values()) for broker in brokers)
    duplicates = sum(broker.counters.duplicates for broker in brokers)
    kept_back = sum(broker.counters.kept_back for broker in brokers)
    table_entries = sum(broker.table_size for broker in brokers)
    started = network.now + SECOND
    publications = run.publications(started)
    network.run_until_idle()
    found = replay(network, publications)
    return BurstResult(
        subscription_delays=np.array(
            [at - observer.subscribed[id_] for id_, at in observer.reached.items()], np.int64
        ),
        subscription_hops=np.array([hops for hops in observer.hops.values() if hops], np.int64),
        longer_ways=observer.longer_ways(burst.scot),
        subscription_messages=messages,
        subscription_duplicates=duplicates,
        kept_back=kept_back,
        table_entries=table_entries,
        published=publications.at[found.publication],
        received=found.received,
        clients=found.clients,
        burst=publications.marked[found.publication] == 1,
        inter_messages=found.inter,
        intra_messages=found.intra,
        matchings=found.matchings,
        detours=found.detours,
        cases=found.cases,
        windows=found.windows,
        burst_links=found.burst_links,
        started=started,
        ended=int(found.received.max(initial=0)),
    )
