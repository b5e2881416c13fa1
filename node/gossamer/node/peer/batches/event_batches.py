"""All frames about events that a read brought, at once; and when compiled rules begin to pay.

What rules write for a neighbour goes out as one piece, where nothing waits for that neighbour; else
frame by frame, by turns, as if each had been taken alone.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import trio
from attrs import define

from gossamer.node.config.broker import ALWAYS, NEVER
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.looks import next_look
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.batches import machine_code
from gossamer.node.peer.batches.buffers import ANSWER_BYTES, MOST_BYTES, MOST_FRAMES
from gossamer.node.peer.batches.exchange import Exchange, FrameRow, WrittenRow
from gossamer.node.peer.batches.machine_code import EVENTS, MAKING_S, STEPS, Made
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF, Record
from gossamer.node.peer.frames.event_frames import event_frame, read_event_frame
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.frame_types import NEW_COSTS, WORD_BYTES
from gossamer.node.peer.frames.wire import Wire
from gossamer.node.peer.load.overload import Overloads
from gossamer.node.peer.load.sender import FrameSender
from gossamer.node.security.sealing import identifier, publisher_of
from gossamer.node.transport.connection import NOTHING, Together
from gossamer.node.transport.limits import HEADER_BYTES
from gossamer.node.transport.schema import Frame
from gossamer.node.transport.send_queue import Flow
from gossamer.protocol.kernel.errors import CapacityError, InvariantError, RemoteProtocolError
from gossamer.protocol.kernel.linking import LinkedCode
from gossamer.protocol.kernel.records import BODY
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    EVENT_ID,
    EVENT_MESSAGES,
    EVENT_ORIGIN,
    PUBLISH,
    TREE,
)

# Bytes of an event that name its publisher.
PUBLISHER_BYTES = 10

# Carries out a record that follows from one of a kind that came from the peer of a handle.
CarryOut = Callable[[Record, Record], None]


@define(eq=False, slots=False)
class EventBatches:
    """Takes frames about events from neighbours, many at a time.

    Args:
        carry_out: does what is no frame of an event.
        show: introduces the publisher of an event to the peer of a key.
        coordinates: words of a point.
        most: longest body of a frame.
    """

    _exchange: Exchange
    _address_book: AddressBook
    _wire: Wire
    _events: EventMemory
    _counters: Counters
    _overloads: Overloads
    _sender: FrameSender
    _carry_out: CarryOut
    _show: Callable[[int, int], None]
    _coordinates: int
    _most: int

    def __attrs_post_init__(self) -> None:
        self._point_bytes = WORD_BYTES * self._coordinates

    def take(self, sender: int, data: memoryview) -> Together:
        """Take the frames that ``data``, which the peer ``sender`` sent, begins with.

        What is to go by itself is left, and all that comes after it.
        """
        try:
            source = self._address_book.handle_of(sender)
        except CapacityError:
            return NOTHING
        self._exchange.load(data)
        rows = self._exchange.scan(source, self._most)
        count = self._take(rows, [sender] * len(rows), are_asked=True)
        return (count, rows[count - 1].end) if count else NOTHING

    def take_waiting(self, waiting: Sequence[tuple[int, Frame]]) -> int:
        """Take frames that have been read before, with the keys of their senders; return how many.

        What is to go by itself is left, and all that comes after it.
        """
        rows: list[FrameRow] = []
        self._exchange.load(b"")
        for sender, frame in waiting[:MOST_FRAMES]:
            try:
                source = self._address_book.handle_of(sender)
            except CapacityError:
                break
            name, values = b"".join(frame["peers"]), frame.get("event", b"")
            if not self._exchange.append(event_frame(frame["kind"], frame["words"], name, values)):
                break
            found = self._exchange.scan(source, self._most)
            if not found:
                break
            rows += found
        return self._take(rows, [sender for sender, _ in waiting[: len(rows)]], are_asked=False)

    def publish(self, publications: Sequence[Record], name: bytes) -> int:
        """Take commands to publish events that are remembered; return how many of the first.

        What is to go by itself is left, and all that comes after it.

        Args:
            publications: those commands.
            name: this peer's, as lists of peers in frames have it.
        """
        self._exchange.load(b"")
        count = 0
        for record in publications[:MOST_FRAMES]:
            frame = self._command(record, name)
            if frame is None or not self._exchange.append(frame):
                break
            count += 1
        rows = self._exchange.scan(SELF, self._most)
        if len(rows) != count:
            raise InvariantError(f"{count} commands to publish were read as {len(rows)}")
        for i in range(count):
            self._exchange.name(i, SELF)
        own = [self._address_book.key_of(SELF)] * count
        taken = 0
        while taken < count:
            taken, written = self._exchange.take(taken, count)
            self._pass_on(own, rows, [SELF] * count, written)
        return count

    def _command(self, record: Record, name: bytes) -> bytes | None:
        """A command to publish as rules of batches read it; None if it is too large for these."""
        sealed = self._events.find(record[BODY + EVENT_ID])
        if sealed is None:
            return None
        words = struct.pack(f"<{len(record) - BODY}q", *record[BODY:])
        frame = event_frame(PUBLISH, words, name, sealed[: -self._point_bytes])
        coordinates = self._point_bytes // WORD_BYTES
        is_small = (len(frame) + ANSWER_BYTES) * coordinates <= MOST_BYTES
        return frame if is_small and len(frame) - HEADER_BYTES <= self._most else None

    def _take(self, rows: list[FrameRow], senders: Sequence[int], *, are_asked: bool) -> int:
        names, sealed = self._name(senders, rows, are_asked=are_asked)
        rows = rows[: len(names)]
        self._counters.frames_received += len(rows)
        taken = 0
        while taken < len(rows):
            first = taken
            taken, written = self._exchange.take(first, len(rows))
            self._keep(rows, sealed, first, taken)
            self._pass_on(senders, rows, names, written)
        return len(rows)

    def _name(
        self, senders: Sequence[int], rows: Sequence[FrameRow], *, are_asked: bool
    ) -> tuple[list[int], list[bytes]]:
        """The handles of those who published, -1 where nobody asks, and all of their events.

        Up to what goes by itself: what was changed, and unless it was let in before
        (``are_asked``) what is new and too much.
        """
        names: list[int] = []
        events: list[bytes] = []
        here: dict[int, bytes] = {}
        named: dict[tuple[int, bytes], int | None] = {}
        for i, (sender, row) in enumerate(zip(senders, rows, strict=True)):
            sealed = self._sealed(row) if row.event >= 0 else b""
            handle = -1
            if row.values_at > row.name_at:
                if are_asked and not self._may_pass_on(sender, row, sealed):
                    break
                name = sender, self._exchange.incoming(row.name_at, row.values_at)
                if name not in named:
                    named[name] = self._handle_of_named(*name)
                found = named[name]
                if found is None:
                    break
                handle = found
                self._exchange.name(i, handle)
            if row.event >= 0:
                known = here.get(row.event) or self._events.find(row.event)
                if not self._is_genuine(row, sealed, known, handle):
                    break
                here[row.event] = sealed
            names.append(handle)
            events.append(sealed)
        return names, events

    def _may_pass_on(self, sender: int, row: FrameRow, sealed: bytes) -> bool:
        """Whether there is room for an event, or it is not new."""
        if row.kind != EVENT or not 0 <= row.mode < TREE:
            return True
        return self._overloads.may_pass_on(Flow(sender, publisher_of(sealed), NEW_COSTS))

    def _handle_of_named(self, sender: int, name: bytes) -> int | None:
        """The handle of who is named, -1 if nobody is; None where a frame goes by itself."""
        try:
            handle, missing = self._wire.publisher_named(sender, name)
        except RemoteProtocolError:
            return None
        return None if missing else handle

    def _sealed(self, row: FrameRow) -> bytes:
        """All of the event that a frame carries: what is beside its words, and its point."""
        point = self._exchange.incoming(row.name_at - self._point_bytes, row.name_at)
        return self._exchange.incoming(row.values_at, row.end) + point

    def _is_genuine(self, row: FrameRow, sealed: bytes, known: bytes | None, origin: int) -> bool:
        """Whether `Wire.decode` would let an event pass, of which this is known here."""
        if known != sealed and (known is not None or identifier(sealed) != row.event):
            return False
        return origin < 0 or publisher_of(sealed) == self._address_book.key_of(origin)

    def _keep(
        self, rows: Sequence[FrameRow], sealed: Sequence[bytes], first: int, taken: int
    ) -> None:
        """Remember the events that came for the first time."""
        for i in range(first, taken):
            row = rows[i]
            if row.event >= 0 and (row.kind != EVENT or self._exchange.is_new(i)):
                self._events.keep(row.event, sealed[i])

    def _pass_on(
        self,
        senders: Sequence[int],
        rows: Sequence[FrameRow],
        names: Sequence[int],
        written: Sequence[WrittenRow],
    ) -> None:
        """Send what was written, and carry out the rest, to each neighbour in its order."""
        waiting: dict[int, list[WrittenRow]] = {}
        for one in written:
            if one.record is None:
                waiting.setdefault(one.to, []).append(one)
                continue
            if one.to != SELF and one.to in waiting:
                self._send(senders, rows, names, one.to, waiting.pop(one.to))
            row = rows[one.row]
            self._carry_out([BODY, row.kind, SELF, row.source, row.event], one.record)
        for to, frames in waiting.items():
            self._send(senders, rows, names, to, frames)

    def _send(
        self,
        senders: Sequence[int],
        rows: Sequence[FrameRow],
        names: Sequence[int],
        to: int,
        written: Sequence[WrittenRow],
    ) -> None:
        frames = [self._exchange.outgoing(one.begin, one.end) for one in written]
        self._counters.frames_sent += len(frames)
        self._counters.events_forwarded += sum(one.kind == EVENT for one in written)
        key = self._address_book.key_of(to)
        for one in written:
            if rows[one.row].event >= 0 and one.kind in EVENT_MESSAGES:
                self._show(key, rows[one.row].event)
        if self._sender.send_together(key, frames):
            return
        for one, frame in zip(written, frames, strict=True):
            row = rows[one.row]
            source = senders[one.row]
            is_flow = row.kind in (EVENT, PUBLISH)
            flow = Flow(source, self._publisher(row)) if is_flow else None
            record = self._record(to, frame, names[one.row])
            self._sender.send(key, frame, record, flow)

    def _publisher(self, row: FrameRow) -> int:
        begin = row.values_at
        return publisher_of(self._exchange.incoming(begin, min(begin + PUBLISHER_BYTES, row.end)))

    def _record(self, to: int, frame: bytes, origin: int) -> Record:
        """What a frame of our own says, as it would be handed back."""
        read = read_event_frame(frame[HEADER_BYTES:])
        words = memoryview(read["words"]).cast("q").tolist()
        if read["peers"]:
            words[EVENT_ORIGIN] = origin
        assert len(words) == len(read["words"]) // WORD_BYTES
        return [BODY + len(words), read["kind"], to, SELF, *words]


# When a peer begins to use compiled rules: once that pays.
#
# A peer at rest takes records one by one by interpreted rules, and spares itself the memory.
# Compiled code is loaded, and made where there is none, beside the peer's work, and used from one
# read to the next; the rules and what they do are the same. Busy is who takes many frames, or whose
# process works much for other reasons: with forty neighbours gossip alone takes more time than
# events do.


# Frames in a second from which on it pays to load code: a twentieth of a processor's time.
BUSY_RATE: Final = 200.0
LOOKS_S: Final = 1.0
# The share of a processor's time from which on it pays, and in how many of how many looks: forming
# an overlay, which a peer does once, takes a few seconds.
BUSY_SHARE: Final = 0.1
BUSY_LOOKS, LOOKS = 8, 10
# Between two looks whether another process has made what it makes.
LOOK_AGAIN_S: Final = 5.0

Use = Callable[[LinkedCode], None]


@define(eq=False, slots=False)
class Tiers:
    """Loads compiled rules when they are needed.

    Attributes:
        compiled: whether those for events are in use.

    Args:
        choice: "auto", "always" or "never".
        use: takes the code of a part, in the order in which parts are wanted.
        used_s: processor time of this process, seconds.
    """

    _choice: str
    _counters: Counters
    _use: Mapping[str, Use]
    _used_s: Callable[[], float] = time.process_time

    def __attrs_post_init__(self) -> None:
        self.compiled = False
        self._busy = deque[bool](maxlen=LOOKS)

    async def run(self) -> None:
        """Wait until the peer is busy, and let it use compiled rules from then on."""
        if self._choice == NEVER:
            return
        while self._choice != ALWAYS and not await self._is_busy():
            pass
        for part, use in self._use.items():
            code = await self._code(part)
            if code is None:
                log.warning("compiled rules cannot be had", part=part, effect=_EFFECTS[part])
                continue
            use(code)
            self.compiled = self.compiled or part == EVENTS
            log.info("compiled rules are used", part=part)

    async def _code(self, part: str) -> LinkedCode | None:
        """The code of a part, made if there is none; None where it cannot be had."""
        code = await trio.to_thread.run_sync(machine_code.load, part)
        made = Made.ELSEWHERE
        with trio.move_on_after(MAKING_S):
            while code is None and made is Made.ELSEWHERE:
                made = await trio.to_thread.run_sync(
                    machine_code.make, part, abandon_on_cancel=True
                )
                if made is Made.ELSEWHERE:
                    # Many peers of a machine start at once, and one process makes it for them all.
                    await trio.sleep(LOOK_AGAIN_S)
                code = await trio.to_thread.run_sync(machine_code.load, part)
        return code

    async def _is_busy(self) -> bool:
        frames, used_s, now = self._counters.frames_received, self._used_s(), time.monotonic()
        await trio.sleep_until(next_look(LOOKS_S))
        passed_s = max(LOOKS_S, time.monotonic() - now)
        self._busy.append(self._used_s() - used_s >= BUSY_SHARE * passed_s)
        frames = self._counters.frames_received - frames
        return frames >= BUSY_RATE * LOOKS_S or sum(self._busy) >= BUSY_LOOKS


_EFFECTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        EVENTS: "events are taken one by one",
        STEPS: "gossip takes more time",
    }
)
