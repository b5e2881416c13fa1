"""Queue groups over one node, from trio, from asyncio and from neither, and over its restarts."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from gossamer.client import Client, RefusedByNodeError, connect
from support.loopback_peer import quote
from support.threaded_node import ALL, ThreadedNode, aside, on_each_loop, prices, threaded_node
from support.waiting import PATIENCE_S


@on_each_loop
async def test_each_event_comes_to_one_worker_and_to_another_when_that_is_gone(
    client: Client,
) -> None:
    async with client.subscribe(ALL, group="work") as stays:
        async with client.subscribe(ALL, group="work", ahead=2) as leaves:
            for price in (1, 2, 3, 4):
                await client.publish(quote(price))
            left = await prices(leaves, 2)
            first = await anext(stays)
            assert first.values["price"] not in left
        # What it had not acknowledged comes to the other one, which is asked for no more.
        await stays.acknowledge(first)
        rest = []
        for _turn in range(3):
            event = await anext(stays)
            rest.append(event.values["price"])
            await stays.acknowledge(event)
        assert sorted([first.values["price"], *rest]) == [1, 2, 3, 4]


@on_each_loop
async def test_groups_are_apart_by_name_and_by_expression(client: Client) -> None:
    async with (
        client.subscribe(ALL, group="work") as one,
        client.subscribe(ALL, group="play") as other,
        client.subscribe("price > 5", "price < 3", group="work") as part,
    ):
        for price in (1, 4, 9):
            await client.publish(quote(price))
        for events, prices in ((one, [1, 4, 9]), (other, [1, 4, 9]), (part, [1, 9])):
            for price in prices:
                event = await anext(events)
                assert event.values["price"] == price
                await events.acknowledge(event)
    status = await client.status()
    assert status["cluster"] == "desk"


@on_each_loop
async def test_what_is_acknowledged_while_the_node_is_away_comes_no_more(
    client: Client, node: ThreadedNode
) -> None:
    async with client.subscribe(ALL, group="work") as events:
        for price in (1, 2):
            await aside(node.publish, price)
        event = await anext(events)
        await aside(node.stop)
        await events.acknowledge(event)
        await aside(node.start)
        event = await anext(events)
        assert event.values["price"] == 2
        await events.acknowledge(event)
        await aside(node.publish, 3)
        assert await prices(events, 1) == [3]


@on_each_loop
async def test_events_wait_for_a_group_without_workers_until_the_node_leaves_it(
    client: Client, node: ThreadedNode
) -> None:
    async with client.subscribe(ALL, group="work"):
        pass
    for price in (1, 2):
        await aside(node.publish, price)
    await aside(node.restart)
    async with client.subscribe(ALL, group="work") as events:
        event = await anext(events)
        assert event.values["price"] == 1
        await events.acknowledge(event)
        assert await prices(events, 1) == [2]
        with pytest.raises(RefusedByNodeError, match="has workers"):
            await client.leave_group("work", ALL)
    await client.leave_group("work", ALL)
    with pytest.raises(RefusedByNodeError, match="of no group"):
        await client.leave_group("work", ALL)
    for options in ({"name": "ada"}, {"retained": True}):
        with pytest.raises(RefusedByNodeError, match="no name of its own"):
            async with client.subscribe(ALL, group="work", **options):
                pass


@on_each_loop
async def test_one_of_a_group_replies(client: Client) -> None:
    served = []

    async def serve(name: str, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with client.reply(ALL, group="price") as requests:
            task_status.started()
            async for request in requests:
                served.append(name)
                await request.reply(name)

    async with anyio.create_task_group() as tasks:
        await tasks.start(serve, "ada")
        await tasks.start(serve, "ben")
        for _turn in range(4):
            await client.request(quote(1), timeout_s=PATIENCE_S)
        tasks.cancel_scope.cancel()
    assert len(served) == 4


def test_a_group_without_an_event_loop(tmp_path: Path) -> None:
    with threaded_node(tmp_path), connect(tmp_path) as client:
        with client.subscribe(ALL, group="work") as events:
            client.publish(quote(1))
            event = events.receive(PATIENCE_S)
            events.acknowledge(event)
        with client.subscribe(ALL, group="work") as events:
            client.publish(quote(2))
            assert events.receive(PATIENCE_S).values["price"] == 2
        client.leave_group("work", ALL)
