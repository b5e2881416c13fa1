"""Brokers in memory: first-in first-out links, and a seeded order in which they deliver."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import (
    Deliver,
    Effect,
    Moved,
    Published,
    Refuse,
    Send,
    SetTimer,
)
from gossamer.protocol.brokers.core.identifiers import Hop, client, neighbour
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.memory.messages import Frame, Message, Publication
from gossamer.protocol.content.filters import parse
from support.plain_index import PlainIndex

TICK = 1000
"""Microseconds between two steps."""


class Overlay:
    """Brokers, links and clients.

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
        self._settings = settings
        self._each = dict(each or {})
        self.new_index = new_index
        self.now = 0
        self.deliveries: list[tuple[str, Published, tuple[str, ...]]] = []
        self.refusals: list[Refuse] = []
        self.moved: dict[str, Moved] = {}
        self.arrivals: list[tuple[Publication, str, str, bool]] = []
        self.home: dict[str, str] = {}
        self._random = random.Random(seed)
        self._links: dict[tuple[str, str], deque[Frame]] = {}
        self._last: dict[tuple[str, str], Frame] = {}
        self._timers: list[tuple[int, int, str, messages.TimerFired]] = []
        self._ties = itertools.count()
        edges = list(edges)
        names = sorted({name for edge in edges for name in edge})
        self.brokers = {
            name: TreeBroker(name, self.settings_of(name), new_index=new_index) for name in names
        }
        for one, other in edges:
            self.connect(one, other)
        self.settle()

    def tell(self, broker: str, source: Hop | None, message: Message) -> list[Effect]:
        self.now += TICK
        effects = self.brokers[broker].handle(self.now, source, message)
        for effect in effects:
            match effect:
                case Send(to, frame):
                    self._links[broker, to].append(frame)
                case Deliver(name, publication, labels):
                    self.deliveries.append((name, publication, labels))
                case Refuse():
                    self.refusals.append(effect)
                case Moved(name):
                    self.moved[name] = effect
                case SetTimer(timer, token, at):
                    fired = messages.TimerFired(timer, token)
                    self._timers.append((at, next(self._ties), broker, fired))
        return effects

    def settings_of(self, name: str) -> TreeSettings:
        return self._each.get(name, self._settings)

    def connect(self, one: str, other: str) -> None:
        self._links[one, other] = deque()
        self._links[other, one] = deque()
        self.restore(one, other)

    def attach(self, name: str, broker: str) -> None:
        self.home[name] = broker
        self.tell(broker, client(name), messages.Attach())

    def ask(self, name: str, message: Message) -> list[Effect]:
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

    def waiting(self) -> int:
        """Frames under way."""
        return sum(map(len, self._links.values()))

    def deliver_one(self) -> None:
        """Deliver the first frame of a link that is drawn."""
        busy = sorted(ends for ends, frames in self._links.items() if frames)
        one, other = self._random.choice(busy)
        self._deliver(one, other, self._links[one, other].popleft())

    def settle(self) -> None:
        while self.waiting():
            self.deliver_one()

    def fire_timers(self) -> None:
        """Let all timers that are set now come due, in order."""
        due, self._timers = sorted(self._timers), []
        for at, _, broker, fired in due:
            self.now = max(self.now, at)
            self.tell(broker, None, fired)

    def repeat(self) -> None:
        """Deliver a frame that was delivered last on some link once more."""
        if self._last:
            ends = self._random.choice(sorted(self._last))
            self.tell(ends[1], neighbour(ends[0]), self._last[ends])

    def interrupt(self, one: str, other: str) -> None:
        for ends in ((one, other), (other, one)):
            self._links[ends].clear()
            self.tell(ends[0], None, messages.NeighbourDown(ends[1]))

    def restore(self, one: str, other: str) -> None:
        self.tell(one, None, messages.NeighbourUp(other))
        self.tell(other, None, messages.NeighbourUp(one))

    def restart(self, name: str, settings: TreeSettings | None = None) -> None:
        """Kill a broker and load it from its dump; what is under way at its links is lost. With
        ``settings`` it goes on with those, and covers anew."""
        ends = sorted(ends for ends in self._links if name == ends[0])
        for one, other in ends:
            self._links[one, other].clear()
            self._links[other, one].clear()
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

    def total(self, counter: str) -> Any:
        values = [getattr(broker.counters, counter) for broker in self.brokers.values()]
        if isinstance(values[0], Mapping):
            return sum(sum(value.values()) for value in values)
        return sum(values)

    def _deliver(self, one: str, other: str, frame: Frame) -> None:
        effects = self.tell(other, neighbour(one), frame)
        self._last[one, other] = frame
        if isinstance(frame.message, Publication):
            onward = any(
                isinstance(effect, Deliver)
                or (isinstance(effect, Send) and isinstance(effect.message.message, Publication))
                for effect in effects
            )
            self.arrivals.append((frame.message, one, other, onward))


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
