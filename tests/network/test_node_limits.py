"""Every limit of the transport, exceeded at a running peer: enforced, bounded and counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from gossamer.node.peer.peer import Peer, open_peer
from gossamer.node.transport.base.limits import Limits
from support.attackers import Attacker, attacker, read_to_end
from support.checkout import ROOT
from support.clusters import MadeCluster
from support.memory_members import MemberPeers, member_peers
from support.node_peers import config_of, knock
from support.transport_peers import on_jumping_clock
from support.waiting import PATIENCE_S, eventually

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
    """Twice the rate for as long as it lasts."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ping_away, tried.attack, 20_000)
        nursery.start_soon(tried.attack.cut_for)
        await tried.closed("flood", 2 + 1.5)
        nursery.cancel_scope.cancel()


async def deafness(tried: Tried) -> None:
    """Somebody who asks and asks, and takes no answer."""
    highest, begun = 0, trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ping_away, tried.attack, 20_000)
        with trio.fail_after(PATIENCE_S):
            while tried.peer.counters.closed["stalled"] == 0:
                highest = max(highest, tried.peer.gauges().queued_bytes)
                await trio.sleep(0.05)
        nursery.cancel_scope.cancel()
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
    assert tried.peer.counters.refused["too many"] == 1
    assert tried.peer.gauges().connections == 1


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
    limits = Limits(**{**standard, **changes})
    async with member_peers(cluster, 1, limits=limits) as crowd:
        (peer,) = crowd.peers.values()
        async with attacker(crowd, peer.key, cluster.admit("attacker")) as attack:
            await trial(Tried(crowd, peer, attack))


# Those who were not let in yet, over real sockets.


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
