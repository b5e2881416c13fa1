"""Grouping subscriptions: MULT (Algorithm 3) and MULT2 (Algorithm 2).

Two groups are as similar as the documents that match both are many beside those that match either
(Jaccard). The most similar are merged until one group is left, and the state that cost least is
kept. A group remembers the one it is most similar to; after a merger only those look again whose
partner is gone, so that a merger takes time S and not S^2.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator

import attrs
import numpy as np

from gossamer.protocol.dissemination.graph import NONE, Reals, Words
from gossamer.protocol.dissemination.path_tables import join_by_table
from gossamer.protocol.dissemination.plan import (
    Plan,
    bits_in,
    cost_of_union,
    gather_brokers,
    merge,
    write_documents,
)
from gossamer.protocol.dissemination.steiner import cost_of_links
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import Struct

Watch = Callable[[int, int], None]


class Partners(Struct):
    """To whom each of S groups is most similar.

    Attributes:
        present: int64[S], 1 for groups that match a document and are not merged into others.
        partner: int64[S], the most similar group, the lowest of several; NONE where there is none.
        similarity: float64[S], from 0 to 1; -1 without a partner.
    """

    present: Words
    partner: Words
    similarity: Reals


@attrs.frozen(eq=False)
class Mergers:
    """What happened while groups were merged, one entry for every state, the first before any.

    Attributes:
        kept, lost: int64[...], the groups of each merger; NONE in the first entry.
        groups: int64[...], how many groups match a document.
        costs: float64[...], cost of all groups on their own trees (Fig. 6).
    """

    kept: Words
    lost: Words
    groups: Words
    costs: Reals

    @property
    def best(self) -> int:
        """The first state of least cost."""
        return int(np.argmin(self.costs))

    def parted(self, trees: int, subscriptions: int) -> Words:
        """The group of each subscription in the state with so many groups, or all there are."""
        return self.groups_at(max(int(self.groups[0]) - trees, 0), subscriptions)

    def doublings(self, most: int) -> Iterator[int]:
        """1, 2, 4 and so on trees, as long as there are so many groups and no more than `most`."""
        yield 1
        trees = 2
        while trees <= min(most, int(self.groups[0])):
            yield trees
            trees *= 2

    def groups_at(self, state: int, subscriptions: int) -> Words:
        """The group of each subscription in one of the states."""
        above = np.arange(subscriptions, dtype=np.int64)
        for kept, lost in zip(self.kept[1 : state + 1], self.lost[1 : state + 1], strict=True):
            above[lost] = kept
        while (above[above] != above).any():
            above = above[above]
        return above


@inline_rule
def overlap(plan: Plan, one: int, other: int) -> float:
    """Jaccard's similarity of the documents of two groups that match some."""
    both, either = 0, 0
    for at in range(plan.held.shape[1]):
        both += bits_in(plan.held[one, at] & plan.held[other, at])
        either += bits_in(plan.held[one, at] | plan.held[other, at])
    return both / either


@rule
def find_partner(plan: Plan, partners: Partners, group: int) -> None:
    """Look for the partner of a group among all."""
    partners.partner[group] = NONE
    partners.similarity[group] = -1.0
    for other in range(partners.present.shape[0]):
        if partners.present[other] and other != group:
            similarity = overlap(plan, group, other)
            if similarity > partners.similarity[group]:
                partners.similarity[group] = similarity
                partners.partner[group] = other


@rule
def find_partners(plan: Plan, partners: Partners) -> None:
    """Look for the partners of all groups that match a document."""
    for group in range(partners.present.shape[0]):
        if partners.present[group]:
            find_partner(plan, partners, group)


@rule
def most_similar(partners: Partners) -> int:
    """The lower one of the most similar pair, NONE if no two groups are left."""
    chosen = NONE
    for group in range(partners.present.shape[0]):
        if (
            partners.present[group]
            and partners.partner[group] != NONE
            and (chosen == NONE or partners.similarity[group] > partners.similarity[chosen])
        ):
            chosen = group
    return int(chosen)


@rule
def merge_partners(plan: Plan, partners: Partners, one: int, other: int) -> None:
    """Merge group ``other`` into ``one``, and let those look again whom this concerns."""
    merge(plan, one, other)
    partners.present[other] = 0
    find_partner(plan, partners, one)
    for group in range(partners.present.shape[0]):
        if not partners.present[group] or group == one:
            continue
        if partners.partner[group] == one or partners.partner[group] == other:
            find_partner(plan, partners, group)
        else:
            similarity = overlap(plan, group, one)
            if similarity > partners.similarity[group] or (
                similarity == partners.similarity[group] and one < partners.partner[group]
            ):
                partners.similarity[group] = similarity
                partners.partner[group] = one


def make_partners(plan: Plan) -> Partners:
    """Partners of the present groups, those without documents left out."""
    subscriptions = plan.sample.subscriptions
    named = plan.groups == np.arange(subscriptions)
    partners = Partners(
        present=(named & plan.held.any(axis=1)).astype(np.int64),
        partner=np.full(subscriptions, NONE, np.int64),
        similarity=np.full(subscriptions, -1.0),
    )
    find_partners(plan, partners)
    return partners


def merge_by_overlap(plan: Plan, fewest: int = 1, watch: Watch | None = None) -> Mergers:
    """MULT (Algorithm 3): merge the most similar groups until ``fewest`` are left.

    Args:
        plan: its groups are merged on the way, and are at the end as few as asked for.
        watch: told, after each merger, how many are done and how many there will be.
    """
    partners = make_partners(plan)
    present = np.flatnonzero(partners.present).tolist()
    costs = {group: float(cost_of_union(plan, group, group)) for group in present}
    record = Record(sum(costs.values()), len(costs))
    for done in range(len(present) - fewest):
        one = most_similar(partners)
        other = int(partners.partner[one])
        together = float(cost_of_union(plan, one, other))
        record.note(one, other, together - costs[one] - costs.pop(other))
        costs[one] = together
        merge_partners(plan, partners, one, other)
        if watch is not None:
            watch(done + 1, len(present) - fewest)
    return record.mergers()


class Record:
    """Mergers as they happen."""

    def __init__(self, cost: float, groups: int) -> None:
        self._steps = [(NONE, NONE, groups, cost)]

    def note(self, kept: int, lost: int, change: float) -> None:
        """Note a merger that changed the cost by so much."""
        _, _, groups, cost = self._steps[-1]
        self._steps.append((kept, lost, groups - 1, cost + change))

    def mergers(self) -> Mergers:
        """All that was noted."""
        kept, lost, groups, costs = zip(*self._steps, strict=True)
        return Mergers(
            kept=np.array(kept, np.int64),
            lost=np.array(lost, np.int64),
            groups=np.array(groups, np.int64),
            costs=np.array(costs, np.float64),
        )


# Grouping subscriptions by what a common tree saves: MULT2 (Algorithm 2).
#
# Each merger is the one that saves the largest share of the two groups' costs, and the last is that
# after which none saves anything. Groups that no document matches both of cannot save by a common
# tree, so only those that share documents are compared, and only again when one of them has
# changed.
#
# For thousands of subscriptions there are neighbour lists: a group is compared only with those it
# is most similar to, and first only by a bound. A document costs a common tree no less than the
# dearer of its two Steiner trees, so what the groups save is known from above without their tree;
# the tree is made when no other pair can save a larger share. Subscriptions that the very same
# documents match, of which there are many then, are merged first.


# A pair as the heap keeps it: the share saved, negative; whether that is known and no bound, so
# that of equals those still to be known come first; the two groups, and their common tree's cost.
Pair = tuple[float, bool, int, int, float]


@rule
def write_similarities(plan: Plan, present: Words, group: int, similarities: Reals) -> None:
    """Write how similar a group is to every other (Jaccard), 0 to itself and to those gone."""
    for other in range(present.shape[0]):
        similarities[other] = 0.0
        if present[other] and other != group:
            similarities[other] = overlap(plan, group, other)


@rule
def write_least_costs(plan: Plan, group: int, costs: Reals) -> None:
    """Write what each document of a group costs on its own Steiner tree, 0 for all others."""
    for document in range(costs.shape[0]):
        costs[document] = 0.0
    for i in range(write_documents(plan, group, group)):
        document = plan.documents[i]
        brokers = gather_brokers(plan.work, plan.sample, plan.groups, group, group, document)
        links = join_by_table(plan.graph, plan.work, plan.table, brokers)
        size = plan.sample.sizes[document]
        costs[document] = size * cost_of_links(plan.graph, plan.work, links)


class _Gains:
    """The pairs of groups that are worth merging."""

    def __init__(self, plan: Plan, neighbours: int | None) -> None:
        self._plan = plan
        self._neighbours = neighbours
        named = plan.groups == np.arange(plan.sample.subscriptions)
        self._present = (named & plan.held.any(axis=1)).astype(np.int64)
        self._similarities = np.zeros(plan.sample.subscriptions)
        self.costs = {
            group: float(cost_of_union(plan, group, group))
            for group in np.flatnonzero(self._present).tolist()
        }
        # Mergers so far of each group: a pair is out of date when one of its groups has changed.
        self._versions = dict.fromkeys(self.costs, 0)
        self._heap: list[tuple[Pair, int, int]] = []
        if neighbours is not None:
            self._least = np.zeros((plan.sample.subscriptions, plan.sample.documents))

    def equal_groups(self) -> list[list[int]]:
        """The groups of the same documents, where there are several."""
        alike: dict[bytes, list[int]] = {}
        for group in self.costs:
            alike.setdefault(self._plan.held[group].tobytes(), []).append(group)
        return [groups for groups in alike.values() if len(groups) > 1]

    def update_all(self) -> None:
        """Judge all pairs."""
        if self._neighbours is not None:
            for group in self.costs:
                write_least_costs(self._plan, group, self._least[group])
        for group in self.costs:
            self._update(group, self._sharing(group, above=group))

    def _sharing(self, group: int, above: int = -1) -> Words:
        """The groups, numbered higher than ``above``, that share documents with a group.

        No more than there are to be neighbours, those that share the largest part first.
        """
        write_similarities(self._plan, self._present, group, self._similarities)
        others: Words = np.flatnonzero(self._similarities)
        others = others[others > above]
        if self._neighbours is None or len(others) <= self._neighbours:
            return others
        nearest = np.argsort(-self._similarities[others], kind="stable")[: self._neighbours]
        return np.sort(others[nearest])

    def _update(self, group: int, others: Words) -> None:
        if self._neighbours is None:
            for other in others.tolist():
                self._make_common_tree(min(group, other), max(group, other))
        else:
            least = np.maximum(self._least[group], self._least[others]).sum(axis=1)
            for other, together in zip(others.tolist(), least.tolist(), strict=True):
                self._push(min(group, other), max(group, other), together, known=False)

    def _make_common_tree(self, one: int, other: int) -> None:
        together = float(cost_of_union(self._plan, one, other))
        self._push(one, other, together, known=True)

    def _push(self, one: int, other: int, together: float, known: bool) -> None:
        before = self.costs[one] + self.costs[other]
        if together < before:
            pair = (together / before - 1, known, one, other, together)
            versions = self._versions[one], self._versions[other]
            heapq.heappush(self._heap, (pair, *versions))

    def pop(self) -> Pair | None:
        """Take the pair that saves the largest share, None if none saves anything."""
        while self._heap:
            pair, first, second = heapq.heappop(self._heap)
            _, known, one, other, _ = pair
            if self._versions.get(one) == first and self._versions.get(other) == second:
                if known:
                    return pair
                self._make_common_tree(one, other)
        return None

    def merge(self, one: int, other: int, cost: float) -> None:
        """Make one group of two."""
        merge(self._plan, one, other)
        self._present[other] = 0
        self.costs[one] = cost
        del self.costs[other], self._versions[other]
        self._versions[one] += 1

    def update(self, group: int) -> None:
        """Judge a group that has changed with those it shares documents with."""
        if self._neighbours is not None:
            write_least_costs(self._plan, group, self._least[group])
        self._update(group, self._sharing(group))


def merge_by_gain(plan: Plan, neighbours: int | None = None, watch: Watch | None = None) -> Mergers:
    """MULT2 (Algorithm 2): merge the groups that save the largest share until none saves.

    Args:
        plan: its groups, singletons or what MULT left of them, are merged on the way.
        neighbours: how many others a group is compared with, those most similar; None for all.
        watch: told, after each merger, how many are done and how many there may be.
    """
    gains = _Gains(plan, neighbours)
    record = Record(math.fsum(gains.costs.values()), len(gains.costs))
    most = len(gains.costs) - 1
    done = 0
    if neighbours is not None:
        done = _merge_equals(plan, gains, record)
    gains.update_all()
    while (pair := gains.pop()) is not None:
        _, _, one, other, cost = pair
        record.note(one, other, cost - gains.costs[one] - gains.costs[other])
        gains.merge(one, other, cost)
        gains.update(one)
        done += 1
        if watch is not None:
            watch(done, most)
    return record.mergers()


def _merge_equals(plan: Plan, gains: _Gains, record: Record) -> int:
    """Merge the groups of the same documents, where that saves; returns how many were merged."""
    done = 0
    for one, *others in gains.equal_groups():
        for other in others:
            together = float(cost_of_union(plan, one, other))
            change = together - gains.costs[one] - gains.costs[other]
            if change < 0:
                record.note(one, other, change)
                gains.merge(one, other, together)
                done += 1
    return done
