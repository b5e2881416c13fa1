"""A peer without a network: what is published at one reaches every subscriber of its overlay."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
from attrs import define, evolve, field, frozen

from gossamer.node.errors import NoAnswerError, NodeError, NotAcknowledged, RequestError
from gossamer.node.page.snapshot import PeerView, Queues, Rates, Snapshot
from gossamer.node.peer.unicast.cluster_time import ClusterTime
from gossamer.node.peer.unicast.last_values import key_of, mark_of
from gossamer.node.peer.unicast.messages import Service
from gossamer.node.peer.unicast.order import PublicationOrder
from gossamer.node.transport.base import Address
from gossamer.protocol.content.filters.expressions import Expression, parse_expression
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Payload, Value
from gossamer.protocol.kernel.errors import CapacityError, ContentError
from support.waiting import Changing

SCHEMA = Schema.from_mapping(
    {
        "symbol": {"type": "string"},
        "price": {"type": "float", "minimum": 0, "maximum": 10_000},
        "day": {"type": "date", "minimum": "2020-01-01", "maximum": "2030-01-01"},
    }
)
AHEAD = 10_000  # events that wait for a subscriber that is busy
IBM = {"symbol": "IBM", "price": 81.5, "day": "2026-11-20"}


def quote(price: object) -> dict[str, object]:
    return {**IBM, "price": price}


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
    dropped={"unreachable": 3, "flood": 0},
    known_peers=1,
    peers=(PeerView(key=2, position=0.5, links=("ring",), connected=True),),
)


@frozen
class LoopbackEvent:
    id: int
    values: Mapping[str, Value]
    publisher: int
    published_at: float
    payload: Payload | None = None


@define
class OwnMessages:
    key: int = 1
    addresses: Sequence[Address] = ()
    services: dict[str, Service] = field(factory=dict)
    connected: Mapping[int, float] = field(factory=dict)

    def offer(self, name: str, service: Service) -> None:
        self.services[name] = service

    async def ask(
        self, key: int, addresses: Sequence[Address], service: str, body: bytes, patience_s: float
    ) -> bytes:
        del addresses, patience_s
        await trio.lowlevel.checkpoint()
        if key != self.key:
            raise NoAnswerError(key, "there is no other peer")
        return self.services[service](key, body)


@define(eq=False)
class LoopbackPeer:
    """A peer that is the whole overlay.

    Publishing waits while `hold` is not set; `changes` says when more wait, or subscribe. Prices
    may be `unheld`, so that nobody acknowledges their events, or `too_large`.
    """

    schema: Schema = SCHEMA
    key: int = 1
    capacity: int = 64
    hold: trio.Event | None = None
    unheld: frozenset[object] = frozenset()
    too_large: frozenset[object] = frozenset()
    waiting: int = 0
    published: list[LoopbackEvent] = field(factory=list)
    subscribers: list[tuple[Expression, trio.MemorySendChannel[LoopbackEvent]]] = field(
        factory=list
    )
    changes: Changing = field(factory=Changing)
    is_whole: bool = True
    messages: OwnMessages = field(factory=OwnMessages)
    round_s: float = EMPTY.round_s
    order: PublicationOrder = field(init=False)
    clock: ClusterTime = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.clock = ClusterTime(self.messages, time.time)
        self.order = PublicationOrder(self.messages, lambda: self.schema, time.time)

    def has_got(self, events: Iterable[int]) -> None:
        """Nothing comes to it that was published before."""

    @asynccontextmanager
    async def subscribe(
        self,
        expression: str,
        *,
        past_s: float = 0.0,  # noqa: ARG002
    ) -> AsyncIterator[AsyncIterator[LoopbackEvent]]:
        if len(self.subscribers) >= self.capacity:
            raise CapacityError("subscriptions", self.capacity)
        send, receive = trio.open_memory_channel[LoopbackEvent](AHEAD)
        entry = (parse_expression(self.schema, expression), send)
        self.subscribers.append(entry)
        self.changes.changed()
        try:
            yield receive
        finally:
            self.subscribers.remove(entry)
            send.close()

    async def publish(
        self,
        values: Mapping[str, object],
        *,
        payload: Payload | None = None,
        application: Hashable = None,
        reserved: int | None = None,
    ) -> int:
        del application
        at = self.order.reserve() if reserved is None else reserved
        checked = self.schema.check_event(values)
        if checked.get("price") in self.too_large:
            raise RequestError("an event of 7000 bytes, expected at most 4096")
        if self.hold is not None:
            self.waiting += 1
            self.changes.changed()
            await self.hold.wait()
        event = LoopbackEvent(len(self.published) + 1, checked, self.key, at / 1e6, payload)
        self.order.note(at, event.id, checked)
        self.deliver(event)
        await trio.lowlevel.checkpoint()
        if checked.get("price") in self.unheld:
            self.order.give_up(at)
            raise NotAcknowledged(event.id, 10.0)
        self.order.settle(at)
        return event.id

    async def publish_many(
        self,
        events: Sequence[Mapping[str, object]],
        *,
        reserved: Sequence[int] | None = None,
        **more: Any,
    ) -> Sequence[int | Exception]:
        times = [self.order.reserve() for _ in events] if reserved is None else reserved
        outcomes: list[int | Exception] = [0] * len(events)

        async def publish(place: int) -> None:
            try:
                outcomes[place] = await self.publish(events[place], reserved=times[place], **more)
            except (NodeError, ContentError) as error:
                outcomes[place] = error

        async with trio.open_nursery() as nursery:
            for place in range(len(events)):
                if self.hold is None:
                    await publish(place)
                else:
                    nursery.start_soon(publish, place)
        return outcomes

    def deliver(self, event: LoopbackEvent) -> None:
        """Give ``event`` to whom it matches; once more, if it was given before."""
        self.published.append(event)
        self.changes.changed()
        for subscription, send in self.subscribers:
            if subscription.matches(event.values):
                send.send_nowait(event)

    def last_values(self) -> Sequence[LoopbackEvent]:
        newest: dict[bytes, LoopbackEvent] = {}
        for event in self.published:
            _, mark = mark_of(event.payload)
            key = None if mark is None else key_of(mark, event.values)
            if mark is not None and key is not None:
                newest.pop(key, None)
                if not mark.is_deleted:
                    newest[key] = event
        return list(newest.values())

    def reserve(self) -> int:
        return self.order.reserve()

    async def announce(self, expression: str, _data: bytes) -> None:
        parse_expression(self.schema, expression)
        await trio.lowlevel.checkpoint()

    def hear_announcements(self, hear: Callable[[LoopbackEvent], None]) -> None:
        """There is nobody else to hear."""

    def snapshot(self) -> Snapshot:
        return evolve(EMPTY, subscriptions=len(self.subscribers), round_s=self.round_s)
