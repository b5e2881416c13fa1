"""The burst scenario of the SCOT paper (Sec. 7.3, stability analysis), at any size.

Subscribers register; then publishers publish at a steady rate, and one with a high rate (the HRP)
joins them, whose subscribers are in all clusters. The run ends when every notification is received.
"""

from __future__ import annotations

import random
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.broker.identifiers import Hop, Id
from gossamer.protocol.broker.index import NewIndex
from gossamer.protocol.broker.messages import Attach, Publish, Subscribe
from gossamer.protocol.content.filters import parse
from gossamer.protocol.scot import Scot, ScotSettings
from gossamer.protocol.scot.effects import Deliver, Effect, Refuse, Send
from gossamer.protocol.scot.messages import (
    BetweenBrokers,
    BidSubscription,
    Bypass,
    Detour,
    Message,
    QueueReport,
    Subscription,
)
from gossamer.sim.errors import SimulationError
from gossamer.sim.scot.network import Links, ScotNetwork, ServiceTimes
from gossamer.sim.scot.remembering import RememberingIndex

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
_HRP_TOPIC: Final = -1


@attrs.frozen(kw_only=True)
class Burst:
    """What is to happen; all times are microseconds.

    Attributes:
        scot, settings, links, service: the overlay and its brokers.
        subscribers: clients with one subscription each, to a random topic.
        topics: a subscription matches one of these; 50 give the paper's selectivity of 2 %.
        publishers: clients that publish to random topics.
        notifications, per_minute: of each publisher.
        burst_notifications, burst_per_minute: of the HRP.
        burst_subscribers: in each cluster, at brokers other than that of the HRP.
        seed: of who is where and publishes what.
    """

    scot: Scot
    settings: ScotSettings
    links: Links = attrs.field(factory=Links)
    service: ServiceTimes = attrs.field(factory=ServiceTimes)
    subscribers: int = 500
    topics: int = 50
    publishers: int = 20
    notifications: int = 20
    per_minute: int = 60
    burst_notifications: int = 2_000
    burst_per_minute: int = 100_000
    burst_subscribers: int = 2
    seed: int = 1


@attrs.frozen(eq=False)
class BurstResult:
    """What happened; times are microseconds.

    Attributes:
        subscription_delays: of each subscription, until the last broker had it.
        subscription_hops: of each subscription and broker, how far the broker is in its tree.
        subscription_messages, subscription_duplicates: between brokers, and how many of them were
            dropped.
        published, received: of each delivery, in order of receipt.
        burst: of each delivery, whether the HRP published it.
        inter_messages, intra_messages: notifications sent between and within clusters.
        matchings: how often a broker matched a notification with its table.
        cases: notifications by case of Algorithm 4.
        windows: time, longest output queue and messages in all of them, at the end of each window.
        started: when the first publisher came, after all subscriptions had registered.
        ended: when the last notification was received.
    """

    subscription_delays: npt.NDArray[np.int64]
    subscription_hops: npt.NDArray[np.int64]
    subscription_messages: int
    subscription_duplicates: int
    published: npt.NDArray[np.int64]
    received: npt.NDArray[np.int64]
    burst: npt.NDArray[np.bool_]
    inter_messages: int
    intra_messages: int
    matchings: int
    cases: dict[int, int]
    windows: npt.NDArray[np.int64]
    started: int
    ended: int

    @property
    def delays(self) -> npt.NDArray[np.int64]:
        """From publication to receipt, of each delivery."""
        return self.received - self.published

    @property
    def messages(self) -> int:
        """Notifications sent between brokers."""
        return self.inter_messages + self.intra_messages


@attrs.define(eq=False)
class _Observer:
    """Writes down what a run needs."""

    clusters: dict[str, int]
    subscribed: dict[Id, int] = attrs.field(factory=dict)
    reached: dict[Id, int] = attrs.field(factory=dict)
    hops: dict[tuple[Id, str], int] = attrs.field(factory=dict)
    published: dict[Id, tuple[int, bool]] = attrs.field(factory=dict)
    deliveries: list[tuple[Id, int]] = attrs.field(factory=list)
    inter: int = 0
    intra: int = 0
    windows: list[tuple[int, int, int]] = attrs.field(factory=list)

    def handled(
        self,
        now: int,
        arrived: int,
        broker: str,
        source: Hop,
        message: Message,
        effects: list[Effect],
    ) -> None:
        """See who has a subscription, and count the copies of notifications."""
        if isinstance(message, Subscription | BidSubscription):
            if (message.id, broker) not in self.hops:
                self.reached[message.id] = now
                self.hops[message.id, broker] = self.hops[message.id, source.name] + 1
            return
        for effect in effects:
            if isinstance(effect, Send):
                sent = effect.message
                if isinstance(sent, Subscription | BidSubscription):
                    self.subscribed[sent.id] = now
                    self.hops[sent.id, broker] = 0
                else:
                    self._count(broker, effect.neighbour)
                    self._enter(arrived, message, _id_of(sent))
            elif isinstance(effect, Deliver):
                self._enter(arrived, message, effect.notification.id)

    def _count(self, one: str, other: str) -> None:
        if self.clusters[one] == self.clusters[other]:
            self.intra += 1
        else:
            self.inter += 1

    def _enter(self, arrived: int, message: Message, id_: Id) -> None:
        if isinstance(message, Publish):
            self.published[id_] = arrived, message.values["topic"] == _HRP_TOPIC

    def delivered(self, now: int, effect: Deliver) -> None:
        """Write a delivery down."""
        self.deliveries.append((effect.notification.id, now))

    def refused(self, now: int, broker: str, effect: Refuse) -> None:
        """A scenario in which something is refused is no result."""
        raise SimulationError(f"broker {broker} at {now} µs: {effect.error}")

    def window_ended(self, now: int, queues: dict[tuple[str, str], QueueReport]) -> None:
        """Write down how long queues are."""
        lengths = [report.length for report in queues.values()]
        self.windows.append((now, max(lengths), sum(lengths)))


def _id_of(message: BetweenBrokers) -> Id:
    return message.notification.id if isinstance(message, Detour | Bypass) else message.id


def run_burst(burst: Burst, new_index: NewIndex = RememberingIndex) -> BurstResult:
    """Run a burst to its end; raises `SimulationError` if a broker refuses anything."""
    observer = _Observer({str(label): label.cluster for label in burst.scot.brokers})
    network = ScotNetwork(
        burst.scot, burst.settings, burst.links, burst.service, observer, new_index
    )
    draw = random.Random(burst.seed)
    hrp = str(draw.choice(burst.scot.brokers))
    _subscribe(burst, network, draw, hrp)
    network.run_until_idle()
    before = _sent(network)
    duplicates = sum(broker.counters.duplicates for broker in network.brokers.values())
    started = network.now + SECOND
    _publish(burst, network, draw, hrp, started)
    observer.windows.clear()
    network.run_until_idle()
    return _result(observer, network, before, duplicates, started)


def _subscribe(burst: Burst, network: ScotNetwork, draw: random.Random, hrp: str) -> None:
    names = sorted(network.brokers)
    for i in range(burst.subscribers):
        _add_client(network, f"S{i}", draw.choice(names), draw.randrange(burst.topics))
    for cluster in burst.scot.clusters:
        others = [str(label) for label in burst.scot.cluster(cluster) if str(label) != hrp]
        for i in range(burst.burst_subscribers):
            _add_client(network, f"H{cluster}.{i}", draw.choice(others), _HRP_TOPIC)


def _add_client(network: ScotNetwork, name: str, broker: str, topic: int) -> None:
    network.send(0, name, broker, Attach())
    network.send(0, name, broker, Subscribe("topic", parse(f"topic == {topic}")))


def _publish(burst: Burst, network: ScotNetwork, draw: random.Random, hrp: str, start: int) -> None:
    names = sorted(network.brokers)
    for i in range(burst.publishers):
        broker, name = draw.choice(names), f"P{i}"
        network.send(start, name, broker, Attach())
        first = start + draw.randrange(5 * SECOND)  # "in the first 5 seconds", Sec. 7.3
        for j in range(burst.notifications):
            at = first + j * MINUTE // burst.per_minute
            values = {"topic": draw.randrange(burst.topics)}
            network.send(at, name, broker, Publish(values))
    network.send(start, "HRP", hrp, Attach())
    for j in range(burst.burst_notifications):
        at = start + 5 * SECOND + j * MINUTE // burst.burst_per_minute
        network.send(at, "HRP", hrp, Publish({"topic": _HRP_TOPIC}))


def _sent(network: ScotNetwork) -> int:
    return sum(sum(broker.counters.sent.values()) for broker in network.brokers.values())


def _result(
    observer: _Observer, network: ScotNetwork, before: int, duplicates: int, started: int
) -> BurstResult:
    published = [observer.published[id_] for id_, _ in observer.deliveries]
    cases: dict[int, int] = {}
    for broker in network.brokers.values():
        for case, number in broker.counters.cases.items():
            cases[case] = cases.get(case, 0) + number
    return BurstResult(
        subscription_delays=np.array(
            [at - observer.subscribed[id_] for id_, at in observer.reached.items()], np.int64
        ),
        subscription_hops=np.array([hops for hops in observer.hops.values() if hops], np.int64),
        subscription_messages=before,
        subscription_duplicates=duplicates,
        published=np.array([at for at, _ in published], np.int64),
        received=np.array([at for _, at in observer.deliveries], np.int64),
        burst=np.array([burst for _, burst in published], np.bool_),
        inter_messages=observer.inter,
        intra_messages=observer.intra,
        matchings=sum(broker.counters.matched for broker in network.brokers.values()),
        cases=dict(sorted(cases.items())),
        windows=np.array(observer.windows, np.int64).reshape(-1, 3),
        started=started,
        ended=max((at for _, at in observer.deliveries), default=0),
    )
