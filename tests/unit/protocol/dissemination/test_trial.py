"""How many trees a trial on held out documents finds, and what it says of that."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.protocol.dissemination.graphs.graph import make_graph
from gossamer.protocol.dissemination.plan import make_plan
from gossamer.protocol.dissemination.sample import Sample, make_sample
from gossamer.protocol.dissemination.strategies import route_mult, route_single
from gossamer.protocol.dissemination.trial import Trial, route_tried, try_trees

BROKERS = 8
RING = make_graph(BROKERS, [(place, (place + 1) % BROKERS) for place in range(BROKERS)])

SIDE = 5
GRID = make_graph(
    SIDE * SIDE,
    [(row * SIDE + at, row * SIDE + at + 1) for row in range(SIDE) for at in range(SIDE - 1)]
    + [(row * SIDE + at, (row + 1) * SIDE + at) for row in range(SIDE - 1) for at in range(SIDE)],
)


def neighbours(documents: int) -> Sample:
    """Documents that go from each broker to the next, over and over.

    A tree of a ring leaves out one link, and what should cross that takes all others.
    """
    hosts = [number // 2 % BROKERS for number in range(documents)]
    return make_sample(BROKERS, hosts, [[host] for host in hosts], [*range(1, BROKERS), 0])


def strangers(documents: int) -> Sample:
    """Documents of a grid that match two of many subscriptions each, all at random."""
    draw, brokers = np.random.default_rng(1), SIDE * SIDE
    places = draw.integers(0, brokers, 40)
    matches = [draw.choice(40, 2, replace=False).tolist() for _ in range(600)]
    hosts = draw.integers(0, brokers, 600)
    return make_sample(brokers, hosts, matches, places).chosen(np.arange(documents))


def test_where_documents_come_again_several_trees_are_worth_having() -> None:
    plan = make_plan(RING, neighbours(64))
    routes, trial = route_tried(plan)
    assert routes.trees.count == trial.chosen > 1
    single = route_single(make_plan(RING, plan.sample))
    assert routes.price(plan, plan.sample).total < single.price(plan, plan.sample).total
    assert trial.verdict.startswith(f"{trial.chosen} trees, which save ")


def test_where_they_do_not_one_tree_is_and_the_planner_says_so() -> None:
    plan = make_plan(GRID, strangers(40))
    fitted = route_mult(make_plan(GRID, plan.sample))
    assert fitted.trees.count > 1, "on its own sample, several trees seem to pay"
    routes, trial = route_tried(plan)
    assert routes.trees.count == trial.chosen == 1
    assert trial.verdict.startswith("one tree, as the best of several (")
    assert trial.verdict.endswith("more on other documents")
    other = strangers(400).chosen(np.arange(40, 400))
    assert routes.price(plan, other).total < fitted.price(plan, other).total


@pytest.mark.parametrize("documents", [0, 1])
def test_nothing_can_be_tried_with_a_document(documents: int) -> None:
    plan = make_plan(RING, neighbours(documents))
    trial = try_trees(plan)
    assert (trial.trees.tolist(), trial.chosen) == ([1], 1)
    assert trial.verdict == "one tree, as no document of the sample tells groups apart"


def test_a_tree_more_has_to_save_something() -> None:
    trial = Trial(np.array([1, 2, 4]), np.array([100.0, 99.5, 99.2]))
    assert trial.chosen == 1
    assert trial.verdict == (
        "one tree, as the best of several (4 trees) cost 0.8% less on other documents"
    )
    assert Trial(np.array([1, 2, 4]), np.array([100.0, 90.0, 89.5])).chosen == 2


def test_the_same_sample_gives_the_same_routes() -> None:
    found = [route_tried(make_plan(GRID, strangers(60)))[0] for _ in range(2)]
    np.testing.assert_array_equal(found[0].groups, found[1].groups)
    np.testing.assert_array_equal(found[0].trees.above, found[1].trees.above)
