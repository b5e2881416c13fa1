"""A running peer as applications see it; `gossamer.node.peer.peer` says what they may rely on."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Final

import attrs
import trio

from gossamer.node.errors import EventTooLarge, PeerStopped
from gossamer.node.monitoring.metrics import Counters, Gauges
from gossamer.node.page.snapshot import Snapshot
from gossamer.node.peer.frames.core import Box, Core, Record
from gossamer.node.peer.frames.events import (
    EVENT_ID_BITS,
    MAX_EVENT_BYTES,
    EventFormat,
    EventMemory,
)
from gossamer.node.peer.membership.status import Standing
from gossamer.node.peer.publications import Publications
from gossamer.node.peer.runtime import Delivery, Runtime
from gossamer.node.peer.subscriptions import DEFAULT_ROOM, Mark, Subscribers, Subscription
from gossamer.node.transport.base.base import Address
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.peer.record_table.records import INSTALL_TIMER
from gossamer.protocol.peer.space.encoding import encode_event
from gossamer.protocol.peer.space.hashing import OrderPreservingHash
from gossamer.protocol.peer.state.state import State


@attrs.frozen
class Inside:
    """What measurements see of a peer; to be read only.

    Attributes:
        state: its arrays, of one row.
        key_of: the permanent key behind a handle that is found in them.
    """

    state: State
    key_of: Callable[[int], int]


# Events delivered that are recognised when they come again: what is asked for after an absence
# overlaps with what came before it. 8 MB.
DELIVERED: Final = 1 << 16


@attrs.frozen
class Views:
    """What a peer shows of itself.

    Attributes:
        snapshot: for the page.
        gauges: for Prometheus.
        inside: for measurements.
    """

    snapshot: Callable[[], Snapshot]
    gauges: Callable[[], Gauges]
    inside: Callable[[], Inside]


class Peer:
    """A running peer; made by `gossamer.node.peer.peer.open_peer`.

    Attributes:
        key: its permanent key.
        addresses: where it listens.
        schema: what events are made of.
        counters: what has happened; see `gossamer.node.monitoring.metrics`.
        subscribers: all subscriptions.
        standing: whether it belongs to its cluster and reaches others.
    """

    def __init__(
        self,
        runtime: Runtime,
        events: EventMemory,
        counters: Counters,
        *,
        key: int,
        schema: Schema,
        hashes: Sequence[OrderPreservingHash],
        draws: random.Random,
        now: Callable[[], float],
        mark: Mark,
        keep: Callable[[str, str, bool], None],
        acknowledge_s: float,
        standing: Standing | None = None,
    ) -> None:
        self.key = key
        self.standing = Standing(key) if standing is None else standing
        self.addresses: tuple[Address, ...] = ()
        self.schema = schema
        self.counters = counters
        limit = runtime.core.settings.subscriptions
        self.subscribers = Subscribers(
            schema, hashes, limit, counters, self._on_interest, keep, mark
        )
        self._runtime = runtime
        self._core: Core = runtime.core
        self._events = events
        self._publications = Publications(runtime, events, acknowledge_s, counters)
        self._format = EventFormat(schema)
        self._hashes = hashes
        self._draws = draws
        self._now = now
        self._ready: Callable[[], Awaitable[None]] = runtime.heard_back.wait
        self._views: Views | None = None
        self._delivered: OrderedDict[int, None] = OrderedDict()
        self._stopped = False
        runtime.on_delivery = self._on_delivery

    def show(self, views: Views) -> None:
        """Let `snapshot` and `gauges` give these."""
        self._views = views

    def ready_when(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Let `ready` wait for this."""
        self._ready = ready

    async def ready(self) -> None:
        """Wait until another peer knows this one, or everybody known was tried in vain.

        In that case the peer is an overlay of its own, and goes on looking for others.
        """
        await self._ready()

    def subscribe(
        self, expression: str, *, name: str = "", room: int = DEFAULT_ROOM
    ) -> Subscription:
        """The stream of events that match ``expression``, from now on until it is closed.

        Args:
            expression: in the subscription language, `gossamer.protocol.content.language`.
            name: of the application: one that has a name gets no event twice, and events wait
                for it while it takes none; both over restarts of the peer too, but for the
                events that wait.
            room: events that may wait to be taken; the oldest is dropped for one more.

        Raises:
            ExpressionError: the expression does not parse or fit the schema.
            CapacityError: there are as many subscriptions as the settings allow.
            SubscriptionInUse: the application has this stream open already.
            PeerStopped: the peer runs no more.
        """
        self._check()
        return self.subscribers.add(expression, name, room)

    def unsubscribe(self, expression: str, name: str) -> bool:
        """Let no more events wait for a named application; return whether any did."""
        self._check()
        return self.subscribers.remove(expression, name)

    async def publish(self, values: Mapping[str, object], *, application: Hashable = None) -> int:
        """Publish an event; return its identifier once it is acknowledged.

        Its rendezvous nodes and their successors hold it then: see `peer.peer` for what
        that promises. Waits for its turn while many others wait for their acknowledgement; those
        of each ``application`` take turns then. While `standing.alone`, an acknowledgement says
        that this peer holds it, and nobody else.

        Raises:
            NotAcknowledged: nobody acknowledged it in time; it may reach all, some or none.
            UnknownAttributeError, WrongValueError: the values do not fit the schema.
            EventTooLarge: they take more bytes than peers carry.
            PeerRevoked: the peer belongs to its cluster no more; nothing was published.
            PeerStopped: the peer runs no more.
        """
        await trio.lowlevel.checkpoint()
        self._check()
        self.standing.check()
        exact = self.schema.check_event(values)
        data = self._format.to_bytes(exact, self.key, self._now())
        if len(data) > MAX_EVENT_BYTES:
            raise EventTooLarge(len(data), MAX_EVENT_BYTES)
        event = self._draws.getrandbits(EVENT_ID_BITS)
        hashed = encode_event(self.schema, self._hashes, exact)
        await self._publications.publish(event, data, hashed, application)
        return event

    def snapshot(self) -> Snapshot:
        """The overlay as this peer sees it, for the page."""
        assert self._views is not None
        return self._views.snapshot()

    def gauges(self) -> Gauges:
        """What is the case right now, for the metrics."""
        assert self._views is not None
        return self._views.gauges()

    def observe(self, observer: Callable[[Record], None]) -> Inside:
        """Show ``observer`` every record that the peer takes, before it does, and every delivery.

        For measurements; one at a time, which must not change what it sees.
        """
        assert self._views is not None
        self._runtime.observer = observer
        return self._views.inside()

    def stop(self) -> None:
        """End all streams; nothing is taken on any more."""
        self._stopped = True
        self._publications.stop()
        self.subscribers.close()

    def _check(self) -> None:
        if self._stopped:
            raise PeerStopped

    def _on_interest(self, boxes: Sequence[Box]) -> None:
        if self._stopped:
            return
        self._core.subscribe(boxes)
        # Told at once rather than at the next round.
        self._runtime.handle(self._core.timer(INSTALL_TIMER))

    def _on_delivery(self, delivery: Delivery) -> None:
        if delivery.event in self._delivered:
            self.counters.drop("duplicate")
            return
        data = self._events.find(delivery.event)
        if data is None:
            self.counters.drop("expired")
            return
        try:
            event = self._format.from_bytes(delivery.event, data)
        except ValueError:
            self.counters.drop("bad frame")
            return
        self._note_delivered(event.id)
        if self.subscribers.deliver(event):
            self.counters.delivery_latency.observe(self._now() - event.published_at)

    def _note_delivered(self, event: int) -> None:
        self._delivered[event] = None
        if len(self._delivered) > DELIVERED:
            self._delivered.popitem(last=False)
