"""The broker of a structured cyclic overlay, and what can be seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from gossamer.protocol.brokers.core.broker import Broker
from gossamer.protocol.brokers.core.dump import name_in
from gossamer.protocol.brokers.core.index import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.state import Session, first_number
from gossamer.protocol.brokers.scot.family import ScotRouting
from gossamer.protocol.brokers.scot.memory.catalogue import Catalogue, Numbers
from gossamer.protocol.brokers.scot.memory.congestion import new_table
from gossamer.protocol.brokers.scot.memory.counters import Counters
from gossamer.protocol.brokers.scot.memory.no_take_over import NO_TAKE_OVER, NoTakeOver
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.settings import BID, ScotSettings
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.table import Entry, RoutingTable
from gossamer.protocol.brokers.scot.memory.take_over_memory import TakeOverMemory
from gossamer.protocol.brokers.scot.overlay.labels import BrokerLabel
from gossamer.protocol.brokers.scot.overlay.topology import Position
from gossamer.protocol.brokers.scot.take_over.bystander import Bystander
from gossamer.protocol.brokers.scot.take_over.take_over import TakeOver

_ROUTING = ScotRouting()


class ScotBroker(Broker[State, ScotOutbox]):
    """A subscription-based broker in a SCOT, clustered or (with routing "bid") not.

    It knows its direct neighbours only.
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
        mixed: bool = False,
    ) -> None:
        """A broker that has seen nothing.

        Args:
            name: unique in the overlay.
            position: where it is, and where its direct neighbours are.
            settings: the same for all brokers of the overlay.
            incarnation: larger than whenever a broker of this name lived without its dump, so that
                identifiers of its earlier lives are not taken for new ones.
            new_index: makes an empty index of filters; `core.index.compiled_index` for large
                tables.
            catalogue: of the subscriptions of all brokers in this process, which then share it;
                `new_index` does not count. One of its own if None.
            mixed: whether others may take over clients while this one does not, for a while: then
                it sees to what they promise (`take_over.bystander`). Not with routing "bid".
        """
        first = first_number(incarnation)
        state = State(
            name=name,
            position=position,
            settings=settings,
            table=RoutingTable(catalogue or Catalogue(new_index)),
            next_number=first,
            links=new_table(settings),
            take_over=_taking_over(settings, first, mixed=mixed),
            returned=incarnation > 0,
        )
        super().__init__(state, _ROUTING)

    @classmethod
    def load(
        cls,
        data: dict[str, Any],
        position: Position,
        settings: ScotSettings,
        *,
        new_index: NewIndex = SharedIndex,
        mixed: bool = False,
    ) -> ScotBroker:
        """The broker that was dumped; raises `DumpError` for what is no dump of this place's.

        The host then reports `Restarted`, and `NeighbourUp` for every link that works. Whether the
        broker takes over clients may be another than when it was dumped, if it is `mixed`.
        """
        made = cls(name_in(data), position, settings, new_index=new_index, mixed=mixed)
        return made._recall(data)

    def uncover(self) -> None:
        """Go on with a table that was made with another `ScotSettings.covering`.

        For a broker that was loaded, before any link works: what it kept back so far it makes known
        to a neighbour when their link comes up, and what others cover it keeps back from then on.
        One that takes over makes it known only when that ends which covers it, as it has to be
        acknowledged by then.
        """
        if not self._state.settings.take_over:
            self._state.covered.clear()

    @property
    def position(self) -> Position:
        """Where the broker is."""
        return self._state.position

    @property
    def settings(self) -> ScotSettings:
        """How the broker routes."""
        return self._state.settings

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
        """The load of the link to a neighbour, as of the last window."""
        return self._state.links.load_of(neighbour)

    def neighbours(self) -> Mapping[str, BrokerLabel]:
        """Where neighbours are, by name."""
        return dict(self._state.labels)

    @property
    def take_over_memory(self) -> TakeOverMemory | None:
        """What is remembered for taking over; None without that."""
        return self._state.take_over.memory


def _taking_over(settings: ScotSettings, first: int, *, mixed: bool) -> NoTakeOver:
    if settings.take_over:
        return TakeOver(TakeOverMemory(first))
    if mixed and settings.routing != BID:
        return Bystander(TakeOverMemory(first))
    return NO_TAKE_OVER
