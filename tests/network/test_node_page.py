"""The page's server: what it serves, and what it refuses from clients that mean no good."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from unittest.mock import Mock

import attrs
import h11
import pytest
import trio
import trio.testing

from gossamer.node.monitoring.metrics import Counters
from gossamer.node.page.server import PageLimits, serve_page
from support.attackers import read_to_end
from support.waiting import PATIENCE_S, from_host, running

HOST = "127.0.0.1"
METRICS = b"# HELP gossamer_up x\ngossamer_up 1.0\n"
PATHS = (
    *("/", "/cluster", "/page.css", "/page.js", "/layout.js", "/cluster.js"),
    *("/state.json", "/cluster.json", "/metrics", "/healthz"),
)
QUICK = PageLimits(interval_s=0.01)
LOCAL = "Host: localhost"
NOT_THERE = (
    *("/nope", "/../server.py", "/%2e%2e/server.py", "//etc/passwd", "/index.html"),
    "http://localhost/state.json",
)


@attrs.define
class Served:
    port: int = 0
    snapshots: int = 0
    counts: Counters = attrs.field(factory=Counters)
    filler: str = ""

    def snapshot(self) -> Mapping[str, Any]:
        self.snapshots += 1
        return {"number": self.snapshots, **({"filler": self.filler} if self.filler else {})}

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream(HOST, self.port)

    async def send(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        async with await self.connect() as stream:
            await stream.send_all(request)
            return await read_answer(stream, request[:4] == b"HEAD")

    async def ask(self, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
        return await self.send(get(path, method))


def get(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


async def read_answer(
    stream: trio.SocketStream, head: bool = False
) -> tuple[int, dict[str, str], bytes]:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="HEAD" if head else "GET", target="/", headers=[("Host", "x")]))
    client.send(h11.EndOfMessage())
    status, headers, body = 0, {}, b""
    while True:
        event = client.next_event()
        if event is h11.NEED_DATA:
            client.receive_data(await stream.receive_some())
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode() for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += event.data
        else:
            return status, headers, body


@asynccontextmanager
async def served(
    limits: PageLimits | None = None, hosts: tuple[str, ...] = ()
) -> AsyncIterator[Served]:
    page = Served()
    async with running() as nursery:
        _, page.port = await serve_page(
            nursery,
            (HOST, 0),
            page.snapshot,
            lambda: METRICS,
            hosts=hosts,
            limits=limits,
            counts=page.counts,
        )
        with trio.fail_after(PATIENCE_S):
            yield page


@pytest.mark.parametrize("path", PATHS)
async def test_every_resource_is_served_with_all_security_headers(path: str) -> None:
    async with served() as page:
        status, headers, body = await page.ask(path)
        head_status, head_headers, nothing = await page.ask(path, "HEAD")
    assert (status, head_status, nothing) == (200, 200, b"")
    assert len(body) == int(headers["content-length"]) == int(head_headers["content-length"])
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_state_metrics_and_health_are_what_they_should_be() -> None:
    async with served(PageLimits(interval_s=3600)) as page:
        for _ in range(5):
            assert json.loads((await page.ask("/state.json?x=1"))[2]) == {"number": 1}
        _, headers, body = await page.ask("/metrics")
        assert body == METRICS
        assert headers["content-type"].startswith("text/plain; version=0.0.4")
        assert (await page.ask("/healthz"))[2] == b"ok\n"
    assert (page.snapshots, page.counts.page_requests) == (1, 7)


async def test_the_page_needs_nothing_but_its_own_files() -> None:
    async with served() as page:
        texts = {path: (await page.ask(path))[2].decode() for path in PATHS[:6]}
        pages, scripts = texts["/"] + texts["/cluster"], texts["/page.js"] + texts["/cluster.js"]
        references = re.findall(r'(?:src|href)="([^"]*)"', pages)
        references += re.findall(r'from "\./([^"]*)"', scripts)
        for name in references:
            if name not in ("data:,", "./"):
                assert (await page.ask(f"/{name}"))[0] == 200
    assert len(references) >= 6
    for path, text in texts.items():
        assert "innerHTML" not in text
        links = [url for url in re.findall(r"https?://[^\s\"')]+", text) if "w3.org" not in url]
        assert links == [], path
    assert "<style" not in texts["/"]
    assert not re.search(r"\son\w+=|style=|<script>", texts["/"])


async def test_events_come_again_and_again() -> None:
    async with served(QUICK) as page, await page.connect() as stream:
        await stream.send_all(get("/events"))
        received = b""
        while received.count(b"data: ") < 3:
            received += await stream.receive_some()
    assert b"text/event-stream" in received
    numbers = [json.loads(text)["number"] for text in re.findall(rb"data: (\{.*?\})\n\n", received)]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) >= 2


async def test_a_connection_serves_several_requests_until_it_had_enough() -> None:
    async with served(PageLimits(requests=3)) as page, await page.connect() as stream:
        for _ in range(3):
            await stream.send_all(get("/healthz"))
            assert (await read_answer(stream))[0] == 200
        await read_to_end(stream)


@pytest.mark.parametrize(
    ("line", "fields", "status"),
    [
        ("POST / HTTP/1.1", [LOCAL, "Content-Length: 0"], 405),
        ("DELETE /state.json HTTP/1.1", [LOCAL], 405),
        ("GET / HTTP/1.1", [LOCAL, "Content-Length: 10000000"], 413),
        ("GET / HTTP/1.1", [LOCAL, "Transfer-Encoding: chunked"], 413),
        ("GET / HTTP/1.1", ["Host: evil.example"], 421),
        ("GET / HTTP/1.1", ["Host: localhost.evil.example"], 421),
        ("GET / HTTP/1.1", ["Host: 127.0.0.1.evil.example"], 421),
        ("GET / HTTP/1.0", [], 421),
        ("GET / HTTP/1.1", [], 400),
        ("GET / HTTP/1.1", [LOCAL, LOCAL], 400),
        *((f"GET {path} HTTP/1.1", [LOCAL], 404) for path in NOT_THERE),
        ("\x16\x03\x01 hello TLS", [], 400),
        ("GET / HTTP/1.1", [LOCAL, "X: " + "a" * 20_000], 431),
        ("GET /" + "a" * 20_000 + " HTTP/1.1", [LOCAL], 431),
    ],
    ids=range(19),
)
async def test_what_is_not_ours_is_refused(line: str, fields: list[str], status: int) -> None:
    request_text = "\r\n".join([line, *fields, "", ""])
    async with served() as page:
        answered, headers, body = await page.send(request_text.encode("latin-1"))
        assert (await page.ask("/healthz"))[0] == 200
    assert (answered, body.count(b"\n")) == (status, 1)
    assert "content-security-policy" in headers
    assert page.counts.page_refused == 1


async def test_addresses_localhost_and_configured_names_are_ours() -> None:
    addresses = ("127.0.0.1:7711", "[::1]:7711", "192.168.1.9")
    async with served(hosts=("Gossip.lan",)) as page:
        for host in ("localhost:1", "LOCALHOST", *addresses, "gossip.lan."):
            request_text = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n"
            assert (await page.send(request_text.encode()))[0] == 200, host


async def test_a_client_that_drips_is_cut() -> None:
    async with served(PageLimits(header_s=0.05)) as page:
        async with await page.connect() as stream:
            await stream.send_all(b"GET / HT")
            await read_to_end(stream)
        assert (await page.ask("/healthz"))[0] == 200


async def test_who_takes_nothing_is_cut_and_its_place_is_free_again() -> None:
    async with served(PageLimits(write_s=0.05, interval_s=0.0, streams=1)) as page:
        page.filler = "x" * 1_000_000
        async with await page.connect() as stream:
            await stream.send_all(get("/events"))
            await stream.receive_some(1)
            statuses = [0]
            while statuses[-1] != 200:
                statuses.append((await page.ask("/events", "HEAD"))[0])
    assert statuses[1] == 503


async def test_there_is_a_bound_to_connections_and_to_open_pages() -> None:
    """Who waits for nothing makes room; who watches does not, for others of its address."""
    async with served(PageLimits(connections=2, streams=1)) as page:
        async with await page.connect() as watching:
            await watching.send_all(get("/events"))
            await watching.receive_some()
            status, headers, _ = await page.ask("/events")
            assert (status, headers["retry-after"]) == (503, "10")
            async with await page.connect() as idle:
                await idle.send_all(get("/healthz"))
                assert ((await read_answer(idle))[0], (await page.ask("/healthz"))[0]) == (200, 200)
                await read_to_end(idle)
            assert await watching.receive_some()
        assert page.counts.page_refused == 2


async def test_silent_connections_keep_nobody_out() -> None:
    """Of one address or of many, of the own or of others."""
    async with served() as page, AsyncExitStack() as stack:
        for host in (HOST, *(f"127.0.0.{number}" for number in range(2, 40))):
            for _ in range(70 if host in (HOST, "127.0.0.2") else 1):
                await stack.enter_async_context(await from_host(host, page.port))
        for path in PATHS:
            assert (await page.ask(path))[0] == 200


async def test_whoever_watches_from_one_address_keeps_no_other_from_watching() -> None:
    async with served(QUICK) as page, AsyncExitStack() as stack:
        streams = []
        for host in ["127.0.0.2"] * QUICK.streams + [HOST]:
            stream = await stack.enter_async_context(await from_host(host, page.port))
            await stream.send_all(get("/events"))
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
            streams.append(stream)
        await read_to_end(streams[0])
        assert await streams[1].receive_some()
        assert await streams[-1].receive_some()


async def test_far_too_many_connections_are_closed_without_a_word() -> None:
    async with served(PageLimits(connections=1)) as page:
        first, second = await page.connect(), await page.connect()
        async with first, second:
            assert (await first.receive_some(), page.counts.page_refused) == (b"", 1)


async def test_a_page_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as page, running() as nursery:
        broken = Mock(side_effect=RuntimeError("a defect"))
        _, page.port = await serve_page(nursery, (HOST, 0), broken, lambda: METRICS)
        async with await page.connect() as stream:
            await stream.send_all(get("/state.json"))
            await read_to_end(stream)
        assert (await page.ask("/healthz"))[0] == 200
    assert caplog.messages == ["page failed"]
