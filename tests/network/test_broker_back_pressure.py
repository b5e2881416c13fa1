"""Publishers of broker nodes wait for neighbours that do not take what is kept for them."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
import trio

from support.memory_brokers import SETTINGS, MemoryClient, memory_brokers
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

KEPT = 5
AWAY_S = 10.0
FULL_WAIT_S = 30.0


@on_jumping_clock
async def test_nothing_is_lost_where_a_neighbour_is_back_in_time(tmp_path: Path) -> None:
    settings = attrs.evolve(SETTINGS, retained_publications=KEPT)
    async with memory_brokers(tmp_path, [(1, 2)], settings=settings) as brokers:
        exchange = await MemoryClient.attach(brokers.nodes[1], "exchange")
        await exchange.advertise("quotes", "price >= 0")
        await brokers.settle()
        ada = await MemoryClient.attach(brokers.nodes[2], "ada")
        await ada.subscribe("all", "price >= 0")
        await brokers.settle()
        await brokers.stop(2)
        published: list[str] = []

        async def publish() -> None:
            for price in range(3 * KEPT):
                id_ = await exchange.publish({"price": price})
                published.append(id_)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(publish)
            await trio.sleep(AWAY_S)
            assert len(published) == KEPT
            await brokers.start(2)
            await eventually(lambda: len(published) == 3 * KEPT, FULL_WAIT_S)
        await brokers.settle()
        ada = await MemoryClient.attach(brokers.nodes[2], "ada")
        await ada.fetch()
        assert (sorted(ada.got), ada.twice) == (sorted(published), [])
        assert brokers.nodes[1].engine.broker.counters.lost == 0


@on_jumping_clock
async def test_a_neighbour_that_stays_away_holds_nobody_up_for_long(tmp_path: Path) -> None:
    settings = attrs.evolve(SETTINGS, retained_publications=KEPT)
    async with memory_brokers(tmp_path, [(1, 2)], settings=settings) as brokers:
        exchange = await MemoryClient.attach(brokers.nodes[1], "exchange")
        await exchange.advertise("quotes", "price >= 0")
        ada = await MemoryClient.attach(brokers.nodes[2], "ada")
        await ada.subscribe("all", "price >= 0")
        await brokers.settle()
        await brokers.stop(2)
        begun = trio.current_time()
        for price in range(3 * KEPT):
            await exchange.publish({"price": price})
        assert trio.current_time() - begun == pytest.approx(FULL_WAIT_S, abs=1.0)
        assert brokers.nodes[1].engine.broker.counters.lost == 2 * KEPT
        await brokers.start(2)
        await brokers.settle()
