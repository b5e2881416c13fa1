"""One failed link or broker of a random SCOT: who lives is served exactly once all the same."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.memory.messages import Bypass, Detour
from gossamer.sim.studies.scot.overlays import figure_2
from support.scot_overlay import ScotOverlay, random_tree

SEEDS = st.integers(0, 2**32)


def overlay_with_subscribers(draw: random.Random, routing: str, around: bool) -> ScotOverlay:
    """A random SCOT with two regions and two clusters at least, and subscribers to everything."""
    scot = Scot(random_tree(draw.randrange(2, 8), draw), Factor.complete(draw.randrange(2, 5)))
    chosen = ScotSettings(routing=routing, around_failures=around, spare_links=draw.random() < 0.5)
    overlay = ScotOverlay(scot, chosen, draw.randrange(1000))
    hosts = draw.sample(sorted(overlay.brokers), draw.randrange(1, len(overlay.brokers) + 1))
    for host in hosts:
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


def congest(overlay: ScotOverlay, draw: random.Random) -> None:
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
    congest(overlay, draw)
    overlay.publish_and_settle(draw.choice(sorted(overlay.brokers.keys() - dead)), x=1)
    wanted = {name: 1 for name, host in overlay.home.items() if name[0] == "S" and host not in dead}
    assert Counter(found.client for found in overlay.deliveries) == wanted
    assert overlay.tables() == before
    assert overlay.refusals == []
    assert overlay.total("lost") == 0


@given(seed=SEEDS)
def test_without_the_switch_nobody_is_served_twice_and_nothing_goes_around(seed: int) -> None:
    draw = random.Random(seed)
    overlay = overlay_with_subscribers(draw, "dynamic", around=False)
    fail(overlay, draw)
    overlay.publish_and_settle(draw.choice(sorted(overlay.brokers)), x=1)
    assert all(number == 1 for number in Counter(d.client for d in overlay.deliveries).values())
    assert not any(isinstance(sent.message, Detour | Bypass) for sent in overlay.sent)


def small(around: bool) -> ScotOverlay:
    """Fig. 2 with a subscriber at each end of cluster 0."""
    overlay = ScotOverlay(figure_2(), ScotSettings(routing="static", around_failures=around))
    overlay.subscribe("A", "B(a,0)", "present(x)")
    overlay.subscribe_and_settle("F", "B(f,0)")
    return overlay


def ways(overlay: ScotOverlay) -> dict[str, str]:
    return {found.client: " ".join(found.way) for found in overlay.deliveries}


def test_a_broken_link_within_a_cluster_is_bypassed_in_three_hops() -> None:
    overlay = small(around=True)
    overlay.break_link("B(c,0)", "B(d,0)")
    overlay.publish_and_settle("B(c,0)", x=1)
    assert ways(overlay)["F"] == "B(c,0) B(c,1) B(d,1) B(d,0) B(e,0) B(f,0)"


def test_a_dead_broker_within_a_cluster_is_passed_in_another() -> None:
    overlay = small(around=True)
    for other in ("B(c,0)", "B(e,0)", "B(d,1)", "B(d,2)"):
        overlay.break_link("B(d,0)", other)
    overlay.publish_and_settle("B(c,0)", x=1)
    assert ways(overlay)["F"] == "B(c,0) B(c,1) B(d,1) B(e,1) B(e,0) B(f,0)"


def test_a_broken_link_between_clusters_is_passed_in_the_next_region() -> None:
    overlay = small(around=True)
    overlay.break_link("B(c,1)", "B(c,0)")
    overlay.publish_and_settle("B(c,1)", x=1)
    assert ways(overlay)["F"] == "B(c,1) B(b,1) B(b,0) B(c,0) B(d,0) B(e,0) B(f,0)"


def test_without_the_switch_what_lies_behind_a_broken_link_is_missed() -> None:
    overlay = small(around=False)
    overlay.break_link("B(c,0)", "B(d,0)")
    overlay.publish_and_settle("B(c,0)", x=1)
    assert ways(overlay).keys() == {"A"}


def test_a_link_that_works_again_is_used_again() -> None:
    overlay = small(around=True)
    overlay.break_link("B(c,0)", "B(d,0)")
    overlay.mend_link("B(c,0)", "B(d,0)")
    overlay.settle()
    overlay.publish_and_settle("B(c,0)", x=1)
    assert ways(overlay)["F"] == "B(c,0) B(d,0) B(e,0) B(f,0)"


def test_what_was_subscribed_behind_a_broken_link_is_told_when_it_works_again() -> None:
    overlay = small(around=True)
    overlay.break_link("B(c,0)", "B(d,0)")
    overlay.subscribe_and_settle("late", "B(c,0)", "x == 5")
    assert len(overlay.brokers["B(f,0)"].table()) == 2
    overlay.mend_link("B(c,0)", "B(d,0)")
    overlay.settle()
    assert len(overlay.brokers["B(f,0)"].table()) == 3
    assert len(overlay.brokers["B(f,2)"].table()) == 3
