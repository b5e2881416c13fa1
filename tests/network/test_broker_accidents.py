"""The accidents that a family of brokers promises to survive, in processes on hosts."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs
import pytest
import trio

from support.host_brokers import (
    GRAPH,
    SCOT,
    TREE,
    BrokerFollower,
    Layout,
    broker_fleet,
)
from support.host_stories import ACCIDENTS, Accident, Story
from support.network_hosts import network_hosts
from support.node_processes import Shell

pytestmark = pytest.mark.campaign

DRAWS = 2
EPISODES = 3


@attrs.frozen
class Family:
    """Brokers, and what may happen to them."""

    layout: Layout
    accidents: Sequence[Accident] = ACCIDENTS
    one_at_a_time: bool = False


FAMILIES = {
    "tree": Family(TREE),
    "scot": Family(SCOT, (Story.split, Story.one_way, Story.kill, Story.pause), one_at_a_time=True),
    "graph": Family(GRAPH),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
async def test_nothing_acknowledged_is_lost_or_comes_twice(
    shell: Shell, family: Family, seed: int
) -> None:
    count = len(family.layout.dials)
    with network_hosts(count) as hosts, broker_fleet(shell, hosts, family.layout) as fleet:
        await fleet.ready()
        followers = [BrokerFollower.at(fleet, name) for name in fleet.names]
        async with trio.open_nursery() as nursery:
            for one in followers:
                await nursery.start(one.run)
            await fleet.known_everywhere(followers)
            draws = random.Random(seed)
            story = Story(fleet, draws, family.accidents, one_at_a_time=family.one_at_a_time)
            await story.play(followers, EPISODES)
            nursery.cancel_scope.cancel()
        repeated = {one.peer: one.hidden for one in followers if one.hidden}
        assert not repeated, (story.told, repeated)
