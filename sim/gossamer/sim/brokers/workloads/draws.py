"""Draws for workloads: by seed, stream, row and column alone.

A row is the same whatever else is drawn, in whichever order and however many at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gossamer.sim.workload import Floats, Int64s, uniform, zipf_ranks

# Columns drawn at a time while a row looks for ranks that it has not got yet.
_BLOCK: Final = 16

__all__ = ["Floats", "Int64s", "choices", "distinct_ranks", "normal", "rows_from", "uniform"]


def rows_from(first: int, count: int) -> Int64s:
    """int64[count]: row numbers from ``first`` on."""
    return np.arange(first, first + count, dtype=np.int64)


def choices(seed: int, stream: int, rows: Int64s, column: int, options: int) -> Int64s:
    """One of ``options`` for each row, all of them equally likely: int64 below ``options``."""
    return (uniform(seed, stream, rows, column) * options).astype(np.int64)


def normal(seed: int, stream: int, rows: Int64s, column: int) -> Floats:
    """Standard normal draws, float64 like ``rows``; takes this column and the next."""
    # Box and Muller; 1 - u is above 0.
    radius = np.sqrt(-2.0 * np.log(1.0 - uniform(seed, stream, rows, column)))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniform(seed, stream, rows, column + 1)))


def distinct_ranks(
    seed: int,
    stream: int,
    rows: Int64s,
    numbers: Int64s,
    *,
    places: int,
    exponent: float,
) -> list[list[int]]:
    """Ranks by Zipf's law, as many for each row as ``numbers`` says, none twice in a row.

    A rank that a row has already is drawn again, so that ranks are chosen one after another in
    proportion to the weights of those that are left.

    Args:
        seed, stream: of the draws.
        rows: int64[n], row numbers.
        numbers: int64[n], each at most ``places``.
        places: ranks that there are.
        exponent: of Zipf's law.
    """
    found: list[dict[int, None]] = [{} for _ in range(len(rows))]
    short = np.arange(len(rows))
    column = 0
    while len(short):
        drawn = np.stack(
            [
                zipf_ranks(uniform(seed, stream, rows[short], column + i), places, exponent)
                for i in range(_BLOCK)
            ],
            axis=1,
        )
        column += _BLOCK
        for place, ranks in zip(short.tolist(), drawn.tolist(), strict=True):
            _take(found[place], ranks, int(numbers[place]))
        short = np.array([p for p in short.tolist() if len(found[p]) < numbers[p]], np.int64)
    return [list(ranks) for ranks in found]


def _take(found: dict[int, None], ranks: Sequence[int], number: int) -> None:
    for rank in ranks:
        if len(found) >= number:
            return
        found[rank] = None
