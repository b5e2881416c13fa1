"""Peers whose frames are looked at, or changed, on their way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs
import trio

from gossamer.node.errors import NodeError, RefusedByPeer
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


def tampered(dependencies: Dependencies, rewrite: Callable[[bytes], bytes]) -> Dependencies:
    """The same peer, but that it sends what ``rewrite`` makes of whole frames."""

    def make(me: LocalPeer, verify: Verify) -> Transport:
        return _Transport(dependencies.make_transport(me, verify), rewrite)

    return attrs.evolve(dependencies, make_transport=make)


def frames_in(data: bytes) -> Iterator[bytes]:
    """The frames, headers included, that ``data`` is made of."""
    at = 0
    while at < len(data):
        end = at + HEADER_BYTES + int.from_bytes(data[at : at + HEADER_BYTES], "big")
        yield data[at:end]
        at = end


def read_frame(data: bytes) -> Frame:
    """The frame in ``data``, header included, whatever its form."""
    return FrameDecoder(Limits(), {MARK: read_event_frame}).decode(data[HEADER_BYTES:])


def write_frame(frame: Frame) -> bytes:
    """A frame as peers send it, header included; it may be wrong in every field but its type."""
    if frame["type"] == "record" and frame["kind"] in KINDS:
        values = frame.get("event", b"")
        return event_frame(frame["kind"], frame["words"], b"".join(frame["peers"]), values)
    fields = {name: value for name, value in frame.items() if name != "type"}
    return encode_frame(frame["type"], **fields)


@attrs.define
class _Transport:
    inner: Transport
    rewrite: Callable[[bytes], bytes]

    @property
    def me(self) -> LocalPeer:
        return self.inner.me

    @me.setter
    def me(self, me: LocalPeer) -> None:
        self.inner.me = me

    @property
    def on_refusal(self) -> Callable[[NodeError | None, Address], None]:
        return self.inner.on_refusal

    @on_refusal.setter
    def on_refusal(self, told: Callable[[NodeError | None, Address], None]) -> None:
        self.inner.on_refusal = told

    @property
    def on_refused_by(self) -> Callable[[RefusedByPeer], None]:
        return self.inner.on_refused_by

    @on_refused_by.setter
    def on_refused_by(self, told: Callable[[RefusedByPeer], None]) -> None:
        self.inner.on_refused_by = told

    async def listen(self, addresses: Sequence[Address]) -> Sequence[Listener]:
        return [_Listener(one, self.rewrite) for one in await self.inner.listen(addresses)]

    async def dial(self, addresses: Sequence[Address], key: int | None = None) -> Admitted:
        return _wrapped(await self.inner.dial(addresses, key), self.rewrite)


@attrs.define
class _Listener:
    inner: Listener
    rewrite: Callable[[bytes], bytes]

    @property
    def address(self) -> Address:
        return self.inner.address

    async def serve(self, handler: Handler) -> None:
        async def handle(admitted: Admitted) -> None:
            await handler(_wrapped(admitted, self.rewrite))

        await self.inner.serve(handle)

    async def aclose(self) -> None:
        await self.inner.aclose()


def _wrapped(admitted: Admitted, rewrite: Callable[[bytes], bytes]) -> Admitted:
    return attrs.evolve(admitted, stream=_Stream(admitted.stream, rewrite))


@attrs.define(eq=False)
class _Stream(trio.abc.Stream):
    inner: trio.abc.Stream
    rewrite: Callable[[bytes], bytes]

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.inner.send_all(self.rewrite(bytes(data)))

    async def wait_send_all_might_not_block(self) -> None:
        await self.inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self.inner.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self.inner.aclose()
