"""Connections over streams in memory, and their far ends, spoken by hand or held up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import memory_stream_pair

from gossamer.node.transport.base.frames import FrameReader
from gossamer.node.transport.base.limits import Limits
from support.tasks import running
from support.transport_peers import Served

LIMIT_FIELDS = {"frame_bytes": 1024, "queue_bytes": 4096, "items": 64}
LIMITS = Limits(**LIMIT_FIELDS)
Pair = trio.StapledStream[Any, Any]


class Wire:
    """The far end of a connection, spoken by hand."""

    def __init__(self, stream: Pair) -> None:
        self.stream = stream
        self.reader = FrameReader(Limits())

    async def next(self) -> dict[str, Any] | None:
        """The next frame, None at the end."""
        while (frame := self.reader.next_frame()) is None:
            data = await self.stream.receive_some(65536)
            if not data:
                return None
            self.reader.feed(data)
        return frame

    async def send(self, *frames: bytes) -> None:
        await self.stream.send_all(b"".join(frames))


@asynccontextmanager
async def served(**changes: Any) -> AsyncIterator[tuple[Served, Wire]]:
    """A connection being run, and the other end of its stream."""
    near, far = memory_stream_pair()
    ours = Served(near, Limits(**{**LIMIT_FIELDS, **changes}))
    async with running(ours.run):
        yield ours, Wire(far)


@asynccontextmanager
async def both(**changes: Any) -> AsyncIterator[tuple[Served, Served]]:
    near, far = memory_stream_pair()
    limits = Limits(**{**LIMIT_FIELDS, **changes})
    ours, theirs = Served(near, limits, key=2), Served(far, limits, key=1)
    async with running(ours.run, theirs.run):
        yield ours, theirs


class HeldUp(trio.abc.Stream):
    """A stream that takes one write only once it is released, and never delivers anything."""

    def __init__(self) -> None:
        self.released = trio.Event()
        self.closed = trio.Event()
        self.taken = bytearray()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.released.wait()
        self.taken += data

    async def wait_send_all_might_not_block(self) -> None:
        await self.released.wait()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:  # noqa: ARG002
        await self.closed.wait()
        return b""

    async def aclose(self) -> None:
        self.closed.set()
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def held_up(**changes: Any) -> AsyncIterator[tuple[Served, Callable[[], None]]]:
    stream = HeldUp()
    ours = Served(stream, Limits(**{**LIMIT_FIELDS, **changes}))
    async with running(ours.run):
        yield ours, stream.released.set
