"""Random factors, subscribers and link states: what each way of routing promises, and detours."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.scot import ROUTINGS, Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.memory.messages import Bypass, Notification
from gossamer.protocol.kernel.errors import ConfigError
from support.draws import one_in
from support.scot_overlay import Delivery, ScotOverlay, random_tree

DRAWS = st.builds(random.Random, st.integers(0, 2**32))
"""By a seed, which shrinks quickly and says all."""

VALUES = range(3)
WAYS = (*ROUTINGS, "spare")


def random_overlay(draw: random.Random, routing: str) -> ScotOverlay:
    scot = Scot(random_tree(draw.randrange(1, 7), draw), Factor.complete(draw.randrange(1, 5)))
    chosen = ScotSettings(spare_links=True) if routing == "spare" else ScotSettings(routing=routing)
    return ScotOverlay(scot, chosen, seed=draw.randrange(1000))


def add_subscribers(overlay: ScotOverlay, draw: random.Random) -> dict[str, set[int]]:
    wanted: dict[str, set[int]] = {}
    for i in range(draw.randrange(1, 8)):
        host = draw.choice(sorted(overlay.brokers))
        values = draw.sample(VALUES, draw.randrange(1, len(VALUES)))
        for value in values:
            overlay.subscribe(f"S{i}", host, f"x == {value}")
        wanted[f"S{i}"] = set(values)
    return wanted


def congest(overlay: ScotOverlay, draw: random.Random) -> None:
    share = draw.random()
    for name, broker in overlay.brokers.items():
        label = broker.position.label
        near = overlay.scot.primary_neighbours(label) + overlay.scot.secondary_neighbours(label)
        for other in near:
            length = draw.randrange(11, 100) if draw.random() < share else draw.randrange(11)
            overlay.report(name, str(other), length)


def play(draw: random.Random, routing: str) -> tuple[ScotOverlay, dict[str, set[int]]]:
    """Subscribe, then publish each value from some broker, under changing link states."""
    overlay = random_overlay(draw, routing)
    wanted = add_subscribers(overlay, draw)
    overlay.settle()
    overlay.sent.clear()
    before = overlay.tables()
    for value in VALUES:
        congest(overlay, draw)
        overlay.publish(draw.choice(sorted(overlay.brokers)), x=value)
        if draw.random() < 0.5:
            overlay.settle()
    overlay.settle()
    assert overlay.tables() == before, "routing changes no routing table"
    return overlay, wanted


def check_served(deliveries: list[Delivery], wanted: dict[str, set[int]]) -> None:
    """Each subscriber got each value that it wants once; publications are three, one for each."""
    got = Counter(delivery.client for delivery in deliveries)
    assert got == {client: len(values) for client, values in wanted.items()}
    assert max(Counter((found.client, found.id) for found in deliveries).values()) == 1


@pytest.mark.parametrize("routing", WAYS)
@one_in(2)
@given(draw=DRAWS)
def test_every_subscriber_is_served_once_without_a_loop(routing: str, draw: random.Random) -> None:
    overlay, wanted = play(draw, routing)
    check_served(overlay.deliveries, wanted)
    assert overlay.waiting() == 0
    assert overlay.refusals == []
    assert overlay.total("lost") == 0
    assert overlay.total("stale") == 0
    for found in overlay.deliveries:
        assert len(set(found.way)) == len(found.way)


@pytest.mark.parametrize("routing", ["static", "dynamic", "spare"])
@one_in(2)
@given(draw=DRAWS)
def test_in_clusters_nothing_comes_to_a_broker_twice(routing: str, draw: random.Random) -> None:
    """By BID it may, since ways to different BIDs cross."""
    overlay, _ = play(draw, routing)
    arrivals = Counter(
        (sent.other, sent.message.id)
        for sent in overlay.sent
        if isinstance(sent.message, Notification)
    )
    assert not arrivals or max(arrivals.values()) == 1


@one_in(2)
@given(draw=DRAWS)
def test_static_ways_are_shortest_ways(draw: random.Random) -> None:
    """Hops between the regions, and one between clusters: at most diam(acyclic factor) + 1."""
    overlay, _ = play(draw, "static")
    for found in overlay.deliveries:
        first, last = (
            overlay.brokers[name].position.label for name in (found.way[0], found.way[-1])
        )
        assert len(found.way) - 1 == overlay.scot.distance(first, last)
        bound = overlay.scot.diameter + (first.cluster != last.cluster)
        assert len(found.way) - 1 <= bound


@pytest.mark.parametrize("routing", ["dynamic", "spare"])
@one_in(2)
@given(draw=DRAWS)
def test_dynamic_ways_enter_a_cluster_once_and_cross_it(routing: str, draw: random.Random) -> None:
    overlay, _ = play(draw, routing)
    for found in overlay.deliveries:
        clusters = [overlay.brokers[name].position.label.cluster for name in found.way]
        visits = [c for i, c in enumerate(clusters) if i == 0 or clusters[i - 1] != c]
        assert len(set(visits)) == len(visits)
        assert max(Counter(clusters).values()) <= overlay.scot.diameter + 1


@one_in(2)
@given(draw=DRAWS)
def test_by_bid_no_way_is_longer_than_there_are_brokers(draw: random.Random) -> None:
    overlay, _ = play(draw, "bid")
    for found in overlay.deliveries:
        first, last = (
            overlay.brokers[name].position.label for name in (found.way[0], found.way[-1])
        )
        hops = len(found.way) - 1
        assert overlay.scot.distance(first, last) <= hops < overlay.scot.broker_count


@pytest.mark.parametrize("routing", ["dynamic", "spare"])
@one_in(2)
@given(draw=DRAWS)
def test_one_congested_queue_between_clusters_gets_a_copy(
    routing: str,
    draw: random.Random,
) -> None:
    overlay = random_overlay(draw, routing)
    add_subscribers(overlay, draw)
    overlay.settle()
    overlay.sent.clear()
    congest(overlay, draw)
    overlay.publish_and_settle(draw.choice(sorted(overlay.brokers)), x=draw.choice(VALUES))
    copies = Counter(overlay.notifications())
    assert not copies or max(copies.values()) == 1, "no queue gets two copies"
    clusters = {name: broker.position.label.cluster for name, broker in overlay.brokers.items()}
    congested = Counter(
        one
        for one, other in copies
        if clusters[one] != clusters[other] and overlay.loads[one, other] > 10
    )
    assert not congested or max(congested.values()) == 1


@one_in(2)
@given(draw=DRAWS)
def test_without_congestion_dynamic_routing_is_static_routing(draw: random.Random) -> None:
    seed = draw.randrange(10**6)
    sent = []
    for routing in ("static", "dynamic"):
        again = random.Random(seed)
        overlay = random_overlay(again, routing)
        add_subscribers(overlay, again)
        overlay.settle()
        overlay.publish_and_settle(again.choice(sorted(overlay.brokers)), x=again.choice(VALUES))
        sent.append(overlay.sent)
    assert sent[0] == sent[1]
    assert not any(isinstance(m.message, Notification) and m.message.targets for m in sent[1])


@one_in(2)
@given(draw=DRAWS)
def test_a_broadcast_reaches_each_broker_once_on_a_shortest_way(draw: random.Random) -> None:
    overlay = random_overlay(draw, "static")
    host = draw.choice(sorted(overlay.brokers))
    overlay.subscribe_and_settle("S", host)
    assert len(overlay.sent) == overlay.scot.broker_count - 1
    assert overlay.total("duplicates") == 0
    hops = {host: 0}
    for sent in overlay.sent:
        hops[sent.other] = hops[sent.one] + 1
    start = overlay.brokers[host].position.label
    for name, broker in overlay.brokers.items():
        assert hops[name] == overlay.scot.distance(start, broker.position.label)


@pytest.mark.parametrize("routing", ROUTINGS)
@one_in(2)
@given(draw=DRAWS)
def test_subscriptions_that_come_and_go_leave_nothing(routing: str, draw: random.Random) -> None:
    overlay = random_overlay(draw, routing)
    wanted = add_subscribers(overlay, draw)
    left = [(client, value) for client, values in sorted(wanted.items()) for value in values]
    draw.shuffle(left)
    for client, value in left:
        overlay.unsubscribe(client, f"x == {value}")
        if draw.random() < 0.3:
            overlay.publish(draw.choice(sorted(overlay.brokers)), x=value)
    overlay.settle()
    assert not any(broker.table() for broker in overlay.brokers.values())
    twice = Counter((found.client, found.id) for found in overlay.deliveries)
    assert not twice or max(twice.values()) == 1


# Detours around overloaded links within clusters.


def play_with_detours(
    draw: random.Random, *, covering: bool
) -> tuple[ScotOverlay, dict[str, set[int]]]:
    """Publish each value from some broker while queues change."""
    scot = Scot(random_tree(draw.randrange(2, 7), draw), Factor.complete(draw.randrange(1, 5)))
    chosen = ScotSettings(cluster_detours=True, covering=covering, spare_links=draw.random() < 0.5)
    overlay = ScotOverlay(scot, chosen, seed=draw.randrange(1000))
    wanted = add_subscribers(overlay, draw)
    overlay.settle()
    overlay.sent.clear()
    before = overlay.tables()
    for value in VALUES:
        congest(overlay, draw)
        overlay.publish(draw.choice(sorted(overlay.brokers)), x=value)
        for _ in range(draw.randrange(4)):
            overlay.settle(at_most=draw.randrange(5))
            congest(overlay, draw)
    overlay.settle()
    assert overlay.tables() == before, "routing changes no routing table"
    return overlay, wanted


@pytest.mark.parametrize("covering", [False, True])
@given(draw=DRAWS)
def test_every_subscriber_is_served_once_at_any_load(covering: bool, draw: random.Random) -> None:
    overlay, wanted = play_with_detours(draw, covering=covering)
    check_served(overlay.deliveries, wanted)
    assert overlay.refusals == []
    assert overlay.waiting() == overlay.total("lost") == 0


@given(draw=DRAWS)
def test_no_broker_routes_a_notification_twice(draw: random.Random) -> None:
    """It comes on a link, or ends a detour; brokers on a detour hand it on and that is all."""
    overlay, _ = play_with_detours(draw, covering=False)
    routed: Counter[tuple[str, object]] = Counter()
    for sent in overlay.sent:
        match sent.message:
            case Notification(id_):
                routed[sent.other, id_] += 1
            case Bypass(notification, cluster, region):
                ends = sent.other == f"B({region},{cluster})"
                routed[sent.other, notification.id] += ends
    assert max(routed.values(), default=1) <= 1


@given(draw=DRAWS)
def test_a_detour_takes_three_messages_in_place_of_one(draw: random.Random) -> None:
    overlay, _ = play_with_detours(draw, covering=False)
    bypasses = sum(isinstance(sent.message, Bypass) for sent in overlay.sent)
    assert bypasses == 3 * overlay.total("detours")


def test_an_overloaded_link_is_gone_around_by_the_least_loaded_link_to_another_cluster() -> None:
    overlay = ScotOverlay(
        Scot(Factor.path("ab"), Factor.complete(3)), ScotSettings(cluster_detours=True)
    )
    overlay.subscribe_and_settle("S", "B(b,0)")
    overlay.report("B(a,0)", "B(b,0)", 100)
    overlay.report("B(a,0)", "B(a,1)", 5)
    overlay.publish_and_settle("B(a,0)", x=1)
    (delivery,) = overlay.deliveries
    assert delivery.way == ("B(a,0)", "B(a,2)", "B(b,2)", "B(b,0)")
    overlay.report("B(a,0)", "B(a,2)", 5)
    overlay.publish_and_settle("B(a,0)", x=1)
    assert overlay.deliveries[-1].way[1] == "B(a,1)", "of equal ones the next cluster's"
    overlay.report("B(a,0)", "B(a,1)", 50)
    overlay.report("B(a,0)", "B(a,2)", 50)
    overlay.publish_and_settle("B(a,0)", x=1)
    assert overlay.deliveries[-1].way == ("B(a,0)", "B(b,0)"), "no other link is better"


def test_detours_and_ways_around_failures_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="cluster_detours is True, expected false together"):
        ScotSettings(cluster_detours=True, around_failures=True)
