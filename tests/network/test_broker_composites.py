"""Composite subscriptions at brokers in memory: matches, what they survive, what they leave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import frozen

from gossamer.node.broker.deliveries import PART, CompositeSubscription
from gossamer.node.broker.numbers import broker_gauges, broker_metrics_text
from gossamer.node.store.broker import StoredComposite
from gossamer.protocol.content import filters
from gossamer.protocol.kernel.errors import CapacityError
from support.memory_brokers import (
    PATIENCE_S,
    MemoryBrokers,
    MemoryClient,
    memory_brokers,
    memory_graph,
    memory_scot,
)
from support.transport_peers import on_jumping_clock

pytestmark = on_jumping_clock
LINE = [(1, 2), (3, 2)]
OFFER = "present(symbol) and price >= 0"
IBM, HPQ = '{symbol == "IBM"}', '{symbol == "HPQ"}'
BOTH = f"{IBM} & {HPQ}"
THEN = "{x == $N} -> {y == $N}"
PAIR = '{symbol == "IBM" and price == $X} & {symbol == "HPQ" and price == $X}'


@frozen
class Overlay:
    brokers: MemoryBrokers
    exchange: MemoryClient
    ada: MemoryClient

    async def publish(self, symbol: str, price: float = 1) -> str:
        found = await self.exchange.publish({"symbol": symbol, "price": price})
        await self.brokers.settle()
        return found

    async def ask(self, label: str, text: str, within_s: float, **more: Any) -> None:
        await self.ada.subscribe_composite(label, text, within_s, **more)
        await self.brokers.settle()

    async def restart(self) -> None:
        await self.ada.return_to(await self.brokers.start(3))
        await self.brokers.settle()

    async def stored(self) -> list[StoredComposite]:
        run = self.brokers.nodes[3]._given.writer.run
        return list(await run(lambda store: store.broker.composites()))


@pytest.fixture
def name() -> str | None:
    return "ada"


@pytest.fixture
async def one(tmp_path: Path, name: str | None) -> AsyncIterator[Overlay]:
    """A row of brokers, with an exchange at one end and a client of this name at the other."""
    async with memory_brokers(tmp_path, LINE) as brokers:
        exchange = await brokers.client(1, "exchange", offers=OFFER)
        yield Overlay(brokers, exchange, await brokers.client(3, name))


def everywhere(subscriptions: int) -> dict[int, int]:
    return dict.fromkeys((1, 2, 3), subscriptions)


EITHER = f"{IBM} || {HPQ} & {{price > 5}}"


@pytest.mark.parametrize("name", [None])
@pytest.mark.parametrize(
    ("text", "published", "expected"),
    [
        (PAIR, ["IBM 80", "IBM 81", "HPQ 80"], [[0, 2]]),
        (EITHER, ["IBM 1", "HPQ 6"], [[0], [1, 1]]),
        (f"{IBM} followed by {HPQ}", ["HPQ 1", "IBM 1", "HPQ 1"], [[1, 2]]),
    ],
    ids=["together", "either", "in a row"],
)
async def test_publications_that_match_together_come_as_one_delivery(
    one: Overlay, text: str, published: list[str], expected: list[list[int]]
) -> None:
    await one.ask("label", text, 10)
    ids: list[str] = []
    for symbol, price in map(str.split, published):
        complete = [places for places in expected if max(places) < len(ids)]
        assert len(one.ada.matches) == len(complete)
        ids.append(await one.publish(symbol, int(price)))
    assert one.ada.matches == [("label", [ids[place] for place in row]) for row in expected]
    assert one.ada.got == {}


@pytest.mark.parametrize("name", [None])
async def test_what_comes_after_the_window_matches_nothing_before_it(one: Overlay) -> None:
    await one.ask("pair", BOTH, 10)
    await one.publish("IBM")
    await trio.sleep(30)
    hpq = await one.publish("HPQ")
    assert one.ada.matches == []
    # Ordinary subscriptions get their publications besides.
    await one.ada.subscribe("dear", "price > 50")
    await one.brokers.settle()
    ibm = await one.publish("IBM", 80)
    assert one.ada.matches == [("pair", [ibm, hpq])]
    assert one.ada.got == {ibm: ({"symbol": "IBM", "price": 80}, ["dear"])}


@pytest.mark.parametrize("name", [None, "ada"])
async def test_equal_filters_are_subscribed_to_once_and_leave_nothing(one: Overlay) -> None:
    text = f"{IBM} & {HPQ} || {IBM} -> {{price > 5}}"
    with pytest.raises(CapacityError, match="filters of a client"):
        await one.ask("many", text, 10, most=2)
    assert one.brokers.subscriptions() == everywhere(0)
    await one.ask("many", text, 10, most=3)
    assert one.brokers.subscriptions() == everywhere(3)
    (told,) = one.brokers.nodes[3].tables()["composites"]
    del told["client"]
    assert told == {"label": "many", "composite": text, "within": 10, "filters": 3}
    await one.ask("many", f"{IBM} & {HPQ} & {{price > 0}}", 10)
    assert one.brokers.subscriptions() == everywhere(3)
    await one.ada.unsubscribe("many")
    await one.brokers.settle()
    assert one.brokers.subscriptions() == everywhere(0)
    assert one.brokers.nodes[3].tables()["composites"] == []
    await one.publish("IBM")
    await one.publish("HPQ")
    await one.ada.fetch()
    assert (one.ada.matches, await one.stored()) == ([], [])


async def test_one_subscription_of_a_label_takes_the_place_of_another(one: Overlay) -> None:
    await one.ada.subscribe("mine", "price > 50")
    await one.ask("mine", BOTH, 10)
    assert one.brokers.subscriptions() == everywhere(2)
    await one.ask("mine", BOTH, 20)
    (before,) = await one.stored()
    assert (before.within_s, one.brokers.subscriptions()[1]) == (20, 2)
    await one.ask("mine", BOTH, 20)
    (row,) = await one.stored()
    assert row.mark == before.mark


@pytest.mark.parametrize("how", [MemoryBrokers.stop, MemoryBrokers.crash])
async def test_a_named_client_has_its_matches_over_restarts(one: Overlay, how: Any) -> None:
    await one.ask("pair", BOTH, 100)
    first = [await one.publish("IBM"), await one.publish("HPQ")]
    waits = await one.publish("IBM", 5)
    await how(one.brokers, 3)
    await one.restart()
    await one.ada.fetch()
    assert one.ada.matches == [("pair", first), ("pair", [waits, first[1]])]
    # What waited is forgotten, what the client asked for is not.
    hpq = await one.publish("HPQ", 7)
    ibm = await one.publish("IBM", 7)
    await one.ada.fetch()
    assert one.ada.matches[2:] == [("pair", [ibm, hpq])]
    assert (one.brokers.subscriptions(), one.ada.twice) == (everywhere(2), [])


async def test_what_was_half_sent_or_half_withdrawn_is_put_right_later(one: Overlay) -> None:
    await one.ask("kept", PAIR, 10)
    node = one.brokers.nodes[3]
    (part, *_) = [label for label in one.ada.member.subscriptions if label.startswith(PART)]
    await node.members.unsubscribe(one.ada.member, part)
    await node.members.subscribe(one.ada.member, f"{PART}old 0", filters.parse("price > 1"))
    for row in [
        StoredComposite("ada", "unreadable", "m", "{price >}", 1.0),
        StoredComposite("gone", "pair", "m", PAIR, 1.0),
    ]:
        await node._given.writer.run(
            lambda store, row=row: store.broker.keep_composite(row)  # type: ignore[misc]
        )
    await one.brokers.crash(3)
    await one.restart()
    assert one.brokers.subscriptions() == everywhere(2)
    assert [row.label for row in await one.stored()] == ["kept"]
    ids = [await one.publish("IBM", 3), await one.publish("HPQ", 3)]
    await one.ada.fetch()
    assert (one.ada.matches, one.ada.got) == ([("kept", ids)], {})


@pytest.mark.parametrize("stays_away", [False, True])
async def test_a_client_that_is_forgotten_leaves_nothing(one: Overlay, stays_away: bool) -> None:
    node = one.brokers.nodes[3]
    node.members._retention_s = 200.0
    await one.ask("pair", BOTH, 10)
    await one.publish("IBM")
    await one.publish("HPQ")
    assert node.members.deliveries == 1
    if stays_away:
        node.members.leave(one.ada.member)
        await trio.sleep(400)
    else:
        await node.members.forget(one.ada.member)
    await one.brokers.settle()
    assert one.brokers.subscriptions() == everywhere(0)
    assert (len(node.composites), node.members.deliveries, await one.stored()) == (0, 0, [])


async def test_a_client_cut_off_while_it_asks_has_all_parts_or_none(one: Overlay) -> None:
    node = one.brokers.nodes[3]
    counts = set()
    for turns in range(12):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one.ada.subscribe_composite, "pair", PAIR, 1.0 + turns)
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        await one.brokers.settle()
        counts.add(len(node.composites))
        held: list[CompositeSubscription] = list(one.ada.member.composites.held.values())
        wanted = {label for composite in held for label in composite.parts}
        assert one.ada.member.subscriptions.keys() == wanted
        assert one.brokers.subscriptions()[3] == len(wanted)
        assert [row.mark for row in await one.stored()] == [composite.mark for composite in held]
    assert (counts, len(node.composites)) == ({0, 1}, 1)


@pytest.mark.parametrize("name", [None])
async def test_what_a_client_misses_is_bounded_counted_and_logged(
    one: Overlay, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gossamer.node.broker.deliveries.MOST_WAITING", 3)
    monkeypatch.setattr("gossamer.node.broker.deliveries.MOST_MATCHES", 2)
    node = one.brokers.nodes[3]
    await one.ask("pair", BOTH, 1000)
    ids = [await one.publish("IBM", number) for number in range(5)]
    assert node.composites.waiting == 3
    hpq = await one.publish("HPQ")
    assert one.ada.matches == [("pair", [ids[3], hpq]), ("pair", [ids[4], hpq])]
    hpq = await one.publish("HPQ")
    losses = node.composites.losses
    assert (losses.dropped, losses.too_long) == (4, 0)
    monkeypatch.setattr("gossamer.node.broker.composites.MOST_BYTES", 10)
    await trio.sleep(100)
    before = len(one.ada.matches)
    await one.publish("IBM")
    assert (len(one.ada.matches), losses.too_long) == (before, 2)
    text = broker_metrics_text(node, broker_gauges(node, 1)).decode()
    assert 'gossamer_broker_composites_lost_total{cause="too_long"} 2.0' in text
    assert "gossamer_broker_composites_waiting 3.0" in text
    logged = [record.getMessage() for record in caplog.records]
    assert sum("it misses some matches" in line for line in logged) == 2


async def until_matched(ada: MemoryClient, expected: list[tuple[str, list[str]]]) -> None:
    with trio.fail_after(PATIENCE_S):
        while ada.matches != expected:
            await ada.fetch()
            await trio.sleep(0.1)


async def test_publications_match_together_on_a_graph(tmp_path: Path) -> None:
    async with memory_graph(tmp_path) as graph:
        ada = await graph.client(1, "ada")
        await ada.subscribe_composite("pair", THEN, 10_000)
        await trio.sleep(60)  # until trees are planned for both parts, by a clock that jumps
        await graph.settle()
        publisher = await graph.client(3, "publisher")
        ids = []
        for values in ({"x": 1}, {"y": 2}, {"y": 1}):
            ids.append(await publisher.publish(values))
            await graph.settle()
        await until_matched(ada, [("pair", [ids[0], ids[2]])])
        assert ada.got == {}


async def test_what_was_published_while_the_broker_was_dead_matches_later(tmp_path: Path) -> None:
    async with memory_scot(tmp_path) as scot:
        number = scot.number("c", 2)
        ada = await scot.client(number, "ada")
        await ada.subscribe_composite("pair", THEN, 10_000)
        await scot.settle()
        publisher = await scot.client(scot.number("a", 0), "publisher")
        ids = [await publisher.publish({"x": 1}), await publisher.publish({"y": 1})]
        await scot.settle()
        await until_matched(ada, [("pair", ids)])
        await scot.stop(number)
        while_dead = await publisher.publish({"x": 2})
        await scot.settle()
        assert all(node.members.deliveries == 0 for node in scot.nodes.values())
        node = await scot.start(number)
        await scot.settle()
        await ada.return_to(node)
        last = await publisher.publish({"y": 2})
        await until_matched(ada, [("pair", ids), ("pair", [while_dead, last])])
        assert ada.got == {}
        await scot.settle()
