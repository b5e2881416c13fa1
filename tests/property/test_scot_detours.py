"""Detours around overloaded links within clusters: everybody is served once, without a loop."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.memory.messages import Bypass, Notification
from gossamer.protocol.kernel.errors import ConfigError
from property.test_scot_routing import VALUES, add_subscribers, check_served, congest
from support.scot_overlay import ScotOverlay, random_tree

DRAWS = st.builds(random.Random, st.integers(0, 2**32))


def play(draw: random.Random, *, covering: bool) -> tuple[ScotOverlay, dict[str, set[int]]]:
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
    overlay, wanted = play(draw, covering=covering)
    check_served(overlay.deliveries, wanted)
    assert overlay.refusals == []
    assert overlay.waiting() == overlay.total("lost") == 0


@given(draw=DRAWS)
def test_no_broker_routes_a_notification_twice(draw: random.Random) -> None:
    """It comes on a link, or ends a detour; brokers on a detour hand it on and that is all."""
    overlay, _ = play(draw, covering=False)
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
    overlay, _ = play(draw, covering=False)
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
