"""The broker of a structured cyclic overlay: its `Routing`, links, and what can be seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, get_args

from attrs import evolve

from gossamer.protocol.brokers.core import messages as core
from gossamer.protocol.brokers.core.broker import Broker, NewIndex, Routing, SharedIndex, name_in
from gossamer.protocol.brokers.core.clients import Labelled, read_filters, read_ids
from gossamer.protocol.brokers.core.messages import Hop, Id, client, neighbour
from gossamer.protocol.brokers.core.state import Session, first_number
from gossamer.protocol.brokers.scot import broadcast
from gossamer.protocol.brokers.scot import codec as dumping
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.codec import CODEC
from gossamer.protocol.brokers.scot.routing import ALGORITHMS, Algorithm
from gossamer.protocol.brokers.scot.settings import BID, Counters, ScotSettings
from gossamer.protocol.brokers.scot.state import LinkStatusTable, ScotOutbox, State
from gossamer.protocol.brokers.scot.table import Catalogue, Entry, Numbers, RoutingTable
from gossamer.protocol.brokers.scot.take_over import Bystander, TakeOver
from gossamer.protocol.brokers.scot.take_over_memory import NO_TAKE_OVER, NoTakeOver, TakeOverMemory
from gossamer.protocol.brokers.scot.topology import MAX_CLUSTERS, BrokerLabel, Position
from gossamer.protocol.content.filters import Filter, exact_publication
from gossamer.protocol.kernel.errors import LocalProtocolError

# Links come and go, and the overlay grows, as the host says.


def on_link(
    state: State, out: ScotOutbox, message: m.NeighbourUp | core.NeighbourDown | core.NeighbourGone
) -> None:
    """A link works, or does not; what that means for taking over.

    Clients are handed back before it is told what stands: who has heard that has all its clients.

    Raises `WrongNeighbourError` or another `RemoteProtocolError`, and leaves everything as it was.
    """
    before = state.take_over.backups(state)
    match message:
        case m.NeighbourUp():
            _on_up(state, out, message)
        case core.NeighbourDown(name) | core.NeighbourGone(name):
            _check(state, name)
            state.down.add(name)
            state.unknown.discard(name)
    works = isinstance(message, m.NeighbourUp)
    state.take_over.link_changed(state, out, message.name, before, works=works)
    if isinstance(message, core.NeighbourGone):
        _forget(state, out, message.name)


def grow(state: State, message: m.OverlayGrown) -> None:
    """Make room for more neighbours, which introduce themselves when their links work.

    The tables stay: what a new neighbour should know it is told then, and what it makes known comes
    as from any other. Notifications go on meanwhile, as nobody has subscribed behind it yet.

    Raises `LocalProtocolError`, and leaves everything as it was, if something would be gone.
    """
    position = state.position
    if not position.clusters <= message.clusters <= MAX_CLUSTERS:
        expected = f"a number from {position.clusters} to {MAX_CLUSTERS}"
        raise LocalProtocolError(
            f"OverlayGrown: clusters is {message.clusters}, expected {expected}"
        )
    gone = position.primary - set(message.primary)
    if gone or position.label.region in message.primary:
        expected = f"{', '.join(sorted(position.primary)) or 'any'} and perhaps other regions"
        raise LocalProtocolError(
            f"OverlayGrown: primary is {list(message.primary)}, expected {expected}"
        )
    if state.knows_all:
        state.returned = state.joined = False  # It has missed nothing of what the overlay was.
    state.position = evolve(position, clusters=message.clusters, primary=frozenset(message.primary))


def _on_up(state: State, out: ScotOutbox, message: m.NeighbourUp) -> None:
    first = message.name not in state.labels
    state.add_neighbour(message.name, message.label)
    _note_settings(state, message)
    state.links.forget_input(message.name)
    state.take_over.link_came(state, out, message.name)
    if first:
        state.unknown.add(message.name)
    if message.synchronise and state.settings.routing != BID:
        broadcast.synchronise(state, out, message.name)
    else:
        ALGORITHMS[state.settings.routing].introduce(state, out, message.name)


def _note_settings(state: State, message: m.NeighbourUp) -> None:
    takes_over = state.settings.take_over
    if isinstance(message, m.NeighbourAnnounced):
        takes_over = message.takes_over
    if takes_over:
        state.not_taking_over.discard(message.name)
    else:
        state.not_taking_over.add(message.name)


def _check(state: State, name: str) -> None:
    if name not in state.labels:
        raise core.unknown_neighbour(name)


def _forget(state: State, out: ScotOutbox, name: str) -> None:
    """Withdraw whatever came from a neighbour, and let another take its place."""
    state.forget_neighbour(name)
    state.bid_hops = {bid: hop for bid, hop in state.bid_hops.items() if hop != name}
    routing = ALGORITHMS[state.settings.routing]
    for entry in [one for one in state.table if one.hop == neighbour(name)]:
        routing.unsubscribe(state, out, entry)


# What makes a broker one of a structured cyclic overlay: its `Routing`.
#
# Which algorithm routes is in the settings (`routing.Algorithm`). Taking over has a say at the
# points that `take_over_memory` names.


# Messages that change nothing of how notifications are treated; what ends a window may.
_CHANGING_NOTHING: Final = frozenset((*get_args(m.Carrying), m.WindowEnded, m.InputQueue))


class ScotRouting(Routing[State, ScotOutbox]):
    """Subscriptions are broadcast in two steps, notifications take their reverse paths."""

    codec = CODEC
    reads = read_ids, read_filters

    def begin(self, state: State, now: int, message: object) -> ScotOutbox:
        """Count messages that may change how notifications are treated."""
        if type(message) not in _CHANGING_NOTHING:
            state.revision += 1
        return ScotOutbox(state, now)

    # Clients

    def from_client(
        self, state: State, out: ScotOutbox, name: str, message: core.FromClient
    ) -> None:
        """As all brokers do, around which taking over has a say."""
        state.take_over.from_client(state, out, name, message, super().from_client)

    def new_session(
        self, state: State, out: ScotOutbox, name: str, message: core.Attach
    ) -> Session:
        """Raises `ClientError` for a client whose own broker is there."""
        state.take_over.attach(state, out, name)
        return Session(name)

    def detached(self, state: State, out: ScotOutbox, session: Session) -> None:
        state.take_over.detach(state, out, session.name)

    def subscribe(
        self, state: State, out: ScotOutbox, session: Session, label: str, wanted: Filter
    ) -> None:
        """Enter a subscription, broadcast it, and promise it to the client."""
        algorithm = _algorithm(state)
        id_ = out.give_id()
        session.subscriptions[label] = id_
        entry = Entry(id_, wanted, client(session.name), algorithm.host(state), label)
        algorithm.subscribe(state, out, entry)
        state.take_over.promise(state, out, session.name, label, id_, wanted)

    def unsubscribe(self, state: State, out: ScotOutbox, session: Session, label: str) -> None:
        """Forget a subscription, and broadcast that."""
        entry = state.table[session.subscriptions.pop(label)]
        _algorithm(state).unsubscribe(state, out, entry)
        state.take_over.take_back(state, out, session.name, label)

    def publish(
        self, state: State, out: ScotOutbox, session: Session, values: Mapping[str, object]
    ) -> None:
        """Route a notification, whether or not it was advertised."""
        exact = exact_publication(values)
        hop = client(session.name)
        _algorithm(state).publish(state, out, hop, out.give_id(), exact)

    def acknowledge(
        self, state: State, out: ScotOutbox, session: Session, ids: tuple[Id, ...]
    ) -> None:
        state.take_over.acknowledge(state, out, session.name, ids)

    def filters_of(self, state: State, session: Session) -> tuple[Labelled, Labelled]:
        wanted = ((label, state.table[id_].filter) for label, id_ in session.subscriptions.items())
        return tuple(wanted), tuple(session.advertisements.items())

    # Neighbours

    def is_neighbour(self, state: State, name: str) -> bool:
        return name in state.labels

    def kind_of(self, message: m.BetweenBrokers) -> str:
        """What is numbered counts as what it is."""
        return type(message.message if isinstance(message, m.Numbered) else message).__name__

    def on_message(
        self, state: State, out: ScotOutbox, source: Hop, message: m.BetweenBrokers
    ) -> None:
        """Route it by the algorithm in use, around which taking over has a say."""
        route = _algorithm(state).on_message
        state.take_over.from_neighbour(state, out, source, message, route)

    # The host

    def on_host(self, state: State, out: ScotOutbox, message: Any) -> None:
        """Take note of links, of a restart, of queues, and of who is not waited for."""
        match message:
            case m.NeighbourUp() | core.NeighbourDown() | core.NeighbourGone():
                on_link(state, out, message)
            case core.Restarted():
                state.down = set(state.labels)
                state.behind = set(state.labels)
                state.heard.clear()
                state.waited = state.joined = False
            case m.OverlayGrown():
                grow(state, message)
            case m.WaitedEnough():
                state.waited = True
            case m.WindowEnded(queues, waiting):
                before = state.goes_by_loads
                state.links.update(queues)
                state.revision += before or state.goes_by_loads
                if waiting is not None and state.settings.input_queues:
                    for name in sorted(state.labels.keys() - state.down):
                        out.send(name, waiting)
        state.take_over.after_host(state, out, message)

    # As plain data

    dump = staticmethod(dumping.dump)
    load = staticmethod(dumping.load)


def _algorithm(state: State) -> Algorithm:
    return ALGORITHMS[state.settings.routing]


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
                it sees to what they promise (`take_over.Bystander`). Not with routing "bid".
        """
        first = first_number(incarnation)
        state = State(
            name=name,
            position=position,
            settings=settings,
            table=RoutingTable(catalogue or Catalogue(new_index)),
            next_number=first,
            links=LinkStatusTable(
                settings.threshold, inputs=settings.input_queues, own=settings.own_threshold
            ),
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
