"""Nodes that are brokers of a SCOT, on a network in memory; any of them fails, or any link."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import cbor2
import pytest
import trio
from rich.tree import Tree

from gossamer.node.broker.numbers import broker_gauges, broker_metrics_text, broker_snapshot
from gossamer.node.broker.session import passage_json
from gossamer.node.commands.cluster.listing import route_for_people, tables_for_people
from gossamer.node.transport.frames import encode_frame
from gossamer.protocol.brokers.core.effects import Send
from gossamer.protocol.brokers.core.messages import Id, UnsafeError
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.messages import Notification
from gossamer.protocol.brokers.scot.topology import ClusterBitVector
from support.draws import larger
from support.memory_brokers import (
    PATIENCE_S,
    SCOT,
    TAKING_OVER,
    MemoryClient,
    MemoryScot,
    all_got,
    machine,
    memory_scot,
)
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

pytestmark = on_jumping_clock
WANTED = "present(x)"
FEWER = larger(Scot(Factor.path("ab"), Factor.complete(2)), SCOT)


def lines_of(tree: Tree) -> list[str]:
    return [str(tree.label), *(line for child in tree.children for line in lines_of(child))]


async def test_by_bid_a_publication_reaches_every_subscriber_once(tmp_path: Path) -> None:
    async with memory_scot(tmp_path, settings=ScotSettings(routing="bid")) as scot:
        clients = await scot.subscribers(all=WANTED)
        publisher = await scot.client(scot.number("b", 1), "publisher")
        await all_got(clients, {await publisher.publish({"x": n}) for n in range(5)})
        await clients[1].unsubscribe("all")
        await scot.settle()
        tables = [node.family.sizes(node.engine.broker) for node in scot.nodes.values()]
        assert [sizes["subscriptions"][0] for sizes in tables] == [8] * 9


async def test_status_shows_routes_tables_and_numbers(tmp_path: Path) -> None:
    async with memory_scot(tmp_path) as scot:
        await scot.subscribers(all=WANTED)
        node = scot.at("b", 1)
        gauges = broker_gauges(node, 1)
        assert gauges.routing_entries == gauges.subscriptions == 9
        text = broker_metrics_text(node, gauges).decode()
        assert 'gossamer_broker_sent_total{kind="Subscription"} ' in text
        assert "gossamer_broker_table_unacknowledged 0.0" in text
        labels = {one.label for one in node.neighbours.known.values()}
        assert {peer.name for peer in broker_snapshot(node, 1).peers} == labels
        publisher = await scot.client(scot.number("a", 0), "publisher")
        name, _, number = (await publisher.publish({"x": 1})).partition(":")
        await scot.settle()
        for asked in (scot.at("a", 0), scot.at("c", 2)):
            route = await asked.trace(Id(name, int(number)))
            assert {one.broker for one in route} == {f"{other:016x}" for other in scot.nodes}
            assert len(route) == 9
        told = node.tables()
        assert told["place"] == "B(b,1)"
        assert {link["place"]: link["within"] for link in told["links"]} == {
            "B(a,1)": "cluster",
            "B(c,1)": "cluster",
            "B(b,0)": "region",
            "B(b,2)": "region",
        }
        assert told["sizes"]["subscriptions"] == 9
        assert {row["place"] for row in told["replicas"]} == {"B(b,0)"}
        titles = [title for title, _ in tables_for_people(told)]
        assert titles[0].endswith(", B(b,1) of the overlay")
        assert titles[2].startswith("9 subscriptions: 1 from client client 5")
        shown = route_for_people(f"{name}:{number}", [passage_json(one) for one in route])
        assert sum("broker broker" in line for line in lines_of(shown)) == 9


NO_NEIGHBOUR = (
    r"broker '.*' at B\(c,0\) is no neighbour of B\(a,1\), expected cluster 1 and a region of b, "
    "or region a and another cluster from 0 to 2"
)
# Whichever end finds out first.
ELSEWHERE = "overlay of (4 clusters, expected the overlay|the overlay, expected 4 clusters)"


@pytest.mark.parametrize(
    ("place", "words", "sentence"),
    [
        (BrokerLabel("c", 0), "the overlay", NO_NEIGHBOUR),
        (BrokerLabel("a", 0), "4 clusters", ELSEWHERE),
    ],
)
async def test_a_neighbour_of_the_wrong_place_is_refused_at_both_ends(
    tmp_path: Path, place: BrokerLabel, words: str, sentence: str
) -> None:
    async with MemoryScot.running(
        tmp_path, [(1, 4)], settles=False, places={1: place}, words={1: words}
    ) as made:
        reasons: list[str] = []

        def refused() -> bool:
            nodes = made.nodes.values()
            reasons[:] = [one.refused for node in nodes for one in node.neighbours.known.values()]
            return len(reasons) == 2 and all(reasons)

        await eventually(refused, PATIENCE_S)
        assert any(re.search(sentence, reason) for reason in reasons), reasons
        assert all("expected" in reason for reason in reasons)


async def test_a_message_that_has_no_place_costs_its_sender_the_connection(tmp_path: Path) -> None:
    async with memory_scot(tmp_path) as scot:
        sender, taker = scot.at("a", 0), scot.at("a", 1)
        clients = await scot.subscribers(all=WANTED)
        forged = Notification(Id("x", 1), {"x": 1}, ClusterBitVector.of(1))
        sender.neighbours.send([Send(f"{taker.key:016x}", forged)])
        await eventually(lambda: taker.counters.closed["bad frame"] == 1, PATIENCE_S)
        connection = sender.pool.get(scot.number("b", 0))
        assert connection is not None
        part = cbor2.dumps(["notification", ["x", 1], {"x": {}}, 0])
        await connection.send(encode_frame("broker", session=1 << 62, part=part, last=True))
        other = scot.at("b", 0)
        await eventually(lambda: other.counters.closed["bad frame"] == 1, PATIENCE_S)
        await scot.settle()
        publisher = await scot.client(scot.number("a", 0), "publisher")
        await all_got(clients, {await publisher.publish({"x": 2})})


async def test_long_queues_are_congestion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with memory_scot(tmp_path, settings=ScotSettings()) as scot:
        clients = await scot.subscribers(all=WANTED)
        host, far = scot.at("a", 0), scot.number("a", 1)
        publisher = await scot.client(scot.number("a", 0), "publisher")
        link = host.neighbours.known[far]
        gate = trio.Event()
        send = link.connection.send  # type: ignore[union-attr]

        async def slow(frame: bytes) -> None:
            await gate.wait()
            await send(frame)

        monkeypatch.setattr(link.connection, "send", slow)
        sent = {await publisher.publish({"x": n}) for n in range(20)}
        await trio.sleep(0.1)
        broker = machine(host)
        assert broker.load_of(f"{far:016x}") > broker.settings.threshold
        sent.add(await publisher.publish({"x": 100}))
        assert broker.counters.cases == {1: 1}
        gate.set()
        await all_got(clients, sent)
        await trio.sleep(0.2)
        assert broker.load_of(f"{far:016x}") == 0


@pytest.mark.parametrize("told", [True, False])
async def test_input_queues_of_neighbours_count_where_brokers_tell_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    settings = ScotSettings(input_queues=told, own_threshold=told)
    async with memory_scot(tmp_path, scot=FEWER, settings=settings) as scot:
        clients = await scot.subscribers(all=WANTED)
        host, far = scot.at("a", 0), scot.at("a", 1)
        journal: Any = far.engine._journal
        keep = journal.keep

        async def slow(*stored: Any) -> None:
            await trio.sleep(0.5)
            await keep(*stored)

        monkeypatch.setattr(journal, "keep", slow)
        broker = machine(host)
        loads, sent = [], set()
        publisher = await scot.client(scot.number("a", 0), "publisher")
        for n in range(100):
            sent.add(await publisher.publish({"x": n}))
            await trio.sleep(0.05)
            loads.append(broker.load_of(f"{far.key:016x}"))
        assert (max(loads) > 5) is told
        monkeypatch.undo()
        await all_got(clients, sent)
        await trio.sleep(0.2)
        assert all(broker.load_of(name) == 0 for name in broker.neighbours())


async def test_a_broker_remembers_its_clients_and_their_deliveries(tmp_path: Path) -> None:
    async with memory_scot(tmp_path, settings=ScotSettings(routing="static")) as scot:
        clients = await scot.subscribers(all=WANTED)
        publisher = await scot.client(scot.number("a", 0), "publisher")
        first = await publisher.publish({"x": 1})
        await scot.settle()
        for ends in (scot.stop, scot.crash):
            number = scot.number("c", 2)
            before = machine(scot.nodes[number]).dump()
            await ends(number)
            await scot.start(number)
            await scot.settle()
            after = machine(scot.nodes[number]).dump()
            for part in ("table", "clients", "next_number", "neighbours"):
                assert after[part] == before[part]
        await clients[number].return_to(scot.nodes[number])
        await all_got(clients, {first, await publisher.publish({"x": 2})})


async def test_a_broker_started_again_waits_for_neighbours_not_for_ever(tmp_path: Path) -> None:
    async with memory_scot(tmp_path, scot=Scot(Factor.path("ab"), Factor.complete(2))) as scot:
        here, there, missing = scot.number("a", 0), scot.number("b", 0), scot.number("a", 1)
        ada = await scot.client(there, "ada", wants=WANTED)
        for number in list(scot.nodes):
            await scot.stop(number)
        for number in {1, 2, 3, 4} - {missing}:
            await scot.start(number)
        await scot.settle()
        publisher = await scot.client(here, "publisher")
        memory = machine(scot.nodes[here]).take_over_memory
        async with trio.open_nursery() as nursery:
            nursery.start_soon(publisher.publish, {"x": 1})
            await eventually(lambda: bool(memory.held), PATIENCE_S)
        assert not memory.held
        await ada.return_to(scot.nodes[there])
        await ada.fetch()
        assert len(ada.got) == 1


EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
LARGE = Scot(Factor.of("abcde", EDGES), Factor.complete(3))
EACH = {SCOT: 6, LARGE: 24}
"""Publications of each publisher; the failure comes after a third of them."""
LONGEST_S = 0.2
"""Nine hops of 20 ms."""
AROUND = ScotSettings(around_failures=True)
Link = tuple[BrokerLabel, BrokerLabel]


def publishers(scot: Scot) -> list[BrokerLabel]:
    return [BrokerLabel(scot.regions[0], 0), BrokerLabel(scot.regions[-1], 1)]


def cases(small: BrokerLabel | Link, large: Iterable[BrokerLabel | Link]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("overlay", "failure"),
        [(SCOT, small), *[pytest.param(LARGE, one, marks=pytest.mark.campaign) for one in large]],
        ids=lambda one: f"{one.broker_count} brokers" if isinstance(one, Scot) else str(one),
    )


@attrs.define
class Burst:
    """Subscribers everywhere, and publishers that publish as fast as they are acknowledged."""

    scot: MemoryScot
    clients: dict[int, MemoryClient] = attrs.field(factory=dict)
    safe: list[str] = attrs.field(factory=list)
    at: dict[str, float] = attrs.field(factory=dict)
    failed_at: float = 0.0
    unsafe: int = 0
    fail: trio.Event = attrs.field(factory=trio.Event)

    @property
    def each(self) -> int:
        return EACH[self.scot.scot]

    async def publish(self, place: BrokerLabel) -> None:
        publisher = await MemoryClient.attach(self.scot.at(*place), f"publisher at {place}")
        for n in range(self.each):
            if n == self.each // 3:
                self.fail.set()
            try:
                self.safe.append(await publisher.publish({"x": n}))
                self.at[self.safe[-1]] = trio.current_time()
            except UnsafeError:
                self.unsafe += 1
            await trio.sleep(0.005)

    async def run(self, failure: BrokerLabel | Link) -> None:
        self.clients = await self.scot.subscribers(all=WANTED)
        async with trio.open_nursery() as nursery:
            for place in publishers(self.scot.scot):
                nursery.start_soon(self.publish, place)
            await self.fail.wait()
            self.failed_at = trio.current_time()
            if isinstance(failure, BrokerLabel):
                await self.scot.crash(self.scot.number(*failure))
            else:
                self.scot.network.cut(*(self.scot.number(*end) for end in failure))
        await trio.sleep(120)


@asynccontextmanager
async def burst_with(
    failure: BrokerLabel | Link, folder: Path, scot: Scot, settings: ScotSettings = TAKING_OVER
) -> AsyncIterator[Burst]:
    """A burst that is over, at brokers that still run, over links that take up to 20 ms."""
    network = MemoryNetwork(1, Faults(latency_s=(0.001, 0.02)))
    async with memory_scot(folder, network, scot, settings=settings) as made:
        burst = Burst(made)
        await burst.run(failure)
        if settings is TAKING_OVER:
            assert (burst.unsafe, len(burst.safe)) == (0, 2 * burst.each)
        yield burst


@cases(BrokerLabel("b", 0), [one for one in LARGE.brokers if one not in publishers(LARGE)])
async def test_nothing_acknowledged_is_lost_with_a_broker(
    tmp_path: Path, overlay: Scot, failure: BrokerLabel
) -> None:
    async with burst_with(failure, tmp_path, overlay) as burst:
        scot = burst.scot
        # Who asks meanwhile is known everywhere, behind the dead broker as well.
        late = {}
        for place in sorted({BrokerLabel(overlay.regions[-1], 2), BrokerLabel("c", 0)} - {failure}):
            late[place] = await MemoryClient.attach(scot.at(*place), f"late at {place}")
            await late[place].subscribe("all", WANTED)
        for place in publishers(overlay):
            publisher = await MemoryClient.attach(scot.at(*place), "later")
            burst.safe.append(await publisher.publish({"x": 0}))
        await all_got(late, burst.safe[-2:])
        number = scot.number(*failure)
        stand_in = scot.number(failure.region, (failure.cluster + 1) % 3)
        client = burst.clients[number]
        await client.return_to(scot.nodes[stand_in])
        await all_got(burst.clients, burst.safe)
        # It comes back with what it had stored, and its client to it.
        scot.nodes[stand_in].members.leave(client.member)
        await scot.start(number)
        await scot.settle()
        await client.return_to(scot.nodes[number])
        publisher = await MemoryClient.attach(scot.at(*publishers(overlay)[0]), "publisher")
        burst.safe += [await publisher.publish({"x": n}) for n in range(3)]
        await all_got(burst.clients, burst.safe)


@cases(next(iter(SCOT.links())), LARGE.links())
async def test_nothing_is_lost_with_a_link(tmp_path: Path, overlay: Scot, failure: Link) -> None:
    async with burst_with(failure, tmp_path, overlay) as burst:
        await all_got(burst.clients, burst.safe)


@cases(BrokerLabel("b", 0), [BrokerLabel("b", 0), next(iter(LARGE.links()))])
async def test_without_taking_over_only_what_was_under_way_is_lost(
    tmp_path: Path, overlay: Scot, failure: BrokerLabel | Link
) -> None:
    async with burst_with(failure, tmp_path, overlay, AROUND) as burst:
        scot = burst.scot
        if isinstance(failure, BrokerLabel):
            del burst.clients[scot.number(*failure)]
        for client in burst.clients.values():
            await client.fetch()
            assert not client.twice
        missing = [
            id_ for one in burst.clients.values() for id_ in burst.safe if id_ not in one.got
        ]
        print(f"{len(missing)} deliveries of {len(set(missing))} publications are missing")
        # What is acknowledged is stored at the publisher's broker, and no more: it may have been on
        # its way for as long as the longest way takes, before or after the failure.
        assert all(abs(burst.at[id_] - burst.failed_at) < LONGEST_S for id_ in missing)
        assert not any(node.engine.broker.counters.lost for node in scot.nodes.values())
