"""Streams of events: what waits, what is dropped, and what counts as delivered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import trio

from gossamer.node.errors import SubscriptionInUse
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.core import Box
from gossamer.node.peer.frames.events import Event
from gossamer.node.peer.subscriptions import BATCH, TURN, Subscribers
from gossamer.protocol.content.schema import FloatAttribute, Schema
from gossamer.protocol.kernel.errors import CapacityError, ExpressionError
from gossamer.protocol.peer.space.hashing import uniform_hashes
from support.tasks import turns_of_others

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
    """Subscribers and what they told."""

    def __init__(self, limit: int = 3) -> None:
        self.boxes: list[Sequence[Box]] = []
        self.named: list[tuple[str, str, bool]] = []
        self.ledger = Ledger()
        self.counters = Counters()
        self.subscribers = Subscribers(
            SCHEMA,
            uniform_hashes(SCHEMA),
            limit,
            self.counters,
            on_change=self.boxes.append,
            on_named=lambda *told: self.named.append(told),
            mark=self.ledger.mark,
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


async def test_the_oldest_event_makes_room_and_that_is_counted_and_logged(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """When it begins, and when the application has caught up."""
    stream = desk.subscribers.add("price >= 0", room=3)
    desk.deliver(*range(10))
    assert (len(stream), stream.dropped, desk.counters.dropped["queue full"]) == (3, 7, 7)
    assert [(await anext(stream)).id for _ in range(3)] == [7, 8, 9]
    said = [(record.message, record.fields) for record in caplog.records]  # type: ignore[attr-defined]
    assert said == [
        ("an application is too slow: it loses events", {"subscription": "price >= 0"}),
        ("an application has caught up", {"subscription": "price >= 0", "lost": 7}),
    ]


def test_boxes_are_told_once_however_many_want_them(desk: Desk) -> None:
    first, second = (desk.subscribers.add("price > 5") for _ in range(2))
    assert len(desk.boxes) == 1
    first.close()
    assert len(desk.boxes) == 1
    second.close()
    assert [len(boxes) for boxes in desk.boxes] == [1, 0]


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


def test_boxes_are_as_fine_as_there_is_room_for() -> None:
    desk = Desk(limit=5)
    many = desk.subscribers.add("price < 100 or 200 < price < 300 or 400 < price < 500")
    assert [len(boxes) for boxes in desk.boxes] == [3]
    few = desk.subscribers.add("price > 900 or price < 50")
    assert [len(boxes) for boxes in desk.boxes] == [3, 5]
    third = desk.subscribers.add("price > 950")
    assert len(desk.boxes[-1]) == 5
    for stream in (many, few, third):
        stream.close()
    assert desk.boxes[-1] == []


async def test_a_named_application_gets_nothing_twice(desk: Desk) -> None:
    desk.ledger.gate.set()
    stream = desk.subscribers.add("price >= 0", "ledger")
    desk.deliver(*range(BATCH + 10))
    desk.deliver(*range(BATCH + 20))
    assert await ids_left(stream) == list(range(BATCH + 20))


async def test_events_wait_for_a_named_application_that_went_away(desk: Desk) -> None:
    desk.ledger.gate.set()
    stream = desk.subscribers.add("price >= 0", "ledger")
    with pytest.raises(SubscriptionInUse):
        desk.subscribers.add("price >= 0", "ledger")
    stream.close()
    desk.deliver(1)
    again = desk.subscribers.add("price >= 0", "ledger")
    assert again is stream
    assert await ids_left(again) == [0]
    assert desk.subscribers.remove("price >= 0", "ledger")
    assert desk.named == [("ledger", "price >= 0", True), ("ledger", "price >= 0", False)]
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


@pytest.mark.parametrize(("events", "most"), [(8 * TURN, math.inf), (1000, 40)])
async def test_a_stream_that_never_runs_dry_gives_turns(
    desk: Desk, events: int, most: float
) -> None:
    """Where a turn is long hundreds of events come in each: 16 a turn would never catch up."""
    stream = desk.subscribers.add("price >= 0")
    desk.deliver(*range(events))
    async with turns_of_others() as turns:
        for _ in range(events):
            await stream.__anext__()
    assert 4 <= turns() <= most


async def test_taking_an_event_heeds_a_cancellation_at_once(desk: Desk) -> None:
    stream = desk.subscribers.add("price >= 0")
    desk.deliver(1, 2)
    with trio.CancelScope() as scope:
        scope.cancel()
        await stream.__anext__()
    assert scope.cancelled_caught
    assert len(stream) == 2
