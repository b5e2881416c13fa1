"""How long to wait before dialling again: longer with every failure, and never in step."""

from __future__ import annotations

import random

import attrs

from gossamer.protocol.kernel.errors import ConfigError


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
