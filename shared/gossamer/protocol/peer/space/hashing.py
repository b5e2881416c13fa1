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

from collections.abc import Sequence
from typing import Final

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from gossamer.protocol.content.attributes import Attribute, FloatAttribute, IntegerAttribute
from gossamer.protocol.content.errors import WrongValueError
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.protocol.peer.space.line import RING_BITS, RING_SIZE, Line
from gossamer.protocol.peer.space.scales import Scale, scale_of
from gossamer.protocol.peer.space.warp import RingWarp

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
