"""How many trees are worth having, tried on documents that they were not planned with.

Beyond the paper. MULT takes the number of groups that costs least on the sample that it planned
with, and so also fits trees to documents that will not come again: on all documents they may cost
more than one tree does. Here the sample is parted in two. Trees are planned with either half, for
1, 2, 4 and so on groups, and priced on the other; the fewest that cost about the least there are
planned with the whole sample. So a graph whose best answer is one tree gets one, and is told so.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from gossamer.protocol.dissemination.graphs.graph import Reals, Words
from gossamer.protocol.dissemination.grouping import merge_by_overlap
from gossamer.protocol.dissemination.plan import Plan, make_plan
from gossamer.protocol.dissemination.sample import Sample
from gossamer.protocol.dissemination.strategies import Routes, route_groups

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
    state = max(int(mergers.groups[0]) - trial.chosen, 0)
    groups = mergers.groups_at(state, plan.sample.subscriptions)
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
    trees = 1
    while trees == 1 or trees <= min(MOST_TRIED, int(mergers.groups[0])):
        state = max(int(mergers.groups[0]) - trees, 0)
        part = make_plan(plan.graph, known, plan.table)
        routes = route_groups(part, mergers.groups_at(state, known.subscriptions))
        costs[trees] = routes.price(part, other).total
        trees *= 2
    return costs
