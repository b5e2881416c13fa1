"""How many publications may be under way at a time: fewer where acknowledgements are slow.

What is published faster than the overlay can take it waits somewhere. If it waits on its way, every
event is late, is published again, and makes all others later still, until none is acknowledged in
time and all of the work is for nothing. So it waits here, and applications with it: the window is
halved where an acknowledgement is slow, and grows again with those that are quick, as congestion
windows do (Jacobson 1988).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

import trio

# However slow acknowledgements are, so many are waited for at a time.
FEWEST: Final = 4


class Window:
    """Places for publications, given to applications in turn, and to each in the order it asks.

    Attributes:
        size: how many there are now.

    Args:
        most: how many there are at most, and at first.
        slow_s: an acknowledgement that takes so long says that too much is under way.
    """

    def __init__(self, most: int, slow_s: float) -> None:
        self.size = float(most)
        self._most = most
        self._fewest = min(FEWEST, most)
        self._slow_s = slow_s
        # Up to here it grows by one with each acknowledgement, from there on with a windowful.
        self._careful_from = float(most)
        self._shrunk_at = -math.inf
        self._taken = 0
        self._lots: OrderedDict[Hashable, trio.lowlevel.ParkingLot] = OrderedDict()

    async def take(self, whose: Hashable = None, most: int = 1) -> int:
        """Take places, once it is the turn of ``whose`` they are to be; return how many.

        At least one, and up to ``most`` while nobody waits; each is to be given back.
        """
        if self._lots or self._taken >= self._places:
            await self._wait(whose)
        else:
            self._taken += 1
        more = 0 if self._lots else max(0, min(most - 1, self._places - self._taken))
        self._taken += more
        return 1 + more

    def give_back(self, places: int = 1) -> None:
        """Let others have these places."""
        self._taken -= places
        self._give_places()

    def note(self, took_s: float) -> None:
        """An acknowledgement took so long, or was waited for in vain for so long."""
        if took_s < self._slow_s:
            grown = 1.0 if self.size < self._careful_from else 1.0 / self.size
            self.size = min(float(self._most), self.size + grown)
            return
        now = trio.current_time()
        # Others that went out before it was noticed are late for the same reason.
        if now - self._shrunk_at >= self._slow_s:
            self._shrunk_at = now
            self.size = self._careful_from = max(float(self._fewest), self.size / 2)

    @property
    def _places(self) -> int:
        return int(self.size)

    async def _wait(self, whose: Hashable) -> None:
        lot = self._lots.setdefault(whose, trio.lowlevel.ParkingLot())
        try:
            await lot.park()
        finally:
            # Who gave up may have been the last of its own.
            if not lot and self._lots.get(whose) is lot:
                del self._lots[whose]

    def _give_places(self) -> None:
        while self._lots and self._taken < self._places:
            whose, lot = next(iter(self._lots.items()))
            self._lots.move_to_end(whose)
            self._taken += 1
            lot.unpark()
            if not lot:
                del self._lots[whose]
