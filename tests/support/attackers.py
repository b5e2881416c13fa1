"""Members that do as they like, and peers whose frames are changed on their way out."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs
import psutil
import trio

from gossamer.node.peer.assembly import Dependencies
from gossamer.node.peer.frames.event_frames import KINDS, MARK, event_frame, read_event_frame
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import Descriptor, sign_descriptor
from gossamer.node.security.event_keys import EventKey, introduce
from gossamer.node.transport import base
from gossamer.node.transport.frames import FrameDecoder, FrameReader, encode_frame
from gossamer.node.transport.limits import HEADER_BYTES, Limits
from gossamer.node.transport.schema import Frame
from support.memory_peers import MemberPeers

PATIENCE_S = 120.0


@attrs.define(eq=False)
class Attacker:
    member: Membership
    stream: trio.abc.Stream
    sequence: int = 0  # number of the last descriptor that it signed
    goodbye: str = ""  # what the peer said at the end, once `stay` has heard it
    _reader: FrameReader = attrs.field(
        factory=lambda: FrameReader(Limits(), own_forms={MARK: read_event_frame})
    )

    @property
    def key(self) -> int:
        return self.member.identity.key

    def descriptor(self, profile: tuple[int, ...]) -> bytes:
        self.sequence += 1
        return descriptor_of(self.member, profile, self.sequence)

    async def send(self, frame_type: str, **fields: object) -> None:
        await self.stream.send_all(encode_frame(frame_type, **fields))

    async def next_frame(self, *kinds: str) -> Frame:
        with trio.fail_after(PATIENCE_S):
            while True:
                while (frame := self._reader.next_frame()) is None:
                    data = await self.stream.receive_some()
                    assert data, "the peer hung up"
                    self._reader.feed(data)
                if frame["type"] in kinds:
                    return frame

    async def stay(self) -> None:
        """Answer pings and say nothing else until the peer ends the connection."""
        while (frame := await self.next_frame("ping", "goodbye"))["type"] == "ping":
            await self.send("pong", number=frame["number"])
        self.goodbye = f"{frame['reason']}: {frame['detail']}"
        await trio.aclose_forcefully(self.stream)

    async def cut_for(self) -> str:
        goodbye = await self.next_frame("goodbye")
        return f"{goodbye['reason']}: {goodbye['detail']}"


@asynccontextmanager
async def attacker(crowd: MemberPeers, target: int, member: Membership) -> AsyncIterator[Attacker]:
    key = member.identity.key
    crowd.network.certificates[key] = member.certificate.der
    me = base.LocalPeer(
        key, member.authority.cluster, "attacker", fingerprint=member.certificate.fingerprint
    )
    transport = crowd.network.transport(me, Limits(), believe)
    admitted = await transport.dial([crowd.address_of(target)], target)
    yield Attacker(member, admitted.stream)
    await trio.aclose_forcefully(admitted.stream)


def descriptor_of(member: Membership, profile: tuple[int, ...], sequence: int) -> bytes:
    key, serial = member.identity.key, member.certificate.serial
    told = Descriptor(key, serial, (("memory", 9),), profile, sequence, 0)
    return sign_descriptor(member.authority, member.identity, told).packed


def introduction_of(member: Membership, key: EventKey) -> bytes:
    """The entry of a frame that proves whose events are signed by ``key``."""
    return introduce(member.authority, member.identity, member.certificate, key).introduction


def believe(_: bytes | None, hello: base.Hello) -> base.PeerIdentity:
    return base.PeerIdentity(hello.key)


async def read_to_end(stream: trio.abc.Stream) -> bytes:
    """All that comes until the other side ends the connection, in whatever way."""
    heard = bytearray()
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := await stream.receive_some(65536):
            heard += data
    await trio.aclose_forcefully(stream)
    return bytes(heard)


def memory_of_process() -> int:
    """Bytes resident, without what was freed and only not given back to the system yet."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return int(psutil.Process().memory_info().rss)


Change = Callable[[base.Admitted], base.Admitted]
Between = Callable[[base.Handler], base.Handler]


def intercepted(
    dependencies: Dependencies, between: Between, change: Change = lambda admitted: admitted
) -> Dependencies:
    """The same peer with other handlers of who comes in, and other connections to whom it dials."""

    def make(me: base.LocalPeer, verify: base.Verify) -> Any:
        return _Transport(dependencies.make_transport(me, verify), between, change)

    return attrs.evolve(dependencies, make_transport=make)


def tampered(dependencies: Dependencies, rewrite: Callable[[bytes], bytes]) -> Dependencies:
    """The same peer, but that it sends what ``rewrite`` makes of each frame."""

    def change(admitted: base.Admitted) -> base.Admitted:
        return attrs.evolve(admitted, stream=_Stream(admitted.stream, rewrite))

    def between(handler: base.Handler) -> base.Handler:
        async def handle(admitted: base.Admitted) -> None:
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


class _Around:
    """Does, and has, what another object does and has, but for what is said here."""

    def __init__(self, inner: Any, *own: Callable[..., Any]) -> None:
        self.__dict__.update(_inner=inner, _own=own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._inner, name, value)


class _Transport(_Around):
    async def listen(self, addresses: Sequence[base.Address]) -> Sequence[Any]:
        between, _ = self._own
        return [_Listener(one, between) for one in await self._inner.listen(addresses)]

    async def dial(self, addresses: Sequence[base.Address], key: int | None = None) -> Any:
        _, change = self._own
        return change(await self._inner.dial(addresses, key))


class _Listener(_Around):
    async def serve(self, handler: base.Handler) -> None:
        (between,) = self._own
        await self._inner.serve(between(handler))


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
