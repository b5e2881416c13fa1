"""Pings of one connection, and how long its peer has been silent."""

from __future__ import annotations

from collections.abc import Callable

import trio

from gossamer.node.transport.base.base import Cause
from gossamer.node.transport.base.frames import encode_frame
from gossamer.node.transport.base.limits import Limits

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
