"""What makes a broker one of a structured cyclic overlay: its `Routing`.

Which algorithm routes is in the settings (`routing.algorithms`). Taking over has a say at the
points that `memory.no_take_over` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from gossamer.protocol.brokers.core.clients import Labelled, read_filters, read_ids
from gossamer.protocol.brokers.core.identifiers import Hop, Id, client
from gossamer.protocol.brokers.core.messages import (
    Attach,
    FromClient,
    NeighbourDown,
    NeighbourGone,
    Restarted,
)
from gossamer.protocol.brokers.core.plain import read_name
from gossamer.protocol.brokers.core.routing import Routing
from gossamer.protocol.brokers.core.state import Session
from gossamer.protocol.brokers.scot import dump as dumping
from gossamer.protocol.brokers.scot.codec import CODEC
from gossamer.protocol.brokers.scot.link import grow, on_link
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    Carrying,
    InputQueue,
    NeighbourUp,
    Numbered,
    OverlayGrown,
    WaitedEnough,
    WindowEnded,
)
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.brokers.scot.routing.algorithms import ALGORITHMS, Algorithm
from gossamer.protocol.content.filters import Filter, exact_publication

# Messages that change nothing of how notifications are treated; what ends a window may.
_CHANGING_NOTHING: Final = frozenset((*get_args(Carrying), WindowEnded, InputQueue))


class ScotRouting(Routing[State, ScotOutbox]):
    """Subscriptions are broadcast in two steps, notifications take their reverse paths."""

    codec = CODEC

    def begin(self, state: State, now: int, message: object) -> ScotOutbox:
        """Count messages that may change how notifications are treated."""
        if type(message) not in _CHANGING_NOTHING:
            state.revision += 1
        return ScotOutbox(state, now)

    # Clients

    def from_client(self, state: State, out: ScotOutbox, name: str, message: FromClient) -> None:
        """As all brokers do, around which taking over has a say."""
        state.take_over.from_client(state, out, name, message, super().from_client)

    def new_session(self, state: State, out: ScotOutbox, name: str, message: Attach) -> Session:
        """Raises `ElsewhereError` for a client whose own broker is there."""
        del message
        state.take_over.attach(state, out, name)
        return Session(name)

    def detached(self, state: State, out: ScotOutbox, session: Session) -> None:
        """Nothing is kept for the client any more."""
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
        """Keep notifications of the client no longer."""
        state.take_over.acknowledge(state, out, session.name, ids)

    def filters_of(self, state: State, session: Session) -> tuple[Labelled, Labelled]:
        """Subscriptions as the table has them."""
        wanted = ((label, state.table[id_].filter) for label, id_ in session.subscriptions.items())
        return tuple(wanted), tuple(session.advertisements.items())

    def read_session(self, data: list[Any]) -> Session:
        """Labels of identifiers, and of the filters announced."""
        name, subscriptions, advertisements = data
        held = read_ids(subscriptions), read_filters(advertisements)
        return Session(read_name(name, "client"), *held)

    # Neighbours

    def is_neighbour(self, state: State, name: str) -> bool:
        """Whether the place of the broker is known."""
        return name in state.labels

    def kind_of(self, message: BetweenBrokers) -> str:
        """What is numbered counts as what it is."""
        return type(message.message if isinstance(message, Numbered) else message).__name__

    def on_message(
        self, state: State, out: ScotOutbox, source: Hop, message: BetweenBrokers
    ) -> None:
        """Route it by the algorithm in use, around which taking over has a say."""
        route = _algorithm(state).on_message
        state.take_over.from_neighbour(state, out, source, message, route)

    # The host

    def on_host(self, state: State, out: ScotOutbox, message: Any) -> None:
        """Take note of links, of a restart, of queues, and of who is not waited for."""
        match message:
            case NeighbourUp() | NeighbourDown() | NeighbourGone():
                on_link(state, out, message)
            case Restarted():
                state.down = set(state.labels)
                state.behind = set(state.labels)
                state.heard.clear()
                state.waited = state.joined = False
            case OverlayGrown():
                grow(state, message)
            case WaitedEnough():
                state.waited = True
            case WindowEnded(queues, waiting):
                before = state.goes_by_loads
                state.links.update(queues)
                state.revision += before or state.goes_by_loads
                if waiting is not None and state.settings.input_queues:
                    for name in sorted(state.labels.keys() - state.down):
                        out.send(name, waiting)
        state.take_over.after_host(state, out, message)

    # As plain data

    def dump(self, state: State) -> dict[str, Any]:
        """Routing table, neighbours, and what was promised."""
        return dumping.dump(state)

    def load(self, state: State, data: Mapping[str, Any]) -> None:
        """Take these up again."""
        dumping.load(state, data)


def _algorithm(state: State) -> Algorithm:
    return ALGORITHMS[state.settings.routing]
