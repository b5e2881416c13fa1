"""Critical distances and Algorithm 1, on the worked examples of both pruning papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.protocol.brokers.tree.memory.messages import CriticalDistance
from gossamer.protocol.brokers.tree.routing import pruning
from gossamer.protocol.brokers.tree.routing.pruning import (
    chosen_distance,
    incremental_distance,
    selective_distance,
    tuples_onward,
)

SELECTIVE = TreeSettings(covering="selective")
BELOW = TreeSettings(covering="selective", critical_rule="below")
INCREMENTAL = TreeSettings(covering="incremental")
A1, A2, A3 = Id("P1", 1), Id("P2", 1), Id("P3", 1)
U, V, W = map(neighbour, "UVW")

TABLE_1 = (1, 5, 1, 1, 7)
"""Distances of Table I of the incremental paper."""
SEVEN_TENTHS = [1] * 7 + [2] * 3
"""0.7 as a float is less than seven tenths, which must not make a hop of difference."""


@pytest.mark.parametrize(
    ("distance", "distances", "share", "expected"),
    [
        (incremental_distance, TABLE_1, 0.8, 5),
        # Sec. IV-B: at the broker two hops away, phi is 0.6; so a threshold of 0.6 is met there.
        (incremental_distance, TABLE_1, 0.6, 1),
        (incremental_distance, TABLE_1, 0.61, 5),
        # The paper says 10 there (Sec. IV-C), which is no distance of its table; by its equation 3,
        # 90 % of five publications are all of them, and the farthest is 7 hops away.
        (incremental_distance, TABLE_1, 0.9, 7),
        (incremental_distance, SEVEN_TENTHS, 0.7, 1),
        (incremental_distance, [], 0.9, 0),
        (selective_distance, [6] * 18 + [9] * 2, 0.85, 7),
        (selective_distance, [6] * 17 + [9] * 3, 0.85, 10),  # the threshold has to be exceeded
        (selective_distance, SEVEN_TENTHS, 0.7, 3),
        (selective_distance, [1, 2, 3], 1.0, pruning.EVERYWHERE),
        (selective_distance, [], 0.9, 0),
    ],
)
def test_the_critical_distance_is_where_enough_publications_are_shared(
    distance: Callable[[Sequence[int], float], int],
    distances: Sequence[int],
    share: float,
    expected: int,
) -> None:
    assert distance(distances, share) == expected


def test_at_most_is_never_farther_than_below_and_keeps_the_threshold() -> None:
    """Equation 3 of the incremental paper: phi(x) counts distances of at most x."""
    for distances in ([6] * 18 + [9] * 2, [1, 1, 2, 3], [0], [2] * 9 + [5], list(range(20))):
        for share in (0.5, 0.85, 0.9):
            nearer = incremental_distance(distances, share)
            assert nearer < selective_distance(distances, share)
            assert sum(one <= nearer for one in distances) >= share * len(distances)
            assert sum(one <= nearer - 1 for one in distances) < share * len(distances)


def test_every_advertisement_that_is_met_has_a_tuple() -> None:
    distances = {A1: [6, 2, 2, 6, 7]}
    for chosen, hops in ((BELOW, 8), (SELECTIVE, 7)):
        found = pruning.critical_distances(chosen, [A1, A2], distances)
        assert found == (CriticalDistance(A1, (hops,)), CriticalDistance(A2, (0,)))
    found = pruning.critical_distances(INCREMENTAL, [A1], {A1: TABLE_1})
    assert found == (CriticalDistance(A1, (1, 7)),)


def test_thresholds_go_by_the_number_of_triggered_subscriptions_in_incremental_pruning() -> None:
    """60 % from lg M = 3.7, 90 % from lg M = 1, else 100 % (incremental paper, Sec. IV-C)."""
    asked = {
        count: pruning.similarity_asked(INCREMENTAL, count) for count in (0, 9, 10, 5011, 5012)
    }
    assert asked == {0: 1.0, 9: 1.0, 10: 0.9, 5011: 0.9, 5012: 0.6}
    assert [chosen_distance(INCREMENTAL, count) for count in asked] == [None, None, 1, 1, 0]
    assert {chosen_distance(SELECTIVE, count) for count in (0, 10, 10_000)} == {0}
    assert {pruning.similarity_asked(SELECTIVE, count) for count in (0, 10, 10_000)} == {0.9}


def test_no_more_triggered_subscriptions_are_counted_than_decide() -> None:
    for quenched in (0, 9, 10, 5011, 5012, 100_000):
        for triggered in {min(quenched, most) for most in (0, 9, 10, 11, 5011, 5012, 100_000)}:
            counted = min(triggered, pruning.enough_displaced(INCREMENTAL, quenched))
            assert chosen_distance(INCREMENTAL, counted) == chosen_distance(INCREMENTAL, triggered)
    assert pruning.enough_displaced(SELECTIVE, 100_000) == 1


def test_algorithm_1_goes_on_where_an_advertisement_has_hops_left() -> None:
    """Lines 4 to 8: tuples of the neighbour's advertisements with pruneDis > 0, one less each."""
    senders = {A1: U, A2: U, A3: V}
    critical = tuple(CriticalDistance(id_, (far,)) for id_, far in ((A1, 2), (A2, 0), (A3, 1)))
    assert tuples_onward(critical, senders, U, 0) == (CriticalDistance(A1, (1,)),)
    assert tuples_onward(critical, senders, V, 0) == (CriticalDistance(A3, (0,)),)
    assert tuples_onward(critical, senders, W, 0) == ()
    # Never towards the broker's own publishers, nor on what nobody advertises.
    assert tuples_onward((CriticalDistance(A1, (3,)),), {A1: client("U")}, U, 0) == ()
    assert tuples_onward((CriticalDistance(A1, (3,)),), {}, U, 0) == ()


def test_incremental_tuples_count_both_distances_down_and_ask_the_chosen_one() -> None:
    """Lines 11 and 12, with pruneDis as lines 1 to 6 say; infinity for few triggered ones."""
    critical = (CriticalDistance(A1, (0, 3)),)
    lower = (CriticalDistance(A1, (-1, 2)),)
    for chosen, expected in ((0, ()), (1, lower), (None, lower)):
        assert tuples_onward(critical, {A1: U}, U, chosen) == expected


def test_the_one_distance_of_selective_pruning_stands_for_both_of_incremental() -> None:
    """Brokers of one overlay may be set differently."""
    critical = (CriticalDistance(A1, (2,)), CriticalDistance(A2, (0,)))
    for chosen in (0, 1):
        onward = tuples_onward(critical, {A1: U, A2: U}, U, chosen)
        assert onward == (CriticalDistance(A1, (1,)),)
