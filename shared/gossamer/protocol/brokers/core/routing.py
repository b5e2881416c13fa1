"""What a family of brokers is: how it routes, and what it asks of an index of filters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, ClassVar, Protocol

from gossamer.protocol.brokers.core.clients import ClientRules, OutboxT, StateT
from gossamer.protocol.brokers.core.codec import Codec
from gossamer.protocol.brokers.core.errors import unknown_neighbour
from gossamer.protocol.brokers.core.messages import Hop
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.matching.index import MatchingIndex, Reach


class Routing(ClientRules[StateT, OutboxT]):
    """The rules of one family, for any of its brokers: what they remember is in their state.

    A method that refuses what it is asked raises a `LocalProtocolError` or `RemoteProtocolError`
    before it has changed anything; the broker makes a `Refuse` of it.

    Attributes:
        codec: the messages of the family.
    """

    codec: ClassVar[Codec]

    # Around every message

    @abstractmethod
    def begin(self, state: StateT, now: int, message: object) -> OutboxT:
        """Get ready for a message that comes at ``now`` microseconds; returns an empty outbox."""

    def end(self, state: StateT, out: OutboxT) -> None:
        """See to what follows from any message that was not refused."""

    # Neighbours

    def from_neighbour(self, state: StateT, out: OutboxT, source: Hop, message: Any) -> None:
        """Take what a neighbour sent: check it, count it, and hand it to `on_message`.

        Raises `RemoteProtocolError`, and what the codec and `on_message` raise.
        """
        if not self.is_neighbour(state, source.name):
            raise unknown_neighbour(source.name)
        self.codec.check_between(message)
        kind = self.kind_of(message)
        received = state.counters.received
        received[kind] = received.get(kind, 0) + 1
        self.on_message(state, out, source, message)

    def kind_of(self, message: Any) -> str:
        """As what a message is counted."""
        return type(message).__name__

    @abstractmethod
    def is_neighbour(self, state: StateT, name: str) -> bool:
        """Whether the host has reported a link to that broker."""

    @abstractmethod
    def on_message(self, state: StateT, out: OutboxT, source: Hop, message: Any) -> None:
        """Take a message of a neighbour that is counted, and whose form is right."""

    # The host

    @abstractmethod
    def on_host(self, state: StateT, out: OutboxT, message: Any) -> None:
        """Take what the host reports: links, a restart, congestion and what else the codec has."""

    def on_timer(self, state: StateT, out: OutboxT, name: str) -> None:
        """A timer that was set is due."""

    # As plain data

    @abstractmethod
    def dump(self, state: StateT) -> dict[str, Any]:
        """What brokers of the family remember besides what all brokers do, as plain data."""

    @abstractmethod
    def load(self, state: StateT, data: Mapping[str, Any]) -> None:
        """Take that up again, in a state that holds nothing else but what all brokers remember.

        Whatever it raises for data that is no dump becomes a `DumpError`.
        """


# What a broker asks of an index of filters, and the matching index as such.


class FilterIndex(Protocol):
    """Filters, equal ones at one place; a place is used again once its filters are gone.

    Filters have marks (`marks`), and questions are put to those with some of the marks asked for.
    The order of answers does not matter, brokers sort them. Relations are those of
    `content.filters`, which are sound.
    """

    def add(self, wanted: Filter, marks: int) -> int:
        """Hold a filter that is new, with these marks; returns its place."""

    def add_again(self, place: int) -> None:
        """Hold a filter once more."""

    def remove(self, place: int) -> bool:
        """Hold a filter once less; returns whether it is gone."""

    def place_of(self, wanted: Filter) -> int | None:
        """Where an equal filter is held, or None."""

    def mark(self, place: int, marks: int, several: int, among: int) -> None:
        """Give a filter these marks and no others among some; `several` have many holders."""

    def match(self, values: Mapping[str, object], marked: int) -> Collection[int]:
        """Those that match a publication."""

    def reach(self, values: Mapping[str, object], marked: int, listed: int) -> Reach:
        """Whom a publication reaches, by marks; those with a mark that is listed by place."""

    def covering(self, wanted: Filter, marked: int) -> Collection[int]:
        """Those that cover a filter, an equal one included."""

    def covered_by(self, wanted: Filter, marked: int) -> Collection[int]:
        """Those that a filter covers, an equal one included."""

    def meeting(self, advertisement: Filter, marked: int) -> Collection[int]:
        """Subscriptions that some publication which an advertisement allows can match."""

    def met_by(self, subscription: Filter, marked: int) -> Collection[int]:
        """Advertisements that allow some publication which a subscription matches."""

    def directions(self, subscription: Filter, marked: int, listed: int) -> Reach:
        """As `reach`, of those advertisements."""


NewIndex = Callable[[], FilterIndex]


class SharedIndex:
    """A `MatchingIndex`, as a broker uses it."""

    def __init__(self, *, compiled: bool = False) -> None:
        """An empty index; `compiled` loads the compiler, for large tables."""
        index = self._index = MatchingIndex(compiled=compiled, covering=False)
        self.place_of = index.id_of
        self.add_again = index.add_again
        self.mark = index.mark
        self.match = index.match
        self.reach = index.reach
        self.covering = index.covering
        self.covered_by = index.covered
        self.meeting = index.met_by_advertisement
        self.met_by = index.met_by_subscription
        self.directions = index.reach_of_subscription

    def add(self, wanted: Filter, marks: int) -> int:
        """Hold a filter that is new, with these marks; returns its place."""
        return self._index.add(wanted, marks).id

    def remove(self, place: int) -> bool:
        """Hold a filter once less; returns whether it is gone."""
        return self._index.remove(place).is_gone


def compiled_index() -> FilterIndex:
    """An empty index with compiled rules, for brokers with large tables."""
    return SharedIndex(compiled=True)


@cache
def load_compiled_rules() -> None:
    """Compile the rules of compiled indexes, or load their code, once for a process.

    To compile them takes many seconds, for which a broker that does so on the way of a message
    answers nobody: its neighbours take it for dead.
    """
    index = compiled_index()
    wanted = parse("x > 0")
    place = index.add(wanted, 1)
    index.mark(place, 3, 0, 3)
    index.match({"x": 1}, 1)
    index.covering(wanted, 1)
    index.remove(place)
