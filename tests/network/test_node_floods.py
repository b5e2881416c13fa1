"""Floods of subscriptions, from one peer and from one application: bounded and harmless."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
import trio

from gossamer.node.config.node import Local
from gossamer.node.local.frames import VERSION
from gossamer.node.peer.load.rate_limits import PER_ROUND
from gossamer.node.transport.base.frames import encode_frame
from gossamer.protocol.peer.record_table.records import INSTALL, INSTALL_NEWS
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.settings.profile import NOTHING, RANGES
from gossamer.protocol.peer.state.state import profile_words
from support.attackers import Attacker, attacker
from support.clusters import MadeCluster
from support.local_nodes import LocalNode
from support.loopback_peer import IBM
from support.memory_members import MemberPeers, member_peers
from support.memory_peers import ROUND_S
from support.memory_use import memory_of_process
from support.node_peers import take_ids
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

SEED = 1
ROUNDS = 3
# Of the process, in which three other peers run.
GROWTH_BYTES = 8 << 20
SETTINGS = config.resilient(16, attributes=2, subscriptions=16, event_memory=256)
BOXES = SETTINGS.boxes_per_neighbour


def boxes(draws: random.Random) -> bytes:
    """As many subscriptions as a record may bring, none like another."""
    words = [0, 0, BOXES]
    for number in range(BOXES):
        lows = [draws.getrandbits(61) for _ in range(2)]
        words += [number % 2, *(end for low in lows for end in (low, low + draws.getrandbits(60)))]
    return struct.pack(f"<{len(words)}q", *words)


async def flood(crowd: MemberPeers, target: int, attack: Attacker, records: int) -> None:
    """Send so many records of subscriptions, in `ROUNDS` of the peer's rounds."""
    draws = random.Random(SEED)
    profile = (1 << 60, 1 << 60, 0, *[NOTHING] * (profile_words(SETTINGS) - RANGES))
    entry = attack.descriptor(profile)
    for number in range(records):
        kind = INSTALL if number % 2 else INSTALL_NEWS
        await attack.send("record", kind=kind, words=boxes(draws), peers=[entry])
        if number % (records // ROUNDS) == 0:
            await attack.send("ping", number=number)
            await attack.next_frame("pong")
            await trio.sleep(ROUND_S)
            entries = crowd.peers[target].gauges().routing_entries
            assert entries <= SETTINGS.routing_table_entries


@pytest.mark.parametrize(
    "subscriptions", [10_000, pytest.param(100_000, marks=pytest.mark.campaign)]
)
@on_jumping_clock
async def test_a_flood_of_subscriptions_from_a_peer_is_dropped_and_harms_nobody(
    cluster: MadeCluster, subscriptions: int
) -> None:
    """Most of it is not even looked at; who was there before goes on getting all events."""
    records = subscriptions // BOXES
    async with member_peers(cluster, 4, preset="resilient") as crowd:
        await crowd.whole()
        first, *others = crowd.peers.values()
        events = others[0].subscribe("price >= 0")
        await crowd.rounds(8)
        before = memory_of_process()
        async with attacker(crowd, first.key, cluster.admit("flooder")) as attack:
            await flood(crowd, first.key, attack, records)
            published = {
                await peer.publish({"price": i, "symbol": "A"})
                for i, peer in enumerate(crowd.peers.values())
            }
            got = await take_ids(events, len(published))
            assert got == published
        growth = memory_of_process() - before
        dropped = first.counters.dropped["flood"]
        print(f"{records} records, {dropped} dropped, {growth} bytes more")
        assert growth < GROWTH_BYTES
        assert dropped >= records - (ROUNDS + 2) * (PER_ROUND[INSTALL] + PER_ROUND[INSTALL_NEWS])
        assert dropped > records / 3
        late = others[1].subscribe("price > 500")
        await crowd.rounds(8)
        news = await others[2].publish({"price": 501, "symbol": "A"})
        assert await take_ids(late, 1) == {news}


async def test_a_flood_of_subscriptions_from_an_application_is_slowed_down_and_cut(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """It has as many as it may have, then refusals, then no connection; others are served."""
    del autojump_clock
    local = Local(subscriptions=16, requests_per_s=500)
    node = LocalNode(tmp_path, local=local)
    async with node.running(), node.client() as other:
        assert node.address.path is not None
        stream = await trio.open_unix_socket(node.address.path)
        begun = trio.current_time()
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(read_all, stream)
            await stream.send_all(encode_frame("attach", version=VERSION, software="flood"))
            sent = 0
            try:
                while sent < 100_000:
                    expression = f"price > {sent}"
                    await stream.send_all(
                        encode_frame("subscribe", number=sent, id=str(sent), expression=expression)
                    )
                    sent += 1
            except trio.BrokenResourceError:
                pass
            nursery.cancel_scope.cancel()
        assert sent < 100_000
        await eventually(lambda: node.counts.ended["flood"] == 1)
        assert node.counts.refused["CapacityError"] > 100
        assert node.counts.requests < 500 * (trio.current_time() - begun) + 2 * 500 + 300
        await eventually(lambda: len(node.peer.subscribers) == 0)
        assert await other.publish(IBM)


async def read_all(stream: trio.SocketStream) -> None:
    try:
        while await stream.receive_some(65536):
            pass
    except trio.BrokenResourceError:
        return
