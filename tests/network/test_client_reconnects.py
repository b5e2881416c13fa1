"""A client goes on over restarts of its node: what it asked for, and what it was publishing."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from gossamer.client import links
from gossamer.client.address import LocalAddress
from gossamer.client.link import Introduction, Link, Resume, open_link
from gossamer.client.session import Session
from gossamer.node import errors
from gossamer.node.commands.folder import address_of
from gossamer.node.config.node import Local
from gossamer.node.local.client import CONNECTED, LocalClient, ReceivedEvent, open_client
from support.local_nodes import LocalNode, RunningNode, prices, take
from support.loopback_peer import quote
from support.node_processes import Shell
from support.waiting import PATIENCE_S, Changing


class Changes(Changing):
    """What a client is told of its connection."""

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
    assert changes.told[1::2] == [CONNECTED, CONNECTED]
    assert len(changes.told) == 4


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
    # How often events came that a client had got before.
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


async def test_the_patience_with_a_node_has_an_end(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
    node: LocalNode,
) -> None:
    assert autojump_clock.rate == 0
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
    assert told.startswith(f"without the node in {tmp_path} (")
    assert told.endswith("trying again for 90 s")


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


async def test_coming_and_leaving_without_a_node_is_quick(
    node: LocalNode, autojump_clock: trio.testing.MockClock
) -> None:
    assert autojump_clock.rate == 0
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
async def test_a_client_goes_on_with_the_next_node(
    tmp_path: Path, role: str, one_node: Shell
) -> None:
    changes = Changes()
    address = address_of(tmp_path / "desk")
    with ExitStack() as nodes:
        node = nodes.enter_context(one_node.node("desk", "--role", role))
        async with open_client(address, on_change=changes) as client:
            event: dict[str, object] = {"symbol": "IBM", "price": 81}
            if role == "broker":
                await client.advertise("all", "present(price) and present(symbol)")
            else:
                event["volume"] = 1
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
