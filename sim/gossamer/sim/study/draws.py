"""Draws for workloads: by seed, stream, row and column alone.

A row is the same whatever else is drawn, in whichever order and however many at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix_many
from gossamer.protocol.peer.space.ring import RING

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def uniform(seed: int, stream: int, rows: Int64s, column: int) -> Floats:
    """A uniform draw from [0, 1) for each row of one column of a stream."""
    return mix_many(seed * 1009 + stream, rows, column) / float(RING)


def rows_from(first: int, count: int) -> Int64s:
    """int64[count]: row numbers from ``first`` on."""
    return np.arange(first, first + count, dtype=np.int64)


def choices(seed: int, stream: int, rows: Int64s, column: int, options: int | Int64s) -> Int64s:
    """One of ``options`` for each row, all of them equally likely: int64 below ``options``."""
    return (uniform(seed, stream, rows, column) * options).astype(np.int64)


def normal(seed: int, stream: int, rows: Int64s, column: int) -> Floats:
    """Standard normal draws, float64 like ``rows``; takes this column and the next."""
    # Box and Muller; 1 - u is above 0.
    radius = np.sqrt(-2.0 * np.log(1.0 - uniform(seed, stream, rows, column)))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniform(seed, stream, rows, column + 1)))


def distinct_ranks(
    seed: int, stream: int, rows: Int64s, numbers: Int64s, *, places: int, exponent: float
) -> Int64s:
    """Ranks by Zipf's law, as many for each row as ``numbers`` says, none twice in a row.

    A rank that a row has already is drawn again, so that ranks are chosen one after another in
    proportion to the weights of those that are left.

    Args:
        seed, stream: of the draws.
        rows: int64[n], row numbers.
        numbers: int64[n], each at most ``places``.
        places: ranks that there are.
        exponent: of Zipf's law.

    Returns:
        int64[n, most], most of ``numbers``; -1 beyond a row's number.
    """

    def ranks(some: Int64s, column: int) -> Int64s:
        return zipf_ranks(uniform(seed, stream, rows[some], column), places, exponent)

    return _distinct(ranks, numbers)


def distinct_choices(
    seed: int, stream: int, rows: Int64s, numbers: Int64s, options: Int64s
) -> Int64s:
    """Equally likely options, of which each row has as many as ``options`` says; as above."""

    def places(some: Int64s, column: int) -> Int64s:
        return choices(seed, stream, rows[some], column, options[some])

    return _distinct(places, numbers)


def _distinct(draw: Callable[[Int64s, int], Int64s], numbers: Int64s) -> Int64s:
    """What rows draw, column after column, until each has as many different values as it needs."""
    found = np.full((len(numbers), int(numbers.max(initial=0))), -1, np.int64)
    have = np.zeros(len(numbers), np.int64)
    short = np.flatnonzero(numbers > 0)
    column = 0
    while len(short):
        drawn = draw(short, column)
        fresh = ~(found[short] == drawn[:, None]).any(axis=1)
        lucky = short[fresh]
        found[lucky, have[lucky]] = drawn[fresh]
        have[lucky] += 1
        short = short[have[short] < numbers[short]]
        column += 1
    return found


def shuffled(seed: int, stream: int, rows: Int64s, size: int) -> Int64s:
    """Where each of these rows stands in a random order of ``size`` rows: int64 below ``size``.

    A permutation whose places can be asked for one by one: four rounds of a Feistel network on the
    smallest square of a power of two that is not below ``size``; whoever lands beyond goes on from
    there.
    """
    half = max(1, -(-(size - 1).bit_length() // 2))
    mask = np.int64((1 << half) - 1)
    places = rows.astype(np.int64)
    beyond = np.ones(len(rows), np.bool_)
    while beyond.any():
        left, right = places[beyond] >> half, places[beyond] & mask
        for turn in range(4):
            left, right = right, left ^ (mix_many(seed * 1009 + stream, right, turn) & mask)
        places[beyond] = (left << half) | right
        beyond = places >= size
    return places


def zipf_ranks(draws: Floats, places: int, exponent: float) -> Int64s:
    """Ranks from 0 with probability proportional to 1 / (rank + 1)^exponent."""
    weights = 1.0 / np.arange(1, places + 1) ** exponent
    bounds = np.cumsum(weights / weights.sum())
    return np.minimum(np.searchsorted(bounds, draws, side="right"), places - 1)
