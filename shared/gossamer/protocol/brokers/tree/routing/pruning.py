"""Critical brokers, and how far an unsubscription goes (both papers, Sec. IV).

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

from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.tree.memory.messages import CriticalDistance
from gossamer.protocol.brokers.tree.memory.settings import (
    BELOW,
    Pruning,
    TreeSettings,
)

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
