"""What tree brokers remember: distances and counts of publications, and marks of neighbours."""

from __future__ import annotations

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Effect, Send
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.core.messages import Attach, NeighbourUp, Subscribe
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.memory import marks as memory_marks
from gossamer.protocol.brokers.tree.memory import messages as t
from gossamer.protocol.brokers.tree.memory.statistics import Record, Statistics
from gossamer.protocol.content.filters import Filter, parse
from support.broker_overlay import Overlay, path, row, with_clients
from support.plain_index import PlainIndex

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


def test_selective_paper_figure_4_headers() -> None:
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


def test_selective_paper_table_1_rows() -> None:
    """Shared with K only, a publication reaches I with a distance of 6 and a count of 1; shared
    with G as well, with 2 and 2; shared at B, with 7 and 1."""
    overlay = figure_4_selective()
    overlay.attach("four", "B")
    overlay.subscribe(
        one="present(x)", two="x >= 0 and x < 20", three="x >= 10 and x < 20", four="x >= 30"
    )
    overlay.publish(1, 11, 12, 2, 31)
    assert rows_at(overlay, "I") == [(6, 1), (2, 2), (2, 2), (6, 1), (7, 1)]


def test_incremental_paper_figure_4_distance() -> None:
    """B3 matches S and S1, B7 matches S and S2: three hops at B6, one at the host broker B8."""
    overlay = figure_4_incremental()
    overlay.subscribe(s="x >= 0", s1="x >= 1", s2="x >= 2")
    overlay.publish(5)
    assert headers(overlay)["B7"][0] == 3
    assert rows_at(overlay, "B8") == [(1, 2)]


def test_incremental_paper_table_1_distances() -> None:
    """Shared at B7, at B3, and never: 1, 5 and 7 hops at B8."""
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
    overlay = row("AB", covering="active")
    overlay.publish(5)
    assert len(overlay.deliveries) == 1
    assert overlay.brokers["B"].sizes().statistics == 0


def test_the_window_slides_by_time_and_drops_the_oldest() -> None:
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
    assert marks.sent("next") == freed
    assert list(marks.names(freed)) == ["next"]


class CountingIndex(PlainIndex):
    asked = 0

    def covering(self, wanted: Filter, marked: int) -> set[int]:
        CountingIndex.asked += 1
        return super().covering(wanted, marked)


def hub() -> TreeBroker:
    """A broker with advertisements from three neighbours, and a client."""
    broker = TreeBroker("B", TreeSettings(covering="active"), new_index=CountingIndex)
    for name in NAMES:
        broker.handle(0, None, NeighbourUp(name))
        offer = t.Advertisement(Id(name, 1), parse("present(x)"))
        broker.handle(0, neighbour(name), t.Frame(1, 1, t.Synchronise((offer,), ())))
    broker.handle(0, client("c"), Attach())
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
    assert subscribed(broker.handle(0, client("c"), Subscribe("s", parse("x >= 2")))) == ["P"]
    assert CountingIndex.asked == 1
    effects = broker.handle(0, neighbour("P"), t.Frame(1, 3, t.Unsubscription(wide.id)))
    assert subscribed(effects) == ["Q", "R"]
    # What is answered for a link is asked again once it sent something.
    broker = hub()
    for label, receivers in (("s", list(NAMES)), ("t", [])):
        effects = broker.handle(0, client("c"), Subscribe(label, parse("x >= 1")))
        assert subscribed(effects) == receivers
