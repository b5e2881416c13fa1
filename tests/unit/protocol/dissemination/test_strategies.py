"""What strategies choose, by the paper's examples and its algorithms, and what no problem is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.dissemination import strategies
from gossamer.protocol.dissemination.cost import price
from gossamer.protocol.dissemination.graphs.graph import (
    NONE,
    DisconnectedError,
    TreesError,
    make_graph,
)
from gossamer.protocol.dissemination.grouping import Mergers, merge_by_gain, merge_by_overlap
from gossamer.protocol.dissemination.optimum import document_costs
from gossamer.protocol.dissemination.plan import Plan, cost_of_union, make_plan, merge, regroup
from gossamer.protocol.dissemination.sample import make_sample, match_keywords, matching_documents
from gossamer.protocol.dissemination.semcast import plan_channels
from gossamer.protocol.kernel.rules import use_compiled
from support.tree_plans import Case, random_case

SEEDS = (1, 2, 3, 4, 5)
ROUTES = (strategies.route_single, strategies.route_mult, strategies.route_mult2)


def plan_of(case: Case) -> Plan:
    return make_plan(case.graph, case.sample)


def total(routes: strategies.Routes, plan: Plan) -> float:
    return routes.price(plan, plan.sample).total


def circle(brokers: int) -> Case:
    """Fig. 3: a circle, two interests that divide it, and a publisher where they meet."""
    graph = make_graph(brokers, [(i, (i + 1) % brokers) for i in range(brokers)])
    half = brokers // 2
    places = [*range(1, half + 1), *range(half, brokers)]
    one, two = range(half), range(half, len(places))
    return Case(graph, make_sample(brokers, [0, 0], [one, two], places))


def held_by_groups(case: Case) -> dict[int, set[int]]:
    matching = enumerate(matching_documents(case.sample))
    return {s: set(documents.tolist()) for s, documents in matching if len(documents)}


def mergings(mergers: Mergers) -> Iterator[tuple[int, int, float]]:
    return zip(mergers.kept[1:].tolist(), mergers.lost[1:].tolist(), mergers.costs[1:], strict=True)


def test_two_trees_carry_what_one_cannot_at_the_same_cost() -> None:
    """Example I.3: on a circle of n, two trees cost n and the best single one 3 n / 2 - 1."""
    case = circle(12)
    plan = plan_of(case)
    assert total(strategies.route_mult(plan), plan) == 12
    assert total(strategies.route_mult2(plan_of(case)), plan) == 12
    single = [strategies.route_by_shortest_paths(plan, root) for root in range(12)]
    single.append(strategies.route_single(plan_of(case)))
    assert min(total(routes, plan) for routes in single) >= 3 * 12 / 2 - 1


def test_one_broker_with_all_subscriptions_gets_its_shortest_path_tree() -> None:
    """Documents then go the shortest way to it, which no tree betters (see Example I.2)."""
    case = random_case(30, 20, 1, seed=1)
    plan = plan_of(case)
    routes = strategies.route_single(plan)
    away = plan.table.away[case.sample.places[0], case.sample.hosts]
    assert total(routes, plan) == away.sum() == document_costs(plan, case.sample).sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_mult_merges_the_most_similar_groups_as_algorithm_3_does(seed: int) -> None:
    """It keeps the state that costs least."""
    case = random_case(12, 14, 9, seed)
    plan, checked = plan_of(case), plan_of(case)
    mergers = merge_by_overlap(plan)
    held = held_by_groups(case)
    assert mergers.costs[0] == sum(cost_of_union(checked, s, s) for s in held)
    for kept, lost, cost in mergings(mergers):
        similar = {
            (one, other): len(held[one] & held[other]) / len(held[one] | held[other])
            for one, other in combinations(sorted(held), 2)
        }
        assert similar[kept, lost] == max(similar.values())
        held[kept] |= held.pop(lost)
        merge(checked, kept, lost)
        assert cost == pytest.approx(sum(cost_of_union(checked, s, s) for s in held))
    assert len(held) == 1
    plan = plan_of(case)
    routes = strategies.route_mult(plan)
    assert routes.mergers is not None
    assert routes.trees.count == routes.mergers.groups[routes.mergers.best]
    assert total(routes, plan) == pytest.approx(routes.mergers.costs.min())


@pytest.mark.parametrize("seed", SEEDS)
def test_mult2_merges_what_saves_the_largest_share_as_algorithm_2_does(seed: int) -> None:
    """Neighbour lists that leave nobody out lose next to nothing."""
    case = random_case(12, 14, 9, seed)
    plan, checked = plan_of(case), plan_of(case)
    mergers = merge_by_gain(plan)
    held = held_by_groups(case)

    def shares() -> dict[tuple[int, int], float]:
        found = {}
        for one, other in combinations(sorted(held), 2):
            if held[one] & held[other]:
                apart = cost_of_union(checked, one, one) + cost_of_union(checked, other, other)
                found[one, other] = 1 - cost_of_union(checked, one, other) / max(apart, 1e-9)
        return found

    for kept, lost, _ in mergings(mergers):
        found = shares()
        assert found[kept, lost] == pytest.approx(max(found.values()))
        held[kept] |= held.pop(lost)
        merge(checked, kept, lost)
    assert max(shares().values(), default=0.0) <= 1e-9
    case = random_case(20, 25, 12, seed)
    plan = plan_of(case)
    exact = total(strategies.route_mult2(plan_of(case)), plan)
    assert total(strategies.route_mult2(plan_of(case), neighbours=12), plan) <= 1.05 * exact


def test_mergers_begin_with_the_same_documents_and_have_numbered_states() -> None:
    """Three at neighbouring brokers want the same, a fourth something else."""
    graph = make_graph(6, [(i, i + 1) for i in range(5)])
    matches = [[0, 1, 2], [0, 1, 2], [3]]
    plan = make_plan(graph, make_sample(6, [0, 0, 5], matches, [3, 4, 5, 1]))
    mergers = merge_by_gain(plan, neighbours=1)
    assert [(kept, lost) for kept, lost, _ in mergings(mergers)][:2] == [(0, 1), (0, 2)]
    assert plan.groups.tolist() == [0, 0, 0, 3]
    assert mergers.costs[-1] == sum(cost_of_union(plan, group, group) for group in (0, 3))
    case = random_case(12, 14, 9, seed=1)
    mergers = merge_by_overlap(plan_of(case))
    for state, groups in enumerate(mergers.groups.tolist()):
        found = mergers.groups_at(state, case.sample.subscriptions)
        heard = np.unique(case.sample.matched)
        assert len(set(found[heard].tolist())) == groups
    assert mergers.kept[0] == mergers.lost[0] == NONE


def test_a_subscription_that_nothing_matched_joins_its_nearest_neighbour() -> None:
    """On a line with two interests at its ends, the third is nearer to the second."""
    graph = make_graph(9, [(i, i + 1) for i in range(8)])
    plan = make_plan(graph, make_sample(9, [4, 4], [[0], [1]], [0, 8, 6]))
    routes = strategies.route_mult(plan)
    assert routes.groups[2] == routes.groups[1] != routes.groups[0]


def test_what_crosses_no_link_costs_nothing() -> None:
    unwanted = Case(make_graph(3, [(0, 1), (1, 2)]), make_sample(3, [0, 2], [[], []], [1]))
    alone = Case(make_graph(1, []), make_sample(1, [0], [[0]], [0]))
    for plan in (plan_of(unwanted), plan_of(alone)):
        for route in ROUTES:
            assert total(route(plan), plan) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_semcast_reaches_all_and_filters_save(seed: int) -> None:
    """With few channels, brokers get what nobody there asked for unless brokers filter."""
    planned = random_case(20, 25, 12, seed)
    plan = plan_of(planned)
    channels = plan_channels(plan, most=4)
    assert all(channels.members)
    assert len(channels.members) == channels.trees.count
    for document in range(planned.sample.documents):
        matched = frozenset(planned.sample.matches(document).tolist())
        reached = frozenset[int]().union(
            *(channels.members[channel] for channel in channels.channels_for(matched))
        )
        assert matched <= reached
    filtered = channels.price(plan, planned.sample, filtered=True)
    assert filtered.total < channels.price(plan, planned.sample, filtered=False).total
    assert (filtered.cost >= document_costs(plan, planned.sample, better=True) / 2 - 1e-9).all()


def test_semcast_without_a_limit_gives_each_kind_of_document_its_channel() -> None:
    case = random_case(20, 25, 12, seed=1)
    plan = plan_of(case)
    channels = plan_channels(plan, most=1000)
    bill = channels.price(plan, case.sample, filtered=False)
    assert bill.trees.max() == 1
    assert bill.duplicates.sum() == 0
    assert bill.total == channels.price(plan, case.sample, filtered=True).total


def test_documents_match_by_keywords_and_keep_that_in_samples() -> None:
    found = match_keywords([[1, 2], [5], []], [[2, 3], [1], [4], []])
    assert [one.tolist() for one in found] == [[0, 1], [], []]
    sample = random_case(10, 12, 6, seed=1).sample
    few = sample.chosen(np.array([3, 7]))
    assert [few.matches(d).tolist() for d in (0, 1)] == [sample.matches(d).tolist() for d in (3, 7)]
    assert few.hosts.tolist() == sample.hosts[[3, 7]].tolist()


def test_groups_are_named_by_their_lowest_subscription_and_few() -> None:
    plan = plan_of(random_case(10, 12, 6, seed=1))
    regroup(plan, np.array([9, 4, 9, 4, 4, 7]))
    assert plan.groups.tolist() == [0, 1, 0, 1, 1, 5]
    plan = plan_of(random_case(20, 30, 15, seed=1))
    assert strategies.route_hybrid(plan, manageable=4).trees.count <= 4


def everything(case: Case) -> list[object]:
    found: list[object] = []
    for route in ROUTES:
        plan = plan_of(case)
        routes = route(plan)
        bill = price(case.graph, plan.work, routes.trees, routes.groups, case.sample)
        found += [routes.groups.tolist(), routes.trees.link.tolist(), bill.cost.tolist()]
        found += [bill.duplicates.tolist(), document_costs(plan, case.sample, True).tolist()]
    return found


def test_compiled_and_interpreted_plans_are_the_same(compiled: None) -> None:  # noqa: ARG001
    case = random_case(40, 50, 25, seed=1)
    found = everything(case)
    with use_compiled(False):
        assert everything(case) == found


INFINITY, NAN = float("inf"), float("nan")
ONE_MORE = "cost of link 1 between 1 and 2 is .*, expected a fin"


@pytest.mark.parametrize(
    ("links", "costs", "words"),
    [
        *(([(0, 1), (1, 2)], [1, cost], ONE_MORE) for cost in (0, -2, NAN, INFINITY)),
        ([(0, 1), (1, 2)], [1, -INFINITY], ONE_MORE),
        ([(0, 1), (1, 2)], [1, "dear"], "expected a finite number above 0"),
        ([(0, 1), (1, 2)], [1, None], "expected a finite number above 0"),
        ([(0, 1), (1, 2)], [1, 2, 3], "expected a finite number above 0"),
        ([(0, 1), (2, -1)], None, "end of link 1 is -1, expected .* 0 to 2"),
        ([(0, 1), (2, 3)], None, "end of link 1 is 3, expected .* 0 to 2"),
        ([(0, 1), (1, 1)], None, "link 1 between 1 and 1 joins a broker to itself"),
        ([(0, 1), (1, 2), (1, 0)], None, "link 2 between 1 and 0 is a second one"),
    ],
)
def test_impossible_links_are_refused(links: list[tuple[int, int]], costs: Any, words: str) -> None:
    with pytest.raises(TreesError, match=words):
        make_graph(3, links, costs or [1] * len(links))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((5, [0, 5], [[0], [0]], [0]), TreesError, "host of document 1 is 5, .* 0 to 4"),
        ((5, [0], [[0]], [-1]), TreesError, "host of subscription 0 is -1"),
        (
            (5, [0, 1], [[0], [1, 2]], [0, 3]),
            TreesError,
            "document 1 matches subscription 2, .* 0 to 1",
        ),
        *(
            ((2, [0, 1], [[], []], [0], [1, size]), TreesError, "size of document")
            for size in (0, -1, NAN, "large")
        ),
        ((2, [0, 1], [[0]], [0]), ValueError, "matches are given for 1 documents, expected 2"),
    ],
)
def test_impossible_documents_are_refused(arguments: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        make_sample(*arguments)


def test_refusals_are_of_one_kind_and_name_components() -> None:
    assert issubclass(DisconnectedError, TreesError)
    with pytest.raises(DisconnectedError) as caught:
        make_graph(6, [(0, 1), (4, 5), (1, 2)])
    assert caught.value.components == [[0, 1, 2], [4, 5], [3]]
    assert str(caught.value) == (
        "the graph is in 3 components (0, 1, 2; 4, 5; 3), "
        "expected brokers that all reach each other"
    )
    with pytest.raises(DisconnectedError, match=r"\(0, 1, 2, 3 and 3 more; 7; 8; 9; and 2 more\)"):
        make_graph(12, [(i, i + 1) for i in range(6)])
