"""A token bucket: so much in the long run, and a burst on top of it."""

from __future__ import annotations


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
