"""What time it is for the events of one peer, whose own clock may be wrong.

Events carry the time at which they were published: it orders those of one publisher, and of two
last values the later counts. A clock that is ahead for a second must not make times that nothing
after it can reach. So a peer compares its clock with those of its neighbours. While it is more than
`BOUND_S` ahead of *all* of them it is not believed, and the one that is furthest ahead is; it is
believed again as soon as it is right. A clock that is behind catches up by what it hears: times
that this peer gives are later than those of the events that it has seen (Kulkarni et al., "Logical
Physical Clocks", 2014), as far as these can be believed themselves.

Departs from the paper: a logical part of its own is not kept, since times are of microseconds and
the next one is free; and how far ahead a time may be is bounded.

Times are seconds since 1970. What a neighbour's clock says now follows from what it said once and a
steady clock, which goes on while the machine sleeps.
"""

from __future__ import annotations

from statistics import median_low
from typing import Final

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
