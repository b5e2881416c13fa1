"""What every transport keeps, in memory and over TCP, and sockets written to without waiting."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from gossamer.node.errors import PeerUnreachable
from gossamer.node.transport.base import Admitted, Cause
from gossamer.node.transport.byte_streams import TcpStream
from gossamer.node.transport.limits import Limits
from gossamer.protocol.kernel.errors import CapacityError
from support.memory_transport import MemoryNetwork
from support.transport_peers import (
    Crowd,
    MakeTransport,
    Peer,
    memory_transports,
    message,
    plain_transport,
    tls_transport,
)
from support.waiting import PATIENCE_S, running, soon

MEGABYTE = bytes(range(256)) * 4096


@pytest.fixture(params=["memory", "plain", "tls"])
def make(request: pytest.FixtureRequest) -> MakeTransport:
    if request.param == "memory":
        return memory_transports(MemoryNetwork())
    return plain_transport if request.param == "plain" else tls_transport


@asynccontextmanager
async def crowd(make: MakeTransport, **limits: Any) -> AsyncIterator[Crowd]:
    async with running() as nursery:
        with trio.fail_after(PATIENCE_S):
            yield Crowd(nursery, make, Limits(**limits))


@asynccontextmanager
async def two_peers(make: MakeTransport) -> AsyncIterator[tuple[Crowd, Peer, Peer]]:
    async with crowd(make) as people:
        yield people, await people.add(1), await people.add(2)


async def test_frames_go_both_ways_in_order_between_known_peers(make: MakeTransport) -> None:
    async with two_peers(make) as (_, one, two):
        for i in range(300):
            await one.pool.send(2, message(b"from one", i))
        await two.heard.until(lambda: len(two.heard.frames) == 300)
        for i in range(300):
            await two.pool.send(1, message(b"from two", i))
        await one.heard.until(lambda: len(one.heard.frames) == 300)
        for heard, key in ((one.heard, 2), (two.heard, 1)):
            assert [frame["number"] for _, frame in heard.frames] == list(range(300))
            assert ({sender for sender, _ in heard.frames}, heard.ups) == ({key}, [key])
        near, far = one.pool.get(2), two.pool.get(1)
        assert near is not None
        assert far is not None
        assert (near.identity.key, near.identity.name) == (2, "test-2")
        assert (near.admitted.dialled, far.admitted.dialled) == (True, False)


async def test_frames_of_all_sizes_arrive_whole_and_are_counted(make: MakeTransport) -> None:
    sizes = [0, 1, 23, 24, 255, 256, 16_383, 16_384, 65_535, 65_536, 70_000, 1_000_000]
    async with two_peers(make) as (_, one, two):
        for size in sizes:
            await one.pool.send(2, message(bytes([size % 251]) * size))
        await two.heard.until(lambda: len(two.heard.frames) == len(sizes))
        assert two.heard.bodies == [bytes([size % 251]) * size for size in sizes]
        before = two.pool.traffic
        assert before.taken > sum(sizes)
        await (await one.pool.connect(2)).close(Cause.SHUTDOWN)
        await two.heard.until(lambda: bool(two.heard.downs))
        assert two.pool.traffic >= before, "counted beyond the end of the connection"


async def test_who_cannot_be_reached_is_said_with_the_reason(make: MakeTransport) -> None:
    async with two_peers(make) as (people, one, two):
        met: list[Admitted] = []
        with pytest.raises(PeerUnreachable, match="no address is known"):
            await one.pool.send(99, message())
        people.addresses[3] = people.addresses[2]
        with pytest.raises(
            PeerUnreachable, match="it is peer 0000000000000002, expected peer 0000000000000003"
        ):
            await one.pool.connect(3)
        assert len(one.pool) == 0
        await two.pool.close()
        dials, failed = one.pool.dials, one.pool.dials_failed
        with pytest.raises(PeerUnreachable):
            await one.pool.meet(people.addresses[2], met.append)
        assert not met
        assert (one.pool.dials - dials, one.pool.dials_failed - failed) == (1, 1)
        with pytest.raises(
            PeerUnreachable, match=r"^peer 0000000000000002 cannot be reached \(.*refused\)"
        ):
            await one.pool.send(2, message())


async def test_a_peer_is_met_by_its_address_alone_unless_it_is_refused(make: MakeTransport) -> None:
    def refuse(_: Admitted) -> None:
        raise CapacityError("the address book", 1)

    async with two_peers(make) as (people, one, two):
        addresses = people.addresses.pop(2)
        with pytest.raises(CapacityError):
            await one.pool.meet(addresses, refuse)
        assert len(one.pool) == 0
        met: list[Admitted] = []
        before = one.pool.dials
        for _ in range(2):
            assert (await one.pool.meet(addresses, met.append)).key == 2
        assert [admitted.identity.key for admitted in met] == [2, 2]
        assert one.heard.ups == [2], "the second time there was a connection already"
        await one.pool.send(2, message(b"hello"))
        await two.heard.until(lambda: bool(two.heard.frames))
        assert (one.pool.dials - before, one.pool.dials_failed) == (2, 0)


async def test_pauses_in_reading_are_counted_for_all_connections(make: MakeTransport) -> None:
    async with crowd(make) as people:
        one = await people.add(1)
        two = await people.add(2, frames_per_second=50, frames_burst=10)
        for _ in range(20):
            await one.pool.send(2, message(b"x"))
        await two.heard.until(lambda: len(two.heard.frames) == 20)
        assert two.pool.traffic.throttled > 0
        assert one.pool.traffic.throttled == 0


async def test_a_goodbye_is_heard_and_a_closed_pool_leaves_nothing(make: MakeTransport) -> None:
    async with two_peers(make) as (people, one, two):
        connection = await one.pool.connect(2)
        for i in range(100):
            assert one.pool.try_send(2, message(number=i))
        await connection.close(Cause.SHUTDOWN, "maintenance")
        await two.heard.until(lambda: bool(two.heard.downs))
        key, farewell = two.heard.downs[0]
        assert (key, farewell.cause, farewell.by_us) == (1, Cause.SHUTDOWN, False)
        assert farewell.detail == "maintenance"
        assert len(two.heard.frames) == 100, "all that was queued came first"
        await one.pool.connect(2)
        await two.pool.close()
        await one.heard.until(lambda: len(one.heard.downs) == 2)
        assert len(one.pool) == len(two.pool) == 0
        ended = [(farewell.cause, farewell.by_us) for _, farewell in one.heard.downs]
        assert ended == [(Cause.SHUTDOWN, True), (Cause.SHUTDOWN, False)]
        again = await people.add(2, people.addresses[2][0])
        assert people.addresses[2] == [again.pool.listeners[0].address], "its address is free again"


async def test_a_receiver_that_does_not_read_holds_up_its_sender(make: MakeTransport) -> None:
    frame, count = message(bytes(60_000)), 500
    async with two_peers(make) as (people, one, two):
        two.heard.gate = trio.Event()
        connection = await one.pool.connect(2)

        async def send_all() -> None:
            for _ in range(count):
                await one.pool.send(2, frame)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_all)
            await soon(lambda: connection.queued_bytes + len(frame) > people.limits.queue_bytes)
            other = two.pool.get(1)
            assert other is not None
            assert other.stats.frames_in <= 1, "it reads no further than it is asked to"
            two.heard.gate.set()
        await two.heard.until(lambda: len(two.heard.frames) == count)
        assert connection.queue_high_water <= people.limits.queue_bytes


async def joined() -> tuple[TcpStream, TcpStream]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    near = await trio.testing.open_stream_to_socket_listener(listener)
    far = await listener.accept()
    await listener.aclose()
    return TcpStream(near), TcpStream(far)


async def test_what_there_is_no_room_for_is_kept_in_order() -> None:
    near, far = await joined()
    taken = 0
    while near.send_now(MEGABYTE):
        taken += 1
    assert not near.send_now(b"the end"), "nothing goes before what is left"
    total = (taken + 1) * len(MEGABYTE)
    received = bytearray()
    async with near, far, trio.open_nursery() as nursery:
        nursery.start_soon(near.flush)
        while len(received) < total + len(b"the end"):
            received += await far.receive_some()
    assert received == MEGABYTE * (taken + 1) + b"the end"


async def test_who_sends_or_waits_hears_that_either_end_was_closed() -> None:
    near, far = await joined()
    async with near:
        assert near.send_now(b"unread")
        await far.aclose()
        with pytest.raises(trio.BrokenResourceError):
            assert await near.receive_some() == b""
        with pytest.raises(trio.BrokenResourceError):
            near.send_now(b"too late")
    near, far = await joined()

    async def receive() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await near.receive_some()

    async def send_forever() -> None:
        while True:
            await near.send_all(MEGABYTE)

    async def send() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await send_forever()

    async with far, trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked(0.05)
        await near.aclose()
    with pytest.raises(trio.ClosedResourceError):
        near.send_now(b"too late")
    with pytest.raises(trio.ClosedResourceError):
        await near.receive_some()
