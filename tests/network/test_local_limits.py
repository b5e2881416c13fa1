"""What clients of the local socket may not do, and that it is bounded and counted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

import gossamer.client
from gossamer.client import links
from gossamer.node.config.node import Local
from gossamer.node.errors import RefusedByNodeError
from gossamer.node.local.frames import FRAMES, VERSION
from gossamer.node.store import StoreLimits
from gossamer.node.transport.base.frames import FrameReader, encode_frame
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.schema import Frame
from support.local_nodes import LocalNode
from support.loopback_peer import IBM, LoopbackPeer, quote
from support.waiting import PATIENCE_S, soon

ATTACH = {"version": VERSION, "software": "test"}
ATTACHING = encode_frame("attach", **ATTACH)


@asynccontextmanager
async def stranger(node: LocalNode) -> AsyncIterator[trio.SocketStream]:
    """A connection that has said nothing yet."""
    if node.address.path is not None:
        stream = await trio.open_unix_socket(node.address.path)
    else:
        host, port, _ = node.address.token_file.read_text().split()
        stream = await trio.open_tcp_stream(host, int(port))
    async with stream:
        yield stream


async def answers(stream: trio.SocketStream) -> list[Frame]:
    """Everything that the node says until it says goodbye, or is gone."""
    reader = FrameReader(Limits())
    found: list[Frame] = []
    with trio.fail_after(3600), suppress(trio.BrokenResourceError):
        while (not found or found[-1]["type"] != "goodbye") and (
            data := await stream.receive_some(65536)
        ):
            reader.feed(data)
            found += list(reader)
    return found


@pytest.mark.parametrize(
    ("first", "cause", "words"),
    [
        (encode_frame("attach", version=VERSION + 1, new=1), "version", f"version {VERSION + 1}"),
        (encode_frame("status", number=1), "bad frame", "attach first"),
        (encode_frame("attach", version=VERSION), "bad frame", "software"),
        (encode_frame("attach", **ATTACH, client="\n"), "refused", "not printable"),
        (b"GET / HTTP/1.1\r\n\r\n", "bad frame", "length"),
        (b"\x00\x00\x00\x02\xa1\x01", "bad frame", "content"),
    ],
    ids=["version", "request", "field", "name", "http", "cbor"],
)
async def test_bad_attaching_fails(node: LocalNode, first: bytes, cause: str, words: str) -> None:
    async with node.running(), stranger(node) as stream:
        await stream.send_all(first)
        (goodbye,) = await answers(stream)
        assert goodbye["reason"] == cause
        assert words in goodbye["detail"]
        assert node.counts.turned_away == {cause: 1}
        async with node.client() as client:
            assert await client.status()


async def test_a_tcp_client_shows_the_token(tmp_path: Path) -> None:
    node = LocalNode(tmp_path, local=Local(address="127.0.0.1:0"))
    async with node.running():
        for token in ({}, {"token": "wrong"}, {"token": "é"}):
            async with stranger(node) as stream:
                await stream.send_all(encode_frame("attach", **ATTACH, **token))
                (goodbye,) = await answers(stream)
                assert goodbye["reason"] == "refused"
        assert node.counts.turned_away == {"refused": 3}
        assert (tmp_path / "client.token").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "client.token").exists()


async def test_a_stranger_that_says_nothing_is_not_waited_for(
    node: LocalNode, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock
    async with node.running(), stranger(node) as stream:
        (goodbye,) = await answers(stream)
    assert goodbye["reason"] == "silent"


async def test_silent_connections_keep_no_client_out(tmp_path: Path) -> None:
    """More than there may be clients; the oldest are told to try again."""
    node = LocalNode(tmp_path, local=Local(clients=2))
    async with node.running() as server, AsyncExitStack() as stack:
        for _ in range(100):
            await stack.enter_async_context(stranger(node))
        async with node.client() as one, node.client() as other:
            assert await one.status()
            assert await other.status()
            assert server.clients == 2
        await soon(lambda: node.counts.turned_away["full"] >= 50)


async def test_clients_that_come_at_once_wait_for_their_turn(tmp_path: Path) -> None:
    node, told = LocalNode(tmp_path, local=Local(clients=8)), list[str]()

    async def publish(number: int) -> None:
        async with node.client(patience_s=0) as client:
            told.append(await client.publish(quote(number)))

    async with node.running(), trio.open_nursery() as nursery:
        for number in range(60):
            nursery.start_soon(publish, number)
    assert len(set(told)) == 60


async def test_only_so_many_clients_are_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "ENTRY_S", 0.0)
    node = LocalNode(tmp_path, local=Local(clients=2))
    async with node.running() as server, node.client():
        async with node.client():
            assert server.clients == 2
            with pytest.raises(RefusedByNodeError, match="more than 2 clients"):
                async with node.client():
                    pass
        await soon(lambda: server.clients == 1)
        async with node.client() as client:
            assert await client.status()
    assert node.counts.turned_away == {"full": 1}


async def test_requests_of_clients_outlive_new_limits(node: LocalNode) -> None:
    async with (
        node.running() as server,
        gossamer.client.open_client(node.folder) as client,
        client.reply("price > 0") as requests,
        trio.open_nursery() as nursery,
    ):
        server.limit(Local(clients=9))
        nursery.start_soon(partial(client.request, quote(7), timeout_s=PATIENCE_S))
        await (await anext(requests)).reply("sold")


@pytest.mark.parametrize(
    ("most", "peer"),
    [(2, LoopbackPeer()), (0, LoopbackPeer(capacity=0))],
    ids=["of its own", "of the peer"],
)
async def test_subscriptions_are_bounded(tmp_path: Path, most: int, peer: LoopbackPeer) -> None:
    node = LocalNode(tmp_path, peer, Local(subscriptions=2))
    async with node.running():
        for name in (None, "ada"):
            async with node.client(name) as client:
                for n in range(most):
                    await client.subscribe(str(n), f"price > {n}")
                with pytest.raises(RefusedByNodeError, match=f"is full at {most}"):
                    await client.subscribe("more", "price > 3")
                for n in range(most):
                    await client.subscribe(str(n), f"price > {n + 4}")
        assert len(node.peer.subscribers) == most


async def test_only_so_many_names_are_kept(tmp_path: Path) -> None:
    node = LocalNode(tmp_path, limits=StoreLimits(clients=1))
    async with node.running():
        async with node.client("ada") as client:
            await client.subscribe("1", "price > 1")
        async with node.client("bob") as client:
            with pytest.raises(RefusedByNodeError, match="clients is full"):
                await client.subscribe("1", "price > 1")
        assert len(node.peer.subscribers) == 1


async def test_a_client_that_takes_no_events_is_cut_and_counted(tmp_path: Path) -> None:
    node = LocalNode(tmp_path, local=Local(queue_bytes=2 << 20))
    event = {**IBM, "symbol": "x" * 4000}
    async with node.running() as server, stranger(node) as stream:
        asked = encode_frame("subscribe", number=1, id="all", expression="price > 1")
        await stream.send_all(ATTACHING + asked)
        await soon(lambda: bool(node.peer.subscribers))
        while server.clients:
            await node.peer.publish(event)
            await trio.testing.wait_all_tasks_blocked()
            if len(node.peer.published) > 600:
                break
        received = await answers(stream)
        await soon(lambda: server.clients == 0)
    assert received[-1]["type"] in ("goodbye", "event")
    assert node.counts.ended == {"stalled": 1}
    # What its queue and the socket's buffers hold, and no more.
    assert node.counts.events_sent * 4000 < 4 << 20


async def test_a_flood_is_cut(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    del autojump_clock
    node = LocalNode(tmp_path, local=Local(requests_per_s=1))
    async with node.running() as server, stranger(node) as stream:
        await stream.send_all(ATTACHING)
        requests = b"".join(encode_frame("metrics", number=n) for n in range(3000))
        with suppress(trio.BrokenResourceError):
            await stream.send_all(requests)
        received = await answers(stream)
        await stream.aclose()
        await soon(lambda: server.clients == 0)
    assert received[-1]["reason"] == "flood"
    assert node.counts.ended == {"flood": 1}


EVENT = {"id": "", "values": {}, "publisher": "", "published_at": 0, "subscriptions": []}
NO_REQUESTS = {
    "attach": ATTACHING,
    "event": encode_frame("event", position=1, **EVENT),
    "acknowledge": encode_frame("acknowledge", position=3),
    "nonsense": encode_frame("nonsense"),
}


@pytest.mark.parametrize("frame", NO_REQUESTS.values(), ids=NO_REQUESTS)
async def test_what_is_no_request_costs_the_connection(node: LocalNode, frame: bytes) -> None:
    async with node.running():
        async with stranger(node) as stream:
            await stream.send_all(ATTACHING + frame)
            attached, goodbye = await answers(stream)
        assert (attached["type"], goodbye["type"]) == ("attached", "goodbye")
        assert goodbye["reason"] == "bad frame"
        FRAMES.check(goodbye)
        await soon(lambda: node.counts.ended == {"bad frame": 1})
    assert node.peer.published == []
