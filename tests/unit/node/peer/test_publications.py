"""Applications wait for the acknowledgement of what they publish, and no longer than they must."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from gossamer.node.errors import NotAcknowledged
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.core import SELF, Box, Core, Record
from gossamer.node.peer.frames.events import EventMemory, SharedMemory
from gossamer.node.peer.load.sender import FEWEST, Window
from gossamer.node.peer.publications import Publications, Sealed
from gossamer.protocol.kernel.records import BODY, KIND
from gossamer.protocol.peer.record_table.records import PUBLISH, WITHDRAW
from gossamer.protocol.peer.rendezvous.publication import PENDING_EVENT
from gossamer.protocol.peer.settings import presets
from support.waiting import running

SLOTS = 2
PATIENCE_S = 10.0


@attrs.define(eq=False)
class Silence:
    """A runtime that takes commands, and acknowledges what a test tells it to."""

    core: Core
    taken: list[Record] = attrs.field(factory=list)

    def handle(self, record: Record) -> None:
        self.taken.append(list(record))

    def publish(self, publications: Sequence[Record]) -> None:
        self.taken += map(list, publications)

    def kinds(self) -> list[int]:
        return [record[KIND] for record in self.taken]


@attrs.define(eq=False)
class Desk:
    runtime: Silence = attrs.field(
        factory=lambda: Silence(Core(presets.resilient(8, pending_publications=SLOTS), 1))
    )
    events: EventMemory = attrs.field(factory=lambda: EventMemory(1, 1 << 10))
    counters: Counters = attrs.field(factory=Counters)
    retry_s: float = PATIENCE_S
    publications: Publications = attrs.field(init=False)
    outcomes: dict[int, str] = attrs.field(factory=dict)
    held: list[int] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.publications = Publications(
            self.runtime, self.events, PATIENCE_S, self.counters, self.retry_s
        )

    async def publish(self, *events: int) -> None:
        sealed = [Sealed(event, b"values", [5]) for event in events]
        failed = await self.publications.publish(sealed, self.held.append)
        for event in events:
            error = failed.get(event)
            self.outcomes[event] = "acknowledged" if error is None else type(error).__name__


@asynccontextmanager
async def a_place(window: Window, whose: str = "") -> AsyncIterator[None]:
    await window.take(whose)
    try:
        yield
    finally:
        window.give_back()


async def test_publishing_ends_with_the_acknowledgement_or_in_time_without() -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.publish, 6)
        await trio.sleep(3)
        assert desk.outcomes == {}
        desk.publications.note(6, True)
    assert trio.current_time() == 3
    assert desk.outcomes == {6: "acknowledged"}
    assert desk.counters.events_acknowledged == desk.counters.events_published == 1
    assert desk.runtime.kinds() == [PUBLISH]
    failed = await desk.publications.publish([Sealed(7, b"values", [5])], desk.held.append)
    with pytest.raises(NotAcknowledged, match=r"event 0{15}7 was not .* within 10 s, .* or none"):
        raise failed[7]
    assert trio.current_time() == 3 + PATIENCE_S
    assert desk.runtime.kinds() == [PUBLISH, PUBLISH, WITHDRAW]
    assert desk.counters.events_unacknowledged == 1
    desk.publications.note(7, True)
    assert desk.counters.events_acknowledged == 1


@pytest.mark.parametrize(("answered_s", "together"), [(0.9, 16), (1.1, 8)])
async def test_fewer_are_under_way_once_answers_come_after_another_copy(
    nursery: trio.Nursery, answered_s: float, together: int
) -> None:
    core = Core(presets.resilient(8, pending_publications=16), 1)
    desk = Desk(runtime=Silence(core), retry_s=1.0)
    nursery.start_soon(desk.publish, *range(16))
    await trio.sleep(answered_s)
    for event in range(16):
        desk.publications.note(event, True)
    await trio.testing.wait_all_tasks_blocked()
    desk.runtime.taken.clear()
    for event in range(16, 32):
        nursery.start_soon(desk.publish, event)
    await trio.testing.wait_all_tasks_blocked()
    assert desk.runtime.kinds() == [PUBLISH] * together


async def test_what_nobody_waits_for_before_it_is_sent_is_not_sent() -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        async with running(partial(desk.publish, 7), partial(desk.publish, 8)):
            await trio.lowlevel.checkpoint()
        nursery.start_soon(desk.publish, 9)
        await trio.sleep(1)
        desk.publications.note(9, True)
    kinds = [(record[KIND], record[BODY]) for record in desk.runtime.taken]
    published = [event for kind, event in kinds if kind == PUBLISH]
    withdrawn = [event for kind, event in kinds if kind == WITHDRAW]
    assert len(published) == len({*published})
    assert published[-1] == 9
    assert {*published[:-1]} <= {*withdrawn} <= {7, 8}
    # A command to publish after that to wait no longer would take a place for ever.
    for event in withdrawn:
        assert (PUBLISH, event) not in kinds[kinds.index((WITHDRAW, event)) :]


@pytest.mark.parametrize("together", [False, True])
async def test_more_publications_than_slots_wait_for_their_turn(together: bool) -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        for events in [range(5)] if together else zip(range(5)):
            nursery.start_soon(desk.publish, *events)
            await trio.sleep(0.1)
        for event in range(5):
            assert desk.runtime.kinds() == [PUBLISH] * min(5, SLOTS + event)
            desk.publications.note(event, True)
            await trio.sleep(1)
            assert desk.held == [*range(event + 1)]
    assert desk.outcomes == dict.fromkeys(range(5), "acknowledged")
    assert desk.counters.events_acknowledged == 5


async def test_of_events_published_together_each_has_its_own_outcome_and_time() -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.publish, 1, 2, 3)
        await trio.sleep(3)
        desk.publications.note(2, True)
        await trio.sleep(1)
        assert [record[BODY] for record in desk.runtime.taken] == [1, 2, 3]
        await trio.sleep(PATIENCE_S - 4.5)
        assert 1 not in desk.outcomes
        desk.publications.note(3, True)
    assert trio.current_time() == PATIENCE_S
    assert desk.outcomes == {1: "NotAcknowledged", 2: "acknowledged", 3: "acknowledged"}
    assert desk.runtime.kinds()[-1] == WITHDRAW


async def test_others_have_their_turn_between_events_published_together() -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.publish, *range(10, 20))
        await trio.sleep(1)
        publish = desk.publications.publish
        nursery.start_soon(publish, [Sealed(1, b"values", [5])], desk.held.append, "other")
        await trio.sleep(1)
        for record in desk.runtime.taken:
            if record[KIND] == PUBLISH:
                desk.publications.note(record[BODY], True)
                await trio.sleep(0.1)
    assert desk.held.index(1) <= SLOTS + 1


@pytest.mark.parametrize("capacity", [2, 20, pytest.param(200, marks=pytest.mark.campaign)])
async def test_what_is_published_faster_than_it_is_acknowledged_waits_here(capacity: int) -> None:
    """An overlay deals with so many copies a second, in order, those that come again included.

    It takes none while the first has waited for a second. Half of what it can do is of use at
    least, however much more is published.
    """
    overlay, window = SlowOverlay(), Window(128, 3.0)
    seconds = 100

    async def publish() -> None:
        async with a_place(window):
            window.note(await overlay.publish())

    async with running() as nursery:
        for tick in range(2 * seconds * capacity):
            while len(nursery.child_tasks) < 256:
                nursery.start_soon(publish)
            await trio.sleep(1 / capacity)
            if tick == seconds * capacity:
                overlay.acknowledged = 0
            overlay.deal_with_one()
    print(f"{overlay.acknowledged} of {seconds * capacity} acknowledged, window {window.size:.0f}")
    assert overlay.acknowledged >= seconds * capacity / 2


@attrs.define(eq=False)
class SlowOverlay:
    """A queue of copies; who publishes sends another after pauses that double."""

    copies: deque[tuple[float, trio.Event]] = attrs.field(factory=deque)
    acknowledged: int = 0

    async def publish(self) -> float:
        """Publish an event; return when it is acknowledged, or given up, and after how long."""
        answer, began = trio.Event(), trio.current_time()
        with trio.move_on_after(PATIENCE_S):
            for pause_s in itertools.chain((1.0, 2.0), itertools.repeat(4.0)):
                if not self.copies or trio.current_time() - self.copies[0][0] <= 1.0:
                    self.copies.append((trio.current_time(), answer))
                with trio.move_on_after(pause_s):
                    await answer.wait()
                    self.acknowledged += 1
                    break
        return trio.current_time() - began

    def deal_with_one(self) -> None:
        if self.copies:
            self.copies.popleft()[1].set()


async def test_the_window_shrinks_once_for_what_was_sent_together_and_grows_again() -> None:
    window = Window(64, 3.0)
    for _ in range(64):
        window.note(5.0)
    assert window.size == 32
    await trio.sleep(3)
    window.note(5.0)
    assert window.size == 16
    for _ in range(10):
        await trio.sleep(3)
        window.note(10.0)
    assert window.size == FEWEST
    for _ in range(64 * 64):
        window.note(0.1)
    assert window.size == 64


async def order_of_places(holders: list[tuple[str, str, float]]) -> str:
    """Who gets the one place of a window in turn: of an application, by name, and how patient."""
    window, order = Window(1, 3.0), list[str]()

    async def hold(whose: str, name: str, patience_s: float) -> None:
        with trio.move_on_after(patience_s):
            async with a_place(window, whose):
                order.append(name)
                await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for holder in holders:
            nursery.start_soon(hold, *holder)
            await trio.sleep(0.01)
    return "".join(order)


async def test_places_are_given_in_order_and_applications_take_turns() -> None:
    holders = [("a", 10), ("b", 10), ("c", 0.5), ("d", 1.5), ("e", 10)]
    assert await order_of_places([("", *one) for one in holders]) == "abe"
    assert await order_of_places([(one, one, math.inf) for one in "gggggghhi"]) == "gghighggg"


async def test_an_application_that_gives_up_leaves_its_slot() -> None:
    desk = Desk()
    for event in range(3 * SLOTS):
        with trio.move_on_after(1) as scope:
            await desk.publish(event)
        assert scope.cancelled_caught
    assert desk.runtime.kinds() == [PUBLISH, WITHDRAW] * 3 * SLOTS
    assert desk.events.pinned == {}


@pytest.mark.parametrize("together", [False, True])
async def test_a_peer_that_stops_lets_nobody_wait_and_publishes_no_more(together: bool) -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        for events in [(1, 2, 3)] if together else [(1,), (2,), (3,)]:
            nursery.start_soon(desk.publish, *events)
            await trio.testing.wait_all_tasks_blocked()
        desk.publications.stop()
    assert trio.current_time() == 0
    assert desk.outcomes == {1: "NotAcknowledged", 2: "NotAcknowledged", 3: "PeerStopped"}
    assert desk.runtime.kinds() == [PUBLISH, PUBLISH, WITHDRAW, WITHDRAW]


async def test_values_outlast_others_until_the_acknowledgement_and_while_they_are_held() -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.publish, 7)
        await trio.sleep(1)
        for other in range(100, 110):
            desk.events.keep(other, b"others")
        assert desk.events.find(7) == b"values"
        desk.publications.note(7, True)
    desk.events.keep(110, b"others")
    assert desk.events.find(7) is None
    events = EventMemory(2, 1 << 10, SharedMemory(2, 1 << 10))
    for event in range(3):
        events.keep(event, b"values")
        events.hold(event)
        events.hold(99)
    for event in range(10, 20):
        events.keep(event, b"others")
    assert [events.find(event) for event in range(3)] == [None, b"values", b"values"]


def test_a_slot_that_was_withdrawn_is_free() -> None:
    """Of the real core, which publishes into nothing: its only neighbour never answers."""
    core = Core(presets.resilient(8, pending_publications=1), 1)
    core.subscribe([Box((0, 9), 1)])
    core.take(core.join(5, [1 << 61, 1 << 61, *core.profile[2:]]))
    core.take(core.publish(7, [(1 << 61) - 1]))
    assert core.state.pending[SELF, 0, PENDING_EVENT] == 7
    for withdrawn, left in ((8, 7), (7, -1)):
        core.take(core.withdraw(withdrawn))
        assert core.state.pending[SELF, 0, PENDING_EVENT] == left
