"""Peers whose frames are looked at, or changed, on their way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import trio

from gossamer.node.peer.assembly import Dependencies
from gossamer.node.peer.frames.event_frames import KINDS, MARK, event_frame, read_event_frame
from gossamer.node.transport.base.base import (
    Address,
    Admitted,
    Handler,
    Listener,
    LocalPeer,
    Transport,
    Verify,
)
from gossamer.node.transport.base.frames import FrameDecoder, encode_frame
from gossamer.node.transport.base.limits import HEADER_BYTES, Limits
from gossamer.node.transport.base.schema import Frame

Change = Callable[[Admitted], Admitted]
Between = Callable[[Handler], Handler]


def intercepted(
    dependencies: Dependencies, between: Between, change: Change = lambda admitted: admitted
) -> Dependencies:
    """The same peer with other handlers of who comes in, and other connections to whom it dials."""

    def make(me: LocalPeer, verify: Verify) -> Any:
        return _Transport(dependencies.make_transport(me, verify), between, change)

    return attrs.evolve(dependencies, make_transport=make)


def tampered(dependencies: Dependencies, rewrite: Callable[[bytes], bytes]) -> Dependencies:
    """The same peer, but that it sends what ``rewrite`` makes of each frame."""

    def change(admitted: Admitted) -> Admitted:
        return attrs.evolve(admitted, stream=_Stream(admitted.stream, rewrite))

    def between(handler: Handler) -> Handler:
        async def handle(admitted: Admitted) -> None:
            await handler(change(admitted))

        return handle

    return intercepted(dependencies, between, change)


def frames_in(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = at + HEADER_BYTES + int.from_bytes(data[at : at + HEADER_BYTES], "big")
        yield data[at:end]
        at = end


def read_frame(data: bytes) -> Frame:
    return FrameDecoder(Limits(), {MARK: read_event_frame}).decode(data[HEADER_BYTES:])


def write_frame(frame: Frame) -> bytes:
    """A frame as peers send it, header included; it may be wrong in every field but its type."""
    if frame["type"] == "record" and frame["kind"] in KINDS:
        values = frame.get("event", b"")
        return event_frame(frame["kind"], frame["words"], b"".join(frame["peers"]), values)
    fields = {name: value for name, value in frame.items() if name != "type"}
    return encode_frame(frame["type"], **fields)


class _Transport:
    _inner: Transport
    _between: Between
    _change: Change

    def __init__(self, inner: Transport, between: Between, change: Change) -> None:
        self.__dict__.update(_inner=inner, _between=between, _change=change)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._inner, name, value)

    async def listen(self, addresses: Sequence[Address]) -> Sequence[Listener]:
        return [_Listener(one, self._between) for one in await self._inner.listen(addresses)]

    async def dial(self, addresses: Sequence[Address], key: int | None = None) -> Admitted:
        return self._change(await self._inner.dial(addresses, key))


@attrs.define
class _Listener:
    inner: Listener
    between: Between

    @property
    def address(self) -> Address:
        return self.inner.address

    async def serve(self, handler: Handler) -> None:
        await self.inner.serve(self.between(handler))

    async def aclose(self) -> None:
        await self.inner.aclose()


@attrs.define(eq=False)
class _Stream(trio.abc.Stream):
    inner: trio.abc.Stream
    rewrite: Callable[[bytes], bytes]

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.inner.send_all(b"".join(map(self.rewrite, frames_in(bytes(data)))))

    async def wait_send_all_might_not_block(self) -> None:
        await self.inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self.inner.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self.inner.aclose()
