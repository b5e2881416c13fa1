"""Boxes that cover an expression: a bounded number of them, coarser where there are too many.

Goes beyond the paper, whose subscriptions are one box each. Boxes route, and exact values decide at
delivery (`content.expressions`): a cover may hold points that do not match, never the reverse.
Where there are more boxes than allowed, the two whose hull adds the least volume of the hashed
space become that hull, as long as it takes; so a coarser cover holds all that a finer one does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
from attrs import frozen

from gossamer.protocol.content.attributes import Attribute, EnumerationAttribute, IntegerAttribute
from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.domains import Cut, Exact
from gossamer.protocol.content.filters.expressions import (
    Demand,
    Every,
    Expression,
    Node,
    domain_of,
    pieces,
    whole_numbers,
)
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Kind
from gossamer.protocol.peer.space.encoding import LAST_PLACE, EncodedBox, place_of
from gossamer.protocol.peer.space.hashing import RING_SIZE, OrderPreservingHash

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

_NUL: Final = "\0"
_MICROSECOND: Final = timedelta(microseconds=1)

MOST_BOXES: Final = 16
"""Of one expression, and of each part while it is put together. A guess: sets that people write."""

NEGLIGIBLE: Final = 2.0**-10
"""What a hull may have more than two boxes, as a share of it, so that it takes their place."""

Cost = Callable[[Int64s, Int64s, int], Floats]


@frozen(eq=False)
class Boxes:
    """Boxes of the hashed space.

    Attributes:
        low, high: int64[k, A], both included; the whole ring where an attribute is not constrained.
        constrained: bool[k, A].
    """

    low: Int64s
    high: Int64s
    constrained: Booleans

    def __len__(self) -> int:
        return len(self.low)

    def at(self, which: Int64s | Booleans) -> Boxes:
        """Some of the boxes."""
        return Boxes(self.low[which], self.high[which], self.constrained[which])


def cover(
    schema: Schema,
    hashes: Sequence[OrderPreservingHash],
    expression: Expression,
    most: int = MOST_BOXES,
) -> tuple[EncodedBox, ...]:
    """At most so many boxes that together hold every event of the schema which matches.

    Attributes without a hash narrow no box; the hashes may be of narrower domains than the schema.
    None is inside another. There is none where the hashed space shows that nothing can match.
    """
    return _encoded(_reduced(_cover_of(schema, hashes, expression.root), most))


def coarser(boxes: Sequence[EncodedBox], most: int) -> tuple[EncodedBox, ...]:
    """At most so many boxes that hold all points of some boxes of one schema; 1 at least."""
    if len(boxes) <= most:
        return tuple(boxes)
    found = Boxes(
        np.array([box.low for box in boxes], np.int64),
        np.array([box.high for box in boxes], np.int64),
        np.array([box.constrained for box in boxes], np.bool_),
    )
    return _encoded(_reduced(found, most))


def _encoded(boxes: Boxes) -> tuple[EncodedBox, ...]:
    rows = zip(boxes.constrained.tolist(), boxes.low.tolist(), boxes.high.tolist(), strict=True)
    return tuple(EncodedBox(tuple(is_set), tuple(low), tuple(high)) for is_set, low, high in rows)


def _cover_of(schema: Schema, hashes: Sequence[OrderPreservingHash], node: Node) -> Boxes:
    if isinstance(node, Demand):
        return _reduced(_cover_of_demand(schema, hashes, node), MOST_BOXES)
    parts = [_cover_of(schema, hashes, part) for part in node.parts]
    if not isinstance(node, Every):
        return _reduced(_joined(parts), MOST_BOXES)
    found = parts[0]
    for part in parts[1:]:
        found = _reduced(_intersected(found, part), MOST_BOXES)
    return found


def _joined(parts: Sequence[Boxes]) -> Boxes:
    return Boxes(
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.constrained for part in parts]),
    )


def _intersected(one: Boxes, other: Boxes) -> Boxes:
    """What each box of the one shares with each box of the other."""
    i, j = np.divmod(np.arange(len(one) * len(other)), max(len(other), 1))
    low = np.maximum(one.low[i], other.low[j])
    high = np.minimum(one.high[i], other.high[j])
    shared = Boxes(low, high, one.constrained[i] | other.constrained[j])
    fits: Booleans = np.all(low <= high, axis=1)
    return shared.at(fits)


# Demands


def _cover_of_demand(
    schema: Schema, hashes: Sequence[OrderPreservingHash], demand: Demand
) -> Boxes:
    places = [one.attribute.name for one in hashes]
    if demand.name not in places:
        return _everything(len(places))
    place = places.index(demand.name)
    ranges = _ranges(schema[demand.name], hashes[place], demand.constraint)
    low = np.zeros((len(ranges), len(places)), np.int64)
    high = np.full((len(ranges), len(places)), RING_SIZE - 1, np.int64)
    constrained = np.zeros((len(ranges), len(places)), np.bool_)
    ends = np.array(ranges, np.int64).reshape(-1, 2)
    low[:, place], high[:, place] = ends[:, 0], ends[:, 1]
    constrained[:, place] = True
    return Boxes(low, high, constrained)


def _everything(attributes: int) -> Boxes:
    low = np.zeros((1, attributes), np.int64)
    return Boxes(low, low + (RING_SIZE - 1), low.astype(np.bool_))


def _ranges(
    attribute: Attribute, hash_of: OrderPreservingHash, constraint: Constraint
) -> list[tuple[int, int]]:
    """The hashed values of the stretches of a constraint, each from least to greatest."""
    if constraint.kind is None:
        return [(0, LAST_PLACE)]
    domain = domain_of(attribute)
    inside = constraint.narrowed(domain)
    if inside is None:
        return []
    ranges = [
        (
            0 if least is None else place_of(hash_of, least),
            LAST_PLACE if most is None else place_of(hash_of, most),
        )
        for least, most in _value_ranges(attribute, inside)
    ]
    # What a later version of the schema has beyond the domain is at the ends of the ring.
    if ranges and inside.low == domain.low:
        ranges[0] = (0, ranges[0][1])
    if ranges and inside.high == domain.high:
        ranges[-1] = (ranges[-1][0], LAST_PLACE)
    return ranges


def _value_ranges(
    attribute: Attribute, inside: Constraint
) -> list[tuple[Exact | None, Exact | None]]:
    """Values between which all of each stretch lie; None at an end that is open."""
    if isinstance(attribute, IntegerAttribute | EnumerationAttribute):
        whole = [ends for ends in whole_numbers(inside) if ends[0] <= ends[1]]
        if isinstance(attribute, EnumerationAttribute):
            return [(attribute.values[first], attribute.values[last]) for first, last in whole]
        return list(whole)
    kind = inside.kind
    return [(_least_above(kind, low), _greatest_below(kind, high)) for low, high in pieces(inside)]


def _least_above(kind: Kind | None, low: Cut) -> Exact | None:
    """A value that none above a cut is below, or None if there is none such."""
    if kind is Kind.BOOLEAN:
        return bool(low[0])
    if kind is not Kind.STRING:
        return low[0]
    past_all, stem, nuls = low
    return None if past_all else stem + _NUL * (0 if nuls == math.inf else nuls)


def _greatest_below(kind: Kind | None, high: Cut) -> Exact | None:
    """A value that none below a cut is above, or None if there is none such."""
    if kind is Kind.DATE:
        instant, is_top = high
        return instant if is_top else instant - _MICROSECOND
    if kind is Kind.BOOLEAN:
        return bool(high[0] - 1)
    if kind is not Kind.STRING:
        return high[0]
    past_all, stem, nuls = high
    if past_all:
        return None
    if nuls == math.inf:
        return stem + chr(1)
    return stem + _NUL * max(nuls - 1, 0)


# Fewer boxes


def _reduced(boxes: Boxes, most: int) -> Boxes:
    """The boxes without those inside others, in a fixed order, merged until there are few enough.

    Two that are nearly their hull become it in any case: a gap costs more than it keeps out.
    """
    boxes = _without_inner(boxes)
    boxes = _merged(boxes, 1, _share_added, NEGLIGIBLE)
    return _merged(boxes, most, _volume_added, math.inf)


def _merged(boxes: Boxes, most: int, cost_of: Cost, limit: float) -> Boxes:
    """The boxes, the cheapest pair replaced by its hull while it costs at most so much.

    Args:
        boxes: none inside another.
        most: where there are so many or fewer, no more are merged.
        cost_of: of merging box i with every other.
        limit: of the costs.
    """
    low, high, constrained = boxes.low.copy(), boxes.high.copy(), boxes.constrained.copy()
    count = len(boxes)
    if count <= most:
        return boxes
    costs = np.array([_costs(cost_of, low, high, i) for i in range(count)])
    while count > most and costs.min() <= limit:
        i, j = sorted(divmod(int(costs.argmin()), len(costs)))
        low[i], high[i] = np.minimum(low[i], low[j]), np.maximum(high[i], high[j])
        constrained[i] &= constrained[j]
        costs[j, :] = costs[:, j] = np.inf
        is_there = np.isfinite(costs[i])
        costs[i, :] = costs[:, i] = np.where(is_there, _costs(cost_of, low, high, i), np.inf)
        low[j], high[j] = low[i], high[i]
        count -= 1
    return _without_inner(Boxes(low, high, constrained))


def _costs(cost_of: Cost, low: Int64s, high: Int64s, i: int) -> Floats:
    found = cost_of(low, high, i)
    found[i] = np.inf
    return found


def _volume_added(low: Int64s, high: Int64s, i: int) -> Floats:
    """What the hull of box i with every other has more than both, as a share of the space."""
    hull = _volumes(np.minimum(low[i], low), np.maximum(high[i], high))
    return hull - _volumes(low, high) - _volumes(low[i : i + 1], high[i : i + 1])


def _share_added(low: Int64s, high: Int64s, i: int) -> Floats:
    """The same as a share of the hull."""
    hull = _volumes(np.minimum(low[i], low), np.maximum(high[i], high))
    return np.divide(_volume_added(low, high, i), hull)


def _without_inner(boxes: Boxes) -> Boxes:
    """The boxes that are inside no other; of equal ones the first."""
    if len(boxes) < 2:
        return boxes
    order = np.lexsort(np.hstack((boxes.high, boxes.low)).T[::-1])
    boxes = boxes.at(order)
    inside = (boxes.low[:, np.newaxis] >= boxes.low).all(axis=2)
    inside &= (boxes.high[:, np.newaxis] <= boxes.high).all(axis=2)
    equal = inside & inside.T
    is_later = np.tri(len(boxes), k=-1, dtype=np.bool_)
    is_inner: Booleans = np.any(inside & (~equal | is_later), axis=1)
    return boxes.at(np.logical_not(is_inner))


def _volumes(low: Int64s, high: Int64s) -> Floats:
    # Points have a side too, so that hulls of points are told apart by their length.
    sides: Floats = (high - low + 1) / RING_SIZE
    volumes: Floats = np.prod(sides, axis=1)
    return volumes
