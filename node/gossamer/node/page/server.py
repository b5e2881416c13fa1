"""The page's HTTP server: few read-only resources, and a bound for whatever a client may do."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, Protocol

import attrs
import h11
import trio

from gossamer.node.errors import ListenFailed
from gossamer.node.monitoring.logs import log
from gossamer.node.transport.limits import Doors, Guest, address_group, warn_of_crowd

Headers = list[tuple[str, str]]

# Nothing is loaded from elsewhere, nothing is sent elsewhere, nobody may frame or read the page.
_SECURITY: Final = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
)
_FILES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "/": ("index.html", "text/html; charset=utf-8"),
        "/page.css": ("page.css", "text/css; charset=utf-8"),
        "/page.js": ("page.js", "text/javascript; charset=utf-8"),
        "/layout.js": ("layout.js", "text/javascript; charset=utf-8"),
        "/cluster": ("cluster.html", "text/html; charset=utf-8"),
        "/cluster.js": ("cluster.js", "text/javascript; charset=utf-8"),
    }
)
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_CHUNK: Final = 8192


@attrs.frozen(kw_only=True)
class PageLimits:
    """What clients may cost.

    Attributes:
        connections: open at a time; a browser needs 2, and 32 leave room for forgotten tabs. One
            that waits for a request makes room for one more, of the address with most of them.
        streams: of those, on ``/events``; each costs a snapshot's bytes every second. Where all
            are taken, the oldest of the address with most makes room for one of another.
        header_bytes: of a request; browsers send less than 2 KiB to a host without cookies.
        header_s: for a request to arrive, also the pause allowed between two of them.
        write_s: for a client to take one answer or one event.
        requests: on one connection, after which it is closed.
        interval_s: between events; state and metrics are made anew no more often than this.
    """

    connections: int = 32
    streams: int = 16
    header_bytes: int = 8192
    header_s: float = 15.0
    write_s: float = 10.0
    requests: int = 1000
    interval_s: float = 1.0


class PageCounts(Protocol):
    """What the server counts; `gossamer.node.monitoring.metrics.Counters` has it."""

    page_requests: int
    page_refused: int


@attrs.define
class _OwnCounts:
    page_requests: int = 0
    page_refused: int = 0


@attrs.frozen
class _Answer:
    status: int
    content_type: str
    body: bytes
    extra: tuple[tuple[str, str], ...] = ()
    stream: bool = False


async def serve_page(
    nursery: trio.Nursery,
    address: tuple[str, int],
    snapshot: Callable[[], Mapping[str, Any]],
    metrics_text: Callable[[], bytes],
    *,
    hosts: Iterable[str] = (),
    limits: PageLimits | None = None,
    counts: PageCounts | None = None,
    cluster: Callable[[], Mapping[str, Any]] = dict,
) -> tuple[str, int]:
    """Serve the page in ``nursery`` until it is cancelled.

    Args:
        nursery: where the server's tasks run.
        address: host and port to listen on; port 0 takes a free one.
        snapshot: what the page shows, as `Snapshot.to_json` gives it.
        metrics_text: the content of ``/metrics``.
        hosts: names, beside localhost and IP addresses, that browsers may call this host.
        limits: what clients may cost.
        counts: told of requests and refusals.
        cluster: what the view of the cluster shows, as `monitoring.cluster` gives it.

    Returns:
        Host and port where it listens.

    Raises:
        ListenFailed: it cannot listen there; nothing was started.
    """
    try:
        listeners = await trio.open_tcp_listeners(address[1], host=address[0], backlog=16)
    except OSError as error:
        raise ListenFailed(
            f"{address[0]} port {address[1]}", error.strerror or str(error)
        ) from None
    page = _Page(
        snapshot,
        metrics_text,
        cluster,
        frozenset(hosts),
        limits or PageLimits(),
        counts or _OwnCounts(),
    )
    nursery.start_soon(trio.serve_listeners, page.serve, listeners)
    host, port = listeners[0].socket.getsockname()[:2]
    return host, port


class _Page:
    """The resources, and the clients that ask for them."""

    def __init__(
        self,
        snapshot: Callable[[], Mapping[str, Any]],
        metrics_text: Callable[[], bytes],
        cluster: Callable[[], Mapping[str, Any]],
        hosts: frozenset[str],
        limits: PageLimits,
        counts: PageCounts,
    ) -> None:
        self.limits = limits
        self._hosts = frozenset(host.lower().rstrip(".") for host in hosts) | {"localhost"}
        self._counts = counts
        self._doors = Doors(limits.connections, limits.connections, warn_of_crowd)
        self._streams = Doors(limits.streams, limits.streams, warn_of_crowd)
        self._state = _Latest(lambda: _compact_json(snapshot()), limits.interval_s)
        self._metrics = _Latest(metrics_text, limits.interval_s)
        self._cluster = _Latest(lambda: _compact_json(cluster()), limits.interval_s)
        folder = files(__package__)
        self._files = {
            path: _Answer(200, kind, folder.joinpath(name).read_bytes())
            for path, (name, kind) in _FILES.items()
        }

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one client until it leaves or exceeds a limit."""
        try:
            host, *_ = stream.socket.getpeername()
            with self._doors.enter(address_group(host)) as guest:
                if guest is not None:
                    with guest.scope:
                        await self._converse(_Client(stream, self.limits), guest)
                if guest is None or guest.is_turned_out:
                    self._counts.page_refused += 1  # and not a word: words take time, and memory
        except OSError:
            pass  # it has gone again already
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass  # the client left, or let us wait too long: nothing to tell it
        except Exception:
            # A page that fails is a defect, and no reason to stop the peer.
            log.exception("page failed")
        finally:
            await trio.aclose_forcefully(stream)

    async def _converse(self, client: _Client, guest: Guest) -> None:
        for _ in range(self.limits.requests):
            guest.stays = False
            try:
                request = await client.next_request()
            except h11.RemoteProtocolError as error:
                status = error.error_status_hint
                await client.refuse(self._refusal(status, "this is no proper HTTP request"))
                return
            if request is None:
                return
            guest.stays = True
            self._counts.page_requests += 1
            answer = self._answer(request, guest.group)
            if answer.stream and request.method == b"GET":
                await self._stream(client, answer, guest.group)
                return
            if answer.status in (400, 413):
                await client.refuse(answer)
                return
            if not await client.answer(answer):
                return

    def _answer(self, request: h11.Request, group: str) -> _Answer:
        headers = dict(request.headers)
        if b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0":
            return self._refusal(413, "requests have no body here")
        if not self._is_our_name(headers.get(b"host", b"")):
            return self._refusal(421, "this host goes by another name; see page.hosts")
        if request.method not in (b"GET", b"HEAD"):
            return self._refusal(405, "only GET and HEAD", ("Allow", "GET, HEAD"))
        path = request.target.partition(b"?")[0].decode("ascii", "replace")
        return self._resource(path, group)

    def _resource(self, path: str, group: str) -> _Answer:
        if path in self._files:
            return self._files[path]
        if path == "/state.json":
            return _Answer(200, "application/json", self._state.get())
        if path == "/cluster.json":
            return _Answer(200, "application/json", self._cluster.get())
        if path == "/metrics":
            return _Answer(200, _METRICS_TYPE, self._metrics.get())
        if path == "/healthz":
            return _Answer(200, "text/plain; charset=utf-8", b"ok\n")
        if path == "/events":
            if not self._streams.has_room_for(group):
                return self._refusal(503, "too many pages are open", ("Retry-After", "10"))
            return _Answer(200, "text/event-stream", b"", stream=True)
        return self._refusal(404, "there is nothing of that name")

    async def _stream(self, client: _Client, answer: _Answer, group: str) -> None:
        with self._streams.enter(group) as watcher:
            if watcher is None:
                return
            with watcher.scope:
                await client.begin(answer)
                while True:
                    await client.send(b"data: " + self._state.get() + b"\n\n")
                    await trio.sleep(self.limits.interval_s)

    def _is_our_name(self, header: bytes) -> bool:
        """Whether a web site of another name cannot have led the browser here.

        A name can be made to point to this host by whoever owns it (DNS rebinding), an address
        cannot.
        """
        text = header.decode("ascii", "replace").lower()
        host = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return host.rstrip(".") in self._hosts
        return True

    def _refusal(self, status: int, reason: str, *extra: tuple[str, str]) -> _Answer:
        self._counts.page_refused += 1
        return _Answer(status, "text/plain; charset=utf-8", f"{reason}\n".encode(), extra)


class _Client:
    """One connection: requests in, answers out, each within its time."""

    def __init__(self, stream: trio.SocketStream, limits: PageLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.header_bytes)
        self._head_only = False

    async def next_request(self) -> h11.Request | None:
        """The next request, its body not yet read; None when the client has left.

        Raises:
            h11.RemoteProtocolError: the client does not speak HTTP.
            trio.TooSlowError: it took too long.
        """
        with trio.fail_after(self._limits.header_s):
            while True:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    self._http.receive_data(await self._stream.receive_some(_CHUNK))
                elif isinstance(event, h11.Request):
                    self._head_only = event.method == b"HEAD"
                    return event
                elif isinstance(event, h11.ConnectionClosed):
                    return None

    async def answer(self, answer: _Answer) -> bool:
        """Send the whole answer; returns whether another request may follow."""
        await self.begin(answer)
        await self.send(answer.body)
        await self._write(h11.EndOfMessage())
        # A request's end is not an event of its own until it is read.
        while self._http.their_state is h11.SEND_BODY:
            if self._http.next_event() is h11.NEED_DATA:
                return False
        if h11.MUST_CLOSE in (self._http.our_state, self._http.their_state):
            return False
        self._http.start_next_cycle()
        return True

    async def refuse(self, answer: _Answer) -> None:
        """Send an answer and close, whatever else the client is about to say.

        What it still sends is read for a moment: closing at once would make its system discard
        the answer.
        """
        closing = attrs.evolve(answer, extra=(*answer.extra, ("Connection", "close")))
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self.begin(closing)
            await self.send(closing.body)
            await self._write(h11.EndOfMessage())
            with trio.move_on_after(1):
                await self._stream.send_eof()
                for _ in range(8):
                    if not await self._stream.receive_some(_CHUNK):
                        return

    async def begin(self, answer: _Answer) -> None:
        """Send status and headers."""
        headers: Headers = [("Content-Type", answer.content_type), *_SECURITY, *answer.extra]
        if not answer.stream:
            headers.append(("Content-Length", str(len(answer.body))))
        await self._write(h11.Response(status_code=answer.status, headers=headers))

    async def send(self, data: bytes) -> None:
        """Send some of the body; of an answer to HEAD, nothing is sent."""
        if data and not self._head_only:
            await self._write(h11.Data(data=data))

    async def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            with trio.fail_after(self._limits.write_s):
                await self._stream.send_all(data)


class _Latest:
    """Something made on demand, and at most once in ``interval_s``."""

    def __init__(self, make: Callable[[], bytes], interval_s: float) -> None:
        self._make = make
        self._interval_s = interval_s
        self._made_at = float("-inf")
        self._value = b""

    def get(self) -> bytes:
        """The latest."""
        now = trio.current_time()
        if now - self._made_at >= self._interval_s:
            self._value, self._made_at = self._make(), now
        return self._value


def _compact_json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
