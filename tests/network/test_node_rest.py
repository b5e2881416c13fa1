"""Peers that rest send next to nothing, and wake for whatever comes; on a clock that jumps."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from gossamer.node.peer.peer import Peer
from gossamer.node.transport.base import Cause
from support.memory_peers import MemoryPeers, memory_peers, ring_errors
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock
from support.waiting import eventually, running

pytestmark = on_jumping_clock

KEYS = [1 + (i << 58) for i in range(4)]
REST = 16  # of rounds of half a second
INTERVAL_S = 8.0
DRAWS = 1
rests = pytest.mark.parametrize("rest", [1, REST])


@asynccontextmanager
async def cluster_at_rest(
    folder: Path, rest: int = REST, network: MemoryNetwork | None = None
) -> AsyncIterator[MemoryPeers]:
    """Peers of which nothing was asked for a while."""
    settings = {"rest_rounds": rest, "suspect_rounds": 2}
    async with memory_peers(folder, *KEYS, network=network, settings=settings) as crowd:
        await crowd.whole()
        await trio.sleep(5 * INTERVAL_S)
        yield crowd


def frames_of(peers: dict[int, Peer]) -> int:
    return sum(peer.counters.frames_sent for peer in peers.values())


async def test_a_cluster_at_rest_sends_few_frames(tmp_path: Path) -> None:
    """Of three neighbours each is asked once an interval, by one of the two; beside that gossip."""
    async with cluster_at_rest(tmp_path) as crowd:
        before, rounds = frames_of(crowd.peers), crowd.peers[KEYS[0]].counters.rounds
        await trio.sleep(20 * INTERVAL_S)
        sent = (frames_of(crowd.peers) - before) / len(KEYS) / 20
        print(f"{sent:.1f} frames of a peer in an interval")
        assert sent <= 20
        rounds = crowd.peers[KEYS[0]].counters.rounds - rounds
        assert 19 * REST <= rounds <= 21 * REST, "rounds that are slept through count"
        assert not any(peer.counters.rounds_late for peer in crowd.peers.values())
        pinged = [
            one.stats.round_trip_s for peer in crowd.peers.values() for one in peer._views.pool
        ]
        assert None not in pinged


@rests
async def test_an_event_comes_at_once(tmp_path: Path, rest: int) -> None:
    async with cluster_at_rest(tmp_path, rest) as crowd:
        streams = {key: peer.subscribe("price >= 0") for key, peer in crowd.peers.items()}
        await trio.sleep(5 * INTERVAL_S)
        began = trio.current_time()
        with trio.fail_after(0.5):
            event = await crowd.publish(KEYS[1], 5)
            for stream in streams.values():
                assert (await anext(stream)).id == event
        print(f"after {trio.current_time() - began:.2f} s")


@rests
async def test_a_new_subscription_is_in_force_at_once(tmp_path: Path, rest: int) -> None:
    async with cluster_at_rest(tmp_path, rest) as crowd:
        stream = crowd.peers[KEYS[2]].subscribe("price < 10")
        await trio.sleep(2.0)
        event = await crowd.publish(KEYS[1], 5)
        with trio.fail_after(0.5):
            assert (await anext(stream)).id == event


@pytest.mark.parametrize("silent", [False, True])
@rests
async def test_a_crash_is_acted_on_as_soon(tmp_path: Path, rest: int, silent: bool) -> None:
    """Where connections break at once; where a host is silent before pings would tell."""
    network = MemoryNetwork()
    async with cluster_at_rest(tmp_path, rest, network) as crowd:
        gone = KEYS[2]
        others = {key: peer for key, peer in crowd.peers.items() if key != gone}
        began = trio.current_time()
        if silent:
            network.partition([gone], [*others])
        else:
            await crowd.crash(gone)
        await eventually(lambda: all(gone not in neighbours(peer) for peer in others.values()), 60)
        took_s = trio.current_time() - began
        print(f"rest {rest}, silent {silent}: nobody's neighbour after {took_s:.1f} s")
        assert took_s <= (20.0 if silent else 1.0)
        assert not ring_errors(others)


@rests
async def test_a_silent_host_is_found_out_by_what_it_is_sent(tmp_path: Path, rest: int) -> None:
    network = MemoryNetwork()
    async with cluster_at_rest(tmp_path, rest, network) as crowd:
        for peer in crowd.peers.values():
            peer.subscribe("price >= 0")
        await trio.sleep(5 * INTERVAL_S)
        gone, others = KEYS[2], {key: crowd.peers[key] for key in KEYS if key != KEYS[2]}
        network.partition([gone], [*others])
        began = trio.current_time()
        for key in others:
            await crowd.publish(key, 5)
        await eventually(lambda: any(gone not in neighbours(peer) for peer in others.values()), 60)
        took_s = trio.current_time() - began
        print(f"rest {rest}: found out after {took_s:.1f} s")
        assert took_s <= 4.0


async def test_peers_that_rest_for_longer_than_others_are_understood(tmp_path: Path) -> None:
    settings = {"rest_rounds": 1, "suspect_rounds": 2}
    async with memory_peers(tmp_path, *KEYS[:2], settings=settings) as crowd:
        crowd.settings = settings | {"rest_rounds": REST}
        for key in KEYS[2:]:
            await crowd.add(key)
        streams = {key: peer.subscribe("price >= 0") for key, peer in crowd.peers.items()}
        await crowd.whole()
        await trio.sleep(10 * INTERVAL_S)
        for key, peer in crowd.peers.items():
            event = await crowd.publish(key, 5)
            with trio.fail_after(0.5):
                for stream in streams.values():
                    assert (await anext(stream)).id == event
            assert not peer.counters.dropped["bad frame"]
            assert Cause.BAD_FRAME not in peer._views.pool.ends


def neighbours(peer: Peer) -> set[int]:
    return {other.key for other in peer.snapshot().peers if other.links}


async def test_nothing_is_lost_between_rest_and_work(tmp_path: Path, seed: int) -> None:
    """Events, broken connections and crashes after pauses in which peers fall asleep, or nearly."""
    draws = random.Random(seed)
    network = MemoryNetwork(seed, Faults(latency_s=(0.0, 0.05)))
    got: dict[int, Counter[int]] = {key: Counter() for key in KEYS}
    published: set[int] = set()

    async with cluster_at_rest(tmp_path, network=network) as crowd:

        async def read(key: int) -> None:
            async with crowd.peers[key].subscribe("price >= 0", name="ledger") as events:
                async for event in events:
                    got[key][event.id] += 1

        async with running() as readers:
            for key in KEYS:
                readers.start_soon(read, key)
            for _ in range(8):
                await trio.sleep(draws.choice([0.3, 3, 12, 20]) * draws.random())
                what, key = draws.randrange(4), draws.choice(KEYS)
                if what == 0:
                    network.break_connections(
                        key, draws.choice([one for one in KEYS if one != key])
                    )
                elif what == 1 and key != KEYS[0]:
                    await crowd.crash(key)
                    await trio.sleep(draws.choice([1, 20]) * draws.random())
                    await crowd.add(key)
                    readers.start_soon(read, key)
                published.add(await crowd.publish(draws.choice(KEYS), draws.randrange(1000)))
            await eventually(lambda: all(one.keys() >= published for one in got.values()), 120)
            await trio.sleep(2 * INTERVAL_S)
    print(f"seed {seed}: {len(published)} events")
    assert all(one == Counter(published) for one in got.values())
