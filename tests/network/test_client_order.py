"""Subscriptions in order over one node, from trio, from asyncio and from neither."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
import trio

from gossamer.client import Client, RefusedByNodeError, connect
from support.loopback_peer import LoopbackEvent, LoopbackPeer, quote
from support.threaded_node import ALL, ThreadedNode, aside, on_each_loop, prices, threaded_node
from support.waiting import PATIENCE_S


def deliver_backwards(node: ThreadedNode, *prices: float) -> None:
    """Publish events of these prices, which come in the opposite order."""
    peer = node.peer

    async def deliver() -> None:
        events = [event_of(peer, price) for price in prices]
        for event in reversed(events):
            peer.deliver(event)
        await trio.lowlevel.checkpoint()

    assert node._token is not None
    trio.from_thread.run(deliver, trio_token=node._token)


def event_of(peer: LoopbackPeer, price: float) -> LoopbackEvent:
    """An event that is published at the end of all so far, and acknowledged."""
    time = peer.reserve()
    values = peer.schema.check_event(quote(price))
    event = LoopbackEvent(1000 + int(price), values, peer.key, time / 1e6)
    peer.order.note(time, event.id, values)
    peer.order.settle(time)
    return event


@on_each_loop
async def test_events_come_in_the_order_of_their_publisher(
    client: Client, node: ThreadedNode
) -> None:
    # The first seconds of a subscription are not promised.
    async with client.subscribe(ALL, ordered=True) as events:
        await anyio.sleep(4 * node.peer.round_s)
        await aside(deliver_backwards, node, 1, 2, 3)
        got = [await anext(events) for _ in range(3)]
        assert [(one.values["price"], one.late) for one in got] == [(n, False) for n in (1, 2, 3)]
        outcomes = await client.publish_each([quote(price) for price in range(4, 60)])
        assert all(one.error is None for one in outcomes)
        assert await prices(events, 56) == list(range(4, 60))


@on_each_loop
async def test_a_name_gets_its_events_in_order_once_over_restarts(
    client: Client, node: ThreadedNode
) -> None:
    async with client.subscribe(ALL, name="ada", ordered=True):
        pass
    await aside(deliver_backwards, node, 1, 2, 3)
    async with client.subscribe(ALL, name="ada", ordered=True) as events:
        first = await anext(events)
        assert first.values["price"] == 1
        await events.acknowledge(first)
        await aside(node.restart)
        await aside(deliver_backwards, node, 4, 5)
        got = [await anext(events) for _ in range(4)]
        assert [one.values["price"] for one in got] == [2, 3, 4, 5]
        for event in got[:2]:
            await events.acknowledge(event)
    async with client.subscribe(ALL, name="ada", ordered=True) as events:
        assert await prices(events, 2) == [4, 5]


@on_each_loop
async def test_groups_have_no_order(client: Client) -> None:
    with pytest.raises(RefusedByNodeError, match="no order"):
        async with client.subscribe(ALL, group="work", ordered=True):
            pass


def test_order_without_an_event_loop(tmp_path: Path) -> None:
    with threaded_node(tmp_path) as node, connect(tmp_path) as client:
        client.subscribe(ALL, name="ada", ordered=True).close()
        deliver_backwards(node, 1, 2)
        with client.subscribe(ALL, name="ada", ordered=True) as events:
            for price in (1, 2):
                event = events.receive(PATIENCE_S)
                assert event.values["price"] == price
                events.acknowledge(event)
