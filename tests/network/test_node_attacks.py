"""Strangers and hostile members at a running peer, over real TLS; and each of its limits."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from gossamer.node.peer.peer import Peer, open_peer
from gossamer.node.security.cluster import (
    Membership,
    client_context,
    join_client_context,
    server_context,
)
from gossamer.node.transport.base import Address, Admitted, LocalPeer
from gossamer.node.transport.byte_streams import TcpStream, TlsStream
from gossamer.node.transport.frames import FrameReader, encode_frame
from gossamer.node.transport.handshake import PROTOCOL_VERSION, introduce
from gossamer.node.transport.limits import Limits
from support.attackers import Attacker, attacker, believe, memory_of_process, read_to_end
from support.checkout import ROOT
from support.clusters import DAY_S, MadeCluster, made_cluster
from support.frame_fuzzing import framed
from support.memory_peers import MemberPeers, aside, config_of, knock, member_peers, of_member
from support.transport_peers import on_jumping_clock
from support.waiting import PATIENCE_S, eventually, running

# Of the whole process, while one attacker does what it can.
GROWTH_BYTES = 16 << 20
# Narrow where it is what a test is about, so that no busy machine meets it elsewhere.
SILENCE = {"ping_seconds": 0.1, "silence_seconds": 0.4}


@asynccontextmanager
async def victim(cluster: MadeCluster, **narrow: float) -> AsyncIterator[Peer]:
    """A running peer with narrow limits; handshakes may take long on a busy machine."""
    limits = {"close_seconds": 0.1, "handshake_seconds": 60.0} | narrow
    async with open_peer(attrs.evolve(of_member(cluster.first), limits=limits)) as peer:
        yield peer


async def secured(peer: Peer, context: ssl.SSLContext) -> TlsStream:
    tcp = TcpStream(await knock(peer))
    tls = TlsStream(tcp, context, server_side=False)
    try:
        await tls.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(tcp)
        raise
    return tls


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


# Strangers: how each tries, and as what it counts.
STRANGERS = {
    "without certificate": "certificate",
    "of another cluster": "certificate",
    "expired": "certificate",
    "under another's name": "certificate",
    "with a stolen hello": "bad hello",
    "in plain text": "bad hello",
}


def strangers(cluster: MadeCluster) -> dict[str, tuple[ssl.SSLContext | None, bytes]]:
    """By how it tries, the TLS that each begins with, and its hello."""
    with made_cluster(cluster.folder.parent / "foreign") as foreign:
        other = foreign.first
    lax = client_context(other)
    lax.verify_mode = ssl.CERT_NONE
    thief, robbed = cluster.admit("thief"), cluster.admit("robbed")
    cluster.now -= 10 * DAY_S
    late = cluster.admit("late", lifetime_s=DAY_S)
    return {
        "without certificate": (join_client_context(), hello_of(thief)),
        "of another cluster": (lax, hello_of(other, cluster=cluster.first.authority.cluster)),
        "expired": (client_context(late), hello_of(late)),
        "under another's name": (client_context(thief), hello_of(thief, key=robbed.identity.key)),
        "with a stolen hello": (client_context(thief), hello_of(robbed)),
        "in plain text": (None, hello_of(thief)),
    }


@pytest.mark.parametrize("kind", STRANGERS)
async def test_strangers_learn_nothing_and_are_counted(cluster: MadeCluster, kind: str) -> None:
    """They hear a reason at most: no hello, no address, nobody's name."""
    async with victim(cluster, **SILENCE) as peer:
        context, hello = (await aside(strangers, cluster))[kind]
        stream = await knock(peer) if context is None else await secured(peer, context)
        await send(stream, hello)
        with trio.fail_after(PATIENCE_S):
            said = await read_to_end(stream)
        if context is None:
            assert len(said) < 16, "more than an alert of TLS"
        else:
            reader = FrameReader(Limits())
            reader.feed(said)
            frames = list(reader)
            assert {frame["type"] for frame in frames} <= {"goodbye"}
            assert str(peer.key) not in repr(frames)
            assert str(peer.addresses[0].port) not in repr(frames)
        await eventually(lambda: peer.counters.refused[STRANGERS[kind]] >= 1)
        assert peer.gauges().connections == 0


async def test_a_stranger_that_drips_is_let_go_in_time(cluster: MadeCluster) -> None:
    """Below TLS and above it; however it drips, all of it is one handshake."""
    async with victim(cluster, handshake_seconds=0.3) as peer:
        context = client_context(await aside(cluster.admit, "a"))
        for begin in (knock, partial(secured, context=context)):
            # On a busy machine TLS may be late already.
            with suppress(trio.BrokenResourceError), trio.fail_after(PATIENCE_S):
                stream: trio.abc.Stream = await begin(peer)
                await send(stream, *DRIPPING)
                await trio.aclose_forcefully(stream)
        # What dripped below TLS was no TLS, or late.
        await eventually(lambda: sum(peer.counters.refused.values()) == 2)


@asynccontextmanager
async def let_in(peer: Peer, member: Membership) -> AsyncIterator[trio.abc.Stream]:
    tls = await secured(peer, client_context(member))
    key, cluster = member.identity.key, member.authority.cluster
    admitted: Admitted = await introduce(
        tls,
        LocalPeer(key, cluster, "attack", fingerprint=member.certificate.fingerprint),
        Limits(),
        believe,
        certificate=tls.peer_certificate(),
        dialled=True,
        remote=Address("127.0.0.1", 1),
    )
    yield admitted.stream
    await trio.aclose_forcefully(tls)


async def send(stream: trio.abc.Stream, once: bytes, again: bytes = b"") -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.send_all(once)
        while again:
            await stream.send_all(again)
            await trio.sleep(0.02)


LONGEST = Limits().frame_bytes
# A frame byte by byte: none is ever whole, and pings are answered by nobody.
DRIPPING = ((2000).to_bytes(4, "big"), b"\0")
HOSTILE = {
    "long": ((1 << 31).to_bytes(4, "big") + bytes(1 << 16), "bad frame", {}),
    "deep": (framed(b"\xa1\x64type" + b"\x81" * 100_000 + b"\x01"), "bad frame", {}),
    "all but the last byte": (LONGEST.to_bytes(4, "big") + bytes(LONGEST - 1), "silent", SILENCE),
}


@pytest.mark.parametrize(("sent", "cause", "limits"), HOSTILE.values(), ids=HOSTILE)
async def test_hostile_members_are_cut_in_time_and_cost_little_memory(
    cluster: MadeCluster, sent: bytes, cause: str, limits: dict[str, float]
) -> None:
    async with victim(cluster, **limits) as peer:
        async with let_in(peer, await aside(cluster.admit, "attacker")) as stream:
            before = memory_of_process()
            async with running() as nursery:
                nursery.start_soon(send, stream, sent)
                nursery.start_soon(read_to_end, stream)  # else it is cut for being deaf
                await eventually(lambda: peer.counters.closed[cause] == 1)
            growth = memory_of_process() - before
        assert growth < GROWTH_BYTES
        assert peer.gauges().connections == 0
        async with let_in(peer, await aside(cluster.admit, "friend")):
            await eventually(lambda: peer.counters.accepted == 2)


async def test_old_tls_and_other_clusters_are_refused(cluster: MadeCluster, tmp_path: Path) -> None:
    assert server_context(cluster.first).num_tickets == 0, "no session skips the certificate"
    older = client_context(cluster.first)
    older.minimum_version = older.maximum_version = ssl.TLSVersion.TLSv1_2
    with made_cluster(tmp_path / "foreign") as foreign:
        of_others = client_context(foreign.first)
    async with victim(cluster) as peer:
        for context, words in ((older, "PROTOCOL_VERSION"), (of_others, "VERIFY_FAILED")):
            with pytest.raises(trio.BrokenResourceError) as refused:
                await secured(peer, context)
            assert words in str(refused.value.__cause__)


CLOSE_S = 0.5


@attrs.define
class Tried:
    crowd: MemberPeers
    peer: Peer
    attack: Attacker

    async def closed(self, cause: str, before_s: float) -> None:
        """Wait until the connection counts as closed for ``cause``, no later than said."""
        begun = trio.current_time()
        await eventually(lambda: self.peer.counters.closed[cause] == 1)
        assert trio.current_time() - begun <= before_s
        assert self.peer.gauges().connections == 0


async def ping_away(attack: Attacker, count: int) -> None:
    with suppress(trio.BrokenResourceError):
        for number in range(count):
            await attack.send("ping", number=number)


async def flood(tried: Tried) -> None:
    async with running(partial(ping_away, tried.attack, 20_000), tried.attack.cut_for):
        await tried.closed("flood", 2 + 1.5)


async def deafness(tried: Tried) -> None:
    highest, begun = 0, trio.current_time()
    async with running(partial(ping_away, tried.attack, 20_000)):
        with trio.fail_after(PATIENCE_S):
            while tried.peer.counters.closed["stalled"] == 0:
                highest = max(highest, tried.peer.gauges().queued_bytes)
                await trio.sleep(0.05)
    assert 1024 < highest <= 4096
    assert trio.current_time() - begun <= 3 + 0.1


async def silence(tried: Tried) -> None:
    await tried.closed("silent", 4 + 1)


async def idleness(tried: Tried) -> None:
    """Pings are answered, and nothing else is said."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tried.attack.stay)
        await tried.closed("unused", 10 * 1.25 + 1)


async def dawdling(tried: Tried) -> None:
    """It breaks a rule and then neither reads nor hangs up."""
    await tried.attack.send("nonsense")
    await tried.closed("bad frame", CLOSE_S + 0.1)


async def crowding(tried: Tried) -> None:
    one_too_many = tried.crowd.cluster.admit("one too many")
    async with attacker(tried.crowd, tried.peer.key, one_too_many) as second:
        assert await second.cut_for() == "busy: "
    assert (tried.peer.counters.refused["too many"], tried.peer.gauges().connections) == (1, 1)


TRIALS: dict[str, tuple[Callable[[Tried], Awaitable[None]], dict[str, Any]]] = {
    "frames_per_second": (flood, {"frames_per_second": 1000, "frames_burst": 1000}),
    "flood_seconds": (flood, {"frames_per_second": 1000, "frames_burst": 500}),
    "queue_bytes": (deafness, {"frame_bytes": 2048, "queue_bytes": 4096}),
    "stall_seconds": (deafness, {"frame_bytes": 2048, "queue_bytes": 4096}),
    "silence_seconds": (silence, {"ping_seconds": 1.0, "silence_seconds": 4.0}),
    "unused_seconds": (idleness, {"unused_seconds": 10.0}),
    "close_seconds": (dawdling, {}),
    "connections": (crowding, {"connections": 1}),
}
# Those whose excess costs a bad frame or a wait, which unit tests of the transport try.
IN_UNITS = {"frame_bytes", "depth", "items", "frames_burst", "ping_seconds"}


@pytest.mark.parametrize("limit", TRIALS)
@on_jumping_clock
async def test_a_limit_holds_against_members(cluster: MadeCluster, limit: str) -> None:
    trial, changes = TRIALS[limit]
    standard = {"flood_seconds": 2.0, "stall_seconds": 3.0, "close_seconds": CLOSE_S}
    async with member_peers(cluster, 1, limits=Limits(**{**standard, **changes})) as crowd:
        (peer,) = crowd.peers.values()
        async with attacker(crowd, peer.key, cluster.admit("attacker")) as attack:
            await trial(Tried(crowd, peer, attack))


async def long_hello(peer: Peer) -> None:
    stream = await knock(peer)
    await stream.send_all((1025).to_bytes(4, "big"))
    assert b"at most 1024 bytes" in await read_to_end(stream)
    await eventually(lambda: peer.counters.refused["bad hello"] == 1)


async def no_hello(peer: Peer) -> None:
    assert await read_to_end(await knock(peer)) == b""
    await eventually(lambda: peer.counters.refused["timeout"] == 1)


async def many_strangers(peer: Peer) -> None:
    first, *others = [await knock(peer) for _ in range(4)]
    assert await read_to_end(first) == b""
    await eventually(lambda: peer.counters.refused["too many"] == 1)
    for stream in others:
        await stream.aclose()


BEFORE_ADMISSION: dict[str, tuple[Callable[[Peer], Awaitable[None]], Any]] = {
    "hello_bytes": (long_hello, 1024),
    "handshake_seconds": (no_hello, 0.05),
    "strangers": (many_strangers, 3),
    "per_address": (many_strangers, 3),
}


@pytest.mark.parametrize("limit", BEFORE_ADMISSION)
async def test_a_limit_holds_against_strangers(tmp_path: Path, limit: str) -> None:
    trial, value = BEFORE_ADMISSION[limit]
    config = attrs.evolve(config_of(tmp_path, plain=True), limits={limit: value})
    with trio.fail_after(PATIENCE_S):
        async with open_peer(config) as peer:
            await trial(peer)


def test_every_limit_is_tried() -> None:
    limits = {field.name for field in attrs.fields(Limits)}
    assert limits == TRIALS.keys() | BEFORE_ADMISSION.keys() | IN_UNITS
    files = (ROOT / "tests/unit/node/transport").rglob("test_*.py")
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert [name for name in IN_UNITS if f"{name}=" not in text] == []
