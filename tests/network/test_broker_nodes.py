"""Nodes that are brokers, in memory: links, clients, wrong neighbours; deliveries are due."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import cbor2
import pytest
import trio

from gossamer.node.broker.members import ENDING_S
from gossamer.node.broker.session import read_id
from gossamer.node.errors import RequestError
from gossamer.node.transport.frames import encode_frame
from gossamer.protocol.brokers.core.effects import Effect
from gossamer.protocol.brokers.core.messages import Congestion, Hop, Id, Subscribe
from gossamer.protocol.brokers.tree import messages as t
from gossamer.protocol.brokers.tree.codec import plain_frame
from gossamer.protocol.content import filters
from gossamer.protocol.kernel.errors import ExpressionError
from support.broker_messages import spoilt
from support.broker_play import random_filter_text, random_values
from support.clusters import made_cluster
from support.memory_brokers import (
    PATIENCE_S,
    SETTINGS,
    MemoryBrokers,
    MemoryClient,
    memory_brokers,
    tree_broker,
)
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock
from support.waiting import eventually, soon

LINE = [(1, 2), (3, 2)]
STAR = [(1, 2), (3, 2), (4, 2), (5, 4)]
OFFER = "present(symbol) and price >= 0"
SESSION = (1 << 63) - 1
KEPT = 5
FULL_WAIT_S = 30.0
pytestmark = on_jumping_clock


async def test_brokers_that_name_each_other_have_one_link_that_lasts(tmp_path: Path) -> None:
    network = MemoryNetwork(1, Faults(latency_s=(0.01, 0.05)))
    async with memory_brokers(tmp_path, [(1, 2), (2, 1)], network) as brokers:
        exchange = await brokers.client(1, "exchange", offers=OFFER)
        watcher = await brokers.client(2, "watcher", wants=OFFER)
        ends = [dict(node.pool.ends) for node in brokers.nodes.values()]
        found = [await exchange.publish({"symbol": "A", "price": n}) for n in range(5)]
        await trio.sleep(300)
        await brokers.settle()
        await watcher.fetch()
        assert list(watcher.got) == found
        assert [dict(node.pool.ends) for node in brokers.nodes.values()] == ends


async def test_a_link_that_would_close_a_cycle_is_refused(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, [(1, 2), (2, 3)]) as brokers:
        exchange = await brokers.client(1, "exchange", offers=OFFER)
        brokers.edges.append((4, 1))
        await brokers.start(4)
        await brokers.settle()
        await brokers.stop(4)
        brokers.edges.append((4, 3))
        brokers.refused = 1
        await brokers.start(4)

        def refusals() -> list[str]:
            known = [node.neighbours.known.values() for node in brokers.nodes.values()]
            return [one.refused for ends in known for one in ends if one.refused]

        await eventually(lambda: bool(refusals()), PATIENCE_S)
        assert all("would close a cycle" in text for text in refusals())
        assert "expected brokers to form a tree" in refusals()[0]
        watcher = await brokers.client(4, "watcher", wants=OFFER)
        await watcher.until_got({await exchange.publish({"symbol": "A", "price": 1})})


async def test_a_broker_survives_spoilt_frames_and_serves_the_others(tmp_path: Path) -> None:
    draw = random.Random(3)
    async with memory_brokers(tmp_path, LINE) as brokers:
        exchange = await brokers.client(3, "exchange", offers=OFFER)
        watcher = await brokers.client(2, "watcher", wants=OFFER)
        for number in range(40):
            await eventually(lambda: len(brokers.nodes[1].pool) == 1, PATIENCE_S)
            (connection,) = brokers.nodes[1].pool
            told = t.Subscription(Id("B", number), filters.parse("price > 5 and ok == true"))
            frames = (
                t.Frame(SESSION, number, t.Synchronise((), (told,))),
                t.Frame(SESSION, number, told),
                t.Frame(1, number, t.Publication(Id("B", 1), Id("B", 2), {"price": number})),
            )
            data = spoilt(draw, plain_frame(draw.choice(frames)))
            with suppress(cbor2.CBOREncodeError, UnicodeEncodeError):
                part = cbor2.dumps(data)
                await connection.send(encode_frame("broker", session=SESSION, part=part, last=True))
            await trio.sleep(0.01)
        await brokers.settle_link(2, 3)
        assert brokers.nodes[2].counters.closed["bad frame"] > 10
        found = await exchange.publish({"symbol": "A", "price": 1})
        await brokers.settle_link(2, 3)
        await watcher.fetch()
        assert list(watcher.got) == [found]


async def test_what_a_revoked_broker_sent_is_withdrawn(tmp_path: Path) -> None:
    with made_cluster(tmp_path / "first") as cluster:
        members = {1: cluster.first, 2: cluster.admit("second"), 3: cluster.admit("third")}
        async with memory_brokers(tmp_path, LINE, members=members) as brokers:
            await brokers.client(1, "exchange", offers=OFFER)
            await brokers.client(3, "watcher", wants=OFFER)
            assert brokers.subscriptions()[1] == 1
            key = members[3].identity.key
            cluster.registrar.revoke(cluster.store, f"{key:016x}", cluster.now)
            await eventually(lambda: brokers.subscriptions()[1] == 0, PATIENCE_S)
            (other,) = [one for one in brokers.nodes[2].neighbours.known.values() if one.key == key]
            assert "revoked" in other.refused


async def test_stalled_neighbours_get_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.node.broker.links.BACKLOG_BYTES", 20_000)
    async with memory_brokers(tmp_path, [(1, 2)]) as brokers:
        exchange = await brokers.client(1, "exchange", offers="present(text)")
        watcher = await brokers.client(2, "watcher", wants="present(text)")
        (link,) = brokers.nodes[1].neighbours.known.values()
        monkeypatch.setattr(link.connection, "send", lambda _: trio.sleep_forever())
        sent = [await exchange.publish({"text": str(n) * 4000}) for n in range(10)]
        await eventually(lambda: brokers.nodes[1].counters.closed["stalled"] > 0, PATIENCE_S)
        await brokers.settle()
        await watcher.fetch()
        assert set(watcher.got) == set(sent)


async def test_a_broker_with_long_queues_is_congested_until_they_are_short(tmp_path: Path) -> None:
    settings = attrs.evolve(SETTINGS, covering="incremental", congested_queue=20)
    async with memory_brokers(tmp_path, [(1, 2)], settings=settings) as brokers:
        node = brokers.nodes[1]
        ada = await MemoryClient.attach(node, "ada")
        queues: list[int] = []
        handle = node.engine.broker.handle

        def watched(now: int, source: Hop | None, message: t.Message) -> list[Effect]:
            if isinstance(message, Congestion):
                queues.append(message.queue)
            return handle(now, source, message)

        node.engine.broker.handle = watched  # type: ignore[method-assign]
        wanted = [Subscribe(f"s{n}", filters.parse(f"x > {n}")) for n in range(60)]
        await node.members.ask_all(ada.member, wanted)
        await eventually(lambda: len(queues) == 2, PATIENCE_S)
        assert queues[0] > 20 >= queues[1]


async def test_a_name_is_one_client_at_a_time_and_waits_for_the_last(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, [(1, 2)]) as brokers, trio.open_nursery() as nursery:
        node, members = brokers.nodes[1], brokers.nodes[1].members
        ada = await MemoryClient.attach(node, "ada")
        with pytest.raises(RequestError, match="'ada' is connected already"):
            await MemoryClient.attach(node, "ada")
        with pytest.raises(RequestError, match="does not begin with '~'"):
            await MemoryClient.attach(node, "~ada")
        await ada.subscribe("x", "x > 1")

        async def end_soon() -> None:
            await trio.sleep(ENDING_S / 2)
            members.leave(ada.member)

        nursery.start_soon(end_soon)
        again = await MemoryClient.attach(node, "ada")
        assert again.member.present
        members.leave(again.member)
        assert (await MemoryClient.attach(node, "ada")).member is ada.member


async def test_a_client_cut_off_while_it_asks_may_ask_again(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, [(1, 2)]) as brokers:
        node = brokers.nodes[1]
        ada = await MemoryClient.attach(node, "ada")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ada.subscribe, "x", "x > 1")
                await soon(lambda: bool(node.engine.waiting) or node.engine.busy)
                scope.cancel()
        await brokers.settle()
        await ada.subscribe("x", "x > 1")
        await ada.subscribe("x", "x > 2")
        assert tree_broker(node).sizes().subscriptions == 1
        node.members.leave(ada.member)
        with trio.CancelScope() as scope:
            scope.cancel()
            await MemoryClient.attach(node, "bob")
        await brokers.settle()
        await MemoryClient.attach(node, "bob")


async def test_a_client_that_stays_away_is_forgotten_and_one_that_is_slow_loses_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.node.broker.members.MOST_DELIVERIES", 3)
    async with memory_brokers(tmp_path, [(1, 2)]) as brokers:
        node = brokers.nodes[1]
        node.members._retention_s = 200.0
        exchange = await MemoryClient.attach(node, "exchange")
        await exchange.advertise("quotes", OFFER)
        away, slow = [await MemoryClient.attach(node, name) for name in ("away", "slow")]
        for one in (away, slow):
            await one.subscribe("all", OFFER)
        node.members.leave(away.member)
        sent = [await exchange.publish({"symbol": "A", "price": n}) for n in range(5)]
        await trio.sleep(120)
        await slow.fetch()
        assert list(slow.got) == sent[2:]
        assert {one.name for one in tree_broker(node).clients()} == {"exchange", "away", "slow"}
        await trio.sleep(180)
        assert {one.name for one in tree_broker(node).clients()} == {"exchange", "slow"}
        assert node.members.deliveries == 0


async def test_a_route_is_traced_broker_by_broker(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, STAR) as brokers:
        exchange = await brokers.client(1, "exchange", offers=OFFER)
        await brokers.client(5, "far", wants=OFFER)
        await brokers.client(3, "near", wants=OFFER)
        id_ = read_id(await exchange.publish({"symbol": "A", "price": 1}))
        await brokers.settle()
        key = "{:016x}".format
        near = [f"neighbour {key(number)}" for number in range(6)]
        for asked in (1, 4):
            route = await brokers.nodes[asked].trace(id_)
            assert {(int(one.broker, 16), one.source, one.onward) for one in route} == {
                (1, "client exchange", (near[2],)),
                (2, near[1], (near[3], near[4])),
                (3, near[2], ("client near",)),
                (4, near[2], (near[5],)),
                (5, near[4], ("client far",)),
            }
        assert brokers.nodes[2].tables()["sizes"] == {
            "subscriptions": 2,
            "advertisements": 1,
            "by last hop": {f"broker {key(3)}": 1, f"broker {key(4)}": 1},
        }


async def test_brokers_restarted_one_after_another_have_another_covering(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, LINE) as brokers:
        exchange = await brokers.client(1, "exchange", offers=OFFER)
        ada = await MemoryClient.attach(brokers.nodes[3], "ada")
        for number in range(5):
            await ada.subscribe(f"s{number}", f"price > {number}")
        await brokers.settle()
        assert tree_broker(brokers.nodes[2]).sizes().sent == 1
        brokers.settings = attrs.evolve(SETTINGS, covering="off")
        published = set()
        for number in (2, 3, 1):
            published.add(await exchange.publish({"symbol": "IBM", "price": 3}))
            await brokers.stop(number)
            if number != 1:
                published.add(await exchange.publish({"symbol": "IBM", "price": 9}))
            await brokers.start(number)
            await brokers.settle()
        await exchange.return_to(brokers.nodes[1])
        published.add(await exchange.publish({"symbol": "IBM", "price": 2}))
        await brokers.settle()
        assert tree_broker(brokers.nodes[2]).sizes().sent == 5
        await ada.return_to(brokers.nodes[3])
        await ada.fetch()
        assert (set(ada.got), ada.twice, len(published)) == (published, [], 6)


async def test_publishers_wait_for_a_neighbour_that_is_away_not_for_long(tmp_path: Path) -> None:
    settings = attrs.evolve(SETTINGS, retained_publications=KEPT)
    async with memory_brokers(tmp_path, [(1, 2)], settings=settings) as brokers:
        exchange = await brokers.client(1, "exchange", offers=OFFER)
        ada = await brokers.client(2, "ada", wants=OFFER)
        counters = brokers.nodes[1].engine.broker.counters
        published: list[str] = []

        async def publish() -> None:
            for price in range(3 * KEPT):
                id_ = await exchange.publish({"symbol": "A", "price": price})
                published.append(id_)

        # Nothing is lost where it is back in time.
        await brokers.stop(2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(publish)
            await trio.sleep(10)
            assert len(published) == KEPT
            await brokers.start(2)
            await eventually(lambda: len(published) == 3 * KEPT, FULL_WAIT_S)
        await brokers.settle()
        await ada.return_to(brokers.nodes[2])
        await ada.fetch()
        assert (sorted(ada.got), ada.twice, counters.lost) == (sorted(published), [], 0)

        await brokers.stop(2)
        begun = trio.current_time()
        await publish()
        assert trio.current_time() - begun == pytest.approx(FULL_WAIT_S, abs=1.0)
        assert counters.lost == 2 * KEPT
        await brokers.start(2)
        await brokers.settle()


# Deliveries equal a flat matcher's, over broken links, crashes and restarts.

EVERYTHING = "present(x) and present(y) and present(s) and present(number)"
# Every covering is played by the protocol's own tests.
COVERINGS = ("packed", "incremental")
in_either_order = pytest.mark.parametrize("first", [False, True], ids=["in turn", "first"])
"""Publications are taken in their turn, or before what others sent."""
Fault = Callable[[MemoryBrokers, random.Random], Awaitable[None]]


@attrs.define
class Market:
    """Clients with names at every broker, all of whom publish, and a flat matcher beside them."""

    brokers: MemoryBrokers
    draw: random.Random
    clients: dict[int, MemoryClient] = attrs.field(factory=dict)
    wanted: dict[int, dict[str, str]] = attrs.field(factory=dict)
    due: dict[int, set[str]] = attrs.field(factory=dict)
    labels: int = 0

    async def open(self, subscriptions: int = 0) -> None:
        for number, node in self.brokers.nodes.items():
            client = await MemoryClient.attach(node, f"client {number}")
            await client.advertise("all", EVERYTHING)
            self.clients[number], self.wanted[number] = client, {}
            self.due[number] = set()
        await self.brokers.settle()
        for _ in range(subscriptions):
            await self.subscribe()
        await self.brokers.settle()

    async def subscribe(self) -> None:
        number = self.draw.choice(sorted(self.clients))
        self.labels += 1
        label, text = f"s{self.labels}", random_filter_text(self.draw)
        try:
            filters.parse(text)
        except ExpressionError:
            return
        await self.clients[number].subscribe(label, text)
        self.wanted[number][label] = text

    async def unsubscribe(self) -> None:
        number = self.draw.choice(sorted(self.clients))
        if self.wanted[number]:
            label = self.draw.choice(sorted(self.wanted[number]))
            await self.clients[number].unsubscribe(label)
            del self.wanted[number][label]

    async def publish(self) -> None:
        number = self.draw.choice(sorted(self.clients))
        values = random_values(self.draw)
        found = await self.clients[number].publish(values)
        for other, wanted in self.wanted.items():
            if any(filters.parse(text).matches(values) for text in wanted.values()):
                self.due[other].add(found)

    async def everything_arrived(self) -> None:
        await self.brokers.settle()
        for number, client in self.clients.items():
            await client.until_got(self.due[number])
            assert set(client.got) == self.due[number]


@in_either_order
@pytest.mark.parametrize("covering", COVERINGS)
async def test_deliveries_equal_a_flat_matchers(tmp_path: Path, covering: str, first: bool) -> None:
    how: dict[str, Any] = {"settings": attrs.evolve(SETTINGS, covering=covering)}
    async with memory_brokers(tmp_path, STAR, **how, publications_first=first) as brokers:
        market = Market(brokers, random.Random(11))
        await market.open()
        for _ in range(4):
            for _ in range(5):
                await market.subscribe()
            await market.unsubscribe()
            await brokers.settle()
            for _ in range(3):
                await market.publish()
            await brokers.settle()
        await market.everything_arrived()
        assert sum(map(len, market.due.values())) > 10


async def a_link_breaks(brokers: MemoryBrokers, draw: random.Random) -> None:
    brokers.network.break_connections(*draw.choice(brokers.edges))


async def nothing_passes(brokers: MemoryBrokers, draw: random.Random) -> None:
    one, _ = draw.choice(brokers.edges)
    brokers.network.partition([one], set(brokers.nodes) - {one})
    await trio.sleep(draw.uniform(1, 60))
    brokers.network.heal()


@in_either_order
@pytest.mark.parametrize("fault", [a_link_breaks, nothing_passes])
async def test_what_was_published_arrives_once(tmp_path: Path, fault: Fault, first: bool) -> None:
    network = MemoryNetwork(5, Faults(latency_s=(0.0, 0.02)))
    async with memory_brokers(tmp_path, STAR, network, publications_first=first) as brokers:
        market = Market(brokers, random.Random(5))
        await market.open(12)
        for _ in range(6):
            for _ in range(4):
                await market.publish()
            await fault(brokers, market.draw)
        await market.everything_arrived()
        assert not any(node.engine.broker.counters.lost for node in brokers.nodes.values())


@in_either_order
@pytest.mark.parametrize("kill", [True, False])
async def test_nothing_is_lost_when_brokers_end(tmp_path: Path, kill: bool, first: bool) -> None:
    async with memory_brokers(tmp_path, LINE, publications_first=first) as brokers:
        market = Market(brokers, random.Random(7))
        await market.open(12)
        for number in (2, 1, 2, 3):
            for _ in range(5):
                await market.publish()
            await (brokers.crash(number) if kill else brokers.stop(number))
            away = market.clients.pop(number)
            for _ in range(3):
                await market.publish()
            await away.return_to(await brokers.start(number))
            market.clients[number] = away
        await market.everything_arrived()
        # Tables are as if nothing had happened: everything can be taken back.
        for number, client in market.clients.items():
            for label in market.wanted[number]:
                await client.unsubscribe(label)
        await brokers.settle()
        assert brokers.subscriptions() == {1: 0, 2: 0, 3: 0}
