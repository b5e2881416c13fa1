"""The mobile scenario of the incremental paper (Sec. V-B, Fig. 8, 9): commuters in a city.

Sixteen brokers around one in the middle host 2,000 publishers and 200,000 subscribers. "60 % of the
subscribers are commuters and move from home to their office in the morning ..., 20 % of the
subscribers remain stationary, and the remaining 20 % move randomly according to a normal
distribution." Subscriptions and publications are SIENA's.

What the paper leaves open is chosen here: homes and offices are anywhere; commuters leave home at
times distributed normally around eight o'clock, with a deviation of twenty minutes; whoever moves
randomly does so every half an hour, to the broker that lies a normally distributed number of places
further around the star, with a deviation of two places; publishers of one broker share an
advertisement, for their trees are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush, merge
from typing import Final, NamedTuple

import attrs
import numpy as np

from gossamer.protocol.brokers.core.messages import Subscribe, Unsubscribe
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters.constraint import PRESENT
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers.scene import MINUTE, NUMBER, SECOND, Placed, Step, publishes
from gossamer.sim.studies.tree_brokers.siena import Siena
from gossamer.sim.studies.tree_brokers.topology import BrokerOverlay, star_17
from gossamer.sim.study.draws import Floats, Int64s, choices, normal, rows_from, uniform

# Subscribers that move: where they are, and what moving takes.


class Journey(NamedTuple):
    """A subscriber goes to another broker.

    Attributes:
        at: when, in microseconds of the scene.
        subscriber: its place in the list of subscribers.
        among: where to, any of these but where it is.
        draw: from [0, 1), which of them.
    """

    at: int
    subscriber: int
    among: Sequence[str]
    draw: float


def journeys(subscribers: Sequence[Placed], going: Iterable[Journey], away: int) -> Iterator[Step]:
    """What subscribers do who go places, in the order of time.

    Whoever is still away, or has nowhere else to go, stays.

    Args:
        subscribers: where each is at first.
        going: in the order of time.
        away: microseconds for which whoever moves is nowhere.
    """
    where = [one.broker for one in subscribers]
    back_at = [0] * len(subscribers)
    arriving: list[tuple[int, int, Step]] = []
    for number, journey in enumerate(going):
        at, who, among, draw = journey
        while arriving and arriving[0][0] <= at:
            yield heappop(arriving)[2]
        others = [broker for broker in among if broker != where[who]]
        if at < back_at[who] or not others:
            continue
        _, label, wanted = subscribers[who]
        yield Step(at, where[who], Unsubscribe(label))
        where[who] = others[int(draw * len(others))]
        back_at[who] = at + away
        arrival = Step(at + away, where[who], Subscribe(label, wanted))
        heappush(arriving, (arrival.at, number, arrival))
    while arriving:
        yield heappop(arriving)[2]


COMMUTER, STATIONARY, WANDERER = range(3)

# The seed's streams.
_SORTS, _HOMES, _OFFICES, _DEPARTURES, _WALKS, _PUBLISHERS = 261, 262, 263, 264, 265, 266
# Rows of a stream that are drawn at a time.
_BATCH: Final = 512


@attrs.frozen(kw_only=True)
class Commuters:
    """Subscribers in a city in the morning; all times are microseconds.

    Attributes:
        overlay: who is linked to whom.
        content: what is asked for and published.
        subscribers: how many; 200,000 in the paper.
        commuting, wandering: shares of subscribers; the rest stays where it is.
        rush: when most commuters leave home, from the beginning of the scene.
        rush_spread: standard deviation of that.
        walk_every: time between two moves of a wanderer.
        walk_spread: standard deviation of how many places they go.
        publish_every: time between two publications of any publisher. 2,000 publishers of whom each
            publishes every 1 to 15 s, 8 s on average, make one every 4 ms.
        away: how long whoever moves is nowhere.
        seed: of all draws but those of the content.
    """

    overlay: BrokerOverlay = attrs.field(factory=star_17)
    content: Siena = attrs.field(factory=Siena)
    subscribers: int = 200_000
    commuting: float = 0.6
    wandering: float = 0.2
    rush: int = 60 * MINUTE
    rush_spread: int = 20 * MINUTE
    walk_every: int = 30 * MINUTE
    walk_spread: float = 2.0
    publish_every: int = 4_000
    away: int = SECOND
    seed: int = 1

    def __attrs_post_init__(self) -> None:
        for name in ("subscribers", "walk_every", "publish_every"):
            if getattr(self, name) < 1:
                raise ScenarioError(None, f"workload.{name}", getattr(self, name), "at least 1")
        if min(self.commuting, self.wandering) < 0 or self.commuting + self.wandering > 1:
            expected = "a share that is at most 1 together with workload.wandering"
            raise ScenarioError(None, "workload.commuting", self.commuting, expected)

    def advertisements(self) -> Iterator[Placed]:
        """At every publisher host, any of the content's attributes."""
        offer = Filter.from_constraints(dict.fromkeys((*self.content.words(), NUMBER), PRESENT))
        for host in self.overlay.publisher_hosts:
            yield Placed(host, "anything", offer)

    def standing(self) -> Iterator[Placed]:
        """Every subscriber at home."""
        return iter(self._at_home(rows_from(0, self.subscribers)))

    def steps(self, span: int) -> Iterator[Step]:
        """Publications, and moves of commuters and wanderers."""
        sorts = self.sorts()
        return merge(
            self._publications(span),
            self._commutes(np.flatnonzero(sorts == COMMUTER), span),
            self._walks(np.flatnonzero(sorts == WANDERER), span),
            key=lambda step: step.at,
        )

    def sorts(self) -> Int64s:
        """int64[subscribers]: COMMUTER, STATIONARY or WANDERER."""
        return self.sort_of(rows_from(0, self.subscribers))

    def sort_of(self, rows: Int64s) -> Int64s:
        """COMMUTER, STATIONARY or WANDERER for each of these subscribers."""
        draws = uniform(self.seed, _SORTS, rows, 0)
        return np.where(
            draws < self.commuting,
            COMMUTER,
            np.where(draws < self.commuting + self.wandering, WANDERER, STATIONARY),
        )

    def homes_of(self, rows: Int64s) -> Int64s:
        """Where each of these subscribers lives: a place among the subscriber hosts."""
        return choices(self.seed, _HOMES, rows, 0, len(self.overlay.subscriber_hosts))

    def workplaces_of(self, rows: Int64s) -> Int64s:
        """Where each works, if it is a commuter: any of the hosts but its home, or its home."""
        homes, others = self.homes_of(rows), len(self.overlay.subscriber_hosts) - 1
        if not others:
            return homes
        offices = (self._workplace_draws(rows) * others).astype(np.int64)
        return offices + (offices >= homes)

    def leaving_of(self, rows: Int64s) -> Floats:
        """When each leaves home, if it is a commuter and that is within the scene."""
        return self.rush + self.rush_spread * normal(self.seed, _DEPARTURES, rows, 0)

    def walks_of(self, rows: Int64s, turn: int) -> tuple[Int64s, Int64s]:
        """When each of these wanderers moves in a turn, and how many places it goes."""
        phases = (uniform(self.seed, _WALKS, rows, 0) * self.walk_every).astype(np.int64)
        strides = np.rint(self.walk_spread * normal(self.seed, _WALKS, rows, 1 + 2 * turn))
        return turn * self.walk_every + phases, strides.astype(np.int64)

    def _workplace_draws(self, rows: Int64s) -> Floats:
        return uniform(self.seed, _OFFICES, rows, 0)

    def _at_home(self, rows: Int64s) -> list[Placed]:
        hosts = self.overlay.subscriber_hosts
        homes = self.homes_of(rows).tolist()
        wanted = self.content.subscriptions(rows)
        return [
            Placed(hosts[home], f"{row}", filter_)
            for row, home, filter_ in zip(rows.tolist(), homes, wanted, strict=True)
        ]

    def _commutes(self, who: Int64s, span: int) -> Iterator[Step]:
        leaving = self.leaving_of(who)
        inside = (leaving >= 0) & (leaving < span)
        who, leaving = who[inside], leaving[inside].astype(np.int64)
        offices = self._workplace_draws(who).tolist()
        going = (
            Journey(int(leaving[i]), i, self.overlay.subscriber_hosts, offices[i])
            for i in np.argsort(leaving, kind="stable").tolist()
        )
        return journeys(self._at_home(who), going, self.away)

    def _walks(self, who: Int64s, span: int) -> Iterator[Step]:
        """Every wanderer at a time of its own in each half an hour."""
        hosts = self.overlay.subscriber_hosts
        subscribers = self._at_home(who)
        places = [hosts.index(one.broker) for one in subscribers]
        phases = uniform(self.seed, _WALKS, who, 0) * self.walk_every
        order = np.argsort(phases, kind="stable").tolist()

        def going() -> Iterator[Journey]:
            for turn in range(span // self.walk_every + 1):
                times, strides = (part.tolist() for part in self.walks_of(who, turn))
                for i in order:
                    at = times[i]
                    if at >= span:
                        return
                    places[i] = (places[i] + strides[i]) % len(hosts)
                    yield Journey(at, i, (hosts[places[i]],), 0.0)

        return journeys(subscribers, going(), self.away)

    def publishers_of(self, rows: Int64s) -> Int64s:
        """Who publishes each of these: a place among the publisher hosts."""
        return choices(self.seed, _PUBLISHERS, rows, 0, len(self.overlay.publisher_hosts))

    def _publications(self, span: int) -> Iterator[Step]:
        hosts = self.overlay.publisher_hosts
        for first in range(0, -(-span // self.publish_every), _BATCH):
            rows = rows_from(first, _BATCH)
            who = self.publishers_of(rows).tolist()
            contents = self.content.publications(rows)
            for row, host, values in zip(rows.tolist(), who, contents, strict=True):
                at = row * self.publish_every
                if at >= span:
                    return
                yield publishes(at, hosts[host], row, values)
