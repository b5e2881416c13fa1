"""The three ways to route, each as the same five functions."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from attrs import evolve, frozen

from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.scot import broadcast, detours
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.detours import Targets, check_header, reroute, targets_of
from gossamer.protocol.brokers.scot.settings import BID, DYNAMIC, STATIC
from gossamer.protocol.brokers.scot.state import LinkStatusTable, ScotOutbox, State
from gossamer.protocol.brokers.scot.table import Entry
from gossamer.protocol.brokers.scot.topology import NO_CLUSTERS, ClusterBitVector
from gossamer.protocol.content.filters import Publication as Values
from gossamer.protocol.kernel.errors import RemoteProtocolError

# Static notification routing, SNR (Sec. 6.2, Algorithm 3).
#
# The host broker of the publisher sends one copy on each target link. Within a cluster, a tree,
# copies take the reverse paths of subscriptions; into another cluster they are sent by the host
# broker alone, to its secondary neighbour there. A way has at most diam(acyclic factor) hops within
# the cluster of the publisher, and one more to brokers of other clusters.


def route_statically(state: State, out: ScotOutbox, hop: Hop, notification: m.Notification) -> None:
    """Deliver a notification here, and send one copy on each target link (Algorithm 3)."""
    targets = targets_of(state, hop, notification)
    out.deliver_to(notification, targets.local)
    targets = reroute(state, out, notification, targets)
    copy = evolve(notification, targets=NO_CLUSTERS)
    for name in (*targets.intra, *targets.inter.values()):
        out.send(name, copy)


# Dynamic notification routing between clusters, DNR (Sec. 6.3, Algorithm 4).
#
# As static routing, but a notification is kept off overloaded target links between clusters. The
# clusters behind them are named in the header of one copy, the *carrier*, and whoever gets that
# sees to them, by the links of its own region. No routing table changes.
#
# Every subscriber is served exactly once, without a loop, whatever the links' loads:
#
# - A cluster to see to is named by one copy only. A broker either sends a copy there, unnamed from
#   then on, or names it in the one carrier that it sends. So each target cluster is entered once.
# - A carrier that changes clusters enters one that it names no more; so it changes at most as often
#   as there are target clusters. Within a cluster it moves away from where it came in, on a tree.
# - From wherever a cluster is entered, the subscriptions of that cluster lead to all its
#   subscribers, since each of its brokers knows them all.
#
# A way has at most diam(acyclic factor) hops in each cluster, and one between clusters each.
#
# Beyond the paper, `ScotSettings.spare_links`: where all target links are overloaded, a carrier may
# take a link within the cluster that no subscriber is behind, such as the unused one of Fig. 7(d).
# The paper leaves that out for fear of loops among clusters. All of the above holds still: it is a
# carrier like any other, there is still one, and it moves away from where it came in. No other copy
# comes that way, as the link is no target link.


class Case(Enum):
    """How a broker deals with overloaded target links between clusters."""

    NONE_OVERLOADED = 0
    SOME_INTER_FREE = 1
    """Case I: some target link between clusters is not overloaded."""
    SOME_INTRA_FREE = 2
    """Case II: all those are, but not all target links within the cluster."""
    NONE_FREE = 3
    """Case III: all target links are overloaded."""
    SPARE_FREE = 4
    """Beyond the paper: as case III, but a link that is no target link is not."""


@frozen
class Plan:
    """The copies of a notification that a broker makes for its neighbours.

    Attributes:
        case: how it came about.
        copies: the target clusters that each copy names, by neighbour.
    """

    case: Case
    copies: dict[str, ClusterBitVector]


def route_dynamically(
    state: State, out: ScotOutbox, hop: Hop, notification: m.Notification
) -> None:
    """Deliver a notification here, and send what `plan` says."""
    targets = targets_of(state, hop, notification)
    out.deliver_to(notification, targets.local)
    targets = reroute(state, out, notification, targets)
    chosen = plan(targets, state.links, spare_links=state.settings.spare_links)
    _count(state, chosen.case)
    for name, clusters in chosen.copies.items():
        detours.send(state, out, notification, name, clusters)


def plan(targets: Targets, links: LinkStatusTable, *, spare_links: bool = False) -> Plan:
    """Choose the links of a notification (Algorithm 4, lines 13-36).

    Target links within the cluster all get a copy, as under static routing; those between clusters
    if they are not overloaded. Only in case III one that is overloaded gets a copy.
    """
    inter = targets.inter
    overloaded = {c: name for c, name in inter.items() if links.overloaded(name)}
    free = [name for c, name in inter.items() if c not in overloaded]
    free_intra = [name for name in targets.intra if not links.overloaded(name)]
    copies = dict.fromkeys([*targets.intra, *free], NO_CLUSTERS)
    if not overloaded:
        return Plan(Case.NONE_OVERLOADED, copies)
    named = ClusterBitVector.of(*overloaded)
    if free:
        copies[links.least_loaded(free)] = named
        return Plan(Case.SOME_INTER_FREE, copies)
    if free_intra:
        copies[links.least_loaded(free_intra)] = named
        return Plan(Case.SOME_INTRA_FREE, copies)
    free_spare = [name for name in targets.spare if not links.overloaded(name)]
    if spare_links and free_spare:
        copies[links.least_loaded(free_spare)] = named
        return Plan(Case.SPARE_FREE, copies)
    carrier = links.least_loaded(overloaded.values())
    (entered,) = (c for c, name in overloaded.items() if name == carrier)
    copies[carrier] = named.without(entered)
    return Plan(Case.NONE_FREE, copies)


def _count(state: State, case: Case) -> None:
    if case is not Case.NONE_OVERLOADED:
        cases = state.counters.cases
        cases[case.value] = cases.get(case.value, 0) + 1


# Routing by broker identifications on an unclustered SCOT, the baseline (Sec. 6.1, Algorithm 2).
#
# Subscriptions flood all links; a broker keeps the copy that comes first and drops the others, by
# the identification (BID) of the host broker and a number (Sec. 2). A notification is matched by
# the host broker of the publisher, carries the BIDs of the matching subscriptions, and is split on
# its way by the next hop to each; the host brokers of the subscribers match it again for their
# clients.
#
# The hop to a BID is where the first subscription ever came from there. Links are first in, first
# out, so every broker gets that one before any other of the BID, and hops lead back along the tree
# that it made: they cannot form a loop. A way has at most as many hops as there are other brokers.


def on_subscription(state: State, out: ScotOutbox, hop: Hop, message: m.BidSubscription) -> None:
    """Take a subscription of a neighbour, unless it came before (Sec. 2, I1, I2)."""
    bid, number = message.id
    if bid == state.name or number <= state.bid_numbers.get(bid, 0):
        state.counters.duplicates += 1
        return
    state.bid_numbers[bid] = number
    state.bid_hops.setdefault(bid, hop.name)
    subscribe(state, out, Entry(message.id, message.filter, hop, NO_CLUSTERS))


def subscribe(state: State, out: ScotOutbox, entry: Entry) -> None:
    """Save a subscription that is new, and pass it on to all other neighbours."""
    state.table.add(entry)
    _flood(state, out, entry.hop, m.BidSubscription(entry.id, entry.filter))


def on_unsubscription(
    state: State, out: ScotOutbox, hop: Hop, message: m.BidUnsubscription
) -> None:
    """Take an unsubscription of a neighbour, unless it came before."""
    known = state.table.get(message.id)
    if known is None or known.hop.is_client:
        state.counters.duplicates += 1
    else:
        unsubscribe(state, out, evolve(known, hop=hop))


def unsubscribe(state: State, out: ScotOutbox, entry: Entry) -> None:
    """Forget a subscription, and pass that on to all neighbours but `entry.hop`."""
    state.table.remove(entry.id)
    _flood(state, out, entry.hop, m.BidUnsubscription(entry.id))


def introduce(state: State, out: ScotOutbox, neighbour: str) -> None:
    """Tell a neighbour whose link came up all that stands."""
    for entry in state.table:
        if entry.hop.is_client or entry.hop.name != neighbour:
            out.send(neighbour, m.BidSubscription(entry.id, entry.filter))


def publish(state: State, out: ScotOutbox, notification: m.BidNotification) -> None:
    """Add the BIDs of matching subscriptions at the publisher's host broker (lines 3-7)."""
    state.counters.matched += 1
    matching = state.table.match(notification.values)
    bids = {entry.id.broker for entry in matching}
    out.deliver_to(notification, (entry for entry in matching if entry.hop.is_client))
    _split(state, out, notification, bids - {state.name})


def route_by_identifications(
    state: State, out: ScotOutbox, notification: m.BidNotification
) -> None:
    """Deliver a notification here if the local BID is on it, and pass it on (lines 11-21)."""
    if state.name in notification.bids:
        state.counters.matched += 1
        out.deliver_to(notification, state.table.directions(notification.values).own)
    _split(state, out, notification, set(notification.bids) - {state.name})


def _split(state: State, out: ScotOutbox, notification: m.BidNotification, bids: set[str]) -> None:
    """The paper's splitBIDs: one copy for each next hop, with the BIDs down that way."""
    ways: dict[str, list[str]] = {}
    for bid in sorted(bids):
        if bid in state.bid_hops:
            ways.setdefault(state.bid_hops[bid], []).append(bid)
        else:
            state.counters.lost += 1
    for name in sorted(ways):
        out.send(name, evolve(notification, bids=tuple(ways[name])))


def _flood(
    state: State, out: ScotOutbox, hop: Hop, message: m.BidSubscription | m.BidUnsubscription
) -> None:
    for name in sorted(state.labels):
        if hop.is_client or name != hop.name:
            out.send(name, message)


_Route = Callable[[State, ScotOutbox, Hop, m.Notification], None]


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
    on_message: Callable[[State, ScotOutbox, Hop, m.BetweenBrokers], None]


def _clustered(route: _Route) -> Algorithm:
    def publish(state: State, out: ScotOutbox, hop: Hop, id_: Id, values: Values) -> None:
        route(state, out, hop, m.Notification(id_, values))

    def on_message(state: State, out: ScotOutbox, hop: Hop, message: m.BetweenBrokers) -> None:
        match message:
            case m.Notification():
                check_header(state, hop, message)
                route(state, out, hop, message)
            case m.Detour():
                detours.on_detour(state, out, hop, message)
            case m.Bypass():
                detours.on_bypass(state, out, hop, message)
            case m.Subscription():
                broadcast.on_subscription(state, out, hop, message)
            case m.Unsubscription():
                broadcast.on_unsubscription(state, out, hop, message)
            case m.Synchronise():
                broadcast.on_synchronise(state, out, hop, message)
            case m.InputQueue():
                before = state.goes_by_loads
                state.links.note_input(hop.name, message)
                state.revision += before or state.goes_by_loads
            case _:
                raise _wrong_routing(type(message).__name__, hop.name, state.settings.routing)

    return Algorithm(
        broadcast.host_cluster,
        broadcast.subscribe,
        broadcast.unsubscribe,
        broadcast.introduce,
        publish,
        on_message,
    )


def _publish_by_bid(state: State, out: ScotOutbox, _: Hop, id_: Id, values: Values) -> None:
    publish(state, out, m.BidNotification(id_, values, ()))


def _on_bid_message(state: State, out: ScotOutbox, hop: Hop, message: m.BetweenBrokers) -> None:
    match message:
        case m.BidNotification():
            route_by_identifications(state, out, message)
        case m.BidSubscription():
            on_subscription(state, out, hop, message)
        case m.BidUnsubscription():
            on_unsubscription(state, out, hop, message)
        case _:
            raise _wrong_routing(type(message).__name__, hop.name, state.settings.routing)


def _wrong_routing(kind: str, neighbour: str, routing: str) -> RemoteProtocolError:
    """A neighbour routes by BIDs on a clustered SCOT, or without them on another."""
    return RemoteProtocolError(
        f"{kind} from broker {neighbour!r} has no place in {routing} routing, "
        "expected the brokers of an overlay to route in the same way"
    )


def _no_clusters(_: State) -> ClusterBitVector:
    return NO_CLUSTERS


ALGORITHMS: Final = {
    BID: Algorithm(
        _no_clusters, subscribe, unsubscribe, introduce, _publish_by_bid, _on_bid_message
    ),
    STATIC: _clustered(route_statically),
    DYNAMIC: _clustered(route_dynamically),
}
