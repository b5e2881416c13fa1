"""Grouping subscriptions by the documents they share: MULT (Algorithm 3).

Two groups are as similar as the documents that match both are many beside those that match either
(Jaccard). The most similar are merged until one group is left, and the state that cost least is
kept. A group remembers the one it is most similar to; after a merger only those look again whose
partner is gone, so that a merger takes time S and not S^2.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from gossamer.protocol.dissemination.compute_tree import cost_of_union
from gossamer.protocol.dissemination.graphs.graph import NONE, Reals, Words
from gossamer.protocol.dissemination.plan import Plan, bits_in, merge
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
