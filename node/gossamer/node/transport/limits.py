"""Every bound that a connection keeps, token buckets, and how long to wait before dialling.

A remote peer may send anything, at any pace. These numbers say how much memory and time it can
cost; whoever exceeds one loses its connection, and the cause is counted.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import trio

from gossamer.node.monitoring.logs import log
from gossamer.protocol.kernel.errors import ConfigError

# The four bytes that tell how long a frame is.
HEADER_BYTES = 4

_Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def _between(low: float, high: float, what: str, *types: type) -> _Validator:
    def check(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if type(value) not in types or not low <= value <= high:
            raise ConfigError(f"transport.{field.name}", value, f"{what} from {low} to {high}")

    return check


def _whole(low: int, high: int) -> _Validator:
    return _between(low, high, "a whole number", int)


def _seconds(low: float, high: float) -> _Validator:
    return _between(low, high, "seconds", int, float)


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


# Room for those who come in and have not shown yet who they are.
#
# Anybody may open connections and say nothing. There is room for a number of them, and for a
# smaller number from one address: where it is full the one that has been there longest makes room,
# of the address with most of them. So nobody is kept out by others who are silent, and whoever
# shows at once who it is gets in from a crowded address, too. Who is admitted is no stranger any
# more and takes no room, however many come from behind one address.


# Strangers of whom some were turned out and are still taking their leave, in parts of the room.
LEAVING: Final = 3


class Guest:
    """A stranger.

    Attributes:
        group: the address that it counts as.
        scope: for what it is waited for; cancelled once it has to make room.
        is_turned_out: whether it had to.
        stays: whether it makes room only where nobody else can.
    """

    def __init__(self, doors: Doors, group: str) -> None:
        self.group = group
        self.scope = trio.CancelScope()
        self.is_turned_out = False
        self._doors = doors
        self.stays = False

    def let_stay(self, most: int) -> bool:
        """Let others make room first, if fewer than ``most`` of its address are let; whether."""
        self.stays = self._doors.staying(self.group) < most
        return self.stays

    def turn_out(self) -> None:
        """Let it make room for another."""
        self.is_turned_out = True
        self.scope.cancel()


class Doors:
    """Strangers at one port, or at several that share their room.

    Args:
        room: for how many.
        per_address: for how many of one IPv4 address, or of one IPv6 network (/64).
        on_crowd: told an address from which somebody had to make room.
    """

    def __init__(
        self, room: int, per_address: int, on_crowd: Callable[[str], None] = lambda _: None
    ) -> None:
        self._room = room
        self._per_address = per_address
        self._on_crowd = on_crowd
        self._groups: dict[str, dict[Guest, None]] = {}
        self._entered = 0

    def __len__(self) -> int:
        """How many are there."""
        return sum(map(len, self._groups.values()))

    @contextmanager
    def enter(self, group: str) -> Iterator[Guest | None]:
        """A guest until the end of the block, by which it is gone, or no stranger any more.

        None where too many that had to make room are not gone yet.
        """
        if self._entered >= (1 + LEAVING) * self._room:
            self._on_crowd(group)
            yield None
            return
        self._make_room(group)
        guest = Guest(self, group)
        self._groups.setdefault(group, {})[guest] = None
        self._entered += 1
        try:
            yield guest
        finally:
            self._take_out(guest)
            self._entered -= 1

    def staying(self, group: str) -> int:
        """How many of an address others make room for."""
        return sum(guest.stays for guest in self._groups.get(group, ()))

    def has_room_for(self, group: str) -> bool:
        """Whether one more of ``group`` gets in at the cost of no other of that address."""
        there = len(self._groups.get(group, ()))
        if there >= self._per_address:
            return False
        return len(self) < self._room or there < max(map(len, self._groups.values()))

    def _make_room(self, group: str) -> None:
        """Turn somebody out if there is no room for one of ``group``."""
        own = self._groups.get(group, {})
        if len(own) >= self._per_address:
            self._turn_out_oldest(group)
        elif len(self) >= self._room:
            # Of several with as many, one of the others.
            crowds = {one: (len(there), one != group) for one, there in self._groups.items()}
            self._turn_out_oldest(max(crowds, key=crowds.__getitem__))

    def _turn_out_oldest(self, group: str) -> None:
        guests = self._groups[group]
        oldest = next((guest for guest in guests if not guest.stays), next(iter(guests)))
        self._take_out(oldest)
        oldest.turn_out()
        self._on_crowd(group)

    def _take_out(self, guest: Guest) -> None:
        guests = self._groups.get(guest.group, {})
        guests.pop(guest, None)
        if not guests:
            self._groups.pop(guest.group, None)


def warn_of_crowd(group: str) -> None:
    """Have it in the log that somebody had to make room."""
    log.warning("too many strangers: the oldest made room", peer=group)


def address_group(host: str) -> str:
    """As which address ``host`` counts: its own, or its IPv6 network (/64).

    A name that is no IP address, such as that of a socket in the file system, counts as itself.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped or ipaddress.ip_network((address.packed, 64), strict=False))
