"""Members that do as they like: a certificate in order, and frames of their own making."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import attrs
import psutil
import trio

from gossamer.node.peer.frames.event_frames import MARK, read_event_frame
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import Descriptor, sign_descriptor
from gossamer.node.security.event_keys import EventKey, introduce
from gossamer.node.transport.base.base import Hello, LocalPeer, PeerIdentity
from gossamer.node.transport.base.frames import FrameReader, encode_frame
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.schema import Frame
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
        """The entry of a frame that tells of this member, as it wants to be seen."""
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
    me = LocalPeer(
        key, member.authority.cluster, "attacker", fingerprint=member.certificate.fingerprint
    )
    transport = crowd.network.transport(me, Limits(), believe)
    admitted = await transport.dial([crowd.address_of(target)], target)
    yield Attacker(member, admitted.stream)
    await trio.aclose_forcefully(admitted.stream)


def descriptor_of(member: Membership, profile: tuple[int, ...], sequence: int) -> bytes:
    """The entry of a frame that tells of a member, properly signed."""
    key, serial = member.identity.key, member.certificate.serial
    told = Descriptor(key, serial, (("memory", 9),), profile, sequence, 0)
    return sign_descriptor(member.authority, member.identity, told).packed


def introduction_of(member: Membership, key: EventKey) -> bytes:
    """The entry of a frame that proves whose events are signed by ``key``."""
    return introduce(member.authority, member.identity, member.certificate, key).introduction


def believe(_: bytes | None, hello: Hello) -> PeerIdentity:
    return PeerIdentity(hello.key)


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
