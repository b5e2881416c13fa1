"""A client over restarts of its node, from trio, asyncio and neither."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
import trio
import trio.testing

from gossamer.client import CONNECTED, Client, Fate, Payload, connect, errors, links
from gossamer.client.link import Introduction, Link, LocalAddress, Resume, open_link
from gossamer.client.results import ReceivedEvent
from gossamer.client.session import Session
from gossamer.node.commands.folder import address_of
from gossamer.node.config.node import Local
from gossamer.node.local.client import LocalClient, open_client
from support.local_nodes import LocalNode, RunningNode, prices, take
from support.loopback_peer import quote
from support.node_processes import Shell
from support.threaded_node import ThreadedNode, aside, on_each_loop, threaded_node
from support.threaded_node import prices as all_prices
from support.transport_peers import on_jumping_clock
from support.waiting import PATIENCE_S, Changing


class Changes(Changing):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def __call__(self, change: str) -> None:
        self.told.append(change)
        self.changed()

    async def until_connected(self, times: int = 1) -> None:
        await self.until(lambda: self.told.count(CONNECTED) >= times)


async def test_subscriptions_and_requests_go_on_after_a_restart(node: LocalNode) -> None:
    changes = Changes()
    async with node.restartable() as running, node.client(on_change=changes) as one:
        await one.subscribe("dear", "price > 80")
        await one.subscribe("cheap", "price < 20")
        await one.unsubscribe("cheap")
        await one.publish(quote(81))
        assert await prices(one, 1) == [81]
        for times in (1, 2):
            await running.stop()
            assert not node.peer.subscribers
            await running.start()
            await changes.until_connected(times)
            assert (await one.status())["cluster"] == "desk"
            await one.publish(quote(10))
            await one.publish(quote(82 + times))
            assert await prices(one, 1) == [82 + times]
    assert (changes.told[1::2], len(changes.told)) == ([CONNECTED, CONNECTED], 4)


async def test_requests_wait_while_the_node_is_away(node: LocalNode) -> None:
    async with node.restartable() as running, node.client() as client:
        await running.stop()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.publish, quote(81))
            nursery.start_soon(client.subscribe, "dear", "price > 80")
            await trio.testing.wait_all_tasks_blocked()
            assert len(nursery.child_tasks) == 2
            await running.start()
        assert len(node.peer.published) == 1
        await client.publish(quote(82))
        with trio.fail_after(PATIENCE_S):
            while (await client.events.receive()).values["price"] != 82:
                continue


async def test_a_named_client_misses_nothing_and_gets_nothing_twice(node: LocalNode) -> None:
    changes = Changes()
    async with node.restartable() as running, node.client("ada", on_change=changes) as ada:
        await ada.subscribe("all", "price >= 0")
        await node.publish(1, 2)
        first, second = await take(ada, 2)
        await ada.acknowledge(first)
        await running.stop()
        await ada.acknowledge(second)
        await running.start()
        await changes.until_connected()
        await node.publish(3)
        assert await prices(ada, 1) == [3]
    async with node.running(), node.client("ada") as ada:
        assert await prices(ada, 1) == [3]


WINDOW = 3


@asynccontextmanager
async def a_whole_window(
    folder: Path, *, ordered: bool = False
) -> AsyncIterator[tuple[RunningNode, LocalClient, list[ReceivedEvent]]]:
    """As many events as a client gets at a time; in the end the next one comes, and comes again."""
    node = LocalNode(folder, local=Local(window=WINDOW))
    async with node.restartable() as running, node.client("ada", ordered=ordered) as ada:
        await ada.subscribe("all", "price >= 0")
        await node.publish(*range(WINDOW + 1))
        yield running, ada, await take(ada, WINDOW)
        assert await prices(ada, 1) == [WINDOW]
    async with node.running(), node.client("ada", ordered=ordered) as ada:
        assert await prices(ada, 1) == [WINDOW]


@attrs.define(eq=False)
class SlowToAsk:
    """Has clients ask again for what they had asked for no sooner than `may_ask` is set."""

    may_ask: trio.Event = attrs.field(factory=trio.Event)
    again: int = 0
    changes: Changing = attrs.field(factory=Changing)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ask_again, is_known = Session.ask_again, Session._is_known

        async def ask_later(session: Session[Any], link: Link) -> None:
            if session.peer and session._subscriptions:
                await self.may_ask.wait()
            await ask_again(session, link)

        def count_known(session: Session[Any], event_id: str, position: int) -> bool:
            known = is_known(session, event_id, position)
            self.again += known
            self.changes.changed()
            return known

        monkeypatch.setattr(Session, "ask_again", ask_later)
        monkeypatch.setattr(Session, "_is_known", count_known)


@pytest.mark.parametrize("ordered", [False, True])
async def test_what_is_dealt_with_while_subscriptions_are_asked_for_again_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    """Events that came again over the new connection before."""
    slow = SlowToAsk()
    slow.install(monkeypatch)
    async with a_whole_window(tmp_path, ordered=ordered) as (running, ada, got):
        await running.stop()
        await running.start()
        await slow.changes.until(lambda: slow.again >= WINDOW)
        for event in got:
            await (ada.settle(event) if ordered else ada.acknowledge(event))
        slow.may_ask.set()


async def test_what_is_acknowledged_while_the_node_is_looked_for_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node has been told how far the client is by then, and nothing of this."""
    asked, found = trio.Event(), trio.Event()

    async def open_slowly(address: LocalAddress, who: Introduction, resume: Resume | None) -> Link:
        link = await open_link(address, who, resume)
        asked.set()
        await found.wait()
        return link

    async with a_whole_window(tmp_path) as (running, ada, got):
        monkeypatch.setattr(links, "open_link", open_slowly)
        await running.stop()
        await running.start()
        with trio.fail_after(PATIENCE_S):
            await asked.wait()
        await ada.acknowledge(got[-1])
        found.set()


async def test_acknowledgements_of_a_lost_history_are_not_taken_for_others(node: LocalNode) -> None:
    changes = Changes()
    async with node.restartable() as running, node.client("ada", on_change=changes) as ada:
        await ada.subscribe("all", "price >= 0")
        await node.publish(*range(5))
        old = await take(ada, 5)
        await running.stop()
        node.lose_history()
        await running.start()
        await changes.until_connected()
        await node.publish(9)
        assert await prices(ada, 1) == [9]
        await ada.acknowledge(old[-1])
    async with node.running(), node.client("ada") as ada:
        assert await prices(ada, 1) == [9]


async def test_what_was_being_published_is_said_and_not_published_again(node: LocalNode) -> None:
    changes = Changes()
    outcomes: list[object] = []

    async def publish(client: LocalClient, price: float) -> None:
        try:
            outcomes.append(await client.publish(quote(price)))
        except (errors.PublicationUncertainError, errors.UnacknowledgedError) as error:
            outcomes.append(error)

    async with node.restartable() as running, node.client(on_change=changes) as client:
        node.peer.hold = trio.Event()
        async with trio.open_nursery() as nursery:
            for price in range(3):
                nursery.start_soon(publish, client, price)
            await node.peer.changes.until(lambda: node.peer.waiting == 3)
            await running.stop()
            await running.start()
            await changes.until_connected()
            node.peer.hold = None
        assert [type(one) for one in outcomes] == [errors.PublicationUncertainError] * 3
        assert isinstance(outcomes[0], errors.TransportBroken)
        assert "before it was known whether an event had been published" in str(outcomes[0])
        assert not node.peer.published
        await client.publish(quote(3))
        assert [event.values["price"] for event in node.peer.published] == [3]


@on_jumping_clock
async def test_the_patience_with_a_node_has_an_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, node: LocalNode
) -> None:
    asked: list[Exception] = []

    async def ask(client: LocalClient) -> None:
        try:
            await client.status()
        except errors.NodeLostError as error:
            asked.append(error)

    async def use(running: RunningNode, outside: trio.Nursery) -> None:
        async with node.client(patience_s=90) as client:
            await client.subscribe("dear", "price > 80")
            await running.stop()
            gone_at.append(trio.current_time())
            outside.start_soon(ask, client)
            await trio.sleep_forever()

    gone_at: list[float] = []
    async with node.restartable() as running, trio.open_nursery() as outside:
        caplog.set_level(logging.WARNING)
        with pytest.raises(errors.NodeLostError, match=r"for more than 90 s \(.*\)") as lost:
            await use(running, outside)
        assert lost.value.folder == tmp_path
        assert 90 <= trio.current_time() - gone_at[0] < 91
    assert asked == [lost.value]
    (told,) = caplog.messages
    assert re.fullmatch(rf"without the node in {tmp_path} \(.*trying again for 90 s", told)


async def test_a_node_that_takes_the_client_no_more_ends_it(node: LocalNode) -> None:
    async def use(running: RunningNode) -> None:
        async with node.client() as client:
            await client.subscribe("dear", "price > 80")
            node.peer.capacity = 0
            await running.stop()
            await running.start()
            await trio.sleep_forever()

    async with node.restartable() as running:
        with pytest.raises(errors.RefusedByNodeError, match="subscriptions is full"):
            await use(running)


@on_jumping_clock
async def test_coming_and_leaving_without_a_node_is_quick(node: LocalNode) -> None:
    changes = Changes()
    with pytest.raises(errors.NodeNotRunningError, match=f"no node runs in {node.folder}"):
        async with node.client():
            raise AssertionError("there is no node")
    async with node.restartable() as running:
        async with node.client(on_change=changes):
            await running.stop()
            await changes.until(lambda: bool(changes.told))
            began = trio.current_time()
        assert trio.current_time() == began


@pytest.mark.parametrize("role", ["peer", "broker"])
async def test_a_client_goes_on_with_a_new_node(tmp_path: Path, role: str, one_node: Shell) -> None:
    changes = Changes()
    address = address_of(tmp_path / "desk")
    with ExitStack() as nodes:
        node = nodes.enter_context(one_node.node("desk", "--role", role))
        async with open_client(address, on_change=changes) as client:
            event: dict[str, object] = {"symbol": "IBM", "price": 81}
            if role == "broker":
                await client.advertise("all", "present(price) and present(symbol)")
            await client.subscribe("dear", "price > 80")
            await client.publish(event)
            assert await prices(client, 1) == [81]
            node.kill()
            node.wait()
            await changes.until(lambda: bool(changes.told))
            nodes.enter_context(one_node.node("desk", "--role", role))
            await changes.until_connected()
            await client.publish({**event, "price": 82})
            assert await prices(client, 1) == [82]


@on_each_loop
async def test_events_reach_the_subscriptions_that_they_match(client: Client) -> None:
    async with (
        client.subscribe("price > 80", "price > 90") as dear,
        client.subscribe("price < 20") as cheap,
    ):
        for price in (81, 10, 95):
            await client.publish(quote(price))
        assert (await all_prices(dear, 2), await all_prices(cheap, 1)) == ([81, 95], [10])
    assert (client.role, client.schema["day"]["type"]) == ("peer", "date")
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
        assert await all_prices(quotes, 2) == [2, 3]
    # Nothing but the first was acknowledged.
    async with client.subscribe("price >= 0", name="ada") as quotes:
        assert await all_prices(quotes, 2) == [2, 3]
        await quotes.forget()


@on_each_loop
async def test_fewer_expressions_of_a_name_end_the_others(client: Client) -> None:
    async with client.subscribe("price > 80", "price < 20", "price == 50", name="ada"):
        pass
    async with client.subscribe("price > 80", name="ada") as dear:
        for price in (10, 50, 81):
            await client.publish(quote(price))
        assert await all_prices(dear, 1) == [81]


@on_each_loop
async def test_what_is_known_of_each_event_is_said(client: Client) -> None:
    events: list[Mapping[str, object]] = [quote(81), {"cost": 3}, quote(82), {"price": None}]
    outcomes = await client.publish_each(events)
    fates = [(Fate.ACKNOWLEDGED, True), (Fate.REFUSED, False)] * 2
    assert [(one.fate, bool(one.id)) for one in outcomes] == fates
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

        async def ask() -> None:
            with pytest.raises(errors.PublicationUncertainError):
                await client.request(quote(81), timeout_s=PATIENCE_S)

        tasks.start_soon(publish)
        tasks.start_soon(ask)
        await aside(node.until_publishing, 3)
        await aside(node.stop)
        node.peer.hold = None
        await aside(node.start)
    assert [one.fate for one in outcomes] == [Fate.UNKNOWN] * 2
    assert all(isinstance(one.error, errors.PublicationUncertainError) for one in outcomes)
    assert await client.publish(quote(3))
    assert [event.values["price"] for event in node.peer.published] == [3]


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
