"""Clients of the local socket with a name: what is kept for them, over restarts of the node."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
import trio
import trio.testing

from gossamer.node.config.node import Local
from gossamer.node.errors import RefusedByNodeError
from gossamer.node.local.client import CONNECTED
from gossamer.node.local.frames import RETAINED
from gossamer.node.local.history import steady_clock
from gossamer.node.store import StoreLimits
from support.local_nodes import LocalNode, prices, take, take_from
from support.waiting import PATIENCE_S

DEAR = "price > 80"


async def test_what_is_not_acknowledged_comes_again(node: LocalNode) -> None:
    async with node.running():
        async with node.client("ada") as client:
            await client.subscribe("dear", DEAR)
            await node.publish(81, 82, 83)
            first, _, _ = await take(client, 3)
            await client.acknowledge(first)
        await node.publish(84, 20)
        async with node.client("ada") as client:
            again = await take(client, 3)
            assert [event.values["price"] for event in again] == [82, 83, 84]
            await client.acknowledge(again[-1])
        assert (node.counts.events_sent, node.counts.acknowledged) == (6, 4)
        async with node.client("ada") as client:
            await node.publish(85)
            assert await prices(client, 1) == [85]


async def test_a_follower_survives_a_restart_without_loss_or_repetition(node: LocalNode) -> None:
    changes: list[str] = []
    async with node.restartable() as running, node.follow(on_change=changes.append) as ada:
        await node.publish(1)
        assert await take_from(ada, 1) == [1]
        await node.publish(2)
        with trio.fail_after(PATIENCE_S):
            unacknowledged = await anext(ada)
        await node.publish(3)
        await running.stop()
        await running.start()
        # The network may bring an event again that the node had before its restart.
        node.peer.deliver(node.peer.published[0])
        node.peer.deliver(node.peer.published[1])
        await node.publish(4)
        assert unacknowledged.values["price"] == 2
        assert await take_from(ada, 2) == [3, 4]
    assert changes[0] == changes[-1] == CONNECTED
    assert len(changes) >= 3


@pytest.mark.parametrize("lost", [False, True], ids=["without a name", "of a lost history"])
async def test_a_follower_knows_events_again_by_their_ids(node: LocalNode, lost: bool) -> None:
    async with node.restartable() as running, node.follow(name="ada" if lost else None) as follower:
        await node.publish(1)
        assert await take_from(follower, 1) == [1]
        await running.stop()
        if lost:
            node.lose_history()
        await running.start()
        await node.peer.changes.until(lambda: bool(node.peer.subscribers))
        node.peer.deliver(node.peer.published[0])
        await node.publish(2)
        assert await take_from(follower, 1) == [2]


@pytest.mark.parametrize(
    ("clock", "ahead_s", "left"),
    [(lambda now: now, 61, [2]), (steady_clock, 1e6, [1, 2])],
    ids=["as time passes", "not as the clock is set ahead"],
)
async def test_events_expire_with_the_retention_time(
    tmp_path: Path, clock: Callable[..., Callable[[], float]], ahead_s: float, left: list[int]
) -> None:
    now = [1000.0]
    node = LocalNode(tmp_path, retention_s=60, now=clock(lambda: now[0]))
    async with node.running():
        async with node.follow():
            pass
        await node.publish(1)
        await trio.testing.wait_all_tasks_blocked(0.05)
        now[0] += ahead_s
        await node.publish(2)
        async with node.follow() as follower:
            assert await take_from(follower, len(left)) == left


async def test_an_event_that_left_the_log_is_not_delivered_again(tmp_path: Path) -> None:
    node = LocalNode(tmp_path, limits=StoreLimits(events=1))
    async with node.running(), node.follow() as follower:
        await node.publish(1)
        assert await take_from(follower, 1) == [1]
    async with node.running(), node.follow() as follower:
        await node.publish(2)
        assert await take_from(follower, 1) == [2]
        node.peer.deliver(node.peer.published[0])
        await node.publish(3)
        assert await take_from(follower, 1) == [3]


async def test_a_new_name_may_begin_with_what_others_were_kept(node: LocalNode) -> None:
    async with node.running():
        async with node.follow() as ada:
            await node.publish(1, 90, 2)
            await take_from(ada, 3)
        async with node.follow(DEAR, "new") as late:
            await node.publish(91)
            assert await take_from(late, 1) == [91]
        async with node.follow(DEAR, "old", RETAINED) as early:
            assert await take_from(early, 2) == [90, 91]
        with pytest.raises(RefusedByNodeError, match="only clients with a name"):
            async with node.follow(DEAR, None, RETAINED):
                pass


async def test_a_forgotten_client_is_owed_nothing_nor_what_it_exchanged(node: LocalNode) -> None:
    async with node.running():
        async with node.client("ada") as client:
            await client.subscribe("mine", DEAR)
            await client.subscribe("mine", "price < 10")
            assert len(node.peer.subscribers) == 1
            with pytest.raises(RefusedByNodeError):
                await client.subscribe("mine", "price <")
            await node.publish(90, 5)
            assert await prices(client, 1) == [5]
            await client.forget()
            assert node.peer.subscribers == []
        await node.publish(1)
        async with node.follow() as follower:
            await node.publish(2)
            assert await take_from(follower, 1) == [2]


async def test_a_name_is_for_one_connection_and_waits_for_the_earlier(node: LocalNode) -> None:
    back = trio.Event()

    async def come_back() -> None:
        async with node.client("ada"):
            back.set()

    async with node.running(), trio.open_nursery() as nursery:
        async with node.client("ada"):
            nursery.start_soon(come_back)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not back.is_set()
        with trio.fail_after(PATIENCE_S):
            await back.wait()
        assert node.counts.turned_away == {}
        async with node.client("ada"):
            with pytest.raises(RefusedByNodeError, match="connected already"):
                async with node.client("ada"):
                    pass
    assert node.counts.turned_away == {"busy": 1}


async def test_a_slow_named_client_holds_back_its_own_events_only(tmp_path: Path) -> None:
    node = LocalNode(tmp_path, local=Local(window=2))
    async with node.running(), node.client("slow") as slow:
        await slow.subscribe("all", "price >= 0")
        async with node.client("fast") as fast:
            await fast.subscribe("all", "price >= 0")
            await node.publish(*range(6))
            got = []
            for _ in range(6):
                got += await take(fast, 1)
                await fast.acknowledge(got[-1])
        waiting = await take(slow, 2)
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(anyio.WouldBlock):
            slow.events.receive_nowait()
        await slow.acknowledge(waiting[-1])
        waiting = await take(slow, 2)
    assert [event.values["price"] for event in got] == list(range(6))
    assert [event.values["price"] for event in waiting] == [2, 3]


async def test_a_name_absent_for_longer_than_the_retention_time_is_forgotten(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    node = LocalNode(tmp_path, retention_s=3600)
    async with node.running():
        async with node.client("ada") as client:
            await client.subscribe("all", "price >= 0")
        await settle(lambda: node.counts.ended.total() == 1)
        mock_clock.jump(3500)
        await settle()
        assert len(node.peer.subscribers) == 1
        mock_clock.jump(200)
        # Should it have looked just before, busy with its disk, it looks again a little later.
        await settle(lambda: not node.peer.subscribers, lambda: mock_clock.jump(60))


async def settle(
    done: Callable[[], bool] = lambda: True, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Let everything happen that can without time passing, until ``done``."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        await trio.testing.wait_all_tasks_blocked(0.002)
        if done():
            return
        meanwhile()
    raise AssertionError("it never came about")
