"""Links that carry only so much, beyond the paper: which are overloaded, and how to avoid it.

A link's load is the sum of the sizes of the documents that cross it, once for each tree. Trees are
planned by a sample of the documents; what it loads the links with is scaled up to all of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.dissemination.cost import (
    Sample,
    deliver_by_group,
    deliveries_on,
    price_deliveries,
)
from gossamer.protocol.dissemination.graph import Graph, Reals, Words, link_named, read_weights
from gossamer.protocol.dissemination.grouping import merge_by_overlap
from gossamer.protocol.dissemination.plan import Plan, compute_tree, make_plan, regroup
from gossamer.protocol.dissemination.spanning import Trees, make_trees
from gossamer.protocol.dissemination.strategies import Routes, adopted

ROUNDS: Final = 6
MOST_TREES: Final = 32
"""Plans of each tree that `route_within` makes, and trees, at most; our choice."""


def read_capacities(capacities: npt.ArrayLike, graph: Graph) -> Reals:
    """What each link of a graph can carry, or one number for all; infinite where nothing limits it.

    Raises:
        TreesError: a capacity is not a number above zero, or they are not one for each link.
    """
    return read_weights(
        capacities,
        graph.links,
        "capacity of links",
        lambda link: f"capacity of {link_named(graph.ends, link)}",
        finite=False,
    )


def overloaded(loads: Reals, capacities: Reals) -> Words:
    """The links that have to carry more than they can, first the one that is furthest beyond."""
    links: Words = np.flatnonzero(loads > capacities)
    excess = loads[links] / capacities[links]
    return links[np.argsort(-excess, kind="stable")]


def overload(loads: Reals, capacities: Reals) -> float:
    """What all links together would have to carry beyond their capacities."""
    return float(np.maximum(loads - capacities, 0.0)[np.isfinite(capacities)].sum())


def route_within(
    plan: Plan, capacities: Reals, scale: float, most: int = MOST_TREES, rounds: int = ROUNDS
) -> Routes:
    """Routes that overload links as little as can be found, by as few trees as that takes.

    MULT's groups, first one, then two, four and so on, get their trees one after another, those
    that most is sent to first. Links are the dearer the more they carry already, and a tree is
    planned anew with those dearer that it would overload. A heuristic: where every way between two
    parts of the graph is too narrow, no routes help.

    Args:
        capacities: float64[m], of each link, in the unit of documents' sizes.
        scale: how many documents there will be for each that is sampled.
        most: trees, at most.
        rounds: plans of each tree, at most.
    """
    mergers = merge_by_overlap(make_plan(plan.graph, plan.sample, plan.table))
    found: list[tuple[float, Routes]] = []
    for trees in mergers.doublings(most):
        groups = adopted(plan, mergers.parted(trees, plan.sample.subscriptions))
        placing = _Placing(plan, groups, capacities, scale)
        found.append((placing.run(rounds), placing.routes()))
        if found[-1][0] == 0:
            break
    return min(found, key=lambda one: one[0])[1]


class _Placing:
    """Trees of some groups while they are planned one after another."""

    def __init__(self, plan: Plan, groups: Words, capacities: Reals, scale: float) -> None:
        self._graph, self._sample = plan.graph, plan.sample
        self._work = plan.work
        self._capacities = capacities
        self._scale = scale
        self._names, self._numbers = np.unique(groups, return_inverse=True)
        self._trees = make_trees(max(len(self._names), 1), plan.graph.nodes)
        self._deliveries = deliver_by_group(plan.sample, self._numbers)
        self._loads = np.zeros(plan.graph.links)

    def run(self, rounds: int) -> float:
        """Plan all trees; returns what links have to carry beyond their capacities."""
        carried = np.bincount(self._deliveries.tree, minlength=self._trees.count)
        for number in np.argsort(-carried, kind="stable").tolist():
            self._loads = self._loads + self._place(number, rounds)
        return overload(self._loads, self._capacities)

    def routes(self) -> Routes:
        """What was planned."""
        return Routes(self._trees, self._numbers.astype(np.int64))

    def _place(self, number: int, rounds: int) -> Reals:
        """Plan one tree; returns what it loads the links with."""
        part = deliveries_on(self._deliveries, number)
        costs = self._graph.costs * (1.0 + (self._loads / self._capacities) ** 2)
        least = np.inf
        kept, best = make_trees(1, self._graph.nodes), self._loads
        for _ in range(rounds):
            self._plan_tree(number, costs)
            bill = price_deliveries(self._graph, self._work, self._trees, self._sample, part)
            own = self._scale * bill.loads
            together = self._loads + own
            beyond = overload(together, self._capacities)
            if beyond < least:
                least, best = beyond, own
                _copy_tree(self._trees, number, kept, 0)
            if beyond == 0:
                break
            # Doubled, so that a link that is only just overloaded is left as well.
            dearer = 2.0 * costs * together / self._capacities
            costs = np.where(together > self._capacities, dearer, costs)
        _copy_tree(kept, 0, self._trees, number)
        return best

    def _plan_tree(self, number: int, costs: Reals) -> None:
        changed = make_plan(_dearer(self._graph, costs), self._sample)
        regroup(changed, self._numbers)
        name = int(changed.groups[np.flatnonzero(self._numbers == number)[0]])
        compute_tree(changed, name, self._trees, number)


def _copy_tree(source: Trees, s: int, target: Trees, t: int) -> None:
    target.above[t], target.link[t] = source.above[s], source.link[s]
    target.depth[t] = source.depth[s]


def _dearer(graph: Graph, costs: Reals) -> Graph:
    """The same graph at other costs."""
    return Graph(first=graph.first, to=graph.to, link=graph.link, ends=graph.ends, costs=costs)


def scale_of(planned: Sample, routed: Sample) -> float:
    """How many documents are routed for each that was planned with, by their sizes."""
    return float(routed.sizes.sum() / planned.sizes.sum()) if planned.documents else 1.0
