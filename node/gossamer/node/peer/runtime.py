"""Drives one peer: commands and records in, frames and deliveries out.

Everything here happens at once, in the order in which it comes: no step waits for anything. What
has to wait (connections, full queues) waits in the sender of frames. The sender is given, so that
the same runtime serves real sockets and tests under a clock that jumps. Frames and timers come by
`peer.inbound`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import attrs
import trio

from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.batches.event_batches import EventBatches
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF, Box, Core, Delivery, Record, unreachable
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.frame_types import Cause
from gossamer.node.peer.frames.publishers import PublisherService
from gossamer.node.peer.frames.wire import Wire
from gossamer.node.peer.load.inbox import Rest
from gossamer.node.peer.load.sender import FrameSender
from gossamer.node.transport.connection import Together
from gossamer.node.transport.schema import Frame
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO
from gossamer.protocol.peer.codec import held_handles
from gossamer.protocol.peer.record_table.records import (
    ACKNOWLEDGE,
    DELIVER,
    EVENT,
    EVENT_ID,
    EVENT_MESSAGES,
    HELD,
    INSTALL_TIMER,
    NOT_PUBLISHED,
    PUBLISHED,
    REPAIRED,
)
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.step import ABOUT_EVENTS

# Peers remembered to have greeted: more than there are connections.
MAX_GREETED: Final = 1024


@attrs.frozen
class Application:
    """What is above a runtime.

    Attributes:
        deliver: takes what is delivered.
        release: takes an event that came before it was known whose it is: its identifier, all of
            it, and the key of the neighbour that it came from.
        hold: told of an event that this peer is to hold for peers that are away, and of the key of
            the neighbour that it came from.
        note_publication: told of an event published here whether it is held as promised now, or
            could not be published since too many wait for that.
    """

    deliver: Callable[[Delivery], None]
    release: Callable[[int, bytes, int], None] = lambda _event, _sealed, _brought_by: None
    hold: Callable[[int, int], None] = lambda _event, _brought_by: None
    note_publication: Callable[[int, bool], None] = lambda _event, _held: None


@attrs.define(eq=False, slots=False)
class Runtime:
    """One peer at work.

    Args:
        publishers: introduces publishers before their events; None without certificates.

    Attributes:
        core: its protocol state.
        heard_back: set once another peer has acknowledged that it knows this one.
        observer: shown every record that the peer takes, before it does, and every delivery.
        rest: lets rounds pass that were slept through; told of all that comes.
        round_s: seconds of a round.
    """

    core: Core
    _address_book: AddressBook
    _wire: Wire
    _events: EventMemory
    _counters: Counters
    _frame_sender: FrameSender
    _publishers: PublisherService | None
    round_s: float

    def __attrs_post_init__(self) -> None:
        self.heard_back = trio.Event()
        self.observer: Callable[[Record], None] | None = None
        self.rest = Rest()
        self._application: Application
        self._batches: EventBatches | None = None
        self._coming: list[Record] = []  # taken once the rounds slept through have passed
        self._inbox: deque[Record] = deque()
        self._working = False
        self._counting_recovered = False
        self._greeted: dict[int, tuple[int, Sequence[int]]] = {}
        self._address_book.keep(self.held)

    def serve(self, application: Application) -> None:
        """Have ``application`` take what comes for it; to be called before anything comes."""
        self._application = application
        if self._publishers is not None:
            self._publishers.release_to(application.release)

    def held(self) -> Iterator[int]:
        """Handles that must keep their meaning: the protocol's, and those of records under way."""
        yield from held_handles(self.core.state, SELF)
        for record in (*self._coming, *self._inbox, *self._frame_sender.held()):
            yield record[TO]
            yield record[FROM]
            # Which words are handles depends on the kind; taking all for handles does no harm.
            yield from (word & HANDLE_MASK for word in record[BODY:])
        for handle, _ in self._greeted.values():
            yield handle

    # What happens to this peer

    def handle(self, record: Record) -> None:
        """Let the protocol take a record, and do what it wants done."""
        if self._working:
            self._inbox.append(record)
            return
        about_events = record[KIND] in ABOUT_EVENTS
        self._coming.append(record)
        self.rest.catch_up()
        self.take(self._coming.pop())
        self.rest.look_again(soon=about_events)

    def take(self, record: Record) -> None:
        """Let the protocol take one of its timers in its time, and do what it wants done."""
        self._inbox.append(record)
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

    def was_paused(self, seconds: float) -> None:
        """The process, or its machine, was paused for so long."""
        skipped = int(seconds // self.round_s)
        if skipped:
            self.handle(self.core.rounds_skipped(skipped))

    def lacks(self, event: int) -> None:
        """The applications were not given an event that was delivered: it is asked for again."""
        self.core.lacks(event)
        self.rest.look_again()

    def want(self, past_s: Mapping[Box, float]) -> None:
        """Want the events of boxes, each in force for so many seconds already, and no others."""
        self.rest.catch_up()
        most = self.core.settings.retention_rounds
        self.core.subscribe(
            {box: int(min(most, past / self.round_s)) for box, past in past_s.items()}
        )
        # Told at once rather than at the next round.
        self.handle(self.core.timer(INSTALL_TIMER))

    def take_greeting(self, sender: int, frame: Frame) -> bool:
        """A peer introduces itself; return whether it can be joined through."""
        try:
            greeted = self._wire.decode_greeting(sender, frame)
        except CapacityError:
            self._counters.drop("queue full")
            return False
        if greeted is None:
            return False
        if len(self._greeted) >= MAX_GREETED:
            del self._greeted[next(iter(self._greeted))]
        self._greeted[sender] = greeted
        return True

    def forget(self, key: int) -> None:
        """A peer is connected no more."""
        self._greeted.pop(key, None)

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
        if self._batches is None or not self.takes_together:
            return 0
        with self._at_work():
            return self._batches.publish(publications, self._wire.own_name(self.core.profile))

    def take_in_batches(self, batches: EventBatches | None) -> None:
        """Take frames about events many at a time from now on; None: one by one."""
        self._batches = batches

    @property
    def takes_together(self) -> bool:
        """Whether frames about events may be taken many at a time right now."""
        return self._batches is not None and not self._working and self.observer is None

    def take_together(self, sender: int, data: memoryview) -> Together:
        """Take the frames about events that bytes of a peer begin with, if `takes_together`."""
        assert self._batches is not None
        with self._at_work():
            return self._batches.take(sender, data)

    def take_waiting(self, waiting: Sequence[tuple[int, Frame]]) -> int:
        """Take frames about events, with the keys of their senders; return how many of the first.

        The others are to be taken one by one.
        """
        if self._batches is None or not self.takes_together:
            return 0
        with self._at_work():
            return self._batches.take_waiting(waiting)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Take no record meanwhile; those that came are taken at the end."""
        self.rest.catch_up()
        self._working = True
        try:
            yield
        finally:
            self._working = False
            self._take_inbox()
            self.rest.look_again(soon=True)

    def greeting(self) -> bytes:
        """The frame that begins every connection."""
        return self._wire.encode_greeting(self.core.profile)

    # How it is done

    def _carry_out(self, record: Record, cause: Cause) -> None:
        if record[TO] != SELF:
            self._send(record, cause)
        elif record[KIND] == DELIVER:
            if self.observer is not None:
                self.observer(record)
            self._counters.events_recovered += self._counting_recovered
            event, hops, tree_hops = record[BODY : BODY + 3]
            self._application.deliver(Delivery(event, hops, tree_hops, cause.sender))
        elif record[KIND] == HELD:
            self._application.hold(record[BODY], cause.sender)
        elif record[KIND] in (PUBLISHED, NOT_PUBLISHED):
            self._application.note_publication(record[BODY], record[KIND] == PUBLISHED)
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
        flow = cause.flow_of(record)
        key = self._address_book.key_of(record[TO])
        if record[KIND] in EVENT_MESSAGES:
            self.introduce_publisher(key, record[BODY + EVENT_ID])
        self._frame_sender.send(key, frame, record, flow)
