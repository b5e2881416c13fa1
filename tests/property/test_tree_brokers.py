"""Whatever happens between brokers of a graph, each document comes to each subscriber once."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.protocol.brokers.graph.settings import GraphSettings
from gossamer.protocol.brokers.graph.state import PLANNING, PREPARING, SWITCHING
from support import draws, tree_brokers

SEEDS = st.integers(0, 2**32)


def nothing_waits_and_earlier_trees_are_forgotten(play: tree_brokers.TreePlay) -> None:
    graph = play.overlay.graph()
    for name, broker in play.overlay.brokers.items():
        sizes, present = broker.sizes(), broker.present
        assert sizes.in_flight == 0
        if present is not None:
            # The one that a coordinator had brokers hold before it lost its office is left until
            # the next plan; in a graph that falls apart there are several coordinators.
            used, *prepared = broker.versions()
            assert used == present.plan.version
            makers = [(version.term, version.broker) for version in prepared]
            assert len(set(makers)) == len(makers)
            assert (broker.term.number, broker.term.broker) not in makers
        if broker.reachable == set(graph):
            assert sizes.parked == 0
            assert present is not None
            assert set(present.plan.brokers) == set(graph), name


def those_that_reach_each_other_obey_one_coordinator(play: tree_brokers.TreePlay) -> None:
    for broker in play.overlay.brokers.values():
        least = min(broker.reachable)
        assert broker.term == play.overlay.brokers[least].term
        assert broker.term.broker == least
        assert (broker.phase is not None) is (broker.name == least)


def run_and_check(failure: str, seed: int) -> None:
    play = tree_brokers.TreePlay.drawn(failure, seed)
    play.run()
    assert (play.wrong(), play.overlay.refusals) == ([], [])
    if failure != tree_brokers.KILL:
        nothing_waits_and_earlier_trees_are_forgotten(play)
    if failure == tree_brokers.NOTHING:
        # Documents would set out anew if they came on trees that are not held yet, or any more.
        assert play.overlay.total("installed") > 0
        assert play.overlay.total("reissued") == play.overlay.total("duplicates") == 0
    if failure in (tree_brokers.KILL, tree_brokers.FORGET):
        those_that_reach_each_other_obey_one_coordinator(play)


@pytest.mark.parametrize("failure", tree_brokers.FAILURES)
@draws.one_in(8)
@given(seed=SEEDS)
def test_each_document_comes_once_whatever_fails_and_is_installed(failure: str, seed: int) -> None:
    run_and_check(failure, seed)


@pytest.mark.parametrize(
    ("failure", "seed"),
    [
        (tree_brokers.FORGET, 17524),  # a coordinator dies while brokers switch, and forgets it
        (
            tree_brokers.FORGET,
            40000650,
        ),  # without memory it hears of trees while nobody is within its reach
        (tree_brokers.SPLIT, 504667),  # three parts leave a version each
        (tree_brokers.REVIVE, 504667),
    ],
)
def test_what_once_failed_does_not_again(failure: str, seed: int) -> None:
    run_and_check(failure, seed)


def run_wildly_and_check(seed: int) -> None:
    play = tree_brokers.TreePlay.drawn(tree_brokers.NOTHING, seed)
    play.run_wildly()
    assert (play.wrong(), play.overlay.total("lost")) == ([], 0)
    assert all(one.sizes().parked == 0 for one in play.overlay.brokers.values())


@draws.one_in(8)
@given(seed=SEEDS)
# A broker alone, whose neighbours have last said that it is not linked to them.
@example(seed=31958)
def test_nothing_is_lost_whatever_fails_as_long_as_it_comes_back(seed: int) -> None:
    run_wildly_and_check(seed)


@draws.one_in(8)
@given(seed=SEEDS)
def test_a_broker_that_is_loaded_goes_on_as_the_one_that_was_dumped(seed: int) -> None:
    draw = random.Random(seed)
    overlays = []
    planning = GraphSettings(probability=0.5, interval=2 * tree_brokers.TICK, threshold=0.0)
    for swaps in (False, True):
        chance = random.Random(seed)
        overlay = tree_brokers.TreeOverlay(
            tree_brokers.random_links(5, 3, random.Random(seed)), planning, seed
        )
        for number in range(4):
            overlay.subscribe(f"c{number}", chance.choice(sorted(overlay.brokers)), f"n > {number}")
        for _ in range(60):
            overlay.publish(chance.choice(sorted(overlay.brokers)), n=chance.randrange(6))
            for _ in range(chance.randrange(4)):
                overlay.step()
            if chance.random() < 0.2:
                overlay.tick()
            if swaps:
                overlay.swap(draw.choice(sorted(overlay.brokers)))
        overlay.come_to_rest()
        overlays.append(overlay)
    plain, swapped = overlays
    assert (plain.deliveries, plain.sent) == (swapped.deliveries, swapped.sent)


def begun_installing(steps: int) -> tuple[tree_brokers.TreeOverlay, str | None]:
    """An overlay so many messages after its coordinator found a broken tree, and its phase; a
    document is published at every message."""
    links = [("b0", "b1"), ("b1", "b2"), ("b2", "b3"), ("b3", "b0"), ("b1", "b3")]
    planning = GraphSettings(probability=1.0, interval=2 * tree_brokers.TICK, threshold=0.0)
    overlay = tree_brokers.TreeOverlay(links, planning, seed=steps)
    for name, broker, text in (("odd", "b2", "odd == true"), ("all", "b3", "present(n)")):
        overlay.subscribe(name, broker, text)
    overlay.come_to_rest(3)
    overlay.plan_chance = 0.2
    present = overlay.brokers["b0"].present
    assert present is not None
    (below, above) = next(pair for pair in enumerate(present.plan.trees[0]) if pair[1] >= 0)
    overlay.break_link(present.plan.brokers[below], present.plan.brokers[above])
    overlay.settle()
    overlay.tick()
    for number in range(steps):
        overlay.publish("b1", n=number, odd=number % 2 == 1)
        overlay.step()
    return overlay, overlay.brokers["b0"].phase


@pytest.mark.parametrize("every", [9, pytest.param(2, marks=pytest.mark.campaign)])
def test_the_coordinator_may_die_at_every_step_of_an_installation(every: int) -> None:
    phases = set()
    for steps in range(0, 90, every):
        overlay, phase = begun_installing(steps)
        phases.add(phase)
        overlay.kill("b0")
        overlay.publish("b1", n=99, odd=True)
        overlay.come_to_rest(5)
        assert overlay.coordinator() == "b1"
        for id_, (_, values) in overlay.published.items():
            assert overlay.got(id_) == (["all", "odd"] if values["odd"] else ["all"]), (steps, id_)
    assert phases >= {PLANNING, PREPARING, SWITCHING}
