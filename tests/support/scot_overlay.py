"""SCOT brokers in memory, together or one at a time."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sized
from typing import Any

from attrs import frozen

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Deliver, Effect, Refuse, Send, Settled
from gossamer.protocol.brokers.core.messages import Id, client, neighbour
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.topology import ClusterBitVector
from gossamer.protocol.content.filters import parse
from support.broker_overlay import ClientNetwork
from support.plain_index import PlainIndex

Way = tuple[str, ...]
"""Names of the brokers that a copy of a notification went through."""


@frozen
class Sent:
    one: str
    other: str
    message: m.BetweenBrokers


@frozen
class Delivery:
    client: str
    id: Id
    way: Way


class ScotOverlay(ClientNetwork[ScotBroker]):
    """All brokers of a SCOT, named by their labels, with clients at any of them.

    What happened is kept in order, and the load of each output queue as it was reported.
    """

    def __init__(self, scot: Scot, settings: str | ScotSettings, seed: int = 0) -> None:
        super().__init__(random.Random(seed))
        if isinstance(settings, str):
            settings = ScotSettings(routing=settings)
        self.scot = scot
        for label in scot.brokers:
            self.brokers[str(label)] = new_broker(label, scot, settings)
        self.sent: list[Sent] = []
        self.deliveries: list[Delivery] = []
        self.loads: dict[tuple[str, str], int] = {}
        self._way: Way = ()  # of what is handled now
        self._broken: set[tuple[str, str]] = set()
        for one, other in scot.links():
            for a, b in ((one, other), (other, one)):
                self.queues[str(a), str(b)] = deque()
                self.tell(str(a), None, m.NeighbourUp(str(b), b))

    def carry_out(self, broker: str, effect: Effect) -> None:
        super().carry_out(broker, effect)
        if isinstance(effect, Deliver):
            way = (*self._way, broker)
            self.deliveries.append(Delivery(effect.client, effect.publication.id, way))

    def send(self, one: str, other: str, message: m.BetweenBrokers) -> None:
        self.sent.append(Sent(one, other, message))
        if (one, other) not in self._broken:
            self.queues[one, other].append((message, (*self._way, one)))

    def deliver(self, one: str, other: str, message: tuple[m.BetweenBrokers, Way]) -> None:
        what, self._way = message
        super().deliver(one, other, what)
        self._way = ()

    def subscribe_and_settle(self, name: str, broker: str, text: str = "present(x)") -> None:
        self.subscribe(name, broker, text)
        self.settle()

    def publish_and_settle(self, broker: str, **values: object) -> None:
        self.publish(broker, **values)
        self.settle()

    def report(self, one: str, other: str, length: int) -> None:
        self.loads[one, other] = length
        self.tell(one, None, m.WindowEnded((m.QueueReport(other, length, 5, 5),)))

    def break_link(self, one: str, other: str) -> None:
        for name, end in ((one, other), (other, one)):
            assert not self.queues[name, end]
            self._broken.add((name, end))
            self.tell(name, None, messages.NeighbourDown(end))

    def mend_link(self, one: str, other: str) -> None:
        for name, end in ((one, other), (other, one)):
            self._broken.discard((name, end))
            self.tell(name, None, m.NeighbourUp(end, self.brokers[end].position.label))

    def restart(self, name: str, settings: ScotSettings) -> None:
        """Let a broker go on from its dump with another covering; nothing is under way."""
        ends = [other for one, other in self.queues if one == name]
        for other in ends:
            self.break_link(name, other)
        data, position = self.brokers[name].dump(), self.brokers[name].position
        self.brokers[name] = ScotBroker.load(data, position, settings, new_index=PlainIndex)
        self.brokers[name].uncover()
        self.tell(name, None, messages.Restarted())
        for other in ends:
            for one, end in ((name, other), (other, name)):
                self._broken.discard((one, end))
                label = self.brokers[end].position.label
                self.tell(one, None, m.NeighbourUp(end, label, synchronise=True))

    def steps(self, at_most: int) -> None:
        for _ in range(at_most):
            self.step()

    def notifications(self) -> list[tuple[str, str]]:
        kinds = m.Notification | m.BidNotification
        return [(sent.one, sent.other) for sent in self.sent if isinstance(sent.message, kinds)]

    def tables(self) -> dict[str, Sized]:
        return {name: broker.table() for name, broker in self.brokers.items()}


def random_tree(regions: int, draw: random.Random) -> Factor:
    edges = [(f"r{draw.randrange(i)}", f"r{i}") for i in range(1, regions)]
    return Factor.of([f"r{i}" for i in range(regions)], edges)


def new_broker(place: BrokerLabel, scot: Scot, settings: ScotSettings, **more: Any) -> ScotBroker:
    return ScotBroker(str(place), scot.position(place), settings, new_index=PlainIndex, **more)


# Brokers of a small SCOT that take over each other's clients, asked message by message.


HOME, BACKUP, THIRD, BESIDE = "B(a,0)", "B(a,1)", "B(a,2)", "B(b,0)"
ADA = client("ada")
SCOT = Scot(Factor.path("ab"), Factor.complete(3))
CHAIN = Scot(Factor.path("abc"), Factor.complete(3))
SETTINGS = ScotSettings(routing="static", around_failures=True, take_over=True)
WANTED = parse("present(x)")


def a_broker(cluster: int = 0) -> ScotBroker:
    broker = without_links("a", cluster)
    up(broker, f"B(b,{cluster})", *(f"B(a,{other})" for other in range(3) if other != cluster))
    return broker


def without_links(region: str, cluster: int, scot: Scot = SCOT, **more: Any) -> ScotBroker:
    return new_broker(BrokerLabel(region, cluster), scot, **{"settings": SETTINGS, **more})


def subscription(number: int = 1, broker: str = HOME, cluster: int = 0) -> m.Subscription:
    return m.Subscription(Id(broker, number), WANTED, ClusterBitVector.of(cluster))


def down(broker: ScotBroker, *names: str) -> list[Effect]:
    """Let links to neighbours work no more; returns what follows from the last."""
    return [broker.handle(0, None, messages.NeighbourDown(name)) for name in names][-1]


def take(broker: ScotBroker, source: str, *received: m.Message) -> list[Effect]:
    """Let a broker take messages of a neighbour; returns what follows from the last."""
    return [broker.handle(0, neighbour(source), message) for message in received][-1]


def with_ada(broker: ScotBroker) -> ScotBroker:
    broker.handle(0, ADA, messages.Attach())
    acknowledge(broker, broker.handle(0, ADA, messages.Subscribe("s", WANTED)))
    return broker


def numbered(effects: list[Effect]) -> dict[tuple[str, str], int]:
    return {
        (one.neighbour, type(one.message.message).__name__): one.message.number
        for one in effects
        if isinstance(one, Send) and isinstance(one.message, m.Numbered)
    }


def acknowledge(broker: ScotBroker, effects: list[Effect], *, safe: bool = True) -> list[Effect]:
    found: list[Effect] = []
    for (name, _), number in numbered(effects).items():
        found += take(broker, name, m.Acknowledge(number, safe))
    return found


def a_notification(number: int = 1) -> m.Notification:
    return m.Notification(Id("far", number), {"x": number})


def a_backup() -> ScotBroker:
    backup = a_broker(1)
    owed = m.UnacknowledgedDelivery("ada", a_notification(1), ("s",))
    promised = m.Promised("ada", "s", Id(HOME, 1), WANTED)
    take(backup, HOME, m.Numbered(1, promised), m.Numbered(2, owed))
    return backup


def handed_back(effects: list[Effect]) -> m.Numbered:
    sent = (one.message for one in effects if isinstance(one, Send))
    (handed,) = (message for message in sent if isinstance(message, m.Numbered))
    return handed


def refusal(effects: list[Effect]) -> Exception:
    (refused,) = effects
    assert isinstance(refused, Refuse)
    return refused.error


def sent_on(effects: list[Effect]) -> list[tuple[str, object]]:
    return [
        (one.neighbour, one.message.message if isinstance(one.message, m.Numbered) else one.message)
        for one in effects
        if isinstance(one, Send)
    ]


def up(broker: ScotBroker, *names: str) -> list[Effect]:
    """Let links to neighbours work; returns what follows from the last."""
    labels = {name: BrokerLabel(name[2], int(name[4])) for name in names}
    ups = (m.NeighbourUp(name, label, synchronise=True) for name, label in labels.items())
    return [broker.handle(0, None, one) for one in ups][-1]


def delivered(effects: list[Effect]) -> list[int]:
    return [one.publication.id.number for one in effects if isinstance(one, Deliver)]


def whether_safe(effects: list[Effect]) -> list[bool]:
    return [one.safe for one in effects if isinstance(one, Settled)]
