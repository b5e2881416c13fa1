"""SemCast (Papaemmanouil, Cetintemel, ICDE 2005), which Sec. VII compares with.

Content is split into channels, each a tree that reaches all subscribers of the channel; brokers
inside do not filter. Subscriptions that share traffic are split until what goes to the same
subscribers is a channel of its own, so that a subscription may be on many channels. Then channels
are merged, those first that this makes least dearer, until there are no more than may be.

Neither paper says how many channels there may be, nor where documents go that the sample had
none alike of. Our choices: as many as MULT makes trees at its best, 100; and the channels that
hold most of the subscribers still to be reached, for the fewest others, one after the other.
"""

from __future__ import annotations

import math
from typing import Final

import attrs
import numpy as np

from gossamer.protocol.dissemination.cost import Bill, Deliveries, Sample, price_deliveries
from gossamer.protocol.dissemination.path_tables import join_by_table
from gossamer.protocol.dissemination.plan import Plan
from gossamer.protocol.dissemination.spanning import Trees, complete_tree, hang_up, make_trees
from gossamer.protocol.dissemination.steiner import cost_of_links

CHANNELS: Final = 100

Members = frozenset[int]


@attrs.frozen(eq=False)
class Channels:
    """Channels and their trees.

    Attributes:
        members: the subscriptions on each channel.
        trees: a spanning tree for each; its members' brokers are joined by a Steiner tree.
        exact: by the subscriptions that documents match, the channel made for such.
        holders: by subscription, the channels that it is on.
    """

    members: tuple[Members, ...]
    trees: Trees
    exact: dict[Members, int]
    holders: dict[int, list[int]] = attrs.field(init=False)

    @holders.default
    def _find_holders(self) -> dict[int, list[int]]:
        holders: dict[int, list[int]] = {}
        for channel, members in enumerate(self.members):
            for subscription in members:
                holders.setdefault(subscription, []).append(channel)
        return holders

    def price(self, plan: Plan, sample: Sample, filtered: bool) -> Bill:
        """What documents cost on the channels.

        Args:
            filtered: whether brokers inside filter; without, a document reaches all brokers of
                the channel (Sec. VII-C).
        """
        first, trees, brokers = [0], [], []
        for document in range(sample.documents):
            matched = frozenset(sample.matches(document).tolist())
            for channel in sorted(self.channels_for(matched)):
                reached = self.members[channel]
                for subscription in sorted(reached & matched if filtered else reached):
                    trees.append(channel)
                    brokers.append(sample.places[subscription])
            first.append(len(trees))
        deliveries = Deliveries(
            first=np.array(first, np.int64),
            tree=np.array(trees, np.int64),
            broker=np.array(brokers, np.int64),
        )
        return price_deliveries(plan.graph, plan.work, self.trees, sample, deliveries)

    def channels_for(self, matched: Members) -> list[int]:
        """The channels that a document goes to: together they hold all it matches."""
        if matched in self.exact:
            return [self.exact[matched]]
        chosen = []
        missing = matched
        while missing:
            best = max(
                {channel for subscription in missing for channel in self.holders[subscription]},
                key=lambda channel: (
                    len(self.members[channel] & missing) / len(self.members[channel]),
                    len(self.members[channel] & missing),
                    -channel,
                ),
            )
            chosen.append(best)
            missing -= self.members[best]
        return chosen


class _Merging:
    """Channels while they are merged; each is its members, its traffic and its tree's cost."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        traffic: dict[Members, float] = {}
        for document in range(plan.sample.documents):
            matched = frozenset(plan.sample.matches(document).tolist())
            if matched:
                traffic[matched] = traffic.get(matched, 0.0) + plan.sample.sizes[document]
        self.members = list(traffic)
        self.made_for = {matched: channel for channel, matched in enumerate(self.members)}
        self._traffic = list(traffic.values())
        self._costs = [self._tree_cost(members) for members in self.members]
        self._cheapest = [(math.inf, -1)] * len(self.members)
        self.present = set(range(len(self.members)))

    def _tree_cost(self, members: Members) -> float:
        work = self._plan.work
        count = write_brokers(self._plan, members)
        return float(
            cost_of_links(
                self._plan.graph,
                work,
                join_by_table(self._plan.graph, work, self._plan.table, count),
            )
        )

    def _dearer_by(self, one: int, other: int) -> float:
        together = self._tree_cost(self.members[one] | self.members[other])
        return self._traffic[one] * (together - self._costs[one]) + self._traffic[other] * (
            together - self._costs[other]
        )

    def _find_cheapest(self, one: int) -> None:
        """Look which lower channel is merged with this one most cheaply."""
        others = [other for other in sorted(self.present) if other < one]
        priced = [(self._dearer_by(one, other), other) for other in others]
        self._cheapest[one] = min(priced, default=(math.inf, -1))

    def run(self, most: int) -> None:
        """Merge until there are at most ``most`` channels."""
        if len(self.present) <= most:
            return
        for channel in sorted(self.present):
            self._find_cheapest(channel)
        while len(self.present) > most:
            gone = min(sorted(self.present), key=lambda channel: self._cheapest[channel])
            self._merge(self._cheapest[gone][1], gone)

    def _merge(self, kept: int, gone: int) -> None:
        self.present.remove(gone)
        self.members[kept] |= self.members[gone]
        self._traffic[kept] += self._traffic[gone]
        self._costs[kept] = self._tree_cost(self.members[kept])
        for matched, channel in self.made_for.items():
            if channel == gone:
                self.made_for[matched] = kept
        for channel in sorted(self.present):
            if channel >= kept and (channel == kept or self._cheapest[channel][1] in (kept, gone)):
                self._find_cheapest(channel)
            elif channel > kept:
                self._cheapest[channel] = min(
                    self._cheapest[channel], (self._dearer_by(channel, kept), kept)
                )


def write_brokers(plan: Plan, members: Members) -> int:
    """Write the brokers of these subscriptions to ``work.terminals``; returns how many."""
    brokers = np.unique(plan.sample.places[sorted(members)])
    plan.work.terminals[: len(brokers)] = brokers
    return len(brokers)


def plan_channels(plan: Plan, most: int = CHANNELS) -> Channels:
    """The channels of a sample, at most so many.

    Subscriptions that no document of the sample matches share none: each broker's are one more.
    """
    merging = _Merging(plan)
    merging.run(most)
    left = sorted(merging.present)
    members = [merging.members[channel] for channel in left]
    members += _unheard(plan, members)
    numbers = {channel: number for number, channel in enumerate(left)}
    trees = make_trees(max(len(members), 1), plan.graph.nodes)
    for number, channel in enumerate(members):
        brokers = write_brokers(plan, channel)
        root = int(plan.work.terminals[0])
        links = complete_tree(
            plan.graph, plan.work, join_by_table(plan.graph, plan.work, plan.table, brokers)
        )
        hang_up(plan.graph, plan.work, links, root, trees, number)
    exact = {matched: numbers[channel] for matched, channel in merging.made_for.items()}
    return Channels(tuple(members), trees, exact)


def _unheard(plan: Plan, members: list[Members]) -> list[Members]:
    heard = frozenset[int]().union(*members)
    by_broker: dict[int, list[int]] = {}
    for subscription, place in enumerate(plan.sample.places.tolist()):
        if subscription not in heard:
            by_broker.setdefault(place, []).append(subscription)
    return [frozenset(subscriptions) for subscriptions in by_broker.values()]
