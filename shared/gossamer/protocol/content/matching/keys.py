"""Cuts as 64-bit keys in the same order, so that compiled code compares integers.

Numbers need no table: a float's bits, read as an integer, are its place among all floats. A key is
twice that place, plus one above the float. Between two floats lie infinitely many reals that are
none (1/3, 2**60 + 1, and whatever is beyond 2^±254); they share the key above the lower float where
an interval begins and the key below the upper one where it ends. So keys never contradict the
order, but what they say of such inexact ends has to be checked exactly.
"""

from __future__ import annotations

import math
import struct
from datetime import timedelta
from fractions import Fraction
from typing import Final

from gossamer.protocol.content.filters.domains import Cut, Dates, Exact

LEAST: Final = -(1 << 62)
MOST: Final = 1 << 62
"""Below and above all keys."""

_AS_FLOAT: Final = struct.Struct("<d")
_AS_WORD: Final = struct.Struct("<q")
_MAGNITUDE: Final = (1 << 63) - 1
_FIRST: Final = 769 << 52
"""Bits of 2^-254, the least magnitude that has a key of its own."""
_LAST: Final = (1279 << 52) - 1
_WHOLE: Final = 1 << 53
"""Whole numbers below are floats exactly."""
_RANKS: Final = _LAST - _FIRST + 1
_MICROSECOND: Final = timedelta(microseconds=1)


def number_rank(value: Exact) -> tuple[int, bool]:
    """The place of a number among the floats that have keys, and whether it is one of them.

    What is none takes the place of the next such float below it.
    """
    nearest = value if isinstance(value, float) else _float_below(value)
    magnitude = _AS_WORD.unpack(_AS_FLOAT.pack(nearest))[0] & _MAGNITUDE
    if _FIRST <= magnitude <= _LAST:
        rank = magnitude - _FIRST + 1
        return (rank if nearest > 0 else -rank), nearest == value
    if nearest == 0:
        return 0, value == 0
    if math.isinf(nearest):
        return (_RANKS + 1 if nearest > 0 else -_RANKS - 1), nearest == value
    if magnitude < _FIRST:
        return (0 if nearest > 0 else -1), False
    return (_RANKS if nearest > 0 else -_RANKS - 1), False


def _float_below(value: int | Fraction) -> float:
    """The greatest float that is not above a number."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0) if value > 0 else -math.inf
    if nearest > value:
        return math.nextafter(nearest, -math.inf)
    return nearest


def plain_rank(value: Exact) -> int | None:
    """As `number_rank`, quickly, of a number that is a float with a key, as most are; else None."""
    if type(value) is int and -_WHOLE < value < _WHOLE:
        value = float(value)
    if type(value) is float:
        magnitude = _AS_WORD.unpack(_AS_FLOAT.pack(value))[0] & _MAGNITUDE
        if _FIRST <= magnitude <= _LAST:
            rank: int = magnitude - _FIRST + 1
            return rank if value > 0 else -rank
    return None


def number_cell(value: Exact) -> int:
    """The key where the interval of a single number begins; it ends at the next key."""
    rank, exact = number_rank(value)
    return 2 * rank + (not exact)


def number_keys(low: Cut, high: Cut) -> tuple[int, int, bool]:
    """The keys of an interval's ends, and whether both are exact."""
    rank = plain_rank(low[0])
    low_key, low_exact = number_low(low) if rank is None else (2 * rank + low[1], True)
    rank = plain_rank(high[0])
    high_key, high_exact = number_high(high) if rank is None else (2 * rank + high[1], True)
    return low_key, high_key, low_exact and high_exact


def number_low(cut: Cut) -> tuple[int, bool]:
    """The key of a cut where an interval begins, and whether it is exact."""
    rank, exact = number_rank(cut[0])
    return 2 * rank + (cut[1] if exact else 1), exact


def number_high(cut: Cut) -> tuple[int, bool]:
    """The key of a cut where an interval ends, and whether it is exact."""
    rank, exact = number_rank(cut[0])
    return 2 * rank + (cut[1] if exact else 2), exact


def date_key(cut: Cut) -> int:
    """The key of a cut between instants: microseconds since the first, and one more at the top."""
    return int((cut[0] - Dates.bottom[0]) // _MICROSECOND) + int(cut[1])


def boolean_key(cut: Cut) -> int:
    """The key of a cut between booleans."""
    return int(cut[0])
