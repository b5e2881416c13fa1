"""From what the coordinator knows to trees and groups, by the strategies of this package.

A plan joins the brokers that can be reached. Those that went away of late hang at its ends, each
below one of its last neighbours, where documents wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.graph.messages import Plan as TreePlan
from gossamer.protocol.brokers.graph.messages import Planned
from gossamer.protocol.brokers.graph.settings import HYBRID, MULT, MULT2, SINGLE, TRIED, Problem
from gossamer.protocol.dissemination import strategies
from gossamer.protocol.dissemination.cost import Sample, make_sample, price
from gossamer.protocol.dissemination.graph import NONE, Graph, make_graph, make_workspace
from gossamer.protocol.dissemination.plan import Plan, make_plan
from gossamer.protocol.dissemination.spanning import Trees, make_trees
from gossamer.protocol.dissemination.strategies import Routes
from gossamer.protocol.kernel.errors import InvariantError

NEIGHBOURS: Final = 32
"""Others that MULT2 judges a group with."""

_ROUTES: Final[Mapping[str, Callable[[Plan], Routes]]] = {
    SINGLE: strategies.route_single,
    MULT: strategies.route_mult,
    MULT2: lambda plan: strategies.route_mult2(plan, NEIGHBOURS),
    HYBRID: lambda plan: strategies.route_hybrid(plan, neighbours=NEIGHBOURS),
    TRIED: lambda plan: strategies.route_tried(plan)[0],
}

Links = Sequence[tuple[int, int, float]]


def solve(number: int, problem: Problem) -> Planned:
    """Make trees for a problem, and say what the sample costs on them and on the present ones.

    Args:
        number: of the question that this answers.
        problem: what is known.
    """
    graph = _graph_of(len(problem.brokers), problem.links)
    sample = _sample_of(problem)
    plan = make_plan(graph, sample)
    make = _ROUTES[problem.strategy] if sample.documents else _shortest_paths
    routes = make(plan)
    cost = routes.price(plan, sample).total
    before = _cost_on(problem, graph, sample)
    ids = [interest for interest, _ in problem.interests]
    made = TreePlan(
        version=problem.version,
        brokers=(*problem.brokers, *problem.absent),
        trees=tuple(_with_absent(problem, above.tolist()) for above in routes.trees.above),
        groups=dict(zip(ids, routes.groups.tolist(), strict=True)),
    )
    return Planned(number, made, cost, before)


def least_added(
    plan: TreePlan,
    costs: Mapping[tuple[str, str], float],
    groups: Mapping[Id, int],
    interest: Id,
    documents: Sequence[tuple[str, Sequence[Id]]],
) -> int:
    """The tree on which a new subscription costs least more (Sec. VI); the first of several.

    Args:
        plan: the trees, one of which its broker is on.
        costs: of links, by name; 1 for those that are not there.
        groups: the trees of all other subscriptions.
        interest: the subscription.
        documents: of the sample, those that match it: where they were published and what they
            match, the subscription included.
    """
    place = {name: number for number, name in enumerate(plan.brokers)}
    known = [
        (place[host], [one for one in found if one in groups or one == interest])
        for host, found in documents
        if host in place
    ]
    if not known or len(plan.trees) == 1:
        return 0
    subscribed = sorted({one for _, found in known for one in found if one.broker in place})
    numbers = {one: number for number, one in enumerate(subscribed)}
    sample = make_sample(
        len(place),
        [host for host, _ in known],
        [[numbers[one] for one in found if one in numbers] for _, found in known],
        [place[one.broker] for one in subscribed],
    )
    graph = _graph_of(len(place), _links_of(plan, costs))
    trees = _trees_of(graph, plan.trees)
    work = make_workspace(graph)
    held = np.array([groups.get(one, 0) for one in subscribed], np.int64)
    added = []
    for group in range(len(plan.trees)):
        held[numbers[interest]] = group
        added.append(price(graph, work, trees, held, sample).total)
    return int(np.argmin(added))


def _shortest_paths(plan: Plan) -> Routes:
    return strategies.route_by_shortest_paths(plan, 0)


def _graph_of(brokers: int, links: Links) -> Graph:
    return make_graph(
        brokers, [(one, other) for one, other, _ in links], [cost for _, _, cost in links] or 1.0
    )


def _sample_of(problem: Problem) -> Sample:
    return make_sample(
        len(problem.brokers),
        [host for host, _ in problem.documents],
        [found for _, found in problem.documents],
        [place for _, place in problem.interests],
    )


def _cost_on(problem: Problem, graph: Graph, sample: Sample) -> float:
    """What the sample costs on the present trees, 0 where that cannot be said."""
    if problem.present is None:
        return 0.0
    numbers = {name: number for number, name in enumerate(problem.brokers)}
    present = problem.present
    again = [numbers.get(name, NONE) for name in present.brokers]
    trees = []
    for tree in present.trees:
        above = [NONE] * len(numbers)
        for broker, parent in enumerate(tree):
            if again[broker] != NONE and parent >= 0:
                above[again[broker]] = again[parent]
        trees.append(tuple(above))
    groups = np.array([present.groups.get(one, 0) for one, _ in problem.interests], np.int64)
    hung = _trees_of(graph, trees)
    return price(graph, make_workspace(graph), hung, groups, sample).total


def _trees_of(graph: Graph, parents: Sequence[Sequence[int]]) -> Trees:
    """Trees of links of a graph, from the broker above each broker."""
    link_of = {(one, other): link for link, (one, other) in enumerate(graph.ends.tolist())}
    trees = make_trees(len(parents), graph.nodes)
    for number, above in enumerate(parents):
        depths: dict[int, int] = {}
        for broker in range(graph.nodes):
            depths[broker] = _depth(above, broker, depths)
            trees.depth[number, broker] = depths[broker]
            if above[broker] != NONE:
                trees.above[number, broker] = above[broker]
                ends = min(broker, above[broker]), max(broker, above[broker])
                trees.link[number, broker] = link_of[ends]
    return trees


def _depth(above: Sequence[int], broker: int, known: Mapping[int, int]) -> int:
    depth = 0
    while above[broker] != NONE:
        if broker in known:
            return depth + known[broker]
        broker = above[broker]
        depth += 1
        if depth > len(above):
            raise InvariantError(f"the tree of broker {broker} goes round in circles")
    return depth


def _links_of(plan: TreePlan, costs: Mapping[tuple[str, str], float]) -> Links:
    found = {
        (min(broker, above), max(broker, above))
        for tree in plan.trees
        for broker, above in enumerate(tree)
        if above >= 0
    }
    names = plan.brokers
    return [(a, b, costs.get((names[a], names[b]), 1.0)) for a, b in sorted(found)]


def _with_absent(problem: Problem, above: list[int]) -> tuple[int, ...]:
    names = (*problem.brokers, *problem.absent)
    numbers = {name: number for number, name in enumerate(names)}
    return (*above, *(numbers[beside] for beside in problem.absent.values()))
