"""Composite subscriptions at brokers of a SCOT and of a graph, on a network in memory."""

from __future__ import annotations

from pathlib import Path

import trio

from support.memory_brokers import PATIENCE_S, MemoryClient
from support.memory_graphs import memory_graph
from support.memory_scots import TAKING_OVER, memory_scot
from support.transport_peers import on_jumping_clock

PAIR = "{x == $N} -> {y == $N}"


async def until_matched(ada: MemoryClient, expected: list[tuple[str, list[str]]]) -> None:
    """Wait until a client has these matches."""
    with trio.fail_after(PATIENCE_S):
        while ada.matches != expected:
            await ada.fetch()
            await trio.sleep(0.1)


@on_jumping_clock
async def test_publications_match_together_on_a_graph(tmp_path: Path) -> None:
    async with memory_graph(tmp_path) as graph:
        ada = await MemoryClient.attach(graph.nodes[1], "ada")
        await ada.subscribe_composite("pair", PAIR, 10_000)
        await trio.sleep(60)  # until trees are planned for both parts, by a clock that jumps
        await graph.settle_graph()
        publisher = await MemoryClient.attach(graph.nodes[3], "publisher")
        ids = []
        for values in ({"x": 1}, {"y": 2}, {"y": 1}):
            ids.append(await publisher.publish(values))
            await graph.settle_graph()
        await until_matched(ada, [("pair", [ids[0], ids[2]])])
        assert ada.got == {}


@on_jumping_clock
async def test_what_was_published_while_the_broker_was_dead_matches_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with memory_scot(tmp_path, routing=TAKING_OVER) as scot:
        number = scot.number("c", 2)
        ada = await MemoryClient.attach(scot.nodes[number], "ada")
        await ada.subscribe_composite("pair", PAIR, 10_000)
        await scot.settle_scot()
        publisher = await MemoryClient.attach(scot.at("a", 0), "publisher")
        ids = [await publisher.publish({"x": 1}), await publisher.publish({"y": 1})]
        await scot.settle_scot()
        await until_matched(ada, [("pair", ids)])
        await scot.stop(number)
        while_dead = await publisher.publish({"x": 2})
        await scot.settle_scot()
        assert all(node.members.deliveries == 0 for node in scot.nodes.values())
        await scot.start(number)
        await scot.settle_scot()
        ada = await MemoryClient.attach(scot.nodes[number], "ada")
        last = await publisher.publish({"y": 2})
        await until_matched(ada, [("pair", [while_dead, last])])
        assert ada.got == {}
        await scot.settle_scot()
