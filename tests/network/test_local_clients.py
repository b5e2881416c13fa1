"""The local socket from both of its ends: requests, events, and clients that come back."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import anyio
import pytest
import trio
import trio.testing

from gossamer.client import Payload
from gossamer.client.frames import VERSION
from gossamer.client.links import CONNECTED
from gossamer.node.config.node import Local
from gossamer.node.errors import RefusedByNodeError, TransportBroken
from gossamer.node.local.frames import id_text
from gossamer.node.local.groups import wire
from gossamer.node.local.history import steady_clock
from gossamer.node.store import StoreLimits
from gossamer.node.transport.frames import encode_frame
from gossamer.protocol.content.schema import BooleanAttribute, SchemaVersion, changed
from gossamer.protocol.kernel.errors import WrongValueError
from gossamer.protocol.patterns.groups import Round
from support import waiting
from support.local_nodes import ALL, LocalNode, prices, take, take_from
from support.loopback_peer import LoopbackPeer, quote
from support.waiting import PATIENCE_S, eventually

DEAR = "price > 80"
LEADER, EVENT = 0x77, 0x99
QUESTIONS = 200


@pytest.mark.parametrize("address", ["", "127.0.0.1:0"])
async def test_a_subscriber_gets_what_another_publishes(tmp_path: Path, address: str) -> None:
    node = LocalNode(tmp_path, local=Local(address=address))
    async with node.running(), node.client() as subscriber:
        await subscriber.subscribe("dear", DEAR)
        async with node.client() as publisher:
            assert publisher.schema == node.peer.schema
            await publisher.publish(quote(79))
            wanted = await publisher.publish(quote(80.5))
        (event,) = await take(subscriber, 1)
    assert event.id == wanted
    assert event.values == quote(80.5) | {"day": datetime(2026, 11, 20, tzinfo=UTC)}
    assert (event.publisher, event.subscriptions, event.position) == ("0" * 15 + "1", ("dear",), 0)


async def test_an_event_arrives_exactly_and_once_where_it_matches_twice(node: LocalNode) -> None:
    """An ended subscription brings nothing more."""
    third = Fraction(1, 3)
    async with node.running(), node.client() as client:
        await client.subscribe("dear", DEAR)
        await client.subscribe("ibm", 'symbol == "IBM"')
        await client.publish(quote(90))
        await client.publish(quote(third))
        both, one = await take(client, 2)
        assert (set(both.subscriptions), one.subscriptions) == ({"dear", "ibm"}, ("ibm",))
        assert one.values["price"] == third
        await client.unsubscribe("dear")
        assert len(node.peer.subscribers) == 1
        with pytest.raises(RefusedByNodeError, match="no subscription has the id 'dear'"):
            await client.unsubscribe("dear")
        await client.publish(quote(90))
        (event,) = await take(client, 1)
    assert (event.subscriptions, node.peer.subscribers) == (("ibm",), [])


async def test_many_events_are_published_together_or_not_at_all(tmp_path: Path) -> None:
    node = LocalNode(tmp_path, local=Local(publishing=2))
    async with node.running(), node.client() as client:
        ids = await client.publish_many([quote(price) for price in range(10)])
        assert sorted(ids) == sorted(id_text(event.id) for event in node.peer.published)
        prices = {id_text(event.id): event.values["price"] for event in node.peer.published}
        assert [prices[event_id] for event_id in ids] == list(range(10))
        assert await client.publish_many([]) == []
        with pytest.raises(WrongValueError):
            await client.publish_many([quote(1), quote(-1)])
        assert len(node.peer.published) == 10


async def test_clients_of_an_older_schema_read_and_publish_what_both_know(node: LocalNode) -> None:
    first = SchemaVersion.first(node.peer.schema)
    async with node.running(), node.client() as early:
        await early.subscribe("any", "present(price) or present(symbol)")
        wider = changed(node.peer.schema["price"], {"maximum": 10**6})
        node.peer.schema = first.added(BooleanAttribute("halted")).widened(wider).known
        async with node.client() as late:
            await late.subscribe("halted", "halted == true")
            await late.publish({"symbol": "IBM", "price": 200_000, "halted": True})
            (news,) = await take(late, 1)
            (known,) = await take(early, 1)
        node.peer.schema = type(node.peer.schema)(node.peer.schema.attributes[1:])
        with pytest.raises(RefusedByNodeError, match="no attribute 'symbol'"):
            await early.publish({"symbol": "IBM"})
    assert len(node.peer.published) == 1
    assert news.values == {"symbol": "IBM", "price": 200_000, "halted": True}
    assert known.values == {"symbol": "IBM", "price": 200_000}


async def test_a_payload_travels_with_its_event_and_is_kept_with_it(node: LocalNode) -> None:
    payload = Payload(bytes(range(256)), "image/png")
    async with node.running(), node.client() as publisher:
        async with node.client("keeper") as keeper:
            await keeper.subscribe("dear", DEAR)
        await publisher.publish(quote(81), payload=payload)
        await publisher.publish(quote(82))
        async with node.client("keeper") as keeper:
            await keeper.subscribe("dear", DEAR)
            assert [event.payload for event in await take(keeper, 2)] == [payload, None]


async def test_publishing_waits_its_turn_without_holding_up_the_node(tmp_path: Path) -> None:
    node = LocalNode(tmp_path, local=Local(publishing=3))
    node.peer.hold = trio.Event()
    async with node.running(), node.client() as one, node.client() as two:
        async with trio.open_nursery() as nursery:
            for price in range(5):
                nursery.start_soon(one.publish, quote(price))
            await node.peer.changes.until(lambda: node.peer.waiting == 3)
            assert ((await two.status())["cluster"], node.peer.waiting) == ("desk", 3)
            node.peer.hold.set()
        assert len(node.peer.published) == 5


async def test_a_bad_expression_is_refused_in_the_languages_words(node: LocalNode) -> None:
    async with node.running(), node.client() as client:
        for bad, words in (("prize > 80", "did you mean 'price'"), ("price >", "column 8")):
            with pytest.raises(RefusedByNodeError, match=words) as caught:
                await client.subscribe("one", bad)
            assert caught.value.cause == "ExpressionError"
        assert node.counts.refused == {"ExpressionError": 2}
        assert (await client.status()) == {"cluster": "desk"}


async def test_status_and_shutdown_answer_until_a_node_ends(
    tmp_path: Path, node: LocalNode
) -> None:
    async with node.restartable() as running, node.client(patience_s=0) as client:
        assert await client.status() == {"cluster": "desk"}
        assert (await client.snapshot())["peers"][0]["links"] == ["ring"]
        assert await client.metrics() == "gossamer_up 1\n"
        await client.shutdown()
        assert node.stopped.is_set()
        await running.stop()
        with pytest.raises(TransportBroken):
            await client.status()
        with pytest.raises(anyio.EndOfStream):
            await client.events.receive()
        assert not list(tmp_path.glob("*.sock"))


async def test_a_node_says_it_stops(node: LocalNode, mock_clock: trio.testing.MockClock) -> None:
    """Clients that read hold up nothing: no time passes here."""
    assert mock_clock.rate == 0
    async with (
        node.restartable() as running,
        node.client(patience_s=0) as one,
        node.client(patience_s=0) as other,
    ):
        await other.subscribe("dear", "price > 1")
        await running.finish()
        for client in (one, other):
            with pytest.raises(anyio.EndOfStream):
                await client.events.receive()
            assert client.farewell is not None
            assert (client.farewell.cause, client.farewell.detail) == ("shutdown", "the node stops")


async def test_clients_that_do_not_read_hold_up_the_end_for_a_moment(node: LocalNode) -> None:
    async with node.restartable() as running:
        # One has attached, the other has not.
        path = node.address.path
        assert path is not None
        streams = [await trio.open_unix_socket(path) for _ in range(2)]
        await streams[0].send_all(encode_frame("attach", version=VERSION, software="a test"))
        await eventually(lambda: node.counts.attached == 1)
        with trio.fail_after(PATIENCE_S):
            await running.finish()
        for stream in streams:
            await stream.aclose()


def ask(peer: LoopbackPeer, serial: int) -> bytes:
    """The answer to a leader that has this peer's workers take an event."""
    told = Round((1000, LEADER), serial, (LEADER, peer.key), assigned=(EVENT + serial,))
    question = wire.round_question(wire.digest_of("work", ALL), told, {})
    answer: bytes = peer.messages.services[wire.SERVICE](LEADER, question)
    return answer


async def test_a_leader_that_asks_while_a_node_stops_ends_nothing(node: LocalNode) -> None:
    answers: list[bytes] = []

    async def lead() -> None:
        for _ in range(QUESTIONS):
            await trio.lowlevel.checkpoint()
            answers.append(ask(node.peer, len(answers) + 1))

    async with waiting.running() as leading, node.restartable() as running, node.client() as client:
        await client.join("one", ALL, "work")
        assert ask(node.peer, 0) != wire.NOTHING
        leading.start_soon(lead)
        await running.stop()
        assert ask(node.peer, len(answers) + 1) == wire.NOTHING
    assert answers


# Clients with a name: what is kept for them, over restarts of the node.


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
        assert (unacknowledged.values["price"], await take_from(ada, 2)) == (2, [3, 4])
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
        async with node.follow(expression=DEAR, name="new") as late:
            await node.publish(91)
            assert await take_from(late, 1) == [91]
        async with node.follow(expression=DEAR, name="old", retained=True) as early:
            assert await take_from(early, 2) == [90, 91]
        with pytest.raises(RefusedByNodeError, match="only clients with a name"):
            async with node.follow(expression=DEAR, name=None, retained=True):
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
