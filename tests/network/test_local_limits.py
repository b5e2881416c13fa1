"""What clients of the local socket may not do, or ask too much of: bounded, counted and said."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

import gossamer.client
from gossamer.client import (
    Client,
    Fate,
    NodeError,
    Payload,
    RefusedByNodeError,
    UnusableValueError,
    links,
    open_client,
)
from gossamer.client.frames import VERSION
from gossamer.command.main import main
from gossamer.node.commands.clients.publishing import publish_lines
from gossamer.node.config.node import Local
from gossamer.node.local.frames import FRAMES, values_from_wire, values_to_wire
from gossamer.node.peer.frames.events import EventFormat
from gossamer.node.store import StoreLimits
from gossamer.node.transport.frames import FrameReader, encode_frame
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.schema import Frame
from gossamer.protocol.content.schema import Schema, SchemaVersion
from support.local_nodes import LocalNode
from support.loopback_peer import IBM, LoopbackPeer, quote
from support.threaded_node import threaded_node
from support.waiting import PATIENCE_S, soon

ATTACH = {"version": VERSION, "software": "test"}
ATTACHING = encode_frame("attach", **ATTACH)


@asynccontextmanager
async def stranger(node: LocalNode) -> AsyncIterator[trio.SocketStream]:
    if node.address.path is not None:
        stream = await trio.open_unix_socket(node.address.path)
    else:
        host, port, _ = node.address.token_file.read_text().split()
        stream = await trio.open_tcp_stream(host, int(port))
    async with stream:
        yield stream


async def answers(stream: trio.SocketStream) -> list[Frame]:
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


async def test_only_so_many_clients_get_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert (received[-1]["reason"], node.counts.ended) == ("flood", {"flood": 1})


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


# Requests that are too large, or no text: each fails by itself, and says why.

LONG = "x" * 4097
HALF = "half \ud800"
BAD = "BadFrame"


Ask = Callable[[Client], Awaitable[object]]


def publish(values: dict[str, object], **options: Any) -> Ask:
    return lambda client: client.publish(values, **options)


def subscribe(expression: str, **options: Any) -> Ask:
    async def ask(client: Client) -> None:
        async with client.subscribe(expression, **options):
            pass

    return ask


TYPE = Payload(b"", "a/" + 126 * "b")
TOO_MUCH: dict[str, tuple[Ask, type[NodeError], str]] = {
    "string": (publish({"symbol": LONG}), UnusableValueError, "4097 .* expected at most 4096"),
    "digits": (publish({"price": 10**1000}), UnusableValueError, "'price' .* at most 1000 digits"),
    "exponent": (publish({"price": Decimal("1e-2001")}), UnusableValueError, "'price'"),
    "name": (publish({"y" * 65: 1}), UnusableValueError, "no name, expected a text of at most 64"),
    "attributes": (
        publish({f"a{number}": 1 for number in range(32)}),
        UnusableValueError,
        "one of 32, expected at most 31",
    ),
    "content type": (publish(quote(1), payload=TYPE), UnusableValueError, "of 128 characters"),
    "group": (
        subscribe("price > 1", group="g" * 65),
        RefusedByNodeError,
        "group is 'g.* expected text of at most 64 characters",
    ),
    "expression": (
        subscribe("price > " + 8192 * "1"),
        RefusedByNodeError,
        "expression is .* expected text of at most 8192 characters",
    ),
    "half a value": (publish({"symbol": HALF}), UnusableValueError, "no lone surrogates"),
    "half an expression": (subscribe(f'symbol == "{HALF}"'), UnusableValueError, r"half \\ud800"),
    "half a name": (subscribe("price > 1", name=HALF), UnusableValueError, "lone surrogates"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
async def test_a_request_that_is_too_much_fails_alone(node: LocalNode, what: str) -> None:
    ask, error, words = TOO_MUCH[what]
    async with node.running(), open_client(node.folder) as client, trio.open_nursery() as others:
        for _ in range(3):
            others.start_soon(publish(quote(1)), client)
        with pytest.raises(error, match=words):
            await ask(client)
    assert len(node.peer.published) == 3


async def test_one_bad_event_of_many_fails_alone(node: LocalNode) -> None:
    bad = ({"symbol": LONG}, {"price": Decimal("1e-2001")}, {"symbol": HALF}, {"z" * 65: 1})
    async with node.running(), open_client(node.folder) as client:
        outcomes = await client.publish_each([quote(1), *bad, quote(2)])
    fates = [one.fate for one in outcomes]
    assert fates == [Fate.ACKNOWLEDGED, *[Fate.REFUSED] * len(bad), Fate.ACKNOWLEDGED]


NO_FRACTION = ("numerator and denominator", "RequestError")


@pytest.mark.parametrize(
    ("kind", "fields", "words", "cause"),
    [
        ("publish", {"values": {"symbol": LONG}}, "text of at most 4096", BAD),
        ("publish", {"values": {"price": ["1", "0" * 1002]}}, "text of at most 1001", BAD),
        ("publish", {"values": {"price": ["1", "0"]}}, *NO_FRACTION),
        ("publish", {"values": {"price": ["1"]}}, *NO_FRACTION),
        ("publish", {"values": {"price": ["a", "1"]}}, *NO_FRACTION),
        ("publish", {"values": {"price": ["1" * 400, "x"]}}, *NO_FRACTION),
        ("publish", {"values": {str(n): 1 for n in range(32)}}, "at most 31 entries", BAD),
        ("publish", {"values": quote(1), "content_type": "t" * 128, "payload": b""}, "127", BAD),
        ("publish", {"values": quote(1), "colour": "red"}, "a field is 'colour'", BAD),
        ("publish", {}, "values is missing", BAD),
        ("publish_many", {"events": [{}] * 257}, "at most 256 entries", BAD),
        ("subscribe", {"id": "x" * 65, "expression": ""}, "text of at most 64", BAD),
        ("subscribe", {"id": "x", "expression": 8193 * " "}, "text of at most 8192", BAD),
    ],
)
async def test_a_node_refuses_a_request_that_is_none_and_goes_on(
    node: LocalNode, kind: str, fields: dict[str, object], words: str, cause: str
) -> None:
    path, reader = node.address.path, FrameReader(Limits())
    assert path is not None
    async with node.running(), await trio.open_unix_socket(path) as stream:
        await stream.send_all(
            encode_frame("attach", version=VERSION, software="test")
            + encode_frame(kind, number=1, **fields)
            + encode_frame("status", number=2)
        )
        found: list[Frame] = []
        with trio.fail_after(PATIENCE_S):
            while len(found) < 3:
                reader.feed(await stream.receive_some(65536))
                found += list(reader)
    assert [(one["type"], one.get("number")) for one in found[1:]] == [("refused", 1), ("done", 2)]
    assert found[1]["cause"] == cause
    assert words in found[1]["reason"]
    assert node.counts.refused == {cause: 1}


def test_bad_lines_alone_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [quote(1), {"symbol": LONG}, quote(2), {"price": "1/" + 1001 * "7"}, quote(3)]
    source = tmp_path / "events.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)))
    with threaded_node(tmp_path) as node:
        code, _ = publish_lines(node.node.folder, str(source))
    printed = capfd.readouterr()
    assert code == 2
    assert sorted(line.split()[0] for line in printed.out.splitlines()) == ["1", "3", "5"]
    assert all(f"line {number}" in printed.err for number in (2, 4))


def test_numbers_of_many_digits_are_published_as_they_are() -> None:
    schema = Schema.from_mapping({"x": {"type": "float", "minimum": 0, "maximum": 10}})
    value = Fraction(3 * 10**998 + 1, 10**999)
    made = EventFormat(SchemaVersion.first(schema))
    assert made.from_bytes(1, made.to_bytes({"x": value}, 7, 0.0)).values == {"x": value}
    assert values_from_wire(schema, values_to_wire({"x": value})) == {"x": value}


@pytest.mark.parametrize("command", [["sub"], ["node", "init"], ["nonsense"]])
def test_arguments_are_to_be_text(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, os.fsdecode(b"Z\xfcrich")]) == 2
    assert capsys.readouterr().err == (
        "gossamer: the argument 'Z\\udcfcrich' is no text, expected UTF-8 (see 'locale')\n"
    )
