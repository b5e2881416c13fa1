"""The one door of a broker, whatever its family: a message in, effects out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Final, Generic, Self

from gossamer.protocol.brokers.core.clients import ClientRules, OutboxT, StateT
from gossamer.protocol.brokers.core.codec import CLIENT, HOST, NEIGHBOUR, Codec
from gossamer.protocol.brokers.core.effects import Effects
from gossamer.protocol.brokers.core.messages import (
    DumpError,
    Hop,
    Id,
    MalformedMessageError,
    TimerFired,
    unknown_neighbour,
)
from gossamer.protocol.brokers.core.plain_data import read_name, read_whole
from gossamer.protocol.brokers.core.state import Timer
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.protocol.kernel.errors import LocalProtocolError, RemoteProtocolError


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


class SharedIndex:
    """A `MatchingIndex` as a broker uses it: equal filters are at one place, which is used again.

    Filters have marks (`mark`), and questions are put to those with some of the marks asked for.
    The order of answers does not matter, brokers sort them.
    """

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
        """Hold a filter, with these marks if it is new; returns its place."""
        return self._index.add(wanted, marks).id

    def remove(self, place: int) -> bool:
        """Hold a filter once less; returns whether it is gone."""
        return self._index.remove(place).is_gone


NewIndex = Callable[[], Any]
"""Makes a `SharedIndex`, or what answers as that does."""


def compiled_index() -> SharedIndex:
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


# A broker's memory as plain data (see `plain_data`), and back: what is the same in every family.
#
# What follows from the rest is worked out again. A loaded broker goes on exactly as the one that
# was dumped.

FORMAT: Final = 2

_NO_DUMP: Final = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(LocalProtocolError, MalformedMessageError),
)
_read_number: Final = read_whole()


def name_in(data: Mapping[str, Any]) -> str:
    """The name of the broker that was dumped; raises `DumpError` for what is no dump."""
    try:
        if data["format"] != FORMAT:
            raise DumpError(f"its format is {data['format']!r}, expected {FORMAT}")
        return str(read_name(data["name"], "name"))
    except _NO_DUMP as error:
        raise _no_dump(error) from error


def _no_dump(error: Exception) -> DumpError:
    return error if isinstance(error, DumpError) else DumpError(f"{type(error).__name__}: {error}")


class Broker(Generic[StateT, OutboxT]):
    """A content-based broker: a state, and the routing of its family.

    Same messages in the same order give the same effects and the same dump, bit for bit. Families
    derive a class that makes the state and shows their tables.
    """

    def __init__(self, state: StateT, routing: Routing[StateT, OutboxT]) -> None:
        self._state = state
        self._routing = routing
        self._senders = routing.codec.senders
        self._ends = type(routing).end is not Routing.end

    def _recall(self, data: Mapping[str, Any]) -> Self:
        """Go on, a broker that has seen nothing, as the one that was dumped.

        Raises:
            DumpError: the data is no dump of a broker in this place.
        """
        state, routing = self._state, self._routing
        try:
            state.next_number = _read_number(data["next_number"], "next_number")
            state.timers = {name: Timer(token, at) for name, token, at in data["timers"]}
            state.counters = type(state.counters).read(data["counters"])
            for plain in data["clients"]:
                session = routing.read_session(plain)
                state.clients[session.name] = session
            routing.load(state, data)
        except _NO_DUMP as error:
            raise _no_dump(error) from error
        return self

    def dump(self) -> dict[str, object]:
        """Everything that the broker remembers for good, as plain data (see `plain_data`)."""
        state, routing = self._state, self._routing
        return {
            "format": FORMAT,
            "name": state.name,
            "next_number": state.next_number,
            "clients": [routing.session_data(one) for one in state.clients.values()],
            "timers": [[name, timer.token, timer.at] for name, timer in state.timers.items()],
            "counters": state.counters.plain(),
            **routing.dump(state),
        }

    @property
    def name(self) -> str:
        """The broker's name."""
        return self._state.name

    @property
    def next_id(self) -> Id:
        """The identifier that the next thing of a client here gets."""
        return Id(self._state.name, self._state.next_number + 1)

    def clients(self) -> Sequence[Any]:
        """The attached clients, for looking at as all that families show, not for changing."""
        return tuple(self._state.clients.values())

    def handle(self, now: int, source: Hop | None, message: Any) -> Effects:
        """Take a message, and say what is to happen because of it.

        Args:
            now: microseconds, never less than before.
            source: the client or neighbour that sent the message, or None for the host.
            message: what came.

        What is wrong with a message goes back to its source as a `Refuse`; then nothing else
        happens because of it, and but for the counters the state is as before. (Of tree brokers
        two messages are excepted: `tree.memory.outbox`.) `Effects.id` is the identifier of what a
        client's message subscribed, advertised or published.
        """
        state, routing = self._state, self._routing
        out = routing.begin(state, now, message)
        try:
            if source is None:
                self._check_sender(source, message, HOST)
                if isinstance(message, TimerFired):
                    self._on_timer(out, message)
                else:
                    routing.on_host(state, out, message)
            elif source.is_client:
                self._check_sender(source, message, CLIENT)
                routing.codec.check_from_client(source.name, message)
                routing.from_client(state, out, source.name, message)
            else:
                # As `_check_sender`; nearly all messages come this way.
                if self._senders.get(type(message), NEIGHBOUR) != NEIGHBOUR:
                    self._check_sender(source, message, NEIGHBOUR)
                routing.from_neighbour(state, out, source, message)
        except (LocalProtocolError, RemoteProtocolError) as error:
            return out.refuse(source, error, message)
        if self._ends:
            routing.end(state, out)
        return out.close()

    def _check_sender(self, source: Hop | None, message: Any, came_from: str) -> None:
        # What is no message at all is refused as the message of whoever sent it.
        unknown = CLIENT if source is None else came_from
        expected = self._senders.get(type(message), unknown)
        if expected != came_from:
            shown = "the host" if source is None else f"{source.kind} {source.name!r}"
            came = f"{type(message).__name__} came from {shown}"
            raise LocalProtocolError(f"{came}, expected {expected}")

    def _on_timer(self, out: OutboxT, message: TimerFired) -> None:
        timer = self._state.timers.get(message.timer)
        if timer is not None and timer.at is not None and timer.token == message.token:
            timer.at = None
            self._routing.on_timer(self._state, out, message.timer)
