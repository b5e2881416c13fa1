"""The best trees there can be on a small graph, by trying all: how far strategies are from them.

All spanning trees of the graph are listed. For one group the best of them is taken; for several,
every set of subscriptions gets its best tree, and a dynamic programme over sets finds the grouping
of least cost. Time grows with the number of spanning trees and with 3^S.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import attrs
import numpy as np

from gossamer.protocol.dissemination.graphs.graph import Graph, Reals, Words
from gossamer.protocol.dissemination.sample import Sample
from gossamer.protocol.kernel.errors import CapacityError

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
