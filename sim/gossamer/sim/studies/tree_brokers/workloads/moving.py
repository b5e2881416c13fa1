"""Subscribers that move: where they are, and what moving takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from gossamer.protocol.brokers.core.messages import Subscribe, Unsubscribe
from gossamer.sim.studies.tree_brokers.workloads.scene import Placed, Step


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
