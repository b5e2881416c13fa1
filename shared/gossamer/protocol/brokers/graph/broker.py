"""The broker of a general graph: its `Routing`, and what can be seen of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from gossamer.protocol.brokers.core import messages as core
from gossamer.protocol.brokers.core.broker import Broker, NewIndex, Routing, SharedIndex, name_in
from gossamer.protocol.brokers.core.clients import read_filters
from gossamer.protocol.brokers.core.messages import Hop
from gossamer.protocol.brokers.core.plain_data import read_id, read_name
from gossamer.protocol.brokers.graph import codec as dumping
from gossamer.protocol.brokers.graph import coordinator, forwarding, link_state
from gossamer.protocol.brokers.graph import messages as m
from gossamer.protocol.brokers.graph.codec import CODEC, MAX_FILTERS
from gossamer.protocol.brokers.graph.messages import Term, Version
from gossamer.protocol.brokers.graph.network_view import InterestTable
from gossamer.protocol.brokers.graph.settings import GraphSettings
from gossamer.protocol.brokers.graph.state import (
    Counters,
    GraphOutbox,
    GraphSession,
    Link,
    Routes,
    State,
    TableSizes,
)
from gossamer.protocol.content.filters import Filter, exact_publication

# What makes a broker one of a general graph: its `Routing`.
#
# A client's subscriptions are one interest, a disjunction (`network_view`), so all brokers hear
# of a change of several at once: `attach` and `detach` are this family's own.

TICK: Final = "tick"


class GraphRouting(Routing[State, GraphOutbox]):
    """Interests flood, documents go along trees that a coordinator makes."""

    codec = CODEC

    def begin(self, state: State, now: int, message: object) -> GraphOutbox:
        return GraphOutbox(state, now)

    def end(self, state: State, out: GraphOutbox) -> None:
        """Report to the coordinator how far the broker is, if that has changed."""
        coordinator.report_progress(state, out)

    # Clients

    def new_session(
        self, state: State, out: GraphOutbox, name: str, message: core.Attach
    ) -> GraphSession:
        _check_number(name, [wanted for _, wanted in message.subscriptions])
        session = GraphSession(name, interest=state.new_id())
        state.hosted[session.interest] = session
        return session

    def attach(
        self, state: State, out: GraphOutbox, session: GraphSession, message: core.Attach
    ) -> None:
        """Tell all brokers at once what the client comes with."""
        session.advertisements = dict(message.advertisements)
        _change(state, out, session, dict(message.subscriptions))

    def detach(self, state: State, out: GraphOutbox, session: GraphSession) -> None:
        """Tell all brokers at once that the client wants nothing more."""
        _change(state, out, session, {})

    def detached(self, state: State, out: GraphOutbox, session: GraphSession) -> None:
        """Its interest is given to nobody else."""
        del state.hosted[session.interest]

    def subscribe(
        self, state: State, out: GraphOutbox, session: GraphSession, label: str, wanted: Filter
    ) -> None:
        """Let the client's interest grow; raises `ClientError`."""
        after = session.subscriptions | {label: wanted}
        _check_number(session.name, after.values())
        _change(state, out, session, after)

    def unsubscribe(
        self, state: State, out: GraphOutbox, session: GraphSession, label: str
    ) -> None:
        """Let it shrink."""
        kept = {one: held for one, held in session.subscriptions.items() if one != label}
        _change(state, out, session, kept)

    def publish(
        self, state: State, out: GraphOutbox, session: GraphSession, values: Mapping[str, object]
    ) -> None:
        """Send a document out, whether or not it was advertised; some are sampled."""
        exact = exact_publication(values)
        id_ = out.give_id()
        coordinator.sample(state, m.Sampled(out.now, id_, exact))
        forwarding.publish(state, out, id_, exact)

    def session_data(self, session: GraphSession) -> list[object]:
        return [*super().session_data(session), list(session.interest)]

    def read_session(self, data: list[Any]) -> GraphSession:
        name, subscriptions, advertisements, interest = data
        held = read_filters(subscriptions), read_filters(advertisements)
        return GraphSession(
            read_name(name, "client"), *held, interest=read_id(interest, "interest")
        )

    # Neighbours

    def is_neighbour(self, state: State, name: str) -> bool:
        return name in state.links

    def on_message(
        self, state: State, out: GraphOutbox, source: Hop, message: m.BetweenBrokers
    ) -> None:
        """Take documents, link state, directives, and what is for the coordinator."""
        match message:
            case m.Document():
                forwarding.on_document(state, out, source.name, message)
            case m.Confirm():
                forwarding.on_confirm(state, out, source.name, message)
            case m.Return():
                forwarding.on_return(state, out, source.name, message)
            case m.Record() | m.LinksChanged() | m.InterestChanged():
                if link_state.on_update(state, out, source.name, message):
                    _on_new_link_state(state, out, message)
            case m.Summary():
                link_state.on_summary(state, out, source.name, message)
            case m.Directive():
                _on_directive(state, out, source.name, message)
            case m.Report() | m.Samples():
                coordinator.on_report(state, out, message)

    # The host

    def on_host(self, state: State, out: GraphOutbox, message: Any) -> None:
        """Take note of links, of a restart, and of trees that were made."""
        match message:
            case m.NeighbourUp(name, cost):
                link_state.on_neighbour_up(state, out, name, cost)
            case core.NeighbourDown(name) | core.NeighbourGone(name):
                link_state.on_neighbour_down(state, out, name)
            case m.Planned():
                coordinator.on_planned(state, out, message)
            case core.Restarted():
                _on_restart(state, out)

    def on_timer(self, state: State, out: GraphOutbox, name: str) -> None:
        """See to what is due at a tick, and ask for the next."""
        for link in _links(state):
            if state.ready(link.name):  # what it did not know the trees of, it may know now
                forwarding.on_link_ready(state, out, link.name)
        coordinator.send_samples(state, out)
        coordinator.look_around(state, out)
        out.set_timer(name, state.settings.tick)

    # As plain data

    dump = staticmethod(dumping.dump)
    load = staticmethod(dumping.load)


def _change(
    state: State, out: GraphOutbox, session: GraphSession, wanted: dict[str, Filter]
) -> None:
    """Let a client ask for these filters and no others, and tell all brokers of the difference."""
    before, after = dict.fromkeys(session.subscriptions.values()), dict.fromkeys(wanted.values())
    session.subscriptions = wanted
    added = [one for one in after if one not in before]
    removed = [one for one in before if one not in after]
    link_state.announce_interest(state, out, session.interest, added, removed)
    if added:
        coordinator.assign(state, out, [session.interest])


def _check_number(name: str, wanted: Collection[Filter]) -> None:
    if len(wanted) > MAX_FILTERS and len(set(wanted)) > MAX_FILTERS:
        raise core.ClientError(name, f"asks for more than {MAX_FILTERS} different filters")


def _links(state: State) -> Iterable[Link]:
    return [state.links[name] for name in sorted(state.links)]


def _on_restart(state: State, out: GraphOutbox) -> None:
    for link in _links(state):
        link.up = link.ready = False
    link_state.announce_links(state, out)
    for link in _links(state):
        forwarding.on_link_down(state, out, link.name)
    coordinator.resume(state)
    if TICK in state.timers:
        state.timers[TICK].at = None
    out.set_timer(TICK, state.settings.tick)


def _on_new_link_state(
    state: State, out: GraphOutbox, update: m.Record | m.LinksChanged | m.InterestChanged
) -> None:
    if state.coordination is None:
        return
    if isinstance(update, m.InterestChanged):
        if update.added:
            coordinator.assign(state, out, [update.interest])
    else:
        coordinator.assign(state, out, state.interests.of(update.broker))
        coordinator.advance(state, out, state.coordination)


def _on_directive(state: State, out: GraphOutbox, source: str, message: m.Directive) -> None:
    missing = link_state.on_directive(state, out, source, message)
    if missing is not None:
        out.send(missing, link_state.summary(state))
    if message.whole:
        link_state.make_ready(state, out, source)


_ROUTING = GraphRouting()


class GraphBroker(Broker[State, GraphOutbox]):
    """A broker of a general graph, whose documents travel on trees.

    It is told `Restarted` first of all, and by whom it is linked to with `NeighbourUp`.
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
            new_index: makes an empty index of filters; `core.index.compiled_index` for large
                tables.
        """
        state = State.empty(name, settings, InterestTable(new_index), incarnation)
        super().__init__(state, _ROUTING)

    @classmethod
    def load(
        cls, data: dict[str, Any], settings: GraphSettings, *, new_index: NewIndex = SharedIndex
    ) -> GraphBroker:
        """The broker that was dumped; raises `DumpError` for what is no dump."""
        return cls(name_in(data), settings, new_index=new_index)._recall(data)

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

    def links(self) -> Sequence[Link]:
        """What is known of each neighbour, by name."""
        return [self._state.links[name] for name in sorted(self._state.links)]

    def interests(self) -> InterestTable:
        """The subscriptions of all brokers."""
        return self._state.interests

    @property
    def parked(self) -> int:
        """Publications that wait for a link."""
        return len(self._state.parked)

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
