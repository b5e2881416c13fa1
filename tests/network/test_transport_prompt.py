"""Sockets that are written to without waiting."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from gossamer.node.transport.streams.non_blocking import TcpStream

MEGABYTE = bytes(range(256)) * 4096


async def joined() -> tuple[TcpStream, TcpStream]:
    """Both ends of a TCP connection."""
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


async def test_the_other_end_is_gone() -> None:
    near, far = await joined()
    async with near:
        assert near.send_now(b"unread")
        await far.aclose()
        with pytest.raises(trio.BrokenResourceError):
            assert await near.receive_some() == b""
        with pytest.raises(trio.BrokenResourceError):
            near.send_now(b"too late")


async def test_who_waits_hears_that_this_end_was_closed() -> None:
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
