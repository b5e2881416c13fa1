"""The one door of a SCOT broker: a message in, effects out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from gossamer.protocol.brokers.core.errors import MisplacedMessageError, UnknownNeighbourError
from gossamer.protocol.brokers.core.identifiers import Hop, Id, client
from gossamer.protocol.brokers.core.index import NewIndex, SharedIndex
from gossamer.protocol.brokers.scot import dump as dumping
from gossamer.protocol.brokers.scot.clients import on_client_message
from gossamer.protocol.brokers.scot.codec import check_between, check_from_client
from gossamer.protocol.brokers.scot.link import on_link
from gossamer.protocol.brokers.scot.memory.catalogue import Catalogue, Numbers
from gossamer.protocol.brokers.scot.memory.counters import Counters
from gossamer.protocol.brokers.scot.memory.effects import Awaits, Effect, Refuse
from gossamer.protocol.brokers.scot.memory.keeping import NOBODY, Keeping, Task
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    Carrying,
    FromClient,
    FromHost,
    Message,
    NeighbourDown,
    NeighbourGone,
    NeighbourUp,
    Numbered,
    Restarted,
    Synchronise,
    TakingOver,
    Took,
    WaitedEnough,
    WindowEnded,
)
from gossamer.protocol.brokers.scot.memory.outbox import Outbox
from gossamer.protocol.brokers.scot.memory.settings import ScotSettings
from gossamer.protocol.brokers.scot.memory.state import Session
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.brokers.scot.overlay.labels import BrokerLabel
from gossamer.protocol.brokers.scot.overlay.topology import Position
from gossamer.protocol.brokers.scot.routing.routings import ROUTING
from gossamer.protocol.brokers.scot.take_over.numbered_outbox import KeepingOutbox
from gossamer.protocol.brokers.scot.take_over.resynchronising import do_again, hold
from gossamer.protocol.brokers.scot.take_over.take_over import on_taking_over
from gossamer.protocol.kernel.errors import LocalProtocolError, RemoteProtocolError


class ScotBroker:
    """A subscription-based broker in a SCOT, clustered or (with routing "bid") not.

    Same messages in the same order give the same effects, bit for bit. It knows its direct
    neighbours only.
    """

    def __init__(
        self,
        name: str,
        position: Position,
        settings: ScotSettings,
        *,
        incarnation: int = 0,
        new_index: NewIndex = SharedIndex,
        catalogue: Catalogue | None = None,
    ) -> None:
        """A broker that has seen nothing.

        Args:
            name: unique in the overlay.
            position: where it is, and where its direct neighbours are.
            settings: the same for all brokers of the overlay.
            incarnation: larger than whenever a broker of this name lived without its dump, so that
                identifiers of its earlier lives are not taken for new ones.
            new_index: makes an empty index of filters; `broker.index.compiled_index` for large
                tables.
            catalogue: of the subscriptions of all brokers in this process, which then share it;
                `new_index` does not count. One of its own if None.
        """
        self._state = dumping.empty(
            name, position, settings, catalogue or Catalogue(new_index), incarnation
        )

    @classmethod
    def load(
        cls,
        data: dict[str, Any],
        position: Position,
        settings: ScotSettings,
        *,
        new_index: NewIndex = SharedIndex,
    ) -> ScotBroker:
        """The broker that was dumped; raises `DumpError` for what is no dump of this place's.

        The host then reports `Restarted`, and `NeighbourUp` for every link that works.
        """
        broker = cls.__new__(cls)
        broker._state = dumping.load(data, position, settings, new_index)
        return broker

    def dump(self) -> dict[str, object]:
        """All that the broker remembers for good, as plain data (see `dump`)."""
        return dumping.dump(self._state)

    @property
    def name(self) -> str:
        """The broker's name."""
        return self._state.name

    @property
    def position(self) -> Position:
        """Where the broker is."""
        return self._state.position

    @property
    def settings(self) -> ScotSettings:
        """How the broker routes."""
        return self._state.settings

    @property
    def next_id(self) -> Id:
        """The identifier that the next subscription or notification here gets."""
        return Id(self._state.name, self._state.next_number + 1)

    @property
    def counters(self) -> Counters:
        """What happened so far; belongs to the broker."""
        return self._state.counters

    @property
    def revision(self) -> int:
        """Changes whenever a notification may be treated otherwise than an equal one before.

        Until then a host may do what the broker wanted of it then, without asking again.
        """
        return self._state.revision

    def table(self) -> Sequence[Entry]:
        """The routing table, by identifier."""
        return tuple(self._state.table)

    def learn(self, name: str, numbers: Numbers) -> None:
        """Enter subscriptions of the shared catalogue as if a neighbour had sent them.

        For a host that simulates many brokers: what is to be sent on is the same for all that are
        new, come from one neighbour and are of one cluster, so it may ask for one and know it for
        the others. Without effect on counters; not for tables with covering.
        """
        self._state.revision += 1
        self._state.table.add_all(numbers, name)

    def clients(self) -> Sequence[Session]:
        """The attached clients; these and what follows are for looking at, not for changing."""
        return tuple(self._state.clients.values())

    @property
    def table_size(self) -> int:
        """Entries of the routing table."""
        return len(self._state.table)

    @property
    def down(self) -> Set[str]:
        """Neighbours whose link does not work now."""
        return frozenset(self._state.down)

    def load_of(self, neighbour: str) -> float:
        """The load of the output queue to a neighbour, as of the last window."""
        return self._state.links.status(neighbour).load

    def neighbours(self) -> Mapping[str, BrokerLabel]:
        """Where neighbours are, by name."""
        return dict(self._state.labels)

    @property
    def keeping(self) -> Keeping | None:
        """What is remembered for taking over; None without that."""
        return self._state.keeping

    def handle(self, now: int, source: Hop | None, message: Message) -> list[Effect]:
        """Take a message, and say what is to happen because of it.

        Args:
            now: microseconds; nothing here asks for it, but all brokers have the same door.
            source: the client or neighbour that sent the message, or None for the host.
            message: what came.

        What is wrong with a message goes back to its source as a `Refuse`; then nothing else
        happens because of it, and but for the counters the state is as before.
        """
        del now
        out = self._outbox()
        if not isinstance(message, Carrying | WindowEnded):
            self._state.revision += 1
        try:
            self._dispatch(out, source, message)
        except (LocalProtocolError, RemoteProtocolError) as error:
            self._state.counters.refused += 1
            return [Refuse(source, error, message)]
        return out.effects

    def _outbox(self) -> Outbox:
        keeping = self._state.keeping
        if keeping is None:
            return Outbox(self._state.counters)
        return KeepingOutbox(self._state, keeping)

    def _dispatch(self, out: Outbox, source: Hop | None, message: Message) -> None:
        kind = type(message).__name__
        if isinstance(message, FromHost):
            if source is not None:
                raise MisplacedMessageError(kind, source, "the host")
            self._on_host(out, message)
        elif isinstance(message, FromClient):
            if source is None or not source.is_client:
                raise MisplacedMessageError(kind, source, "a client")
            check_from_client(source.name, message)
            self._on_client(out, source.name, message)
        else:
            if source is None or source.is_client:
                raise MisplacedMessageError(kind, source, "a neighbour")
            self._on_neighbour(out, source, message)

    def _on_host(self, out: Outbox, message: FromHost) -> None:
        match message:
            case NeighbourUp() | NeighbourDown() | NeighbourGone():
                on_link(self._state, out, message)
            case Restarted():
                self._state.down = set(self._state.labels)
                self._state.behind = set(self._state.labels)
                self._state.heard.clear()
                self._state.waited = False
                if self._state.keeping is not None:
                    self._state.keeping.restarted()
            case WaitedEnough():
                self._state.waited = True
            case WindowEnded(queues):
                before = self._state.goes_by_loads
                self._state.links.update(queues)
                self._state.revision += before or self._state.goes_by_loads
        if isinstance(out, KeepingOutbox):
            do_again(self._state, out)

    def _on_client(self, out: Outbox, name: str, message: FromClient) -> None:
        if isinstance(out, KeepingOutbox) and not isinstance(message, Took):
            ticket = out.begin_for_client()
            out.effects.append(Awaits(ticket))
            before = self._state.next_number
            on_client_message(self._state, out, name, message)
            out.end(again=hold(self._state, out, client(name), message, before))
        else:
            on_client_message(self._state, out, name, message)

    def _on_neighbour(self, out: Outbox, source: Hop, message: BetweenBrokers) -> None:
        if source.name not in self._state.labels:
            raise UnknownNeighbourError(source.name)
        check_between(message)
        if isinstance(message, Numbered) and isinstance(out, KeepingOutbox):
            self._count(message.message)
            out.begin(Task((source.name, message.number)))
            before = self._state.next_number
            self._route(out, source, message.message)
            out.end(again=hold(self._state, out, source, message.message, before))
        elif isinstance(message, Synchronise) and isinstance(out, KeepingOutbox):
            self._count(message)
            out.begin(Task(NOBODY))
            self._route(out, source, message)
            out.end()
            do_again(self._state, out)
        else:
            self._count(message)
            self._route(out, source, message)

    def _count(self, message: BetweenBrokers) -> None:
        kind = type(message).__name__
        received = self._state.counters.received
        received[kind] = received.get(kind, 0) + 1

    def _route(self, out: Outbox, source: Hop, message: BetweenBrokers) -> None:
        state = self._state
        if isinstance(message, TakingOver) and isinstance(out, KeepingOutbox):
            on_taking_over(state, out, source, message)
        else:
            ROUTING[state.settings.routing].on_message(state, out, source, message)
