"""A peer without a network: what is published at one reaches every subscriber of its overlay."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager

import trio
from attrs import define, evolve, field, frozen

from gossamer.node.errors import EventTooLarge, NotAcknowledged
from gossamer.node.page.snapshot import PeerView, Queues, Rates, Snapshot
from gossamer.protocol.content.language import parse_subscription
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.subscription import Subscription
from gossamer.protocol.content.values import Value
from gossamer.protocol.kernel.errors import CapacityError
from support.waiting import Changing

SCHEMA = Schema.from_mapping(
    {
        "symbol": {"type": "string"},
        "price": {"type": "float", "minimum": 0, "maximum": 10_000},
        "day": {"type": "date", "minimum": "2020-01-01", "maximum": "2030-01-01"},
    }
)
IBM = {"symbol": "IBM", "price": 81.5, "day": "2026-11-20"}

EMPTY = Snapshot(
    key=1,
    name="made up",
    cluster="desk",
    version="0",
    uptime_s=1.0,
    round=3,
    round_s=0.5,
    position=0.25,
    arc_start=0.0,
    load=1.0,
    subscriptions=0,
    clients=0,
    routing_entries=2,
    stored_events=0,
    rates=Rates(published=2.0),
    queues=Queues(frames=1, bytes=100, longest_bytes=100),
    dropped={"duplicate": 3, "flood": 0},
    known_peers=1,
    peers=(PeerView(key=2, position=0.5, links=("ring",), connected=True),),
)


@frozen
class LoopbackEvent:
    """An event that was published."""

    id: int
    values: Mapping[str, Value]
    publisher: int
    published_at: float


@define(eq=False)
class LoopbackPeer:
    """A peer that is the whole overlay.

    Attributes:
        capacity: subscriptions that it takes.
        ahead: events that wait for a subscriber that is busy.
        hold: while it is not set, publishing waits.
        changes: says when there are more subscribers, or more that wait to publish.
        unheld: prices of events that nobody acknowledges, though they are published.
        too_large: prices of events that are refused.
    """

    schema: Schema = SCHEMA
    key: int = 1
    capacity: int = 64
    ahead: int = 10_000
    hold: trio.Event | None = None
    unheld: frozenset[object] = frozenset()
    too_large: frozenset[object] = frozenset()
    waiting: int = 0
    published: list[LoopbackEvent] = field(factory=list)
    subscribers: list[tuple[Subscription, trio.MemorySendChannel[LoopbackEvent]]] = field(
        factory=list
    )
    changes: Changing = field(factory=Changing)

    @asynccontextmanager
    async def subscribe(self, expression: str) -> AsyncIterator[AsyncIterator[LoopbackEvent]]:
        if len(self.subscribers) >= self.capacity:
            raise CapacityError("subscriptions", self.capacity)
        send, receive = trio.open_memory_channel[LoopbackEvent](self.ahead)
        entry = (parse_subscription(self.schema, expression), send)
        self.subscribers.append(entry)
        self.changes.changed()
        try:
            yield receive
        finally:
            self.subscribers.remove(entry)
            send.close()

    async def publish(self, values: Mapping[str, object], *, application: Hashable = None) -> int:
        del application
        checked = self.schema.check_event(values)
        if checked["price"] in self.too_large:
            raise EventTooLarge(7000, 4096)
        if self.hold is not None:
            self.waiting += 1
            self.changes.changed()
            await self.hold.wait()
        event = LoopbackEvent(len(self.published) + 1, checked, self.key, time.time())
        self.deliver(event)
        await trio.lowlevel.checkpoint()
        if checked["price"] in self.unheld:
            raise NotAcknowledged(event.id, 10.0)
        return event.id

    def deliver(self, event: LoopbackEvent) -> None:
        """Give ``event`` to whom it matches; once more, if it was given before."""
        self.published.append(event)
        self.changes.changed()
        for subscription, send in self.subscribers:
            if subscription.matches(event.values):
                send.send_nowait(event)

    def snapshot(self) -> Snapshot:
        return evolve(EMPTY, subscriptions=len(self.subscribers))
