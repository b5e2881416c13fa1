"""Strangers and hostile members at the door of a running peer: real sockets, real TLS."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs
import cbor2
import pytest
import trio

from gossamer.node.errors import RefusedByPeer
from gossamer.node.peer.peer import Peer, open_peer
from gossamer.node.security.cluster import Membership, client_context, join_client_context
from gossamer.node.transport.base.base import Address, Admitted, Hello, LocalPeer, PeerIdentity
from gossamer.node.transport.base.frames import FrameReader, encode_frame
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.handshake import PROTOCOL_VERSION, introduce
from gossamer.node.transport.streams.non_blocking import TcpStream
from gossamer.node.transport.streams.tls import TlsStream
from support.clusters import DAY_S, MadeCluster, made_cluster
from support.frame_fuzzing import framed
from support.memory_use import memory_of_process
from support.node_peers import aside, linked, of_member
from support.waiting import PATIENCE_S, eventually

# Of the whole process, while one attacker does what it can.
GROWTH_BYTES = 16 << 20
# Narrow where they are what a test is about, so that no busy machine meets them elsewhere.
SILENCE = {"ping_seconds": 0.1, "silence_seconds": 0.4}
FLOOD = {"flood_seconds": 0.5, "frames_per_second": 2000, "frames_burst": 2000}


@asynccontextmanager
async def victim(cluster: MadeCluster, **narrow: float) -> AsyncIterator[Peer]:
    """A running peer with narrow limits; handshakes may take long on a busy machine."""
    limits = {"close_seconds": 0.1, "handshake_seconds": 60.0} | narrow
    config = attrs.evolve(of_member(cluster.first), limits=limits)
    async with open_peer(config) as peer:
        yield peer


async def knock(peer: Peer) -> trio.SocketStream:
    host, port = peer.addresses[0]
    return await trio.open_tcp_stream(host, port)


async def secured(peer: Peer, context: ssl.SSLContext) -> TlsStream:
    tcp = TcpStream(await knock(peer))
    tls = TlsStream(tcp, context, server_side=False)
    try:
        await tls.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(tcp)
        raise
    return tls


def unasking(member: Membership) -> ssl.SSLContext:
    """A member's context that takes any certificate of the other side."""
    context = client_context(member)
    context.verify_mode = ssl.CERT_NONE
    return context


async def heard(stream: trio.abc.Stream) -> list[Frame]:
    """Everything that the peer says until it ends the connection."""
    reader, frames = FrameReader(Limits()), []
    with trio.fail_after(PATIENCE_S):
        try:
            while data := await stream.receive_some(65536):
                reader.feed(data)
                frames += list(reader)
        except trio.BrokenResourceError:
            pass
    await trio.aclose_forcefully(stream)
    return frames


def hello_of(member: Membership, **changes: object) -> bytes:
    fields: dict[str, object] = {
        "version": PROTOCOL_VERSION,
        "software": "attack",
        "cluster": member.authority.cluster,
        "key": member.identity.key,
        "addresses": [],
        "nonce": bytes(16),
        "fingerprint": member.certificate.fingerprint,
    }
    return encode_frame("hello", **{**fields, **changes})


# Strangers: how each tries, what it hears, and as what it counts.


async def without_certificate(peer: Peer, cluster: MadeCluster) -> list[Frame]:
    member = await aside(cluster.admit, "a")
    return await knocked_with(peer, join_client_context(), hello_of(member))


async def of_another_cluster(peer: Peer, cluster: MadeCluster) -> list[Frame]:
    with made_cluster(cluster.folder.parent / "foreign") as foreign:
        hello = hello_of(foreign.first, cluster=cluster.first.authority.cluster)
        return await knocked_with(peer, unasking(foreign.first), hello)


async def expired(peer: Peer, cluster: MadeCluster) -> list[Frame]:
    cluster.now -= 10 * DAY_S
    late = await aside(partial(cluster.admit, "late", lifetime_s=DAY_S))
    return await knocked_with(peer, client_context(late), hello_of(late))


async def revoked(peer: Peer, cluster: MadeCluster) -> list[Frame]:
    """The peer has not been told yet when it is tried first; it reads its folder now and then."""
    gone = await aside(cluster.admit, "gone")
    await aside(cluster.registrar.revoke, cluster.store, "gone", time.time())

    async def is_refused() -> list[Frame]:
        return await knocked_with(peer, client_context(gone), hello_of(gone))

    frames = await is_refused()
    with trio.fail_after(PATIENCE_S):
        while any(frame["type"] == "hello" for frame in frames):
            await trio.sleep(0.1)
            frames = await is_refused()
    return frames


async def under_anothers_name(peer: Peer, cluster: MadeCluster) -> list[Frame]:
    thief, robbed = await aside(cluster.admit, "thief"), await aside(cluster.admit, "robbed")
    hello = hello_of(thief, key=robbed.identity.key)
    return await knocked_with(peer, client_context(thief), hello)


async def with_a_stolen_hello(peer: Peer, cluster: MadeCluster) -> list[Frame]:
    thief, robbed = await aside(cluster.admit, "thief"), await aside(cluster.admit, "robbed")
    return await knocked_with(peer, client_context(thief), hello_of(robbed))


async def in_plain_text(peer: Peer, cluster: MadeCluster) -> list[Frame]:
    stream = await knock(peer)
    await stream.send_all(hello_of(await aside(cluster.admit, "plain")))
    with trio.fail_after(PATIENCE_S):
        said = await stream.receive_some(65536)
    await stream.aclose()
    # At most an alert of TLS, of seven bytes; surely no frame.
    return [] if len(said) < 16 else [{"type": "much"}]


async def knocked_with(peer: Peer, context: ssl.SSLContext, hello: bytes) -> list[Frame]:
    tls = await secured(peer, context)
    try:
        await tls.send_all(hello)
    except trio.BrokenResourceError:
        await trio.aclose_forcefully(tls)
        return []
    return await heard(tls)


STRANGERS = [
    (without_certificate, "certificate"),
    (of_another_cluster, "certificate"),
    (expired, "certificate"),
    pytest.param(revoked, "revoked", marks=pytest.mark.campaign),
    (under_anothers_name, "certificate"),
    (with_a_stolen_hello, "bad hello"),
    (in_plain_text, "bad hello"),
]


@pytest.mark.parametrize(("attempt", "cause"), STRANGERS)
async def test_strangers_learn_nothing_and_are_counted(
    cluster: MadeCluster, attempt: Callable[[Peer, MadeCluster], Awaitable[list[Frame]]], cause: str
) -> None:
    """They hear a reason at most: no hello, no address, nobody's name."""
    async with victim(cluster, **SILENCE) as peer:
        frames = await attempt(peer, cluster)
        assert {frame["type"] for frame in frames} <= {"goodbye"}
        told = repr(frames)
        assert str(peer.key) not in told
        assert str(peer.addresses[0].port) not in told
        await eventually(lambda: peer.counters.refused[cause] >= 1)
        assert peer.gauges().connections == 0


async def test_a_stranger_that_drips_is_let_go_in_time(cluster: MadeCluster) -> None:
    """Below TLS and above it; however it drips, all of it is one handshake."""
    async with victim(cluster, handshake_seconds=0.3) as peer:
        member = await aside(cluster.admit, "a")
        context = client_context(member)
        for begin in (knock, partial(secured, context=context)):
            # On a busy machine TLS may be late already.
            with suppress(trio.BrokenResourceError), trio.fail_after(PATIENCE_S):
                stream: trio.abc.Stream = await begin(peer)
                await until_broken(dripping, stream)
                await trio.aclose_forcefully(stream)
        # What dripped below TLS was no TLS, or late.
        await eventually(lambda: sum(peer.counters.refused.values()) == 2)


# Members: let in, and then hostile.


@asynccontextmanager
async def let_in(peer: Peer, member: Membership) -> AsyncIterator[trio.abc.Stream]:
    tls = await secured(peer, client_context(member))
    key, cluster = member.identity.key, member.authority.cluster
    admitted: Admitted = await introduce(
        tls,
        LocalPeer(key, cluster, "attack", fingerprint=member.certificate.fingerprint),
        Limits(),
        _believe,
        certificate=tls.peer_certificate(),
        dialled=True,
        remote=Address("127.0.0.1", 1),
    )
    yield admitted.stream
    await trio.aclose_forcefully(tls)


def _believe(_: bytes | None, hello: Hello) -> PeerIdentity:
    return PeerIdentity(hello.key)


async def oversize(stream: trio.abc.Stream) -> None:
    await stream.send_all((1 << 31).to_bytes(4, "big") + bytes(1 << 16))


async def deep(stream: trio.abc.Stream) -> None:
    await stream.send_all(framed(b"\xa1\x64type" + b"\x81" * 100_000 + b"\x01"))


async def key_twice(stream: trio.abc.Stream) -> None:
    ping = cbor2.dumps({"type": "ping", "number": 1})
    await stream.send_all(framed(b"\xa3" + ping[1:] + cbor2.dumps("number") + cbor2.dumps(2)))


async def without_end(stream: trio.abc.Stream) -> None:
    """A frame of the longest size but for its last byte, and then nothing."""
    length = Limits().frame_bytes
    await stream.send_all(length.to_bytes(4, "big") + bytes(length - 1))


async def dripping(stream: trio.abc.Stream) -> None:
    """A frame byte by byte: none is ever whole, and pings are answered by nobody."""
    await stream.send_all((2000).to_bytes(4, "big"))
    while True:
        await stream.send_all(b"\0")
        await trio.sleep(0.02)


async def endless_frames(stream: trio.abc.Stream) -> None:
    ping = encode_frame("ping", number=1) * 1000
    while True:
        await stream.send_all(ping)


@pytest.mark.parametrize(
    ("attack", "cause", "limits"),
    [
        (oversize, "bad frame", {}),
        (deep, "bad frame", {}),
        (key_twice, "bad frame", {}),
        (without_end, "silent", SILENCE),
        (dripping, "silent", SILENCE),
        (endless_frames, "flood", FLOOD),
    ],
)
async def test_hostile_members_are_cut_in_time_and_cost_little_memory(
    cluster: MadeCluster,
    attack: Callable[[trio.abc.Stream], Awaitable[None]],
    cause: str,
    limits: dict[str, float],
) -> None:
    async with victim(cluster, **limits) as peer:
        async with let_in(peer, await aside(cluster.admit, "attacker")) as stream:
            before = memory_of_process()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(until_broken, attack, stream)
                nursery.start_soon(heard_out, stream)
                await eventually(lambda: peer.counters.closed[cause] == 1)
                nursery.cancel_scope.cancel()
            growth = memory_of_process() - before
        assert growth < GROWTH_BYTES
        assert peer.gauges().connections == 0
        async with let_in(peer, await aside(cluster.admit, "friend")):
            await eventually(lambda: peer.counters.accepted == 2)


async def until_broken(
    attack: Callable[[trio.abc.Stream], Awaitable[None]], stream: trio.abc.Stream
) -> None:
    try:
        await attack(stream)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return


async def heard_out(stream: trio.abc.Stream) -> None:
    """Read what the peer says, so that it is not cut for being deaf."""
    try:
        while await stream.receive_some(65536):
            pass
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return


async def test_a_peer_that_is_revoked_loses_its_open_connections_and_gets_no_new_one(
    cluster: MadeCluster,
) -> None:
    async with open_peer(of_member(cluster.first)) as first:
        second = await aside(cluster.admit, "second")
        async with open_peer(of_member(second, first.addresses)) as gone:
            await gone.ready()
            await eventually(lambda: linked(first) == {gone.key})
            await aside(cluster.registrar.revoke, cluster.store, "second", time.time())
            await eventually(lambda: first.gauges().connections == 0)
            assert linked(first) == set()
            assert first.counters.refused["revoked"] >= 1
            with pytest.raises(RefusedByPeer, match="revoked"):
                async with let_in(first, second):
                    raise AssertionError("it was let in")
