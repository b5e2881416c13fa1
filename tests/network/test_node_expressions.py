"""Peers deliver what expressions ask for, exactly: boxes bring events, exact values decide.

Seeded expressions of every operator, over whole peers on a network in memory whose clock jumps; the
oracle evaluates every comparison by itself.
"""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from gossamer.node.peer.peer import Event, Peer, Subscription
from support.expression_strategies import SCHEMA, Written, matchable, random_event
from support.memory_peers import MemoryPeers, memory_peers
from support.node_peers import rounds_pass
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

pytestmark = pytest.mark.usefixtures("each_preset")

KEYS = [1 + (i << 58) for i in range(5)]
# As many as there are subscriptions for: their boxes have to become coarser.
AT_ONCE_EACH = 16
EVENTS_EACH = 2
# As of nodes.
INTERVALS = {"key_intervals": 4}


async def publish_all(peers: list[Peer], draws: random.Random) -> dict[int, dict[str, Any]]:
    """Let every peer publish a few events; return them by id, all acknowledged."""
    published = {}
    for peer in peers:
        for _ in range(EVENTS_EACH):
            values = random_event(draws, absent=0.2)
            published[await peer.publish(values)] = values
    return published


async def taken(stream: Subscription) -> list[Event]:
    return [await anext(stream) for _ in range(len(stream))]


def wanted(written: Written, published: dict[int, dict[str, Any]]) -> list[int]:
    return sorted(event for event, values in published.items() if written.matches(values))


@pytest.mark.parametrize("count", [80, pytest.param(1000, marks=pytest.mark.campaign)])
@on_jumping_clock
async def test_expressions_get_what_matches_and_nothing_else(tmp_path: Path, count: int) -> None:
    seed = 1
    draws, source = random.Random(seed), matchable(random.Random(seed))
    tried = deliveries = 0
    async with memory_peers(tmp_path, *KEYS, schema=SCHEMA, settings=INTERVALS) as crowd:
        peers = list(crowd.peers.values())
        while tried < count:
            batch = [next(source) for _ in range(AT_ONCE_EACH * len(peers))]
            tried += len(batch)
            async with AsyncExitStack() as stack:
                streams = [
                    await stack.enter_async_context(peers[i % len(peers)].subscribe(one.text))
                    for i, one in enumerate(batch)
                ]
                await rounds_pass(*peers, rounds=4)
                published = await publish_all(peers, draws)
                await rounds_pass(*peers, rounds=4)
                for one, stream in zip(batch, streams, strict=True):
                    found = [event for event in await taken(stream) if event.id in published]
                    ids = sorted(event.id for event in found)
                    assert ids == wanted(one, published), (seed, one.text)
                    assert all(event.values == published[event.id] for event in found)
                    deliveries += len(ids)
    print(f"seed {seed}: {tried} expressions, {deliveries} deliveries")
    assert deliveries > tried


@on_jumping_clock
async def test_named_expressions_get_what_came_while_their_peer_was_away(tmp_path: Path) -> None:
    seed = 2
    draws, source = random.Random(seed), matchable(random.Random(seed))
    batch = [next(source) for _ in range(8)]
    async with memory_peers(tmp_path, *KEYS, schema=SCHEMA, settings=INTERVALS) as crowd:
        away = KEYS[2]
        for one in batch:
            crowd.peers[away].subscribe(one.text, name=one.text).close()
        await crowd.rounds(6)
        await crowd.stop(away)
        published = await publish_all(list(crowd.peers.values()), draws)
        # Longer than events are replayed without being asked for.
        await trio.sleep(40)
        await crowd.add(away)
        await has_caught_up(crowd, away, batch, published)
        for one in batch:
            stream = crowd.peers[away].subscribe(one.text, name=one.text)
            ids = [event.id for event in await taken(stream)]
            assert sorted(ids) == wanted(one, published), (seed, one.text)


async def has_caught_up(
    crowd: MemoryPeers, key: int, batch: list[Written], published: dict[int, dict[str, Any]]
) -> None:
    due = sum(len(wanted(one, published)) for one in batch)
    subscribers = crowd.peers[key].subscribers
    assert due > 0
    await eventually(lambda: sum(map(len, subscribers)) >= due, 60.0)
    await crowd.rounds(8)
