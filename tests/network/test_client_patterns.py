"""Groups, order, last values and requests over one node: from trio, asyncio and neither."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio

from gossamer.client import (
    Client,
    Fate,
    LastMark,
    Payload,
    ReceivedEvent,
    Subscription,
    connect,
    errors,
)
from support.loopback_peer import LoopbackEvent, LoopbackPeer, quote
from support.threaded_node import ALL, ThreadedNode, aside, on_each_loop, prices, threaded_node
from support.waiting import PATIENCE_S

LAST = LastMark("symbol")


async def acknowledge(events: Subscription, *prices: float) -> None:
    for price in prices:
        event = await anext(events)
        assert event.values["price"] == price
        await events.acknowledge(event)


@on_each_loop
async def test_each_event_comes_to_one_worker_or_another_if_that_is_gone(client: Client) -> None:
    async with client.subscribe(ALL, group="work") as stays:
        async with client.subscribe(ALL, group="work", ahead=2) as leaves:
            for price in (1, 2, 3, 4):
                await client.publish(quote(price))
            left = await prices(leaves, 2)
            first = await anext(stays)
            assert first.values["price"] not in left
        # What it had not acknowledged comes to the other one, which is asked for no more.
        got = [first]
        for _turn in range(3):
            await stays.acknowledge(got[-1])
            got.append(await anext(stays))
        assert sorted(event.values["price"] for event in got) == [1, 2, 3, 4]


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
            await acknowledge(events, *prices)
    assert (await client.status())["cluster"] == "desk"


@on_each_loop
async def test_what_is_acknowledged_then_comes_no_more(client: Client, node: ThreadedNode) -> None:
    async with client.subscribe(ALL, group="work") as events:
        for price in (1, 2):
            await aside(node.publish, price)
        event = await anext(events)
        await aside(node.stop)
        await events.acknowledge(event)
        await aside(node.start)
        await acknowledge(events, 2)
        await aside(node.publish, 3)
        assert await prices(events, 1) == [3]


@on_each_loop
async def test_events_wait_for_a_group_without_workers(client: Client, node: ThreadedNode) -> None:
    async with client.subscribe(ALL, group="work"):
        pass
    for price in (1, 2):
        await aside(node.publish, price)
    await aside(node.restart)
    async with client.subscribe(ALL, group="work") as events:
        await acknowledge(events, 1)
        assert await prices(events, 1) == [2]
        with pytest.raises(errors.RefusedByNodeError, match="has workers"):
            await client.leave_group("work", ALL)
    await client.leave_group("work", ALL)
    with pytest.raises(errors.RefusedByNodeError, match="of no group"):
        await client.leave_group("work", ALL)


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


def test_patterns_without_an_event_loop(tmp_path: Path) -> None:
    with threaded_node(tmp_path) as node, connect(tmp_path) as client:
        client.subscribe(ALL, name="ada", ordered=True).close()
        deliver_backwards(node, 1, 2)
        with client.subscribe(ALL, name="ada", ordered=True) as events:
            assert [events.receive(PATIENCE_S).values["price"] for _ in range(2)] == [1, 2]
        for price in (1, 2):
            with client.subscribe(ALL, group="work") as events:
                client.publish(quote(price))
                event = events.receive(PATIENCE_S)
                assert event.values["price"] == price
                events.acknowledge(event)
        client.leave_group("work", ALL)
        client.publish({"symbol": "IBM", "price": 1}, last=LAST)
        with client.subscribe(ALL, last=True) as events:
            assert of(next(events)) == ("IBM", 1, "symbol")
        requests = client.reply("price > 80")

        def serve() -> None:
            for request in requests:
                if request.values["price"] == 99:
                    request.fail("sold out")
                else:
                    request.reply("sold")

        thread = threading.Thread(target=serve)
        thread.start()
        for price, failed in ((81, False), (99, True)):
            (reply,) = client.request(quote(price), timeout_s=PATIENCE_S)
            assert reply.failed is failed
        requests.close()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def deliver_backwards(node: ThreadedNode, *prices: float) -> None:
    async def deliver() -> None:
        for event in reversed([event_of(node.peer, price) for price in prices]):
            node.peer.deliver(event)
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
async def test_events_come_in_order_of_their_publisher(client: Client, node: ThreadedNode) -> None:
    async with client.subscribe(ALL, ordered=True) as events:
        await anyio.sleep(4 * node.peer.round_s)  # the first seconds are not promised
        await aside(deliver_backwards, node, 1, 2, 3)
        got = [await anext(events) for _ in range(3)]
        assert [(one.values["price"], one.late) for one in got] == [(n, False) for n in (1, 2, 3)]
        outcomes = await client.publish_each([quote(price) for price in range(4, 60)])
        assert all(one.error is None for one in outcomes)
        assert await prices(events, 56) == list(range(4, 60))


@on_each_loop
async def test_a_name_gets_its_events_in_order_once(client: Client, node: ThreadedNode) -> None:
    async with client.subscribe(ALL, name="ada", ordered=True):
        pass
    await aside(deliver_backwards, node, 1, 2, 3)
    async with client.subscribe(ALL, name="ada", ordered=True) as events:
        await acknowledge(events, 1)
        await aside(node.restart)
        await aside(deliver_backwards, node, 4, 5)
        got = [await anext(events) for _ in range(4)]
        assert [one.values["price"] for one in got] == [2, 3, 4, 5]
        for event in got[:2]:
            await events.acknowledge(event)
    async with client.subscribe(ALL, name="ada", ordered=True) as events:
        assert await prices(events, 2) == [4, 5]


@on_each_loop
async def test_what_cannot_be_asked_for_is_refused(client: Client, node: ThreadedNode) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"group": "work", "name": "ada"}, "no name of its own"),
        ({"group": "work", "retained": True}, "no name of its own"),
        ({"group": "work", "ordered": True}, "no order"),
        ({"group": "work", "last": True}, "no last values"),
        ({"name": "ada", "last": True}, "without a name or order"),
    ]
    for options, why in refused:
        with pytest.raises(errors.RefusedByNodeError, match=why):
            async with client.subscribe(ALL, **options):
                pass
    with pytest.raises(errors.RefusedByNodeError, match="'price' of a last value is absent"):
        await client.publish({"symbol": "IBM"}, last=LastMark("price"))
    with pytest.raises(errors.RefusedByNodeError, match="48640 bytes, not 48641"):
        await client.publish({"symbol": "IBM"}, last=LAST, payload=Payload(bytes(48_641)))
    assert node.peer.published == []


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
async def test_what_is_deleted_is_kept_no_more_and_followers_are_notified(client: Client) -> None:
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
async def test_no_older_value_comes_after_a_later_one(client: Client, node: ThreadedNode) -> None:
    await client.publish({"symbol": "IBM", "price": 1}, last=LAST)
    await client.publish({"symbol": "IBM", "price": 2}, last=LAST)
    old = node.peer.published[0]
    async with client.subscribe(ALL, last=True) as events:
        assert of(await anext(events)) == ("IBM", 2, "symbol")
        assert node._token is not None
        node._token.run_sync_soon(node.peer.deliver, old)  # a copy that was under way
        await client.publish(quote(3))
        assert of(await anext(events)) == ("IBM", 3, "")


@on_each_loop
async def test_those_whom_a_request_matches_reply(client: Client) -> None:
    async def serve(word: str, *expressions: str, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with client.reply(*expressions) as requests:
            task_status.started()
            async for request in requests:
                assert request.timeout_s == PATIENCE_S
                carried = b"" if request.payload is None else request.payload.data
                await request.reply(Payload(word.encode() + carried, "text/plain"))

    async with anyio.create_task_group() as tasks:
        await tasks.start(serve, "dear", "price > 80")
        await tasks.start(serve, "any", "price >= 0", "price > 900")
        image = Payload(b"!", "image/png")
        asked = await client.request(quote(81), payload=image, timeout_s=PATIENCE_S, replies=2)
        payloads = [Payload(data, "text/plain") for data in (b"any!", b"dear!")]
        assert {(one.payload, one.replier) for one in asked} == {(p, client.peer) for p in payloads}
        (only,) = await client.request(quote(3), timeout_s=PATIENCE_S)
        assert (only.payload.data, only.failed) == (b"any", False)
        tasks.cancel_scope.cancel()


@on_each_loop
async def test_what_comes_of_unanswered_requests(client: Client, node: ThreadedNode) -> None:
    with pytest.raises(errors.NoReplyError, match=r"within 0\.05 s") as raised:
        await client.request(quote(81), timeout_s=0.05)
    assert raised.value.event == f"{len(node.peer.published):016x}"
    with pytest.raises(errors.RefusedByNodeError, match="cost"):
        await client.request({"cost": 3})
    with pytest.raises(errors.RefusedByNodeError, match="48128 bytes, not 48129"):
        await client.request(quote(1), payload=Payload(bytes(48_129)))
    with pytest.raises(errors.UnusableValueError, match="a payload is of 65536 bytes"):
        await client.request(quote(1), payload=Payload(bytes(1 << 16)))
    node.peer.unheld = frozenset({7})
    with pytest.raises(errors.UnacknowledgedError):
        await client.request(quote(7), timeout_s=0.05)


@on_each_loop
async def test_late_and_failed_replies_differ(client: Client) -> None:
    async with client.reply("price > 80") as requests, anyio.create_task_group() as tasks:

        async def serve() -> None:
            await (await anext(requests)).fail("no such share")
            late = await anext(requests)
            await over.wait()
            with pytest.raises(errors.RefusedByNodeError, match="nobody waits"):
                await late.reply("81")

        over = anyio.Event()
        tasks.start_soon(serve)
        (reply,) = await client.request(quote(81), timeout_s=PATIENCE_S)
        assert (reply.failed, reply.payload.data) == (True, b"no such share")
        with pytest.raises(errors.NoReplyError):
            await client.request(quote(82), timeout_s=0.05)
        over.set()
    with pytest.raises(errors.RefusedByNodeError, match="no token of a request"):
        await client._requests.reply("!", Payload(b""))


@on_each_loop
async def test_requests_to_a_name_wait_until_it_is_back(client: Client) -> None:
    async with client.reply("price > 80", name="ada"):
        pass
    async with anyio.create_task_group() as tasks:
        replies = []

        async def ask() -> None:
            replies.extend(await client.request(quote(81), timeout_s=PATIENCE_S))

        tasks.start_soon(ask)
        async with client.reply("price > 80", name="ada") as requests:
            await client.publish(quote(99))  # no request
            request = await anext(requests)
            assert request.values["price"] == 81
            await request.reply(b"81")
    assert [one.payload.data for one in replies] == [b"81"]
    # It was acknowledged, so that it does not come again.
    async with client.reply("price > 80", name="ada") as requests:
        with pytest.raises(errors.NoReplyError):
            await client.request(quote(85), timeout_s=0.05)
        assert await prices(requests, 1) == [85]


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
        assert (fates, client.status()["cluster"]) == ([Fate.ACKNOWLEDGED, Fate.REFUSED], "desk")
