"""Grouping subscriptions by what a common tree saves: MULT2 (Algorithm 2).

Each merger is the one that saves the largest share of the two groups' costs, and the last is that
after which none saves anything. Groups that no document matches both of cannot save by a common
tree, so only those that share documents are judged, and only again when one of them has changed.
"""

from __future__ import annotations

import heapq

import numpy as np

from gossamer.protocol.trees.compute_tree import cost_of_union
from gossamer.protocol.trees.graph import Words
from gossamer.protocol.trees.grouping import Mergers, Record, Watch
from gossamer.protocol.trees.plan import Plan, merge

# A pair as the heap keeps it: the share saved, negative; the two groups, and what a common tree
# costs.
Pair = tuple[float, int, int, float]


class _Gains:
    """The pairs of groups that are worth merging."""

    def __init__(self, plan: Plan, neighbours: int | None) -> None:
        self._plan = plan
        self._neighbours = neighbours
        named = plan.groups == np.arange(plan.sample.subscriptions)
        self._present = named & plan.held.any(axis=1)
        self.costs = {
            group: float(cost_of_union(plan, group, group))
            for group in np.flatnonzero(self._present).tolist()
        }
        # Mergers so far of each group: a pair is out of date when one of its groups has changed.
        self._versions = dict.fromkeys(self.costs, 0)
        self._heap: list[tuple[Pair, int, int]] = []
        for group in self.costs:
            self._judge(group, self._sharing(group, above=group))

    def _sharing(self, group: int, above: int = -1) -> Words:
        """The groups, numbered higher than ``above``, that share documents with a group.

        No more than there are to be neighbours, those that share the largest part first.
        """
        others: Words = np.flatnonzero(self._present)
        others = others[(others > above) & (others != group)]
        common = np.bitwise_count(self._plan.held[others] & self._plan.held[group]).sum(axis=1)
        others = others[common > 0]
        if self._neighbours is None or len(others) <= self._neighbours:
            return others
        common = common[common > 0]
        union = np.bitwise_count(self._plan.held[others] | self._plan.held[group]).sum(axis=1)
        nearest = np.argsort(-common / union, kind="stable")[: self._neighbours]
        chosen: Words = np.sort(others[nearest])
        return chosen

    def _judge(self, group: int, others: Words) -> None:
        for other in others.tolist():
            one, two = min(group, other), max(group, other)
            before = self.costs[one] + self.costs[two]
            together = float(cost_of_union(self._plan, one, two))
            if together < before:
                pair = (together / before - 1, one, two, together)
                versions = self._versions[one], self._versions[two]
                heapq.heappush(self._heap, (pair, *versions))

    def pop(self) -> Pair | None:
        """Take the pair that saves the largest share, None if none saves anything."""
        while self._heap:
            pair, first, second = heapq.heappop(self._heap)
            if self._versions.get(pair[1]) == first and self._versions.get(pair[2]) == second:
                return pair
        return None

    def merge(self, one: int, other: int, cost: float) -> None:
        """Make one group of two, and judge it with those it shares documents with."""
        merge(self._plan, one, other)
        self._present[other] = False
        self.costs[one] = cost
        del self.costs[other], self._versions[other]
        self._versions[one] += 1
        self._judge(one, self._sharing(one))


def merge_by_gain(plan: Plan, neighbours: int | None = None, watch: Watch | None = None) -> Mergers:
    """MULT2 (Algorithm 2): merge the groups that save the largest share until none saves.

    Args:
        plan: its groups, singletons or what MULT left of them, are merged on the way.
        neighbours: how many others a group is judged with, those most similar; None for all.
        watch: told, after each merger, how many are done and how many there may be.
    """
    gains = _Gains(plan, neighbours)
    record = Record(sum(gains.costs.values()), len(gains.costs))
    most = len(gains.costs) - 1
    done = 0
    while (pair := gains.pop()) is not None:
        _, one, other, cost = pair
        record.note(one, other, cost - gains.costs[one] - gains.costs[other])
        gains.merge(one, other, cost)
        done += 1
        if watch is not None:
            watch(done, most)
    return record.mergers()
