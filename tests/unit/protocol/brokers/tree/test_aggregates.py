"""What unsubscriptions leave behind: which brokers preserve a subscription, at what cost."""

from __future__ import annotations

import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.tree.memory.settings import DISPLACED
from gossamer.protocol.content.filters import parse
from support.broker_overlay import Overlay, path, with_clients

ROW = "ABCDEFG"
ALL_SENT = [1, 1, 2, 2, 2, 2, 2]
"""Subscriptions in the tables of the row, where what the broad one covered went everywhere."""


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


CASES: dict[
    str, tuple[str, dict[str, object], tuple[int, ...], dict[str, list[str]], list[int]]
] = {
    # All publications are shared, most of them at C, two hops from A: more than 75 % lie below
    # 3 hops, so S goes at A to D and stays at E, F and G instead of what it covers. At most 2 hops
    # make the critical broker C.
    "selective, below": (
        "selective",
        {"similarity": 0.75, "critical_rule": "below"},
        (1, 2, 3, 4, 5),
        {"D": ["E"]},
        [1, 1, 2, 2, 1, 1, 1],
    ),
    "selective, at most": (
        "selective",
        {"similarity": 0.75, "critical_rule": "at_most"},
        (1, 2, 3, 4, 5),
        {"C": ["D"]},
        [1, 1, 2, 1, 1, 1, 1],
    ),
    # By its formula the same publications make a distance of 2: S stays from D on.
    "incremental": (
        "incremental",
        {"some_similarity": 0.75, "some_triggered": 1},
        (1, 2, 3, 4, 5),
        {"C": ["D"]},
        [1, 1, 2, 1, 1, 1, 1],
    ),
    "few triggered subscriptions": ("incremental", {}, (1, 2, 3, 4, 5), {}, ALL_SENT),
    "a small count": ("selective", {}, (20, 21), {}, ALL_SENT),
}


@pytest.mark.parametrize("case", CASES)
def test_pruning_stops_at_the_critical_broker_or_removes_everything(case: str) -> None:
    covering, settings, published, kept, left = CASES[case]
    overlay = row(covering, **settings)
    overlay.publish(*published)
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert (kept_towards(overlay), tables(overlay)) == (kept, left)


def overlapping(displaced: str) -> Overlay:
    """At A two subscriptions that both covered a dozen others there, of which one is gone.

    At G is a publisher of nothing.
    """
    clients = {"publisher": "G", "one": "A", "other": "A", "many": "A"}
    overlay = with_clients(path(*ROW), clients, covering="incremental", displaced=displaced)
    overlay.subscribe(one="x >= 0 and x < 20", other="x >= 1 and x < 30")
    for place in range(2, 14):
        overlay.ask("many", messages.Subscribe(str(place), parse(f"x == {place}")))
    overlay.settle()
    overlay.ask_and_settle("one", messages.Unsubscribe("s"))
    return overlay


@pytest.mark.parametrize("displaced", DISPLACED)
def test_where_interests_overlap_few_are_triggered_and_many_are_quenched(displaced: str) -> None:
    """Incremental paper, Algorithm 1: below ten of S-bar the subscription is removed. All twelve
    are quenched by the subscription that goes, and none is triggered, as another covers them."""
    overlay = overlapping(displaced)
    quenched = displaced == "quenched"
    assert kept_towards(overlay) == ({"A": ["B"]} if quenched else {})
    assert overlay.total("triggered_onward") == 0
    # At A once to know how many are triggered, and once to hang them below the other.
    examined = 0 if quenched else 24
    assert overlay.total("examined") == overlay.brokers["A"].counters.examined == examined
    overlay.publish(2, 25)
    assert [client for client, *_ in overlay.deliveries] == ["many", "other", "other"]
    for place in range(2, 14):
        overlay.ask("many", messages.Unsubscribe(str(place)))
    overlay.ask_and_settle("other", messages.Unsubscribe("s"))
    assert [tables(overlay), kept_towards(overlay)] == [[0] * len(ROW), {}]


def preserved(**settings: object) -> Overlay:
    """The row where the broad subscription is gone and C keeps it for D."""
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


def test_an_aggregate_quenches_newcomers_until_one_that_covers_it_takes_its_place() -> None:
    """Sec. V-F of the selective paper: preserved subscriptions hide the movement of others."""
    overlay = preserved()
    overlay.ask_and_settle("far", messages.Subscribe("new", parse("x == 7")))
    assert overlay.brokers["D"].sizes().subscriptions == 1
    overlay.publish(7)
    assert overlay.deliveries[-1][0] == "far"
    overlay.ask_and_settle("far", messages.Subscribe("wide", parse("present(x)")))
    assert kept_towards(overlay) == {}
    assert tables(overlay)[3:] == [1] * 4


@pytest.mark.parametrize("drops", [True, False], ids=["unpaid", "as in the papers"])
def test_an_aggregate_goes_with_the_last_that_it_quenches_or_with_its_advertisements(
    drops: bool,
) -> None:
    overlay = preserved(drop_unpaid=drops)
    overlay.ask_and_settle("near", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == {"C": ["D"]}
    overlay.ask_and_settle("far", messages.Unsubscribe("s"))
    assert kept_towards(overlay) == ({} if drops else {"C": ["D"]})
    assert overlay.brokers["C"].counters.dropped == drops
    if not drops:
        overlay.ask_and_settle("publisher", messages.Unadvertise("a"))
    assert tables(overlay) == [0] * 7


def test_an_aggregate_that_brings_too_many_false_positives_gives_way_hop_by_hop() -> None:
    """Its critical broker moves towards the publisher; at each the cost is measured anew."""
    overlay = preserved(review_arrivals=4)
    places = []
    for values in ((1, 2, 3), *[(30, 40, 50, 60)] * 4):
        overlay.publish(*values)
        overlay.fire_timers()
        overlay.settle()
        places.append(kept_towards(overlay))
    assert places == [{"C": ["D"]}, {"D": ["E"]}, {"E": ["F"]}, {"F": ["G"]}, {}]
    assert tables(overlay) == ALL_SENT


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
    assert tables(overlay) == ALL_SENT


def test_a_broker_on_the_way_holds_back_and_catches_up() -> None:
    overlay = row("incremental")
    overlay.tell("C", None, messages.Congestion(1000))
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert tables(overlay) == [1, 1, 3, 1, 1, 1, 1]
    overlay.publish(1, 2, 20)
    assert sorted(name for name, _, _ in overlay.deliveries) == ["far", "near"]
    overlay.tell("C", None, messages.Congestion(0))
    overlay.settle()
    assert tables(overlay) == ALL_SENT


def test_other_modes_hold_nothing_back() -> None:
    overlay = row("selective")
    overlay.tell("A", None, messages.Congestion(1000))
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert tables(overlay)[0] == 1
