"""Nodes that are brokers, on a network in memory: what they deliver, over faults and restarts."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import attrs
import cbor2
import pytest
import trio

from gossamer.node.broker.links import Neighbour
from gossamer.node.errors import ClientRequestError, ConfigurationError
from gossamer.node.transport.frames import encode_frame
from gossamer.protocol.broker import Hop, Id
from gossamer.protocol.broker.codec import plain_frame
from gossamer.protocol.broker.effects import Effect
from gossamer.protocol.broker.errors import NotAdvertisedError
from gossamer.protocol.broker.messages import (
    Congestion,
    Frame,
    Message,
    Publication,
    Subscribe,
    Subscription,
    Synchronise,
)
from gossamer.protocol.content import filters
from support.broker_messages import spoilt
from support.broker_play import random_filter_text, random_values
from support.clusters import made_cluster
from support.memory_brokers import (
    PATIENCE_S,
    SETTINGS,
    MemoryBrokers,
    MemoryClient,
    memory_brokers,
)
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

LINE = [(1, 2), (3, 2)]
STAR = [(1, 2), (3, 2), (4, 2), (5, 4)]
OFFER = "present(symbol) and price >= 0"
EVERYTHING = "present(x) and present(y) and present(s) and present(number)"
# Every covering is played by the protocol's own tests.
COVERINGS = ("packed", "incremental")
Fault = Callable[[MemoryBrokers, random.Random], Awaitable[None]]


@on_jumping_clock
async def test_a_publication_reaches_those_who_asked_for_it(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, LINE) as brokers:
        exchange = await MemoryClient.attach(brokers.nodes[1], "exchange")
        await exchange.advertise("quotes", OFFER)
        await brokers.settle()
        dear = await MemoryClient.attach(brokers.nodes[3], None)
        await dear.subscribe("dear", "price > 80")
        ada = await MemoryClient.attach(brokers.nodes[2], "ada")
        await ada.subscribe("ibm", 'symbol == "IBM"')
        await brokers.settle()
        first = await exchange.publish({"symbol": "IBM", "price": 81.5})
        second = await exchange.publish({"symbol": "HPQ", "price": 90})
        await exchange.publish({"symbol": "HPQ", "price": 9})
        await brokers.settle()
        await ada.fetch()
        assert set(dear.got) == {first, second}
        assert dear.got[first] == ({"symbol": "IBM", "price": 81.5}, ["dear"])
        assert set(ada.got) == {first}


@attrs.define
class Market:
    """Clients with names at every broker, all of whom publish, and a flat matcher beside them."""

    brokers: MemoryBrokers
    draw: random.Random
    clients: dict[int, MemoryClient] = attrs.field(factory=dict)
    wanted: dict[int, dict[str, str]] = attrs.field(factory=dict)
    due: dict[int, set[str]] = attrs.field(factory=dict)
    labels: int = 0

    async def open(self) -> None:
        for number, node in self.brokers.nodes.items():
            client = await MemoryClient.attach(node, f"client {number}")
            await client.advertise("all", EVERYTHING)
            self.clients[number], self.wanted[number] = client, {}
            self.due[number] = set()
        await self.brokers.settle()

    async def subscribe(self) -> None:
        number = self.draw.choice(sorted(self.clients))
        self.labels += 1
        label, text = f"s{self.labels}", random_filter_text(self.draw)
        try:
            filters.parse(text)
        except filters.ExpressionError:
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

    async def return_to(self, number: int) -> None:
        """Attach the client of a broker that was started again."""
        node = self.brokers.nodes[number]
        client = self.clients[number]
        self.clients[number] = again = await MemoryClient.attach(node, client.member.name)
        again.got, again.twice = client.got, client.twice

    async def everything_arrived(self) -> None:
        await self.brokers.settle()

        async def fetched() -> bool:
            for client in self.clients.values():
                await client.fetch()
            return all(due <= set(self.clients[at].got) for at, due in self.due.items())

        with trio.fail_after(PATIENCE_S):
            while not await fetched():
                await trio.sleep(0.1)
        for number, client in self.clients.items():
            assert set(client.got) == self.due[number]
            assert not client.twice


@pytest.mark.parametrize("covering", COVERINGS)
@on_jumping_clock
async def test_deliveries_equal_a_flat_matchers(tmp_path: Path, covering: str) -> None:
    seed = 11
    print(f"seed {seed}")
    settings = attrs.evolve(SETTINGS, covering=covering)
    async with memory_brokers(tmp_path, STAR, settings=settings) as brokers:
        market = Market(brokers, random.Random(seed))
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


@pytest.mark.parametrize("fault", [a_link_breaks, nothing_passes])
@on_jumping_clock
async def test_what_was_published_while_links_fail_arrives_once(
    tmp_path: Path, fault: Fault
) -> None:
    draw = random.Random(5)
    network = MemoryNetwork(5, Faults(latency_s=(0.0, 0.02)))
    async with memory_brokers(tmp_path, STAR, network) as brokers:
        market = Market(brokers, draw)
        await market.open()
        for _ in range(12):
            await market.subscribe()
        await brokers.settle()
        for _ in range(6):
            for _ in range(4):
                await market.publish()
            await fault(brokers, draw)
        await market.everything_arrived()
        gaps = [node.engine.broker.counters.lost for node in brokers.nodes.values()]
        assert not any(gaps)


@pytest.mark.parametrize("kill", [True, False])
@on_jumping_clock
async def test_nothing_that_was_acknowledged_is_lost_when_brokers_end(
    tmp_path: Path, kill: bool
) -> None:
    draw = random.Random(7)
    async with memory_brokers(tmp_path, LINE) as brokers:
        market = Market(brokers, draw)
        await market.open()
        for _ in range(12):
            await market.subscribe()
        await brokers.settle()
        for number in (2, 1, 2, 3):
            for _ in range(5):
                await market.publish()
            await (brokers.crash(number) if kill else brokers.stop(number))
            away = market.clients.pop(number)
            for _ in range(3):
                await market.publish()
            await brokers.start(number)
            market.clients[number] = away
            await market.return_to(number)
        await market.everything_arrived()
        # Tables are as if nothing had happened: everything can be taken back.
        for number, client in market.clients.items():
            for label in market.wanted[number]:
                await client.unsubscribe(label)
        await brokers.settle()
        assert [node.engine.broker.sizes().subscriptions for node in brokers.nodes.values()] == [
            0,
            0,
            0,
        ]


@on_jumping_clock
async def test_a_link_that_would_close_a_cycle_is_refused(
    tmp_path: Path,
) -> None:
    async with memory_brokers(tmp_path, [(1, 2), (2, 3)]) as brokers:
        exchange = await MemoryClient.attach(brokers.nodes[1], "exchange")
        await exchange.advertise("quotes", OFFER)
        await brokers.settle()
        brokers.edges.append((4, 1))
        await brokers.start(4)
        await brokers.settle()
        await brokers.stop(4)
        brokers.edges.append((4, 3))
        fourth = await brokers.start(4)
        refused: list[str] = []

        def one_is_refused() -> bool:
            known = [
                one for node in brokers.nodes.values() for one in node.neighbours.known.values()
            ]
            refused[:] = [one.refused for one in known if one.refused]
            return bool(refused)

        await eventually(one_is_refused, PATIENCE_S)
        assert all("would close a cycle" in text for text in refused)
        assert "expected brokers to form a tree" in refused[0]
        watcher = await MemoryClient.attach(fourth, "watcher")
        await watcher.subscribe("all", OFFER)
        await brokers.settle(refused=1)
        found = await exchange.publish({"symbol": "A", "price": 1})
        with trio.fail_after(PATIENCE_S):
            while found not in watcher.got:
                await watcher.fetch()
                await trio.sleep(0.1)
        assert not watcher.twice


@on_jumping_clock
async def test_a_frame_that_breaks_the_rules_costs_its_sender_the_connection(
    tmp_path: Path,
) -> None:
    async with memory_brokers(tmp_path, [(1, 2)]) as brokers:
        (connection,) = brokers.nodes[1].pool
        one: Neighbour = brokers.nodes[2].neighbours.known[1]
        session = one.connection
        part = b"\x83\x00\x00\x65hello"
        await connection.send(encode_frame("broker", session=(1 << 63) - 1, part=part, last=True))
        await eventually(lambda: brokers.nodes[2].counters.closed["bad frame"] == 1, PATIENCE_S)
        await eventually(lambda: one.connection not in (None, session), PATIENCE_S)
        await brokers.settle()


@on_jumping_clock
async def test_a_broker_survives_spoilt_frames_and_serves_the_others(tmp_path: Path) -> None:
    draw = random.Random(3)
    async with memory_brokers(tmp_path, LINE) as brokers:
        exchange = await MemoryClient.attach(brokers.nodes[3], "exchange")
        await exchange.advertise("quotes", OFFER)
        await brokers.settle()
        watcher = await MemoryClient.attach(brokers.nodes[2], "watcher")
        await watcher.subscribe("all", OFFER)
        for number in range(40):
            await eventually(lambda: len(brokers.nodes[1].pool) == 1, PATIENCE_S)
            (connection,) = brokers.nodes[1].pool
            told = Subscription(Id("B", number), filters.parse("price > 5 and ok == true"))
            frames = (
                Frame((1 << 63) - 1, number, Synchronise((), (told,))),
                Frame((1 << 63) - 1, number, told),
                Frame(1, number, Publication(Id("B", 1), Id("B", 2), {"price": number})),
            )
            data = spoilt(draw, plain_frame(draw.choice(frames)))
            with suppress(cbor2.CBOREncodeError, UnicodeEncodeError):
                part = cbor2.dumps(data)
                session = (1 << 63) - 1
                frame = encode_frame("broker", session=session, part=part, last=True)
                await connection.send(frame)
            await trio.sleep(0.01)
        await brokers.settle_link(2, 3)
        assert brokers.nodes[2].counters.closed["bad frame"] > 10
        found = await exchange.publish({"symbol": "A", "price": 1})
        await brokers.settle_link(2, 3)
        await watcher.fetch()
        assert list(watcher.got) == [found]


@on_jumping_clock
async def test_what_a_revoked_broker_told_is_withdrawn(tmp_path: Path) -> None:
    with made_cluster(tmp_path / "first") as cluster:
        members = {1: cluster.first, 2: cluster.admit("second"), 3: cluster.admit("third")}
        async with memory_brokers(tmp_path, LINE, members=members) as brokers:
            exchange = await MemoryClient.attach(brokers.nodes[1], "exchange")
            await exchange.advertise("quotes", OFFER)
            await brokers.settle()
            watcher = await MemoryClient.attach(brokers.nodes[3], "watcher")
            await watcher.subscribe("all", OFFER)
            await brokers.settle()
            assert brokers.nodes[1].engine.broker.sizes().subscriptions == 1
            key = members[3].identity.key
            cluster.registrar.revoke(cluster.store, f"{key:016x}", cluster.now)
            await eventually(
                lambda: brokers.nodes[1].engine.broker.sizes().subscriptions == 0, PATIENCE_S
            )
            (other,) = [one for one in brokers.nodes[2].neighbours.known.values() if one.key == key]
            assert "revoked" in other.refused


@on_jumping_clock
async def test_a_neighbour_that_takes_nothing_is_given_up_and_told_everything_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.node.broker.links.BACKLOG_BYTES", 20_000)
    async with memory_brokers(tmp_path, [(1, 2)]) as brokers:
        exchange = await MemoryClient.attach(brokers.nodes[1], "exchange")
        await exchange.advertise("quotes", "present(text)")
        watcher = await MemoryClient.attach(brokers.nodes[2], "watcher")
        await brokers.settle()
        await watcher.subscribe("all", "present(text)")
        await brokers.settle()
        (link,) = brokers.nodes[1].neighbours.known.values()
        held = link.connection

        async def blocked(_: bytes) -> None:
            await trio.sleep_forever()

        monkeypatch.setattr(held, "send", blocked)
        sent = [await exchange.publish({"text": str(n) * 4000}) for n in range(10)]
        await eventually(lambda: brokers.nodes[1].counters.closed["stalled"] > 0, PATIENCE_S)
        await brokers.settle()
        await watcher.fetch()
        assert set(watcher.got) == set(sent)


@on_jumping_clock
async def test_a_broker_with_long_queues_is_congested_until_they_are_short(
    tmp_path: Path,
) -> None:
    settings = attrs.evolve(SETTINGS, covering="incremental", congested_queue=20)
    async with memory_brokers(tmp_path, [(1, 2)], settings=settings) as brokers:
        node = brokers.nodes[1]
        ada = await MemoryClient.attach(node, "ada")
        queues: list[int] = []
        handle = node.engine.broker.handle

        def watched(now: int, source: Hop | None, message: Message) -> list[Effect]:
            if isinstance(message, Congestion):
                queues.append(message.queue)
            return handle(now, source, message)

        node.engine.broker.handle = watched  # type: ignore[method-assign]
        wanted = [Subscribe(f"s{n}", filters.parse(f"x > {n}")) for n in range(60)]
        await node.members.ask_all(ada.member, wanted)
        await eventually(lambda: len(queues) == 2, PATIENCE_S)
        assert queues[0] > 20 >= queues[1]


@on_jumping_clock
async def test_a_second_client_of_a_name_is_refused(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, [(1, 2)]) as brokers:
        ada = await MemoryClient.attach(brokers.nodes[1], "ada")
        with pytest.raises(ClientRequestError, match="'ada' is connected already"):
            await MemoryClient.attach(brokers.nodes[1], "ada")
        with pytest.raises(ClientRequestError, match="does not begin with '~'"):
            await MemoryClient.attach(brokers.nodes[1], "~ada")
        await ada.subscribe("x", "x > 1")
        brokers.nodes[1].members.leave(ada.member)
        assert (await MemoryClient.attach(brokers.nodes[1], "ada")).member is ada.member


@on_jumping_clock
async def test_a_publication_outside_its_advertisement_is_returned(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, [(1, 2)]) as brokers:
        exchange = await MemoryClient.attach(brokers.nodes[1], "exchange")
        await exchange.advertise("quotes", OFFER)
        with pytest.raises(NotAdvertisedError, match="no advertisement that allows price = -1"):
            await exchange.publish({"price": -1})


@on_jumping_clock
async def test_a_broker_with_tables_keeps_its_covering(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, [(1, 2)]) as brokers:
        await brokers.stop(1)
        brokers.settings = attrs.evolve(SETTINGS, covering="off")
        with pytest.raises(ConfigurationError, match="covering is 'off', expected 'active'"):
            async with brokers.opened(1):
                pass
        brokers.edges.clear()


@on_jumping_clock
async def test_a_route_is_told_broker_by_broker(tmp_path: Path) -> None:
    async with memory_brokers(tmp_path, STAR) as brokers:
        exchange = await MemoryClient.attach(brokers.nodes[1], "exchange")
        await exchange.advertise("quotes", OFFER)
        await brokers.settle()
        far = await MemoryClient.attach(brokers.nodes[5], "far")
        near = await MemoryClient.attach(brokers.nodes[3], "near")
        await far.subscribe("all", OFFER)
        await near.subscribe("all", OFFER)
        await brokers.settle()
        found = await exchange.publish({"symbol": "A", "price": 1})
        await brokers.settle()
        name, _, number = found.partition(":")
        id_ = type(brokers.nodes[1].engine.broker.next_id)(name, int(number))
        for asked in (1, 4):
            route = await brokers.nodes[asked].trace(id_)
            hops = {(int(one.broker, 16), one.source, one.onward) for one in route}
            key = "{:016x}".format
            assert hops == {
                (1, "client exchange", (f"neighbour {key(2)}",)),
                (2, f"neighbour {key(1)}", (f"neighbour {key(3)}", f"neighbour {key(4)}")),
                (3, f"neighbour {key(2)}", ("client near",)),
                (4, f"neighbour {key(2)}", (f"neighbour {key(5)}",)),
                (5, f"neighbour {key(4)}", ("client far",)),
            }
        told = brokers.nodes[2].tables()
        assert told["sizes"] == {
            "subscriptions": 2,
            "advertisements": 1,
            "by last hop": {
                f"broker {key(3)}": 1,
                f"broker {key(4)}": 1,
            },
        }
