"""At most one connection to each peer, dialled when there is something to send.

Two peers may dial each other at the same moment. Both then hold two connections, and both keep the
one that the peer with the smaller key dialled. A connection older than a handshake may take cannot
have been dialled at the same moment: then the peer has lost it, and the new one takes its place.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

import attrs
import trio

from gossamer.node.errors import PeerUnreachable, TransportBroken
from gossamer.node.monitoring.looks import next_look
from gossamer.node.transport.base import (
    Address,
    Admitted,
    Cause,
    Farewell,
    Listener,
    PeerIdentity,
    Transport,
)
from gossamer.node.transport.connection import NOTHING, Connection, Together
from gossamer.node.transport.limits import Attempts, BackOff, Limits
from gossamer.node.transport.schema import Frame, FrameTypes
from gossamer.node.transport.send_queue import Backlog, Flow
from gossamer.node.transport.writer import ConnectionMaintenance, Traffic
from gossamer.protocol.kernel.errors import RemoteProtocolError

# How often connections without use are looked for, in parts of the time they may stay.
SWEEPS_PER_LIFETIME = 4
# Failed dials remembered: more than an address book holds, and 100 bytes each.
ATTEMPTS_REMEMBERED = 4096
# Ends before which everything is sent that was queued, and read that was sent.
IN_ORDER = frozenset({Cause.SHUTDOWN, Cause.UNUSED})
# Causes for which a peer is not connected to again at once.
BROKE_RULES = frozenset({Cause.BAD_FRAME, Cause.FLOOD})


@attrs.frozen(kw_only=True)
class PoolEvents:
    """What a pool reports.

    Attributes:
        on_frame: awaited for each frame; while it runs, nothing more is read from that peer.
        on_bytes: shown what came from a peer before `on_frame` is, as of `Connection.run`.
        on_up: a peer is connected; called once until `on_down`, whichever connection it is.
        on_down: a peer is connected no more, and why.
        on_loss: a connection to a peer ended such that frames under way may be lost, whether or
            not there is another; called before `on_down`.
        on_admitted: a connection to a peer came up, of several or not; called before `on_up`.
        on_busy: a peer was turned away since all connections are in use.
        on_dropped: a frame of a flow was dropped since too much waits for the peer of that key.
    """

    on_frame: Callable[[PeerIdentity, Frame], Awaitable[None]]
    on_up: Callable[[PeerIdentity], None]
    on_down: Callable[[PeerIdentity, Farewell], None]
    on_bytes: Callable[[PeerIdentity, memoryview], Together] = lambda _identity, _data: NOTHING
    on_loss: Callable[[PeerIdentity], None] = lambda _identity: None
    on_admitted: Callable[[Admitted], None] = lambda _: None
    on_busy: Callable[[], None] = lambda: None
    on_dropped: Callable[[int, Flow], None] = lambda _key, _flow: None


class _Dial:
    """An attempt that several senders may wait for."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.error: PeerUnreachable | None = None


@attrs.define(eq=False, slots=False)
class ConnectionPool:
    """All connections of this peer; `run` owns them.

    Args:
        rest_s: for how long peers that rest may say nothing.

    Attributes:
        ends: connections that ended, counted by cause.
        dials, dials_failed: attempts to connect, and those that led to nobody.
        listeners: what `run` listens on; empty before it started.
        backlog: what waits to be written of each flow.
    """

    _transport: Transport
    _limits: Limits
    _types: FrameTypes
    _addresses_of: Callable[[int], Sequence[Address]]
    _draws: random.Random
    _back_off: BackOff = attrs.field(factory=BackOff)
    _rest_s: float = 0.0

    def __attrs_post_init__(self) -> None:
        self.ends: Counter[Cause] = Counter()
        self.dials = self.dials_failed = 0
        self.listeners: Sequence[Listener] = ()
        self.backlog = Backlog()
        self._links: dict[int, Connection] = {}
        self._serving: set[Connection] = set()
        self._maintenance = ConnectionMaintenance(self._limits.ping_seconds, self._rest_s)
        self._dials: dict[int, _Dial] = {}
        self._attempts: dict[int, Attempts] = {}
        self._events: PoolEvents
        self._nursery: trio.Nursery | None = None
        self._closing = False
        self._stopped = trio.Event()
        self._traffic_of_ended = Traffic()

    async def run(
        self,
        addresses: Sequence[Address],
        events: PoolEvents,
        task_status: trio.TaskStatus[Sequence[Address]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen on ``addresses`` and serve all connections until cancelled or closed.

        What happens is reported to ``events``. Started are the addresses really listened on.

        Raises:
            ListenFailed: one cannot be opened; nothing was started.
        """
        self._events = events
        self.listeners = await self._transport.listen(addresses)
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for listener in self.listeners:
                    nursery.start_soon(listener.serve, self._serve)
                nursery.start_soon(self._maintenance.run)
                nursery.start_soon(self._sweep)
                task_status.started([listener.address for listener in self.listeners])
        finally:
            self._nursery = None
            with trio.CancelScope(shield=True):
                for listener in self.listeners:
                    await listener.aclose()
            self._stopped.set()

    async def close(self, cause: Cause = Cause.SHUTDOWN) -> None:
        """Say goodbye to everybody and end `run`; takes little more than `close_seconds`."""
        if self._nursery is None:
            return
        self._closing = True
        async with trio.open_nursery() as nursery:
            for connection in list(self._serving):
                nursery.start_soon(connection.close, cause)
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()
        await self._stopped.wait()

    def __len__(self) -> int:
        """How many peers are connected."""
        return len(self._links)

    def __iter__(self) -> Iterator[Connection]:
        """The connections, one for each connected peer."""
        return iter(list(self._links.values()))

    def get(self, key: int) -> Connection | None:
        """The connection to peer ``key``, None while there is none."""
        return self._links.get(key)

    async def send(self, key: int, frame: bytes, flow: Flow | None = None) -> None:
        """Queue ``frame`` for peer ``key``, dialling it if need be and waiting for room.

        Raises:
            PeerUnreachable: it cannot be reached now; the frame was not queued.
            TransportBroken: the connection ended while this waited, twice.
            FrameTooLarge: nobody would take it.
        """
        connection = await self.connect(key)
        try:
            await connection.send(frame, flow)
        except TransportBroken:
            # It ended, or was replaced, since it was looked up.
            await (await self.connect(key)).send(frame, flow)

    def try_send(self, key: int, frame: bytes, flow: Flow | None = None) -> bool:
        """Queue ``frame`` if peer ``key`` is connected and has room; return whether it was.

        If it is connected, a frame of a flow always is, or is dropped for others.

        Raises:
            FrameTooLarge: nobody would take it.
        """
        connection = self._links.get(key)
        return connection is not None and connection.is_open and connection.try_send(frame, flow)

    def try_send_together(self, key: int, frames: Sequence[bytes]) -> bool:
        """Queue frames for peer ``key`` if it is connected and nothing waits for it.

        Raises:
            FrameTooLarge: nobody would take one of them.
        """
        connection = self._links.get(key)
        return (
            connection is not None and connection.is_open and connection.try_send_together(frames)
        )

    async def connect(self, key: int) -> Connection:
        """The connection to peer ``key``, dialled if there is none; who asks at once shares it.

        Raises:
            PeerUnreachable: no address led to it, it is too early to try again after the last
                failure, or there are too many connections.
        """
        connection = self._links.get(key)
        if connection is not None and connection.is_open:
            return connection
        dial = self._dials.get(key)
        if dial is None:
            dial = self._start_dial(key)
        await dial.done.wait()
        if dial.error is not None:
            # An error of its own for each who waits, as raising one marks it.
            raise PeerUnreachable(key, dial.error.attempts, dial.error.retry_s)
        connection = self._links.get(key)
        if connection is None:
            raise PeerUnreachable(key, [("the peer", "it closed the connection at once")])
        return connection

    def cut(self, key: int, error: RemoteProtocolError) -> None:
        """End the connection to a peer that broke a rule by what it sent a while ago."""
        connection = self._links.get(key)
        if connection is not None:
            connection.expel(Cause.BAD_FRAME, str(error))

    def try_anew(self, key: int) -> None:
        """Forget that connecting to peer ``key`` failed: there is news of where it is."""
        self._attempts.pop(key, None)

    def failing(self, failures: int, within_s: float) -> list[int]:
        """The keys of peers to whom connecting failed so often in a row, the last time just now."""
        since = trio.current_time() - within_s
        return [
            key
            for key, attempts in self._attempts.items()
            if attempts.failures >= failures
            and attempts.not_before > since
            and key not in self._links
        ]

    async def meet(
        self, addresses: Sequence[Address], on_met: Callable[[Admitted], None]
    ) -> PeerIdentity:
        """Connect to whoever answers at one of ``addresses``, anew if it is connected.

        Args:
            addresses: of one peer.
            on_met: told who it is, before anything else is.

        Raises:
            PeerUnreachable: nobody answers there, or there are too many connections.
            Exception: what ``on_met`` raised; the connection was closed.
        """
        self._check_room(None)
        self.dials += 1
        try:
            admitted = await self._transport.dial(addresses)
        except PeerUnreachable:
            self.dials_failed += 1
            raise
        try:
            nursery = self._check_room(None)  # as of now: this peer may have stopped meanwhile
            on_met(admitted)
        except BaseException:
            await trio.aclose_forcefully(admitted.stream)
            raise
        dial = _Dial()
        nursery.start_soon(self._serve, admitted, dial)
        await dial.done.wait()
        return admitted.identity

    @property
    def traffic(self) -> Traffic:
        """What went over all connections so far."""
        total = self._traffic_of_ended
        for connection in self._serving:
            total = total.plus(connection.stats)
        return total

    # Dialling

    def _check_room(self, key: int | None) -> trio.Nursery:
        """Where another connection may be served; `PeerUnreachable` if it may not."""
        if self._nursery is None or self._closing:
            raise PeerUnreachable(key, [("this peer", "it is not running")])
        if len(self._links) + len(self._dials) >= self._limits.connections:
            why = [("this peer", f"all {self._limits.connections} connections are in use")]
            raise PeerUnreachable(key, why)
        return self._nursery

    def _start_dial(self, key: int) -> _Dial:
        now = trio.current_time()
        wait = self._attempts.get(key, Attempts()).not_before - now
        if wait > 0:
            why = [("its addresses", f"failed a moment ago, next attempt in {wait:.1f} s")]
            raise PeerUnreachable(key, why, wait)
        nursery = self._check_room(key)
        dial = self._dials[key] = _Dial()
        nursery.start_soon(self._dial, key, dial)
        return dial

    async def _dial(self, key: int, dial: _Dial) -> None:
        self.dials += 1
        try:
            admitted = await self._transport.dial(self._addresses_of(key), key)
        except PeerUnreachable as error:
            self.dials_failed += 1
            # It may have come to us meanwhile, which is as good.
            if key not in self._links:
                dial.error = self._note_failure(key, error)
            self._end_dial(key, dial)
            return
        except BaseException:
            dial.error = PeerUnreachable(key, [("this peer", "it is stopping")])
            self._end_dial(key, dial)
            raise
        await self._serve(admitted, dial)

    def _end_dial(self, key: int, dial: _Dial) -> None:
        if self._dials.get(key) is dial:
            del self._dials[key]
        dial.done.set()

    def _note_failure(self, key: int, error: PeerUnreachable) -> PeerUnreachable:
        return PeerUnreachable(key, error.attempts, self._note_attempt(key))

    def _note_attempt(self, key: int) -> float:
        """Note that it was no use to connect to a peer; the seconds until that is tried again."""
        attempts = self._attempts.setdefault(key, Attempts())
        attempts.failures += 1
        delay = self._back_off.delay_s(attempts.failures, self._draws)
        attempts.not_before = trio.current_time() + delay
        while len(self._attempts) > ATTEMPTS_REMEMBERED:
            del self._attempts[next(iter(self._attempts))]
        return delay

    # Connections

    async def _serve(self, admitted: Admitted, dial: _Dial | None = None) -> None:
        """Serve one admitted peer to its end, unless another connection to it is to stay."""
        key = admitted.identity.key
        connection = Connection(
            admitted,
            self._limits,
            self._types,
            self._maintenance,
            self.backlog,
            partial(self._events.on_dropped, key),
        )
        refusal, replaced = self._place(connection)
        if dial is not None:
            self._end_dial(key, dial)
        if refusal is not None:
            connection.start_closing(refusal)
        else:
            self._events.on_admitted(admitted)
        if refusal is None and replaced is None:
            self._events.on_up(admitted.identity)
        elif replaced is not None:
            replaced.start_closing(Cause.REPLACED, self._replacer(connection, replaced))
        self._serving.add(connection)
        try:
            on_bytes = partial(self._events.on_bytes, admitted.identity)
            await connection.run(self._frame_handler(admitted.identity), on_bytes)
        finally:
            self._serving.discard(connection)
            self._traffic_of_ended = self._traffic_of_ended.plus(connection.stats)
            self._take_out(connection)

    def _frame_handler(self, identity: PeerIdentity) -> Callable[[Frame], Awaitable[None]]:
        on_frame = self._events.on_frame

        async def handle(frame: Frame) -> None:
            await on_frame(identity, frame)

        return handle

    def _place(self, new: Connection) -> tuple[Cause | None, Connection | None]:
        """Enter ``new``: why it is refused, if it is, and which connection it replaces, if any."""
        key = new.identity.key
        old = self._links.get(key)
        if self._closing:
            return Cause.SHUTDOWN, None
        if old is None:
            if len(self._links) >= self._limits.connections:
                self._events.on_busy()
                return Cause.BUSY, None
        elif not self._is_better(new, old):
            return Cause.REPLACED, None
        self._links[key] = new
        return None, old

    def _replacer(self, new: Connection, old: Connection) -> str:
        """Where another process of the peer's key is, which took its place; "" for the same one."""
        is_another = new.admitted.hello.process != old.admitted.hello.process
        return new.admitted.place if is_another else ""

    def _is_better(self, new: Connection, old: Connection) -> bool:
        if not new.admitted.hello.process:
            return False  # it has a look at us
        at_once = new.opened_at - old.opened_at <= self._limits.handshake_seconds
        if not at_once or not old.is_open or new.admitted.dialled == old.admitted.dialled:
            return True
        we_are_smaller = self._transport.me.key < new.identity.key
        return new.admitted.dialled == we_are_smaller

    def _take_out(self, connection: Connection) -> None:
        """Note the end of ``connection``, and that its peer is down if no other took its place."""
        assert connection.farewell is not None
        self.ends[connection.farewell.cause] += 1
        if connection.farewell.cause not in IN_ORDER:
            self._events.on_loss(connection.identity)
        key = connection.identity.key
        if trio.current_time() - connection.opened_at >= self._back_off.stable_s:
            self._attempts.pop(key, None)
        elif connection.farewell.cause in BROKE_RULES:
            # What it was cut for it may do again at once, to an answer to the next frame.
            self._note_attempt(key)
        if self._links.get(key) is connection:
            del self._links[key]
            self._events.on_down(connection.identity, connection.farewell)

    async def _sweep(self) -> None:
        """Close connections that nobody uses."""
        lifetime = self._limits.unused_seconds
        while True:
            await trio.sleep_until(next_look(lifetime / SWEEPS_PER_LIFETIME))
            now = trio.current_time()
            for connection in self:
                if now - connection.last_used_at >= lifetime:
                    connection.start_closing(Cause.UNUSED)
