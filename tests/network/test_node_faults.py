"""What happens to an overlay when its network misbehaves; on a clock that jumps."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from unittest.mock import create_autospec

import pytest
import trio

from gossamer.node.errors import NotAcknowledged
from gossamer.node.peer.runtime import Runtime
from gossamer.node.peer.subscriptions import Subscription
from support.draws import larger
from support.memory_peers import (
    linked,
    memory_peers,
    ring_errors,
    rounds_pass,
    take,
    take_ids,
    whole,
)
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock
from support.waiting import PATIENCE_S, comes_true, eventually

pytestmark = [on_jumping_clock, pytest.mark.usefixtures("each_preset")]

# Keys far apart on the ring, so that the halves below alternate on it.
KEYS = [1 + (i << 58) for i in range(larger(6, 8))]


async def test_events_come_once_over_late_repeated_and_reordered_frames(tmp_path: Path) -> None:
    network = MemoryNetwork(5, Faults(latency_s=(0.0, 0.05), duplication=0.1, reordering=0.1))
    async with whole(memory_peers(tmp_path, *KEYS, network=network)) as crowd:
        events = crowd.peers[KEYS[3]].subscribe("price >= 0")
        await crowd.rounds(8)
        published = {await crowd.publish(KEYS[i % len(KEYS)], i) for i in range(40)}
        assert await take_ids(events, 40) == published
        await crowd.rounds(8)
        assert len(events) == 0
        assert min(network.duplicated, network.reordered) > 0


async def test_a_partition_heals_by_itself(tmp_path: Path) -> None:
    """Halves that alternate on the ring become rings of their own, and one again after a while."""
    async with whole(memory_peers(tmp_path, *KEYS)) as crowd:
        halves = KEYS[::2], KEYS[1::2]
        crowd.network.partition(*halves)
        for half in halves:
            part = {key: crowd.peers[key] for key in half}
            await eventually(lambda part=part: not ring_errors(part))  # type: ignore[misc]
        await trio.sleep(larger(30, 60))
        assert ring_errors(crowd.peers) == set(KEYS)
        crowd.network.heal()
        await crowd.whole()
        events = crowd.peers[KEYS[0]].subscribe("price >= 0")
        await crowd.rounds(8)
        published = await crowd.publish(KEYS[5], 1)
        assert await take_ids(events, 1) == {published}


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


@pytest.mark.parametrize("phases", [1, pytest.param(10, marks=pytest.mark.campaign)])
async def test_nothing_published_in_another_part_is_missed(tmp_path: Path, phases: int) -> None:
    """Parts begin at any moment between two looks at connections; these find it within 25 s."""
    keys = KEYS[:4]
    async with whole(memory_peers(tmp_path, *keys)) as crowd:
        events = crowd.peers[keys[0]].subscribe("price >= 0")
        await crowd.rounds(8)
        published, got = set[int](), set[int]()

        async def publish(key: int) -> None:
            for _ in range(20):
                with suppress(NotAcknowledged):
                    published.add(await crowd.publish(key, 1))
                await trio.sleep(0.2)

        for phase in range(phases):
            await trio.sleep(10.5)
            crowd.network.partition(keys[:2], keys[2:])
            async with trio.open_nursery() as nursery:
                for key in keys[2:]:
                    nursery.start_soon(publish, key)
                await trio.sleep(40)
            crowd.network.heal()
            with trio.move_on_after(PATIENCE_S):
                while not published <= got:
                    got.add((await anext(events)).id)
            assert published <= got, f"parted {phase + 1} times"


@pytest.mark.parametrize(
    ("parted_s", "times", "peers"),
    [
        (12.0, 1, 4),
        *(pytest.param(s, 3, 6, marks=pytest.mark.campaign) for s in (7.0, 12.0, 16.0, 20.0, 24.0)),
    ],
)
async def test_parts_so_short_that_no_connection_ends_miss_nothing(
    tmp_path: Path, parted_s: float, times: int, peers: int
) -> None:
    """Neighbours count as failed meanwhile, so that each part acknowledges by itself."""
    keys = KEYS[:peers]
    async with whole(memory_peers(tmp_path, *keys)) as crowd:
        readers = [crowd.peers[key].subscribe("price >= 0") for key in keys]
        await crowd.rounds(8)
        published = set[int]()
        got = [set[int]() for _ in keys]

        async def read(events: Subscription, taken: set[int]) -> None:
            async for event in events:
                taken.add(event.id)

        async def publish(key: int) -> None:
            for i in range(int(parted_s * 5)):
                with suppress(NotAcknowledged):
                    event = {"price": (i * 37 + key) % 100, "symbol": "ABCD"[i % 4]}
                    published.add(await crowd.peers[key].publish(event))
                await trio.sleep(0.2)

        async with trio.open_nursery() as reading:
            for events, taken in zip(readers, got, strict=True):
                reading.start_soon(read, events, taken)
            for alone in range(times):
                crowd.network.partition([keys[alone]], keys[:alone] + keys[alone + 1 :])
                async with trio.open_nursery() as publishing:
                    for key in keys:
                        publishing.start_soon(publish, key)
                    await trio.sleep(parted_s)
                    crowd.network.heal()
                await comes_true(lambda: all(published <= taken for taken in got))
                lacking = [len(published - taken) for taken in got]
                assert lacking == [0] * len(keys), f"{alone} was alone, {len(published)} published"
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


async def test_a_peer_that_vanishes_is_replaced_within_rounds(tmp_path: Path) -> None:
    """Its connections break, and nobody answers where it listened."""
    async with whole(memory_peers(tmp_path, *KEYS)) as crowd:
        gone = KEYS[4]
        rest = {key: peer for key, peer in crowd.peers.items() if key != gone}
        crowd.network.partition(list(rest), [gone])
        for other in rest:
            crowd.network.break_connections(gone, other)
        await eventually(lambda: not ring_errors(rest))
        await eventually(lambda: not any(gone in linked(peer) for peer in rest.values()))
        events = rest[KEYS[0]].subscribe("price >= 0")
        await rounds_pass(*rest.values(), rounds=8)
        published = {await rest[KEYS[-1]].publish({"price": i, "symbol": "A"}) for i in range(20)}
        assert await take_ids(events, 20) == published


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


async def test_what_two_runs_of_one_seed_deliver_is_the_same(tmp_path: Path) -> None:
    """Everything left to chance is injected; what depends on the scheduling of tasks is not."""
    runs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        async with whole(memory_peers(tmp_path / name, *KEYS[:3])) as crowd:
            events = crowd.peers[KEYS[1]].subscribe("price >= 0")
            await crowd.rounds(8)
            for i in range(5):
                await crowd.publish(KEYS[2], i)
            runs.append({event.values["price"] for event in await take(events, 5)})
    assert runs[0] == runs[1] == set(range(5))
