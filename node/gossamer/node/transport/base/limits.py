"""Every bound that a connection keeps, token buckets, and how long to wait before dialling.

A remote peer may send anything, at any pace. These numbers say how much memory and time it can
cost; whoever exceeds one loses its connection, and the cause is counted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs

from gossamer.protocol.kernel.errors import ConfigError

# The four bytes that tell how long a frame is.
HEADER_BYTES = 4

_Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def _whole(low: int, high: int) -> _Validator:
    def check(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not int or not low <= value <= high:
            raise ConfigError(
                f"transport.{field.name}", value, f"a whole number from {low} to {high}"
            )

    return check


def _seconds(low: float, high: float) -> _Validator:
    def check(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if type(value) not in (int, float) or not low <= value <= high:
            raise ConfigError(f"transport.{field.name}", value, f"seconds from {low} to {high}")

    return check


@attrs.frozen(kw_only=True, slots=True)
class Limits:
    """What one peer may cost another.

    Attributes:
        frame_bytes: bytes of one frame. A full routing table of 4,096 entries with three
            attributes, handed over at once, takes some 300 KiB; the rest is room.
        hello_bytes: bytes of a frame before the peer is admitted: a hello with 16 addresses
            takes 700, and strangers are not to hold more memory than they need.
        depth: containers within each other. The protocol's frames need 4.
        items: values in one frame, those within containers included, a map's keys too. Decoding
            makes up to 72 bytes of one, so that this bounds what a frame becomes: 1.2 MB.
        frames_per_second: frames that are taken from one peer in the long run; a frame counts
            once for each KiB begun. A peer at work takes some 200 a second from another.
        frames_burst: frames taken at once before the rate counts: two seconds' worth.
        flood_seconds: how long a peer may keep exceeding the rate, being slowed down all the
            time, before it is cut. Catching up after a partition takes less.
        queue_bytes: bytes queued for one peer before senders wait: two frames of full size.
        stall_seconds: how long one write may take before the peer counts as stalled and is cut.
            Shorter than `silence_seconds`, for it costs memory here.
        handshake_seconds: time for TCP, TLS and hello together; a WAN needs under 2.
        ping_seconds: seconds after which a peer is pinged from which nothing came meanwhile;
            the answer also measures the round-trip time.
        silence_seconds: a peer from which no whole frame came for so long is cut: four pings.
        unused_seconds: a connection on which only pings went for so long is closed; dialling
            anew costs 2 ms on a LAN, keeping it two pings every `ping_seconds`.
        close_seconds: how long an orderly end may take before it is made; half of the two
            seconds within which a node stops.
        connections: connections to admitted peers.
        strangers: connections from peers not yet admitted; the oldest makes room for one more.
        per_address: of those, from one address, or one IPv6 network (/64); a test machine runs 40
            peers, which may all start at once.
    """

    frame_bytes: int = attrs.field(default=1 << 20, validator=_whole(1024, 1 << 28))
    hello_bytes: int = attrs.field(default=4096, validator=_whole(1024, 1 << 20))
    depth: int = attrs.field(default=8, validator=_whole(2, 64))
    items: int = attrs.field(default=16384, validator=_whole(64, 1 << 22))
    frames_per_second: int = attrs.field(default=20_000, validator=_whole(1, 10**9))
    frames_burst: int = attrs.field(default=40_000, validator=_whole(1, 10**9))
    flood_seconds: float = attrs.field(default=10.0, validator=_seconds(0, 3600))
    queue_bytes: int = attrs.field(default=2 << 20, validator=_whole(2048, 1 << 30))
    stall_seconds: float = attrs.field(default=10.0, validator=_seconds(0.01, 3600))
    handshake_seconds: float = attrs.field(default=10.0, validator=_seconds(0.01, 3600))
    ping_seconds: float = attrs.field(default=5.0, validator=_seconds(0.01, 3600))
    silence_seconds: float = attrs.field(default=20.0, validator=_seconds(0.02, 86_400))
    unused_seconds: float = attrs.field(default=300.0, validator=_seconds(0.01, 86_400))
    close_seconds: float = attrs.field(default=1.0, validator=_seconds(0.01, 60))
    connections: int = attrs.field(default=512, validator=_whole(1, 1 << 16))
    strangers: int = attrs.field(default=128, validator=_whole(1, 1 << 16))
    per_address: int = attrs.field(default=64, validator=_whole(1, 1 << 16))

    def __attrs_post_init__(self) -> None:
        if self.queue_bytes < self.frame_bytes + HEADER_BYTES:
            raise ConfigError(
                "transport.queue_bytes",
                self.queue_bytes,
                f"room for one frame, {self.frame_bytes + HEADER_BYTES} (frame_bytes and header)",
            )
        if self.silence_seconds < 2 * self.ping_seconds:
            raise ConfigError(
                "transport.silence_seconds",
                self.silence_seconds,
                f"at least two pings, {2 * self.ping_seconds} (ping_seconds)",
            )


# Token buckets: so much in the long run, and a burst on top of it; and peers that exceed them.


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


# How long to wait before dialling again: longer with every failure, and never in step.


@attrs.frozen(kw_only=True, slots=True)
class BackOff:
    """Seconds between attempts to reach a peer.

    Attributes:
        first_s: after the first failure; a restarted process is back within a second.
        factor: by which it grows with each further failure.
        longest_s: what it never exceeds: a peer that comes back is found within a minute.
        jitter: share of the time that is drawn at random, so that peers which lost the same
            neighbour at once do not return to it at once.
        stable_s: a connection that lasted so long makes all earlier failures forgotten.
    """

    first_s: float = 0.5
    factor: float = 2.0
    longest_s: float = 60.0
    jitter: float = 0.5
    stable_s: float = 30.0

    def __attrs_post_init__(self) -> None:
        for name, good, expected in (
            ("first_s", 0 < self.first_s <= self.longest_s, "more than 0, at most longest_s"),
            ("factor", 1 <= self.factor <= 10, "1 to 10"),
            ("longest_s", self.longest_s <= 86_400, "at most a day"),
            ("jitter", 0 <= self.jitter <= 1, "0 to 1"),
            ("stable_s", self.stable_s >= 0, "at least 0"),
        ):
            if not good:
                raise ConfigError(f"transport.back_off.{name}", getattr(self, name), expected)

    def delay_s(self, failures: int, draws: random.Random) -> float:
        """Seconds to wait after ``failures`` failures in a row, the last one just now."""
        # Past 64 doublings it is at its longest anyway, and the power would overflow.
        grown = self.first_s * self.factor ** min(failures - 1, 64)
        longest = min(self.longest_s, grown)
        return longest * (1 - self.jitter * draws.random())


@attrs.define(slots=True)
class Attempts:
    """What is remembered of dialling one peer.

    Attributes:
        failures: in a row.
        not_before: trio's time of the next attempt.
    """

    failures: int = 0
    not_before: float = 0.0
