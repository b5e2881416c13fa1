"""Writing what a connection has queued."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import attrs
import trio

from gossamer.node.monitoring.looks import next_look
from gossamer.node.transport.base import Cause
from gossamer.node.transport.byte_streams import NonBlockingStream
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.send_queue import SendQueue

# What connections do by turns in two tasks for all of them, instead of two tasks each.
#
# A peer of forty has 39 connections. A task of its own that writes costs each frame a switch, one
# that pings costs a timer, and both cost memory.


# How often connections are looked after, in parts of the time from ping to ping.
LOOKS_PER_PING = 5


class ConnectionMaintenance:
    """Writes what connections have queued, and looks after them now and then; `run` does both.

    Attributes:
        looks: called now and then with trio's time, for each connection.
        rest_s: for how long peers that rest may say nothing.
    """

    def __init__(self, ping_seconds: float, rest_s: float = 0.0) -> None:
        self.looks: set[Callable[[float], None]] = set()
        self.rest_s = rest_s
        self._pause_s = ping_seconds / LOOKS_PER_PING
        self._due: list[Callable[[], None]] = []
        self._work = trio.lowlevel.ParkingLot()

    def soon(self, write: Callable[[], None]) -> None:
        """Let ``write``, which must not wait, be called once all that is to happen now has.

        Frames that follow from the same frames read are written together that way.
        """
        self._due.append(write)
        if self._work:
            self._work.unpark()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            await self._look_after()

    async def _write(self) -> None:
        while True:
            if not self._due:
                await self._work.park()
            due, self._due = self._due, []
            for write in due:
                write()
            if self._due:
                await trio.lowlevel.checkpoint()

    async def _look_after(self) -> None:
        while True:
            await trio.sleep_until(next_look(self._pause_s))
            now = trio.current_time()
            for look in list(self.looks):
                look(now)


# Pings of one connection, and how long its peer has been silent.


# This part of `ping_seconds` counts as all of it, as looks are not made to the moment.
SOON = 0.95


@attrs.define(eq=False, slots=False)
class KeepAlive:
    """Looks after one connection.

    Attributes:
        heard: whether a whole frame has come since the last look; set by the connection.
        is_reading: whether the connection waits for what the peer sends; set by the connection.

    Args:
        limits: how often a peer is pinged, and for how long it may be silent.
        looked_at: trio's time.
        sent: how many frames have been written to the peer.
        put: queues a ping if there is room for it, and says whether there was.
        rest_s: for how long the peer may say nothing before it is pinged, where that is longer than
            `ping_seconds`; at most half of `silence_seconds` counts.
    """

    _limits: Limits
    _looked_at: float
    _sent: Callable[[], int]
    _put: Callable[[bytes], bool]
    _cut: Callable[[Cause, str], None]
    _rest_s: float = 0.0

    def __attrs_post_init__(self) -> None:
        self.heard = False
        self.is_reading = False
        self._ping_number = 0
        self._ping_sent_at: float | None = None
        self._sent_before = 0
        self._silent_for = 0.0
        # Looks in a row at which nothing had been heard, or sent.
        self._unheard = self._unsent = 0
        patience_s = min(self._rest_s, self._limits.silence_seconds / 2)
        self._most_quiet = max(1, math.ceil(patience_s / self._limits.ping_seconds))

    def look(self, now: float) -> None:
        """Ping a peer that was not heard or was sent nothing since the last time; cut a silent one.

        Of peers that rest the last few times count as one (`rest_s`). Who takes long over what came
        reads no pings meanwhile, and answers none: so that the peer knows that we are here, it is
        pinged whether it answers or not. Nothing happens where less than `ping_seconds` have
        passed.
        """
        if now - self._looked_at < SOON * self._limits.ping_seconds:
            return
        # Silence is counted in our own ticks rather than by the clock: a process that was paused
        # finds the clock advanced, and what the peer sent meanwhile still unread.
        self._looked_at = now
        heard, self.heard = self.heard, False
        listened = self.is_reading and not heard
        self._silent_for = self._silent_for + self._limits.ping_seconds if listened else 0.0
        if self._silent_for >= self._limits.silence_seconds:
            self._cut(Cause.SILENT, f"no whole frame came for {self._silent_for:g} s")
        self._unheard = 0 if heard else self._unheard + 1
        self._unsent = 0 if self._sent() > self._sent_before else self._unsent + 1
        # Who is heard anyway is asked once, for the round-trip time.
        is_due = self._unheard >= self._most_quiet or self._ping_number == 0
        is_asked = self._ping_sent_at is None and is_due
        self._sent_before = self._sent()
        if is_asked or self._unsent >= self._most_quiet:
            self._ping(now)

    def _ping(self, now: float) -> None:
        """Ask, or ask again what was not answered."""
        number = self._ping_number + (self._ping_sent_at is None)
        if self._put(encode_frame("ping", number=number)):
            self._sent_before += 1  # as soon as it is written
            self._unsent = 0
            if self._ping_sent_at is None:
                self._ping_number, self._ping_sent_at = number, now

    def take_pong(self, number: int) -> float | None:
        """The round-trip time, in seconds, that an answer to a ping tells; None of any other."""
        if number != self._ping_number or self._ping_sent_at is None:
            return None
        took_s = trio.current_time() - self._ping_sent_at
        self._ping_sent_at = None
        return took_s


@attrs.define(slots=True)
class ConnectionStats:
    """What went over one connection.

    Attributes:
        frames_in, bytes_in: frames taken, headers included.
        frames_out, bytes_out: frames written, headers included.
        writes: how many writes they took.
        refused: frames that `try_send` found no room for.
        dropped: frames still queued when the connection ended.
        throttled: how often reading paused because the peer sent too many frames.
        round_trip_s: time of the last ping and its answer, None before the first.
    """

    frames_in: int = 0
    bytes_in: int = 0
    frames_out: int = 0
    bytes_out: int = 0
    writes: int = 0
    refused: int = 0
    dropped: int = 0
    throttled: int = 0
    round_trip_s: float | None = None


class Traffic(NamedTuple):
    """What went over connections.

    Attributes:
        taken, written: bytes, before TLS, headers included.
        throttled: how often reading paused because a peer sent more than it may.
    """

    taken: int = 0
    written: int = 0
    throttled: int = 0

    def plus(self, stats: ConnectionStats) -> Traffic:
        """The sum of this and what went over one connection."""
        return Traffic(
            self.taken + stats.bytes_in,
            self.written + stats.bytes_out,
            self.throttled + stats.throttled,
        )


@attrs.define(eq=False, slots=False)
class Writer:
    """Writes a queue to a stream: at once what the peer takes at once, the rest in a task.

    Args:
        stall_seconds: how long one write may take.
        on_failure: told why there is no more writing: `Cause.LOST` or `Cause.STALLED`, and more.
    """

    _stream: trio.abc.Stream
    _queue: SendQueue
    _stats: ConnectionStats
    _stall_seconds: float
    _on_failure: Callable[[Cause, str], None]

    def __attrs_post_init__(self) -> None:
        self._maintenance: ConnectionMaintenance | None = None
        self._nursery: trio.Nursery | None = None
        self._busy = False  # from when something is queued until all is written
        self._all_written = trio.lowlevel.ParkingLot()

    def begin(self, maintenance: ConnectionMaintenance, nursery: trio.Nursery) -> None:
        """Write from now on; what has to wait does so in ``nursery``."""
        self._maintenance, self._nursery = maintenance, nursery
        if self._queue:
            self.write_soon()

    def end(self) -> None:
        """Write no more."""
        self._maintenance = self._nursery = None

    def write_soon(self) -> None:
        """Let what is queued be written."""
        if not self._busy and self._maintenance is not None:
            self._busy = True
            self._maintenance.soon(self._write)

    async def wait_until_written(self) -> None:
        """Wait until the queue is empty."""
        while self._busy:
            await self._all_written.park()

    def _write(self) -> None:
        """Write what is queued; the rest is left to a task if the peer does not take all."""
        stream = self._stream
        if self._nursery is None:
            return
        try:
            while self._queue:
                batch = self._queue.take_batch()
                if not isinstance(stream, NonBlockingStream):
                    self._nursery.start_soon(self._write_patiently, stream.send_all, batch)
                    return
                if not stream.send_now(batch):
                    self._nursery.start_soon(self._write_patiently, stream.flush)
                    return
                self._note_written()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._on_failure(Cause.LOST, "it broke while sending")
        self._rest()

    async def _write_patiently(self, send: Callable[..., Awaitable[None]], *batch: bytes) -> None:
        """Let a batch be sent, then all that is queued, as long as the peer takes it."""
        seconds = self._stall_seconds
        # One scope for all writes: making one for each takes as long as encrypting it does.
        with trio.CancelScope(deadline=trio.current_time() + seconds) as patience:
            try:
                await send(*batch)
                self._note_written()
                while self._queue:
                    patience.deadline = trio.current_time() + seconds
                    await self._stream.send_all(self._queue.take_batch())
                    self._note_written()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._on_failure(Cause.LOST, "it broke while sending")
        if patience.cancelled_caught:
            size = self._queue.bytes_under_way
            self._on_failure(Cause.STALLED, f"{size} bytes were not taken in {seconds} s")
        self._rest()

    def _note_written(self) -> None:
        frames, size = self._queue.written()
        self._stats.frames_out += frames
        self._stats.bytes_out += size
        self._stats.writes += 1

    def _rest(self) -> None:
        self._busy = False
        self._all_written.unpark_all()
