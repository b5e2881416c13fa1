"""A running peer as applications see it; `gossamer.node.peer.peer` says what they may rely on."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs
import trio

from gossamer.node.errors import PeerStopped
from gossamer.node.monitoring.metrics import Counters, Gauges
from gossamer.node.page.snapshot import Snapshot
from gossamer.node.peer.bootstrap import Bootstrap
from gossamer.node.peer.frames.core import Core, Delivery, Record
from gossamer.node.peer.frames.event_authentication import EventAuthentication
from gossamer.node.peer.frames.events import Event, EventFormat, EventMemory
from gossamer.node.peer.membership.admission import MembershipStatus
from gossamer.node.peer.membership.cluster_reports import ClusterReports
from gossamer.node.peer.publications import EventPublisher, Outcome, Publications
from gossamer.node.peer.runtime import Application, Runtime
from gossamer.node.peer.subscriptions import DEFAULT_ROOM, Subscribers, Subscription
from gossamer.node.peer.unicast.cluster_time import ClusterTime
from gossamer.node.peer.unicast.last_values import LastValueKeeper, may_be_last
from gossamer.node.peer.unicast.messages import ANNOUNCEMENT_TYPE, Unicast
from gossamer.node.peer.unicast.order import PublicationOrder
from gossamer.node.peer.views import PeerViews
from gossamer.node.transport.base import Address
from gossamer.protocol.content.schema import Schema, SchemaVersion
from gossamer.protocol.content.values import Payload
from gossamer.protocol.patterns.ordering import RecentNumbers
from gossamer.protocol.peer.space.hashing import OrderPreservingHash
from gossamer.protocol.peer.state.state import State


@attrs.frozen
class PeerInternals:
    """What measurements see of a peer; to be read only.

    Attributes:
        state: its arrays, of one row.
        key_of: the permanent key behind a handle that is found in them.
    """

    state: State
    key_of: Callable[[int], int]


# Events delivered that are recognised when they come again: what is asked for after an absence
# overlaps with what came before it. 1 MB.
DELIVERED: Final = 1 << 16
# Seconds between two comparisons of last values with another peer.
LAST_S: Final = 1.0


@attrs.define(eq=False, slots=False)
class Peer:
    """A running peer; made by `gossamer.node.open_peer`.

    Attributes:
        key: its permanent key.
        addresses: where it listens.
        version: of the schema that events are made by; see `change_schema`.
        counters: what has happened; see `gossamer.node.monitoring.metrics`.
        subscribers: all subscriptions.
        standing: whether it belongs to its cluster and reaches others.
        messages: questions to other peers, and answers to theirs.
        clock: what time it is for events.
        last: the last values that this peer keeps.
    """

    _runtime: Runtime
    _events: EventMemory
    _authentication: EventAuthentication
    counters: Counters
    key: int
    version: SchemaVersion
    _hashes: Sequence[OrderPreservingHash]
    subscribers: Subscribers
    _draws: random.Random
    clock: ClusterTime
    _acknowledge_s: float
    messages: Unicast
    standing: MembershipStatus
    _bootstrap: Bootstrap
    _views: PeerViews
    _reports: ClusterReports

    def __attrs_post_init__(self) -> None:
        self.addresses: tuple[Address, ...] = ()
        self._core: Core = self._runtime.core
        retry_s = self._runtime.core.settings.retry_rounds * self._runtime.round_s
        self._publications = Publications(
            self._runtime, self._events, self._acknowledge_s, self.counters, retry_s
        )
        self._format = EventFormat(self.version)
        self._order = PublicationOrder(self.messages, lambda: self.schema, self.clock.now)
        self._delivered = RecentNumbers(DELIVERED)
        self._stopped = False
        self.last = LastValueKeeper(
            self.messages,
            self._authentication,
            lambda: self._format,
            self.clock,
            self._draws,
            LAST_S,
        )
        self._publisher = EventPublisher(
            self.key,
            self._runtime.core,
            self._authentication,
            self._publications,
            self._order,
            self.last.note,
            self.version,
            self._hashes,
            self._draws,
            self.clock.now,
        )
        self._hear: Callable[[Event], None] = lambda _: None
        self._runtime.serve(
            Application(self._on_delivery, self.deliver, self._hold, self._publications.note)
        )

    @property
    def schema(self) -> Schema:
        """All attributes that events have, or had in earlier versions."""
        return self.version.known

    def change_schema(self, version: SchemaVersion) -> None:
        """Go by a later version of the schema from now on.

        What is subscribed and held means the same as before. Where events are on the ring does not
        follow from later versions, see `gossamer.protocol.content.schema`.
        """
        self.version = version
        self.subscribers.schema = version.known
        self._format = EventFormat(version)
        self._publisher.change_schema(version)

    @property
    def is_whole(self) -> bool:
        """Whether it misses nothing as far as it knows: not while it catches up on an absence."""
        return self._core.is_whole

    def look_for(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Try these addresses, beside those that are known, whenever peers are looked for."""
        self._bootstrap.look_for(addresses)

    async def ready(self) -> None:
        """Wait until another peer knows this one, or everybody known was tried in vain.

        In that case the peer is an overlay of its own, and goes on looking for others.
        """
        await self._bootstrap.wait_until_settled()

    def subscribe(
        self,
        expression: str,
        *,
        name: str = "",
        room: int = DEFAULT_ROOM,
        past_s: float = 0.0,
    ) -> Subscription:
        """The stream of events that match ``expression``, from now on until it is closed.

        Args:
            expression: in the language of `gossamer.protocol.content.filters.expressions`.
            name: of the application: one that has a name gets no event twice, and events wait
                for it while it takes none; both over restarts of the peer too, but for the
                events that wait.
            room: events that may wait to be taken; the oldest is dropped for one more.
            past_s: for how many seconds it is in force already, as by a process of before: what
                came since, and is held still, comes to it.

        Raises:
            ExpressionError: the expression does not parse or fit the schema.
            CapacityError: there are as many subscriptions as the settings allow.
            RequestError: the application has this stream open already.
            PeerStopped: the peer runs no more.
        """
        self._check()
        return self.subscribers.add(expression, name, room, past_s)

    def has_got(self, events: Iterable[int]) -> None:
        """These events need not come: all who may want them have them from before."""
        self._core.has_got(events)

    def unsubscribe(self, expression: str, name: str) -> bool:
        """Let no more events wait for a named application; return whether any did."""
        self._check()
        return self.subscribers.remove(expression, name)

    async def publish(
        self,
        values: Mapping[str, object],
        *,
        payload: Payload | None = None,
        application: Hashable = None,
        reserved: int | None = None,
    ) -> int:
        """Publish an event; return its identifier once it is acknowledged.

        Its rendezvous nodes and their successors hold it then: see `peer.peer` for what
        that promises. Waits for its turn while many others wait for their acknowledgement; those
        of each ``application`` take turns then. While `standing.alone`, an acknowledgement says
        that this peer holds it, and nobody else.

        Those who want the events of this peer in order get them in that of these calls, or of
        those of `reserve` whose results they are given as ``reserved``.

        Raises:
            NotAcknowledged: nobody acknowledged it in time; it may reach all, some or none.
            ContentError: the values do not fit the schema.
            RequestError: they take more bytes than peers carry.
            PeerRevoked: the peer belongs to its cluster no more; nothing was published.
            PeerStopped: the peer runs no more.
        """
        (outcome,) = await self.publish_many(
            [values],
            payload=payload,
            application=application,
            reserved=None if reserved is None else [reserved],
        )
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def publish_many(
        self,
        events: Sequence[Mapping[str, object]],
        *,
        payload: Payload | None = None,
        application: Hashable = None,
        reserved: Sequence[int] | None = None,
    ) -> list[Outcome]:
        """Publish events as by so many calls of `publish` at once, at a smaller cost.

        They go out together, share their signature, and all have the ``payload``.

        Returns:
            For each its identifier, or the exception that `publish` would have raised.

        Raises:
            PeerRevoked, PeerStopped: as of `publish`; nothing was published.
        """
        times = [self._order.reserve() for _ in events] if reserved is None else reserved
        try:
            await trio.lowlevel.checkpoint()
            self._check()
            self.standing.check()
            return await self._publisher.publish(events, times, payload, application)
        finally:
            for time in times:
                self._order.give_up(time)

    def reserve(self) -> int:
        """The place of an event that is to be published soon in the order of all; see `publish`."""
        return self._order.reserve()

    async def announce(self, expression: str, data: bytes) -> None:
        """Tell something to the peers that subscribe to ``expression``.

        It travels as an event whose place is one that all events of the expression may have, and
        comes to `hear_announcements` there, not to applications.

        Raises:
            ExpressionError: the expression does not fit the schema, or matches nothing.
            NodeError: as of `publish`.
        """
        self._check()
        self.standing.check()
        await self._publisher.announce(expression, data)

    def hear_announcements(self, hear: Callable[[Event], None]) -> None:
        """Have ``hear`` called with what others announce to subscribers of expressions of here."""
        self._hear = hear

    def last_values(self) -> list[Event]:
        """The last values that this peer knows of, those set longest ago first."""
        return self.last.events()

    def snapshot(self) -> Snapshot:
        """The overlay as this peer sees it, for the page."""
        return self._views.snapshot()

    def gauges(self) -> Gauges:
        """What is the case right now, for the metrics."""
        return self._views.gauges()

    def members(self) -> dict[str, Any]:
        """The members met so far and what happened to them; see `monitoring.members`."""
        return self._views.members.to_json()

    def cluster(self) -> dict[str, Any]:
        """The cluster by what members said of themselves last; they are asked anew by this."""
        return self._reports.view()

    async def fresh_cluster(self) -> dict[str, Any]:
        """The same, with what they say now."""
        return await self._reports.fresh_view()

    def observe(self, observer: Callable[[Record], None]) -> PeerInternals:
        """Show ``observer`` every record that the peer takes, before it does, and every delivery.

        For measurements; one at a time, which must not change what it sees.
        """
        self._runtime.observer = observer
        return PeerInternals(self._core.state, self._views.address_book.key_of)

    def stop(self) -> None:
        """End all streams; nothing is taken on any more."""
        self._stopped = True
        self._publications.stop()
        self.subscribers.close()

    def _check(self) -> None:
        if self._stopped:
            raise PeerStopped

    def _hold(self, event: int, brought_by: int) -> None:
        """Hold an event for peers that are away; it may be a last value."""
        self._events.hold(event)
        sealed = self._events.find(event)
        if sealed is None or not may_be_last(sealed):
            return
        content = self._authentication.open(event, sealed, brought_by)
        if content is not None:
            with suppress(ValueError):
                self.last.note(self._format.from_bytes(event, content), sealed)

    def _on_delivery(self, delivery: Delivery) -> None:
        if delivery.event in self._delivered:
            self.counters.repeat("delivered before")
            return
        sealed = self._events.find(delivery.event)
        if sealed is None:
            self.counters.drop("expired")
            return
        self._open(delivery.event, sealed, delivery.brought_by)

    def deliver(self, number: int, sealed: bytes, brought_by: int) -> None:
        """Hand an event to the applications that want it, if it is its publisher's.

        Args:
            number: its identifier.
            sealed: all of it.
            brought_by: key of the neighbour that it came from.
        """
        if number not in self._delivered:
            self._open(number, sealed, brought_by)

    def _open(self, number: int, sealed: bytes, brought_by: int) -> None:
        content = self._authentication.open(number, sealed, brought_by)
        if content is None:
            return
        try:
            event = self._format.from_bytes(number, content)
        except ValueError:
            self.counters.drop("bad frame")
            return
        self._delivered.add(event.id)
        self.clock.see(event.published_at)
        if may_be_last(content):
            self.last.note(event, sealed)
        if event.payload is not None and event.payload.content_type == ANNOUNCEMENT_TYPE:
            self._hear(event)
            return
        if self.subscribers.deliver(event):
            self.counters.delivery_latency.observe(self.clock.now() - event.published_at)
