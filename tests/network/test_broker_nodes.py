"""Nodes that are brokers, on a network in memory: what they deliver, over faults and restarts."""

from __future__ import annotations

from pathlib import Path

from support.memory_brokers import MemoryClient, memory_brokers
from support.transport_peers import on_jumping_clock

LINE = [(1, 2), (3, 2)]
OFFER = "present(symbol) and price >= 0"


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
