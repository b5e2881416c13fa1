"""Links that carry only so much: what loads them, and routes that keep to their capacities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest

from gossamer.protocol.dissemination.capacities import (
    overload,
    overloaded,
    read_capacities,
    route_within,
    scale_of,
)
from gossamer.protocol.dissemination.graphs.errors import WeightError
from gossamer.protocol.dissemination.graphs.graph import make_graph
from gossamer.protocol.dissemination.optimum import document_bill
from gossamer.protocol.dissemination.plan import Plan, make_plan
from gossamer.protocol.dissemination.sample import make_sample
from gossamer.protocol.dissemination.strategies import Routes, route_mult, route_mult2, route_single
from support.tree_plans import Case, least_part, random_case, tree_of


def slow_loads(case: Case, routes: Routes) -> list[float]:
    """The load of each link, one document and tree at a time."""
    loads: defaultdict[tuple[int, int], float] = defaultdict(float)
    for document in range(case.sample.documents):
        matched = case.sample.matches(document).tolist()
        for group in sorted({int(routes.groups[s]) for s in matched}):
            places = [int(case.sample.places[s]) for s in matched if routes.groups[s] == group]
            tree = tree_of(case.graph, routes.trees.links(group).tolist())
            part = least_part(tree, [int(case.sample.hosts[document]), *places])
            for one, other in part.edges:
                loads[min(one, other), max(one, other)] += float(case.sample.sizes[document])
    return [loads[tuple(ends)] for ends in case.graph.ends.tolist()]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("route", [route_single, route_mult, route_mult2])
def test_a_load_is_the_size_of_what_crosses_a_link(
    seed: int, route: Callable[[Plan], Routes]
) -> None:
    case = random_case(15, 20, 12, seed)
    plan = make_plan(case.graph, case.sample)
    routes = route(plan)
    bill = routes.price(plan, case.sample)
    assert bill.loads.tolist() == slow_loads(case, routes)
    assert (bill.loads * case.graph.costs).sum() == pytest.approx(bill.total)


def test_the_loads_of_a_tree_a_document_are_what_these_cost() -> None:
    case = random_case(15, 20, 12, seed=1)
    bill = document_bill(make_plan(case.graph, case.sample), case.sample)
    assert (bill.loads * case.graph.costs).sum() == pytest.approx(bill.total)
    assert bill.visits.sum() == bill.loads.sum()


def test_links_beyond_their_capacity_are_named_the_worst_first() -> None:
    loads = np.array([5.0, 9.0, 0.0, 4.0])
    capacities = np.array([4.0, 3.0, 1.0, np.inf])
    assert overloaded(loads, capacities).tolist() == [1, 0]
    assert overload(loads, capacities) == 7
    assert overload(loads, np.full(4, np.inf)) == 0


@pytest.mark.parametrize("capacity", [0, -1, float("nan"), "wide", [1, 2]])
def test_a_capacity_is_a_number_above_zero(capacity: object) -> None:
    graph = make_graph(4, [(0, 1), (1, 2), (2, 3)])
    with pytest.raises(WeightError, match="capacity of link"):
        read_capacities(capacity, graph)  # type: ignore[arg-type]


def two_ways() -> tuple[Case, np.ndarray]:
    """A short way from 0 to 1 that is too narrow for both interests, and a longer one."""
    graph = make_graph(4, [(0, 1), (0, 2), (2, 3), (1, 3)], costs=[1, 1, 1, 1])
    sample = make_sample(4, [0, 0, 0, 0], [[0], [0], [1], [1]], [1, 1])
    return Case(graph, sample), np.array([3.0, 10.0, 10.0, 10.0])


def test_an_overloaded_link_is_avoided_where_there_is_another_way() -> None:
    case, capacities = two_ways()
    plan = make_plan(case.graph, case.sample)
    narrow = route_mult(make_plan(case.graph, case.sample)).price(plan, case.sample)
    assert overloaded(narrow.loads, capacities).tolist() == [0]
    routes = route_within(plan, capacities, 1.0)
    assert not len(overloaded(routes.price(plan, case.sample).loads, capacities))


def test_what_one_tree_cannot_carry_is_spread_over_several() -> None:
    """Two interests at the same ends of a circle, each too much for either way with the other."""
    graph = make_graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    sample = make_sample(4, [0, 0], [[0], [1]], [2, 2], sizes=[3, 3])
    plan = make_plan(graph, sample)
    routes = route_within(plan, np.full(4, 4.0), 1.0)
    assert routes.price(plan, sample).loads.tolist() == [3, 3, 3, 3]
    assert routes.trees.count == 2


def test_without_another_way_the_least_overload_is_kept() -> None:
    graph = make_graph(2, [(0, 1)])
    sample = make_sample(2, [0, 0], [[0], [0]], [1])
    plan = make_plan(graph, sample)
    routes = route_within(plan, np.array([1.0]), 1.0)
    assert routes.price(plan, sample).loads.tolist() == [2]


def test_a_sample_stands_for_all_documents_by_size() -> None:
    whole = make_sample(3, [0, 1, 2], [[0]] * 3, [1], sizes=[1, 2, 3])
    assert scale_of(whole.chosen(np.array([1])), whole) == 3
    assert scale_of(whole.chosen(np.array([], np.int64)), whole) == 1
