"""The strategies that Sec. VII compares, and how many trees are worth having.

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

from gossamer.protocol.dissemination import spanning
from gossamer.protocol.dissemination.cost import Bill, Sample, price
from gossamer.protocol.dissemination.graph import Reals, Words
from gossamer.protocol.dissemination.grouping import Mergers, Watch, merge_by_gain, merge_by_overlap
from gossamer.protocol.dissemination.plan import Plan, compute_tree, make_plan, regroup
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

    trees: spanning.Trees
    groups: Words
    mergers: Mergers | None = None

    def price(self, plan: Plan, sample: Sample) -> Bill:
        """What documents cost on these routes (Eq. 1), of the sample planned for or any other."""
        return price(plan.graph, plan.work, self.trees, self.groups, sample)


def route_by_shortest_paths(plan: Plan, root: int) -> Routes:
    """SPT: the shortest path tree of a broker, which the paper draws at random."""
    return Routes(spanning.shortest_path_tree(plan.graph, plan.work, root), _one_group(plan.sample))


def route_by_minimum_spanning_tree(plan: Plan) -> Routes:
    """MST: the least spanning tree."""
    return Routes(spanning.minimum_spanning_tree(plan.graph, plan.work), _one_group(plan.sample))


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
    trees = spanning.make_trees(max(len(names), 1), plan.graph.nodes)
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


# How many trees are worth having, tried on documents that they were not planned with.
#
# Beyond the paper. MULT takes the number of groups that costs least on the sample that it planned
# with, and so also fits trees to documents that will not come again: on all documents they may cost
# more than one tree does. Here the sample is parted in two. Trees are planned with either half, for
# 1, 2, 4 and so on groups, and priced on the other; the fewest that cost about the least there are
# planned with the whole sample. So a graph whose best answer is one tree gets one, and is told so.

MOST_TRIED: Final = 256
"""Most trees that are tried; a guess."""
TOLERANCE: Final = 0.01
"""A tree more has to save this share of the cost; a guess."""


@attrs.frozen(eq=False)
class Trial:
    """What numbers of trees cost on documents that the trees were not planned with.

    Attributes:
        trees: int64[n], rising numbers of trees, the first is 1.
        costs: float64[n], of the held out documents of all parts together.
    """

    trees: Words
    costs: Reals

    @property
    def chosen(self) -> int:
        """The fewest trees that cost about the least."""
        enough = self.costs <= self.costs.min() * (1 + TOLERANCE)
        return int(self.trees[np.flatnonzero(enough)[0]])

    @property
    def verdict(self) -> str:
        """What the trial found, in a sentence."""
        one, chosen = float(self.costs[0]), self.chosen
        if len(self.trees) == 1:
            return "one tree, as no document of the sample tells groups apart"
        if chosen > 1:
            saved = 1 - float(self.costs[self.trees == chosen][0]) / one
            return f"{chosen} trees, which save {saved:.1%} of one tree's cost on other documents"
        several = int(np.argmin(self.costs[1:])) + 1
        more = float(self.costs[several]) / one - 1
        return (
            f"one tree, as the best of several ({self.trees[several]} trees) cost "
            f"{abs(more):.1%} {'more' if more >= 0 else 'less'} on other documents"
        )


def route_tried(plan: Plan) -> tuple[Routes, Trial]:
    """MULT with as many groups as a trial finds best, and the trial.

    Raises:
        InvariantError: a tree does not span the graph, a defect.
    """
    trial = try_trees(plan)
    mergers = merge_by_overlap(make_plan(plan.graph, plan.sample, plan.table))
    groups = mergers.parted(trial.chosen, plan.sample.subscriptions)
    return route_groups(plan, groups, mergers), trial


def try_trees(plan: Plan) -> Trial:
    """Plan with either half of the sample's documents, every other one, and price the rest."""
    halves = [np.arange(begin, plan.sample.documents, 2) for begin in (0, 1)]
    if not all(len(half) for half in halves):
        return Trial(np.ones(1, np.int64), np.zeros(1))
    known, other = (plan.sample.chosen(half) for half in halves)
    found = [_costs(plan, *pair) for pair in ((known, other), (other, known))]
    trees = sorted(found[0].keys() & found[1].keys())
    costs = [found[0][number] + found[1][number] for number in trees]
    return Trial(np.array(trees, np.int64), np.array(costs))


def _costs(plan: Plan, known: Sample, other: Sample) -> dict[int, float]:
    """By numbers of trees planned with some documents, what others cost on them."""
    mergers = merge_by_overlap(make_plan(plan.graph, known, plan.table))
    costs: dict[int, float] = {}
    for trees in mergers.doublings(MOST_TRIED):
        part = make_plan(plan.graph, known, plan.table)
        routes = route_groups(part, mergers.parted(trees, known.subscriptions))
        costs[trees] = routes.price(part, other).total
    return costs
