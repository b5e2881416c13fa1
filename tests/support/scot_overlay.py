"""SCOT brokers in memory: first-in first-out links, and a seeded order in which they deliver."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sized

from attrs import frozen

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Deliver, Effect, Refuse, Send
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.scot import Factor, Scot, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot.memory import messages as m
from gossamer.protocol.content.filters import parse
from support.plain_index import PlainIndex

MANY = 20_000
"""More steps than anything here takes to settle."""

Way = tuple[str, ...]
"""Names of the brokers that a copy of a notification went through."""


@frozen
class Sent:
    one: str
    other: str
    message: m.BetweenBrokers


@frozen
class Delivery:
    """A notification as a client got it, and the brokers that it went through."""

    client: str
    id: Id
    way: Way


class ScotOverlay:
    """All brokers of a SCOT, named by their labels, with clients at any of them.

    What happened is kept in order, and the load of each output queue as it was reported.
    """

    def __init__(self, scot: Scot, settings: str | ScotSettings, seed: int = 0) -> None:
        if isinstance(settings, str):
            settings = ScotSettings(routing=settings)
        self.scot = scot
        self.brokers = {
            str(label): ScotBroker(str(label), scot.position(label), settings, new_index=PlainIndex)
            for label in scot.brokers
        }
        self.sent: list[Sent] = []
        self.deliveries: list[Delivery] = []
        self.refusals: list[Refuse] = []
        self.loads: dict[tuple[str, str], int] = {}
        self.home: dict[str, str] = {}
        self._random = random.Random(seed)
        self._broken: set[tuple[str, str]] = set()
        self._queues: dict[tuple[str, str], deque[tuple[m.BetweenBrokers, Way]]] = {}
        for one, other in scot.links():
            for a, b in ((one, other), (other, one)):
                self._queues[str(a), str(b)] = deque()
                self.tell(str(a), None, m.NeighbourUp(str(b), b))

    def tell(self, name: str, source: str | None, message: m.Message) -> list[Effect]:
        hop = None if source is None else client(source)
        effects = self.brokers[name].handle(0, hop, message)
        self._carry_out(name, effects, ())
        return effects

    def subscribe(self, name: str, broker: str, text: str) -> None:
        self._attach(name, broker)
        self.tell(broker, name, messages.Subscribe(text, parse(text)))

    def unsubscribe(self, name: str, text: str) -> None:
        self.tell(self.home[name], name, messages.Unsubscribe(text))

    def publish(self, broker: str, **values: object) -> None:
        publisher = f"publisher at {broker}"
        self._attach(publisher, broker)
        self.tell(broker, publisher, messages.Publish(values))

    def _attach(self, name: str, broker: str) -> None:
        if name not in self.home:
            self.home[name] = broker
            self.tell(broker, name, messages.Attach())

    def subscribe_and_settle(self, name: str, broker: str, text: str = "present(x)") -> None:
        self.subscribe(name, broker, text)
        self.settle()

    def publish_and_settle(self, broker: str, **values: object) -> None:
        self.publish(broker, **values)
        self.settle()

    def report(self, one: str, other: str, length: int) -> None:
        """Let the host report an output queue where as much left as entered."""
        self.loads[one, other] = length
        self.tell(one, None, m.WindowEnded((m.QueueReport(other, length, 5, 5),)))

    def break_link(self, one: str, other: str) -> None:
        """Let a link work no more; both ends are told. Nothing is under way on it."""
        for name, end in ((one, other), (other, one)):
            assert not self._queues[name, end]
            self._broken.add((name, end))
            self.tell(name, None, messages.NeighbourDown(end))

    def mend_link(self, one: str, other: str) -> None:
        for name, end in ((one, other), (other, one)):
            self._broken.discard((name, end))
            self.tell(name, None, m.NeighbourUp(end, self.brokers[end].position.label))

    def restart(self, name: str, settings: ScotSettings) -> None:
        """Let a broker go on from its dump with another covering; nothing is under way."""
        ends = [other for one, other in self._queues if one == name]
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

    def settle(self, at_most: int = MANY) -> None:
        """Deliver what is under way, one at a time from links that are drawn, until nothing is,
        or ``at_most`` messages are delivered."""
        steps = 0
        while busy := sorted(ends for ends, queue in self._queues.items() if queue):
            if steps == at_most < MANY:
                return
            steps += 1
            assert steps < MANY, "messages go round in circles"
            one, other = self._random.choice(busy)
            message, way = self._queues[one, other].popleft()
            effects = self.brokers[other].handle(0, neighbour(one), message)
            self._carry_out(other, effects, way)

    def waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    def notifications(self) -> list[tuple[str, str]]:
        kinds = m.Notification | m.BidNotification
        return [(sent.one, sent.other) for sent in self.sent if isinstance(sent.message, kinds)]

    def tables(self) -> dict[str, Sized]:
        return {name: broker.table() for name, broker in self.brokers.items()}

    def total(self, counter: str) -> int:
        return sum(getattr(broker.counters, counter) for broker in self.brokers.values())

    def _carry_out(self, name: str, effects: list[Effect], way: Way) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    self.sent.append(Sent(name, to, message))
                    if (name, to) in self._broken:
                        continue
                    self._queues[name, to].append((message, (*way, name)))
                case Deliver(to, notification):
                    self.deliveries.append(Delivery(to, notification.id, (*way, name)))
                case Refuse():
                    self.refusals.append(effect)


def random_tree(regions: int, draw: random.Random) -> Factor:
    edges = [(f"r{draw.randrange(i)}", f"r{i}") for i in range(1, regions)]
    return Factor.of([f"r{i}" for i in range(regions)], edges)
