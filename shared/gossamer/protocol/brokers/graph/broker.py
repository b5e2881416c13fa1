"""The one door of a broker of a general graph: a message in, effects out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gossamer.protocol.brokers.core.client_codec import check_from_client
from gossamer.protocol.brokers.core.errors import MisplacedMessageError, UnknownNeighbourError
from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.core.index import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.messages import Restarted, TimerFired
from gossamer.protocol.brokers.graph import dump as dumping
from gossamer.protocol.brokers.graph.clients import on_client_message
from gossamer.protocol.brokers.graph.codec import check_between
from gossamer.protocol.brokers.graph.coordinator.coordinator import (
    advance,
    assign,
    look_around,
    on_planned,
    on_told,
    resume,
    send_samples,
    tell_coordinator,
)
from gossamer.protocol.brokers.graph.memory.counters import Counters, TableSizes
from gossamer.protocol.brokers.graph.memory.effects import Effect, Refuse
from gossamer.protocol.brokers.graph.memory.interests import InterestTable
from gossamer.protocol.brokers.graph.memory.messages import (
    BetweenBrokers,
    Confirm,
    Directive,
    Document,
    FromClient,
    FromHost,
    InterestChanged,
    LinksChanged,
    Message,
    NeighbourDown,
    NeighbourUp,
    Planned,
    Record,
    Report,
    Return,
    Samples,
    Summary,
    Term,
    Version,
)
from gossamer.protocol.brokers.graph.memory.outbox import Outbox
from gossamer.protocol.brokers.graph.memory.routes import Routes
from gossamer.protocol.brokers.graph.memory.settings import GraphSettings
from gossamer.protocol.brokers.graph.memory.state import Link, Session, State
from gossamer.protocol.brokers.graph.routing.directives import on_directive
from gossamer.protocol.brokers.graph.routing.forwarding import (
    on_confirm,
    on_document,
    on_link_down,
    on_link_ready,
    on_return,
)
from gossamer.protocol.brokers.graph.routing.link_state import (
    make_ready,
    on_neighbour_down,
    on_neighbour_up,
    on_news,
    on_summary,
    summary,
    tell_links,
)
from gossamer.protocol.kernel.errors import LocalProtocolError, RemoteProtocolError

TICK: Final = "tick"


class GraphBroker:
    """A broker of a general graph, whose documents travel on trees.

    Same messages in the same order give the same effects, bit for bit. It is told `Restarted` first
    of all, and by whom it is linked to with `NeighbourUp`.
    """

    def __init__(
        self,
        name: str,
        settings: GraphSettings,
        *,
        incarnation: int = 0,
        new_index: NewIndex = SharedIndex,
    ) -> None:
        """A broker that has seen nothing.

        Args:
            name: unique in the overlay.
            settings: how it samples, plans and waits.
            incarnation: greater than in all earlier lives that it does not remember.
            new_index: makes an empty index of filters; `broker.index.compiled_index` for large
                tables.
        """
        self._state = State.empty(name, settings, InterestTable(new_index), incarnation)

    @classmethod
    def load(
        cls, data: dict[str, Any], settings: GraphSettings, *, new_index: NewIndex = SharedIndex
    ) -> GraphBroker:
        """The broker that was dumped; raises `DumpError` for what is no dump."""
        broker = cls.__new__(cls)
        broker._state = dumping.load(data, settings, new_index)
        return broker

    def dump(self) -> dict[str, object]:
        """Everything that the broker remembers, as plain data."""
        return dumping.dump(self._state)

    @property
    def name(self) -> str:
        """The broker's name."""
        return self._state.name

    @property
    def next_id(self) -> Id:
        """The identifier that the next document or subscription here gets."""
        return Id(self._state.name, self._state.next_number + 1)

    @property
    def counters(self) -> Counters:
        """What happened so far; belongs to the broker."""
        return self._state.counters

    @property
    def term(self) -> Term:
        """The term of the coordinator that is obeyed."""
        return self._state.term

    @property
    def phase(self) -> str | None:
        """What the coordinator is at, if this broker is it; else None."""
        return None if self._state.coordination is None else self._state.coordination.phase

    @property
    def present(self) -> Routes | None:
        """The trees in use, None before there are any; for looking at, as all that follows."""
        return self._state.versions.present

    def versions(self) -> Sequence[Version]:
        """All versions that are held, the earliest first."""
        return [routes.plan.version for routes in self._state.versions.all()]

    @property
    def reachable(self) -> frozenset[str]:
        """The brokers that can be reached, this one included."""
        return self._state.topology.reachable

    def clients(self) -> Sequence[Session]:
        """The attached clients."""
        return list(self._state.clients.values())

    def links(self) -> Sequence[Link]:
        """What is known of each neighbour, by name."""
        return [self._state.links[name] for name in sorted(self._state.links)]

    def interests(self) -> InterestTable:
        """The subscriptions of all brokers."""
        return self._state.interests

    def sizes(self) -> TableSizes:
        """How large the tables are."""
        state = self._state
        present = state.versions.present
        return TableSizes(
            subscriptions=len(state.interests),
            advertisements=sum(len(one.advertisements) for one in state.clients.values()),
            brokers=len(state.topology.links),
            versions=len(state.versions.all()),
            trees=0 if present is None else len(present.plan.trees),
            in_flight=len(state.in_flight),
            parked=len(state.parked),
            clients=len(state.clients),
        )

    def handle(self, now: int, source: Hop | None, message: Message) -> list[Effect]:
        """Take a message, and say what is to happen because of it.

        Args:
            now: microseconds, never less than before.
            source: the client or neighbour that sent the message, or None for the host.
            message: what came.

        What is wrong with a message goes back to its source as a `Refuse`; then nothing else
        happens because of it, and but for the counters the state is as before.
        """
        out = Outbox(self._state, now)
        try:
            self._dispatch(out, source, message)
        except (LocalProtocolError, RemoteProtocolError) as error:
            self._state.counters.refused += 1
            return [Refuse(source, error, message)]
        tell_coordinator(self._state, out)
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
            check_from_client(source.name, message)
            on_client_message(self._state, out, source.name, message)
        else:
            if source is None or source.is_client:
                raise MisplacedMessageError(kind, source, "a neighbour")
            self._on_neighbour(out, source.name, message)

    def _on_host(self, out: Outbox, message: FromHost) -> None:
        state = self._state
        match message:
            case NeighbourUp(name, cost):
                on_neighbour_up(state, out, name, cost)
            case NeighbourDown(name):
                on_neighbour_down(state, out, name)
            case Planned():
                on_planned(state, out, message)
            case TimerFired(name, token):
                self._on_timer(out, name, token)
            case Restarted():
                self._on_restart(out)

    def _on_restart(self, out: Outbox) -> None:
        state = self._state
        for link in self.links():
            link.up = link.ready = False
        tell_links(state, out)
        for link in self.links():
            on_link_down(state, out, link.name)
        resume(state)
        if TICK in state.timers:
            state.timers[TICK].at = None
        out.set_timer(TICK, state.settings.tick)

    def _on_timer(self, out: Outbox, name: str, token: int) -> None:
        timer = self._state.timers.get(name)
        if timer is None or timer.at is None or timer.token != token:
            return
        timer.at = None
        for link in self.links():
            if self._state.ready(link.name):  # what it did not know the trees of, it may know now
                on_link_ready(self._state, out, link.name)
        send_samples(self._state, out)
        look_around(self._state, out)
        out.set_timer(TICK, self._state.settings.tick)

    def _on_neighbour(self, out: Outbox, source: str, message: BetweenBrokers) -> None:
        state = self._state
        if source not in state.links:
            raise UnknownNeighbourError(source)
        check_between(message)
        kind = type(message).__name__
        received = state.counters.received
        received[kind] = received.get(kind, 0) + 1
        match message:
            case Document():
                on_document(state, out, source, message)
            case Confirm():
                on_confirm(state, out, source, message)
            case Return():
                on_return(state, out, source, message)
            case Record() | LinksChanged() | InterestChanged():
                if on_news(state, out, source, message):
                    self._on_what_is_new(out, message)
            case Summary():
                on_summary(state, out, source, message)
            case Directive():
                self._on_directive(out, source, message)
            case Report() | Samples():
                on_told(state, out, message)

    def _on_what_is_new(self, out: Outbox, news: Record | LinksChanged | InterestChanged) -> None:
        if self._state.coordination is None:
            return
        if isinstance(news, InterestChanged):
            if news.added:
                assign(self._state, out, [news.interest])
        else:
            assign(self._state, out, self._state.interests.of(news.broker))
            advance(self._state, out, self._state.coordination)

    def _on_directive(self, out: Outbox, source: str, message: Directive) -> None:
        missing = on_directive(self._state, out, source, message)
        if missing is not None:
            out.send(missing, summary(self._state))
        if message.whole:
            make_ready(self._state, out, source)
