"""Advertisements, subscriptions and publications on their way (selective paper, Sec. II).

Advertisements flood the overlay and make a tree each; subscriptions follow the trees of those that
they meet, towards the publishers; publications come back the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gossamer.protocol.brokers.core.messages import CycleError, Hop, Id
from gossamer.protocol.brokers.tree import messages as m
from gossamer.protocol.brokers.tree.advertisements import Offer
from gossamer.protocol.brokers.tree.covering import offer, withdraw
from gossamer.protocol.brokers.tree.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.pruning import forget_quenched, hold_back, remove
from gossamer.protocol.brokers.tree.settings import Pruning, Record
from gossamer.protocol.brokers.tree.state import Link, State
from gossamer.protocol.brokers.tree.tables import Entry
from gossamer.protocol.content.filters import Filter


def on_advertisement(state: State, out: TreeOutbox, hop: Hop, message: m.Advertisement) -> None:
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
    state: State, out: TreeOutbox, hop: Hop, message: m.Advertisement, label: str = ""
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
        out.send_on(state.links[offer_.hop.name], m.Settled(offer_.id))


def on_unadvertisement(state: State, out: TreeOutbox, hop: Hop, id_: Id) -> None:
    """Forget an advertisement, pass that on, and take back what only it was sent for.

    The subscriptions stay in the table, so that an advertisement that comes again finds them.
    """
    known = state.advertisements.get(id_)
    if known is None or known.hop != hop:
        state.counters.stale += 1
        return
    state.advertisements.remove(id_)
    _flood(state, out, hop, m.Unadvertisement(id_))
    if not hop.is_client:
        _take_back_unserved(state, out, state.links[hop.name], known)


def on_subscription(state: State, out: TreeOutbox, hop: Hop, message: m.Subscription) -> None:
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
    state: State, out: TreeOutbox, hop: Hop, message: m.Subscription, label: str = ""
) -> None:
    """Enter a subscription that is new."""
    entry = state.subscriptions.add(message.id, message.filter, hop, label)
    directions = state.advertisements.directions(message.filter)
    entry.towards.update(name for name in directions if hop.is_client or name != hop.name)
    if len(entry.towards) > 1:
        state.subscriptions.ask_for_all(entry.filter, frozenset(entry.towards))
    for name in sorted(entry.towards):
        offer(state, out, state.links[name], [entry], message.triggered)


def on_unsubscription(state: State, out: TreeOutbox, hop: Hop, message: m.Unsubscription) -> None:
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
    critical: tuple[m.CriticalDistance, ...] | None,
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
    state: State, out: TreeOutbox, hop: Hop, message: m.Advertisement | m.Unadvertisement
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
            withdraw(state, out, link, m.Unsubscription(entry.id))
    for aggregate in list(link.sent.aggregates.values()):
        if not state.advertisements.serves(link.name, aggregate.filter):
            withdraw(state, out, link, m.Unsubscription(aggregate.id))


def _unserved(state: State, link: Link, gone: Filter) -> Iterable[Entry]:
    for entry in state.subscriptions.meeting(gone):
        if link.name in entry.towards and not state.advertisements.serves(link.name, entry.filter):
            yield entry


_BY_STATISTICS: Final = (Pruning.SELECTIVE, Pruning.INCREMENTAL)


def on_publication(state: State, out: TreeOutbox, hop: Hop, publication: m.Publication) -> None:
    """Forward a publication of a neighbour; dropped if it is stale or came before.

    Both are plain to see: along a tree, numbers of publications from one broker only grow, and none
    comes before its advertisement or after the end of that.
    """
    known = state.advertisements.get(publication.advertisement)
    origin, number = publication.id
    if known is None or known.hop != hop:
        state.counters.stale += 1
    elif number <= state.last_publications.get(origin, -1):
        state.counters.duplicates += 1
    else:
        state.last_publications[origin] = number
        forward(state, out, known, publication)


def forward(state: State, out: TreeOutbox, offer: Offer, publication: m.Publication) -> None:
    """Send a publication to every last hop of a subscription that matches, but not back.

    And to those of whom it is not known yet whether they have any.
    """
    matched = state.subscriptions.matched(publication.values, offer.hop)
    matching = matched.remote + len(matched.local)
    if not offer.hop.is_client:
        publication = with_header(publication, matching)
        _count_arrivals(state, offer.hop, publication, matching > 0)
        _record(state, out.now, publication, matched.local)
    neighbours = matched.neighbours
    if offer.unsettled:
        neighbours = sorted(offer.unsettled.union(neighbours))
    for name in neighbours:
        out.send_on(state.links[name], publication)
    _deliver(out, publication, matched.local)


def with_header(publication: m.Publication, matching: int) -> m.Publication:
    """The publication with *distance* and *count* as this broker changes them.

    "If the publication matches more than one subscription, count is incremented by one and distance
    reset to zero. Otherwise, count is left unchanged, and distance is incremented by one"
    (selective paper, Sec. IV-A); the publisher host broker leaves both at zero.
    """
    distance, count = publication.distance + 1, publication.count
    if matching > 1:
        distance, count = 0, count + 1
    return m.Publication(
        publication.id, publication.advertisement, publication.values, distance, count
    )


def _count_arrivals(state: State, hop: Hop, publication: m.Publication, wanted: bool) -> None:
    state.counters.false_positives += not wanted
    for aggregate in state.links[hop.name].sent.aggregates_matching(publication.values):
        aggregate.arrivals += 1
        aggregate.false_positives += not wanted


def _record(state: State, now: int, publication: m.Publication, local: list[Entry]) -> None:
    """Statistics of the subscriber host broker, if pruning asks for them; brokers on the way keep
    none (Sec. IV-A)."""
    if state.settings.rules.pruning not in _BY_STATISTICS:
        return
    row = Record(now, publication.advertisement, publication.distance, publication.count)
    for entry in local:
        state.statistics.record(entry.id, row)


def _deliver(out: TreeOutbox, publication: m.Publication, entries: list[Entry]) -> None:
    labels: dict[str, list[str]] = {}
    for entry in entries:
        labels.setdefault(entry.hop.name, []).append(entry.label)
    for name in sorted(labels):
        out.deliver(name, publication, tuple(labels[name]))
