"""What running peers count: bytes, attempts to connect, frames by link."""

from __future__ import annotations

from pathlib import Path

import trio

from gossamer.node.monitoring.metrics import LINKS, NO_LINK
from support.memory_peers import ROUND_S, address_of, memory_peers
from support.transport_peers import on_jumping_clock

ONE, TWO, THREE = (number << 58 for number in (1, 2, 3))


@on_jumping_clock
async def test_bytes_that_one_sends_the_other_receives(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, 1, ONE) as crowd:
        await trio.sleep(20 * ROUND_S)
        first, second = crowd.peers[1], crowd.peers[ONE]
        for peer in (first, second):
            peer.gauges()
        assert first.counters.bytes_received > 1000
        # Nothing is under way for long in memory; a round's frames may be.
        for sender, receiver in ((first, second), (second, first)):
            difference = sender.counters.bytes_sent - receiver.counters.bytes_received
            assert abs(difference) < 0.2 * sender.counters.bytes_sent


@on_jumping_clock
async def test_attempts_that_lead_nowhere_are_counted(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, 1, ONE, TWO) as crowd:
        await trio.sleep(10 * ROUND_S)
        peer = crowd.peers[1]
        peer.gauges()
        assert peer.counters.dials + peer.counters.accepted >= 2
        failed = peer.counters.dials_failed
        crowd.network.partition([1], [ONE, TWO])
        await trio.sleep(200 * ROUND_S)
        peer.gauges()
        assert peer.counters.dials_failed > failed
        assert peer.counters.dials >= peer.counters.dials_failed


@on_jumping_clock
async def test_frames_are_counted_by_what_the_other_peer_is(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, 1, ONE, TWO, THREE) as crowd:
        await trio.sleep(40 * ROUND_S)
        counters = crowd.peers[1].counters
        for counts in (counters.link_frames_sent, counters.link_frames_received):
            assert counts.keys() == {*LINKS, NO_LINK}
            assert counts["ring"] > 40, "both neighbours on the ring are heard of every round"
        crowd.peers[1].gauges()
        assert sum(counters.link_frames_sent.values()) >= 0.9 * counters.frames_sent


def test_addresses_of_memory_peers_differ() -> None:
    assert len({address_of(key) for key in (1, ONE, TWO, THREE)}) == 4
