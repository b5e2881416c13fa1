"""Critical brokers, and unsubscription (both papers, Sec. IV).

An unsubscription starts at the subscriber host broker of S and follows the tree of S. Towards each
publisher the similarity between S and the subscriptions that its removal triggers never falls
(Property 3), so there is a *critical broker* from which on S is preserved as their imprecise
aggregate. Its distance in hops is known where the statistics are and travels with the
unsubscription.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.tree import covering
from gossamer.protocol.brokers.tree.messages import CriticalDistance, Unsubscription
from gossamer.protocol.brokers.tree.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.settings import BELOW, Pruning, TreeSettings
from gossamer.protocol.brokers.tree.state import Link, State
from gossamer.protocol.brokers.tree.tables import Entry

EVERYWHERE: Final = 1 << 30
"""A critical distance beyond any overlay: nothing is preserved."""

MANY, SOME = 0, 1
"""Places of *pruneDis1* and *pruneDis2* of incremental pruning."""


def selective_distance(distances: Sequence[int], threshold: float) -> int:
    """The critical distance by the selective paper's words, in hops (Sec. IV-B there).

    "If the threshold of similarity is 0.85, then for advertisement A, if the distance value of more
    than 85 percent of the publications from A is less than 7, then the critical broker of A is 7
    hops away": the least x such that more than the threshold's share lies below x.

    Without publications nothing is lost by preserving everything, and the distance is 0.
    """
    if not distances:
        return 0
    at_least = math.floor(_exact(threshold) * len(distances)) + 1
    if at_least > len(distances):
        return EVERYWHERE
    return sorted(distances)[at_least - 1] + 1


def incremental_distance(distances: Sequence[int], threshold: float) -> int:
    """The critical distance of incremental pruning, in hops (incremental paper, Sec. IV-B).

    With `critical_rule` "at_most" that of selective pruning too. The least mu for which phi(mu),
    the share of publications with a distance of at most mu (its equation 3), reaches the threshold.
    Table I there: 5 at 80 %.

    Without publications nothing is lost by preserving everything, and the distance is 0.
    """
    if not distances:
        return 0
    at_least = max(math.ceil(_exact(threshold) * len(distances)), 1)
    return sorted(distances)[at_least - 1]


def critical_distances(
    settings: TreeSettings, met: Iterable[Id], distances: Mapping[Id, Sequence[int]]
) -> tuple[CriticalDistance, ...]:
    """The tuple list of an unsubscription, made where the statistics are.

    Departs from the papers: every advertisement that the subscription meets is listed, also those
    without publications in the window, so that "always removed" (100 %) reaches them too.

    Args:
        settings: with the thresholds.
        met: the advertisements that the subscription meets.
        distances: of its publications, by advertisement.
    """
    if settings.rules.pruning is Pruning.SELECTIVE:
        distance = selective_distance if settings.critical_rule == BELOW else incremental_distance
        return tuple(
            CriticalDistance(id_, (distance(distances.get(id_, ()), settings.similarity),))
            for id_ in met
        )
    thresholds = (settings.many_similarity, settings.some_similarity)
    return tuple(
        CriticalDistance(
            id_, tuple(incremental_distance(distances.get(id_, ()), share) for share in thresholds)
        )
        for id_ in met
    )


def chosen_distance(settings: TreeSettings, displaced: int) -> int | None:
    """Which of the critical distances counts at a broker; None: none, S is removed.

    Incremental paper, Algorithm 1, lines 1 to 6, with |S| the number of displaced subscriptions
    (`TreeSettings.displaced`):

        1  if lg(|S|) >= 3.7 then
        2      pruneDis = pruneDis1
        3  if 3.7 > lg(|S|) >= 1 then
        4      pruneDis = pruneDis2
        5  if 1 > lg(|S|) then
        6      pruneDis = +infinity

    Selective pruning has one distance whatever is displaced.
    """
    if settings.rules.pruning is Pruning.SELECTIVE or displaced >= settings.many_triggered:
        return MANY
    return SOME if displaced >= settings.some_triggered else None


def enough_displaced(settings: TreeSettings, quenched: int) -> int:
    """How many displaced subscriptions have to be counted: more would decide nothing else.

    Args:
        settings: with the limits.
        quenched: the most that there can be.
    """
    if settings.rules.pruning is Pruning.SELECTIVE:
        return 1
    many = quenched >= settings.many_triggered
    return settings.many_triggered if many else settings.some_triggered


def tuples_onward(
    critical: Iterable[CriticalDistance],
    senders: Mapping[Id, Hop],
    neighbour: Hop,
    chosen: int | None,
) -> tuple[CriticalDistance, ...]:
    """The tuple list for a neighbour U; none: U keeps the subscription.

    The inner loop of Algorithm 1 of the selective paper:

        2  generate a new tuplelist newlist
        3  newlist <- empty
        4  forall the tuples {advID, pruneDis} in unsub.tuplelist do
        5      if advID.sender = U and pruneDis > 0 then
        6          newlist <- newlist + {advID, pruneDis - 1}

    In the incremental paper these are lines 8 to 12, with the distance that `chosen_distance` says
    in the condition and both distances falling. It names publishers where this names
    advertisements: those have a last hop in the advertisement table, publishers have none. Brokers
    of one overlay may prune in both ways: the one distance of selective pruning stands for both.
    """
    return tuple(
        closer
        for closer in _tuples_towards(critical, senders, neighbour)
        if chosen is None or closer.distances[min(chosen, len(closer.distances) - 1)] >= 0
    )


def _tuples_towards(
    critical: Iterable[CriticalDistance], senders: Mapping[Id, Hop], neighbour: Hop
) -> tuple[CriticalDistance, ...]:
    """The tuples of the advertisements from a neighbour, one hop closer to their critical
    brokers."""
    return tuple(
        CriticalDistance(one.advertisement, tuple(distance - 1 for distance in one.distances))
        for one in critical
        if senders.get(one.advertisement) == neighbour
    )


def similarity_asked(settings: TreeSettings, displaced: int) -> float:
    """The share of wanted publications below which a subscription is not preserved."""
    chosen = chosen_distance(settings, displaced)
    if settings.rules.pruning is Pruning.SELECTIVE:
        return settings.similarity
    if chosen is None:
        return 1.0
    return settings.many_similarity if chosen == MANY else settings.some_similarity


def _exact(threshold: float) -> Fraction:
    return Fraction(str(threshold))


# Unsubscription: which links are told, and which keep the subscription as an aggregate.
#
# The handler of both papers' Algorithm 1; `pruning` has its formulas.

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
            covering.withdraw(state, out, link, Unsubscription(entry.id, triggered=triggered))
    elif state.settings.rules.pruning is Pruning.PACED:
        covering.take_down(state, out, where_sent, entry.id)
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
            covering.drop_aggregate(state, out, link, coverer)


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
    displaced = {link.name: covering.displaced_by(state, link, id_, enough) for link in links}
    chosen = chosen_distance(state.settings, len(set[Id]().union(*displaced.values())))
    senders = _senders(state, critical)
    for link in links:
        pointless = state.settings.drop_unpaid and not displaced[link.name]
        always = chosen is None or pointless
        onward = tuples_onward(critical, senders, link.hop, None if always else chosen)
        if onward or always:
            covering.withdraw(state, out, link, Unsubscription(id_, onward))
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
        displaced = covering.displaced_by(state, link, id_, enough)
        if 1 - share < similarity_asked(state.settings, len(displaced)):
            covering.drop_aggregate(state, out, link, id_)
            return
