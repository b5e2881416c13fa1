"""Whole peers find each other over TLS, deliver, leave and come back; and what they count."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from bench.bench_node import SMALL, measure
from gossamer.node.errors import ConfigurationError, ListenFailed, PeerStopped, SubscriptionInUse
from gossamer.node.monitoring.metrics import LINKS, NO_LINK
from gossamer.node.peer.peer import Peer, open_peer
from gossamer.protocol.content.errors import WrongValueError
from gossamer.protocol.kernel.errors import ExpressionError
from support.clusters import MadeCluster, made_cluster
from support.memory_peers import (
    ROUND_S,
    address_of,
    config_of,
    elsewhere,
    linked,
    memory_peers,
    of_member,
    rounds_pass,
    take,
    take_ids,
)
from support.transport_peers import on_jumping_clock
from support.waiting import eventually


@asynccontextmanager
async def three_peers(cluster: MadeCluster) -> AsyncIterator[tuple[Peer, Peer, Peer]]:
    """Peers of one overlay; the second and third know the first's address only."""
    two, three = cluster.admit("second"), cluster.admit("third")
    async with (
        open_peer(of_member(cluster.first)) as first,
        open_peer(of_member(two, first.addresses)) as second,
        open_peer(of_member(three, first.addresses)) as third,
    ):
        for peer in (first, second, third):
            await peer.ready()
        yield first, second, third


async def test_events_reach_whoever_wants_them_once_and_nobody_else(cluster: MadeCluster) -> None:
    async with three_peers(cluster) as (first, second, third):
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
        assert sum(counters.dropped.values()) == counters.dropped["stale"]


async def test_an_event_keeps_publisher_and_values_exactly(cluster: MadeCluster) -> None:
    """Values that hash alike are told apart where they are handed out."""
    async with three_peers(cluster) as (first, second, third):
        events = third.subscribe("price == 0.1")
        await rounds_pass(first, second, third)
        await second.publish({"price": 0.1, "symbol": "ä \U0001f980"})
        await second.publish({"price": 0.10000000000000002, "symbol": ""})
        (event,) = await take(events, 1)
        assert event.publisher == second.key
        assert event.values == {"price": 0.1, "symbol": "ä \U0001f980"}
        await rounds_pass(first, second, third)
        assert len(events) == 0


async def test_a_restarted_peer_is_the_same_and_knows_whom_to_ask(cluster: MadeCluster) -> None:
    """It is told of no address the second time, and a named application gets no event twice."""
    member = cluster.admit("second")
    async with open_peer(of_member(cluster.first)) as first:
        config = of_member(member, first.addresses)
        async with open_peer(config) as second:
            await second.ready()
            key = second.key
            events = second.subscribe("price > 5", name="ledger")
            await rounds_pass(first, second)
            published = await first.publish({"price": 6, "symbol": "A"})
            assert await take_ids(events, 1) == {published}
        await eventually(lambda: linked(first) == set())
        async with open_peer(elsewhere(config)) as second:
            await second.ready()
            await eventually(lambda: second.key in linked(first))
            assert second.key == key
            await rounds_pass(first, second)
            assert first.key in linked(second)
            news = await first.publish({"price": 7, "symbol": "A"})
            await rounds_pass(first, second)
            # It was wanted although nobody had asked again.
            events = second.subscribe("price > 5", name="ledger")
            assert await take_ids(events, 1) == {news}


async def test_a_peer_that_leaves_is_forgotten_at_once(cluster: MadeCluster) -> None:
    two, three = cluster.admit("second"), cluster.admit("third")
    async with (
        open_peer(of_member(cluster.first)) as first,
        open_peer(of_member(two, first.addresses)) as second,
    ):
        await second.ready()
        async with open_peer(of_member(three, first.addresses)) as third:
            await third.ready()
            await eventually(lambda: linked(first) == {second.key, third.key})
        await eventually(lambda: linked(first) == {second.key})
        await eventually(lambda: linked(second) == {first.key})
        events = second.subscribe("price > 5")
        await rounds_pass(first, second)
        published = await first.publish({"price": 6, "symbol": "A"})
        assert await take_ids(events, 1) == {published}


async def test_a_peer_of_another_cluster_gets_nothing(cluster: MadeCluster, tmp_path: Path) -> None:
    with made_cluster(tmp_path / "other") as other:
        async with (
            open_peer(of_member(cluster.first)) as first,
            open_peer(of_member(other.first, first.addresses)) as stranger,
        ):
            await stranger.ready()
            assert stranger.snapshot().peers == ()
            assert first.snapshot().peers == ()


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


async def test_events_wait_for_a_named_application(cluster: MadeCluster) -> None:
    """Until it unsubscribes."""
    async with open_peer(of_member(cluster.first)) as peer:
        async with peer.subscribe("price > 5", name="ledger"):
            with pytest.raises(SubscriptionInUse, match="ledger"):
                peer.subscribe("price > 5", name="ledger")
        published = await peer.publish({"price": 6, "symbol": "A"})
        async with peer.subscribe("price > 5", name="ledger") as events:
            assert await take_ids(events, 1) == {published}
        assert peer.unsubscribe("price > 5", "ledger")
        assert not peer.unsubscribe("price > 5", "ledger")
        await peer.publish({"price": 7, "symbol": "A"})
        async with peer.subscribe("price > 5", name="ledger") as events:
            assert len(events) == 0


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


async def test_errors_of_the_caller_come_out_as_they_are(cluster: MadeCluster) -> None:
    """Not in a group, although tasks run beside."""
    with pytest.raises(ExpressionError):
        async with open_peer(of_member(cluster.first)) as peer:
            peer.subscribe("prize > 5")
    with pytest.raises(WrongValueError):
        async with open_peer(of_member(cluster.first)) as peer:
            await peer.publish({"price": "high", "symbol": "A"})
    with pytest.raises(ZeroDivisionError):
        async with open_peer(of_member(cluster.first)) as peer:
            raise ZeroDivisionError


async def test_what_keeps_a_peer_from_opening_is_one_clear_error(cluster: MadeCluster) -> None:
    config = of_member(cluster.first)
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

ONE, TWO, THREE = (number << 58 for number in (1, 2, 3))


@on_jumping_clock
async def test_bytes_that_one_sends_the_other_receives(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, 1, ONE) as crowd:
        await trio.sleep(20 * ROUND_S)
        first, second = crowd.peers.values()
        for peer in (first, second):
            peer.gauges()
        assert first.counters.bytes_received > 1000
        # Nothing is under way for long in memory; a round's frames may be.
        for sender, receiver in ((first, second), (second, first)):
            difference = sender.counters.bytes_sent - receiver.counters.bytes_received
            assert abs(difference) < 0.2 * sender.counters.bytes_sent


@on_jumping_clock
async def test_attempts_that_lead_nowhere_are_counted(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, 1, ONE, TWO) as crowd:
        await trio.sleep(10 * ROUND_S)
        peer = crowd.peers[1]
        peer.gauges()
        assert peer.counters.dials + peer.counters.accepted >= 2
        failed = peer.counters.dials_failed
        crowd.network.partition([1], [ONE, TWO])
        await trio.sleep(200 * ROUND_S)
        peer.gauges()
        assert peer.counters.dials_failed > failed
        assert peer.counters.dials >= peer.counters.dials_failed


@on_jumping_clock
async def test_frames_are_counted_by_what_the_other_peer_is(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, 1, ONE, TWO, THREE) as crowd:
        await trio.sleep(40 * ROUND_S)
        assert len({address_of(key) for key in crowd.peers}) == 4
        counters = crowd.peers[1].counters
        for counts in (counters.link_frames_sent, counters.link_frames_received):
            assert counts.keys() == {*LINKS, NO_LINK}
            assert counts["ring"] > 40, "both neighbours on the ring are heard of every round"
        crowd.peers[1].gauges()
        assert sum(counters.link_frames_sent.values()) >= 0.9 * counters.frames_sent
