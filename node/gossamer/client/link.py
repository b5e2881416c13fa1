"""One connection to the node of this machine: requests under way, and the events that come.

`gossamer.client.session` goes on over many of these. A task writes what is queued, so that a
request that is cancelled never leaves half a frame behind.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
from attrs import define, field, frozen

from gossamer.client.errors import (
    HandshakeFailed,
    LocalSocketError,
    NodeNotRunningError,
    PublicationUncertainError,
    RefusedByNodeError,
    TransportBroken,
)
from gossamer.client.frames import VERSION, BadAnswerError, Frame, FrameReader, encode_frame

# Where the local socket of a node is.
#
# A running node leaves in its folder what its clients need: a Unix socket, or, for loopback TCP, a
# file of mode 600 with address and token. Where the folder's path is too long for a Unix socket, it
# lies in XDG_RUNTIME_DIR, under a name that follows from the path.

SOCKET_NAME: Final = "client.sock"
TOKEN_NAME: Final = "client.token"
# Of the path of a Unix socket; 103 on the BSDs, and 107 on Linux.
PATH_BYTES: Final = 103
_TOKEN_FILE_LIMIT: Final = 512


@frozen
class LocalAddress:
    """Where the local socket of a folder's peer is.

    Attributes:
        folder: the peer's folder.
        path: of the Unix socket, None for TCP.
        host, port: of the TCP socket; port 0 is any.
    """

    folder: Path
    path: Path | None
    host: str = ""
    port: int = 0

    @property
    def token_file(self) -> Path:
        """Holds the address and the token of a TCP socket."""
        return self.folder / TOKEN_NAME

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else f"{self.host}:{self.port}"


def unix_paths(folder: Path, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """The places for a Unix socket of the peer in ``folder`` that are short enough, best first."""
    path = folder.absolute() / SOCKET_NAME
    places = [path]
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        places.append(Path(runtime) / f"gossamer-{digest}.sock")
    return [one for one in places if len(os.fsencode(one)) <= PATH_BYTES]


def find_address(folder: Path) -> LocalAddress:
    """Where the node in ``folder`` listens by what it has left there; no configuration is read."""
    paths = unix_paths(folder)
    found = [path for path in paths if path.exists()]
    if not found and (folder / TOKEN_NAME).exists():
        return LocalAddress(folder, None)
    return LocalAddress(folder, next(iter(found or paths), None))


async def knock(address: LocalAddress) -> tuple[anyio.abc.SocketStream, str | None]:
    """Connect to the socket; give the stream and the token to show.

    Raises:
        NodeNotRunningError: nobody listens there.
        LocalSocketError: this user may not use it.
    """
    try:
        if address.path is not None:
            return await anyio.connect_unix(address.path), None
        host, port, token = _read_token(address.token_file)
        return await anyio.connect_tcp(host, port), token
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError) as error:
        raise NodeNotRunningError(address.folder, error.strerror or "nobody answers") from None
    except PermissionError:
        reason = "belongs to another user, expected one of this user's"
        raise LocalSocketError(address, reason) from None
    except OSError as error:
        raise NodeNotRunningError(address.folder, error.strerror or str(error)) from None


def _read_token(path: Path) -> tuple[str, int, str]:
    if not path.exists():
        raise FileNotFoundError(2, "no client.token is there", str(path))
    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            reason = f"can be used by others, expected mode 600; run: chmod 600 {path}"
            raise LocalSocketError(path, reason)
        content = file.read(_TOKEN_FILE_LIMIT)
    try:
        host, port, token = content.decode("ascii").split()
        return host, int(port), token
    except ValueError:
        reason = "holds no address and token, expected the file that a running node writes"
        raise LocalSocketError(path, reason) from None


# How long a node may take to introduce itself, and an orderly end to be made.
HANDSHAKE_S: Final = 10.0
CLOSE_S: Final = 1.0
# Why connections end, of those words that make a difference to a client.
BAD_FRAME, BUSY, FULL, LOST, SHUTDOWN = "bad frame", "busy", "full", "lost", "shutdown"

_CHUNK: Final = 1 << 16
_QUEUED_FRAMES: Final = 64
_EVENTS: Final = ("event", "match")
_ANSWERS: Final = ("done", "published", "outcomes", "unacknowledged", "refused")
_BROKEN: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)


@frozen
class Resume:
    """What a client with a name knows from an earlier connection.

    Attributes:
        history: id of the node's history then.
        acknowledged: position up to which it has got everything.
    """

    history: str
    acknowledged: int


@frozen
class Introduction:
    """How a client introduces itself.

    Attributes:
        name: under which the node keeps its subscriptions and undelivered events.
        aside: whether it leaves the events of that name to another connection.
        ordered: whether it wants the events of each publisher in order.
    """

    name: str | None = None
    aside: bool = False
    ordered: bool = False


@frozen
class Farewell:
    """How a connection ended.

    Attributes:
        cause: why, as in the goodbye of a node.
        by_us: whether this end ended it.
        detail: more about it, in words; empty where there is no more to say.
    """

    cause: str
    by_us: bool
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}" if self.detail else self.cause


class NotSentError(Exception):
    """The connection was over before the request was sent; never leaves the client."""


@define(eq=False)
class _Request:
    done: anyio.Event = field(factory=anyio.Event)
    answer: Frame | None = None
    replies: list[Frame] = field(factory=list)


class Link:
    """One connection; made by `open_link`.

    Attributes:
        attached: how the node introduced itself.
        farewell: how the connection ended, None while it lasts.
    """

    def __init__(self, stream: anyio.abc.ByteStream, attached: Frame, reader: FrameReader) -> None:
        self.attached = attached
        self.farewell: Farewell | None = None
        self._stream = stream
        self._reader = reader
        self._queue, self._queued = anyio.create_memory_object_stream[bytes](_QUEUED_FRAMES)
        self._scope = anyio.CancelScope(shield=True)
        self._over = anyio.Event()
        self._requests: dict[int, _Request] = {}
        self._number = 0

    async def request(self, kind: str, **fields: object) -> Frame:
        """Send a request; return its answer, and as "replies" what came before it.

        Raises:
            NotSentError: the connection was over before.
            TransportBroken: it ended before the answer came.
            RefusedByNodeError: the node refused.
        """
        if self.farewell is not None:
            raise NotSentError
        self._number += 1
        number = self._number
        request = self._requests[number] = _Request()
        try:
            await self._send(encode_frame(kind, number=number, **fields))
            await request.done.wait()
        finally:
            del self._requests[number]
        if request.answer is None:
            raise TransportBroken("the node", str(self.farewell or "cancelled"))
        if request.answer["type"] == "refused":
            raise RefusedByNodeError(request.answer["cause"], request.answer["reason"])
        return {**request.answer, "replies": request.replies}

    async def publish(self, kind: str, count: int, **fields: object) -> Frame:
        """Send a request that publishes ``count`` events; return its answer.

        Raises:
            NotSentError, RefusedByNodeError: as of `request`; nothing was published.
            PublicationUncertainError: the connection ended before the answer came.
        """
        try:
            return await self.request(kind, **fields)
        except TransportBroken as error:
            raise PublicationUncertainError(count, error.reason) from None

    async def tell(self, kind: str, **fields: object) -> None:
        """Send what has no answer.

        Raises:
            TransportBroken: the connection is over.
        """
        await self._send(encode_frame(kind, **fields))

    async def run(self, take_event: Callable[[Frame], Awaitable[None]]) -> None:
        """Serve the connection until it ends; `close` ends it in order, cancelled or not."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._write)
                    await self._read(take_event)
                    tasks.cancel_scope.cancel()
        finally:
            self._end(LOST, "cancelled", by_us=True)
            self._queue.close()
            self._queued.close()
            for request in self._requests.values():
                request.done.set()
            self._over.set()
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(self._stream)

    async def close(self) -> None:
        """End the connection in order, within `CLOSE_S`; `run` has to run."""
        if self.farewell is None:
            goodbye = encode_frame("goodbye", reason=SHUTDOWN, detail="")
            self._end(SHUTDOWN, "", by_us=True)
            self._scope.deadline = anyio.current_time() + CLOSE_S
            with anyio.move_on_after(CLOSE_S):
                with suppress(*_BROKEN):
                    await self._queue.send(goodbye)
        await self._over.wait()

    async def _send(self, frame: bytes) -> None:
        if self.farewell is None:
            try:
                await self._queue.send(frame)
                return
            except _BROKEN:
                pass
        raise TransportBroken("the node", str(self.farewell or "it broke while sending"))

    async def _write(self) -> None:
        with self._queued:
            async for frame in self._queued:
                try:
                    await self._stream.send(frame)
                except _BROKEN:
                    return  # the node's last words may still be there to read

    async def _read(self, take_event: Callable[[Frame], Awaitable[None]]) -> None:
        try:
            while True:
                for frame in self._reader:
                    await self._take(frame, take_event)
                    if frame["type"] == "goodbye":
                        return
                self._reader.feed(await self._stream.receive(_CHUNK))
        except anyio.EndOfStream:
            self._end(LOST, "it ended without a goodbye")
        except _BROKEN:
            self._end(LOST, "it broke while receiving")
        except BadAnswerError as error:
            self._end(BAD_FRAME, str(error), by_us=True)

    async def _take(self, frame: Frame, take_event: Callable[[Frame], Awaitable[None]]) -> None:
        kind = frame["type"]
        if kind in _EVENTS:
            await take_event(frame)
        elif kind in _ANSWERS:
            request = self._requests.get(frame["number"])
            if request is not None:  # nobody waits for the answer of one that was cancelled
                request.answer = frame
                request.done.set()
        elif kind == "replied":
            request = self._requests.get(frame["number"])
            if request is not None:
                request.replies.append(frame)
        elif kind == "ping":
            with anyio.move_on_after(0):
                await self._queue.send(encode_frame("pong", number=frame["number"]))
        elif kind == "goodbye":
            self._end(frame["reason"], frame.get("detail", ""))
        elif kind != "pong":
            raise BadAnswerError(f"a frame of type {kind!r:.40}, expected an event or an answer")

    def _end(self, cause: str, detail: str, *, by_us: bool = False) -> None:
        if self.farewell is None:
            self.farewell = Farewell(cause, by_us, detail)


async def open_link(address: LocalAddress, who: Introduction, resume: Resume | None) -> Link:
    """Connect to the node at ``address``; the link is to be run, and closed.

    Raises:
        NodeNotRunningError: no node listens there.
        LocalSocketError: this user may not use it.
        RefusedByNodeError: the node does not let this client in.
        HandshakeFailed: what listens there is no node of this version.
    """
    stream, token = await knock(address)
    attach: dict[str, object] = {"version": VERSION, "software": "gossamer"}
    attach |= {} if who.name is None else {"client": who.name}
    attach |= {"aside": True} if who.aside and who.name is not None else {}
    attach |= {"ordered": True} if who.ordered else {}
    attach |= {} if token is None else {"token": token}
    if resume is not None:
        attach |= {"history": resume.history, "acknowledged": resume.acknowledged}
    try:
        return Link(stream, *await _introduce(stream, attach))
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise


async def _introduce(
    stream: anyio.abc.ByteStream, attach: Mapping[str, object]
) -> tuple[Frame, FrameReader]:
    reader = FrameReader()
    try:
        with anyio.fail_after(HANDSHAKE_S):
            await stream.send(encode_frame("attach", **attach))
            while (frame := reader.next_frame()) is None:
                reader.feed(await stream.receive(_CHUNK))
    except (anyio.EndOfStream, *_BROKEN):
        reason = "the connection ended before the node had introduced itself"
        raise HandshakeFailed(reason, LOST) from None
    except TimeoutError:
        raise HandshakeFailed(f"nothing came within {HANDSHAKE_S:g} s", "timeout") from None
    except BadAnswerError as error:
        reason = f"what listens there is no node of this version ({error})"
        raise HandshakeFailed(reason) from None
    if frame["type"] == "goodbye":
        raise RefusedByNodeError(frame["reason"], str(frame.get("detail", frame["reason"])))
    if frame["type"] != "attached" or not {"peer", "schema"} <= frame.keys():
        raise HandshakeFailed(f"the node began with {frame['type']!r:.40}, expected 'attached'")
    return frame, reader
