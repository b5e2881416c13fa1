"""Streams that take what there is room for at once, and one over TCP.

`trio.SocketStream` looks for cancellation, for other tasks and for readiness around every call,
which for frames of 200 bytes takes longer than the system does to carry them. Here a socket is
written to without any of that, and read from once it is known to hold something.
"""

from __future__ import annotations

import socket
from abc import abstractmethod
from contextlib import suppress

import trio

from gossamer.node.transport.base.base import CHUNK_BYTES


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
