"""What unsubscriptions leave behind, at what cost, and the statistics that brokers keep for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Effect, Send
from gossamer.protocol.brokers.core.messages import Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree import messages as t
from gossamer.protocol.brokers.tree import tables as memory_marks
from gossamer.protocol.brokers.tree.settings import DISPLACED, Record, Statistics
from gossamer.protocol.content.filters import Filter, parse
from support.broker_overlay import Overlay, path, with_clients
from support.broker_overlay import row as in_a_row
from support.plain_index import PlainIndex

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
    return {name: list(b.aggregates()) for name, b in overlay.brokers.items() if b.aggregates()}


def tables(overlay: Overlay) -> list[int]:
    return [overlay.brokers[name].sizes().subscriptions for name in ROW]


NEAR, FAR = {"similarity": 0.75}, {"some_similarity": 0.75, "some_triggered": 1}
AT_C, AT_D = [1, 1, 2, 1, 1, 1, 1], [1, 1, 2, 2, 1, 1, 1]


@pytest.mark.parametrize(
    ("covering", "settings", "published", "kept", "left"),
    [
        # All publications are shared, most of them at C, two hops from A: more than 75 % lie below
        # 3 hops, so S goes at A to D and stays at E, F and G instead of what it covers. At most 2
        # hops make the critical broker C.
        ("selective", {**NEAR, "critical_rule": "below"}, range(1, 6), {"D": ["E"]}, AT_D),
        ("selective", {**NEAR, "critical_rule": "at_most"}, range(1, 6), {"C": ["D"]}, AT_C),
        # By its formula the same publications make a distance of 2: S stays from D on.
        ("incremental", FAR, range(1, 6), {"C": ["D"]}, AT_C),
        ("incremental", {}, range(1, 6), {}, ALL_SENT),
        ("selective", {}, (20, 21), {}, ALL_SENT),
    ],
    ids=["below", "at most", "incremental", "few triggered subscriptions", "a small count"],
)
def test_pruning_stops_at_the_critical_broker_or_removes_everything(
    covering: str,
    settings: dict[str, Any],
    published: Iterable[int],
    kept: dict[str, list[str]],
    left: list[int],
) -> None:
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


def test_an_aggregate_delivers_what_it_covers_and_quenches_newcomers() -> None:
    overlay = preserved()
    before = len(overlay.deliveries)
    overlay.publish(1, 2, 30, 40, 50)
    assert len(overlay.deliveries) - before == 2
    ((aggregate,),) = overlay.brokers["C"].aggregates().values()
    assert (aggregate.arrivals, aggregate.false_positives) == (5, 3)
    assert overlay.brokers["C"].counters.false_positives == 3
    assert overlay.total("false_positives") == 3
    # Sec. V-F of the selective paper: preserved subscriptions hide the movement of others.
    overlay.ask_and_settle("far", messages.Subscribe("new", parse("x == 7")))
    assert overlay.brokers["D"].sizes().subscriptions == 1
    overlay.publish(7)
    assert overlay.deliveries[-1][0] == "far"
    overlay.ask_and_settle("far", messages.Subscribe("wide", parse("present(x)")))
    assert kept_towards(overlay) == {}
    assert tables(overlay)[3:] == [1] * 4  # what covers the aggregate has taken its place


@pytest.mark.parametrize("drops", [True, False], ids=["unpaid", "as in the papers"])
def test_an_aggregate_goes_with_the_last_it_quenches_or_its_advertisements(drops: bool) -> None:
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


def test_a_congested_broker_holds_unsubscriptions_back_in_incremental_pruning_alone() -> None:
    """Incremental paper, Sec. IV, property 3; one at a time, the next by timer."""
    overlay = row("incremental")
    overlay.ask_and_settle("all", messages.Subscribe("t", parse("x >= 1")))
    overlay.tell("A", None, messages.Congestion(1000))
    overlay.ask("all", messages.Unsubscribe("s"))
    overlay.ask("all", messages.Unsubscribe("t"))
    assert (overlay.waiting(), overlay.brokers["A"].counters.held) == (0, 2)
    overlay.publish(1, 20)
    assert [name for name, _, _ in overlay.deliveries] == ["near"]
    overlay.tell("A", None, messages.Congestion(100))
    overlay.settle()
    assert tables(overlay)[0] == 2
    overlay.fire_timers()
    overlay.settle()
    assert tables(overlay) == ALL_SENT
    overlay = row("selective")
    overlay.tell("A", None, messages.Congestion(1000))
    overlay.ask_and_settle("all", messages.Unsubscribe("s"))
    assert tables(overlay)[0] == 1


# What brokers remember: distances and counts of publications, and marks of neighbours.

S1 = Id("I", 1)


def rows_at(overlay: Overlay, broker: str) -> list[tuple[int, int]]:
    """Distance and count of what a broker's statistics hold for its first subscription."""
    rows: Any = overlay.brokers[broker].dump()["statistics"]
    first = min(entry[0] for entry in rows)
    return [(entry[3], entry[4]) for entry in rows if entry[0] == first]


def headers(overlay: Overlay) -> dict[str, tuple[int, int]]:
    return {to: (one.distance, one.count) for one, _, to, _ in overlay.arrivals}


def figure_4_selective() -> Overlay:
    """Brokers A to I in a row, J and K beside C; subscribers at I, K and G."""
    edges = [*path(*"ABCDEFGHI"), *path("C", "J", "K")]
    clients = {"publisher": "A", "one": "I", "two": "K", "three": "G"}
    return with_clients(edges, clients, covering="selective")


def figure_4_incremental() -> Overlay:
    """Brokers B1 to B8 in a row, B11 beside B3; subscribers at B8, B11 and B7."""
    edges = [*path(*(f"B{i}" for i in range(1, 9))), ("B3", "B11")]
    clients = {"publisher": "B1", "s": "B8", "s1": "B11", "s2": "B7"}
    return with_clients(edges, clients, covering="incremental")


def test_selective_paper_figure_4_headers_and_table_1_rows() -> None:
    """A starts at zero, B adds a hop, C and G match twice; two hops and one at K, two and two at
    I. A header shows what the broker before has made of it."""
    overlay = figure_4_selective()
    overlay.subscribe(one="x >= 0", two="x >= 1", three="x >= 2")
    overlay.publish(5)
    seen = headers(overlay)
    assert [seen[broker] for broker in "BCDJ"] == [(0, 0), (1, 0), (0, 1), (0, 1)]
    assert rows_at(overlay, "K") == [(2, 1)]
    assert seen["H"] == (0, 2)
    assert rows_at(overlay, "I") == [(2, 2)]
    # Shared with K only, a publication reaches I with a distance of 6 and a count of 1; shared
    # with G as well, with 2 and 2; shared at B, with 7 and 1.
    overlay = figure_4_selective()
    overlay.attach("four", "B")
    overlay.subscribe(
        one="present(x)", two="x >= 0 and x < 20", three="x >= 10 and x < 20", four="x >= 30"
    )
    overlay.publish(1, 11, 12, 2, 31)
    assert rows_at(overlay, "I") == [(6, 1), (2, 2), (2, 2), (6, 1), (7, 1)]


def test_incremental_paper_figure_4_distance_and_table_1_distances() -> None:
    """B3 matches S and S1, B7 matches S and S2: three hops at B6, one at the host broker B8."""
    overlay = figure_4_incremental()
    overlay.subscribe(s="x >= 0", s1="x >= 1", s2="x >= 2")
    overlay.publish(5)
    assert headers(overlay)["B7"][0] == 3
    assert rows_at(overlay, "B8") == [(1, 2)]
    # Shared at B7, at B3, and never: 1, 5 and 7 hops at B8.
    overlay = figure_4_incremental()
    overlay.subscribe(s="present(x)", s1="x == 5", s2="x == 1")
    overlay.publish(1, 5, 1, 1, 7)
    assert [distance for distance, _ in rows_at(overlay, "B8")] == [1, 5, 1, 1, 7]


def test_only_the_host_broker_keeps_statistics_where_it_prunes_and_purges_them() -> None:
    overlay = figure_4_selective()
    overlay.subscribe(one="present(x)")
    overlay.publish(5)
    kept = {name: broker.sizes().statistics for name, broker in overlay.brokers.items()}
    assert {name for name, entries in kept.items() if entries} == {"I"}
    overlay.ask("one", messages.Unsubscribe("s"))
    assert overlay.brokers["I"].sizes().statistics == 0
    overlay = in_a_row("AB", covering="active")
    overlay.publish(5)
    assert (len(overlay.deliveries), overlay.brokers["B"].sizes().statistics) == (1, 0)


def test_the_window_slides_by_time_and_drops_the_oldest_and_what_was_purged() -> None:
    statistics = Statistics(window=10, most=100)
    for time in (0, 5, 11):
        statistics.record(S1, Record(time, Id("A", 1), time, time))
    assert statistics.distances(S1) == {Id("A", 1): [5, 11]}
    statistics.expire(30)
    assert (len(statistics), statistics.largest_count(S1)) == (0, 0)
    bounded, other = Statistics(window=1000, most=3), Id("I", 2)
    for time, subscription in enumerate((S1, other, S1, other)):
        bounded.record(subscription, Record(time, Id("A", 1), time, 0))
    assert bounded.distances(S1) == {Id("A", 1): [2]}
    assert bounded.distances(other) == {Id("A", 1): [1, 3]}
    statistics = Statistics(window=1000, most=4)
    for number in range(20):
        subscription = Id("I", 100 + number)
        statistics.record(S1, Record(number, Id("A", 1), number, 0))
        statistics.record(subscription, Record(number, Id("A", 1), 1, 0))
        statistics.purge(subscription)
    assert statistics.distances(S1) == {Id("A", 1): [17, 18, 19]}
    assert [entry.distance for _, entry in statistics.rows()] == [17, 18, 19]
    assert len(statistics) == 3


NAMES = ("P", "Q", "R")


def test_neighbours_have_marks_of_their_own_until_none_are_left() -> None:
    marks = memory_marks.Marks()
    names = [f"N{number}" for number in range(memory_marks.OWN_MARKS + 2)]
    for name in names:
        marks.assign(name)
    own, sharing = names[: memory_marks.OWN_MARKS], names[memory_marks.OWN_MARKS :]
    for ask, shared, every in (
        (lambda name: marks.came(neighbour(name)), memory_marks.LISTED, memory_marks.ALL_CAME),
        (marks.sent, memory_marks.SENT_SOMEWHERE, memory_marks.ALL_SENT),
        (marks.offered, memory_marks.OFFERED_SOMEWHERE, memory_marks.ALL_OFFERED),
    ):
        given = {name: ask(name) for name in own}
        assert len(set(given.values())) == memory_marks.OWN_MARKS
        assert all(mark & every == mark and mark != shared for mark in given.values())
        assert [ask(name) for name in sharing] == [shared, shared]
        assert list(marks.names(given["N1"] | given["N5"] | shared)) == ["N1", "N5"]
    assert marks.came(client("N1")) == memory_marks.LISTED
    # Those of a neighbour that is gone go to the next.
    freed = marks.sent("N1")
    marks.forget("N1")
    assert marks.sent("N1") == memory_marks.SENT_SOMEWHERE
    marks.assign("next")
    assert (marks.sent("next"), list(marks.names(freed))) == (freed, ["next"])


class CountingIndex(PlainIndex):
    asked = 0

    def covering(self, wanted: Filter, marked: int) -> set[int]:
        CountingIndex.asked += 1
        return super().covering(wanted, marked)


def hub() -> TreeBroker:
    broker = TreeBroker("B", TreeSettings(covering="active"), new_index=CountingIndex)
    for name in NAMES:
        broker.handle(0, None, messages.NeighbourUp(name))
        offer = t.Advertisement(Id(name, 1), parse("present(x)"))
        broker.handle(0, neighbour(name), t.Frame(1, 1, t.Synchronise((offer,), ())))
    broker.handle(0, client("c"), messages.Attach())
    return broker


def subscribed(effects: list[Effect]) -> list[str]:
    return [
        effect.neighbour
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.message.message, t.Subscription)
    ]


def test_links_are_asked_about_together_and_answered_each_for_itself() -> None:
    broker = hub()
    wide = t.Subscription(Id("P", 2), parse("x >= 1"))
    assert subscribed(broker.handle(0, neighbour("P"), t.Frame(1, 2, wide))) == ["Q", "R"]
    CountingIndex.asked = 0
    asked = messages.Subscribe("s", parse("x >= 2"))
    assert subscribed(broker.handle(0, client("c"), asked)) == ["P"]
    assert CountingIndex.asked == 1
    effects = broker.handle(0, neighbour("P"), t.Frame(1, 3, t.Unsubscription(wide.id)))
    assert subscribed(effects) == ["Q", "R"]
    # What is answered for a link is asked again once it sent something.
    broker = hub()
    for label, receivers in (("s", list(NAMES)), ("t", [])):
        effects = broker.handle(0, client("c"), messages.Subscribe(label, parse("x >= 1")))
        assert subscribed(effects) == receivers
