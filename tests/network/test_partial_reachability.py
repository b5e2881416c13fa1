"""Pairs of peers that do not reach each other, while others reach both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from gossamer.node.errors import NotAcknowledged
from gossamer.node.peer.peer import Peer
from gossamer.node.security.identity import key_text
from support.memory_peers import MemoryPeers, memory_peers
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock
from support.waiting import comes_true

pytestmark = pytest.mark.usefixtures("each_preset")

KEYS = [1 + (i << 58) for i in range(5)]
EVENTS = 5
LATE = Faults(latency_s=(0.001, 0.01))


async def publish(peer: Peer, acknowledged: set[int]) -> int:
    """Publish events one after another; return how many were not acknowledged."""
    failed = 0
    for price in range(EVENTS):
        try:
            acknowledged.add(await peer.publish({"price": price, "symbol": "A"}))
        except NotAcknowledged:
            failed += 1
        await trio.sleep(0.2)
    return failed


def forwards(crowd: MemoryPeers) -> int:
    return sum(peer.counters.events_forwarded for peer in crowd.peers.values())


@pytest.mark.parametrize("each_preset", ["kindred"], indirect=True)
@pytest.mark.parametrize(
    "apart",
    [
        pytest.param([(1, 3)], id="a pair", marks=pytest.mark.campaign),
        pytest.param([(4, 1), (4, 2), (4, 3)], id="one behind a gateway"),
        pytest.param(
            [(1, 3), (1, 4), (2, 3), (2, 4)], id="two networks", marks=pytest.mark.campaign
        ),
    ],
)
@on_jumping_clock
async def test_nothing_is_lost_nothing_storms_and_pairs_are_named(
    tmp_path: Path, apart: Sequence[tuple[int, int]]
) -> None:
    network = MemoryNetwork(1, LATE)
    network.cuts.update(frozenset((KEYS[a], KEYS[b])) for a, b in apart)
    async with memory_peers(tmp_path, *KEYS, network=network) as crowd:
        await trio.sleep(30)
        streams = {key: peer.subscribe("price >= 0") for key, peer in crowd.peers.items()}
        await trio.sleep(10)
        before, acknowledged, failed = forwards(crowd), set[int](), 0

        async def publish_at(key: int) -> None:
            nonlocal failed
            failed += await publish(crowd.peers[key], acknowledged)

        async with trio.open_nursery() as nursery:
            for key in KEYS:
                nursery.start_soon(publish_at, key)
        # The first answer that finds no way waits until connecting is given up.
        assert failed <= 2 * len(apart), f"{failed} of {EVENTS * len(KEYS)} not acknowledged"
        all_got = lambda: all(len(one) == EVENTS * len(KEYS) for one in streams.values())  # noqa: E731
        assert await comes_true(all_got, 120.0), {key: len(one) for key, one in streams.items()}
        assert await comes_true(
            lambda: all(any_named(crowd, KEYS[a], KEYS[b]) for a, b in apart), 300.0
        )
        assert forwards(crowd) - before < 20 * EVENTS * len(KEYS), "copies go round"


def any_named(crowd: MemoryPeers, a: int, b: int) -> bool:
    """Whether one of two peers says that it does not reach the other, and who does."""
    return any(
        key_text(there) in crowd.peers[here].standing.by_kind().get("unreachable", "")
        or "more" in crowd.peers[here].standing.by_kind().get("unreachable", "")
        for here, there in ((a, b), (b, a))
    )
