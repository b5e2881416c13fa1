"""Routing by broker identifications on an unclustered SCOT, the baseline (Sec. 6.1, Algorithm 2).

Subscriptions flood all links; a broker keeps the copy that comes first and drops the others, by the
identification (BID) of the host broker and a number (Sec. 2). A notification is matched by the host
broker of the publisher, carries the BIDs of the matching subscriptions, and is split on its way by
the next hop to each; the host brokers of the subscribers match it again for their clients.

The hop to a BID is where the first subscription ever came from there. Links are first in, first
out, so every broker gets that one before any other of the BID, and hops lead back along the tree
that it made: they cannot form a loop. A way has at most as many hops as there are other brokers.
"""

from __future__ import annotations

from attrs import evolve

from gossamer.protocol.brokers.core.identifiers import Hop
from gossamer.protocol.brokers.scot.memory.messages import (
    BidNotification,
    BidSubscription,
    BidUnsubscription,
)
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.brokers.scot.overlay.labels import NO_CLUSTERS


def on_subscription(state: State, out: ScotOutbox, hop: Hop, message: BidSubscription) -> None:
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
    _flood(state, out, entry.hop, BidSubscription(entry.id, entry.filter))


def on_unsubscription(state: State, out: ScotOutbox, hop: Hop, message: BidUnsubscription) -> None:
    """Take an unsubscription of a neighbour, unless it came before."""
    known = state.table.get(message.id)
    if known is None or known.hop.is_client:
        state.counters.duplicates += 1
    else:
        unsubscribe(state, out, evolve(known, hop=hop))


def unsubscribe(state: State, out: ScotOutbox, entry: Entry) -> None:
    """Forget a subscription, and pass that on to all neighbours but `entry.hop`."""
    state.table.remove(entry.id)
    _flood(state, out, entry.hop, BidUnsubscription(entry.id))


def introduce(state: State, out: ScotOutbox, neighbour: str) -> None:
    """Tell a neighbour whose link came up all that stands."""
    for entry in state.table:
        if entry.hop.is_client or entry.hop.name != neighbour:
            out.send(neighbour, BidSubscription(entry.id, entry.filter))


def publish(state: State, out: ScotOutbox, notification: BidNotification) -> None:
    """Add the BIDs of matching subscriptions at the publisher's host broker (lines 3-7)."""
    state.counters.matched += 1
    matching = state.table.match(notification.values)
    bids = {entry.id.broker for entry in matching}
    out.deliver_to(notification, (entry for entry in matching if entry.hop.is_client))
    _split(state, out, notification, bids - {state.name})


def route(state: State, out: ScotOutbox, notification: BidNotification) -> None:
    """Deliver a notification here if the local BID is on it, and pass it on (lines 11-21)."""
    if state.name in notification.bids:
        state.counters.matched += 1
        out.deliver_to(notification, state.table.directions(notification.values).own)
    _split(state, out, notification, set(notification.bids) - {state.name})


def _split(state: State, out: ScotOutbox, notification: BidNotification, bids: set[str]) -> None:
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
    state: State, out: ScotOutbox, hop: Hop, message: BidSubscription | BidUnsubscription
) -> None:
    for name in sorted(state.labels):
        if hop.is_client or name != hop.name:
            out.send(name, message)
