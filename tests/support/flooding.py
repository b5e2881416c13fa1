"""A fourth family of brokers, from outside the package: publications flood an acyclic overlay.

Brokers keep the subscriptions of their own clients only, and pass every publication on. It is the
least that a family has to say: a codec, a state and a `Routing`, and for nodes a `FamilyHost`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
from attrs import define, field, frozen

from gossamer.node.broker.host import ClientFilters, Counted, FamilyHost
from gossamer.node.config.node import NodeConfig
from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.broker import Broker, NewIndex, Routing, name_in
from gossamer.protocol.brokers.core.codec import COUNT, ID, VALUES, Codec, shape
from gossamer.protocol.brokers.core.effects import Outbox
from gossamer.protocol.brokers.core.messages import Hop, Id, unknown_neighbour
from gossamer.protocol.brokers.core.state import BrokerState, Session, first_number
from gossamer.protocol.content.filters import Filter, exact_publication
from gossamer.protocol.content.filters import Publication as Values
from support.flooding_family import FLOODING, FloodingSection


@frozen
class Flooded:
    """A publication on its way, and how many links it has crossed."""

    id: Id
    values: Values
    hops: int = 0


@define(eq=False, kw_only=True)
class State(BrokerState):
    """What a flooding broker remembers: who its neighbours are, and whether their links work."""

    neighbours: dict[str, bool] = field(factory=dict)


class Flooding(Routing[State, Outbox[State]]):
    codec = Codec({"flooded": shape(Flooded, ID, VALUES, COUNT)})

    def begin(self, state: State, now: int, message: object) -> Outbox[State]:
        del message
        return Outbox(state, now)

    def subscribe(
        self, state: State, out: Outbox[State], session: Session, label: str, wanted: Filter
    ) -> None:
        del state, out
        session.subscriptions[label] = wanted

    def unsubscribe(self, state: State, out: Outbox[State], session: Session, label: str) -> None:
        del state, out
        del session.subscriptions[label]

    def publish(
        self, state: State, out: Outbox[State], session: Session, values: Mapping[str, object]
    ) -> None:
        del session
        _flood(state, out, None, Flooded(out.give_id(), exact_publication(values)))

    def is_neighbour(self, state: State, name: str) -> bool:
        return name in state.neighbours

    def on_message(self, state: State, out: Outbox[State], source: Hop, message: Flooded) -> None:
        _flood(state, out, source.name, attrs.evolve(message, hops=message.hops + 1))

    def on_host(self, state: State, out: Outbox[State], message: Any) -> None:
        del out
        match message:
            case messages.NeighbourUp(name):
                state.neighbours[name] = True
            case messages.NeighbourDown(name) | messages.NeighbourGone(name):
                if name not in state.neighbours:
                    raise unknown_neighbour(name)
                state.neighbours[name] = False
            case messages.Restarted():
                state.neighbours = dict.fromkeys(state.neighbours, False)

    def dump(self, state: State) -> dict[str, Any]:
        return {"neighbours": dict(state.neighbours)}

    def load(self, state: State, data: Mapping[str, Any]) -> None:
        state.neighbours = dict(data["neighbours"])


def _flood(state: State, out: Outbox[State], source: str | None, message: Flooded) -> None:
    for name in sorted(state.clients):
        wanted = state.clients[name].subscriptions
        labels = tuple(label for label in sorted(wanted) if wanted[label].matches(message.values))
        if labels:
            out.deliver(name, message, labels)
    for name in sorted(state.neighbours):
        if state.neighbours[name] and name != source:
            out.send(name, message)


class FloodingBroker(Broker[State, Outbox[State]]):
    def __init__(self, name: str, incarnation: int = 0) -> None:
        super().__init__(State(name=name, next_number=first_number(incarnation)), Flooding())

    @classmethod
    def load(cls, data: dict[str, Any]) -> FloodingBroker:
        return cls(name_in(data))._recall(data)

    @property
    def counters(self) -> Any:
        return self._state.counters

    def sessions(self) -> Iterable[Session]:
        return list(self._state.clients.values())

    @property
    def neighbours(self) -> Mapping[str, bool]:
        return dict(self._state.neighbours)


# As a family of nodes.


@frozen
class FloodingHost(FamilyHost):
    of: FloodingSection = field(factory=FloodingSection)
    registered = FLOODING
    codec = Flooding.codec
    cyclic = False
    counted: ClassVar[Counted] = {
        "sent": ("kind", "Messages sent."),
        "received": ("kind", "Messages taken."),
        "delivered": ("", "Publications handed to clients."),
    }

    def described(self) -> Mapping[str, str]:
        return {"motto": self.of.motto}

    def new(self, name: str, incarnation: int, new_index: NewIndex) -> FloodingBroker:
        del new_index
        return FloodingBroker(name, incarnation)

    def load(self, dump: dict[str, Any], new_index: NewIndex) -> FloodingBroker:
        del new_index
        return FloodingBroker.load(dump)

    def carried(self, message: Any) -> Id | None:
        return message.id if isinstance(message, Flooded) else None

    def subscriptions(self, dump: dict[str, Any]) -> int:
        return sum(len(wanted) for _, wanted, _ in dump["clients"])

    def sizes(self, broker: FloodingBroker) -> Mapping[str, tuple[int, str]]:
        number = sum(len(one.subscriptions) for one in broker.sessions())
        return {"subscriptions": (number, "Subscriptions of clients.")}

    def clients(self, broker: FloodingBroker) -> Sequence[ClientFilters]:
        return [
            ClientFilters(one.name, one.subscriptions, one.advertisements)
            for one in broker.sessions()
        ]

    def tables(self, broker: FloodingBroker, label: Callable[[str], str]) -> dict[str, Any]:
        return {"broker": label(broker.name), "neighbours": list(broker.neighbours)}


def host_of(config: NodeConfig) -> FloodingHost:
    return FloodingHost(config.section("flooding"))
