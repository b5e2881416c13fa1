"""OPT (Sec. VII), a bound that no routing goes below, and the best trees of small graphs.

The paper calls the approximate trees' cost the optimum. It is that of the best known graph
routing, one tree a document; what can be proven is the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import attrs
import numpy as np

from gossamer.protocol.dissemination.cost import Bill, Sample, make_bill
from gossamer.protocol.dissemination.graph import Graph, Reals, Words
from gossamer.protocol.dissemination.path_tables import join_by_table
from gossamer.protocol.dissemination.plan import Plan, gather_brokers
from gossamer.protocol.dissemination.steiner import cost_of_links, least_steiner_cost, trim
from gossamer.protocol.dissemination.triples import BOUND, Triples, make_triples, write_better_tree
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.rules import rule

EXACT_BROKERS = 8
"""Documents that join no more brokers than this are bounded by their optimum; our choice."""


@rule
def write_fast_bill(plan: Plan, sample: Sample, groups: Words, bill: Bill) -> None:
    """Write what each document costs on its own tree, by the fast algorithm."""
    for document in range(sample.hosts.shape[0]):
        brokers = gather_brokers(plan.work, sample, groups, 0, 0, document)
        links = join_by_table(plan.graph, plan.work, plan.table, brokers)
        brokers = gather_brokers(plan.work, sample, groups, 0, 0, document)
        links = trim(plan.graph, plan.work, links, brokers)
        size = sample.sizes[document]
        bill.cost[document] = size * cost_of_links(plan.graph, plan.work, links)
        bill.visits[document] = links
        bill.trees[document] = min(links, 1)
        for i in range(links):
            bill.loads[plan.work.tree[i]] += size


@rule
def write_better_costs(
    plan: Plan, sample: Sample, groups: Words, triples: Triples, costs: Reals
) -> None:
    """Lower costs to what the documents cost by the better algorithm, where that is less."""
    for document in range(costs.shape[0]):
        brokers = gather_brokers(plan.work, sample, groups, 0, 0, document)
        links = write_better_tree(plan.graph, plan.work, triples, brokers)
        cost = sample.sizes[document] * cost_of_links(plan.graph, plan.work, links)
        costs[document] = min(costs[document], cost)


def document_bill(plan: Plan, sample: Sample) -> Bill:
    """OPT: what each document costs on a Steiner tree of its own, by the algorithm of `tables`."""
    bill = make_bill(sample.documents, plan.graph.links)
    write_fast_bill(plan, sample, np.zeros(sample.subscriptions, np.int64), bill)
    return bill


def document_costs(plan: Plan, sample: Sample, better: bool = False) -> Reals:
    """OPT: what each document costs on a Steiner tree of its own.

    Args:
        better: by the algorithm of `triples` (at most 11/6 of the optimum) instead of that of
            `tables` (at most 2).
    """
    costs = document_bill(plan, sample).cost
    if better and sample.documents:
        groups = np.zeros(sample.subscriptions, np.int64)
        triples = make_triples(plan.graph, int(brokers_joined(plan, sample).max()))
        write_better_costs(plan, sample, groups, triples, costs)
    return costs


def brokers_joined(plan: Plan, sample: Sample) -> Words:
    """How many brokers each document joins, its host among them."""
    groups = np.zeros(sample.subscriptions, np.int64)
    return np.array(
        [
            int(gather_brokers(plan.work, sample, groups, 0, 0, document))
            for document in range(sample.documents)
        ],
        np.int64,
    )


def lower_bounds(plan: Plan, sample: Sample, exact: int = EXACT_BROKERS) -> Reals:
    """What each document costs at the least, whatever trees there are.

    The optimum of its Steiner tree where it joins at most ``exact`` brokers, else what the
    algorithms' guarantees leave of the cost that they found.
    """
    groups = np.zeros(sample.subscriptions, np.int64)
    fast, better = document_costs(plan, sample), document_costs(plan, sample, better=True)
    brokers = np.maximum(brokers_joined(plan, sample), 2)
    bounds = np.maximum(fast / (2 - 2 / brokers), better / BOUND)
    for document in np.flatnonzero(brokers <= exact).tolist():
        count = int(gather_brokers(plan.work, sample, groups, 0, 0, document))
        terminals = plan.work.terminals[:count].copy()
        cost = least_steiner_cost(plan.graph, plan.work, terminals)
        bounds[document] = sample.sizes[document] * cost
    return bounds


# The best trees there can be on a small graph, by trying all: how far strategies are from them.
#
# All spanning trees of the graph are listed. For one group the best of them is taken; for several,
# every set of subscriptions gets its best tree, and a dynamic programme over sets finds the
# grouping of least cost. Time grows with the number of spanning trees and with 3^S.

MOST_BROKERS: Final = 12
MOST_CHOICES: Final = 50_000
MOST_SUBSCRIPTIONS: Final = 10


@attrs.frozen
class Best:
    """What no routing of this form goes below.

    Attributes:
        one_tree: cost of all documents on the best single tree.
        grouped: cost with the best grouping of subscriptions, each group on its best tree.
        groups: how many groups that has.
        spanning_trees: how many trees there were to choose from.
    """

    one_tree: float
    grouped: float
    groups: int
    spanning_trees: int


def best_routes(graph: Graph, sample: Sample) -> Best:
    """The optimum of the routing tree computation problem (Sec. III-C), exactly.

    Raises:
        CapacityError: more brokers, spanning trees or subscriptions than can be tried.
    """
    if sample.subscriptions > MOST_SUBSCRIPTIONS:
        raise CapacityError("the table of groupings", MOST_SUBSCRIPTIONS)
    trees = np.array(list(spanning_trees(graph)), np.int64).reshape(-1, graph.nodes - 1)
    parts = _costs_of_parts(graph, trees)
    costs = _costs_of_groups(sample, parts)
    least, groups = _best_grouping(costs)
    return Best(float(costs[-1]), least, groups, len(trees))


def spanning_trees(graph: Graph) -> Iterator[tuple[int, ...]]:
    """All spanning trees of a graph, each as its links in rising order.

    Raises:
        CapacityError: more brokers or choices of links than can be tried.
    """
    if graph.nodes > MOST_BROKERS:
        raise CapacityError("the list of spanning trees", MOST_BROKERS)
    ends = graph.ends.tolist()
    for tried, links in enumerate(combinations(range(graph.links), graph.nodes - 1)):
        if tried >= MOST_CHOICES:
            raise CapacityError("the list of spanning trees", MOST_CHOICES)
        if _joins_all(graph.nodes, [ends[link] for link in links]):
            yield links


def _joins_all(nodes: int, ends: list[list[int]]) -> bool:
    """Whether so many links as a tree has make no cycle, and so join all brokers."""
    parts = list(range(nodes))
    for one, other in ends:
        first, second = parts[one], parts[other]
        if first == second:
            return False
        parts = [first if part == second else part for part in parts]
    return True


def _costs_of_parts(graph: Graph, trees: Words) -> Reals:
    """float64[trees, 2^n]: cost of the least part of a tree that joins a set of brokers.

    A link is in that part if there are brokers of the set on both of its sides.
    """
    sets = np.arange(1 << graph.nodes)
    costs = np.zeros((len(trees), len(sets)))
    for tree, links in enumerate(trees.tolist()):
        for link in links:
            side = _side(graph, links, link)
            divided = (sets & side > 0) & (sets & ~side > 0)
            costs[tree] += graph.costs[link] * divided
    return costs


def _side(graph: Graph, links: list[int], without: int) -> int:
    """The brokers, as bits, that a tree still joins to broker 0 without one of its links."""
    ends = [graph.ends[link].tolist() for link in links if link != without]
    reached = 1
    for _ in ends:
        for one, other in ends:
            if reached >> one & 1 or reached >> other & 1:
                reached |= 1 << one | 1 << other
    return reached


def _costs_of_groups(sample: Sample, parts: Reals) -> Reals:
    """float64[2^S]: cost of all documents for each set of subscriptions on its best tree."""
    places = [1 << place for place in sample.places.tolist()]
    costs = np.zeros(1 << sample.subscriptions)
    for group in range(1, len(costs)):
        on_trees = np.zeros(len(parts))
        for document in range(sample.documents):
            brokers = 0
            for subscription in sample.matches(document).tolist():
                if group >> subscription & 1:
                    brokers |= places[subscription]
            if brokers:
                brokers |= 1 << int(sample.hosts[document])
                on_trees += sample.sizes[document] * parts[:, brokers]
        costs[group] = on_trees.min()
    return costs


def _best_grouping(costs: Reals) -> tuple[float, int]:
    """The least cost of parting all subscriptions into groups, and how many groups that takes."""
    least = [0.0] * len(costs)
    groups = [0] * len(costs)
    for wanted in range(1, len(costs)):
        lowest = wanted & -wanted
        rest = wanted ^ lowest
        least[wanted], groups[wanted] = float(costs[wanted]), 1
        more = rest
        while more:
            # The group of the lowest subscription leaves out ``more``.
            cost = float(costs[wanted ^ more]) + least[more]
            if cost < least[wanted] - 1e-9:
                least[wanted], groups[wanted] = cost, groups[more] + 1
            more = (more - 1) & rest
    return least[-1], groups[-1]
