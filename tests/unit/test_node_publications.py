"""Applications wait for the acknowledgement of what they publish, and no longer than they must."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
import trio

from gossamer.node.core import SELF, Box, Core, Record
from gossamer.node.errors import NotAcknowledged, PeerStopped
from gossamer.node.events import EventMemory, ValueMemory
from gossamer.node.metrics import Counters
from gossamer.node.publications import Publications
from gossamer.protocol import config
from gossamer.protocol.messages import KIND, PUBLISH, WITHDRAW
from gossamer.protocol.rendezvous.publication import PENDING_EVENT
from support.transport_peers import on_jumping_clock

SLOTS = 2
PATIENCE_S = 10.0


@attrs.define(eq=False)
class Silence:
    """A runtime that takes commands, and acknowledges what a test tells it to."""

    core: Core
    taken: list[Record] = attrs.field(factory=list)
    on_publication: Callable[[int, bool], None] = lambda _event, _held: None

    def handle(self, record: Record) -> None:
        self.taken.append(list(record))

    def kinds(self) -> list[int]:
        return [record[KIND] for record in self.taken]


@attrs.define(eq=False)
class Desk:
    """Publications over silence."""

    runtime: Silence = attrs.field(
        factory=lambda: Silence(Core(config.resilient(8, pending_publications=SLOTS), 1))
    )
    events: EventMemory = attrs.field(factory=lambda: EventMemory(1, 1 << 10))
    counters: Counters = attrs.field(factory=Counters)
    publications: Publications = attrs.field(init=False)
    outcomes: dict[int, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.publications = Publications(
            self.runtime,  # type: ignore[arg-type]
            self.events,
            PATIENCE_S,
            self.counters,
        )

    async def publish(self, event: int) -> None:
        try:
            await self.publications.publish(event, b"values", [5])
            self.outcomes[event] = "acknowledged"
        except (NotAcknowledged, PeerStopped) as error:
            self.outcomes[event] = type(error).__name__


@on_jumping_clock
async def test_publishing_ends_with_the_acknowledgement() -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.publish, 7)
        await trio.sleep(3)
        assert desk.outcomes == {}
        desk.runtime.on_publication(7, True)
    assert trio.current_time() == 3
    assert desk.outcomes == {7: "acknowledged"}
    assert desk.counters.events_acknowledged == desk.counters.events_published == 1
    assert desk.runtime.kinds() == [PUBLISH]


@on_jumping_clock
async def test_what_is_not_acknowledged_in_time_is_withdrawn_and_said_so() -> None:
    desk = Desk()
    with pytest.raises(NotAcknowledged, match=r"event 0{15}7 was not .* within 10 s, .* or none"):
        await desk.publications.publish(7, b"values", [5])
    assert trio.current_time() == PATIENCE_S
    assert desk.runtime.kinds() == [PUBLISH, WITHDRAW]
    assert desk.counters.events_unacknowledged == 1
    desk.runtime.on_publication(7, True)
    assert desk.counters.events_acknowledged == 0


@on_jumping_clock
async def test_more_publications_than_slots_wait_for_their_turn() -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        for event in range(5):
            nursery.start_soon(desk.publish, event)
            await trio.sleep(0.1)
        for event in range(5):
            assert desk.runtime.kinds() == [PUBLISH] * min(5, SLOTS + event)
            desk.runtime.on_publication(event, True)
            await trio.sleep(0.1)
    assert desk.outcomes == dict.fromkeys(range(5), "acknowledged")


@on_jumping_clock
async def test_an_application_that_gives_up_leaves_its_slot() -> None:
    desk = Desk()
    for event in range(3 * SLOTS):
        with trio.move_on_after(1) as scope:
            await desk.publish(event)
        assert scope.cancelled_caught
    assert desk.runtime.kinds() == [PUBLISH, WITHDRAW] * 3 * SLOTS
    assert desk.events.pinned == {}


@on_jumping_clock
async def test_a_peer_that_stops_lets_nobody_wait() -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        for event in range(3):
            nursery.start_soon(desk.publish, event)
        await trio.sleep(1)
        desk.publications.stop()
    assert trio.current_time() == 1
    outcomes = sorted(desk.outcomes.values())
    assert outcomes == ["NotAcknowledged", "NotAcknowledged", "PeerStopped"]


@on_jumping_clock
async def test_values_outlast_others_until_the_acknowledgement() -> None:
    """They are needed to publish again, whatever passes this peer meanwhile."""
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.publish, 7)
        await trio.sleep(1)
        for other in range(100, 110):
            desk.events.keep(other, b"others")
        assert desk.events.find(7) == b"values"
        desk.runtime.on_publication(7, True)
    desk.events.keep(110, b"others")
    assert desk.events.find(7) is None


def test_values_of_events_that_are_held_outlast_those_that_pass() -> None:
    events = EventMemory(2, 1 << 10, ValueMemory(2, 1 << 10))
    for event in range(3):
        events.keep(event, b"values")
        events.hold(event)
        events.hold(99)
    for event in range(10, 20):
        events.keep(event, b"others")
    assert [events.find(event) for event in range(3)] == [None, b"values", b"values"]


def test_a_slot_that_was_withdrawn_is_free() -> None:
    """Of the real core, which publishes into nothing: its only neighbour never answers."""
    core = Core(config.resilient(8, pending_publications=1), 1)
    core.subscribe([Box((0, 9), 1)])
    neighbour = [1 << 61, 1 << 61, *core.profile[2:]]
    core.take(core.join(5, neighbour))
    core.take(core.publish(7, [(1 << 61) - 1]))
    assert core.state.pending[SELF, 0, PENDING_EVENT] == 7
    core.take(core.withdraw(8))
    assert core.state.pending[SELF, 0, PENDING_EVENT] == 7
    core.take(core.withdraw(7))
    assert core.state.pending[SELF, 0, PENDING_EVENT] == -1
