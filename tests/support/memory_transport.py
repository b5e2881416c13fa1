"""A network in memory: real connections over streams that are late, break and are cut apart.

Frames are what it treats as its units, so that it can repeat and reorder them, which TCP never
does; the handshake and a connection's own frames are spared that. Everything drawn comes from one
seed, and all waiting is on trio's clock.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import cbor2
import trio

from gossamer.node import errors
from gossamer.node.transport.base import Address, Admitted, Handler, LocalPeer, Verify
from gossamer.node.transport.byte_streams import AllFailedError, first_success, interleave
from gossamer.node.transport.frames import CONTROL_FRAMES
from gossamer.node.transport.handshake import introduce
from gossamer.node.transport.limits import HEADER_BYTES, Limits

# Bytes on their way in one direction before the sender waits, as in a socket's buffers.
PIPE_BYTES = 1 << 16


@attrs.frozen(kw_only=True)
class Faults:
    """What the network does to frames; probabilities are for each frame.

    One that is reordered is held back while later ones overtake it.
    """

    latency_s: tuple[float, float] = (0.0, 0.0)
    breaking: float = 0.0  # of the connection, in place of the frame's arrival
    duplication: float = 0.0
    reordering: float = 0.0
    held_back_s: float = 0.1


class MemoryNetwork:
    """Where memory transports meet.

    It counts connections that broke by chance, and frames that were duplicated or reordered.
    Isolated peers reach nobody; pairs that are cut do not reach each other.
    """

    def __init__(self, seed: int = 0, faults: Faults | None = None) -> None:
        self.faults = Faults() if faults is None else faults
        self.broken = self.duplicated = self.reordered = 0
        self.draws = random.Random(seed)
        self.listeners: dict[Address, MemoryListener] = {}
        self.certificates: dict[int, bytes] = {}  # what each peer shows, as if TLS had seen to it
        self.streams: list[MemoryStream] = []
        self.isolated: set[int] = set()
        self.cuts: set[frozenset[int]] = set()
        self._islands: list[frozenset[int]] = []
        self._ports = itertools.count(40_000)

    def transport(self, me: LocalPeer, limits: Limits, verify: Verify) -> MemoryTransport:
        return MemoryTransport(self, me, limits, verify)

    def partition(self, *islands: Iterable[int]) -> None:
        """Let peers reach only those on their own island; peers named nowhere reach nobody.

        Nothing breaks: what is sent across arrives once the network is whole again, as with TCP.
        """
        self._islands = [frozenset(island) for island in islands]

    def isolate(self, key: int) -> None:
        """Break all connections of a peer, and let nothing reach or leave it any more."""
        self.isolated.add(key)
        for address, listener in list(self.listeners.items()):
            if listener.transport.me.key == key:
                del self.listeners[address]
        for stream in list(self.streams):
            if key in (stream.owner, stream.other_end):
                stream.break_now()

    def heal(self) -> None:
        self._islands = []
        for stream in self.streams:
            stream.look_again()

    def connected(self, a: int, b: int) -> bool:
        if a in self.isolated or b in self.isolated or frozenset((a, b)) in self.cuts:
            return False
        return not self._islands or any(a in island and b in island for island in self._islands)

    def break_connections(self, a: int, b: int) -> int:
        ends = [stream for stream in self.streams if {stream.owner, stream.other_end} == {a, b}]
        for stream in ends:
            stream.break_now()
        return len(ends) // 2

    def cut(self, a: int, b: int) -> None:
        self.cuts.add(frozenset((a, b)))
        self.break_connections(a, b)

    def free_port(self) -> int:
        return next(self._ports)

    def pair(self, dialler: int, listener: int) -> tuple[MemoryStream, MemoryStream]:
        left = MemoryStream(self, dialler, listener)
        right = MemoryStream(self, listener, dialler)
        left.other, right.other = right, left
        self.streams += [left, right]
        return left, right


class MemoryStream(trio.abc.Stream):
    other: MemoryStream

    def __init__(self, network: MemoryNetwork, owner: int, other_end: int) -> None:
        self.owner = owner
        self.other_end = other_end
        self._network = network
        self._sequence = itertools.count()
        self._arriving: list[tuple[float, int, bytes | None]] = []
        self._last_arrival = -math.inf
        self._under_way = 0
        self._partial = bytearray()
        self._ready = bytearray()
        self._ended = False
        self._broken = False
        self._closed = False
        self._waiting = trio.lowlevel.ParkingLot()
        # Until when whoever reads waits, if nothing else happens.
        self._waits_until = -math.inf

    def look_again(self) -> None:
        self._waiting.unpark_all()

    def break_now(self) -> None:
        for end in (self, self.other):
            end._broken = True
            end._arriving.clear()
            end.look_again()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        while self.other._under_way >= PIPE_BYTES and not self._is_dead():
            await self._waiting.park()
        if self._closed:
            raise trio.ClosedResourceError("closed here")
        if self._is_dead():
            raise trio.BrokenResourceError("the other end is gone")
        self._partial += data
        while (frame := self._whole_frame()) is not None:
            self._dispatch(frame)

    def _is_dead(self) -> bool:
        """Whether writing fails; across a partition nobody sees that the other end is gone."""
        reachable = self._network.connected(self.owner, self.other_end)
        return self._broken or self._closed or (reachable and self.other._closed)

    def _whole_frame(self) -> bytes | None:
        if len(self._partial) < HEADER_BYTES:
            return None
        size = HEADER_BYTES + int.from_bytes(self._partial[:HEADER_BYTES], "big")
        if len(self._partial) < size:
            return None
        frame = bytes(self._partial[:size])
        del self._partial[:size]
        return frame

    def _dispatch(self, frame: bytes) -> None:
        faults, draws = self._network.faults, self._network.draws
        at = trio.current_time() + draws.uniform(*faults.latency_s)
        kind = _type_of(frame)
        if kind in CONTROL_FRAMES:
            after_all = max((entry[0] for entry in self.other._arriving), default=at)
            self.other._arrive(max(at, after_all) if kind == "goodbye" else at, frame)
            return
        if draws.random() < faults.breaking:
            self._network.broken += 1
            self.break_now()
            return
        if draws.random() < faults.reordering:
            self._network.reordered += 1
            self.other._arrive(at + faults.held_back_s, frame, in_order=False)
        else:
            self.other._arrive(at, frame)
        if draws.random() < faults.duplication:
            self._network.duplicated += 1
            self.other._arrive(at + draws.random() * faults.held_back_s, frame, in_order=False)

    def _arrive(self, at: float, frame: bytes | None, *, in_order: bool = True) -> None:
        if in_order:
            at = self._last_arrival = max(at, self._last_arrival)
        heapq.heappush(self._arriving, (at, next(self._sequence), frame))
        self._under_way += len(frame or b"")
        if at < self._waits_until:
            self.look_again()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        while True:
            if self._closed:
                raise trio.ClosedResourceError("closed here")
            if self._broken:
                raise trio.BrokenResourceError("broken")
            reachable = self._network.connected(self.owner, self.other_end)
            if reachable:
                self._take_arrived()
            if self._ready:
                data = bytes(self._ready[:max_bytes])
                del self._ready[: len(data)]
                return data
            if self._ended:
                return b""
            next_at = self._arriving[0][0] if reachable and self._arriving else math.inf
            await self._wait_until(next_at)

    async def _wait_until(self, at: float) -> None:
        """Wait for what is to be looked at, at that time at the latest."""
        self._waits_until = at
        try:
            if at == math.inf:
                await self._waiting.park()
                return
            with trio.move_on_at(at):
                await self._waiting.park()
        finally:
            self._waits_until = -math.inf

    def _take_arrived(self) -> None:
        before = self._under_way
        while self._arriving and self._arriving[0][0] <= trio.current_time():
            frame = heapq.heappop(self._arriving)[2]
            if frame is None:
                self._ended = True
                continue
            self._ready += frame
            self._under_way -= len(frame)
        if self._under_way < before:
            self.other.look_again()

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            if self in self._network.streams:
                self._network.streams.remove(self)
            last = max((entry[0] for entry in self.other._arriving), default=trio.current_time())
            self.other._arrive(last, None)
            self.look_again()
        await trio.lowlevel.checkpoint()


def _type_of(frame: bytes) -> object:
    try:
        return cbor2.loads(frame[HEADER_BYTES:]).get("type")
    except (cbor2.CBORError, AttributeError, ValueError, TypeError, RecursionError):
        return None


class MemoryListener:
    def __init__(self, transport: MemoryTransport, address: Address) -> None:
        self.address = address
        self.transport = transport
        self.arrivals, self._accepted = trio.open_memory_channel[MemoryStream](math.inf)

    async def serve(self, handler: Handler) -> None:
        async with trio.open_nursery() as nursery:
            async for stream in self._accepted:
                nursery.start_soon(self._take, stream, handler)

    async def _take(self, stream: MemoryStream, handler: Handler) -> None:
        remote = Address("memory", stream.other_end)
        try:
            admitted = await self.transport.introduce(stream, remote, dialled=False)
        except errors.NodeError as error:
            self.transport.on_refusal(error, remote)
            if isinstance(error, errors.RefusedByPeer):
                self.transport.on_refused_by(error)
            return
        await handler(admitted)
        await stream.aclose()

    async def aclose(self) -> None:
        self.transport.network.listeners.pop(self.address, None)
        self.arrivals.close()
        await trio.lowlevel.checkpoint()


def nothing(*_: object) -> None:
    """What a transport does about refusals that nobody asks for."""


@attrs.define(eq=False)
class MemoryTransport:
    network: MemoryNetwork
    me: LocalPeer
    _limits: Limits
    _verify: Verify
    on_refusal: Callable[[errors.NodeError | None, Address], None] = nothing
    on_refused_by: Callable[[errors.RefusedByPeer], None] = nothing

    async def listen(self, addresses: Sequence[Address]) -> Sequence[MemoryListener]:
        await trio.lowlevel.checkpoint()
        opened = {}
        for address in addresses:
            if address in self.network.listeners:
                raise errors.ListenFailed(str(address), "address already in use")
            real = Address(address.host, address.port or self.network.free_port())
            opened[real] = MemoryListener(self, real)
        self.network.listeners.update(opened)
        return list(opened.values())

    async def dial(self, addresses: Sequence[Address], key: int | None = None) -> Admitted:
        async def attempt(address: Address) -> Admitted:
            return await self._dial_one(address, key)

        async def discard(admitted: Admitted) -> None:
            await trio.aclose_forcefully(admitted.stream)

        try:
            return await first_success(interleave(addresses), attempt, discard)
        except AllFailedError as error:
            attempts = [(str(where), why) for where, why in error.failures]
            raise errors.PeerUnreachable(key, attempts) from None

    async def _dial_one(self, address: Address, key: int | None) -> Admitted:
        await trio.lowlevel.checkpoint()
        listener = self.network.listeners.get(address)
        if listener is None:
            raise errors.HandshakeFailed("connection refused")
        there = listener.transport.me.key
        if not self.network.connected(self.me.key, there):
            await trio.sleep(self._limits.handshake_seconds)
            raise errors.HandshakeFailed(f"no answer within {self._limits.handshake_seconds} s")
        near, far = self.network.pair(self.me.key, there)
        listener.arrivals.send_nowait(far)
        try:
            return await self.introduce(near, address, dialled=True, expected=key)
        except errors.RefusedByPeer as error:
            self.on_refused_by(error)
            raise

    async def introduce(
        self, stream: MemoryStream, remote: Address, *, dialled: bool, **more: Any
    ) -> Admitted:
        return await introduce(
            stream,
            self.me,
            self._limits,
            self._verify,
            certificate=self.network.certificates.get(stream.other_end),
            dialled=dialled,
            remote=remote,
            **more,
        )
