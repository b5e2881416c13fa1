"""What connections do by turns in two tasks for all of them, instead of two tasks each.

A peer of forty has 39 connections. A task of its own that writes costs each frame a switch, one
that pings costs a timer, and both cost memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

from gossamer.node.transport.base.base import Cause
from gossamer.node.transport.base.frames import encode_frame
from gossamer.node.transport.base.limits import Limits

# How often connections are looked after, in parts of the time from ping to ping.
LOOKS_PER_PING = 10


class MaintainedConnection(Protocol):
    """What is taken care of."""

    def look_after(self, now: float) -> None:
        """Do what is due at ``now``, by trio's clock."""
        ...


class ConnectionMaintenance:
    """Writes what connections have queued, and looks after them now and then; `run` does both.

    Attributes:
        charges: what is looked after.
    """

    def __init__(self, ping_seconds: float) -> None:
        self.connections: set[MaintainedConnection] = set()
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
            await trio.sleep(self._pause_s)
            now = trio.current_time()
            for connection in list(self.connections):
                connection.look_after(now)


# Pings of one connection, and how long its peer has been silent.


# This part of `ping_seconds` counts as all of it, as looks are not made to the moment.
SOON = 0.95


class KeepAlive:
    """Looks after one connection.

    Attributes:
        heard: whether a whole frame has come since the last look; set by the connection.
        is_reading: whether the connection waits for what the peer sends; set by the connection.

    Args:
        limits: how often a peer is pinged, and for how long it may be silent.
        now: trio's time.
        sent: how many frames have been written to the peer.
        put: queues a ping if there is room for it, and says whether there was.
        cut: ends the connection.
    """

    def __init__(
        self,
        limits: Limits,
        now: float,
        sent: Callable[[], int],
        put: Callable[[bytes], bool],
        cut: Callable[[Cause, str], None],
    ) -> None:
        self.heard = False
        self.is_reading = False
        self._limits = limits
        self._sent = sent
        self._put = put
        self._cut = cut
        self._ping_number = 0
        self._ping_sent_at: float | None = None
        self._sent_before = 0
        self._looked_at = now
        self._silent_for = 0.0

    def look(self, now: float) -> None:
        """Ping a peer that was not heard or was sent nothing since the last time; cut a silent one.

        Who takes long over what came reads no pings meanwhile, and answers none: so that the peer
        knows that we are here, it is pinged whether it answers or not. Nothing happens where less
        than `ping_seconds` have passed.
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
        # Who is heard anyway is asked once, for the round-trip time.
        is_asked = self._ping_sent_at is None and not (heard and self._ping_number)
        was_silent = self._sent() <= self._sent_before
        self._sent_before = self._sent()
        if is_asked or was_silent:
            self._ping(now)

    def _ping(self, now: float) -> None:
        """Ask, or ask again what was not answered."""
        number = self._ping_number + (self._ping_sent_at is None)
        if self._put(encode_frame("ping", number=number)):
            self._sent_before += 1  # as soon as it is written
            if self._ping_sent_at is None:
                self._ping_number, self._ping_sent_at = number, now

    def take_pong(self, number: int) -> float | None:
        """The round-trip time, in seconds, that an answer to a ping tells; None of any other."""
        if number != self._ping_number or self._ping_sent_at is None:
            return None
        took_s = trio.current_time() - self._ping_sent_at
        self._ping_sent_at = None
        return took_s
