"""Requests and replies over one node, from trio, from asyncio and from neither."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest
import trio

from gossamer.client import (
    Client,
    NoReplyError,
    Payload,
    PublicationUncertainError,
    RefusedByNodeError,
    UnacknowledgedError,
    UnusablePayloadError,
    connect,
)
from support.loopback_peer import quote
from support.threaded_node import ThreadedNode, aside, on_each_loop, prices, threaded_node
from support.waiting import PATIENCE_S


@on_each_loop
async def test_those_whom_a_request_matches_reply(client: Client) -> None:
    async def serve(
        answer: str, *expressions: str, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        async with client.reply(*expressions) as requests:
            task_status.started()
            async for request in requests:
                assert request.timeout_s == PATIENCE_S
                carried = b"" if request.payload is None else request.payload.data
                await request.reply(Payload(answer.encode() + carried, "text/plain"))

    async with anyio.create_task_group() as tasks:
        await tasks.start(serve, "dear", "price > 80")
        await tasks.start(serve, "any", "price >= 0", "price > 900")
        image = Payload(b"!", "image/png")
        asked = await client.request(quote(81), payload=image, timeout_s=PATIENCE_S, replies=2)
        assert {one.payload for one in asked} == {
            Payload(b"dear!", "text/plain"),
            Payload(b"any!", "text/plain"),
        }
        assert {one.replier for one in asked} == {client.peer}
        (only,) = await client.request(quote(3), timeout_s=PATIENCE_S)
        assert (only.payload.data, only.failed) == (b"any", False)
        tasks.cancel_scope.cancel()


@on_each_loop
async def test_what_comes_of_requests_that_are_not_answered(
    client: Client, node: ThreadedNode
) -> None:
    with pytest.raises(NoReplyError, match=r"within 0\.05 s") as raised:
        await client.request(quote(81), timeout_s=0.05)
    assert raised.value.event == f"{len(node.peer.published):016x}"
    with pytest.raises(RefusedByNodeError, match="cost"):
        await client.request({"cost": 3})
    with pytest.raises(RefusedByNodeError, match="48128 bytes, not 48129"):
        await client.request(quote(1), payload=Payload(bytes(48_129)))
    with pytest.raises(UnusablePayloadError):
        await client.request(quote(1), payload=Payload(bytes(1 << 16)))
    node.peer.unheld = frozenset({7})
    with pytest.raises(UnacknowledgedError):
        await client.request(quote(7), timeout_s=0.05)


@on_each_loop
async def test_late_and_failed_replies_are_told_apart(client: Client) -> None:
    async with client.reply("price > 80") as requests, anyio.create_task_group() as tasks:

        async def serve() -> None:
            await (await anext(requests)).fail("no such share")
            late = await anext(requests)
            await over.wait()
            with pytest.raises(RefusedByNodeError, match="nobody waits"):
                await late.reply("81")

        over = anyio.Event()
        tasks.start_soon(serve)
        (reply,) = await client.request(quote(81), timeout_s=PATIENCE_S)
        assert (reply.failed, reply.payload.data) == (True, b"no such share")
        with pytest.raises(NoReplyError):
            await client.request(quote(82), timeout_s=0.05)
        over.set()
    with pytest.raises(RefusedByNodeError, match="no token of a request"):
        await client._requests.reply("!", Payload(b""))


@on_each_loop
async def test_requests_to_a_name_wait_until_it_is_back(client: Client) -> None:
    async with client.reply("price > 80", name="ada"):
        pass
    async with anyio.create_task_group() as tasks:
        replies = []

        async def ask() -> None:
            replies.extend(await client.request(quote(81), timeout_s=PATIENCE_S))

        tasks.start_soon(ask)
        async with client.reply("price > 80", name="ada") as requests:
            await client.publish(quote(99))  # no request
            request = await anext(requests)
            assert request.values["price"] == 81
            await request.reply(b"81")
    assert [one.payload.data for one in replies] == [b"81"]
    # It was acknowledged, so that it does not come again.
    async with client.reply("price > 80", name="ada") as requests:
        with pytest.raises(NoReplyError):
            await client.request(quote(85), timeout_s=0.05)
        assert await prices(requests, 1) == [85]


@on_each_loop
async def test_nothing_is_known_of_a_request_whose_node_went_away(
    client: Client, node: ThreadedNode
) -> None:
    node.peer.hold = trio.Event()
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(PublicationUncertainError):
                await client.request(quote(81), timeout_s=PATIENCE_S)

        tasks.start_soon(ask)
        await aside(node.until_publishing, 1)
        await aside(node.stop)
    await aside(node.start)


def test_requests_without_an_event_loop(tmp_path: Path) -> None:
    with threaded_node(tmp_path), connect(tmp_path) as client:
        requests = client.reply("price > 80")

        def serve() -> None:
            for request in requests:
                if request.values["price"] == 99:
                    request.fail("sold out")
                else:
                    request.reply("sold")

        thread = threading.Thread(target=serve)
        thread.start()
        for price, failed in ((81, False), (99, True)):
            (reply,) = client.request(quote(price), timeout_s=PATIENCE_S)
            assert reply.failed is failed
        requests.close()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
