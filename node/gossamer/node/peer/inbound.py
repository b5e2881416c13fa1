"""What comes to a peer from others: frames, timers, and the ups and downs of connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import trio
from attrs import define

from gossamer.node.errors import ChangedEvent, NodeError, PeerUnreachable, RefusedByPeer
from gossamer.node.monitoring.members import MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.certificate_requests import CertificateService
from gossamer.node.peer.frames.descriptor_authentication import Authentication
from gossamer.node.peer.frames.forgeries import Forgeries
from gossamer.node.peer.frames.frame_types import FrameService, flow_of_frame, is_new
from gossamer.node.peer.frames.wire import Wire
from gossamer.node.peer.load.inbox import Inbox, NextTimer
from gossamer.node.peer.load.overload import Overloads, RateLimits
from gossamer.node.peer.membership.admission import (
    DoubledIdentities,
    count_end,
    count_refusal,
    note_connected,
    note_disconnected,
)
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.peer.runtime import Runtime
from gossamer.node.peer.unicast.cluster_time import ClusterTime
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.transport.base import Address, Cause, Farewell, PeerIdentity
from gossamer.node.transport.connection import NOTHING, Together
from gossamer.node.transport.links import ConnectionPool
from gossamer.node.transport.schema import Frame
from gossamer.protocol.kernel.errors import CapacityError, RemoteProtocolError
from gossamer.protocol.kernel.records import KIND
from gossamer.protocol.peer.record_table.records import ACKNOWLEDGE, EVENT_MESSAGES
from gossamer.protocol.peer.step import TIMERS

# Frames taken in one turn of the event loop: a few milliseconds' worth.
TURN: Final = 16


@define(eq=False, slots=False)
class Inbound:
    """Frames of connected peers, and the timers of this one: records go to the runtime.

    Args:
        cut: ends the connection to the peer of a key that broke a rule a while ago.
        certificates: the one of these for which records wait; None without certificates.
    """

    _runtime: Runtime
    _wire: Wire
    _authentication: Authentication
    _forgeries: Forgeries
    _overloads: Overloads
    _counters: Counters
    _cut: Callable[[int, RemoteProtocolError], None]
    _services: Iterable[FrameService]
    _certificates: CertificateService | None

    def __attrs_post_init__(self) -> None:
        self._services = tuple(self._services)
        self._by_type = {kind: one for one in self._services for kind in one.frames}
        self._rate_limits = RateLimits(self._counters)
        self._inbox = Inbox(self.receive, self._overloads, self._cut, self._runtime.take_waiting)
        self._taken = 0

    async def run(self, next_timer: NextTimer) -> None:
        """Let timers fire, and deal with events that had to wait, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._inbox.run)
            while True:
                self.fire(*await next_timer())

    def quiet_rounds(self) -> int:
        """For how many rounds from now there is nothing to do if nothing comes."""
        if self._overloads.lasts or any(one.waits for one in self._services):
            return 0
        return self._runtime.core.quiet_rounds()

    def on_bytes(self, identity: PeerIdentity, data: memoryview) -> Together:
        """Take the frames about events that a connected peer's bytes begin with, all at once."""
        if self._runtime.takes_together and self._inbox.may_take_together():
            return self._runtime.take_together(identity.key, data)
        return NOTHING

    async def on_frame(self, identity: PeerIdentity, frame: Frame) -> None:
        """Take a frame from a connected peer.

        Raises:
            RemoteProtocolError: the peer broke a rule, and is to be cut.
        """
        self._taken += 1
        if self._taken % TURN == 0:
            await trio.lowlevel.checkpoint()
        key = identity.key
        if frame["type"] != "record" or frame["kind"] not in EVENT_MESSAGES:
            self.receive(key, frame)
        else:
            flow = flow_of_frame(key, frame)
            await self._inbox.take(key, frame, flow, new=is_new(frame))

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a frame from the peer ``sender``; raises as `on_frame`."""
        self._counters.frames_received += 1
        self._runtime.rest.catch_up()
        kind = frame["type"]
        if kind == "record":
            if self._rate_limits.allows(sender, frame["kind"]):
                self._take_record(sender, frame, patient=True)
        elif kind == "certificates" and self._certificates is not None:
            for waiting in self._certificates.take(sender, frame["certificates"]):
                self._take_record(sender, waiting, patient=False)
        elif kind in self._by_type:
            self._by_type[kind].receive(sender, frame)
            self._runtime.rest.look_again()

    def greet(self, key: int) -> None:
        """Say to a peer that is connected who this one is, and what it may not know yet."""
        for service in self._services:
            service.greet(key)

    def forget(self, key: int) -> None:
        """A peer is connected no more."""
        self._rate_limits.forget(key)
        self._inbox.forget(key)
        for service in self._services:
            service.forget(key)

    def fire(self, number: int, kind: int) -> None:
        """Let one timer of round ``number`` fire."""
        self._runtime.core.now = number
        if kind == TIMERS[0]:
            self._authentication.new_round()
            self._wire.new_round()
            self._rate_limits.new_round()
            for key in self._overloads.new_round():
                self._runtime.tell_of_loss(key)
            for service in self._services:
                service.new_round()
            self._take_late_frames()
        self._runtime.take(self._runtime.core.timer(kind))

    def _take_record(self, sender: int, frame: Frame, *, patient: bool) -> None:
        """Take a record; a ``patient`` one may wait for certificates first."""
        try:
            decoded = self._wire.decode(sender, frame)
        except CapacityError:
            self._counters.drop("queue full")
            return
        except ChangedEvent as error:
            self._forgeries.note_changed(error, sender)
            raise
        certificates = self._certificates if patient and decoded.missing else None
        if certificates is not None and certificates.hold(sender, frame, decoded.missing):
            self._runtime.rest.look_again()
            return
        if decoded.record is not None:
            if decoded.record[KIND] == ACKNOWLEDGE:
                self._runtime.heard_back.set()
            self._runtime.handle(decoded.record)

    def _take_late_frames(self) -> None:
        """Take the frames that have waited for certificates long enough, for what they are."""
        for sender, frame in () if self._certificates is None else self._certificates.give_up():
            try:
                self._take_record(sender, frame, patient=False)
            except RemoteProtocolError:
                # Its connection is not at hand; the next such frame costs the sender that.
                self._counters.drop("bad frame")


@define(eq=False, slots=False)
class ConnectionEvents:
    """Tells the parts of one peer which connections come and go.

    Args:
        revocations: hears what proves that this peer belongs no more; None without certificates.
    """

    _inbound: Inbound
    _runtime: Runtime
    _pool: ConnectionPool
    _address_book: AddressBook
    _descriptors: DescriptorCache | None
    _counters: Counters
    _members: MemberTable
    _revocations: RevocationService | None
    _doubles: DoubledIdentities
    _clock: ClusterTime

    def __attrs_post_init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._address_book.keep(self._connected)

    def start(self, nursery: trio.Nursery) -> None:
        """Look from now on, in ``nursery``, whether peers whose connections break are there."""
        self._nursery = nursery

    def on_refusal(self, error: NodeError | None, remote: Address) -> None:
        """Somebody who came in was not let in."""
        count_refusal(self._counters, error, remote)
        self._doubles.on_refusal(error, remote)

    def on_refused_by(self, error: RefusedByPeer) -> None:
        """Another peer does not let this one in."""
        if self._revocations is not None:
            self._revocations.hear(error.proof)

    def on_up(self, identity: PeerIdentity) -> None:
        """A peer is connected."""
        # What a full book does not take is refused when its frames come.
        with suppress(CapacityError):
            self._address_book.learn(identity.key, (), identity.name)
        self._inbound.greet(identity.key)
        self._clock.connected()
        connection = self._pool.get(identity.key)
        if connection is None or not connection.admitted.dialled:
            self._counters.accepted += 1
        if connection is not None:
            note_connected(self._members, connection.admitted, self._descriptors)

    def on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        """A peer is connected no more."""
        self._doubles.on_down(identity, farewell)
        self._inbound.forget(identity.key)
        count_end(self._counters, identity, farewell)
        note_disconnected(self._members, identity, farewell)
        if not farewell.by_us and self._revocations is not None:
            self._revocations.hear(farewell.proof)
        if farewell.by_us or self._nursery is None:
            return
        if farewell.cause is Cause.SHUTDOWN:
            # What came to it while it said its goodbyes went no further.
            self._runtime.report_loss(identity.key)
            self._runtime.report_failure(identity.key)
        elif farewell.cause is Cause.LOST:
            self._nursery.start_soon(self._look_after, identity.key)

    def on_loss(self, identity: PeerIdentity) -> None:
        """A connection ended in disorder: what was on its way may be lost."""
        self._runtime.report_loss(identity.key)

    def _connected(self) -> Iterable[int]:
        found = (self._address_book.find(connection.identity.key) for connection in self._pool)
        return [entry.handle for entry in found if entry is not None]

    async def _look_after(self, key: int) -> None:
        """A connection broke: if the peer is not there any more, say so at once."""
        try:
            await self._pool.connect(key)
        except PeerUnreachable as error:
            self._runtime.report_failure(key)
            self._members.unreachable(key, str(error))
