"""Last values, the newest event of every value of an attribute, and the clock that orders them.

An event may say that it is the last one for the value that it has of an attribute, its key. Every
peer keeps the newest of each key that it has heard of, and peers compare what they keep: one tells
another the keys and times of what it has got since it last did so, and sends what is newer (push
anti-entropy, Demers et al., "Epidemic Algorithms for Replicated Database Maintenance", 1987). What
is deleted stays as a mark, since an older value would come back from a peer that was away.

What was published by a clock that was ahead (`cluster_clock`) gives way to any value that can be
believed, or its key could not be set again until that time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import Final

from attrs import define, field, frozen

# Values kept, and their bytes together; the one that was set longest ago makes room.
MOST_VALUES: Final = 10_000
MOST_BYTES: Final = 16 << 20
# Values compared in one question.
COMPARED: Final = 2048

Stamp = tuple[int, int]
"""When an event was published, in microseconds, and its id: the greater of two is the newer."""


@frozen
class LastValue:
    """The newest event of a key.

    Attributes:
        key: the attribute and its value.
        stamp: of the event.
        data: the event's bytes.
        expires_at: Unix seconds, 0 for never; for marks of what is deleted as well.
        is_deleted: whether it says that there is no value any more.
    """

    key: bytes
    stamp: Stamp
    data: bytes
    expires_at: float = 0.0
    is_deleted: bool = False


@define(eq=False)
class LastValues:
    """What one peer keeps.

    Attributes:
        limit, limit_bytes: bounds.
        serial: of what was set last, counted up.
    """

    limit: int = MOST_VALUES
    limit_bytes: int = MOST_BYTES
    serial: int = field(default=0, init=False)
    _values: OrderedDict[bytes, tuple[int, LastValue]] = field(factory=OrderedDict)
    _bytes: int = 0

    def __len__(self) -> int:
        return len(self._values)

    def put(self, value: LastValue, latest: int) -> bool:
        """Keep a value if it is the newest of its key; return whether it is.

        Args:
            value: one that can be believed.
            latest: the latest time that can be, in microseconds.
        """
        if not self._is_news(value.key, value.stamp, latest):
            return False
        self._drop(value.key)
        self.serial += 1
        self._values[value.key] = (self.serial, value)
        self._bytes += len(value.data)
        while len(self._values) > self.limit or self._bytes > self.limit_bytes:
            self._drop(next(iter(self._values)))
        return True

    def find(self, key: bytes) -> LastValue | None:
        """The newest of a key, a mark that it is deleted too."""
        found = self._values.get(key)
        return None if found is None else found[1]

    def all(self, now: float) -> list[LastValue]:
        """All that are neither deleted nor expired, those set longest ago first."""
        self.expire(now)
        return [one for _, one in self._values.values() if not one.is_deleted]

    def expire(self, now: float) -> None:
        """Forget what has expired by Unix second ``now``."""
        for key, (_, one) in list(self._values.items()):
            if one.expires_at and one.expires_at <= now:
                self._drop(key)

    def since(self, serial: int) -> tuple[int, list[LastValue]]:
        """The next that were set after an earlier call's serial, and the serial reached."""
        news: list[tuple[int, LastValue]] = []
        for entry in reversed(self._values.values()):
            if entry[0] <= serial:
                break
            news.append(entry)
        news.reverse()
        if len(news) <= COMPARED:
            return self.serial, [one for _, one in news]
        return news[COMPARED - 1][0], [one for _, one in news[:COMPARED]]

    def missing(self, told: Iterable[tuple[bytes, Stamp]], latest: int) -> list[int]:
        """Places in a list of keys and stamps of what is newer than what is kept here."""
        return [
            place
            for place, (key, stamp) in enumerate(told)
            if stamp[0] <= latest and self._is_news(key, stamp, latest)
        ]

    def _is_news(self, key: bytes, stamp: Stamp, latest: int) -> bool:
        known = self._values.get(key)
        return known is None or known[1].stamp < stamp or known[1].stamp[0] > latest

    def _drop(self, key: bytes) -> None:
        known = self._values.pop(key, None)
        if known is not None:
            self._bytes -= len(known[1].data)


def chunks(values: Sequence[LastValue], size: int) -> Iterable[Sequence[LastValue]]:
    """The values in pieces of at most ``size`` bytes each, of one value at least."""
    piece: list[LastValue] = []
    used = 0
    for one in values:
        if piece and used + len(one.data) > size:
            yield piece
            piece, used = [], 0
        piece.append(one)
        used += len(one.data)
    if piece:
        yield piece


# What time it is for the events of one peer, whose own clock may be wrong.
#
# Events carry the time at which they were published: it orders those of one publisher, and of two
# last values the later counts. A clock that is ahead for a second must not make times that nothing
# after it can reach. So a peer compares its clock with those of its neighbours. While it is more
# than `BOUND_S` ahead of *all* of them it is not believed, and the one that is furthest ahead is;
# it is believed again as soon as it is right. A clock that is behind catches up by what it hears:
# times that this peer gives are later than those of the events that it has seen (Kulkarni et al.,
# "Logical Physical Clocks", 2014), as far as these can be believed themselves.
#
# Departs from the paper: a logical part of its own is not kept, since times are of microseconds and
# the next one is free; and how far ahead a time may be is bounded.
#
# Times are seconds since 1970. What a neighbour's clock says now follows from what it said once and
# a steady clock, which goes on while the machine sleeps.


# How far clocks may differ: what is kept by NTP differs by less, and so do events on their way.
BOUND_S: Final = 5.0
# One step of the times that events carry.
STEP_S: Final = 1e-6


class ClusterClock:
    """The clocks of a peer and of its neighbours."""

    def __init__(self) -> None:
        self._ahead_s: dict[int, float] = {}  # of the steady clock, by neighbour
        self._seen_s = 0.0

    def heard(self, neighbour: int, says_s: float, steady_s: float) -> None:
        """A neighbour's clock said ``says_s`` when the steady one said ``steady_s``."""
        self._ahead_s[neighbour] = says_s - steady_s

    def keep(self, neighbours: frozenset[int]) -> None:
        """Forget the clocks of all but these."""
        self._ahead_s = {key: one for key, one in self._ahead_s.items() if key in neighbours}

    def skew_s(self, own_s: float, steady_s: float) -> float:
        """How far the own clock is ahead of all the others, or behind them, where below 0.

        It is 0 within `BOUND_S`, between the others, and where there are none.
        """
        clocks = [steady_s + one for one in self._ahead_s.values()]
        if not clocks:
            return 0.0
        skew_s = own_s - min(max(own_s, min(clocks)), max(clocks))
        return skew_s if abs(skew_s) > BOUND_S else 0.0

    def believed_s(self, own_s: float, steady_s: float) -> float:
        """What time it is, see above."""
        self._forget_impossible(own_s, steady_s)
        return max(self._by_clocks_s(own_s, steady_s), self._seen_s + STEP_S)

    def latest_s(self, own_s: float, steady_s: float) -> float:
        """The latest time of an event that can be believed.

        Neighbours count by the median: one of them cannot make a later time believed alone.
        """
        clocks = [steady_s + one for one in self._ahead_s.values()]
        by_clocks_s = self._by_clocks_s(own_s, steady_s)
        return max([by_clocks_s, *([median_low(clocks)] if clocks else [])]) + BOUND_S

    def see(self, published_s: float, own_s: float, steady_s: float) -> None:
        """An event of this time was seen; times given from now on are later, if it is believed."""
        self._forget_impossible(own_s, steady_s)
        if self._seen_s < published_s <= self.latest_s(own_s, steady_s):
            self._seen_s = published_s

    def _forget_impossible(self, own_s: float, steady_s: float) -> None:
        """Forget what was seen while the own clock was ahead and nobody could tell."""
        if self._seen_s > self.latest_s(own_s, steady_s):
            self._seen_s = 0.0

    def _by_clocks_s(self, own_s: float, steady_s: float) -> float:
        return own_s - max(self.skew_s(own_s, steady_s), 0.0)
