"""Connections into a running peer that bring one frame at a time, without any socket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs
import trio

from gossamer.node.peer.assembly import Dependencies
from gossamer.node.security.cluster import Membership
from gossamer.node.transport.base.base import Address, Admitted, Handler, Hello, PeerIdentity
from support.frame_fuzzing import Fuzzed
from support.tampering import intercepted

# How often the other side may be let run before it must have reacted to a frame.
TURNS = 40


class Mouthpiece(trio.abc.Stream):
    """A stream whose other end says what it is given, until it is told goodbye."""

    def __init__(self, next_frame: Callable[[], Fuzzed | None]) -> None:
        self.tried: Counter[str] = Counter()
        self.last: Fuzzed | None = None
        # Frames that break a rule and did not cost the connection.
        self.unpunished: list[Fuzzed] = []
        self.goodbye = False
        self._next_frame = next_frame

    async def receive_some(self, max_bytes: int | None = None) -> bytes:  # noqa: ARG002
        await trio.lowlevel.checkpoint()
        if self.last is not None and (self.last.is_bad or self.last.is_last):
            for _ in range(TURNS if not self.goodbye else 0):
                await trio.lowlevel.checkpoint()
                if self.goodbye:
                    break
            if self.last.is_bad and not self.goodbye:
                self.unpunished.append(self.last)
            return b""
        self.last = None if self.goodbye else self._next_frame()
        if self.last is None:
            return b""
        self.tried[self.last.how] += 1
        return self.last.data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        self.goodbye = self.goodbye or b"goodbye" in bytes(data)

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@attrs.define
class Door:
    """A peer's listener, through which admitted peers are brought in."""

    handler: Handler | None = None  # what the peer does with who comes in

    def open(self, dependencies: Dependencies) -> Dependencies:
        def note(handler: Handler) -> Handler:
            self.handler = handler
            return handler

        return intercepted(dependencies, note)

    async def bring(self, member: Membership, stream: trio.abc.Stream) -> None:
        """Let the peer serve ``stream`` as that of ``member``, to its end."""
        assert self.handler is not None
        key = member.identity.key
        hello = Hello(1, "fuzz", member.authority.cluster, key, (), bytes(16), None)
        identity = PeerIdentity(key, member.certificate.fingerprint, "fuzz")
        await self.handler(Admitted(stream, identity, hello, False, Address("memory", 9)))
