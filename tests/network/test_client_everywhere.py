"""One client from trio, from asyncio and from neither, over restarts of its node."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
import trio

from gossamer.client import CONNECTED, Client, Fate, Payload, connect, errors
from support.loopback_peer import quote
from support.threaded_node import ThreadedNode, aside, on_each_loop, prices, threaded_node
from support.waiting import PATIENCE_S


@on_each_loop
async def test_events_reach_the_subscriptions_that_they_match(client: Client) -> None:
    async with (
        client.subscribe("price > 80", "price > 90") as dear,
        client.subscribe("price < 20") as cheap,
    ):
        for price in (81, 10, 95):
            await client.publish(quote(price))
        assert await prices(dear, 2) == [81, 95]
        assert await prices(cheap, 1) == [10]
    assert client.role == "peer"
    assert client.schema["day"]["type"] == "date"
    assert (await client.status())["cluster"] == "desk"


@on_each_loop
async def test_a_payload_travels_beside_the_values(client: Client) -> None:
    image = Payload(bytes(range(256)), "image/png")
    async with client.subscribe("price > 80") as quotes:
        await client.publish(quote(81), payload=image)
        await client.publish({"price": 82})
        assert (await anext(quotes)).payload == image
        second = await anext(quotes)
        assert (second.values, second.payload) == ({"price": 82}, None)
    with pytest.raises(errors.RefusedByNodeError, match="content type"):
        await client.publish(quote(83), payload=Payload(b"", "no type"))
    with pytest.raises(errors.UnusableValueError, match="49153 bytes"):
        await client.publish(quote(83), payload=Payload(bytes((48 << 10) + 1)))


@on_each_loop
async def test_a_named_subscription_misses_nothing(client: Client, node: ThreadedNode) -> None:
    async with client.subscribe("price >= 0", name="ada") as quotes:
        for price in (1, 2):
            await aside(node.publish, price)
        first = await anext(quotes)
        assert first.values["price"] == 1
        await quotes.acknowledge(first)
        await aside(node.restart)
        await aside(node.publish, 3)
        assert await prices(quotes, 2) == [2, 3]
    # Nothing but the first was acknowledged.
    async with client.subscribe("price >= 0", name="ada") as quotes:
        assert await prices(quotes, 2) == [2, 3]
        await quotes.forget()


@on_each_loop
async def test_fewer_expressions_of_a_name_end_the_others(client: Client) -> None:
    async with client.subscribe("price > 80", "price < 20", "price == 50", name="ada"):
        pass
    async with client.subscribe("price > 80", name="ada") as dear:
        for price in (10, 50, 81):
            await client.publish(quote(price))
        assert await prices(dear, 1) == [81]


@on_each_loop
async def test_what_is_known_of_each_event_is_said(client: Client) -> None:
    events: list[Mapping[str, object]] = [quote(81), {"cost": 3}, quote(82), {"price": None}]
    outcomes = await client.publish_each(events)
    fates = [Fate.ACKNOWLEDGED, Fate.REFUSED, Fate.ACKNOWLEDGED, Fate.REFUSED]
    assert [one.fate for one in outcomes] == fates
    assert [bool(one.id) for one in outcomes] == [True, False, True, False]
    assert "cost" in str(outcomes[1].error)
    with pytest.raises(errors.RefusedByNodeError, match="cost"):
        await client.publish({"cost": 3})
    with pytest.raises(errors.RefusedByNodeError):
        async with client.subscribe("cost > 3"):
            pass


@on_each_loop
async def test_the_fate_of_events_in_flight_is_unknown(client: Client, node: ThreadedNode) -> None:
    node.peer.hold = trio.Event()
    outcomes = []
    async with anyio.create_task_group() as tasks:

        async def publish() -> None:
            outcomes.extend(await client.publish_each([quote(1), quote(2)]))

        tasks.start_soon(publish)
        await aside(node.until_publishing, 2)
        await aside(node.stop)
        node.peer.hold = None
        await aside(node.start)
    assert [one.fate for one in outcomes] == [Fate.UNKNOWN] * 2
    assert all(isinstance(one.error, errors.PublicationUncertainError) for one in outcomes)
    assert await client.publish(quote(3))
    assert [event.values["price"] for event in node.peer.published] == [3]


def test_a_program_without_an_event_loop(tmp_path: Path) -> None:
    with threaded_node(tmp_path) as node, connect(tmp_path) as client:
        prices = []
        quotes = client.subscribe("price > 80")
        for price in (81, 10, 95):
            client.publish(quote(price))
        for event in quotes:
            prices.append(event.values["price"])
            if len(prices) == 2:
                break
        assert prices == [81, 95]
        with pytest.raises(TimeoutError):
            quotes.receive(timeout_s=0)
        node.publish(96)
        assert quotes.receive(PATIENCE_S).values["price"] == 96
        quotes.close()
        assert list(quotes) == []
        fates = [one.fate for one in client.publish_each([quote(1), {}])]
        assert fates == [Fate.ACKNOWLEDGED, Fate.REFUSED]
        assert client.status()["cluster"] == "desk"


def test_a_blocking_client_goes_on_over_a_restart(tmp_path: Path) -> None:
    changes: list[str] = []
    back = threading.Event()

    def changed(change: str) -> None:
        changes.append(change)
        if changes.count(CONNECTED) == 2:  # of the requests, and of the subscription
            back.set()

    with (
        threaded_node(tmp_path) as node,
        connect(tmp_path, on_change=changed) as client,
        client.subscribe("price > 80", name="ada") as quotes,
    ):
        client.publish(quote(81))
        quotes.acknowledge(next(quotes))
        node.restart()
        assert back.wait(PATIENCE_S)
        client.publish(quote(82))
        assert next(quotes).values["price"] == 82


def test_a_blocking_loop_says_why_it_ended_and_without_a_node_there_is_none(tmp_path: Path) -> None:
    def use() -> None:
        with connect(tmp_path, patience_s=0.3) as client:
            quotes = client.subscribe("price > 80")
            node.stop()
            for _ in quotes:
                raise AssertionError("nothing was published")

    lost = pytest.raises(errors.NodeLostError, match=r"more than 0\.3 s")
    with threaded_node(tmp_path) as node, lost:
        use()
    with pytest.raises(errors.NodeNotRunningError, match="gossamer node run"), connect(tmp_path):
        raise AssertionError("there is no node")
