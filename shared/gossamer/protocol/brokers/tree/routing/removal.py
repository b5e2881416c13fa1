"""Unsubscription: which links are told, and which keep the subscription as an aggregate.

The handler of both papers' Algorithm 1; `pruning` has its formulas.
"""

from __future__ import annotations

from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.tree.memory.link import Link
from gossamer.protocol.brokers.tree.memory.messages import CriticalDistance, Unsubscription
from gossamer.protocol.brokers.tree.memory.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.memory.settings import Pruning
from gossamer.protocol.brokers.tree.memory.state import State
from gossamer.protocol.brokers.tree.memory.subscriptions import Entry
from gossamer.protocol.brokers.tree.routing.covering import (
    displaced_by,
    drop_aggregate,
    withdraw,
)
from gossamer.protocol.brokers.tree.routing.pacing import take_down
from gossamer.protocol.brokers.tree.routing.pruning import (
    chosen_distance,
    critical_distances,
    enough_displaced,
    similarity_asked,
    tuples_onward,
)

Critical = tuple[CriticalDistance, ...]

RELEASE_TIMER = "release"
REVIEW_TIMER = "review"


def critical_of(state: State, entry: Entry) -> Critical | None:
    """The tuple list of a client's unsubscription; None: it goes everywhere.

    Where the largest *count* is small, "the unsubscribe operation proceeds in the traditional
    manner" (selective paper, Sec. IV-B). Incremental pruning has no counts: its brokers look at
    what is displaced. Paced pruning has no distances either.
    """
    pruning = state.settings.rules.pruning
    if pruning is Pruning.NONE:
        return None
    if pruning is Pruning.PACED:
        return ()
    largest = state.statistics.largest_count(entry.id)
    if pruning is Pruning.SELECTIVE and largest <= state.settings.small_count:
        return None
    met = [
        id_
        for name in sorted(entry.towards)
        for id_ in state.advertisements.met_by(name, entry.filter)
    ]
    return critical_distances(state.settings, met, state.statistics.distances(entry.id))


def remove(
    state: State, out: TreeOutbox, entry: Entry, critical: Critical | None, triggered: bool = False
) -> None:
    """Remove a subscription from the table, and from the links that are not to preserve it."""
    state.subscriptions.remove(entry.id)
    state.statistics.purge(entry.id)
    state.held.pop(entry.id, None)
    where_sent = [link for link in state.links_in_order() if entry.id in link.sent]
    for name in sorted(entry.towards):
        link = state.links[name]
        if entry.id not in link.sent:
            forget_quenched(state, out, link, entry.id)
    if critical is None or state.settings.rules.pruning is Pruning.NONE:
        for link in where_sent:
            withdraw(state, out, link, Unsubscription(entry.id, triggered=triggered))
    elif state.settings.rules.pruning is Pruning.PACED:
        take_down(state, out, where_sent, entry.id)
    else:
        _prune(state, out, entry.id, critical, where_sent)


def forget_quenched(state: State, out: TreeOutbox, link: Link, id_: Id) -> None:
    """A quenched subscription is not to be made known any more.

    Beyond the papers (`drop_unpaid`): an aggregate goes with the last one that it quenched.
    """
    coverer = link.sent.free(id_)
    if coverer in link.sent.aggregates and state.settings.drop_unpaid:
        assert coverer is not None
        if not link.sent.quenched_by(coverer):
            drop_aggregate(state, out, link, coverer)


def _prune(state: State, out: TreeOutbox, id_: Id, critical: Critical, links: list[Link]) -> None:
    """Algorithm 1 of both papers, its loop over neighbours; a link that gets no tuples preserves
    the subscription.

         1  forall the neighbour U of current broker do          (incremental: 7)
         ...    newlist as `tuples_onward` says
         9      if newlist != empty then                         (incremental: 13)
        10          nus <- us                                    (14, 15)
        11          nus.tuplelist <- newlist                     (16)
        12          send nus to U                                (17)

    Departs from the papers: only neighbours that the subscription was sent to are asked. Where the
    threshold is 100 % the unsubscription goes on even without tuples, for advertisements that are
    newer than it. With `drop_unpaid` nothing is preserved where nothing would be displaced.
    """
    enough = enough_displaced(
        state.settings, sum(len(link.sent.quenched_by(id_)) for link in links)
    )
    displaced = {link.name: displaced_by(state, link, id_, enough) for link in links}
    chosen = chosen_distance(state.settings, len(set[Id]().union(*displaced.values())))
    senders = _senders(state, critical)
    for link in links:
        pointless = state.settings.drop_unpaid and not displaced[link.name]
        always = chosen is None or pointless
        onward = tuples_onward(critical, senders, link.hop, None if always else chosen)
        if onward or always:
            withdraw(state, out, link, Unsubscription(id_, onward))
        else:
            _preserve(state, out, link, id_)


def _senders(state: State, critical: Critical) -> dict[Id, Hop]:
    """*advID.sender*: the last hop of every advertisement that is still there."""
    known = (state.advertisements.get(one.advertisement) for one in critical)
    return {offer.id: offer.hop for offer in known if offer is not None}


def _preserve(state: State, out: TreeOutbox, link: Link, id_: Id) -> None:
    state.counters.preserved += 1
    link.sent.preserve(id_)
    if state.settings.drop_unpaid:
        out.set_timer(REVIEW_TIMER, state.settings.review_interval)


def hold_back(state: State, entry: Entry, critical: Critical) -> None:
    """Remember an unsubscription for later; what the subscription quenches stays quenched."""
    state.counters.held += 1
    entry.held = True
    state.held[entry.id] = critical


def release(state: State, out: TreeOutbox) -> None:
    """Carry out the oldest unsubscription held back, and plan the next.

    One at a time, so that what they trigger does not congest the broker again.
    """
    if state.congested or not state.held:
        return
    id_, critical = next(iter(state.held.items()))
    remove(state, out, state.subscriptions[id_], critical)
    if state.held:
        out.set_timer(RELEASE_TIMER, state.settings.release_interval)


def review(state: State, out: TreeOutbox) -> None:
    """Give up one aggregate that brings too many false positives (beyond the papers).

    It was preserved because of what was published before; this repeats the test with what came
    since. One at a time, so that what it quenches does not come as a burst.
    """
    if not state.congested:
        _drop_worst(state, out)
    if any(link.sent.aggregates for link in state.links.values()):
        out.set_timer(REVIEW_TIMER, state.settings.review_interval)


def _drop_worst(state: State, out: TreeOutbox) -> None:
    candidates = [
        (aggregate.false_positives / aggregate.arrivals, link.name, aggregate.id)
        for link in state.links_in_order()
        for aggregate in link.sent.aggregates.values()
        if aggregate.arrivals >= state.settings.review_arrivals and aggregate.false_positives
    ]
    for share, name, id_ in sorted(candidates, reverse=True):
        link = state.links[name]
        enough = enough_displaced(state.settings, len(link.sent.quenched_by(id_)))
        displaced = displaced_by(state, link, id_, enough)
        if 1 - share < similarity_asked(state.settings, len(displaced)):
            drop_aggregate(state, out, link, id_)
            return
