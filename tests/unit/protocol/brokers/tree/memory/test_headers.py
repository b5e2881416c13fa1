"""*Distance* and *count* as publications travel, on the figures of both pruning papers."""

from __future__ import annotations

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.protocol.brokers.tree.memory.statistics import Record, Statistics
from gossamer.protocol.content.filters import parse
from support.broker_overlay import Overlay, path

S1 = Id("I", 1)


def rows_at(overlay: Overlay, broker: str, subscription: int = 0) -> list[tuple[int, int]]:
    """Distance and count of what a broker's statistics hold for its n-th subscription."""
    data = overlay.brokers[broker].dump()
    ids = sorted({tuple(row[0]) for row in data["statistics"]})  # type: ignore[attr-defined]
    return [
        (row[3], row[4])
        for row in data["statistics"]  # type: ignore[attr-defined]
        if tuple(row[0]) == ids[subscription]
    ]


def headers(overlay: Overlay) -> dict[str, tuple[int, int]]:
    """Distance and count that reached each broker in the header."""
    return {to: (one.distance, one.count) for one, _, to, _ in overlay.arrivals}


def figure_4_selective() -> Overlay:
    """Brokers A to I in a row, J and K beside C; subscribers at I, K and G."""
    edges = [*path(*"ABCDEFGHI"), *path("C", "J", "K")]
    overlay = Overlay(edges, TreeSettings(covering="selective"))
    for name, broker in (("publisher", "A"), ("one", "I"), ("two", "K"), ("three", "G")):
        overlay.attach(name, broker)
    overlay.ask("publisher", messages.Advertise("a", parse("present(x)")))
    overlay.settle()
    return overlay


def test_selective_paper_figure_4_headers() -> None:
    """A starts at zero, B adds a hop, C and G match twice; two hops and one at K, two and two at
    I. A header shows what the broker before has made of it."""
    overlay = figure_4_selective()
    overlay.ask("one", messages.Subscribe("S1", parse("x >= 0")))
    overlay.ask("two", messages.Subscribe("S2", parse("x >= 1")))
    overlay.ask("three", messages.Subscribe("S3", parse("x >= 2")))
    overlay.settle()
    overlay.ask("publisher", messages.Publish({"x": 5}))
    overlay.settle()
    seen = headers(overlay)
    assert [seen[broker] for broker in "BCDJ"] == [(0, 0), (1, 0), (0, 1), (0, 1)]
    assert rows_at(overlay, "K") == [(2, 1)]
    assert seen["H"] == (0, 2)
    assert rows_at(overlay, "I") == [(2, 2)]


def test_selective_paper_table_1_rows() -> None:
    """Shared with K only, a publication reaches I with a distance of 6 and a count of 1; shared
    with G as well, with 2 and 2; shared at B, with 7 and 1."""
    overlay = figure_4_selective()
    overlay.attach("four", "B")
    overlay.ask("one", messages.Subscribe("S1", parse("present(x)")))
    overlay.ask("two", messages.Subscribe("S2", parse("x >= 0 and x < 20")))
    overlay.ask("three", messages.Subscribe("S3", parse("x >= 10 and x < 20")))
    overlay.ask("four", messages.Subscribe("S4", parse("x >= 30")))
    overlay.settle()
    for value in (1, 11, 12, 2, 31):
        overlay.ask("publisher", messages.Publish({"x": value}))
    overlay.settle()
    assert rows_at(overlay, "I") == [(6, 1), (2, 2), (2, 2), (6, 1), (7, 1)]


def test_incremental_paper_figure_4_distance() -> None:
    """B3 matches S and S1, B7 matches S and S2: three hops at B6, one at the host broker B8."""
    brokers = [f"B{i}" for i in range(1, 9)]
    edges = [*path(*brokers), ("B3", "B11")]
    overlay = Overlay(edges, TreeSettings(covering="incremental"))
    for name, broker in (("publisher", "B1"), ("s", "B8"), ("s1", "B11"), ("s2", "B7")):
        overlay.attach(name, broker)
    overlay.ask("publisher", messages.Advertise("a", parse("present(x)")))
    overlay.settle()
    overlay.ask("s", messages.Subscribe("S", parse("x >= 0")))
    overlay.ask("s1", messages.Subscribe("S1", parse("x >= 1")))
    overlay.ask("s2", messages.Subscribe("S2", parse("x >= 2")))
    overlay.settle()
    overlay.ask("publisher", messages.Publish({"x": 5}))
    overlay.settle()
    assert headers(overlay)["B7"][0] == 3
    assert rows_at(overlay, "B8") == [(1, 2)]


def test_incremental_paper_table_1_distances() -> None:
    """Shared at B7, at B3, and never: 1, 5 and 7 hops at B8."""
    brokers = [f"B{i}" for i in range(1, 9)]
    edges = [*path(*brokers), ("B3", "B11")]
    overlay = Overlay(edges, TreeSettings(covering="incremental"))
    for name, broker in (("publisher", "B1"), ("s", "B8"), ("s1", "B11"), ("s2", "B7")):
        overlay.attach(name, broker)
    overlay.ask("publisher", messages.Advertise("a", parse("present(x)")))
    overlay.settle()
    overlay.ask("s", messages.Subscribe("S", parse("present(x)")))
    overlay.ask("s1", messages.Subscribe("S1", parse("x == 5")))
    overlay.ask("s2", messages.Subscribe("S2", parse("x == 1")))
    overlay.settle()
    for value in (1, 5, 1, 1, 7):
        overlay.ask("publisher", messages.Publish({"x": value}))
    overlay.settle()
    assert [distance for distance, _ in rows_at(overlay, "B8")] == [1, 5, 1, 1, 7]


def test_only_the_host_broker_keeps_statistics_and_purges_them() -> None:
    overlay = figure_4_selective()
    overlay.ask("one", messages.Subscribe("S1", parse("present(x)")))
    overlay.settle()
    overlay.ask("publisher", messages.Publish({"x": 5}))
    overlay.settle()
    kept = {name: broker.sizes().statistics for name, broker in overlay.brokers.items()}
    assert {name for name, entries in kept.items() if entries} == {"I"}
    overlay.ask("one", messages.Unsubscribe("S1"))
    assert overlay.brokers["I"].sizes().statistics == 0


def test_modes_without_pruning_keep_no_statistics() -> None:
    overlay = Overlay(path("A", "B"), TreeSettings(covering="active"))
    overlay.attach("publisher", "A")
    overlay.attach("subscriber", "B")
    overlay.ask("publisher", messages.Advertise("a", parse("present(x)")))
    overlay.ask("subscriber", messages.Subscribe("s", parse("present(x)")))
    overlay.settle()
    overlay.ask("publisher", messages.Publish({"x": 5}))
    overlay.settle()
    assert len(overlay.deliveries) == 1
    assert overlay.brokers["B"].sizes().statistics == 0


def test_the_window_slides_by_time() -> None:
    statistics = Statistics(window=10, most=100)
    for time in (0, 5, 11):
        statistics.record(S1, Record(time, Id("A", 1), time, time))
    assert statistics.distances(S1) == {Id("A", 1): [5, 11]}
    statistics.expire(30)
    assert len(statistics) == 0
    assert statistics.largest_count(S1) == 0


def test_the_window_is_bounded_and_drops_the_oldest() -> None:
    statistics = Statistics(window=1000, most=3)
    other = Id("I", 2)
    for time, subscription in enumerate((S1, other, S1, other)):
        statistics.record(subscription, Record(time, Id("A", 1), time, 0))
    assert statistics.distances(S1) == {Id("A", 1): [2]}
    assert statistics.distances(other) == {Id("A", 1): [1, 3]}


def test_purged_subscriptions_take_no_room_in_the_window() -> None:
    """Only while they are there: the last of twenty took the place of one row."""
    statistics = Statistics(window=1000, most=4)
    for number in range(20):
        subscription = Id("I", 100 + number)
        statistics.record(S1, Record(number, Id("A", 1), number, 0))
        statistics.record(subscription, Record(number, Id("A", 1), 1, 0))
        statistics.purge(subscription)
    assert statistics.distances(S1) == {Id("A", 1): [17, 18, 19]}
    assert [row.distance for _, row in statistics.rows()] == [17, 18, 19]
    assert len(statistics) == 3
