"""Writing what a connection has queued."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import attrs
import trio

from gossamer.node.transport.base.base import Cause
from gossamer.node.transport.queues.connection_maintenance import ConnectionMaintenance
from gossamer.node.transport.queues.send_queue import SendQueue
from gossamer.node.transport.streams.byte_streams import NonBlockingStream


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


class Writer:
    """Writes a queue to a stream: at once what the peer takes at once, the rest in a task.

    Args:
        stream: where to.
        queue: what to write.
        stats: where it is counted.
        stall_seconds: how long one write may take.
        on_failure: told why there is no more writing: `Cause.LOST` or `Cause.STALLED`, and more.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        queue: SendQueue,
        stats: ConnectionStats,
        stall_seconds: float,
        on_failure: Callable[[Cause, str], None],
    ) -> None:
        self._stream = stream
        self._queue = queue
        self._stats = stats
        self._stall_seconds = stall_seconds
        self._on_failure = on_failure
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
