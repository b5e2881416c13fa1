"""The pool: one connection a peer, shared attempts, back-off, limits; on a network in memory."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from gossamer.node.errors import PeerUnreachable
from gossamer.node.transport.base import Cause
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.limits import BackOff, Limits
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import Crowd, Peer, memory_transports, message

LAN = Faults(latency_s=(0.001, 0.001))


def crowd(
    nursery: trio.Nursery, faults: Faults = LAN, seed: int = 0, **limits: Any
) -> tuple[MemoryNetwork, Crowd]:
    network = MemoryNetwork(seed, faults)
    make = memory_transports(network)
    return network, Crowd(nursery, make, Limits(**limits), BackOff(jitter=0))


async def two_peers(
    nursery: trio.Nursery, faults: Faults = LAN, seed: int = 0, **limits: Any
) -> tuple[MemoryNetwork, Peer, Peer]:
    network, people = crowd(nursery, faults, seed, **limits)
    return network, await people.add(1), await people.add(2)


async def settle() -> None:
    """Let everything under way arrive; less than a ping."""
    await trio.sleep(2)


def links(*peers: Peer) -> list[int]:
    return [len(peer.pool) for peer in peers]


async def test_only_sending_dials_and_senders_share_one_attempt(nursery: trio.Nursery) -> None:
    network, one, two = await two_peers(nursery)
    assert not one.pool.try_send(2, message())
    await settle()
    assert links(one, two) == [0, 0]
    async with trio.open_nursery() as senders:
        for i in range(20):
            senders.start_soon(one.pool.send, 2, message(number=i))
    await two.heard.until(lambda: len(two.heard.frames) == 20)
    assert len(network.streams) == 2, "one connection, two ends"
    assert one.pool.try_send(2, message())
    await two.heard.until(lambda: len(two.heard.frames) == 21)


async def test_a_failed_attempt_is_told_to_all_who_wait(nursery: trio.Nursery) -> None:
    network, one, _ = await two_peers(nursery, handshake_seconds=3)
    network.partition([1], [2])

    async def fail_to_send() -> None:
        with pytest.raises(PeerUnreachable, match="no answer within 3"):
            await one.pool.send(2, message())
        assert trio.current_time() == pytest.approx(3)

    async with trio.open_nursery() as senders:
        for _ in range(5):
            senders.start_soon(fail_to_send)


async def test_who_gives_up_does_not_end_the_attempt_of_others(nursery: trio.Nursery) -> None:
    _, one, two = await two_peers(nursery, Faults(latency_s=(0.5, 0.5)))
    with trio.move_on_after(0.1):
        await one.pool.send(2, message(b"given up"))
    await one.pool.send(2, message(b"sent"))
    await two.heard.until(lambda: bool(two.heard.frames))
    assert two.heard.bodies == [b"sent"]
    assert one.heard.ups == [2]


@pytest.mark.parametrize("latency_ms", [0, 1, 5, 20])
async def test_what_the_smaller_key_dialled_is_kept(nursery: trio.Nursery, latency_ms: int) -> None:
    network, one, two = await two_peers(nursery, Faults(latency_s=(0, latency_ms / 1000)))
    async with trio.open_nursery() as senders:
        senders.start_soon(one.pool.send, 2, message(b"from one"))
        senders.start_soon(two.pool.send, 1, message(b"from two"))
    await settle()
    assert one.heard.bodies == [b"from two"], "nothing is lost"
    assert two.heard.bodies == [b"from one"]
    assert len(network.streams) == 2
    assert links(one, two) == [1, 1]
    assert next(iter(one.pool)).admitted.dialled
    assert not next(iter(two.pool)).admitted.dialled
    for heard in (one.heard, two.heard):
        assert len(heard.ups) - len(heard.downs) == 1


@pytest.mark.parametrize("seed", range(20))
async def test_simultaneous_dials_always_settle(nursery: trio.Nursery, seed: int) -> None:
    network, one, two = await two_peers(nursery, Faults(latency_s=(0, 0.05)), seed=seed)

    async def send(sender: Peer, key: int) -> None:
        for i in range(20):
            await trio.sleep(network.draws.random() * 0.02)
            await sender.pool.send(key, message(number=i))

    async with trio.open_nursery() as senders:
        senders.start_soon(send, one, 2)
        senders.start_soon(send, two, 1)
    await settle()
    assert links(one, two) == [1, 1]
    assert len(network.streams) == 2
    for heard in (one.heard, two.heard):
        assert sorted(frame["number"] for _, frame in heard.frames) == list(range(20))


async def test_who_lost_its_connection_may_come_with_a_new_one(nursery: trio.Nursery) -> None:
    network, one, two = await two_peers(nursery, handshake_seconds=1)
    stale = await two.pool.connect(1)
    await trio.sleep(5)
    # The network swallows the end, so that only one of the two notices.
    network.partition([1], [2])
    stale._cut(Cause.LOST, "for the test")
    await settle()
    assert links(one, two) == [1, 0]
    network.heal()
    one.pool.get(2)
    await two.pool.send(1, message(b"I am back"))
    await settle()
    assert one.heard.bodies == [b"I am back"]
    assert links(one, two) == [1, 1]


async def test_a_new_connection_replaces_one_that_looks_alive(nursery: trio.Nursery) -> None:
    _, people = crowd(nursery, handshake_seconds=1)
    one, two = await people.add(1), await people.add(2)
    await two.pool.connect(1)
    await trio.sleep(5)
    # Another process with the same key, as after a restart that nobody noticed.
    again = await people.add(2)
    await again.pool.send(1, message(b"new"))
    await settle()
    assert one.heard.bodies == [b"new"]
    assert one.heard.ups == [2], "for its owner the peer was there all the time"
    assert one.heard.downs == []
    assert two.heard.downs[0][1].cause is Cause.REPLACED
    assert one.pool.ends == {Cause.REPLACED: 1}


async def test_attempts_back_off_and_start_again_when_it_is_time(nursery: trio.Nursery) -> None:
    _, one, two = await two_peers(nursery)
    await two.pool.close()
    retries = []
    for _ in range(5):
        with pytest.raises(PeerUnreachable) as caught:
            await one.pool.send(2, message())
        with pytest.raises(PeerUnreachable, match="failed a moment ago"):
            await one.pool.send(2, message())
        retries.append(caught.value.retry_s)
        await trio.sleep(caught.value.retry_s)
    assert retries == [0.5, 1, 2, 4, 8]


async def test_only_a_connection_that_lasts_makes_failures_forgotten(nursery: trio.Nursery) -> None:
    network, people = crowd(nursery)
    one, two = await people.add(1), await people.add(2)

    async def fail_once() -> float:
        network.listeners.pop(people.addresses[2][0], None)
        with pytest.raises(PeerUnreachable) as caught:
            await one.pool.connect(2)
        await trio.sleep(caught.value.retry_s)
        for listener in two.pool.listeners:
            network.listeners[listener.address] = listener  # type: ignore[assignment]
        return caught.value.retry_s

    async def stay_connected(seconds: float) -> None:
        await one.pool.connect(2)
        await trio.sleep(seconds)
        network.break_connections(1, 2)
        await settle()

    assert await fail_once() == 0.5
    await stay_connected(1)
    assert await fail_once() == 1, "it came up for a second only"
    await stay_connected(60)
    assert await fail_once() == 0.5


async def test_who_broke_a_rule_is_not_dialled_again_at_once(nursery: trio.Nursery) -> None:
    """Otherwise one that answers each frame by a bad one could keep both busy with connecting."""
    _, one, two = await two_peers(nursery)
    for wait in (0.5, 1):
        await one.pool.connect(2)
        await two.heard.until(lambda: two.heard.ups == [1])
        two.heard.ups.clear()
        assert two.pool.try_send(1, encode_frame("nonsense"))
        await one.heard.until(lambda: len(one.heard.downs) > 0)
        assert one.heard.downs.pop()[1].cause is Cause.BAD_FRAME
        with pytest.raises(PeerUnreachable, match="failed a moment ago") as caught:
            await one.pool.send(2, message())
        assert caught.value.retry_s == pytest.approx(wait, abs=0.1)
        await trio.sleep(wait)
    await one.pool.send(2, message())


async def test_a_peer_that_comes_to_us_ends_our_back_off(nursery: trio.Nursery) -> None:
    network, one, two = await two_peers(nursery)
    network.partition([1], [2])
    with pytest.raises(PeerUnreachable):
        await one.pool.send(2, message())
    network.heal()
    await two.pool.connect(1)
    await settle()
    await one.pool.send(2, message(b"good"))
    await two.heard.until(lambda: two.heard.bodies == [b"good"])


async def test_connections_without_use_are_closed_and_dialled_anew(nursery: trio.Nursery) -> None:
    _, one, two = await two_peers(nursery, unused_seconds=40)
    await one.pool.send(2, message(b"1"))
    await trio.sleep(35)
    assert links(one, two) == [1, 1]
    await two.pool.send(1, message(b"used"))
    await trio.sleep(35)
    assert links(one, two) == [1, 1], "it was used in between"
    await trio.sleep(25)
    assert links(one, two) == [0, 0]
    assert {farewell.cause for _, farewell in one.heard.downs} == {Cause.UNUSED}
    await one.pool.send(2, message(b"2"))
    await two.heard.until(lambda: two.heard.bodies == [b"1", b"2"])


async def test_a_full_pool_turns_strangers_away_and_says_so(nursery: trio.Nursery) -> None:
    _, people = crowd(nursery)
    hub = await people.add(1, connections=2)
    others = [await people.add(key) for key in (2, 3, 4)]
    for other in others:
        await other.pool.connect(1)
        await settle()
    assert len(hub.pool) == 2
    assert others[2].heard.downs[0][1].cause is Cause.BUSY
    assert hub.pool.ends == {Cause.BUSY: 1}
    with pytest.raises(PeerUnreachable, match="all 2 connections are in use"):
        await hub.pool.connect(4)
    await others[0].pool.close()
    await settle()
    await hub.pool.connect(4)
    assert len(hub.pool) == 2


async def test_a_partition_is_noticed_if_it_lasts_and_heals(nursery: trio.Nursery) -> None:
    network, one, two = await two_peers(nursery)
    await one.pool.connect(2)
    network.partition([1], [2])
    await one.pool.send(2, message(b"patience"))
    await trio.sleep(5)
    assert two.heard.frames == []
    network.heal()
    await two.heard.until(lambda: two.heard.bodies == [b"patience"])
    assert one.heard.downs == []
    network.partition([1], [2])
    await trio.sleep(60)
    assert links(one, two) == [0, 0]
    assert one.heard.downs[0][1].cause is Cause.SILENT
    network.heal()
    await one.pool.send(2, message(b"again"))
    await two.heard.until(lambda: two.heard.bodies == [b"patience", b"again"])


async def test_connections_that_break_are_dialled_again(nursery: trio.Nursery) -> None:
    network, one, two = await two_peers(nursery, Faults(breaking=0.05), seed=3)
    for i in range(200):
        await one.pool.send(2, message(number=i))
        await trio.sleep(0.1)
    assert network.broken > 3
    assert len(two.heard.frames) >= 200 - network.broken
    assert one.pool.ends[Cause.LOST] == network.broken


async def test_a_pool_of_many_closes_fast_and_reaches_nobody(nursery: trio.Nursery) -> None:
    network, people = crowd(nursery, close_seconds=1)
    hub = await people.add(1)
    for key in range(2, 12):
        await hub.pool.connect((await people.add(key)).key)
    network.partition([1])
    started = trio.current_time()
    await hub.pool.close()
    assert trio.current_time() - started <= 2
    assert len(hub.pool) == 0
    with pytest.raises(PeerUnreachable, match="not running"):
        await hub.pool.send(2, message())
    await hub.pool.close()


async def test_who_is_met_while_the_pool_stops_is_let_go(nursery: trio.Nursery) -> None:
    _, people = crowd(nursery, Faults(latency_s=(1.0, 1.0)))
    one, two = await people.add(1), await people.add(2)

    async def meet() -> None:
        with pytest.raises(PeerUnreachable, match="it is not running"):
            await one.pool.meet(people.addresses[2], lambda _: None)

    async with trio.open_nursery() as meeting:
        meeting.start_soon(meet)
        await trio.sleep(0.5)
        await one.pool.close()
    await settle()
    assert links(one, two) == [0, 0]
