"""One admitted peer over one byte stream: frames in, frames out, and an end that has a cause.

`Connection.run` hands frames on as they come and slows down for a peer that sends too many. What
is queued is written by the caretaker, as much as fits in one write; where the peer does not take
it, a task of its own waits for that. The caretaker also lets it ping and notice silence.

    OPEN     -- close(), or a goodbye arrives -->  CLOSING   the queue is still sent
    OPEN     -- the peer breaks a rule        -->  CLOSING   the queue is dropped, a goodbye is sent
    OPEN     -- stalled, silent, lost         -->  OVER
    CLOSING  -- sent and read to the end, or `close_seconds` passed  -->  OVER
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import trio

from gossamer.node.errors import BadFrame, FrameTooLarge, TransportBroken
from gossamer.node.transport.base import CHUNK_BYTES, Admitted, Cause, Farewell, PeerIdentity
from gossamer.node.transport.byte_streams import close_stream, drain
from gossamer.node.transport.frames import (
    CONTROL_FRAMES,
    FrameReader,
    encode_frame,
    encode_goodbye,
)
from gossamer.node.transport.limits import HEADER_BYTES, FloodError, Limits, Throttle
from gossamer.node.transport.schema import Frame, FrameTypes
from gossamer.node.transport.send_queue import Backlog, Flow, SendQueue
from gossamer.node.transport.writer import ConnectionMaintenance, ConnectionStats, KeepAlive, Writer
from gossamer.protocol.kernel.errors import RemoteProtocolError

OnFrame = Callable[[Frame], Awaitable[None]]
# How many frames were taken together, and how many bytes they have.
Together = tuple[int, int]
OnBytes = Callable[[memoryview], Together]
NOTHING: Together = (0, 0)
# Bytes in which there may be a whole frame.
WORTH_SHOWING = HEADER_BYTES + 1
# Frames taken together after which others have their turn.
TURN = 16

# Bytes of a frame that the rate counts as one.
RATED_BYTES = 1024
# What may count towards the rate before it is looked at: it costs more than a small frame does.
RATED_AT_ONCE = 256
# Frames that are the connection's own.
OWN_FRAMES = frozenset(CONTROL_FRAMES)


def take_nothing(_: memoryview) -> Together:
    """Leave all frames to be handed on one by one."""
    return NOTHING


class State(enum.Enum):
    """Where a connection stands; see the module's table."""

    OPEN = enum.auto()
    CLOSING = enum.auto()
    OVER = enum.auto()


class _GoodbyeError(Exception):
    """The peer said goodbye; ends reading."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        cause = Cause.read(frame["reason"])
        self.farewell = Farewell(cause, False, frame.get("detail", ""), frame.get("proof", b""))


class Connection:
    """A connection to an admitted peer; `run` serves it.

    Attributes:
        identity: who the peer is.
        admitted: how it came here.
        stats: what went over it.
        farewell: how it ended; None while it lasts.
        last_used_at: trio's time when the last frame that was no ping went either way.
        heard_at: trio's time when anything came last.
    """

    def __init__(
        self,
        admitted: Admitted,
        limits: Limits,
        types: FrameTypes,
        maintenance: ConnectionMaintenance | None = None,
        backlog: Backlog | None = None,
        on_dropped: Callable[[Flow], None] = lambda _: None,
        refuse: Callable[[Frame, BadFrame], bytes | None] = lambda _frame, _error: None,
    ) -> None:
        """A connection that ``maintenance`` is to serve, who runs; without one it has its own.

        A frame of a known type with impossible fields is answered by what ``refuse`` makes of it,
        and is ignored; None cuts the sender.

        What waits of flows counts in ``backlog``, and of each of their frames that is dropped for
        want of room ``on_dropped`` is told.
        """
        now = trio.current_time()
        self.admitted = admitted
        self.stats = ConnectionStats()
        self.farewell: Farewell | None = None
        self.opened_at = self.last_used_at = self.heard_at = now
        self._limits = limits
        self._types = types
        self._state = State.OPEN
        self._queue = SendQueue(limits.queue_bytes, backlog)
        self._on_dropped = on_dropped
        self._maintenance = (
            ConnectionMaintenance(limits.ping_seconds) if maintenance is None else maintenance
        )
        self._takes_care = maintenance is None
        self._writer = Writer(
            admitted.stream, self._queue, self.stats, limits.stall_seconds, self._cut
        )
        self._over = trio.Event()
        self._scope = trio.CancelScope()
        self._throttle = Throttle(limits, now)
        self._keep_alive = KeepAlive(
            limits,
            now,
            lambda: self.stats.frames_out,
            self._put_control,
            self._cut,
            self._maintenance.rest_s,
        )
        self._expelled = False
        self._refuse = refuse

    @property
    def identity(self) -> PeerIdentity:
        return self.admitted.identity

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent."""
        return self._state is State.OPEN

    @property
    def queued_bytes(self) -> int:
        """Bytes waiting to be written."""
        return self._queue.size

    @property
    def queued_frames(self) -> int:
        """Frames waiting to be written, or being written."""
        return self._queue.unsent

    @property
    def queue_high_water(self) -> int:
        """Most bytes that ever waited to be written."""
        return self._queue.high_water

    async def send(self, frame: bytes, flow: Flow | None = None) -> None:
        """Queue ``frame``, waiting while the queue is full; where there is room, not at all.

        Order is kept among the sends of one task. A frame that was queued may still get lost if
        the connection breaks. One of a flow does not wait: see `try_send`.

        Raises:
            TransportBroken: the connection has ended.
            FrameTooLarge: the peer would not take it; the connection goes on.
        """
        self._check(frame)
        while flow is None and not self._queue.fits(frame):
            await self._queue.wait_for_room()
            self._check(frame)
        self._put(frame, flow)

    def try_send(self, frame: bytes, flow: Flow | None = None) -> bool:
        """Queue ``frame`` if there is room for it now; return whether there was.

        For a frame of a flow room is made: a frame of the longest flow is dropped, which may be
        this one.

        Raises:
            TransportBroken, FrameTooLarge: as in `send`.
        """
        self._check(frame)
        if flow is None and not self._queue.fits(frame):
            self.stats.refused += 1
            return False
        self._put(frame, flow)
        return True

    def try_send_together(self, frames: Sequence[bytes]) -> bool:
        """Queue frames where nothing waits that they would have to take turns with.

        Returns whether they were; if not, none is.

        Raises:
            TransportBroken, FrameTooLarge: as in `send`.
        """
        self._check(max(frames, key=len))
        if not self._queue.put_together(frames):
            return False
        self.last_used_at = trio.current_time()
        self._writer.write_soon()
        return True

    async def close(self, cause: Cause = Cause.SHUTDOWN, detail: str = "") -> None:
        """Send what is queued and a goodbye, let the peer finish, and end; wait until it is over.

        Takes at most `close_seconds`. Needs `run` to be running.
        """
        self.start_closing(cause, detail)
        await self._over.wait()

    def start_closing(self, cause: Cause, detail: str = "") -> None:
        """Begin what `close` does, without waiting for its end."""
        if self._state is State.OPEN:
            self._begin_end(Farewell(cause, True, detail), say_goodbye=True)

    def expel(self, cause: Cause, detail: str, proof: bytes = b"") -> None:
        """End because the peer is not to be dealt with any more.

        It is told why, and given the ``proof`` of its revocation if that is why; nothing that was
        queued is sent, and nothing it sends is taken.
        """
        self._expelled = True
        if self._state is State.OPEN:
            self.stats.dropped += self._queue.drop()
            self._begin_end(Farewell(cause, True, detail, proof), say_goodbye=True)

    async def run(self, on_frame: OnFrame, on_bytes: OnBytes = take_nothing) -> Farewell:
        """Serve the connection until it is over; return how it ended.

        ``on_bytes`` is shown what came and begins with a frame, and says how many frames it took
        of it and how long they are. ``on_frame`` is awaited for each other frame that is not the
        connection's own (ping, pong, goodbye). While it runs nothing more is read, which slows the
        peer down. If it raises `RemoteProtocolError` the peer is cut; any other error passes
        through.
        """
        orderly = False
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    self._maintenance.looks.add(self._keep_alive.look)
                    if self._takes_care:
                        nursery.start_soon(self._maintenance.run)
                    self._writer.begin(self._maintenance, nursery)
                    try:
                        await self._read_to_end(on_frame, on_bytes)
                        await self._writer.wait_until_written()
                    finally:
                        # Before the nursery is closed, in which it might start a task yet.
                        self._writer.end()
                    nursery.cancel_scope.cancel()
                orderly = True
        finally:
            self._maintenance.looks.discard(self._keep_alive.look)
            if self.farewell is None:
                self.farewell = Farewell(Cause.SHUTDOWN, True, "cancelled")
            self._state = State.OVER
            self.stats.dropped += self._queue.unsent
            self._queue.drop()
            await close_stream(self.admitted.stream, orderly, self._limits.close_seconds)
            self._over.set()
        return self.farewell

    # The queue

    def _check(self, frame: bytes) -> None:
        if self._state is not State.OPEN:
            assert self.farewell is not None
            farewell = self.farewell
            raise TransportBroken(str(self.identity), str(farewell), farewell.by_us)
        if len(frame) > self._limits.frame_bytes + HEADER_BYTES:
            raise FrameTooLarge(len(frame) - HEADER_BYTES, self._limits.frame_bytes)

    def _put(self, frame: bytes, flow: Flow | None) -> None:
        for dropped in self._queue.put(frame, flow):
            self.stats.refused += 1
            self._on_dropped(dropped)
        self.last_used_at = trio.current_time()
        self._writer.write_soon()

    def _put_control(self, frame: bytes) -> bool:
        """Queue an answer or a ping; a peer that does not read gets none, and costs no more."""
        if self._state is not State.OPEN or not self._queue.fits(frame):
            return False
        self._queue.put(frame)
        self._writer.write_soon()
        return True

    # The end

    def _begin_end(self, farewell: Farewell, *, say_goodbye: bool) -> None:
        """Take no more frames; what is queued is still sent, within `close_seconds`."""
        self.farewell = farewell
        self._state = State.CLOSING
        self._scope.deadline = trio.current_time() + self._limits.close_seconds
        if say_goodbye:
            self._queue.put(encode_goodbye(farewell.cause, farewell.detail, farewell.proof))
            self._writer.write_soon()
        self._queue.wake()

    def _cut(self, cause: Cause, detail: str) -> None:
        """End at once."""
        if self.farewell is None:
            self.farewell = Farewell(cause, cause in (Cause.STALLED, Cause.SILENT), detail)
        self._state = State.OVER
        self._scope.cancel()

    async def _cut_for_cause(self, cause: Cause, detail: str) -> None:
        """End because of what the peer did, telling it why if it still reads."""
        self.expel(cause, detail)
        await drain(self.admitted.stream)

    # Reading

    async def _read_to_end(self, on_frame: OnFrame, on_bytes: OnBytes) -> None:
        try:
            await self._read(on_frame, on_bytes)
            # The end of the stream: in order once we said goodbye, otherwise the peer vanished.
            if self._state is State.OPEN:
                self._cut(Cause.LOST, "it ended without a goodbye")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._cut(Cause.LOST, "it broke while receiving")
        except _GoodbyeError as goodbye:
            if self._state is State.OPEN:
                self._begin_end(goodbye.farewell, say_goodbye=False)
        except RemoteProtocolError as error:
            await self._cut_for_cause(Cause.BAD_FRAME, str(error))
        except FloodError as error:
            await self._cut_for_cause(Cause.FLOOD, str(error))

    async def _read(self, on_frame: OnFrame, on_bytes: OnBytes) -> None:
        reader = FrameReader(self._limits, own_forms=self._types.own_forms)
        data: bytes | bytearray = self.admitted.rest
        while True:
            reader.feed(data)
            await self._take_frames(reader, on_frame, on_bytes)
            self._keep_alive.is_reading = True
            data = await self.admitted.stream.receive_some(CHUNK_BYTES)
            self._keep_alive.is_reading = False
            if not data:
                return
            self.heard_at = trio.current_time()

    async def _take_frames(self, reader: FrameReader, on_frame: OnFrame, on_bytes: OnBytes) -> None:
        """Hand on every whole frame, waiting as long as their number asks for."""
        stats = self.stats
        weight, used = 0, False
        try:
            while True:
                while not self._expelled and (together := self._take_together(reader, on_bytes)):
                    used = True
                    weight += together
                    if weight >= RATED_AT_ONCE:
                        await trio.sleep(self._pause_for(weight))
                        weight = 0
                    elif together >= TURN:
                        await trio.lowlevel.checkpoint()
                frame = reader.next_frame()
                if frame is None:
                    break
                if self._expelled:
                    continue
                refusal = self._refusal_of(frame)
                size = reader.frame_size
                stats.frames_in += 1
                stats.bytes_in += size
                self._keep_alive.heard = True
                weight += 1 + size // RATED_BYTES
                if weight >= RATED_AT_ONCE:
                    await trio.sleep(self._pause_for(weight))
                    weight = 0
                if refusal is not None:
                    with suppress(TransportBroken):  # it left before its answer
                        await self.send(refusal)
                elif frame["type"] in OWN_FRAMES:
                    self._take_own(frame)
                else:
                    used = True
                    await on_frame(frame)
        finally:
            if used:
                self.last_used_at = trio.current_time()
        if pause := self._pause_for(weight):
            await trio.sleep(pause)

    def _refusal_of(self, frame: Frame) -> bytes | None:
        """The answer to a frame that is not as its type says, None for one that is.

        Raises:
            BadFrame: it gets none.
        """
        try:
            self._types.check(frame)
        except BadFrame as error:
            refusal = self._refuse(frame, error)
            if refusal is None:
                raise
            return refusal
        return None

    def _take_together(self, reader: FrameReader, on_bytes: OnBytes) -> int:
        """Hand on what came as bytes; return how much it counts towards the rate, 0 for nothing."""
        waiting = reader.waiting()
        if len(waiting) < WORTH_SHOWING:
            return 0
        frames, size = on_bytes(waiting)
        waiting.release()
        if not frames:
            return 0
        reader.skip(size)
        self.stats.frames_in += frames
        self.stats.bytes_in += size
        self._keep_alive.heard = True
        return frames + size // RATED_BYTES

    def _take_own(self, frame: Frame) -> None:
        """Deal with one of the connection's own frames."""
        kind = frame["type"]
        if kind == "ping":
            self._put_control(encode_frame("pong", number=frame["number"]))
        elif kind == "pong":
            took_s = self._keep_alive.take_pong(frame["number"])
            if took_s is not None:
                self.stats.round_trip_s = took_s
        elif kind == "goodbye":
            raise _GoodbyeError(frame)
        else:
            raise BadFrame("frame", "type", repr(kind), "no introduction after the first")

    def _pause_for(self, weight: int) -> float:
        """Count frames towards the rate; return the seconds to wait before more are taken."""
        pause = self._throttle.charge(weight, trio.current_time())
        self.stats.throttled += pause > 0.0
        return pause
