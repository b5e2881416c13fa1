"""A stretch of the number line mapped evenly to the ring, in exact integer arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from gossamer.protocol.content.values import Number

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]

RING_BITS: Final = 62
RING_SIZE: Final = 1 << RING_BITS
_DIGIT_BITS: Final = RING_BITS // 2
_DIGIT: Final = 1 << _DIGIT_BITS


@frozen
class Line:
    """The coordinates from `origin` to `origin + width`, both in `units` to the coordinate 1.

    Coordinate c has the place floor((c - origin) / width * 2^62), cut off to [0, 2^62).
    """

    origin: int
    width: int
    units: int

    @classmethod
    def spanning(cls, origin: Number, width: Number) -> Line:
        """The line of a stretch given in coordinates; its width is above 0."""
        start, length = Fraction(origin), Fraction(width)
        units = math.lcm(start.denominator, length.denominator)
        return cls(int(start * units), int(length * units), units)

    def place(self, coordinate: Number) -> int:
        """The place of one coordinate."""
        numerator, denominator = coordinate.as_integer_ratio()
        offset = numerator * self.units - self.origin * denominator
        place = (offset << RING_BITS) // (self.width * denominator)
        return min(max(place, 0), RING_SIZE - 1)

    def places(self, coordinates: Int64s | Float64s) -> Int64s:
        """The places of finite coordinates, one-dimensional arrays both."""
        if not self._fits_machine_words:
            exact = [self.place(coordinate) for coordinate in coordinates.tolist()]
            return np.array(exact, dtype=np.int64)
        units, fractions = self._units_from_origin(coordinates)
        inside = np.clip(units, 0, self.width - 1)
        high, rest = divide_wide(inside, _DIGIT, fractions >> _DIGIT_BITS, self.width)
        low, _ = divide_wide(rest, _DIGIT, fractions & (_DIGIT - 1), self.width)
        places = (high << _DIGIT_BITS) | low
        places = np.where(units < 0, 0, places)
        return np.where(units >= self.width, RING_SIZE - 1, places).astype(np.int64)

    @property
    def _fits_machine_words(self) -> bool:
        dyadic = self.units & (self.units - 1) == 0
        return dyadic and abs(self.origin) + self.width + 2 * self.units < RING_SIZE

    def _units_from_origin(self, coordinates: Int64s | Float64s) -> tuple[Int64s, Int64s]:
        """Whole units from the origin (negative below it), and the rest in 2^-62 units."""
        # Cut off just outside the stretch, so that nothing overflows and no place changes.
        lowest = self.origin // self.units - 1
        highest = -(-(self.origin + self.width) // self.units) + 1
        if coordinates.dtype == np.int64:
            cut = np.clip(coordinates, lowest, highest).astype(np.int64)
            return cut * self.units - self.origin, np.zeros_like(cut)
        near = np.clip(
            coordinates,
            np.nextafter(float(lowest), -math.inf),
            np.nextafter(float(highest), math.inf),
        )
        # Scaling by a power of two, truncation, and what truncation leaves are exact in floats.
        scaled = np.ldexp(near, self.units.bit_length() - 1)
        whole = np.trunc(scaled)
        rest = np.floor(np.ldexp(scaled - whole, RING_BITS)).astype(np.int64)
        borrow = rest < 0
        return whole.astype(np.int64) - self.origin - borrow, rest + borrow * RING_SIZE


def divide_wide(
    factor: Int64s, multiplier: Int64s | int, addend: Int64s | int, divisor: Int64s | int
) -> tuple[Int64s, Int64s]:
    """Quotient and remainder of (factor * multiplier + addend) / divisor, elementwise and exact.

    Needs 0 <= factor < divisor <= 2^62, 0 <= multiplier <= 2^31 and 0 <= addend < 2^31, with
    addend 0 or the multiplier 2^31, so that the quotient is below 2^31 while the product may need
    93 bits.
    """
    product_bits = factor.astype(np.uint64) * np.asarray(multiplier).astype(np.uint64)
    dividend_bits = product_bits + np.asarray(addend).astype(np.uint64)
    estimate = (factor.astype(np.float64) * multiplier + addend) / divisor
    # The estimate is off by less than 2^-19, its floor by at most one: the remainder then fits
    # 64 bits, so that computing it modulo 2^64 gives it exactly.
    quotient = estimate.astype(np.int64)
    taken_bits = quotient.astype(np.uint64) * np.asarray(divisor).astype(np.uint64)
    remainder = (dividend_bits - taken_bits).view(np.int64)
    correction = (remainder >= divisor).astype(np.int64) - (remainder < 0)
    return quotient + correction, remainder - correction * divisor


def scale_wide(factor: Int64s, multiplier: Int64s, divisor: Int64s) -> Int64s:
    """The floor of factor * multiplier / divisor, elementwise and exact.

    Needs 0 <= factor < divisor <= 2^62 and 0 <= multiplier <= 2^62.
    """
    high, high_rest = divide_wide(factor, multiplier >> _DIGIT_BITS, 0, divisor)
    middle, middle_rest = divide_wide(high_rest, _DIGIT, 0, divisor)
    low, low_rest = divide_wide(factor, multiplier & (_DIGIT - 1), 0, divisor)
    carry = middle_rest + low_rest >= divisor
    return (high << _DIGIT_BITS) + middle + low + carry
