"""The one door of a SCOT broker: a message in, effects out."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.protocol.broker.errors import MisplacedMessageError, UnknownNeighbourError
from gossamer.protocol.broker.identifiers import Hop
from gossamer.protocol.broker.index import NewIndex, SharedIndex
from gossamer.protocol.errors import LocalProtocolError, RemoteProtocolError
from gossamer.protocol.scot.catalogue import Catalogue, Numbers
from gossamer.protocol.scot.clients import on_client_message
from gossamer.protocol.scot.congestion import LinkStatusTable
from gossamer.protocol.scot.counters import Counters
from gossamer.protocol.scot.effects import Effect, Refuse
from gossamer.protocol.scot.messages import (
    BetweenBrokers,
    Carrying,
    FromClient,
    FromHost,
    Message,
    NeighbourDown,
    NeighbourUp,
    WindowEnded,
)
from gossamer.protocol.scot.outbox import Outbox
from gossamer.protocol.scot.routing import ROUTING
from gossamer.protocol.scot.settings import ScotSettings
from gossamer.protocol.scot.state import State
from gossamer.protocol.scot.table import Entry, RoutingTable
from gossamer.protocol.scot.topology import Position


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
        new_index: NewIndex = SharedIndex,
        catalogue: Catalogue | None = None,
    ) -> None:
        """A broker that has seen nothing.

        Args:
            name: unique in the overlay.
            position: where it is, and where its direct neighbours are.
            settings: the same for all brokers of the overlay.
            new_index: makes an empty index of filters; `broker.index.compiled_index` for large
                tables.
            catalogue: of the subscriptions of all brokers in this process, which then share it;
                `new_index` does not count. One of its own if None.
        """
        self._state = State(
            name=name,
            position=position,
            settings=settings,
            table=RoutingTable(Catalogue(new_index) if catalogue is None else catalogue),
            next_number=0,
            links=LinkStatusTable(settings.threshold),
        )

    @property
    def name(self) -> str:
        """The broker's name."""
        return self._state.name

    @property
    def position(self) -> Position:
        """Where the broker is."""
        return self._state.position

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

    @property
    def table_size(self) -> int:
        """Entries of the routing table."""
        return len(self._state.table)

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
        out = Outbox(self._state.counters)
        if not isinstance(message, Carrying | WindowEnded):
            self._state.revision += 1
        try:
            self._dispatch(out, source, message)
        except (LocalProtocolError, RemoteProtocolError) as error:
            self._state.counters.refused += 1
            return [Refuse(source, error, message)]
        return out.effects

    def _dispatch(self, out: Outbox, source: Hop | None, message: Message) -> None:
        kind = type(message).__name__
        if isinstance(message, FromHost):
            if source is not None:
                raise MisplacedMessageError(kind, source, "the host")
            self._on_host(out, message)
        elif isinstance(message, FromClient):
            if source is None or not source.is_client:
                raise MisplacedMessageError(kind, source, "a client")
            on_client_message(self._state, out, source.name, message)
        else:
            if source is None or source.is_client:
                raise MisplacedMessageError(kind, source, "a neighbour")
            self._on_neighbour(out, source, message)

    def _on_host(self, out: Outbox, message: FromHost) -> None:
        match message:
            case NeighbourUp(name, label):
                self._state.add_neighbour(name, label)
                ROUTING[self._state.settings.routing].introduce(self._state, out, name)
            case NeighbourDown(name):
                if name not in self._state.labels:
                    raise UnknownNeighbourError(name)
                self._state.down.add(name)
            case WindowEnded(queues):
                before = self._state.goes_by_loads
                self._state.links.update(queues)
                self._state.revision += before or self._state.goes_by_loads

    def _on_neighbour(self, out: Outbox, source: Hop, message: BetweenBrokers) -> None:
        if source.name not in self._state.labels:
            raise UnknownNeighbourError(source.name)
        kind = type(message).__name__
        received = self._state.counters.received
        received[kind] = received.get(kind, 0) + 1
        ROUTING[self._state.settings.routing].on_message(self._state, out, source, message)
