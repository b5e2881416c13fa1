"""What unsubscriptions leave behind: which brokers preserve a subscription, at what cost."""

from __future__ import annotations

import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.tree.memory.settings import DISPLACED
from gossamer.protocol.content.filters import parse
from support.broker_overlay import Overlay, path, with_clients

ROW = "ABCDEFG"


def row(covering: str, **settings: object) -> Overlay:
    """A publisher at G; at A a subscription that covers others at A and C."""
    clients = {"publisher": "G", "all": "A", "near": "A", "far": "C"}
    overlay = with_clients(path(*ROW), clients, covering=covering, **settings)
    overlay.subscribe(all="x >= 0", near="x >= 0 and x < 2", far="x >= 2 and x < 10")
    return overlay


def kept_towards(overlay: Overlay) -> dict[str, list[str]]:
    """Which brokers keep a subscription for nobody, and at which neighbours."""
    return {name: list(b.aggregates()) for name, b in overlay.brokers.items() if b.aggregates()}


def tables(overlay: Overlay) -> list[int]:
    return [overlay.brokers[name].sizes().subscriptions for name in ROW]


@pytest.mark.parametrize(
    ("rule", "kept", "left"),
    [
        ("below", {"D": ["E"]}, [1, 1, 2, 2, 1, 1, 1]),
        ("at_most", {"C": ["D"]}, [1, 1, 2, 1, 1, 1, 1]),
    ],
)
def test_selective_pruning_stops_at_the_critical_broker(
    rule: str, kept: dict[str, list[str]], left: list[int]
) -> None:
    """All publications are shared, most of them at C, two hops from A: more than 75 % lie below
    3 hops, so S goes at A to D and stays at E, F and G instead of what it covers. At most 2 hops
    make the critical broker C."""
    overlay = row("selective", similarity=0.75, critical_rule=rule)
    overlay.publish(1, 2, 3, 4, 5)
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == kept
    assert tables(overlay) == left


def overlapping(displaced: str) -> Overlay:
    """At A two subscriptions that both cover a dozen others there; at G a publisher of nothing."""
    clients = {"publisher": "G", "one": "A", "other": "A", "many": "A"}
    overlay = with_clients(path(*ROW), clients, covering="incremental", displaced=displaced)
    overlay.subscribe(one="x >= 0 and x < 20", other="x >= 1 and x < 30")
    for place in range(2, 14):
        overlay.ask("many", messages.Subscribe(str(place), parse(f"x == {place}")))
    overlay.settle()
    return overlay


@pytest.mark.parametrize("displaced", DISPLACED)
def test_where_interests_overlap_few_are_triggered_and_many_are_quenched(displaced: str) -> None:
    """Incremental paper, Algorithm 1: below ten of S-bar the subscription is removed. All twelve
    are quenched by the subscription that goes, and none is triggered, as another covers them."""
    overlay = overlapping(displaced)
    overlay.ask_and_settle("one", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == ({"A": ["B"]} if displaced == "quenched" else {})
    assert overlay.total("triggered_onward") == 0
    overlay.publish(2, 25)
    assert [client for client, *_ in overlay.deliveries] == ["many", "other", "other"]
    for place in range(2, 14):
        overlay.ask("many", messages.Unsubscribe(str(place)))
    overlay.ask_and_settle("other", messages.Unsubscribe("s"))
    assert [tables(overlay), kept_towards(overlay)] == [[0] * len(ROW), {}]


def test_what_is_quenched_by_what_goes_is_examined_again() -> None:
    overlay = overlapping("quenched")
    overlay.ask_and_settle("one", messages.Unsubscribe("s"))
    assert overlay.total("examined") == 0
    overlay = overlapping("triggered")
    overlay.ask_and_settle("one", messages.Unsubscribe("s"))
    # At A once to know how many are triggered, and once to hang them below the other.
    assert overlay.brokers["A"].counters.examined == 24
    assert overlay.total("examined") == 24


def test_incremental_pruning_stops_at_the_critical_broker() -> None:
    """By its formula the same publications make a distance of 2: S stays from D on."""
    overlay = row("incremental", some_similarity=0.75, some_triggered=1)
    overlay.publish(1, 2, 3, 4, 5)
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == {"C": ["D"]}
    assert tables(overlay) == [1, 1, 2, 1, 1, 1, 1]


def test_few_triggered_subscriptions_let_incremental_pruning_remove_everything() -> None:
    overlay = row("incremental")
    overlay.publish(1, 2, 3, 4, 5)
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == {}
    assert tables(overlay) == [1, 1, 2, 2, 2, 2, 2]


def test_a_small_count_lets_selective_pruning_remove_everything() -> None:
    overlay = row("selective")
    overlay.publish(20, 21)
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == {}


def preserved(**settings: object) -> Overlay:
    overlay = row("incremental", some_similarity=0.5, some_triggered=1, **settings)
    overlay.publish(1, 2, 3, 4, 5)
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == {"C": ["D"]}
    return overlay


def test_an_aggregate_delivers_what_it_covers_and_counts_what_nobody_wants() -> None:
    overlay = preserved()
    before = len(overlay.deliveries)
    overlay.publish(1, 2, 30, 40, 50)
    assert len(overlay.deliveries) - before == 2
    ((aggregate,),) = overlay.brokers["C"].aggregates().values()
    assert (aggregate.arrivals, aggregate.false_positives) == (5, 3)
    assert overlay.brokers["C"].counters.false_positives == 3
    assert overlay.total("false_positives") == 3


def test_an_aggregate_quenches_newcomers() -> None:
    """Sec. V-F of the selective paper: preserved subscriptions hide the movement of others."""
    overlay = preserved()
    overlay.ask_and_settle("far", messages.Subscribe("new", parse("x == 7")))
    assert overlay.brokers["D"].sizes().subscriptions == 1
    overlay.publish(7)
    assert overlay.deliveries[-1][0] == "far"


def test_an_aggregate_goes_with_the_last_that_it_quenches() -> None:
    overlay = preserved()
    overlay.ask_and_settle("near", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == {"C": ["D"]}
    overlay.ask_and_settle("far", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == {}
    assert tables(overlay) == [0] * 7
    assert overlay.brokers["C"].counters.dropped == 1


def test_as_in_the_papers_an_aggregate_stays_until_its_advertisements_go() -> None:
    overlay = preserved(drop_unpaid=False)
    overlay.ask("near", messages.Unsubscribe("s"))
    overlay.ask_and_settle("far", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == {"C": ["D"]}
    overlay.ask_and_settle("publisher", messages.Unadvertise("a"))
    assert tables(overlay) == [0] * 7


def test_an_aggregate_that_brings_too_many_false_positives_gives_way_hop_by_hop() -> None:
    """Its critical broker moves towards the publisher; at each the cost is measured anew."""
    overlay = preserved(review_arrivals=4)
    overlay.publish(1, 2, 3)
    overlay.fire_timers()
    overlay.settle()
    assert kept_towards(overlay) == {"C": ["D"]}
    places = []
    for _ in range(4):
        overlay.publish(30, 40, 50, 60)
        overlay.fire_timers()
        overlay.settle()
        places.append(kept_towards(overlay))
    assert places == [{"D": ["E"]}, {"E": ["F"]}, {"F": ["G"]}, {}]
    assert tables(overlay) == [1, 1, 2, 2, 2, 2, 2]


def test_a_covering_subscription_takes_the_place_of_an_aggregate() -> None:
    overlay = preserved()
    overlay.ask_and_settle("far", messages.Subscribe("wide", parse("present(x)")))
    assert kept_towards(overlay) == {}
    assert tables(overlay)[3:] == [1] * 4


def test_a_congested_broker_holds_unsubscriptions_back_until_it_is_not() -> None:
    """Incremental paper, Sec. IV, property 3; one at a time, the next by timer."""
    overlay = row("incremental")
    overlay.ask_and_settle("all", messages.Subscribe("t", parse("x >= 1")))
    overlay.tell("A", None, messages.Congestion(1000))
    overlay.ask("all", messages.Unsubscribe("s"))
    overlay.ask("all", messages.Unsubscribe("t"))
    assert overlay.waiting() == 0
    assert overlay.brokers["A"].counters.held == 2
    overlay.publish(1, 20)
    assert [name for name, _, _ in overlay.deliveries] == ["near"]
    overlay.tell("A", None, messages.Congestion(100))
    overlay.settle()
    assert tables(overlay)[0] == 2
    overlay.fire_timers()
    overlay.settle()
    assert tables(overlay) == [1, 1, 2, 2, 2, 2, 2]


def test_a_broker_on_the_way_holds_back_and_catches_up() -> None:
    overlay = row("incremental")
    overlay.tell("C", None, messages.Congestion(1000))
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert tables(overlay) == [1, 1, 3, 1, 1, 1, 1]
    overlay.publish(1, 2, 20)
    assert sorted(name for name, _, _ in overlay.deliveries) == ["far", "near"]
    overlay.tell("C", None, messages.Congestion(0))
    overlay.settle()
    assert tables(overlay) == [1, 1, 2, 2, 2, 2, 2]


def test_other_modes_hold_nothing_back() -> None:
    overlay = row("selective")
    overlay.tell("A", None, messages.Congestion(1000))
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert tables(overlay)[0] == 1
