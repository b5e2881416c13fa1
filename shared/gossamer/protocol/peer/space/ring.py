"""The identifier ring: integers modulo 2^62, read clockwise (Vinifera, Sec. IV-A).

Identifiers and hashed attribute values are signed 64-bit integers in [0, 2^62), so that sums and
differences of two of them never overflow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from attrs import frozen

from gossamer.protocol.content.attributes import (
    Attribute,
    BooleanAttribute,
    DateAttribute,
    DecimalAttribute,
    EnumerationAttribute,
    FloatAttribute,
    IntegerAttribute,
    StringAttribute,
    check_constant,
)
from gossamer.protocol.content.values import Number
from gossamer.protocol.kernel.draws import mix, mix_many
from gossamer.protocol.kernel.rules import inline_rule
from gossamer.protocol.peer.settings.config import Settings

RING_BITS = 62
RING = 1 << RING_BITS
RING_MASK = RING - 1


@inline_rule
def clockwise(start: int, end: int) -> int:
    """Distance from ``start`` to ``end`` going clockwise, in [0, 2^62)."""
    return (end - start) & RING_MASK


@inline_rule
def in_arc(value: int, start: int, end: int) -> bool:
    """Whether ``value`` lies in the arc (start, end]; the arc is the whole ring if start == end."""
    if start == end:
        return True
    return ((end - value) & RING_MASK) < ((end - start) & RING_MASK)


# Coordinates, which are values as exact rationals on a line, and the key that events route by.
#
# A scale says where a value stands on its line and which stretch of the line is the domain. The
# hash maps that stretch to the ring; nothing is rounded before that.


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_CODE_POINTS: Final = 0x110000


@frozen
class Scale:
    """The line of one attribute.

    Attributes:
        coordinate: a value's place on the line; non-decreasing, defined outside the domain too.
            Raises `WrongValueError` for values of another type.
        origin: coordinate of the least value of the domain.
        width: length of the stretch that is mapped to the ring, above 0. Discrete types give each
            value a cell of width 1, so their stretch ends one cell after the greatest value.
    """

    coordinate: Callable[[object], Number]
    origin: Number
    width: Number


def scale_of(attribute: Attribute, steps: int) -> Scale:
    """The scale of an attribute; strings keep as many characters as `steps` steps can use."""
    if isinstance(attribute, StringAttribute):
        return _string_scale(attribute, steps)
    if isinstance(attribute, EnumerationAttribute):
        return Scale(attribute.rank, 0, len(attribute.values))
    if isinstance(attribute, BooleanAttribute):
        return Scale(lambda value: int(attribute.check(value)), 0, 2)
    if isinstance(attribute, DateAttribute):
        return _date_scale(attribute)
    return _number_scale(attribute)


def _number_scale(attribute: IntegerAttribute | FloatAttribute | DecimalAttribute) -> Scale:
    cell = 1 if isinstance(attribute, IntegerAttribute) else 0
    width = Fraction(attribute.maximum) - Fraction(attribute.minimum) + cell
    return Scale(partial(_number, attribute), attribute.minimum, width)


def _number(attribute: Attribute, value: object) -> Number:
    number = check_constant(attribute, value)
    assert not isinstance(number, str | datetime)
    return number


def _date_scale(attribute: DateAttribute) -> Scale:
    origin = _microseconds(attribute, attribute.minimum)
    width = _microseconds(attribute, attribute.maximum) - origin + 1
    return Scale(partial(_microseconds, attribute), origin, width)


def _microseconds(attribute: Attribute, value: object) -> int:
    instant = check_constant(attribute, value)
    assert isinstance(instant, datetime)
    return (instant - _EPOCH) // _MICROSECOND


def _string_scale(attribute: StringAttribute, steps: int) -> Scale:
    letters = attribute.alphabet
    base = 1 + (_CODE_POINTS if letters is None else len(letters))
    skipped = _common_prefix(attribute.minimum, attribute.maximum)
    kept = 0
    origin, width = 0, 0
    while width < steps:
        kept += 1
        rank = _StringRank(attribute, base, skipped, kept)
        origin = rank(attribute.minimum)
        end = base**kept if attribute.maximum is None else rank(attribute.maximum) + 1
        width = end - origin
    return Scale(rank, origin, width)


def _common_prefix(low: str, high: str | None) -> int:
    # Every string between the two ends starts with what both ends start with.
    if high is None:
        return 0
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    return shared


@frozen
class _StringRank:
    """The `kept` characters after the first `skipped`, as digits of a number in base `base`.

    Digit 0 stands for the end of the string, digit i for the i-th character of the alphabet. A
    character outside the alphabet (only bounds of subscriptions have any) counts as the end of
    all strings that continue with the character before it.
    """

    attribute: StringAttribute
    base: int
    skipped: int
    kept: int

    def __call__(self, value: object) -> int:
        text = str(check_constant(self.attribute, value))
        text = max(text, self.attribute.minimum)
        if self.attribute.maximum is not None:
            text = min(text, self.attribute.maximum)
        rank = 0
        for place in range(self.skipped, self.skipped + self.kept):
            digit, spelt = self._digit(text, place)
            rank = rank * self.base + digit
            if not spelt:
                remaining = self.skipped + self.kept - place - 1
                return (rank + 1) * int(self.base**remaining) - 1
        return rank

    def _digit(self, text: str, place: int) -> tuple[int, bool]:
        if place >= len(text):
            return 0, True
        letters = self.attribute.alphabet
        if letters is None:
            return ord(text[place]) + 1, True
        digit = bisect_right(letters, text[place])
        return digit, digit > 0 and letters[digit - 1] == text[place]


# The routing key: one place on the ring for an event, however many attributes it has.
#
# Goes beyond the paper, which sends a copy for every attribute. With one attribute the key is the
# hashed value; with several it is the event's index on a Hilbert curve through the hashed values,
# along which events that lie close together mostly stay so (Skilling, "Programming the Hilbert
# curve", 2004). A subscription becomes a few intervals of keys, each with its box: an interval
# that is too wide costs traffic and never a false delivery, as boxes hold all attributes.
#
# Keys tell values apart in their high bits only. The low bits of an event's key are drawn for it,
# so that events of one and the same value spread over an arc, as do the places of the peers that
# want it: a popular topic has no single rendezvous node.
#
# In an overlay that routes by keys, the key of several attributes is a coordinate of its own behind
# them, by which alone is routed: points and boxes have one more. That of a single attribute takes
# its place, being as fine as the ranges of subscriptions: who subscribes matches exactly at the
# end.


Int64s = npt.NDArray[np.int64]

# At least so many low bits of a key say nothing of values.
SPREAD_BITS: Final = 24
# The stream of the draws of events' low bits.
_SPREAD: Final = 0x6B6579
# Cells of the curve that a box is cut into, at most: with more, intervals fit it closer.
MOST_CELLS: Final = 1024


def bits_an_attribute(attributes: int) -> int:
    """High bits of a hashed value that the key follows."""
    return (RING_BITS - SPREAD_BITS) // attributes


def low_bits(attributes: int) -> int:
    """Low bits of a key that say nothing of values."""
    return RING_BITS - attributes * bits_an_attribute(attributes)


def point_of(settings: Settings, values: Sequence[int], event: int) -> Sequence[int]:
    """An event as the overlay routes it: A hashed values as they are, or with their key."""
    if not settings.routes_by_key:
        return values
    bits, low = bits_an_attribute(settings.attributes), low_bits(settings.attributes)
    index = curve_index([value >> (RING_BITS - bits) for value in values], bits)
    own = mix.interpreted(settings.seed, event, _SPREAD) & ((1 << low) - 1)
    key = index << low | own
    return [key] if settings.attributes == 1 else [*values, key]


def points_of(settings: Settings, values: Int64s, events: Int64s) -> Int64s:
    """`point_of` for many events: int64[k, A] and their identifiers int64[k] to int64[k, C]."""
    if not settings.routes_by_key:
        return values
    bits, low = bits_an_attribute(settings.attributes), low_bits(settings.attributes)
    index = curve_index(list((values >> (RING_BITS - bits)).T), bits)
    own = mix_many(settings.seed, events, _SPREAD) & ((1 << low) - 1)
    key = (index << low | own)[:, np.newaxis]
    return key if settings.attributes == 1 else np.hstack((values, key))


def held_boxes(settings: Settings, boxes: Int64s, constrained: Int64s) -> tuple[Int64s, Int64s]:
    """Subscriptions as the overlay holds them: each box once for every interval of keys.

    Args:
        settings: of the overlay; unless it routes by keys everything is returned as it is.
        boxes: int64[k, 2A], lowest and highest hashed value of every attribute.
        constrained: int64[k], bits of the attributes constrained.

    Returns:
        int64[m, 2C] and int64[m], for each box at most `key_intervals`, in the order of their keys.
    """
    if not settings.routes_by_key:
        return boxes, constrained
    attributes, most = settings.attributes, settings.key_intervals
    if attributes == 1:
        mask = (1 << low_bits(1)) - 1
        return np.column_stack((boxes[:, 0] & ~mask, boxes[:, 1] | mask)), constrained
    found = [key_intervals(attributes, most, box) for box in boxes.tolist()]
    which = np.repeat(np.arange(len(boxes)), [len(intervals) for intervals in found])
    ends = np.array([ends for intervals in found for ends in intervals], np.int64).reshape(-1, 2)
    return np.column_stack((boxes[which], ends)), constrained[which]


def key_intervals(attributes: int, most: int, box: Sequence[int]) -> list[tuple[int, int]]:
    """At most so many disjoint intervals, in order, that hold the keys of all points of a box.

    The box is cut into cells of the curve of one size; cells that follow each other are one
    interval, and the smallest gaps are closed until there are few enough.
    """
    if attributes == 1:
        low = low_bits(attributes)
        return [(box[0] >> low << low, box[1] | ((1 << low) - 1))]
    bits = level = bits_an_attribute(attributes)
    shift = RING_BITS - bits
    ends = [(low >> shift, high >> shift) for low, high in zip(box[0::2], box[1::2], strict=True)]
    while _cells(ends) > MOST_CELLS:
        level -= 1
        ends = [(first >> 1, last >> 1) for first, last in ends]
    sides = (np.arange(first, last + 1, dtype=np.int64) for first, last in ends)
    corners = [side.ravel() for side in np.meshgrid(*sides, indexing="ij")]
    index = np.sort(curve_index(corners, level)) if level else np.zeros(1, np.int64)
    gaps = np.diff(index)
    begins = np.flatnonzero(gaps > 1) + 1
    if len(begins) >= most:
        widest = np.argsort(-gaps[begins - 1], kind="stable")[: most - 1]
        begins = np.sort(begins[widest])
    firsts = index[np.concatenate(([0], begins))]
    lasts = index[np.concatenate((begins, [len(index)])) - 1]
    shift = RING_BITS - attributes * level
    return [
        (int(first) << shift, ((int(last) + 1) << shift) - 1)
        for first, last in zip(firsts, lasts, strict=True)
    ]


def _cells(ends: Sequence[tuple[int, int]]) -> int:
    count = 1
    for first, last in ends:
        count *= last - first + 1
    return count


def curve_index(point: Sequence[Any], bits: int) -> Any:
    """The index on the Hilbert curve of a point of ``bits`` a coordinate.

    The high bits of an index are the index of the point's high bits: a cell's points are an
    interval.

    Args:
        point: coordinates, integers or int64 arrays of one shape.
        bits: of each.
    """
    axes = list(point)
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        for i in range(len(axes)):
            is_set = -((axes[i] >> bit) & 1)
            swapped = (axes[0] ^ axes[i]) & below & ~is_set
            axes[0] = axes[0] ^ swapped ^ (below & is_set)
            axes[i] = axes[i] ^ swapped if i else axes[0]
    for i in range(1, len(axes)):
        axes[i] = axes[i] ^ axes[i - 1]
    flips = axes[0] & 0
    for bit in range(bits - 1, 0, -1):
        flips = flips ^ (((1 << bit) - 1) & -((axes[-1] >> bit) & 1))
    index = axes[0] & 0
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            index = index << 1 | (((axis ^ flips) >> bit) & 1)
    return index
