"""The strategies that Sec. VII compares, each from a graph and a sample to trees and groups.

    SPT, MST   one tree, made without a look at documents (Sec. I-B)
    SINGLE     one tree by COMPUTETREE (Sec. IV)
    MULT       groups by overlap (Algorithm 3), a tree each
    MULT2      groups by gain (Algorithm 2), a tree each
    HYBRID     MULT to a manageable number of groups, then MULT2 (end of Sec. V)

OPT, a Steiner tree for every document, is no strategy but what these are measured against: see
`optimum`. SemCast is in `semcast`.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from gossamer.protocol.dissemination.compute_tree import compute_tree
from gossamer.protocol.dissemination.cost import Bill, price
from gossamer.protocol.dissemination.gains import merge_by_gain
from gossamer.protocol.dissemination.graphs.graph import Words
from gossamer.protocol.dissemination.graphs.spanning import (
    Trees,
    make_trees,
    minimum_spanning_tree,
    shortest_path_tree,
)
from gossamer.protocol.dissemination.grouping import Mergers, Watch, merge_by_overlap
from gossamer.protocol.dissemination.plan import Plan, regroup
from gossamer.protocol.dissemination.sample import Sample
from gossamer.protocol.kernel.errors import InvariantError

MANAGEABLE: Final = 200
"""Groups that HYBRID leaves to Algorithm 2; the paper names no number."""


@attrs.frozen(eq=False)
class Routes:
    """A routing strategy R = {(S_1, T_1), ..., (S_k, T_k)}.

    Attributes:
        trees: k spanning trees.
        groups: int64[S], the tree of each subscription.
        mergers: how the groups came about, None for those that do not merge any.
    """

    trees: Trees
    groups: Words
    mergers: Mergers | None = None

    def price(self, plan: Plan, sample: Sample) -> Bill:
        """What documents cost on these routes (Eq. 1), of the sample planned for or any other."""
        return price(plan.graph, plan.work, self.trees, self.groups, sample)


def route_by_shortest_paths(plan: Plan, root: int) -> Routes:
    """SPT: the shortest path tree of a broker, which the paper draws at random."""
    return Routes(shortest_path_tree(plan.graph, plan.work, root), _one_group(plan.sample))


def route_by_minimum_spanning_tree(plan: Plan) -> Routes:
    """MST: the least spanning tree."""
    return Routes(minimum_spanning_tree(plan.graph, plan.work), _one_group(plan.sample))


def route_single(plan: Plan) -> Routes:
    """SINGLE: one tree by COMPUTETREE for all subscriptions."""
    return route_groups(plan, _one_group(plan.sample))


def route_mult(plan: Plan, watch: Watch | None = None) -> Routes:
    """MULT: groups by overlap, of all states of the mergers the one that cost least."""
    mergers = merge_by_overlap(plan, watch=watch)
    groups = mergers.groups_at(mergers.best, plan.sample.subscriptions)
    return route_groups(plan, groups, mergers)


def route_mult2(plan: Plan, neighbours: int | None = None, watch: Watch | None = None) -> Routes:
    """MULT2: groups by gain; see `gains.merge_by_gain` for ``neighbours``."""
    mergers = merge_by_gain(plan, neighbours, watch)
    return route_groups(plan, plan.groups, mergers)


def route_hybrid(
    plan: Plan,
    manageable: int = MANAGEABLE,
    neighbours: int | None = None,
    watch: Watch | None = None,
) -> Routes:
    """HYBRID: by overlap down to ``manageable`` groups, from there by gain."""
    merge_by_overlap(plan, manageable)
    return route_mult2(plan, neighbours, watch)


def route_groups(plan: Plan, groups: Words, mergers: Mergers | None = None) -> Routes:
    """A tree by COMPUTETREE for each of these groups.

    Subscriptions that no document of the sample matches tell nothing of where they belong: each
    joins the group of the nearest one that can tell, as neighbours tend to want the same.

    Raises:
        InvariantError: a tree does not span the graph, a defect.
    """
    regroup(plan, adopted(plan, groups))
    names, numbers = np.unique(plan.groups, return_inverse=True)
    trees = make_trees(max(len(names), 1), plan.graph.nodes)
    for number, name in enumerate(names.tolist()):
        spanned = int(compute_tree(plan, name, trees, number))
        if spanned != plan.graph.nodes:
            raise InvariantError(f"tree {number} spans {spanned} of {plan.graph.nodes} brokers")
    return Routes(trees, numbers.astype(np.int64), mergers)


def adopted(plan: Plan, groups: Words) -> Words:
    """The groups, with subscriptions that nothing matched in those of their nearest neighbours."""
    sample = plan.sample
    known = np.unique(sample.matched)
    if len(known) == 0:
        return _one_group(sample)
    adopted = groups.copy()
    for subscription in np.setdiff1d(np.arange(sample.subscriptions), known).tolist():
        away = plan.table.away[sample.places[subscription], sample.places[known]]
        adopted[subscription] = groups[known[int(np.argmin(away))]]
    return adopted


def _one_group(sample: Sample) -> Words:
    return np.zeros(sample.subscriptions, np.int64)
