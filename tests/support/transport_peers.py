"""Peers with their transports and pools, connections being run, and far ends spoken by hand."""

from __future__ import annotations

import random
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from hashlib import sha256
from typing import Any

import attrs
import pytest
import trio
import trustme
from trio.testing import memory_stream_pair

from gossamer.node.transport import base
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.frames import CONTROL_FRAMES, FrameReader, encode_frame
from gossamer.node.transport.limits import BackOff, Limits
from gossamer.node.transport.links import ConnectionPool, PoolEvents
from gossamer.node.transport.schema import Bytes, Frame, Integer, ListOf, Optional
from gossamer.node.transport.tcp import Credentials, TcpTransport
from support.memory_transport import MemoryNetwork
from support.waiting import Changing, running

# One message of the protocol layer, and the receipt for those that ask for one.
MESSAGE_FRAMES = CONTROL_FRAMES.extended(
    {
        "message": {
            "kind": Integer(0, 1 << 20),
            "body": Bytes(1 << 28),
            "number": Optional(Integer(0)),
        },
        "ack": {"numbers": ListOf(Integer(0), 4096)},
    }
)


CLUSTER = "test"
LOOPBACK = base.Address("127.0.0.1", 0)
LIMIT_FIELDS = {"frame_bytes": 1024, "queue_bytes": 4096, "items": 64}
LIMITS = Limits(**LIMIT_FIELDS)
Pair = trio.StapledStream[Any, Any]


def identify(certificate: bytes | None, hello: base.Hello) -> base.PeerIdentity:
    """Believe the hello; the certificate was checked by TLS."""
    fingerprint = b"" if certificate is None else sha256(certificate).digest()
    return base.PeerIdentity(hello.key, fingerprint, f"test-{hello.key}")


@cache
def authority(name: str) -> trustme.CA:
    return trustme.CA(organization_name=name)


@cache
def certificate_of(key: int, issuer: str = "ours") -> trustme.LeafCert:
    return authority(issuer).issue_cert("127.0.0.1", "::1", f"peer-{key}.test")


def der_of(certificate: trustme.LeafCert) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.cert_chain_pems[0].bytes().decode())


def context_of(
    purpose: ssl._SSLMethod | int, certificate: trustme.LeafCert | None, trusted: str = "ours"
) -> ssl.SSLContext:
    """A context for TLS 1.3 that shows ``certificate`` and asks for one of ``trusted``."""
    context = ssl.SSLContext(purpose)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    authority(trusted).configure_trust(context)
    if certificate is not None:
        certificate.configure_cert(context)
    return context


def credentials_of(certificate: trustme.LeafCert | None, trusted: str = "ours") -> Credentials:
    server = context_of(ssl.PROTOCOL_TLS_SERVER, certificate, trusted)
    return Credentials(server, context_of(ssl.PROTOCOL_TLS_CLIENT, certificate, trusted))


def local_peer(key: int, **more: Any) -> base.LocalPeer:
    return base.LocalPeer(key=key, cluster=CLUSTER, **more)


def _run_with_jumping_clock(fn: Any, clock: Any = None, instruments: Any = ()) -> Any:
    jumping = trio.testing.MockClock(autojump_threshold=0)
    # Tasks that could run in any order run in the same one each time (with pytest-trio's switch).
    trio._core._run._r.seed(SCHEDULE)
    return trio.run(fn, clock=clock or jumping, instruments=instruments)


# Another number runs tasks in other orders.
SCHEDULE = 1

# A test on trio's clock that jumps ahead whenever everybody waits; it starts at 0.
on_jumping_clock = pytest.mark.trio(run=_run_with_jumping_clock)

MakeTransport = Callable[[int, Limits], base.Transport]


def memory_transports(network: MemoryNetwork) -> MakeTransport:
    return lambda key, limits: network.transport(local_peer(key), limits, identify)


def plain_transport(key: int, limits: Limits) -> TcpTransport:
    return TcpTransport(local_peer(key), limits, identify, None)


def tls_transport(key: int, limits: Limits) -> TcpTransport:
    certificate = certificate_of(key)
    me = local_peer(key, fingerprint=sha256(der_of(certificate)).digest())
    return TcpTransport(me, limits, identify, credentials_of(certificate))


def message(body: bytes = b"", number: int | None = None) -> bytes:
    fields: dict[str, object] = {} if number is None else {"number": number}
    return encode_frame("message", kind=1, body=body, **fields)


@attrs.define(eq=False)
class Heard(Changing):
    gate: trio.Event | None = None
    frames: list[tuple[int, Frame]] = attrs.field(factory=list)
    ups: list[int] = attrs.field(factory=list)
    downs: list[tuple[int, base.Farewell]] = attrs.field(factory=list)

    @property
    def bodies(self) -> list[bytes]:
        return [frame["body"] for _, frame in self.frames]

    async def on_frame(self, identity: base.PeerIdentity, frame: Frame) -> None:
        if self.gate is not None:
            await self.gate.wait()
        self.frames.append((identity.key, frame))
        self.changed()

    def on_up(self, identity: base.PeerIdentity) -> None:
        self.ups.append(identity.key)
        self.changed()

    def on_down(self, identity: base.PeerIdentity, farewell: base.Farewell) -> None:
        self.downs.append((identity.key, farewell))
        self.changed()


@attrs.define(eq=False)
class Peer:
    key: int
    pool: ConnectionPool
    heard: Heard
    transport: base.Transport


@attrs.define
class Crowd:
    nursery: trio.Nursery
    make: MakeTransport
    limits: Limits = attrs.field(factory=Limits)
    back_off: BackOff = attrs.field(factory=BackOff)
    addresses: dict[int, Sequence[base.Address]] = attrs.field(factory=dict)

    async def add(self, key: int, address: base.Address = LOOPBACK, **changes: Any) -> Peer:
        limits = attrs.evolve(self.limits, **changes)
        heard = Heard()
        transport = self.make(key, limits)
        pool = ConnectionPool(
            transport,
            limits,
            MESSAGE_FRAMES,
            lambda other: self.addresses.get(other, ()),
            draws=random.Random(key),
            back_off=self.back_off,
        )
        events = PoolEvents(on_frame=heard.on_frame, on_up=heard.on_up, on_down=heard.on_down)
        self.addresses[key] = await self.nursery.start(pool.run, [address], events)
        return Peer(key, pool, heard, transport)


def admitted(stream: trio.abc.Stream, key: int = 2, *, dialled: bool = True) -> base.Admitted:
    hello = base.Hello(1, "test", CLUSTER, key, (), bytes(16), None)
    return base.Admitted(
        stream, base.PeerIdentity(key), hello, dialled, base.Address("127.0.0.1", 1)
    )


class Served(Changing):
    def __init__(self, stream: trio.abc.Stream, limits: Limits, key: int = 2) -> None:
        super().__init__()
        self.connection = Connection(admitted(stream, key), limits, MESSAGE_FRAMES)
        self.frames: list[Frame] = []
        self.farewell: base.Farewell | None = None

    async def run(self) -> None:
        self.farewell = await self.connection.run(self.on_frame)
        self.changed()

    async def on_frame(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.changed()

    async def end(self) -> base.Farewell:
        await self.until(lambda: self.farewell is not None)
        assert self.farewell is not None
        return self.farewell


class Wire:
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


async def drip(stream: trio.abc.SendStream, data: bytes) -> None:
    """Send a byte a second."""
    for byte in data:
        await stream.send_all(bytes([byte]))
        await trio.sleep(1)


@asynccontextmanager
async def served(**changes: Any) -> AsyncIterator[tuple[Served, Wire]]:
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
