"""Last values over one node, from trio, from asyncio and from neither, and by the commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.client import Client, LastMark, Payload, ReceivedEvent, RefusedByNodeError, connect
from support.loopback_peer import LoopbackEvent, quote
from support.threaded_node import ALL, ThreadedNode, aside, on_each_loop, threaded_node

LAST = LastMark("symbol")


def of(event: ReceivedEvent) -> tuple[object, object, str]:
    return event.values["symbol"], event.values.get("price"), event.last


@on_each_loop
async def test_a_newcomer_begins_with_the_last_of_every_value(client: Client) -> None:
    chart = Payload(b"chart", "image/png")
    await client.publish({"symbol": "IBM", "price": 1}, last=LAST)
    await client.publish({"symbol": "SAP", "price": 2}, last=LAST)
    await client.publish({"symbol": "IBM", "price": 3}, last=LAST, payload=chart)
    await client.publish({"symbol": "IBM", "price": 4})  # not to be kept
    async with client.subscribe(ALL, last=True) as events:
        first = [await anext(events) for _ in range(2)]
        assert [of(one) for one in first] == [("SAP", 2, "symbol"), ("IBM", 3, "symbol")]
        assert [one.payload for one in first] == [None, chart]
        await client.publish(quote(5))
        assert of(await anext(events)) == ("IBM", 5, "")
    async with client.subscribe("price < 3", last=True) as events:
        assert of(await anext(events)) == ("SAP", 2, "symbol")
    async with client.subscribe(ALL) as events:
        await client.publish(quote(6))
        assert of(await anext(events)) == ("IBM", 6, "")


@on_each_loop
async def test_what_is_deleted_is_kept_no_more_and_followers_are_told(client: Client) -> None:
    await client.publish({"symbol": "IBM", "price": 1}, last=LAST)
    async with client.subscribe('symbol == "IBM"', last=True) as events:
        assert not (await anext(events)).deleted
        await client.publish({"symbol": "IBM"}, last=LastMark("symbol", deleted=True))
        event = await anext(events)
        assert (event.last, event.deleted) == ("symbol", True)
    async with client.subscribe('symbol == "IBM"', last=True) as events:
        await client.publish({"symbol": "IBM", "price": 2}, last=LAST)
        assert of(await anext(events)) == ("IBM", 2, "symbol")


@on_each_loop
async def test_an_older_value_comes_no_more_after_a_later_one(
    client: Client, node: ThreadedNode
) -> None:
    await client.publish({"symbol": "IBM", "price": 1}, last=LAST)
    await client.publish({"symbol": "IBM", "price": 2}, last=LAST)
    old = node.peer.published[0]
    async with client.subscribe(ALL, last=True) as events:
        assert of(await anext(events)) == ("IBM", 2, "symbol")
        await aside(deliver, node, old)  # a copy that was under way
        await client.publish(quote(3))
        assert of(await anext(events)) == ("IBM", 3, "")


def deliver(node: ThreadedNode, event: LoopbackEvent) -> None:
    assert node._token is not None
    node._token.run_sync_soon(node.peer.deliver, event)


@on_each_loop
async def test_what_cannot_be_a_last_value_is_refused(client: Client, node: ThreadedNode) -> None:
    with pytest.raises(RefusedByNodeError, match="'price' of a last value is absent"):
        await client.publish({"symbol": "IBM"}, last=LastMark("price"))
    with pytest.raises(RefusedByNodeError, match="48640 bytes, not 48641"):
        await client.publish({"symbol": "IBM"}, last=LAST, payload=Payload(bytes(48_641)))
    assert node.peer.published == []
    with pytest.raises(RefusedByNodeError, match="without a name or order"):
        async with client.subscribe(ALL, name="ada", last=True):
            pass
    with pytest.raises(RefusedByNodeError, match="no last values"):
        async with client.subscribe(ALL, group="work", last=True):
            pass


def test_last_values_without_an_event_loop(tmp_path: Path) -> None:
    with threaded_node(tmp_path), connect(tmp_path) as client:
        client.publish({"symbol": "IBM", "price": 1}, last=LAST)
        with client.subscribe(ALL, last=True) as events:
            assert of(next(events)) == ("IBM", 1, "symbol")
