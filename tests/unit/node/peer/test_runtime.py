"""Rounds, waiting frames, certificates asked for, and streams of events."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest
import trio

from gossamer.node import errors
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.certificate_requests import MAX_HELD, CertificateService
from gossamer.node.peer.frames.core import SELF, Box, Core, header, unreachable
from gossamer.node.peer.frames.events import Event
from gossamer.node.peer.load.inbox import Rest, SteadyTimer
from gossamer.node.peer.load.sender import MAX_WAITING, PoolSender
from gossamer.node.peer.subscriptions import BATCH, TURN, Subscribers
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.store.store import StoredSubscription
from gossamer.node.transport.frames import FrameDecoder
from gossamer.node.transport.limits import HEADER_BYTES, Limits
from gossamer.node.transport.send_queue import Backlog, Flow
from gossamer.protocol.content.schema import FloatAttribute, Schema
from gossamer.protocol.kernel.errors import CapacityError, ExpressionError
from gossamer.protocol.kernel.records import KIND, TO, UNREACHABLE
from gossamer.protocol.peer.record_table.records import ACKNOWLEDGE, SAMPLE_TIMER
from gossamer.protocol.peer.settings import presets
from gossamer.protocol.peer.space.hashing import uniform_hashes
from gossamer.protocol.peer.step import TIMERS
from support.clusters import MadeCluster
from support.waiting import running, turns_of_others


async def test_rounds_come_steadily_each_with_every_timer_and_some_are_left_out() -> None:
    """A paused process goes on with the next round instead of catching up."""
    counters = Counters()
    timer = SteadyTimer(2.0, 0.5, counters)
    seen = []
    for _ in range(3 * len(TIMERS)):
        number, kind = await timer.next_timer()
        seen.append((trio.current_time(), number, kind))
    assert seen == [(0.5 + 2 * i, i, kind) for i in range(3) for kind in TIMERS]
    assert (counters.rounds, counters.rounds_late) == (3, 0)
    await trio.sleep(60.25)
    times = []
    for _ in range(3 * len(TIMERS)):
        _, kind = await timer.next_timer()
        if kind == SAMPLE_TIMER:
            times.append(trio.current_time())
    assert times == [64.75, 66.5, 68.5]
    assert counters.rounds_late == 1
    assert timer.complaint() == "", "a pause is no slowness"
    for _ in range(4):
        await trio.sleep(5.0)
        for _ in range(len(TIMERS)):
            await timer.next_timer()
    assert timer.complaint() == "this node is too slow: 5 of the last 30 rounds began late"
    await trio.sleep(60.0)
    assert timer.complaint() == ""


async def test_rounds_with_nothing_to_do_are_slept_through_and_pass_when_something_comes() -> None:
    counters, quiet = Counters(), [3]
    timer = SteadyTimer(2.0, 0.5, counters, quiet_rounds=lambda: quiet.pop() if quiet else 0)
    seen: list[tuple[float, int]] = []

    def fire(number: int, kind: int) -> None:
        rest.catch_up()
        rest.look_again(soon=True)  # of no effect in the middle of a round
        if kind == TIMERS[-1]:
            seen.append((trio.current_time(), number))

    async def run() -> None:
        while True:
            fire(*await timer.next_timer())

    rest = Rest(timer, fire)
    async with running(run):
        await trio.sleep(3.0)
        assert seen == []
        rest.catch_up()
        assert seen == [(3.0, 0), (3.0, 1)]
        quiet.append(5)
        rest.look_again()
        await trio.sleep(10.0)
        assert len(seen) == 2
        await trio.sleep(4.0)
        assert seen[2:] == [*((14.5, number) for number in range(2, 8)), (16.5, 8)]
        quiet.append(2)
        await trio.sleep(2.0)
        rest.look_again(soon=True)
        await trio.sleep(2.0)
        assert seen[9:] == [(18.5, 9), (20.5, 10)]
    assert (counters.rounds, counters.rounds_late) == (11, 0)


class Pool:
    """The part of a connection pool that an outlet uses; peers are down, up or full."""

    def __init__(self) -> None:
        self.up: set[int] = set()
        self.sent: list[tuple[int, bytes]] = []
        self.dialled: Counter[int] = Counter()
        self.changed = trio.Event()
        self.backlog = Backlog()

    def try_send(self, key: int, frame: bytes, _: Flow | None = None) -> bool:
        if len(frame) > 10:
            raise errors.FrameTooLarge(len(frame), 10)
        if key in self.up:
            self.sent.append((key, frame))
        return key in self.up

    async def send(self, key: int, frame: bytes, _: Flow | None = None) -> None:
        self.dialled[key] += 1
        await self.changed.wait()
        if not self.try_send(key, frame):
            raise errors.PeerUnreachable(key, [])


class Sending:
    def __init__(self) -> None:
        self.pool = Pool()
        self.counters = Counters()
        self.back: list[list[int]] = []
        self.dropped: list[tuple[int, Flow]] = []
        pool: Any = self.pool
        self.frame_sender = PoolSender(pool, self.counters, lambda *what: self.dropped.append(what))

    async def give_up_dialling(self) -> None:
        self.pool.changed.set()
        await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
async def sending(nursery: trio.Nursery) -> Sending:
    made = Sending()
    await nursery.start(made.frame_sender.run, made.back.append)
    return made


async def test_frames_wait_in_order_for_a_peer_that_is_being_dialled(sending: Sending) -> None:
    sending.frame_sender.send(7, b"one", [1])
    sending.pool.up.add(7)
    sending.frame_sender.send(7, b"two", [2])
    assert list(sending.frame_sender.held()) == [[1], [2]]
    await sending.give_up_dialling()
    sending.frame_sender.send(7, b"three", [3])
    assert [frame for _, frame in sending.pool.sent] == [b"one", b"two", b"three"]
    assert (sending.frame_sender.waiting, sending.back) == (0, [])


async def test_a_peer_that_stops_sends_nothing_that_would_have_to_wait() -> None:
    sending = Sending()
    async with trio.open_nursery() as nursery:
        await nursery.start(sending.frame_sender.run, sending.back.append)
        nursery.cancel_scope.cancel()
    sending.frame_sender.send(7, b"late", [1])
    assert sending.counters.dropped["unreachable"] == 1
    assert list(sending.frame_sender.held()) == []


async def test_what_is_of_no_flow_takes_the_place_of_what_is_of_one(sending: Sending) -> None:
    """What was asked for, and gossip, are not lost where events come too fast."""
    flow = Flow(5, 6)
    for number in range(MAX_WAITING):
        sending.frame_sender.send(7, b"event", [number], flow if number < 2 else None)
    sending.frame_sender.send(7, b"asked for", [-1])
    sending.frame_sender.send(7, b"asked for", [-2])
    assert sending.dropped == [(7, flow)] * 2
    sending.frame_sender.send(7, b"asked for", [-3])
    assert sending.counters.dropped["queue full"] == 1
    kept = sorted(record[0] for record in sending.frame_sender.held())
    assert kept == [-2, -1, *range(2, MAX_WAITING)]
    await sending.give_up_dialling()


async def test_undelivered_frames_come_back_and_too_many_are_dropped(sending: Sending) -> None:
    for number in range(MAX_WAITING + 5):
        sending.frame_sender.send(7, b"frame", [number])
    sending.frame_sender.send(8, bytes(11), [-1])
    await sending.give_up_dialling()
    assert sending.back == [[number] for number in range(MAX_WAITING)]
    dropped = sending.counters.dropped
    assert (dropped["queue full"], dropped["unreachable"]) == (5, MAX_WAITING)
    assert dropped["too large"] == 1
    assert sending.pool.dialled == {7: 1}


class Asking:
    def __init__(self, cluster: MadeCluster) -> None:
        self.sent: list[dict[str, Any]] = []
        self.members = cluster.first, cluster.admit("asked for")
        self.now = cluster.now
        self.books = [DescriptorCache(m.authority, m.revoked) for m in self.members]
        self.certificates = [
            CertificateService(
                address_book, (m.identity.key, m.certificate.der), self._send, lambda: self.now
            )
            for m, address_book in zip(self.members, self.books, strict=True)
        ]

    def _send(self, _key: int, frame: bytes) -> None:
        self.sent.append(FrameDecoder(Limits()).decode(frame[HEADER_BYTES:]))


def test_a_frame_waits_for_the_certificates_that_it_needs(cluster: MadeCluster) -> None:
    asking = Asking(cluster)
    wanted = asking.members[1].identity.key
    one, two = asking.certificates
    assert one.hold(9, {"type": "a"}, {wanted})
    assert one.hold(9, {"type": "b"}, {wanted})
    assert asking.sent == [{"type": "certificates wanted", "keys": [wanted]}]
    two.receive(5, {"type": "certificates wanted", "keys": [wanted, 123]})
    (answer,) = asking.sent[1:]
    assert len(answer["certificates"]) == 1
    assert one.take(9, answer["certificates"]) == [{"type": "a"}, {"type": "b"}]
    assert asking.books[0].find_certificate(wanted) == answer["certificates"][0]


def test_frames_wait_in_bounds_and_for_asked_certificates_only(cluster: MadeCluster) -> None:
    asking = Asking(cluster)
    certificates, certificate = asking.certificates[0], asking.members[1].certificate.der
    assert certificates.take(9, [certificate]) == []
    assert asking.books[0].find_certificate(asking.members[1].identity.key) is None
    with pytest.raises(errors.CertificateError):
        certificates.take(9, [b"nonsense"])
    held = [certificates.hold(9, {"type": str(i)}, {1}) for i in range(MAX_HELD + 2)]
    assert held == [True] * MAX_HELD + [False] * 2
    assert certificates.give_up() == []
    assert [frame["type"] for _, frame in certificates.give_up()] == list(map(str, range(MAX_HELD)))
    assert certificates.give_up() == []


def test_a_record_that_comes_back_is_marked_and_the_original_is_not() -> None:
    record = header(ACKNOWLEDGE, 5, [1, 2])
    back = unreachable(record)
    assert (back[KIND], back[TO]) == (ACKNOWLEDGE + UNREACHABLE, SELF)
    assert record[KIND] == ACKNOWLEDGE


def test_more_subscriptions_than_the_settings_allow_are_refused() -> None:
    core = Core(presets.resilient(8, subscriptions=2), 5)
    boxes = [Box((0, i), 1) for i in range(3)]
    core.subscribe(boxes[:2])
    with pytest.raises(CapacityError, match=r"protocol\.subscriptions"):
        core.subscribe(boxes)
    assert core.state.constrained[SELF].tolist() == [1, 1]
    core.subscribe([])
    assert core.state.constrained[SELF].tolist() == [-1, -1]


SCHEMA = Schema([FloatAttribute("price", 0, 1000)])


class Ledger:
    """Notes deliveries as the state file does, while the gate is open."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()
        self.gate = trio.Event()

    async def mark(self, name: str, events: Sequence[Event]) -> Sequence[Event]:
        await self.gate.wait()
        new = [event for event in events if (name, event.id) not in self.seen]
        self.seen |= {(name, event.id) for event in new}
        return new


class Desk:
    def __init__(self, limit: int = 3) -> None:
        self.boxes: list[Mapping[Box, float]] = []
        self.named: list[tuple[str, str, bool]] = []
        self.ledger = Ledger()
        self.now = 0.0
        self.counters = Counters()
        self.subscribers = Subscribers(
            SCHEMA,
            uniform_hashes(SCHEMA),
            limit,
            self.counters,
            on_change=self.boxes.append,
            on_named=lambda *told: self.named.append(told),
            mark=self.ledger.mark,
            clock=lambda: self.now,
        )

    def deliver(self, *prices: float) -> None:
        for number, price in enumerate(prices):
            self.subscribers.deliver(Event(number, {"price": price}, 1, 0.0))


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def ids_left(stream: Any) -> list[int]:
    """The events that a stream has still when it is closed."""
    stream.close()
    return [event.id async for event in stream]


async def test_each_stream_gets_what_its_expression_matches_exactly(desk: Desk) -> None:
    cheap, dear = (desk.subscribers.add(text) for text in ("price < 5", "price >= 5"))
    desk.deliver(1, 5, 4.999999999, 7)
    assert await ids_left(cheap) == [0, 2]
    assert await ids_left(dear) == [1, 3]
    assert desk.counters.events_delivered == 4


async def test_the_oldest_event_makes_room(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """And this is counted, and logged at the beginning and the end."""
    stream = desk.subscribers.add("price >= 0", room=3)
    desk.deliver(*range(10))
    assert (len(stream), stream.dropped, desk.counters.dropped["queue full"]) == (3, 7, 7)
    assert [(await anext(stream)).id for _ in range(3)] == [7, 8, 9]
    said = [(record.message, record.fields) for record in caplog.records]  # type: ignore[attr-defined]
    assert said == [
        ("an application is too slow: it loses events", {"subscription": "price >= 0"}),
        ("an application has caught up", {"subscription": "price >= 0", "lost": 7}),
    ]


def test_a_refused_subscription_changes_nothing() -> None:
    desk = Desk(limit=1)
    with pytest.raises(ExpressionError, match="no event can match all of this"):
        desk.subscribers.add("(price < 5 or price > 100) and (price == 7 or price == 8)")
    assert not desk.boxes
    desk.subscribers.add("price > 5")
    with pytest.raises(CapacityError, match="subscriptions is full at 1"):
        desk.subscribers.add("price > 6")
    with pytest.raises(ExpressionError):
        desk.subscribers.add("price >")
    desk.subscribers.add("price > 5")
    assert (len(desk.subscribers), len(desk.boxes)) == (2, 1)


def test_boxes_are_told_once_and_as_fine_as_there_is_room_for() -> None:
    desk = Desk(limit=5)
    first, second = (desk.subscribers.add("price > 5") for _ in range(2))
    first.close()
    assert [len(boxes) for boxes in desk.boxes] == [1]
    second.close()
    assert [len(boxes) for boxes in desk.boxes] == [1, 0]
    many = desk.subscribers.add("price < 100 or 200 < price < 300 or 400 < price < 500")
    few = desk.subscribers.add("price > 900 or price < 50")
    assert [len(boxes) for boxes in desk.boxes[2:]] == [3, 5]
    third = desk.subscribers.add("price > 950")
    assert len(desk.boxes[-1]) == 5
    for stream in (many, few, third):
        stream.close()
    assert not desk.boxes[-1]


def test_boxes_are_told_with_how_long_they_have_been_in_force_where_one_outlived_a_peer() -> None:
    """Two that want the same are one, in force as long as the longer; one of nobody knows when."""
    desk = Desk()
    desk.subscribers.add("price > 5", past_s=40)
    desk.now = 10
    desk.subscribers.add("price > 5")
    kept = StoredSubscription("app", "x", "price > 6", 100)
    desk.subscribers.recall([kept], now=170)
    assert list(desk.boxes[-1].values()) == [50, 70]
    desk.subscribers.recall([attrs.evolve(kept, client="later")], now=90)
    assert list(desk.boxes[-1].values()) == [50, math.inf]


async def test_events_wait_for_a_named_application_which_gets_none_twice(desk: Desk) -> None:
    desk.ledger.gate.set()
    other = desk.subscribers.add("price >= 0", "other")
    desk.deliver(*range(BATCH + 10))
    desk.deliver(*range(BATCH + 20))
    assert await ids_left(other) == list(range(BATCH + 20))
    assert desk.subscribers.remove("price >= 0", "other")
    stream = desk.subscribers.add("price >= 0", "ledger")
    with pytest.raises(errors.RequestError):
        desk.subscribers.add("price >= 0", "ledger")
    stream.close()
    desk.deliver(1)
    again = desk.subscribers.add("price >= 0", "ledger")
    assert again is stream
    assert await ids_left(again) == [0]
    assert desk.subscribers.remove("price >= 0", "ledger")
    assert desk.named[2:] == [("ledger", "price >= 0", True), ("ledger", "price >= 0", False)]
    assert len(desk.subscribers) == 0


async def test_cancelling_while_deliveries_are_noted_loses_none_of_them(desk: Desk) -> None:
    """The first is handed to the task that was cancelled; the others wait."""
    stream = desk.subscribers.add("price >= 0", "ledger")
    desk.deliver(1, 2)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.__anext__)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            desk.ledger.gate.set()
    assert await ids_left(stream) == [1]
    assert len(desk.ledger.seen) == 2


async def test_a_stream_waits_for_events_and_ends_when_it_is_closed(desk: Desk) -> None:
    """Taking one heeds a cancellation at once."""
    stream = desk.subscribers.add("price >= 0")
    taken: list[int] = []

    async def take() -> None:
        taken.extend([event.id async for event in stream])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        desk.deliver(1, 2)
        await trio.testing.wait_all_tasks_blocked()
        assert taken == []
        stream.close()
    assert taken == [0, 1]
    stream = desk.subscribers.add("price > 0")
    desk.deliver(1, 2)
    with trio.CancelScope() as scope:
        scope.cancel()
        await stream.__anext__()
    assert scope.cancelled_caught
    assert len(stream) == 2


@pytest.mark.parametrize(("events", "most"), [(8 * TURN, math.inf), (1000, 40)])
async def test_a_stream_that_never_dries_gives_turns(desk: Desk, events: int, most: float) -> None:
    """Where a turn is long hundreds of events come in each: 16 a turn would never catch up."""
    stream = desk.subscribers.add("price >= 0")
    desk.deliver(*range(events))
    async with turns_of_others() as turns:
        for _ in range(events):
            await stream.__anext__()
    assert 4 <= turns() <= most
