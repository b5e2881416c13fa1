"""What happens to an overlay when its network misbehaves, or an identity is copied."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from unittest.mock import create_autospec

import attrs
import pytest
import trio

from gossamer.node.errors import NotAcknowledged
from gossamer.node.peer.assembly import run_peer
from gossamer.node.peer.runtime import Runtime
from gossamer.node.peer.subscriptions import Subscription
from gossamer.node.security.identity import key_text
from gossamer.node.store.writer import open_writer
from gossamer.node.transport.base.base import Address
from support.memory_peers import (
    MemoryPeers,
    address_of,
    memory_peers,
    rounds_pass,
    take_ids,
    whole,
)
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock
from support.waiting import comes_true, eventually

pytestmark = [on_jumping_clock, pytest.mark.usefixtures("each_preset")]

KEYS = [1 + (i << 58) for i in range(6)]
SHORT_S = (7.0, 12.0, 16.0, 20.0, 24.0)


async def test_what_was_on_its_way_to_a_peer_that_stops_counts_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads while it says its goodbyes, and passes nothing on."""
    told = create_autospec(Runtime.report_loss, side_effect=Runtime.report_loss)
    async with whole(memory_peers(tmp_path, *KEYS[:3])) as crowd:
        await crowd.rounds(4)
        monkeypatch.setattr(Runtime, "report_loss", told)
        await crowd.stop(KEYS[2])
        await eventually(lambda: [call.args[1] for call in told.mock_calls].count(KEYS[2]) == 2)


@pytest.mark.parametrize(
    ("together", "parted_s", "pause_s", "times", "peers"),
    [
        (1, 12.0, 0.0, 1, 4),
        (2, 40.0, 10.5, 1, 4),
        *(pytest.param(1, s, 0.0, 3, 6, marks=pytest.mark.campaign) for s in SHORT_S),
        pytest.param(2, 40.0, 10.5, 10, 4, marks=pytest.mark.campaign),
    ],
)
async def test_nothing_published_in_another_part_is_missed(
    tmp_path: Path, together: int, parted_s: float, pause_s: float, times: int, peers: int
) -> None:
    """Short parts end no connection, though neighbours count as failed and each part acknowledges.

    Long ones begin at any moment between two looks at connections, which find them within 25 s.
    """
    keys = KEYS[:peers]
    async with whole(memory_peers(tmp_path, *keys)) as crowd, trio.open_nursery() as reading:
        published, got = set[int](), [set[int]() for _ in keys]

        async def read(events: Subscription, taken: set[int]) -> None:
            async for event in events:
                taken.add(event.id)

        async def publish(key: int) -> None:
            for i in range(60):
                with suppress(NotAcknowledged):
                    event = {"price": (i * 37 + key) % 100, "symbol": "ABCD"[i % 4]}
                    published.add(await crowd.peers[key].publish(event))
                await trio.sleep(parted_s / 60)

        for key, taken in zip(keys, got, strict=True):
            reading.start_soon(read, crowd.peers[key].subscribe("price >= 0"), taken)
        await crowd.rounds(8)
        for first in range(times):
            await trio.sleep(pause_s)
            apart = [keys[(first + i) % peers] for i in range(together)]
            crowd.network.partition(apart, [key for key in keys if key not in apart])
            async with trio.open_nursery() as publishing:
                for key in keys:
                    publishing.start_soon(publish, key)
                await trio.sleep(parted_s)
                crowd.network.heal()
            await comes_true(lambda: all(published <= taken for taken in got))
            lacking = [len(published - taken) for taken in got]
            assert lacking == [0] * peers, f"parted {first + 1} times, {len(published)} published"
        reading.cancel_scope.cancel()


@pytest.mark.parametrize("heals_first", [True, pytest.param(False, marks=pytest.mark.campaign)])
async def test_a_peer_that_crashes_while_it_is_cut_off_misses_nothing(
    tmp_path: Path, heals_first: bool
) -> None:
    """It asks for what was published since it was cut off, not since it crashed."""
    keys = KEYS[:4]
    async with whole(memory_peers(tmp_path, *keys)) as crowd:
        crowd.peers[keys[0]].subscribe("price >= 0", name="ada")
        await crowd.rounds(8)
        crowd.network.partition(keys[:1], keys[1:])
        await trio.sleep(30)
        published = [await crowd.publish(key, 1) for key in keys[1:]]
        await trio.sleep(45)
        await crowd.crash(keys[0])
        await trio.sleep(20)
        if heals_first:
            crowd.network.heal()
        peer = await crowd.add(keys[0])
        await trio.sleep(20)
        crowd.network.heal()
        events = peer.subscribe("price >= 0", name="ada")
        assert await take_ids(events, len(published)) == set(published)


async def test_peers_come_back_after_all_have_been_stopped(tmp_path: Path) -> None:
    """They remember each other: the first one, whom all were told of, stays away."""
    async with whole(memory_peers(tmp_path, *KEYS[:4])) as crowd:
        for key in KEYS[:4]:
            await crowd.stop(key)
        for key in KEYS[1:4]:
            await crowd.add(key)
        await crowd.whole()
        assert len(crowd.peers) == 3


async def test_peers_that_joined_in_pairs_find_the_others(tmp_path: Path) -> None:
    """Neither pair has ever heard from the other: all it has is addresses."""
    chosen = KEYS[:4]
    network = MemoryNetwork()
    network.partition(chosen[:2], chosen[2:])
    others = {key: [one for one in chosen if one != key] for key in chosen}
    async with memory_peers(tmp_path, *chosen, network=network, bootstrap=others.get) as crowd:
        peers = list(crowd.peers.values())
        await eventually(lambda: all(len(peer.snapshot().peers) == 1 for peer in peers))
        await rounds_pass(*peers, rounds=16)
        network.heal()
        await crowd.whole()


# Pairs of peers that do not reach each other, while others reach both.

EVENTS = 5
only_kindred = pytest.mark.parametrize("each_preset", ["kindred"], indirect=True)


def forwards(crowd: MemoryPeers) -> int:
    return sum(peer.counters.events_forwarded for peer in crowd.peers.values())


@only_kindred
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
async def test_nothing_is_lost_nothing_storms_and_pairs_are_named(
    tmp_path: Path, apart: Sequence[tuple[int, int]]
) -> None:
    keys = KEYS[:5]
    network = MemoryNetwork(1, Faults(latency_s=(0.001, 0.01)))
    network.cuts.update(frozenset((keys[a], keys[b])) for a, b in apart)
    async with memory_peers(tmp_path, *keys, network=network) as crowd:
        await trio.sleep(30)
        streams = {key: peer.subscribe("price >= 0") for key, peer in crowd.peers.items()}
        await trio.sleep(10)
        before, failed = forwards(crowd), list[int]()

        async def publish(key: int) -> None:
            for price in range(EVENTS):
                try:
                    await crowd.publish(key, price)
                except NotAcknowledged as error:
                    failed.append(error.event)
                await trio.sleep(0.2)

        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(publish, key)
        # The first answer that finds no way waits until connecting is given up.
        assert len(failed) <= 2 * len(apart), f"{failed} of {EVENTS * len(keys)} not acknowledged"
        all_got = lambda: all(len(one) == EVENTS * len(keys) for one in streams.values())  # noqa: E731
        assert await comes_true(all_got, 120.0), {key: len(one) for key, one in streams.items()}
        named = lambda: all(any_named(crowd, keys[a], keys[b]) for a, b in apart)  # noqa: E731
        assert await comes_true(named, 300.0)
        assert forwards(crowd) - before < 20 * EVENTS * len(keys), "copies go round"


def any_named(crowd: MemoryPeers, *pair: int) -> bool:
    """Whether one of two peers says that it does not reach the other, and who does."""
    said = {key: crowd.peers[key].standing.by_kind().get("unreachable", "") for key in pair}
    return any(
        key_text(there) in said[here] or "more" in said[here] for here, there in permutations(pair)
    )


# Two processes under one key.


@only_kindred
async def test_a_copied_identity_is_named_by_all_with_both_places(tmp_path: Path) -> None:
    copied, restarted = KEYS[2:4]
    here, elsewhere = address_of(copied), Address("memory", 7000)
    async with whole(memory_peers(tmp_path, *KEYS[:4])) as crowd:
        original = crowd.peers[copied]
        await crowd.stop(restarted)
        await crowd.add(restarted)
        await crowd.whole()
        assert not any(peer.standing.troubles() for peer in crowd.peers.values())
        async with open_writer(tmp_path / "copy.db") as writer:
            dependencies = crowd._dependencies(copied, writer)
            changed = attrs.evolve(dependencies, listen=[elsewhere], name="copy")
            async with run_peer(changed) as copy:
                others = [peer for key, peer in crowd.peers.items() if key != copied]

                def said() -> list[str]:
                    standings = [peer.standing for peer in (original, copy, *others)]
                    return [one.by_kind().get("identity", "") for one in standings]

                assert await comes_true(lambda: all(said()), 120.0)
                by_original, by_copy, *by_others = said()
                for sentence in by_others:
                    assert f"{copied:016x}" in sentence
                    assert str(elsewhere) in sentence
                    assert str(here) in sentence
                assert str(elsewhere) in by_original
                assert str(here) in by_copy
        await trio.sleep(90)
        assert not any("identity" in peer.standing.by_kind() for peer in crowd.peers.values())
