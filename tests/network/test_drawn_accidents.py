"""Everyday accidents, drawn, at nodes in processes on hosts of their own.

Cuts between parts and in one direction, new addresses, nodes that boot before the switch does,
nodes that are killed, paused, or all restarted while they are apart. Every node publishes all the
time, and a named application at each wants everything: nothing acknowledged is lost, nothing comes
twice. A seed fixes the story, which a failing test prints.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
import trio

from support.host_stories import PORT, HostFleet, Story
from support.network_hosts import Host, network_hosts
from support.node_fleets import QUICK, Follower
from support.node_processes import Shell

pytestmark = pytest.mark.campaign

HOSTS = 5
DRAWS = 2
EPISODES = 3

SETTINGS: dict[str, object] = {
    **QUICK,
    "page__enabled": False,
    "preset": "lan",
    "listen__addresses": [f"0.0.0.0:{PORT}"],
    "discovery__peers": [],
    "discovery__multicast": True,  # they find each other
}


@contextmanager
def host_fleet(shell: Shell, hosts: Sequence[Host]) -> Iterator[HostFleet]:
    made = HostFleet.make(shell, len(hosts), **SETTINGS)
    assert isinstance(made, HostFleet)
    made.hosts = hosts
    try:
        made.start(*made.names)
        yield made
    finally:
        made.stop()


async def test_nothing_acknowledged_is_lost_or_comes_twice(shell: Shell, seed: int) -> None:
    with network_hosts(HOSTS) as hosts, host_fleet(shell, hosts) as fleet:
        await fleet.ready()
        followers = [Follower(fleet, name, "ledger") for name in fleet.names]
        async with trio.open_nursery() as nursery:
            for one in followers:
                await nursery.start(one.run)
            await trio.sleep(4)
            await Story(fleet, random.Random(seed)).play(followers, EPISODES)
            nursery.cancel_scope.cancel()
