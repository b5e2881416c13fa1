"""Events as points and subscriptions as boxes in the hashed space (Vinifera, Sec. IV-A).

The overlay routes and matches on hashed values only. A box may hold a few points that do not match
its subscription, never the reverse: the subscriber matches exactly at the end.

Goes beyond the paper: an attribute may be absent from an event. It has a place of its own then, the
last of the ring, which no range of a constrained attribute holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from gossamer.protocol.content.attributes import (
    Attribute,
    EnumerationAttribute,
    IntegerAttribute,
)
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.subscription import (
    Constraint,
    EnumerationRange,
    Subscription,
    meets_domain,
    whole_numbers,
)
from gossamer.protocol.kernel.errors import WrongValueError
from gossamer.protocol.peer.space.hashing import RING_SIZE, OrderPreservingHash

ABSENT: Final = RING_SIZE - 1
"""Where an attribute is on the ring that an event does not have."""
LAST_PLACE: Final = ABSENT - 1
"""The greatest hashed value of an attribute that is there."""


@frozen
class EncodedBox:
    """Closed ranges of hashed values, one for each attribute of the schema.

    Attributes:
        constrained: whether the subscription constrains the attribute.
        low: least hashed value; 0 where unconstrained.
        high: greatest hashed value, not below `low`; 2^62 - 1 where unconstrained.
    """

    constrained: tuple[bool, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def contains(self, point: Sequence[int]) -> bool:
        """Whether an encoded event lies in the box."""
        return all(
            low <= value <= high
            for low, value, high in zip(self.low, point, self.high, strict=True)
        )


def encode_event(
    schema: Schema, hashes: Sequence[OrderPreservingHash], event: Mapping[str, object]
) -> tuple[int, ...]:
    """The hashed value of the attribute of every hash, in their order, each in [0, 2^62).

    Raises `ContentError` if the event does not fit the schema.
    """
    return encode_values(hashes, schema.check_event(event))


def encode_values(
    hashes: Sequence[OrderPreservingHash], values: Mapping[str, object]
) -> tuple[int, ...]:
    """`encode_event` of what `Schema.check_event` has made."""
    return tuple(
        place_of(one, values[name]) if (name := one.attribute.name) in values else ABSENT
        for one in hashes
    )


def place_of(hash_of: OrderPreservingHash, value: object) -> int:
    """The hashed value of a value that is there: below `ABSENT`.

    What a later version of the schema has appended to an enumeration has the last place.
    """
    attribute = hash_of.attribute
    if isinstance(attribute, EnumerationAttribute) and value not in attribute.ranks:
        return LAST_PLACE
    return min(hash_of(value), LAST_PLACE)


def encode_subscription(
    schema: Schema, hashes: Sequence[OrderPreservingHash], subscription: Subscription
) -> EncodedBox:
    """The box that holds every event of the schema which the subscription matches.

    Open ends widen to closed ones, except that on integers they move to the next whole number.
    Raises `UnknownAttributeError` or `WrongValueError` if the subscription is of another schema.
    """
    constrained = [False] * len(schema)
    low = [0] * len(schema)
    high = [RING_SIZE - 1] * len(schema)
    for name, constraint in subscription.constraints:
        place = schema.index(name)
        constrained[place] = True
        low[place], high[place] = _range(schema[name], hashes[place], constraint)
    return EncodedBox(tuple(constrained), tuple(low), tuple(high))


def _range(
    attribute: Attribute, hash_of: OrderPreservingHash, constraint: Constraint
) -> tuple[int, int]:
    if not meets_domain(attribute, constraint):
        text = constraint.to_text(attribute.name)
        raise WrongValueError(attribute.name, f"the constraint {text}", attribute.expected)
    least: object
    most: object
    if isinstance(constraint, EnumerationRange):
        least, most = constraint.values[constraint.first], constraint.values[constraint.last]
    elif isinstance(attribute, IntegerAttribute):
        least, most = whole_numbers(constraint)
    else:
        least = None if constraint.low is None else constraint.low.value
        most = None if constraint.high is None else constraint.high.value
    low = 0 if least is None else place_of(hash_of, least)
    high = LAST_PLACE if most is None else place_of(hash_of, most)
    return low, high
