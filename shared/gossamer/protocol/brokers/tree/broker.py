"""The one door of a broker: a message in, effects out."""

from __future__ import annotations

from gossamer.protocol.brokers.core.client_codec import check_from_client
from gossamer.protocol.brokers.core.effects import Effect
from gossamer.protocol.brokers.core.errors import MisplacedMessageError
from gossamer.protocol.brokers.core.identifiers import Hop, Id, neighbour
from gossamer.protocol.brokers.core.index import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.messages import (
    Congestion,
    Frame,
    FromHost,
    Message,
    NeighbourDown,
    NeighbourGone,
    NeighbourUp,
    Restarted,
    TimerFired,
)
from gossamer.protocol.brokers.tree import dump as dumping
from gossamer.protocol.brokers.tree.clients import on_client_message
from gossamer.protocol.brokers.tree.memory.advertisements import Offer
from gossamer.protocol.brokers.tree.memory.counters import Counters, TableSizes
from gossamer.protocol.brokers.tree.memory.link import Link
from gossamer.protocol.brokers.tree.memory.outbox import Outbox
from gossamer.protocol.brokers.tree.memory.sent import Aggregate
from gossamer.protocol.brokers.tree.memory.settings import BrokerSettings
from gossamer.protocol.brokers.tree.memory.state import Session, State
from gossamer.protocol.brokers.tree.memory.statistics import Statistics
from gossamer.protocol.brokers.tree.memory.subscriptions import Entry
from gossamer.protocol.brokers.tree.routing.removal import (
    RELEASE_TIMER,
    REVIEW_TIMER,
    release,
    review,
)
from gossamer.protocol.brokers.tree.sessions import (
    ACKNOWLEDGE_TIMER,
    acknowledge,
    on_frame,
    on_neighbour_down,
    on_neighbour_gone,
    on_neighbour_up,
)
from gossamer.protocol.kernel.errors import ConfigError, LocalProtocolError, RemoteProtocolError

_ON_TIMER = {RELEASE_TIMER: release, REVIEW_TIMER: review, ACKNOWLEDGE_TIMER: acknowledge}


class Broker:
    """A content-based broker in an overlay without cycles.

    Same messages in the same order give the same effects and the same dump, bit for bit.
    """

    def __init__(
        self,
        name: str,
        settings: BrokerSettings,
        *,
        incarnation: int = 0,
        new_index: NewIndex = SharedIndex,
    ) -> None:
        """A broker that has seen nothing.

        Args:
            name: unique in the overlay.
            settings: which do not change; brokers of one overlay may differ.
            incarnation: larger than whenever a broker of this name lived without its dump, so that
                identifiers and sessions of its earlier lives are not taken for new ones.
            new_index: makes an empty index of filters; `index.compiled_index` for large tables.
        """
        self._state = State.empty(name, settings, new_index, incarnation)

    @classmethod
    def load(
        cls,
        data: dict[str, object],
        settings: BrokerSettings,
        *,
        new_index: NewIndex = SharedIndex,
    ) -> Broker:
        """The broker that was dumped; raises `DumpError` for what is no dump.

        The host then reports `Restarted`, and `NeighbourUp` for every link that works.
        """
        broker = cls.__new__(cls)
        broker._state = dumping.load(data, settings, new_index)
        return broker

    def dump(self) -> dict[str, object]:
        """Everything that the broker remembers, as plain data (see `plain`)."""
        return dumping.dump(self._state)

    def configure(self, settings: BrokerSettings) -> None:
        """Go on with other settings.

        What stands on links depends on what is quenched and taken back when covered, so that
        these two have to stay as they are. Nothing is sent.

        Raises:
            ConfigError: they would not; nothing has changed.
        """
        state = self._state
        old, new = state.settings.rules, settings.rules
        if (old.quench, old.clean) != (new.quench, new.clean):
            expected = f"a covering that leaves tables as {state.settings.covering!r} does"
            raise ConfigError("broker.covering", settings.covering, expected)
        kept = Statistics(settings.statistics_window, settings.statistics_entries)
        for id_, row in state.statistics.rows():
            kept.record(id_, row)
        state.settings, state.statistics = settings, kept

    @property
    def name(self) -> str:
        """The broker's name."""
        return self._state.name

    @property
    def next_id(self) -> Id:
        """The identifier that the next subscription, advertisement or publication here gets."""
        return Id(self._state.name, self._state.next_number + 1)

    @property
    def counters(self) -> Counters:
        """What happened so far; belongs to the broker."""
        return self._state.counters

    def sizes(self) -> TableSizes:
        """How large the tables are."""
        return self._state.sizes()

    def aggregates(self) -> dict[str, list[Aggregate]]:
        """By neighbour, the subscriptions that it keeps for nobody, with what they cost."""
        return {
            link.name: [link.sent.aggregates[id_] for id_ in sorted(link.sent.aggregates)]
            for link in self._state.links_in_order()
            if link.sent.aggregates
        }

    def clients(self) -> list[Session]:
        """The attached clients; these and what follows are for looking at, not for changing."""
        return list(self._state.clients.values())

    def advertisements(self) -> list[Offer]:
        """The advertisement table."""
        return list(self._state.advertisements)

    def subscriptions(self) -> list[Entry]:
        """The subscription table."""
        return list(self._state.subscriptions)

    def links(self) -> list[Link]:
        """What is known of each neighbour, by name."""
        return self._state.links_in_order()

    def handle(self, now: int, source: Hop | None, message: Message) -> list[Effect]:
        """Take a message, and say what is to happen because of it.

        Args:
            now: microseconds, never less than before.
            source: the client or neighbour that sent the message, or None for the host.
            message: what came.

        What is wrong with a message goes back to its source as a `Refuse`, and then nothing else
        happens because of it; only of a `Synchronise` the rest is taken over.
        """
        out = Outbox(self._state, now)
        self._state.statistics.expire(now)
        try:
            self._dispatch(out, source, message)
        except (LocalProtocolError, RemoteProtocolError) as error:
            self._refuse(out, source, error, message)
        return out.close()

    def _dispatch(self, out: Outbox, source: Hop | None, message: Message) -> None:
        kind = type(message).__name__
        if isinstance(message, Frame):
            if source is None or source.is_client:
                raise MisplacedMessageError(kind, source, "a neighbour")
            on_frame(self._state, out, source.name, message)
        elif isinstance(message, FromHost):
            if source is not None:
                raise MisplacedMessageError(kind, source, "the host")
            self._on_host(out, message)
        else:
            if source is None or not source.is_client:
                raise MisplacedMessageError(kind, source, "a client")
            check_from_client(source.name, message)
            on_client_message(self._state, out, source.name, message)

    def _on_host(self, out: Outbox, message: FromHost) -> None:
        match message:
            case NeighbourUp(name):
                on_neighbour_up(self._state, out, name)
            case NeighbourDown(name):
                on_neighbour_down(self._state, name)
            case NeighbourGone(name):
                on_neighbour_gone(self._state, out, name)
            case Congestion(queue):
                self._on_congestion(out, queue)
            case TimerFired(name, token):
                self._on_timer(out, name, token)
            case Restarted():
                self._on_restart(out)

    def _on_restart(self, out: Outbox) -> None:
        for link in self._state.links_in_order():
            link.up = False
        for name in sorted(self._state.timers):
            out.set_again(name, self._state.timers[name])

    def _on_congestion(self, out: Outbox, queue: int) -> None:
        self._state.queue = queue
        timer = self._state.timers.get(RELEASE_TIMER)
        if timer is None or timer.at is None:
            release(self._state, out)

    def _on_timer(self, out: Outbox, name: str, token: int) -> None:
        timer = self._state.timers.get(name)
        if timer is None or timer.at is None or timer.token != token:
            return
        timer.at = None
        _ON_TIMER[name](self._state, out)

    def _refuse(
        self,
        out: Outbox,
        source: Hop | None,
        error: LocalProtocolError | RemoteProtocolError,
        message: Message,
    ) -> None:
        if source is None:
            source = neighbour(getattr(message, "name", self.name))
        self._state.counters.refused += 1
        out.refuse(source, error, message)
