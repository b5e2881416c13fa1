"""Drives one peer: timers and frames in, frames and deliveries out.

Everything here happens at once, in the order in which it comes: no step waits for anything. What
has to wait (connections, full queues) waits in the sender of frames. Clock, timer and sender are
given, so that the same runtime serves real sockets and tests under a clock that jumps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import trio

from gossamer.node.errors import ChangedEvent
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.batches.event_batches import EventBatches
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.certificate_requests import CertificateService
from gossamer.node.peer.frames.core import SELF, Core, Delivery, Record, unreachable
from gossamer.node.peer.frames.descriptor_authentication import Authentication
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.flows import Cause, flow_of_frame, is_new
from gossamer.node.peer.frames.forgeries import Forgeries
from gossamer.node.peer.frames.frame_types import (
    MESSAGE_FRAMES,
    RENEWAL_FRAMES,
    REPORT_FRAMES,
    SCHEMA_FRAMES,
)
from gossamer.node.peer.frames.publishers import PUBLISHER_FRAMES, PublisherService
from gossamer.node.peer.frames.wire import Wire
from gossamer.node.peer.load.inbox import GossipTimer, Inbox
from gossamer.node.peer.load.overload import Overloads, RateLimits
from gossamer.node.peer.load.sender import FrameSender
from gossamer.node.peer.membership.cluster_reports import ClusterReports
from gossamer.node.peer.membership.renewal import RenewalService
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.peer.membership.schema_spread import SchemaService
from gossamer.node.peer.unicast.messages import Messages
from gossamer.node.transport.base.base import PeerIdentity
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.connection import NOTHING, Together
from gossamer.protocol.kernel.errors import CapacityError, RemoteProtocolError
from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO
from gossamer.protocol.peer.codec import held_handles
from gossamer.protocol.peer.record_table.records import (
    ACKNOWLEDGE,
    DELIVER,
    EVENT,
    EVENT_ID,
    EVENT_MESSAGES,
    HELD,
    NOT_PUBLISHED,
    PUBLISHED,
    REPAIRED,
)
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.step import TIMERS

# Frames taken in one turn of the event loop: a few milliseconds' worth.
TURN: Final = 16
# Peers remembered to have greeted: more than there are connections.
MAX_GREETED: Final = 1024


class Runtime:
    """One peer at work.

    Attributes:
        core: its protocol state.
        heard_back: set once another peer has acknowledged that it knows this one.
        on_delivery: takes what is delivered.
        on_publication: told of an event published here whether it is held as promised now, or
            could not be published since too many wait for that.
        on_held: told of an event that this peer is to hold for peers that are away, and of the key
            of the neighbour that it came from.
        on_greeting: told the key of each peer that introduced itself and can be joined through.
        observer: shown every record that the peer takes, before it does, and every delivery.
    """

    def __init__(
        self,
        core: Core,
        address_book: AddressBook,
        wire: Wire,
        authentication: Authentication,
        events: EventMemory,
        counters: Counters,
        on_delivery: Callable[[Delivery], None],
    ) -> None:
        self.core = core
        self.heard_back = trio.Event()
        self.on_delivery = on_delivery
        self.on_greeting: Callable[[int], None] = lambda _: None
        self.observer: Callable[[Record], None] | None = None
        self.on_publication: Callable[[int, bool], None] = lambda _event, _held: None
        self.on_held: Callable[[int, int], None] = lambda _event, _brought_by: None
        self._address_book = address_book
        self._wire = wire
        self._authentication = authentication
        self._events = events
        self._counters = counters
        self._frame_sender: FrameSender | None = None
        self._events_read: Inbox | None = None
        self._batches: EventBatches | None = None
        self._overloads: Overloads | None = None
        self._certificates: CertificateService | None = None
        self._revocations: RevocationService | None = None
        self._renewals: RenewalService | None = None
        self._schemas: SchemaService | None = None
        self._reports: ClusterReports | None = None
        self._messages: Messages | None = None
        self._publishers: PublisherService | None = None
        self._forgeries: Forgeries | None = None
        self._inbox: deque[Record] = deque()
        self._working = False
        self._counting_recovered = False
        self._taken = 0
        self._greeted: dict[int, tuple[int, Sequence[int]]] = {}
        self._rate_limits = RateLimits(counters)

    def attach(
        self,
        frame_sender: FrameSender,
        certificates: CertificateService | None = None,
        revocations: RevocationService | None = None,
        renewals: RenewalService | None = None,
        schemas: SchemaService | None = None,
        overloads: Overloads | None = None,
        reports: ClusterReports | None = None,
        publishers: PublisherService | None = None,
        forgeries: Forgeries | None = None,
        cut: Callable[[int, RemoteProtocolError], None] = lambda _key, _error: None,
        messages: Messages | None = None,
    ) -> None:
        """Send by ``frame_sender``; with certificates, exchange and renew them by these services.

        What is too much is told to ``overloads``, events that were changed to ``forgeries``. A peer
        that broke a rule by what it sent a while ago is cut by ``cut``. Questions and answers of
        peers go to ``messages``.
        """
        self._frame_sender, self._certificates = frame_sender, certificates
        self._revocations, self._renewals = revocations, renewals
        self._schemas, self._reports = schemas, reports
        self._publishers, self._forgeries = publishers, forgeries
        self._messages = messages
        if overloads is not None:
            self._overloads = overloads
            self._events_read = Inbox(self.receive, overloads, cut, self.receive_many)

    def held(self) -> Iterator[int]:
        """Handles that must keep their meaning: the protocol's, and those of records under way."""
        yield from held_handles(self.core.state, SELF)
        outgoing: Iterable[Record] = () if self._frame_sender is None else self._frame_sender.held()
        for record in (*self._inbox, *outgoing):
            yield record[TO]
            yield record[FROM]
            # Which words are handles depends on the kind; taking all for handles does no harm.
            yield from (word & HANDLE_MASK for word in record[BODY:])
        for handle, _ in self._greeted.values():
            yield handle

    # What happens to this peer

    async def run(self, timer: GossipTimer) -> None:
        """Let timers fire, and deal with events that had to wait, until cancelled."""
        async with trio.open_nursery() as nursery:
            if self._events_read is not None:
                nursery.start_soon(self._events_read.run)
            while True:
                self.fire(*await timer.next_timer())

    def fire(self, number: int, kind: int) -> None:
        """Let one timer of round ``number`` fire."""
        self.core.now = number
        if kind == TIMERS[0]:
            self._authentication.new_round()
            self._wire.new_round()
            self._rate_limits.new_round()
            if self._overloads is not None:
                self._overloads.new_round()
            if self._publishers is not None:
                self._publishers.new_round()
            self._take_late_frames()
        self.handle(self.core.timer(kind))

    def handle(self, record: Record) -> None:
        """Let the protocol take a record, and do what it wants done."""
        self._inbox.append(record)
        if not self._working:
            self._take_inbox()

    def carry_out(self, cause: Record, record: Record) -> None:
        """Do what follows from the record ``cause``."""
        self._counting_recovered = cause[KIND] == REPAIRED
        self._carry_out(record, Cause(cause, self._address_book, self._events))

    def _take_inbox(self) -> None:
        self._working = True
        try:
            while self._inbox:
                record = self._inbox.popleft()
                if self.observer is not None:
                    self.observer(record)
                self._counting_recovered = record[KIND] == REPAIRED
                cause = Cause(record, self._address_book, self._events)
                for written in self.core.take(record):
                    self._carry_out(written, cause)
                self._address_book.settle()
        finally:
            self._working = False

    def hand_back(self, record: Record) -> None:
        """Take a record back whose addressee cannot be reached."""
        self.handle(unreachable(record))

    def report_failure(self, key: int) -> None:
        """Peer ``key`` is gone: as if an answer to it had come back."""
        entry = self._address_book.find(key)
        if entry is not None and entry.handle in set(self.held()):
            self.hand_back([BODY, ACKNOWLEDGE, entry.handle, SELF])

    def report_loss(self, key: int) -> None:
        """What was on its way to peer ``key`` may be lost, though the peer may live."""
        entry = self._address_book.find(key)
        if entry is not None:
            self.handle(self.core.link_broke(entry.handle))

    def tell_of_loss(self, key: int) -> None:
        """Have peer ``key`` look soon for what it was not sent."""
        self.report_loss(key)
        entry = self._address_book.find(key)
        if entry is not None:
            record = self.core.compare_soon(entry.handle)
            self._send(record, Cause(record, self._address_book, self._events))

    def skip_rounds(self, rounds: int) -> None:
        """Let so many rounds have passed without this peer."""
        self.handle(self.core.rounds_skipped(rounds))

    def join_through(self, key: int) -> bool:
        """Join the overlay through a peer that has introduced itself; False if it has not."""
        greeted = self._greeted.get(key)
        if greeted is None:
            return False
        self.handle(self.core.join(*greeted))
        return True

    def introduce_publisher(self, key: int, event: int) -> None:
        """Have a peer know whose an event is that is about to be sent to it."""
        if self._publishers is not None:
            self._publishers.show(key, event)

    def publish(self, publications: Sequence[Record]) -> None:
        """Take commands of `Core.publish`, whose events are remembered; together if possible."""
        taken = 0
        while taken < len(publications):
            done = self._publish_together(publications[taken:])
            if done == 0:
                self.handle(publications[taken])
            taken += max(1, done)

    def _publish_together(self, publications: Sequence[Record]) -> int:
        if self._batches is None or self._working or self.observer is not None:
            return 0
        self._working = True
        try:
            return self._batches.publish(publications, self._wire.own_name(self.core.profile))
        finally:
            self._working = False
            self._take_inbox()

    def take_in_batches(self, batches: EventBatches | None) -> None:
        """Take frames about events many at a time from now on; None: one by one."""
        self._batches = batches

    def on_bytes(self, identity: PeerIdentity, data: memoryview) -> Together:
        """Take the frames about events that a connected peer's bytes begin with, all at once."""
        if self._batches is None or self._working or self.observer is not None:
            return NOTHING
        if self._events_read is not None and not self._events_read.may_take_together():
            return NOTHING
        self._working = True
        try:
            return self._batches.take(identity.key, data)
        finally:
            self._working = False
            self._take_inbox()

    def receive_many(self, waiting: Sequence[tuple[int, Frame]]) -> int:
        """Take frames about events, with the keys of their senders; return how many of the first.

        The others are to be taken one by one.
        """
        if self._batches is None or self._working or self.observer is not None:
            return 0
        self._working = True
        try:
            return self._batches.take_waiting(waiting)
        finally:
            self._working = False
            self._take_inbox()

    async def on_frame(self, identity: PeerIdentity, frame: Frame) -> None:
        """Take a frame from a connected peer.

        Raises:
            RemoteProtocolError: the peer broke a rule, and is to be cut.
        """
        self._taken += 1
        if self._taken % TURN == 0:
            await trio.lowlevel.checkpoint()
        key = identity.key
        if (
            self._events_read is None
            or frame["type"] != "record"
            or frame["kind"] not in EVENT_MESSAGES
        ):
            self.receive(key, frame)
        else:
            flow = flow_of_frame(key, frame)
            await self._events_read.take(key, frame, flow, new=is_new(frame))

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a frame from the peer ``sender``; raises as `on_frame`."""
        self._counters.frames_received += 1
        kind = frame["type"]
        if kind == "record":
            if self._rate_limits.allows(sender, frame["kind"]):
                self._take_record(sender, frame, patient=True)
        elif kind == "greeting":
            self._take_greeting(sender, frame)
        elif self._certificates is not None and kind == "certificates wanted":
            self._certificates.answer(sender, frame["keys"])
        elif self._certificates is not None and kind == "certificates":
            for waiting in self._certificates.take(sender, frame["certificates"]):
                self._take_record(sender, waiting, patient=False)
        elif self._messages is not None and kind in MESSAGE_FRAMES:
            self._messages.receive(sender, frame)
        elif self._renewals is not None and kind in RENEWAL_FRAMES:
            self._renewals.receive(sender, frame)
        elif self._schemas is not None and kind in SCHEMA_FRAMES:
            self._schemas.receive(sender, frame)
        elif kind in REPORT_FRAMES:
            if self._reports is not None:
                self._reports.receive(sender, frame)
        elif self._publishers is not None and kind in PUBLISHER_FRAMES:
            self._publishers.receive(sender, frame)
        elif self._revocations is not None:
            self._revocations.receive(sender, frame)

    def greeting(self) -> bytes:
        """The frame that begins every connection."""
        return self._wire.encode_greeting(self.core.profile)

    def forget(self, key: int) -> None:
        """A peer is connected no more."""
        self._greeted.pop(key, None)
        self._rate_limits.forget(key)
        if self._events_read is not None:
            self._events_read.forget(key)
        if self._certificates is not None:
            self._certificates.forget(key)
        if self._revocations is not None:
            self._revocations.forget(key)
        if self._schemas is not None:
            self._schemas.forget(key)
        if self._reports is not None:
            self._reports.forget(key)
        if self._renewals is not None:
            self._renewals.forget(key)
        if self._messages is not None:
            self._messages.forget(key)
        if self._publishers is not None:
            self._publishers.forget(key)

    # How it is done

    def _carry_out(self, record: Record, cause: Cause) -> None:
        if record[TO] != SELF:
            self._send(record, cause)
        elif record[KIND] == DELIVER:
            if self.observer is not None:
                self.observer(record)
            self._counters.events_recovered += self._counting_recovered
            event, hops, tree_hops = record[BODY : BODY + 3]
            self.on_delivery(Delivery(event, hops, tree_hops, cause.sender))
        elif record[KIND] == HELD:
            self.on_held(record[BODY], cause.sender)
        elif record[KIND] in (PUBLISHED, NOT_PUBLISHED):
            self.on_publication(record[BODY], record[KIND] == PUBLISHED)
        else:
            self._inbox.append(record)

    def _send(self, record: Record, cause: Cause) -> None:
        frame = self._wire.encode(record, self.core.profile)
        if frame is None:
            self._counters.drop("expired")
            return
        if record[KIND] == EVENT:
            self._counters.events_forwarded += 1
        self._counters.frames_sent += 1
        assert self._frame_sender is not None
        flow = cause.flow_of(record)
        key = self._address_book.key_of(record[TO])
        if record[KIND] in EVENT_MESSAGES:
            self.introduce_publisher(key, record[BODY + EVENT_ID])
        self._frame_sender.send(key, frame, record, flow)

    def _take_record(self, sender: int, frame: Frame, *, patient: bool) -> None:
        """Take a record; a ``patient`` one may wait for certificates first."""
        try:
            decoded = self._wire.decode(sender, frame)
        except CapacityError:
            self._counters.drop("queue full")
            return
        except ChangedEvent as error:
            if self._forgeries is not None:
                self._forgeries.note_changed(error, sender)
            raise
        certificates = self._certificates if patient and decoded.missing else None
        if certificates is not None and certificates.hold(sender, frame, decoded.missing):
            return
        if decoded.record is not None:
            if decoded.record[KIND] == ACKNOWLEDGE:
                self.heard_back.set()
            self.handle(decoded.record)

    def _take_late_frames(self) -> None:
        """Take the frames that have waited for certificates long enough, for what they are."""
        for sender, frame in () if self._certificates is None else self._certificates.give_up():
            try:
                self._take_record(sender, frame, patient=False)
            except RemoteProtocolError:
                # Its connection is not at hand; the next such frame costs the sender that.
                self._counters.drop("bad frame")

    def _take_greeting(self, sender: int, frame: Frame) -> None:
        try:
            greeted = self._wire.decode_greeting(sender, frame)
        except CapacityError:
            self._counters.drop("queue full")
            return
        if greeted is not None:
            if len(self._greeted) >= MAX_GREETED:
                del self._greeted[next(iter(self._greeted))]
            self._greeted[sender] = greeted
            self.on_greeting(sender)
