"""Streams that take what there is room for, are closed in order, or are raced (RFC 8305).

`trio.SocketStream` looks for cancellation, for other tasks and for readiness around every call,
which for frames of 200 bytes takes longer than the system does to carry them. Here a socket is
written to without any of that, and read from once it is known to hold something.
"""

from __future__ import annotations

import socket
import ssl
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

import trio

from gossamer.node.errors import NodeError
from gossamer.node.transport.base import CHUNK_BYTES, Address


class NonBlockingStream(trio.abc.Stream):
    """A stream that can be written to without waiting; one task may send while another receives."""

    @abstractmethod
    def send_now(self, data: bytes) -> bool:
        """Send ``data`` as far as there is room; return whether nothing of it is left.

        What is left has to be sent by `flush` before anything else is.

        Raises:
            trio.BrokenResourceError, trio.ClosedResourceError: as `send_all`.
        """

    @abstractmethod
    async def flush(self) -> None:
        """Send what is left, waiting for room."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of ``data``; no checkpoint where there is room."""
        if not self.send_now(bytes(data)):
            await self.flush()


# What the system may hold of one direction of a connection: little, since what is there waits for
# all that came before, whoever's it is, while what waits in our queues takes turns. It is enough
# for some 600 kB a second to a peer 100 ms away.
RECEIVE_BYTES = 1 << 16
UNSENT_BYTES = 1 << 15


class TcpStream(NonBlockingStream):
    """A TCP connection, taken over from one of trio's, which is of no use afterwards."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._socket = socket.socket(fileno=stream.socket.detach())
        self._socket.setblocking(False)
        self._left = b""
        self._closed = False

    def hold_little(self) -> None:
        """Keep the system from letting more wait than it has to, where it knows how."""
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
            unsent = getattr(socket, "TCP_NOTSENT_LOWAT", None)
            if unsent is not None:
                self._socket.setsockopt(socket.IPPROTO_TCP, unsent, UNSENT_BYTES)

    def send_now(self, data: bytes) -> bool:
        if self._closed:
            raise trio.ClosedResourceError("this end was closed")
        if self._left:
            self._left += data
            return False
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise trio.BrokenResourceError(f"sending failed: {error}") from error
        self._left = data[sent:]
        return not self._left

    async def flush(self) -> None:
        while self._left:
            await self.wait_send_all_might_not_block()
            left, self._left = self._left, b""
            self.send_now(left)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the socket takes something."""
        if self._closed:
            raise trio.ClosedResourceError("this end was closed")
        await trio.lowlevel.wait_writable(self._socket)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """What has arrived, at most ``max_bytes``; empty at the end."""
        while True:
            if self._closed:
                raise trio.ClosedResourceError("this end was closed")
            # Mostly nothing is there yet, and to try costs as much as to be woken.
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(CHUNK_BYTES if max_bytes is None else max_bytes)
            except BlockingIOError:
                continue
            except OSError as error:
                raise trio.BrokenResourceError(f"receiving failed: {error}") from error

    async def aclose(self) -> None:
        """Close; who waits gets `trio.ClosedResourceError`."""
        if not self._closed:
            self._closed = True
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
        await trio.lowlevel.checkpoint()


# Closing so that the last word is heard.


# What is read and dropped after a goodbye to a peer that breaks rules, so that it gets to read it.
DRAINED_BYTES = 1 << 20


async def drain(stream: trio.abc.ReceiveStream) -> None:
    """Read and drop what still comes, within bounds of bytes; the caller bounds the time.

    A socket that is closed with bytes unread resets the connection, and the peer may then lose
    the goodbye or alert that it was just sent.
    """
    dropped = 0
    try:
        while dropped < DRAINED_BYTES:
            data = await stream.receive_some(CHUNK_BYTES)
            if not data:
                return
            dropped += len(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return


async def close_stream(stream: trio.abc.Stream, orderly: bool, patience_s: float) -> None:
    """Close ``stream`` whatever happens; one that was cut is not asked to say its goodbye."""
    with trio.CancelScope(shield=True):
        if orderly:
            with trio.move_on_after(patience_s):
                await stream.aclose()
        else:
            await trio.aclose_forcefully(stream)


# Try several ways at once, a little apart, and take the first that works (RFC 8305).


W = TypeVar("W")
R = TypeVar("R")

# RFC 8305 recommends 250 ms between attempts.
STAGGER_SECONDS = 0.25


class AllFailedError(Exception):
    """No way worked; ``failures`` says why, in the order in which they were tried."""

    def __init__(self, failures: Sequence[tuple[object, str]]) -> None:
        self.failures = tuple(failures)
        super().__init__(f"{len(self.failures)} attempts failed")


class _Race(Generic[W, R]):
    def __init__(
        self, attempt: Callable[[W], Awaitable[R]], discard: Callable[[R], Awaitable[None]]
    ) -> None:
        self.attempt = attempt
        self.discard = discard
        self.winner: list[R] = []
        self.failures: list[tuple[object, str]] = []

    async def run(self, way: W, failed: trio.Event, scope: trio.CancelScope) -> None:
        try:
            result = await self.attempt(way)
        except (NodeError, OSError) as error:
            self.failures.append((way, describe(error)))
            failed.set()
            return
        if self.winner:
            await self.discard(result)
            return
        self.winner.append(result)
        scope.cancel()


async def first_success(
    ways: Sequence[W],
    attempt: Callable[[W], Awaitable[R]],
    discard: Callable[[R], Awaitable[None]],
    stagger_s: float = STAGGER_SECONDS,
) -> R:
    """The result of the first attempt that succeeds; the others are cancelled.

    The next one starts ``stagger_s`` after the last, or as soon as that has failed. Failures are
    `NodeError` and `OSError`; other exceptions pass through. Should two succeed at the same
    moment, one result goes to ``discard``.

    Raises:
        AllFailedError: every attempt failed.
    """
    race = _Race(attempt, discard)
    try:
        async with trio.open_nursery() as nursery:
            for way in ways:
                failed = trio.Event()
                nursery.start_soon(race.run, way, failed, nursery.cancel_scope)
                with trio.move_on_after(stagger_s):
                    await failed.wait()
    except BaseException:
        for result in race.winner:  # cancelled at the finishing line
            await discard(result)
        raise
    if not race.winner:
        raise AllFailedError(race.failures)
    return race.winner[0]


def interleave(addresses: Sequence[Address]) -> list[Address]:
    """``addresses`` without repetition, IPv6 and others in turn, each in its order."""
    unique = list(dict.fromkeys(addresses))
    sixes = [address for address in unique if ":" in address.host]
    others = [address for address in unique if ":" not in address.host]
    mixed: list[Address] = []
    while sixes or others:
        mixed += sixes[:1] + others[:1]
        del sixes[:1], others[:1]
    return mixed


def describe(error: Exception) -> str:
    """``error`` in few words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


# TLS over a prompt stream, driven by hand.
#
# `trio.SSLStream` serves streams that are renegotiated, upgraded or half closed; ours are not.
# Without its locks and retries a write of 200 bytes and its reading take 33 µs of both ends instead
# of 60, one of 64 KiB 98 instead of 140, and a reader gets all records that arrived together at
# once.


class TlsStream(NonBlockingStream):
    """A TLS connection over ``transport``; one task may send while another receives.

    Call `do_handshake` first. A failure of TLS is a `trio.BrokenResourceError` whose cause is the
    `ssl.SSLError`; the stream is then of no use.
    """

    def __init__(
        self,
        transport: NonBlockingStream,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_hostname: str | None = None,
    ) -> None:
        self._transport = transport
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ended = False
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_side,
            server_hostname=server_hostname,
        )

    async def do_handshake(self) -> None:
        """Agree with the peer; must be done before anything is sent or received."""
        done = False
        while not done:
            try:
                self._tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                with suppress(trio.BrokenResourceError):
                    await self._send_own()  # the alert that tells the peer
                raise trio.BrokenResourceError("the TLS handshake failed") from error
            await self._send_own()
            if not done:
                await self._fill()

    def peer_certificate(self) -> bytes | None:
        """The peer's certificate (DER), None where it showed none."""
        return self._tls.getpeercert(binary_form=True)

    def send_now(self, data: bytes) -> bool:
        self._encrypt(memoryview(data))
        return self._transport.send_now(self._outgoing.read())

    async def flush(self) -> None:
        await self._transport.flush()

    def _encrypt(self, view: memoryview) -> None:
        sent = 0
        while sent < len(view):
            try:
                sent += self._tls.write(view[sent:])
            except ssl.SSLError as error:
                raise trio.BrokenResourceError("TLS failed while sending") from error

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until `send_all` might not block."""
        await self._transport.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """At most ``max_bytes`` of what the peer sent; empty at an orderly end."""
        wanted = CHUNK_BYTES if max_bytes is None else max_bytes
        while True:
            data = self._decrypt(wanted)
            if data or self._ended:
                return data
            await self._fill()

    def _decrypt(self, wanted: int) -> bytes:
        """What has arrived, up to ``wanted`` bytes; notes whether the stream ends there."""
        parts: list[bytes] = []
        size = 0
        try:
            while size < wanted and (self._incoming.pending or self._tls.pending()):
                part = self._tls.read(wanted - size)
                if not part:
                    self._ended = True
                    break
                parts.append(part)
                size += len(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._ended = True
        except ssl.SSLError as error:
            raise trio.BrokenResourceError("TLS failed while receiving") from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def aclose(self) -> None:
        """Say that this is the end, if the peer still listens, and close; never fails."""
        # It wants to wait for the peer's word, and we do not.
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        try:
            with suppress(
                trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError
            ):
                await self._send_own()
        finally:
            await self._transport.aclose()

    async def _send_own(self) -> None:
        """Send what TLS itself has to say."""
        if self._outgoing.pending:
            await self._transport.send_all(self._outgoing.read())

    async def _fill(self) -> None:
        data = await self._transport.receive_some(CHUNK_BYTES)
        if not data:
            raise trio.BrokenResourceError("the stream ended without TLS saying so")
        self._incoming.write(data)
