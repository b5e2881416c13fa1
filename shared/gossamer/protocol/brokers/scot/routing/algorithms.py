"""The three ways to route, each as the same five functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import frozen

from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    BidNotification,
    BidSubscription,
    BidUnsubscription,
    Bypass,
    Detour,
    InputQueue,
    Notification,
    Subscription,
    Synchronise,
    Unsubscription,
)
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.settings import BID, DYNAMIC, STATIC
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.brokers.scot.overlay.errors import WrongRoutingError
from gossamer.protocol.brokers.scot.overlay.labels import NO_CLUSTERS, ClusterBitVector
from gossamer.protocol.brokers.scot.routing import around, broadcast
from gossamer.protocol.brokers.scot.routing import bid as bid_routing
from gossamer.protocol.brokers.scot.routing import dynamic as dynamic_routing
from gossamer.protocol.brokers.scot.routing import static as static_routing
from gossamer.protocol.brokers.scot.routing.targets import check_header
from gossamer.protocol.content.filters import Publication as Values

_Route = Callable[[State, ScotOutbox, Hop, Notification], None]


@frozen
class Algorithm:
    """What a broker does with subscriptions and notifications.

    Attributes:
        host: the cluster bit vector that a host broker gives a subscription.
        subscribe: enters a new subscription and passes it on.
        unsubscribe: forgets one and passes that on.
        introduce: tells a neighbour whose link came up what it should know.
        publish: routes what a client published.
        on_message: takes what a neighbour sent.
    """

    host: Callable[[State], ClusterBitVector]
    subscribe: Callable[[State, ScotOutbox, Entry], None]
    unsubscribe: Callable[[State, ScotOutbox, Entry], None]
    introduce: Callable[[State, ScotOutbox, str], None]
    publish: Callable[[State, ScotOutbox, Hop, Id, Values], None]
    on_message: Callable[[State, ScotOutbox, Hop, BetweenBrokers], None]


def _clustered(route: _Route) -> Algorithm:
    def publish(state: State, out: ScotOutbox, hop: Hop, id_: Id, values: Values) -> None:
        route(state, out, hop, Notification(id_, values))

    def on_message(state: State, out: ScotOutbox, hop: Hop, message: BetweenBrokers) -> None:
        match message:
            case Notification():
                check_header(state, hop, message)
                route(state, out, hop, message)
            case Detour():
                around.on_detour(state, out, hop, message)
            case Bypass():
                around.on_bypass(state, out, hop, message)
            case Subscription():
                broadcast.on_subscription(state, out, hop, message)
            case Unsubscription():
                broadcast.on_unsubscription(state, out, hop, message)
            case Synchronise():
                broadcast.on_synchronise(state, out, hop, message)
            case InputQueue():
                before = state.goes_by_loads
                state.links.note_input(hop.name, message)
                state.revision += before or state.goes_by_loads
            case _:
                raise WrongRoutingError(type(message).__name__, hop.name, state.settings.routing)

    return Algorithm(
        broadcast.host_cluster,
        broadcast.subscribe,
        broadcast.unsubscribe,
        broadcast.introduce,
        publish,
        on_message,
    )


def _publish_by_bid(state: State, out: ScotOutbox, _: Hop, id_: Id, values: Values) -> None:
    bid_routing.publish(state, out, BidNotification(id_, values, ()))


def _on_bid_message(state: State, out: ScotOutbox, hop: Hop, message: BetweenBrokers) -> None:
    match message:
        case BidNotification():
            bid_routing.route(state, out, message)
        case BidSubscription():
            bid_routing.on_subscription(state, out, hop, message)
        case BidUnsubscription():
            bid_routing.on_unsubscription(state, out, hop, message)
        case _:
            raise WrongRoutingError(type(message).__name__, hop.name, state.settings.routing)


def _no_clusters(_: State) -> ClusterBitVector:
    return NO_CLUSTERS


ALGORITHMS: Final = {
    BID: Algorithm(
        _no_clusters,
        bid_routing.subscribe,
        bid_routing.unsubscribe,
        bid_routing.introduce,
        _publish_by_bid,
        _on_bid_message,
    ),
    STATIC: _clustered(static_routing.route),
    DYNAMIC: _clustered(dynamic_routing.route),
}
