"""A small overlay of tree brokers in memory, with a clock that moves only when it is told to.

Links are first in, first out, and take a fixed time; brokers take none. Nothing is drawn at random:
the same calls in the same order give the same deliveries.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.broker import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.effects import Deliver, Effect, Refuse, Send, SetTimer
from gossamer.protocol.brokers.core.messages import Hop, Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.kernel.errors import ConfigError

_MILLISECOND: Final = 1_000
_DEFAULTS: Final = TreeSettings(covering="incremental", retained_publications=1_000)


@attrs.frozen
class Delivery:
    """A publication that a client was handed.

    Attributes:
        id: of the publication, unique in the overlay.
        values: what was published, by attribute.
        labels: the client's subscriptions that match, by its own labels.
        at: when it was handed over, microseconds.
    """

    id: Id
    values: Mapping[str, object]
    labels: tuple[str, ...]
    at: int


class LocalClient:
    """A client of a broker in a `LocalOverlay`, which makes it (`attach`).

    What the broker refuses is raised as the `ProtocolError` that it refused with; nothing has
    changed then.

    Attributes:
        name: of the client.
        broker: the name of its broker.
    """

    def __init__(self, overlay: LocalOverlay, name: str, broker: str) -> None:
        self.name: Final = name
        self.broker: Final = broker
        self._overlay = overlay
        self._received: list[Delivery] = []
        self._labels = {"a": 0, "s": 0}
        self._ask(m.Attach())

    def advertise(self, wanted: str | Filter, label: str | None = None) -> str:
        """Announce what will be published; returns the label, a new one unless given.

        Raises:
            ExpressionError: the text is no filter.
        """
        label = self._label("a", label)
        self._ask(m.Advertise(label, _filter(wanted)))
        return label

    def unadvertise(self, label: str) -> None:
        """Take an advertisement back."""
        self._ask(m.Unadvertise(label))

    def subscribe(self, wanted: str | Filter, label: str | None = None) -> str:
        """Ask for what matches; returns the label, a new one unless given.

        Raises:
            ExpressionError: the text is no filter.
        """
        label = self._label("s", label)
        self._ask(m.Subscribe(label, _filter(wanted)))
        return label

    def unsubscribe(self, label: str) -> None:
        """Take a subscription back."""
        self._ask(m.Unsubscribe(label))

    def publish(self, values: Mapping[str, object]) -> Id:
        """Publish values that an advertisement of the client allows; returns the identifier."""
        given = self._ask(m.Publish(values))
        assert given is not None
        return given

    def detach(self) -> None:
        """Leave, and take back everything subscribed and advertised."""
        self._ask(m.Detach())
        self._overlay.forget(self)

    def take(self) -> list[Delivery]:
        """What was received since this was asked last, in order."""
        received, self._received = self._received, []
        return received

    def receive(self, delivery: Delivery) -> None:
        """Be handed a publication; the overlay calls this."""
        self._received.append(delivery)

    def _label(self, kind: str, label: str | None) -> str:
        if label is not None:
            return label
        self._labels[kind] += 1
        return f"{kind}{self._labels[kind]}"

    def _ask(self, message: m.FromAnyClient) -> Id | None:
        return self._overlay.tell(self.broker, client(self.name), message)


@attrs.define
class _Link:
    """One direction of a link: whether it works, and how often it was made to."""

    up: bool = True
    times_up: int = 0


class LocalOverlay:
    """Tree brokers in memory, linked to each other; clients attach to any of them.

    Attributes:
        brokers: by name.
        now: microseconds since the overlay was made.
    """

    def __init__(
        self,
        links: Iterable[tuple[str, str]],
        settings: TreeSettings = _DEFAULTS,
        *,
        brokers: Iterable[str] = (),
        latency: int = _MILLISECOND,
        new_index: NewIndex = SharedIndex,
    ) -> None:
        """An overlay whose links are up and whose brokers have seen nothing.

        Args:
            links: pairs of names of brokers, without cycles.
            settings: of all brokers; the default is that of broker nodes, and keeps publications
                for links that are interrupted.
            brokers: more of them, so that an overlay of one needs no link.
            latency: of every link, microseconds.
            new_index: of filters; `compiled_index` for large tables.

        Raises:
            ConfigError: a link closes a cycle, or the latency is below 0.
        """
        if latency < 0:
            raise ConfigError("latency", latency, "0 microseconds or more")
        pairs = list(links)
        names = sorted({*brokers, *(name for pair in pairs for name in pair)})
        _check_acyclic(names, pairs)
        self.now = 0
        self.brokers: Final = {
            name: TreeBroker(name, settings, new_index=new_index) for name in names
        }
        self._latency = latency
        self._links = {ends: _Link() for a, b in pairs for ends in ((a, b), (b, a))}
        self._clients: dict[tuple[str, str], LocalClient] = {}
        self._agenda: list[tuple[int, int, str, Hop | None, Any, int]] = []
        self._scheduled = 0
        self._under_way = 0
        for one, other in self._links:
            self.tell(one, None, m.NeighbourUp(other))
        self.settle()

    def attach(self, name: str, broker: str) -> LocalClient:
        """Attach a client that has nothing to a broker.

        Raises:
            ConfigError: there is no such broker, or it has a client of that name.
        """
        if broker not in self.brokers:
            raise ConfigError("broker", broker, f"one of {', '.join(self.brokers)}")
        if (broker, name) in self._clients:
            raise ConfigError("name", name, f"one that no client of broker {broker} has")
        attached = LocalClient(self, name, broker)
        self._clients[broker, name] = attached
        return attached

    def settle(self) -> None:
        """Let time pass until nothing is under way between brokers."""
        while self._under_way:
            self._next()

    def run(self, duration: int) -> None:
        """Let so many microseconds pass, with all that is due in them, timers included."""
        end = self.now + duration
        while self._agenda and self._agenda[0][0] <= end:
            self._next()
        self.now = end

    def break_link(self, one: str, other: str) -> None:
        """Interrupt a link; what is under way on it is lost, and brokers send it again later.

        Raises:
            ConfigError: there is no such link, or it is interrupted already.
        """
        self._set_link(one, other, up=False)

    def restore_link(self, one: str, other: str) -> None:
        """Let an interrupted link work again.

        Raises:
            ConfigError: there is no such link, or it works.
        """
        self._set_link(one, other, up=True)

    def forget(self, detached: LocalClient) -> None:
        """A client has left; it calls this."""
        del self._clients[detached.broker, detached.name]

    def tell(self, broker: str, source: Hop | None, message: object) -> Id | None:
        """Hand a message to a broker now, and carry out what it wants to happen.

        Returns the identifier of what the message subscribed, advertised or published, if it did.

        Args:
            broker: its name.
            source: the client or neighbour that sent the message, None for the host.
            message: see `gossamer.protocol.brokers.core.messages`.

        Raises:
            ProtocolError: the broker refused the message.
        """
        effects = self.brokers[broker].handle(self.now, source, message)
        for effect in effects:
            self._carry_out(broker, effect)
        return effects.id

    def _carry_out(self, broker: str, effect: Effect) -> None:
        match effect:
            case Send(name, frame):
                link = self._links[broker, name]
                self._under_way += 1
                at = self.now + self._latency
                self._schedule(at, name, neighbour(broker), frame, link.times_up)
            case Deliver(name, publication, labels):
                delivery = Delivery(publication.id, publication.values, labels, self.now)
                self._clients[broker, name].receive(delivery)
            case SetTimer(timer, token, at):
                self._schedule(at, broker, None, m.TimerFired(timer, token), 0)
            case Refuse(error=error):
                raise error

    def _schedule(
        self, at: int, broker: str, source: Hop | None, message: Any, times_up: int
    ) -> None:
        # Numbered, so that what falls together happens in the order in which it was scheduled.
        self._scheduled += 1
        entry = (max(at, self.now), self._scheduled, broker, source, message, times_up)
        heapq.heappush(self._agenda, entry)

    def _next(self) -> None:
        at, _, broker, source, message, times_up = heapq.heappop(self._agenda)
        self.now = at
        if source is not None:
            self._under_way -= 1
            link = self._links[source.name, broker]
            if not link.up or link.times_up != times_up:
                return
        self.tell(broker, source, message)

    def _set_link(self, one: str, other: str, *, up: bool) -> None:
        state = "an interrupted" if up else "a working"
        found = self._links.get((one, other))
        if found is None or found.up == up:
            raise ConfigError("link", (one, other), f"{state} link")
        for a, b in ((one, other), (other, one)):
            link = self._links[a, b]
            link.up = up
            link.times_up += up
        for a, b in ((one, other), (other, one)):
            self.tell(a, None, m.NeighbourUp(b) if up else m.NeighbourDown(b))


def _filter(wanted: str | Filter) -> Filter:
    return parse(wanted) if isinstance(wanted, str) else wanted


def _check_acyclic(names: Iterable[str], links: Iterable[tuple[str, str]]) -> None:
    part = {name: name for name in names}

    def part_of(name: str) -> str:
        while part[name] != name:
            name = part[name]
        return name

    for one, other in links:
        parts = part_of(one), part_of(other)
        if parts[0] == parts[1]:
            raise ConfigError("links", (one, other), "links without a cycle")
        part[parts[0]] = parts[1]
