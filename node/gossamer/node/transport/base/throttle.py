"""Token buckets: so much in the long run, and a burst on top of it; and peers that exceed them."""

from __future__ import annotations

from gossamer.node.transport.base.limits import Limits


class TokenBucket:
    """Says how long to wait so that no more than ``rate`` tokens a second are used.

    It may be overdrawn, once: what arrived in one piece is used up and waited for afterwards.
    """

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._filled_at = now

    def charge(self, tokens: float, now: float) -> float:
        """Use ``tokens``; return the seconds to wait before more is used, mostly 0."""
        elapsed = max(0.0, now - self._filled_at)
        self._filled_at = now
        self._tokens = min(self._burst, self._tokens + elapsed * self._rate) - tokens
        return max(0.0, -self._tokens / self._rate)


class FloodError(Exception):
    """A peer kept exceeding its rate for too long."""


class Throttle:
    """Slows one peer down that sends more frames than ``limits`` allow."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._bucket = TokenBucket(limits.frames_per_second, limits.frames_burst, now)
        self._throttled_since: float | None = None

    def charge(self, weight: int, now: float) -> float:
        """Count frames towards the rate; return the seconds to wait before more are taken.

        Raises:
            FloodError: the peer exceeds its rate for longer than it may.
        """
        pause = self._bucket.charge(weight, now)
        if pause == 0.0:
            self._throttled_since = None
        elif self._throttled_since is None:
            self._throttled_since = now
        elif now - self._throttled_since > self._limits.flood_seconds:
            rate, seconds = self._limits.frames_per_second, self._limits.flood_seconds
            raise FloodError(f"more than {rate} frames a second for {seconds} s")
        return pause
