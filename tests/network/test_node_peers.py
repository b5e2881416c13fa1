"""Whole peers deliver over TLS and in plain text, and count what they do."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from bench.bench_node import SMALL, measure
from gossamer.node.errors import ConfigurationError, ListenFailed, PeerStopped
from gossamer.node.monitoring.metric_labels import LINKS, NO_LINK
from gossamer.node.peer.peer import Peer, open_peer
from gossamer.protocol.content.errors import WrongValueError
from gossamer.protocol.kernel.errors import ExpressionError
from support.clusters import MadeCluster
from support.memory_peers import (
    ROUND_S,
    config_of,
    memory_peers,
    of_member,
    rounds_pass,
    take,
    take_ids,
)
from support.transport_peers import on_jumping_clock


async def test_events_reach_whoever_wants_them_once_and_nobody_else(cluster: MadeCluster) -> None:
    two, three = cluster.admit("second"), cluster.admit("third")
    async with (
        open_peer(of_member(cluster.first)) as first,
        open_peer(of_member(two, first.addresses)) as second,
        open_peer(of_member(three, first.addresses)) as third,
    ):
        for peer in (first, second, third):
            await peer.ready()
        dear = second.subscribe('price > 80 and symbol == "IBM"')
        cheap = third.subscribe("price <= 80")
        every = third.subscribe("price >= 0")
        await rounds_pass(first, second, third)
        published = {}
        for i in range(20):
            values: dict[str, Any] = {"price": 10.5 * i, "symbol": "IBM" if i % 2 else "SAP"}
            published[await (first, second, third)[i % 3].publish(values)] = values
        assert {e.id: dict(e.values) for e in await take(every, 20)} == published
        wanted = {i for i, v in published.items() if v["price"] > 80 and v["symbol"] == "IBM"}
        assert await take_ids(dear, len(wanted)) == wanted
        wanted = {i for i, v in published.items() if v["price"] <= 80}
        assert await take_ids(cheap, len(wanted)) == wanted
        await rounds_pass(first, second, third)
        assert len(dear) == len(cheap) == len(every) == 0
        counters = first.counters
        assert counters.accepted >= 2
        assert counters.frames_received > counters.events_forwarded > 0
        assert not any(counters.dropped.values())


async def test_peers_without_certificates_find_each_other_on_loopback(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        peers: list[Peer] = []
        for name in ("a", "b", "c"):
            (tmp_path / name).mkdir()
            bootstrap = peers[0].addresses if peers else ()
            config = config_of(tmp_path / name, bootstrap, plain=True)
            peers.append(await stack.enter_async_context(open_peer(config)))
            await peers[-1].ready()
        events = peers[2].subscribe('symbol startswith "I"')
        await rounds_pass(*peers)
        published = await peers[1].publish({"price": 1, "symbol": "IBM"})
        assert await take_ids(events, 1) == {published}


async def test_a_peer_alone_serves_itself_until_it_ends(cluster: MadeCluster) -> None:
    async with open_peer(of_member(cluster.first)) as peer:
        await peer.ready()
        events = peer.subscribe("price > 5")
        first = await peer.publish({"price": 6, "symbol": "A"})
        assert await take_ids(events, 1) == {first}
        assert peer.gauges().subscriptions == 1
        second = await peer.publish({"price": 6, "symbol": "A"})
    assert [event.id async for event in events] == [second]
    with pytest.raises(PeerStopped):
        peer.subscribe("price > 5")
    with pytest.raises(PeerStopped):
        await peer.publish({"price": 6, "symbol": "A"})


async def test_errors_come_out_as_they_are(cluster: MadeCluster) -> None:
    """Not in a group, although tasks run beside."""
    config = of_member(cluster.first)
    with pytest.raises(ExpressionError):
        async with open_peer(config) as peer:
            peer.subscribe("prize > 5")
    with pytest.raises(WrongValueError):
        async with open_peer(config) as peer:
            await peer.publish({"price": "high", "symbol": "A"})
    with pytest.raises(ZeroDivisionError):
        async with open_peer(config):
            raise ZeroDivisionError
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        in_use = attrs.evolve(config.listen, addresses=(f"127.0.0.1:{port}",))
        for changes, error, words in (
            ({"listen": in_use}, ListenFailed, str(port)),
            ({"schema": None}, ConfigurationError, "attributes"),
        ):
            with pytest.raises(error, match=words):
                async with open_peer(attrs.evolve(config, **changes)):
                    raise AssertionError("it opened")


@pytest.mark.campaign
def test_every_match_is_delivered_once_and_nothing_else(tmp_path: Path) -> None:
    measures, unexpected = measure(SMALL, tmp_path)
    assert not unexpected
    found = {one.name: one.value for one in measures}
    assert found.keys() >= {"latency, median", "memory of each further peer"}
    assert 0 < found["hops of a delivery, mean"] <= 2 * SMALL.peers
    assert 0 <= found["traffic overhead"] < 100


# Peers in memory.


@on_jumping_clock
async def test_frames_are_counted_by_what_the_other_peer_is_and_attempts_in_vain_too(
    tmp_path: Path,
) -> None:
    keys = [1 + (number << 58) for number in range(4)]
    async with memory_peers(tmp_path, *keys) as crowd:
        await crowd.rounds(40)
        peer = crowd.peers[1]
        counters = peer.counters
        for counts in (counters.link_frames_sent, counters.link_frames_received):
            assert counts.keys() == {*LINKS, NO_LINK}
            assert counts["ring"] > 40, "both neighbours on the ring are heard of every round"
        for one in crowd.peers.values():
            one.gauges()
        sent = sum(one.counters.bytes_sent for one in crowd.peers.values())
        received = sum(one.counters.bytes_received for one in crowd.peers.values())
        assert received > 1000
        assert abs(sent - received) < 0.2 * sent, "nothing is under way for long in memory"
        assert sum(counters.link_frames_sent.values()) >= 0.9 * counters.frames_sent
        assert counters.dials + counters.accepted >= 3
        failed = counters.dials_failed
        crowd.network.partition([1], keys[1:])
        await trio.sleep(200 * ROUND_S)
        peer.gauges()
        assert counters.dials >= counters.dials_failed > failed
