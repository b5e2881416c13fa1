"""Announcements: events to the peers that subscribe to an expression, not to applications.

An announcement has the place in the hashed space of an event that would match, so that it finds
the subscribers' peers as such an event does, and is held and replayed for them. Its values mean
nothing; its payload says what it is.
"""

from __future__ import annotations

from typing import Final

from gossamer.protocol.content.attributes import (
    Attribute,
    BooleanAttribute,
    EnumerationAttribute,
)
from gossamer.protocol.content.schema import SchemaVersion
from gossamer.protocol.peer.space.encoding import ABSENT, EncodedBox

ANNOUNCEMENT_TYPE: Final = "application/vnd.gossamer.announcement"


def corner_of(box: EncodedBox) -> tuple[int, ...]:
    """A point in the box: its least corner, without the attributes that it leaves open."""
    corner = [low if known else ABSENT for low, known in zip(box.low, box.constrained, strict=True)]
    if not any(box.constrained):
        corner[0] = box.low[0]
    return tuple(corner)


def some_event(version: SchemaVersion) -> dict[str, object]:
    """An event that may be published by this version of the schema."""
    attribute = next(iter(version.active))
    return {attribute.name: _some_value(attribute)}


def _some_value(attribute: Attribute) -> object:
    if isinstance(attribute, EnumerationAttribute):
        return attribute.values[0]
    return False if isinstance(attribute, BooleanAttribute) else attribute.minimum
