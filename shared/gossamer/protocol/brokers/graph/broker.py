"""The broker of a general graph, and what can be seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer.protocol.brokers.core.broker import Broker
from gossamer.protocol.brokers.core.dump import name_in
from gossamer.protocol.brokers.core.index import NewIndex, SharedIndex
from gossamer.protocol.brokers.graph.family import GraphRouting
from gossamer.protocol.brokers.graph.memory.counters import Counters, TableSizes
from gossamer.protocol.brokers.graph.memory.interests import InterestTable
from gossamer.protocol.brokers.graph.memory.messages import Term, Version
from gossamer.protocol.brokers.graph.memory.outbox import GraphOutbox
from gossamer.protocol.brokers.graph.memory.routes import Routes
from gossamer.protocol.brokers.graph.memory.settings import GraphSettings
from gossamer.protocol.brokers.graph.memory.state import GraphSession, Link, State

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

    def clients(self) -> Sequence[GraphSession]:
        """The attached clients."""
        return list(self._state.clients.values())

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
