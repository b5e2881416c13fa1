"""What brokers deliver equals a flat matcher's, over broken links, crashes and restarts."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.protocol.content import filters
from gossamer.protocol.kernel.errors import ExpressionError
from support.broker_play import random_filter_text, random_values
from support.memory_brokers import SETTINGS, MemoryBrokers, MemoryClient, memory_brokers
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock

pytestmark = on_jumping_clock
LINE = [(1, 2), (3, 2)]
STAR = [(1, 2), (3, 2), (4, 2), (5, 4)]
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
    settings = attrs.evolve(SETTINGS, covering=covering)
    async with memory_brokers(
        tmp_path, STAR, settings=settings, publications_first=first
    ) as brokers:
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
