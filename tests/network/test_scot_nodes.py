"""Nodes that are brokers of a SCOT, on a network in memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import cbor2
import pytest
import trio
from rich.tree import Tree

from gossamer.node.broker.numbers import broker_gauges, broker_metrics_text, broker_snapshot
from gossamer.node.broker.session import passage_json
from gossamer.node.commands.cluster.tracing import route_for_people, tables_for_people
from gossamer.node.errors import ConfigurationError
from gossamer.node.transport.base.frames import encode_frame
from gossamer.protocol.brokers.core.effects import Send
from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.memory.messages import Notification
from gossamer.protocol.brokers.scot.overlay.labels import ClusterBitVector
from support.draws import larger
from support.memory_brokers import (
    PATIENCE_S,
    SCOT,
    MemoryClient,
    MemoryScot,
    all_got,
    machine,
    memory_scot,
)
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

WANTED = "present(x)"
FEWER = larger(Scot(Factor.path("ab"), Factor.complete(2)), SCOT)


def lines_of(tree: Tree) -> list[str]:
    """What a tree shows, line by line."""
    return [str(tree.label), *(line for child in tree.children for line in lines_of(child))]


@pytest.mark.parametrize("routing", ["bid", "static", "dynamic"])
@on_jumping_clock
async def test_a_publication_reaches_every_subscriber_once(tmp_path: Path, routing: str) -> None:
    async with memory_scot(tmp_path, settings=ScotSettings(routing=routing)) as scot:
        clients = await scot.subscribers(all=WANTED)
        publisher = await scot.client(scot.number("b", 1), "publisher")
        sent = {await publisher.publish({"x": n}) for n in range(5)}
        await scot.settle()
        await all_got(clients, sent)
        assert all(set(one.got) == sent for one in clients.values())
        await clients[1].unsubscribe("all")
        await scot.settle()
        assert [
            node.family.sizes(node.engine.broker)["subscriptions"][0]
            for node in scot.nodes.values()
        ] == [8] * 9


@on_jumping_clock
async def test_routes_and_tables_are_told(tmp_path: Path) -> None:
    async with memory_scot(tmp_path) as scot:
        await scot.subscribers(all=WANTED)
        publisher = await scot.client(scot.number("a", 0), "publisher")
        name, _, number = (await publisher.publish({"x": 1})).partition(":")
        await scot.settle()
        for node in (scot.at("a", 0), scot.at("c", 2)):
            route = await node.trace(Id(name, int(number)))
            assert {one.broker for one in route} == {f"{other:016x}" for other in scot.nodes}
            assert len(route) == 9
        told = scot.at("b", 1).tables()
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
        assert sum(1 for _ in lines_of(shown) if "broker broker" in _) == 9


@on_jumping_clock
async def test_a_broker_tells_its_numbers(tmp_path: Path) -> None:
    async with memory_scot(tmp_path) as scot:
        await scot.subscribers(all=WANTED)
        node = scot.at("b", 1)
        gauges = broker_gauges(node, 1)
        assert gauges.routing_entries == gauges.subscriptions == 9
        text = broker_metrics_text(node, gauges).decode()
        assert 'gossamer_broker_sent_total{kind="Subscription"} ' in text
        assert "gossamer_broker_table_unacknowledged 0.0" in text
        assert {peer.name for peer in broker_snapshot(node, 1).peers} == {
            one.label for one in node.neighbours.known.values()
        }


@pytest.mark.parametrize(
    ("place", "words", "sentence"),
    [
        (
            BrokerLabel("c", 0),
            "the overlay",
            "broker '.*' at B\\(c,0\\) is no neighbour of B\\(a,1\\), expected cluster 1 and a "
            "region of b, or region a and another cluster from 0 to 2",
        ),
        (
            BrokerLabel("a", 0),
            "4 clusters",
            # Whichever end finds out first.
            "overlay of (4 clusters, expected the overlay|the overlay, expected 4 clusters)",
        ),
    ],
)
@on_jumping_clock
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


@on_jumping_clock
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


@on_jumping_clock
async def test_congestion_is_measured_on_the_queues_of_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
@on_jumping_clock
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


@on_jumping_clock
async def test_a_broker_remembers_its_clients_and_their_letters(tmp_path: Path) -> None:
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
        await scot.stop(number)
        scot.settings = ScotSettings(routing="bid")
        with pytest.raises(ConfigurationError, match="routing is 'bid', expected 'static'"):
            async with scot.opened(number):
                pass


@on_jumping_clock
async def test_a_broker_started_again_waits_for_neighbours_not_for_ever(tmp_path: Path) -> None:
    overlay = Scot(Factor.path("ab"), Factor.complete(2))
    async with memory_scot(tmp_path, scot=overlay) as scot:
        here, there, missing = scot.number("a", 0), scot.number("b", 0), scot.number("a", 1)
        ada = await MemoryClient.attach(scot.nodes[there], "ada")
        await ada.subscribe("all", WANTED)
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
