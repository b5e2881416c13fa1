"""The last identifiers of many, in little memory.

A peer remembers tens of thousands of events that it has dealt with, for as long as it runs. A
dictionary takes some 140 bytes for each; here they are sorted words, of 16.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

# Identifiers that are sorted in at once: a search takes longer the more wait, and sorting is dear.
BLOCK: Final = 1024

Words = npt.NDArray[np.int64]


class RecentNumbers:
    """The last different numbers that were added, of those that fit into a signed word of 64 bits.

    What is forgotten are the oldest, so many at a time that between ``most`` less `BLOCK` and
    ``most`` numbers are remembered once there were that many.

    Args:
        most: how many are remembered at most, at least twice `BLOCK`.
        numbers: the first ones, oldest first.
    """

    def __init__(self, most: int, numbers: Iterable[int] = ()) -> None:
        assert most >= 2 * BLOCK
        self._most = most
        self._new: dict[int, None] = {}
        self._blocks: deque[Words] = deque()
        # To look into an array of NumPy's costs several times as much as into one of Python's.
        self._sorted = array("q")
        for number in numbers:
            self._new[number] = None
        if len(self._new) >= BLOCK:
            known = np.fromiter(self._new, np.int64, len(self._new))[-(most - BLOCK) :]
            # The oldest are the block that may be smaller.
            self._blocks.extend(np.split(known, range(len(known) % BLOCK, len(known), BLOCK)))
            self._new = {}
            self._sort()

    def __contains__(self, number: int) -> bool:
        if number in self._new:
            return True
        place = bisect_left(self._sorted, number)
        return place < len(self._sorted) and self._sorted[place] == number

    def __len__(self) -> int:
        return len(self._new) + len(self._sorted)

    def add(self, number: int) -> None:
        """Remember a number that is not remembered yet."""
        self._new[number] = None
        if len(self._new) == BLOCK:
            self._blocks.append(np.fromiter(self._new, np.int64, BLOCK))
            self._new = {}
            while sum(map(len, self._blocks)) + BLOCK > self._most:
                self._blocks.popleft()
            self._sort()

    def _sort(self) -> None:
        self._sorted = array("q", np.sort(np.concatenate(self._blocks)).tobytes())
