"""Random factors, subscribers and link states: what each way of routing promises, and detours."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.scot import ROUTINGS, BrokerLabel, Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.messages import Bypass, Detour, Notification
from gossamer.sim.studies.scot.workloads import figure_2
from support.draws import one_in
from support.scot_overlay import Delivery, ScotOverlay, random_tree

DRAWS = st.builds(random.Random, st.integers(0, 2**32))
"""By a seed, which shrinks quickly and says all."""

VALUES = range(3)
WAYS = (*ROUTINGS, "spare")
SEEDS = st.integers(0, 2**32)


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


def play(
    draw: random.Random, overlay: ScotOverlay, *, interrupted: bool = False
) -> dict[str, set[int]]:
    """Subscribe, then publish each value from some broker, under changing link states."""
    wanted = add_subscribers(overlay, draw)
    overlay.settle()
    overlay.sent.clear()
    before = overlay.tables()
    for value in VALUES:
        congest(overlay, draw)
        overlay.publish(draw.choice(sorted(overlay.brokers)), x=value)
        if interrupted:
            for _ in range(draw.randrange(4)):
                overlay.steps(draw.randrange(5))
                congest(overlay, draw)
        elif draw.random() < 0.5:
            overlay.settle()
    overlay.settle()
    assert overlay.tables() == before, "routing changes no routing table"
    return wanted


def check_served(deliveries: list[Delivery], wanted: dict[str, set[int]]) -> None:
    """Each subscriber got each value that it wants once; publications are three, one for each."""
    got = Counter(delivery.client for delivery in deliveries)
    assert got == {client: len(values) for client, values in wanted.items()}
    assert max(Counter((found.client, found.id) for found in deliveries).values()) == 1


def labels_of(overlay: ScotOverlay, way: Iterable[str]) -> list[BrokerLabel]:
    return [overlay.brokers[name].position.label for name in way]


@pytest.mark.parametrize("routing", WAYS)
@given(draw=DRAWS)
def test_every_subscriber_is_served_once_by_a_short_way(routing: str, draw: random.Random) -> None:
    overlay = random_overlay(draw, routing)
    wanted = play(draw, overlay)
    check_served(overlay.deliveries, wanted)
    assert (overlay.waiting(), overlay.refusals) == (0, [])
    assert overlay.total("lost") == overlay.total("stale") == 0
    for found in overlay.deliveries:
        assert len(set(found.way)) == len(found.way)
        check_way(overlay, labels_of(overlay, found.way), routing)
    if routing != "bid":  # by BID a notification may come twice, since ways to BIDs cross
        arrivals = Counter(
            (one.other, one.message.id)
            for one in overlay.sent
            if isinstance(one.message, Notification)
        )
        assert max(arrivals.values(), default=1) == 1


def check_way(overlay: ScotOverlay, way: list[BrokerLabel], routing: str) -> None:
    """Static ways are shortest ways; others are bounded, by BID by the number of brokers."""
    hops, shortest = len(way) - 1, overlay.scot.distance(way[0], way[-1])
    if routing == "static":
        # Hops between the regions, and one between clusters.
        assert hops == shortest
        assert hops <= overlay.scot.diameter + (way[0].cluster != way[-1].cluster)
    elif routing == "bid":
        assert shortest <= hops < overlay.scot.broker_count
    else:
        # A way enters a cluster once, and crosses its tree at most.
        clusters = [label.cluster for label in way]
        visits = [c for i, c in enumerate(clusters) if i == 0 or clusters[i - 1] != c]
        assert len(set(visits)) == len(visits)
        assert max(Counter(clusters).values()) <= overlay.scot.diameter + 1


@pytest.mark.parametrize("routing", ["dynamic", "spare"])
@one_in(2)
@given(draw=DRAWS)
def test_one_congested_queue_of_clusters_gets_a_copy(routing: str, draw: random.Random) -> None:
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


@pytest.mark.parametrize("covering", [False, True])
@given(draw=DRAWS)
def test_with_detours_each_is_served_once_at_any_load(covering: bool, draw: random.Random) -> None:
    scot = Scot(random_tree(draw.randrange(2, 7), draw), Factor.complete(draw.randrange(1, 5)))
    chosen = ScotSettings(cluster_detours=True, covering=covering, spare_links=draw.random() < 0.5)
    overlay = ScotOverlay(scot, chosen, seed=draw.randrange(1000))
    wanted = play(draw, overlay, interrupted=True)
    check_served(overlay.deliveries, wanted)
    assert overlay.refusals == []
    assert overlay.waiting() == overlay.total("lost") == 0
    # No broker routes a notification twice: it comes on a link, or ends a detour; brokers on a
    # detour hand it on and that is all.
    routed: Counter[tuple[str, object]] = Counter()
    bypasses = 0
    for sent in overlay.sent:
        match sent.message:
            case Notification(id_):
                routed[sent.other, id_] += 1
            case Bypass(notification, cluster, region):
                bypasses += 1
                routed[sent.other, notification.id] += sent.other == f"B({region},{cluster})"
    assert max(routed.values(), default=1) <= 1
    # A detour takes three messages in place of one.
    assert bypasses == 3 * overlay.total("detours")


def test_an_overloaded_link_is_gone_around_by_the_least_loaded_link_to_another_cluster() -> None:
    scot = Scot(Factor.path("ab"), Factor.complete(3))
    overlay = ScotOverlay(scot, ScotSettings(cluster_detours=True))
    overlay.subscribe_and_settle("S", "B(b,0)")
    for loads, way in (
        ({"B(b,0)": 100, "B(a,1)": 5}, "a0 a2 b2 b0"),
        ({"B(a,2)": 5}, "a0 a1 b1 b0"),  # of equal ones the next cluster's
        ({"B(a,1)": 50, "B(a,2)": 50}, "a0 b0"),  # no other link is better
    ):
        for other, load in loads.items():
            overlay.report("B(a,0)", other, load)
        overlay.publish_and_settle("B(a,0)", x=1)
        assert ways(overlay)["S"] == way


# One failed link or broker: who lives is served exactly once all the same.


def overlay_with_subscribers(draw: random.Random, routing: str, around: bool) -> ScotOverlay:
    """A random SCOT with two regions and two clusters at least, and subscribers to everything."""
    scot = Scot(random_tree(draw.randrange(2, 8), draw), Factor.complete(draw.randrange(2, 5)))
    chosen = ScotSettings(routing=routing, around_failures=around, spare_links=draw.random() < 0.5)
    overlay = ScotOverlay(scot, chosen, draw.randrange(1000))
    for host in draw.sample(sorted(overlay.brokers), draw.randrange(1, len(overlay.brokers) + 1)):
        overlay.subscribe(f"S at {host}", host, "present(x)")
    overlay.settle()
    overlay.sent.clear()
    return overlay


def fail(overlay: ScotOverlay, draw: random.Random) -> set[str]:
    """Break a link, or all links of a broker; returns the brokers that died."""
    if draw.random() < 0.5:
        one, other = draw.choice(sorted(overlay.scot.links()))
        overlay.break_link(str(one), str(other))
        return set()
    dead = draw.choice(overlay.scot.brokers)
    for other in overlay.scot.primary_neighbours(dead) + overlay.scot.secondary_neighbours(dead):
        overlay.break_link(str(dead), str(other))
    return {str(dead)}


def congest_half(overlay: ScotOverlay, draw: random.Random) -> None:
    for one, other in overlay.scot.links():
        for a, b in ((one, other), (other, one)):
            overlay.report(str(a), str(b), draw.choice([0, 50]))


@pytest.mark.parametrize("routing", ["static", "dynamic"])
@given(seed=SEEDS)
def test_around_one_failure_everybody_who_lives_is_served_once(routing: str, seed: int) -> None:
    draw = random.Random(seed)
    overlay = overlay_with_subscribers(draw, routing, around=True)
    before = overlay.tables()
    dead = fail(overlay, draw)
    congest_half(overlay, draw)
    overlay.publish_and_settle(draw.choice(sorted(overlay.brokers.keys() - dead)), x=1)
    wanted = {name: 1 for name, host in overlay.home.items() if name[0] == "S" and host not in dead}
    assert Counter(found.client for found in overlay.deliveries) == wanted
    assert (overlay.tables(), overlay.refusals, overlay.total("lost")) == (before, [], 0)


@given(seed=SEEDS)
def test_without_the_switch_nobody_is_served_twice_and_nothing_goes_around(seed: int) -> None:
    draw = random.Random(seed)
    overlay = overlay_with_subscribers(draw, "dynamic", around=False)
    fail(overlay, draw)
    overlay.publish_and_settle(draw.choice(sorted(overlay.brokers)), x=1)
    assert all(number == 1 for number in Counter(d.client for d in overlay.deliveries).values())
    assert not any(isinstance(sent.message, Detour | Bypass) for sent in overlay.sent)


def small() -> ScotOverlay:
    """Fig. 2 with a subscriber at each end of cluster 0."""
    overlay = ScotOverlay(figure_2(), ScotSettings(routing="static", around_failures=True))
    overlay.subscribe("A", "B(a,0)", "present(x)")
    overlay.subscribe_and_settle("F", "B(f,0)")
    return overlay


def ways(overlay: ScotOverlay) -> dict[str, str]:
    """By client, the brokers that the last notification went through, without brackets."""
    return {
        found.client: " ".join(name[2] + name[4] for name in found.way)
        for found in overlay.deliveries
    }


@pytest.mark.parametrize(
    ("broken", "publisher", "way"),
    [
        # A link within a cluster is bypassed in three hops, a broker in another cluster, and a link
        # between clusters in the next region.
        (["c0-d0"], "B(c,0)", "c0 c1 d1 d0 e0 f0"),
        (["d0-c0", "d0-e0", "d0-d1", "d0-d2"], "B(c,0)", "c0 c1 d1 e1 e0 f0"),
        (["c1-c0"], "B(c,1)", "c1 b1 b0 c0 d0 e0 f0"),
    ],
)
def test_what_fails_is_gone_around_meanwhile(broken: list[str], publisher: str, way: str) -> None:
    overlay = small()
    links = [[f"B({one[0]},{one[1]})" for one in link.split("-")] for link in broken]
    for link in links:
        overlay.break_link(*link)
    overlay.publish_and_settle(publisher, x=1)
    assert ways(overlay)["F"] == way
    for link in links:
        overlay.mend_link(*link)
    overlay.settle()
    overlay.publish_and_settle("B(c,0)", x=1)
    assert ways(overlay)["F"] == "c0 d0 e0 f0"


def test_what_was_subscribed_behind_a_broken_link_is_told_when_it_works_again() -> None:
    overlay = small()
    overlay.break_link("B(c,0)", "B(d,0)")
    overlay.subscribe_and_settle("late", "B(c,0)", "x == 5")
    assert len(overlay.brokers["B(f,0)"].table()) == 2
    overlay.mend_link("B(c,0)", "B(d,0)")
    overlay.settle()
    assert len(overlay.brokers["B(f,0)"].table()) == 3
    assert len(overlay.brokers["B(f,2)"].table()) == 3
