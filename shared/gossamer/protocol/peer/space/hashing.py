"""The order-preserving hash from attribute values to the identifier ring (Vinifera, Sec. IV-A).

The paper asks that v > u imply OPHF(v) > OPHF(u) and maps each attribute's domain to the whole
ring. Here every hash is monotone on all values of the attribute's type, and values outside the
domain take the place of its nearest end. `uniform_hash` spreads the domain evenly over the ring:

- integers, dates (to the microsecond) and enumerations divide the ring into equal arcs, one for
  each value, and a value hashes to the start of its arc: strictly increasing if the domain has at
  most 2^62 values;
- floats: values at least 2^-61 of the domain's width apart hash differently;
- strings: after the prefix that the whole domain shares, strings of at most k characters hash
  differently, where (alphabet size + 1)^k <= 2^62: 3 characters of any script, 13 of a to z.

`equi_depth_hash` and `quantile_hash` (beyond the paper) follow a distribution, so that arcs of
equal length receive equal shares of it: see `RingWarp`. All arithmetic is in exact integers, for
scalars and arrays alike.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from gossamer.protocol.content.attributes import Attribute, FloatAttribute, IntegerAttribute
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Number
from gossamer.protocol.kernel.errors import ConfigError, WrongValueError
from gossamer.protocol.peer.space.ring import RING_BITS, Scale, scale_of

# A stretch of the number line mapped evenly to the ring, in exact integer arithmetic.


Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]

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


# The second step of hashes that follow a distribution: bends the ring to spread mass evenly.


EVEN_SHARE_BITS: Final = 10
"""One 2^10-th of the ring is spread evenly over the domain (a guess), so that values which the
distribution never saw still differ."""


@frozen
class RingWarp:
    """A non-decreasing piecewise-linear map of the ring to itself (equi-depth, beyond the paper).

    A place u holds the share F(u) of a distribution below it and is mapped to about
    ((1 - e) F(u) + e u / 2^62) * 2^62, with e = 2^-10. Between knots F is linear; the mass of a
    repeated value spreads from that value to the next knot.

    Places at least 2^11 apart stay different. So, together with the uniform step: numbers at least
    2^-50 of the domain's width apart hash differently, and integers, dates and enumerations of at
    most 2^50 values are strictly increasing. Within a bucket between knots whose arc is no shorter
    than before, every two places stay different.

    Attributes:
        knots: places where the slope changes, ascending from 0 to 2^62.
        images: where the knots are mapped, non-decreasing from 0 to 2^62.
    """

    knots: tuple[int, ...]
    images: tuple[int, ...]

    @classmethod
    def following(cls, places: Int64s, counts: Int64s, buckets: int) -> RingWarp:
        """The warp for a distribution of counts (above 0) over ascending, distinct places."""
        below = np.cumsum(counts) - counts
        total = int(counts.sum())
        chosen = _knot_ranks(below, counts, total, buckets)
        knots = [int(place) for place in places[chosen]]
        images = [_image(int(below[rank]), total, int(places[rank])) for rank in chosen]
        if knots[0] > 0:
            knots, images = [0, *knots], [0, *images]
        return cls((*knots, RING_SIZE), (*images, RING_SIZE))

    def __call__(self, place: int) -> int:
        """Where one place is mapped."""
        bucket = bisect_right(self.knots, place) - 1
        knot, image = self.knots[bucket], self.images[bucket]
        arc, width = self.images[bucket + 1] - image, self.knots[bucket + 1] - knot
        return image + (place - knot) * arc // width

    def array(self, places: Int64s) -> Int64s:
        """Where places are mapped, one-dimensional arrays both."""
        knots = np.array(self.knots, dtype=np.int64)
        images = np.array(self.images, dtype=np.int64)
        buckets = np.searchsorted(knots, places, side="right") - 1
        offsets = places - knots[buckets]
        arcs, widths = np.diff(images)[buckets], np.diff(knots)[buckets]
        return images[buckets] + scale_wide(offsets, arcs, widths)


def _knot_ranks(below: Int64s, counts: Int64s, total: int, buckets: int) -> Int64s:
    """Ranks of both ends, of every quantile, and of every heavy value and the one after it."""
    last = len(counts) - 1
    quantiles = np.searchsorted(below, np.arange(buckets) * total // buckets, side="right") - 1
    heavy = np.flatnonzero(counts * buckets >= total)
    after_heavy = np.minimum(heavy + 1, last)
    return np.unique(np.concatenate(([0, last], quantiles, heavy, after_heavy)))


def _image(below: int, total: int, place: int) -> int:
    followed = ((1 << EVEN_SHARE_BITS) - 1) * RING_SIZE * below // total
    return (followed + place) >> EVEN_SHARE_BITS


__all__ = [
    "DEFAULT_BUCKETS",
    "RING_BITS",
    "RING_SIZE",
    "OrderPreservingHash",
    "equi_depth_hash",
    "quantile_hash",
    "uniform_hash",
    "uniform_hashes",
]

DEFAULT_BUCKETS: Final = 256
"""A guess: follows a distribution to within 1 % of its mass in a table of 250 to 500 entries."""


@frozen
class OrderPreservingHash:
    """Maps the values of one attribute to [0, 2^62) in their order; build it with a function below.

    Attributes:
        attribute: whose values it maps.
        warp: the second step, for hashes that follow a distribution; None in uniform hashes.
    """

    attribute: Attribute
    warp: RingWarp | None = None
    _scale: Scale = field(init=False, eq=False, repr=False)
    _line: Line = field(init=False, eq=False, repr=False)

    @_scale.default
    def _scale_of_attribute(self) -> Scale:
        return scale_of(self.attribute, RING_SIZE)

    @_line.default
    def _line_of_scale(self) -> Line:
        return Line.spanning(self._scale.origin, self._scale.width)

    def __call__(self, value: object) -> int:
        """The hash of one value; `WrongValueError` if it is not of the attribute's type."""
        place = self._line.place(self._scale.coordinate(value))
        return place if self.warp is None else self.warp(place)

    def array(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """The hashes of an array of numbers, equal to those of its elements one by one.

        Takes any shape of integers or floats that fit int64 or float64;
        returns int64 of the same shape. Raises `WrongValueError` for other dtypes, for NaN and
        infinities, and for attributes that are not numbers.
        """
        given = np.asarray(values)
        places = self._line.places(self._numbers(given).ravel())
        hashed = places if self.warp is None else self.warp.array(places)
        return hashed.reshape(given.shape)

    def _numbers(self, values: NDArray[np.generic]) -> NDArray[np.int64] | NDArray[np.float64]:
        name = self.attribute.name
        if not isinstance(self.attribute, IntegerAttribute | FloatAttribute):
            expected = f"single values, being of type {self.attribute.type_name}"
            raise WrongValueError(name, f"an array of {values.dtype}", expected)
        if values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64):
            return values.astype(np.int64)
        if values.dtype.kind != "f" or not np.can_cast(values.dtype, np.float64):
            raise WrongValueError(name, f"an array of {values.dtype}", "arrays of int64 or float64")
        if not np.isfinite(values).all():
            raise WrongValueError(name, "an array with NaN or infinity", "finite numbers")
        return values.astype(np.float64)


def uniform_hash(attribute: Attribute) -> OrderPreservingHash:
    """The hash that spreads the attribute's domain evenly over the ring (the paper's)."""
    return OrderPreservingHash(attribute)


def uniform_hashes(schema: Schema) -> tuple[OrderPreservingHash, ...]:
    """The uniform hash of every attribute, in the schema's order."""
    return tuple(uniform_hash(attribute) for attribute in schema)


def equi_depth_hash(
    attribute: Attribute,
    sample: Sequence[object] | NDArray[np.generic],
    buckets: int = DEFAULT_BUCKETS,
) -> OrderPreservingHash:
    """The hash under which arcs of equal length hold equal shares of a sample of values.

    The sample need not be sorted; repeated values weigh as often as they occur. Its distribution
    is kept at `buckets` quantiles and on both sides of every value heavier than one bucket.
    Raises `ConfigError` for an empty sample or no bucket, `WrongValueError` for wrong types.
    """
    if len(sample) == 0:
        raise ConfigError(f"sample of {attribute.name}", "empty", "at least one value")
    if buckets < 1:
        raise ConfigError("buckets", buckets, "at least 1")
    places = _uniform_places(attribute, sample)
    distinct, counts = np.unique(places, return_counts=True)
    return OrderPreservingHash(attribute, RingWarp.following(distinct, counts, buckets))


def quantile_hash(attribute: Attribute, boundaries: Sequence[object]) -> OrderPreservingHash:
    """The hash that gives the q + 1 stretches between q boundaries arcs of equal length.

    The boundaries are the inner quantiles of a distribution, in non-decreasing order; one that
    repeats stands for a value of that many shares. Raises `ConfigError` if they are none or out
    of order, `WrongValueError` for wrong types.
    """
    if len(boundaries) == 0:
        raise ConfigError(f"quantiles of {attribute.name}", "empty", "at least one boundary")
    places = _uniform_places(attribute, boundaries)
    if (places[1:] < places[:-1]).any():
        raise ConfigError(f"quantiles of {attribute.name}", "unsorted", "values in ascending order")
    distinct, counts = np.unique(places, return_counts=True)
    if distinct[0] > 0:
        distinct, counts = np.append([0], distinct), np.append([1], counts)
    else:
        counts[0] += 1
    return OrderPreservingHash(attribute, RingWarp.following(distinct, counts, len(places) + 1))


def _uniform_places(
    attribute: Attribute, values: Sequence[object] | NDArray[np.generic]
) -> NDArray[np.int64]:
    uniform = uniform_hash(attribute)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return uniform.array(values).ravel()
    return np.array([uniform(value) for value in values], dtype=np.int64)
