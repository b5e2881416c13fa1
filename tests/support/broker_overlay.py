"""Brokers in memory: first-in first-out links, and a seeded order in which they deliver; trees."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from gossamer.protocol.brokers.core import effects as e
from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.broker import NewIndex
from gossamer.protocol.brokers.core.messages import Hop, Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.messages import Frame, Message, Publication
from gossamer.protocol.content.filters import parse
from support.plain_index import PlainIndex

TICK = 1000
"""Microseconds between two steps."""
MANY = 200_000
"""More steps than anything here takes to settle."""


BrokerT = TypeVar("BrokerT")


class BrokerNetwork(Generic[BrokerT]):
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.now = 0
        self.brokers: dict[str, BrokerT] = {}
        self.home: dict[str, str] = {}  # of clients
        self.refusals: list[e.Refuse] = []
        self.queues: dict[tuple[str, str], deque[Any]] = {}

    def tell(self, broker: str, source: Hop | str | None, message: Any) -> list[e.Effect]:
        """Let a broker handle what a client, a neighbour or its host says."""
        if isinstance(source, str):
            source = neighbour(source) if source in self.brokers else client(source)
        told: Any = self.brokers[broker]
        effects: list[e.Effect] = told.handle(self.now, source, message)
        for effect in effects:
            self.carry_out(broker, effect)
        return effects

    def carry_out(self, broker: str, effect: e.Effect) -> None:
        match effect:
            case e.Send(to, message):
                self.send(broker, to, message)
            case e.Refuse():
                self.refusals.append(effect)

    def send(self, one: str, other: str, message: Any) -> None:
        self.queues[one, other].append(message)

    def deliver(self, one: str, other: str, message: Any) -> None:
        self.tell(other, neighbour(one), message)

    def waiting(self) -> int:
        return sum(map(len, self.queues.values()))

    def step(self) -> bool:
        """Deliver what comes first on a link that is drawn; whether there was anything."""
        busy = sorted(ends for ends, queue in self.queues.items() if queue)
        if busy:
            one, other = self.draw.choice(busy)
            self.deliver(one, other, self.queues[one, other].popleft())
        return bool(busy)

    def settle(self) -> None:
        for _ in range(MANY):
            if not self.step():
                return
        raise AssertionError("messages go round in circles")

    def total(self, counter: str) -> Any:
        brokers: Any = self.brokers.values()
        values = [getattr(broker.counters, counter) for broker in brokers]
        return sum(sum(one.values()) if isinstance(one, Mapping) else one for one in values)


class ClientNetwork(BrokerNetwork[BrokerT]):
    """Clients attach when they first ask for something, and label what they want by its text."""

    def attach(self, name: str, broker: str) -> None:
        if name not in self.home:
            self.home[name] = broker
            self.tell(broker, name, messages.Attach())

    def subscribe(self, name: str, broker: str, text: str) -> None:
        self.attach(name, broker)
        self.tell(broker, name, messages.Subscribe(text, parse(text)))

    def unsubscribe(self, name: str, text: str) -> None:
        self.tell(self.home[name], name, messages.Unsubscribe(text))

    def publish(self, broker: str, **values: object) -> Id:
        publisher = f"publisher at {broker}"
        self.attach(publisher, broker)
        told: Any = self.brokers[broker]
        id_: Id = told.next_id
        self.tell(broker, publisher, messages.Publish(values))
        return id_


class Overlay(BrokerNetwork[TreeBroker]):
    """Brokers of a tree, and clients.

    Attributes:
        deliveries: client, publication, labels.
        arrivals: of publications at brokers: from, to, and whether it went on from there.
    """

    def __init__(
        self,
        edges: Iterable[tuple[str, str]],
        settings: TreeSettings,
        seed: int = 0,
        new_index: NewIndex = PlainIndex,
        each: Mapping[str, TreeSettings] | None = None,
    ) -> None:
        super().__init__(random.Random(seed))
        self._settings = settings
        self._each = dict(each or {})
        self.new_index = new_index
        self.deliveries: list[tuple[str, e.Published, tuple[str, ...]]] = []
        self.moved: dict[str, e.Moved] = {}
        self.arrivals: list[tuple[Publication, str, str, bool]] = []
        self._last: dict[tuple[str, str], Frame] = {}
        self._timers: list[tuple[int, int, str, messages.TimerFired]] = []
        self._ties = itertools.count()
        edges = list(edges)
        for name in sorted({name for edge in edges for name in edge}):
            self.brokers[name] = TreeBroker(name, self.settings_of(name), new_index=new_index)
        for one, other in edges:
            self.connect(one, other)
        self.settle()

    def tell(self, broker: str, source: Hop | str | None, message: Any) -> list[e.Effect]:
        self.now += TICK
        return super().tell(broker, source, message)

    def carry_out(self, broker: str, effect: e.Effect) -> None:
        super().carry_out(broker, effect)
        match effect:
            case e.Deliver(name, publication, labels):
                self.deliveries.append((name, publication, labels))
            case e.Moved(name):
                self.moved[name] = effect
            case e.SetTimer(timer, token, at):
                fired = messages.TimerFired(timer, token)
                self._timers.append((at, next(self._ties), broker, fired))

    def settings_of(self, name: str) -> TreeSettings:
        return self._each.get(name, self._settings)

    def connect(self, one: str, other: str) -> None:
        self.queues |= {(one, other): deque(), (other, one): deque()}
        self.restore(one, other)

    def attach(self, name: str, broker: str) -> None:
        self.home[name] = broker
        self.tell(broker, client(name), messages.Attach())

    def ask(self, name: str, message: Message) -> list[e.Effect]:
        return self.tell(self.home[name], client(name), message)

    def ask_and_settle(self, name: str, *wanted: Message) -> None:
        for message in wanted:
            self.ask(name, message)
        self.settle()

    def subscribe(self, **wanted: str) -> None:
        """Let clients subscribe, each to a filter labelled s, and all that follows happen."""
        for name, text in wanted.items():
            self.ask(name, messages.Subscribe("s", parse(text)))
        self.settle()

    def publish(self, *values: int) -> None:
        """Let the client named publisher publish values of x, and all that follows happen."""
        self.ask_and_settle("publisher", *(messages.Publish({"x": value}) for value in values))

    def published(self) -> list[object]:
        return [publication.values["x"] for _, publication, _ in self.deliveries]

    def fire_timers(self) -> None:
        due, self._timers = sorted(self._timers), []
        for at, _, broker, fired in due:
            self.now = max(self.now, at)
            self.tell(broker, None, fired)

    def repeat(self) -> None:
        if self._last:
            ends = self.draw.choice(sorted(self._last))
            self.tell(ends[1], neighbour(ends[0]), self._last[ends])

    def interrupt(self, one: str, other: str) -> None:
        for ends in ((one, other), (other, one)):
            self.queues[ends].clear()
            self.tell(ends[0], None, messages.NeighbourDown(ends[1]))

    def restore(self, one: str, other: str) -> None:
        self.tell(one, None, messages.NeighbourUp(other))
        self.tell(other, None, messages.NeighbourUp(one))

    def restart(self, name: str, settings: TreeSettings | None = None) -> None:
        """Kill a broker and load it from its dump; what is under way at its links is lost. With
        ``settings`` it goes on with those, and covers anew."""
        ends = sorted(ends for ends in self.queues if name == ends[0])
        for one, other in ends:
            self.queues[one, other].clear()
            self.queues[other, one].clear()
            self.tell(other, None, messages.NeighbourDown(one))
        if settings is not None:
            self._each[name] = settings
        self.reload(name)
        if settings is not None:
            self.brokers[name].cover_anew(self.now)
        self._timers = [timer for timer in self._timers if timer[2] != name]
        self.tell(name, None, messages.Restarted())
        for one, other in ends:
            self.restore(one, other)

    def reload(self, name: str) -> None:
        data: Any = self.brokers[name].dump()
        self.brokers[name] = TreeBroker.load(data, self.settings_of(name), new_index=self.new_index)

    def deliver(self, one: str, other: str, message: Frame) -> None:
        effects = self.tell(other, neighbour(one), message)
        self._last[one, other] = message
        if isinstance(message.message, Publication):
            onward = any(
                isinstance(effect, e.Deliver)
                or (isinstance(effect, e.Send) and isinstance(effect.message.message, Publication))
                for effect in effects
            )
            self.arrivals.append((message.message, one, other, onward))


def with_clients(
    edges: Iterable[tuple[str, str]], clients: Mapping[str, str], **settings: Any
) -> Overlay:
    """Brokers with clients attached, of whom the one named publisher may publish any x."""
    overlay = Overlay(edges, TreeSettings(**settings))
    for name, broker in clients.items():
        overlay.attach(name, broker)
    overlay.ask_and_settle("publisher", messages.Advertise("a", parse("present(x)")))
    return overlay


def row(names: str, wanted: str = "present(x)", **settings: Any) -> Overlay:
    """Brokers in a row, a publisher at the first, and at the last a subscriber."""
    ends = {"publisher": names[0], "subscriber": names[-1]}
    overlay = with_clients(path(*names), ends, **settings)
    overlay.subscribe(subscriber=wanted)
    return overlay


def path(*names: str) -> list[tuple[str, str]]:
    return list(itertools.pairwise(names))


def random_tree(size: int, seed: int) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    return [(f"B{draw.randrange(node)}", f"B{node}") for node in range(1, size)]
