"""Critical distances and Algorithm 1, on the worked examples of both pruning papers."""

from __future__ import annotations

from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.protocol.brokers.tree.memory.messages import CriticalDistance
from gossamer.protocol.brokers.tree.routing.pruning import (
    EVERYWHERE,
    chosen_distance,
    critical_distances,
    enough_displaced,
    incremental_distance,
    selective_distance,
    similarity_asked,
    tuples_onward,
)

SELECTIVE = TreeSettings(covering="selective")
BELOW = TreeSettings(covering="selective", critical_rule="below")
INCREMENTAL = TreeSettings(covering="incremental")
A1, A2, A3 = Id("P1", 1), Id("P2", 1), Id("P3", 1)

TABLE_1 = (1, 5, 1, 1, 7)
"""Distances of Table I of the incremental paper."""


def test_incremental_paper_table_1_gives_5_hops_at_80_percent() -> None:
    assert incremental_distance(TABLE_1, 0.8) == 5


def test_incremental_paper_table_1_gives_1_hop_at_60_percent() -> None:
    assert incremental_distance(TABLE_1, 0.6) == 1


def test_incremental_paper_table_1_gives_the_largest_distance_at_90_percent() -> None:
    """The paper says 10 there (Sec. IV-C), which is no distance of its table; by its equation 3,
    90 % of five publications are all of them, and the farthest is 7 hops away."""
    assert incremental_distance(TABLE_1, 0.9) == 7


def test_incremental_similarity_two_hops_away_is_60_percent() -> None:
    """Sec. IV-B: at the broker two hops away, phi is 0.6; so a threshold of 0.6 is met there."""
    assert incremental_distance(TABLE_1, 0.6) <= 2 < incremental_distance(TABLE_1, 0.61)


def test_selective_paper_more_than_85_percent_below_7_make_7_hops() -> None:
    distances = [6] * 18 + [9] * 2
    assert selective_distance(distances, 0.85) == 7


def test_selective_threshold_has_to_be_exceeded() -> None:
    distances = [6] * 17 + [9] * 3
    assert selective_distance(distances, 0.85) == 10


def test_at_most_is_never_farther_than_below_and_keeps_the_threshold() -> None:
    """Equation 3 of the incremental paper: phi(x) counts distances of at most x."""
    for distances in ([6] * 18 + [9] * 2, [1, 1, 2, 3], [0], [2] * 9 + [5], list(range(20))):
        for share in (0.5, 0.85, 0.9):
            nearer = incremental_distance(distances, share)
            assert nearer < selective_distance(distances, share)
            assert sum(one <= nearer for one in distances) >= share * len(distances)
            assert sum(one <= nearer - 1 for one in distances) < share * len(distances)


def test_selective_threshold_of_100_percent_preserves_nothing() -> None:
    assert selective_distance([1, 2, 3], 1.0) == EVERYWHERE


def test_without_publications_everything_is_preserved() -> None:
    assert selective_distance([], 0.9) == 0
    assert incremental_distance([], 0.9) == 0


def test_thresholds_are_decimal_fractions_not_the_floats_below_them() -> None:
    """0.7 as a float is less than seven tenths, which must not make a hop of difference."""
    assert incremental_distance([1] * 7 + [2] * 3, 0.7) == 1
    assert selective_distance([1] * 7 + [2] * 3, 0.7) == 3


def test_every_advertisement_that_is_met_has_a_tuple() -> None:
    distances = {A1: [6, 2, 2, 6, 7]}
    for chosen, hops in ((BELOW, 8), (SELECTIVE, 7)):
        assert critical_distances(chosen, [A1, A2], distances) == (
            CriticalDistance(A1, (hops,)),
            CriticalDistance(A2, (0,)),
        )
    assert critical_distances(INCREMENTAL, [A1], {A1: TABLE_1}) == (CriticalDistance(A1, (1, 7)),)


def test_thresholds_go_by_the_number_of_triggered_subscriptions() -> None:
    """60 % from lg M = 3.7, 90 % from lg M = 1, else 100 % (incremental paper, Sec. IV-C)."""
    asked = {count: similarity_asked(INCREMENTAL, count) for count in (0, 9, 10, 5011, 5012)}
    assert asked == {0: 1.0, 9: 1.0, 10: 0.9, 5011: 0.9, 5012: 0.6}
    assert [chosen_distance(INCREMENTAL, count) for count in asked] == [None, None, 1, 1, 0]


def test_selective_pruning_has_one_threshold_whatever_is_triggered() -> None:
    assert {chosen_distance(SELECTIVE, count) for count in (0, 10, 10_000)} == {0}
    assert {similarity_asked(SELECTIVE, count) for count in (0, 10, 10_000)} == {0.9}


def test_no_more_triggered_subscriptions_are_counted_than_decide() -> None:
    for quenched in (0, 9, 10, 5011, 5012, 100_000):
        for triggered in {min(quenched, most) for most in (0, 9, 10, 11, 5011, 5012, 100_000)}:
            counted = min(triggered, enough_displaced(INCREMENTAL, quenched))
            assert chosen_distance(INCREMENTAL, counted) == chosen_distance(INCREMENTAL, triggered)
    assert enough_displaced(SELECTIVE, 100_000) == 1


def test_algorithm_1_goes_on_where_an_advertisement_has_hops_left() -> None:
    """Lines 4 to 8: tuples of the neighbour's advertisements with pruneDis > 0, one less each."""
    senders = {A1: neighbour("U"), A2: neighbour("U"), A3: neighbour("V")}
    critical = tuple(CriticalDistance(id_, (far,)) for id_, far in ((A1, 2), (A2, 0), (A3, 1)))
    assert tuples_onward(critical, senders, neighbour("U"), 0) == (CriticalDistance(A1, (1,)),)
    assert tuples_onward(critical, senders, neighbour("V"), 0) == (CriticalDistance(A3, (0,)),)
    assert tuples_onward(critical, senders, neighbour("W"), 0) == ()


def test_algorithm_1_never_goes_on_towards_the_broker_s_own_publishers() -> None:
    critical = (CriticalDistance(A1, (3,)),)
    assert tuples_onward(critical, {A1: client("U")}, neighbour("U"), 0) == ()
    assert tuples_onward(critical, {}, neighbour("U"), 0) == ()


def test_incremental_tuples_count_both_distances_down_and_ask_the_chosen_one() -> None:
    """Lines 11 and 12, with pruneDis as lines 1 to 6 say; infinity for few triggered ones."""
    senders = {A1: neighbour("U")}
    critical = (CriticalDistance(A1, (0, 3)),)
    lower = (CriticalDistance(A1, (-1, 2)),)
    assert tuples_onward(critical, senders, neighbour("U"), 0) == ()
    assert tuples_onward(critical, senders, neighbour("U"), 1) == lower
    assert tuples_onward(critical, senders, neighbour("U"), None) == lower


def test_the_one_distance_of_selective_pruning_stands_for_both_of_incremental() -> None:
    """Brokers of one overlay may be set differently."""
    critical = (CriticalDistance(A1, (2,)), CriticalDistance(A2, (0,)))
    senders = {A1: neighbour("U"), A2: neighbour("U")}
    for chosen in (0, 1):
        onward = tuples_onward(critical, senders, neighbour("U"), chosen)
        assert onward == (CriticalDistance(A1, (1,)),)
