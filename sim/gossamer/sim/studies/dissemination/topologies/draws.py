"""Streams of random numbers for topologies and workloads: seed, key and counter, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from gossamer.protocol.kernel.draws import below, mix

T = TypeVar("T")

_DRAWS = 1 << 62


class Stream:
    """Draws of one purpose; another key is another stream of the same seed."""

    def __init__(self, seed: int, key: int) -> None:
        self._seed = seed
        self._key = key
        self._counter = 0

    def _next(self) -> int:
        self._counter += 1
        return int(mix.interpreted(self._seed, self._key, self._counter))

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound`` - 1."""
        return int(below.interpreted(self._next(), bound))

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._next() / _DRAWS

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` different ones of the items, all if there are no more, in order of draw."""
        left = list(items)
        chosen = []
        for _ in range(min(count, len(left))):
            place = self.below(len(left))
            left[place], left[-1] = left[-1], left[place]
            chosen.append(left.pop())
        return chosen
