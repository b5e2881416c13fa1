"""The routing key: one place on the ring for an event, however many attributes it has.

Goes beyond the paper, which sends a copy for every attribute. With one attribute the key is the
hashed value; with several it is the event's index on a Hilbert curve through the hashed values,
along which events that lie close together mostly stay so (Skilling, "Programming the Hilbert
curve", 2004). A subscription becomes a few intervals of keys, each with its box: an interval
that is too wide costs traffic and never a false delivery, as boxes hold all attributes.

Keys tell values apart in their high bits only. The low bits of an event's key are drawn for it, so
that events of one and the same value spread over an arc, as do the places of the peers that want
it: a popular topic has no single rendezvous node.

In an overlay that routes by keys, the key of several attributes is a coordinate of its own behind
them, by which alone is routed: points and boxes have one more. That of a single attribute takes its
place, being as fine as the ranges of subscriptions: who subscribes matches exactly at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix, mix_many
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_BITS

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
