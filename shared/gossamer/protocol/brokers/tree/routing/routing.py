"""Advertisements and subscriptions on their way (selective paper, Sec. II).

Advertisements flood the overlay and make a tree each; subscriptions follow the trees of those that
they meet, towards the publishers; publications come back the same way.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.protocol.brokers.core.errors import CycleError
from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.tree.memory.advertisements import Offer
from gossamer.protocol.brokers.tree.memory.link import Link
from gossamer.protocol.brokers.tree.memory.messages import (
    Advertisement,
    CriticalDistance,
    Settled,
    Subscription,
    Unadvertisement,
    Unsubscription,
)
from gossamer.protocol.brokers.tree.memory.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.memory.settings import Pruning
from gossamer.protocol.brokers.tree.memory.state import State
from gossamer.protocol.brokers.tree.memory.subscriptions import Entry
from gossamer.protocol.brokers.tree.routing.covering import offer, withdraw
from gossamer.protocol.brokers.tree.routing.removal import forget_quenched, hold_back, remove
from gossamer.protocol.content.filters import Filter


def on_advertisement(state: State, out: TreeOutbox, hop: Hop, message: Advertisement) -> None:
    """Enter an advertisement, pass it on, and send it the subscriptions that it can serve.

    Raises `CycleError` where it is known from another hop, and leaves everything as it was.
    """
    known = state.advertisements.get(message.id)
    if known is None:
        advertise(state, out, hop, message)
    elif known.hop != hop:
        state.counters.cycles += 1
        raise CycleError(message.id, known.hop, hop)
    else:
        state.counters.duplicates += 1
        _tell_settled(state, out, known)


def advertise(
    state: State, out: TreeOutbox, hop: Hop, message: Advertisement, label: str = ""
) -> None:
    """Enter an advertisement that is new."""
    offer_ = state.advertisements.add(message.id, message.filter, hop, label)
    _flood(state, out, hop, message)
    if state.settings.retained_publications:
        offer_.unsettled = {name for name in state.links if hop.is_client or name != hop.name}
    if hop.is_client:
        return
    served = []
    for entry in state.subscriptions.meeting(message.filter):
        if entry.hop != hop and hop.name not in entry.towards:
            entry.towards.add(hop.name)
            served.append(entry)
    offer(state, out, state.links[hop.name], served, triggered=False)
    _tell_settled(state, out, offer_)


def on_settled(state: State, out: TreeOutbox, name: str, id_: Id) -> None:
    """A neighbour has told all that an advertisement is to bring it."""
    known = state.advertisements.get(id_)
    if known is None or name not in known.unsettled:
        state.counters.stale += 1
        return
    known.unsettled.discard(name)
    _tell_settled(state, out, known)


def _tell_settled(state: State, out: TreeOutbox, offer_: Offer) -> None:
    """Tell where an advertisement came from that nobody behind this broker is waited for."""
    if state.settings.retained_publications and not (offer_.unsettled or offer_.hop.is_client):
        out.send_on(state.links[offer_.hop.name], Settled(offer_.id))


def on_unadvertisement(state: State, out: TreeOutbox, hop: Hop, id_: Id) -> None:
    """Forget an advertisement, pass that on, and take back what only it was sent for.

    The subscriptions stay in the table, so that an advertisement that comes again finds them.
    """
    known = state.advertisements.get(id_)
    if known is None or known.hop != hop:
        state.counters.stale += 1
        return
    state.advertisements.remove(id_)
    _flood(state, out, hop, Unadvertisement(id_))
    if not hop.is_client:
        _take_back_unserved(state, out, state.links[hop.name], known)


def on_subscription(state: State, out: TreeOutbox, hop: Hop, message: Subscription) -> None:
    """Enter a subscription and make it known towards the advertisements that it meets."""
    known = state.subscriptions.get(message.id)
    if known is None:
        subscribe(state, out, hop, message)
    elif known.hop == hop and known.held:
        known.held = False
        del state.held[known.id]
    else:
        state.counters.duplicates += 1


def subscribe(
    state: State, out: TreeOutbox, hop: Hop, message: Subscription, label: str = ""
) -> None:
    """Enter a subscription that is new."""
    entry = state.subscriptions.add(message.id, message.filter, hop, label)
    directions = state.advertisements.directions(message.filter)
    entry.towards.update(name for name in directions if hop.is_client or name != hop.name)
    if len(entry.towards) > 1:
        state.subscriptions.ask_for_all(entry.filter, frozenset(entry.towards))
    for name in sorted(entry.towards):
        offer(state, out, state.links[name], [entry], message.triggered)


def on_unsubscription(state: State, out: TreeOutbox, hop: Hop, message: Unsubscription) -> None:
    """Remove a subscription; while the broker is congested, hold that back if it may trigger others
    (incremental paper, Sec. IV, property 3)."""
    entry = state.subscriptions.get(message.id)
    if entry is None or entry.hop != hop or (entry.held and message.critical is not None):
        state.counters.stale += 1
    else:
        remove_or_hold(state, out, entry, message.critical, message.triggered)


def remove_or_hold(
    state: State,
    out: TreeOutbox,
    entry: Entry,
    critical: tuple[CriticalDistance, ...] | None,
    triggered: bool = False,
) -> None:
    """Remove a subscription now or, held back, when the broker is not congested.

    Only an unsubscription with critical distances is held back: without, nothing is triggered that
    could wait, since a covering subscription went before.
    """
    incremental = state.settings.rules.pruning is Pruning.INCREMENTAL
    if incremental and critical is not None and state.congested:
        hold_back(state, entry, critical)
    else:
        remove(state, out, entry, critical, triggered)


def _flood(
    state: State, out: TreeOutbox, hop: Hop, message: Advertisement | Unadvertisement
) -> None:
    for link in state.links_in_order():
        if link.hop != hop:
            out.send_on(link, message)


def _take_back_unserved(state: State, out: TreeOutbox, link: Link, gone: Offer) -> None:
    lost = list(_unserved(state, link, gone.filter))
    for entry in lost:
        entry.towards.discard(link.name)
        if entry.id not in link.sent:
            forget_quenched(state, out, link, entry.id)
    for entry in lost:
        if entry.id in link.sent:
            withdraw(state, out, link, Unsubscription(entry.id))
    for aggregate in list(link.sent.aggregates.values()):
        if not state.advertisements.serves(link.name, aggregate.filter):
            withdraw(state, out, link, Unsubscription(aggregate.id))


def _unserved(state: State, link: Link, gone: Filter) -> Iterable[Entry]:
    for entry in state.subscriptions.meeting(gone):
        if link.name in entry.towards and not state.advertisements.serves(link.name, entry.filter):
            yield entry
