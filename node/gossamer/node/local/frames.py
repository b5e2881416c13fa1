"""What travels over the local socket.

Values are numbers and text. What is neither travels as text (dates) or as a pair of texts,
numerator and denominator (fractions, and whole numbers of more than 64 bits): the schema, which
both ends have, tells what is meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

import trio

from gossamer.node.errors import BadFrame
from gossamer.node.local.peer_like import EventLike
from gossamer.node.transport.base.base import Address, Admitted, Hello, PeerIdentity
from gossamer.node.transport.base.frames import CONTROL_FRAMES, encode_frame
from gossamer.node.transport.base.schema import (
    INT64_HIGH,
    INT64_LOW,
    AnyOf,
    Field,
    Flag,
    Frame,
    Integer,
    ListOf,
    MapOf,
    Number,
    Optional,
    Text,
    shorten,
)
from gossamer.protocol.content.schema import MAX_ATTRIBUTES, Schema
from gossamer.protocol.content.values import Value, literal

VERSION: Final = 2

# Events of one `publish_many`: with 16 attributes each, their values are within `Limits.items`.
MAX_EVENTS: Final = 256
MAX_EXPRESSION: Final = 8192
MAX_ID: Final = 64
MAX_ANSWER: Final = 1 << 19
# Why one event of many was not published, or not acknowledged: 256 of them fit into a frame.
MAX_REASON: Final = 1024

NEW, RETAINED = "new", "retained"
# What a node is to its clients.
PEER, BROKER = "peer", "broker"

_DIGITS: Final = re.compile(r"-?[0-9]{1,400}")
# Of events at a peer, whose schema names what they are made of; and at a broker, of anything.
_VALUES: Final = MapOf(AnyOf(Number(), Text(4096), ListOf(Text(401), 2)), MAX_ATTRIBUTES)
_ANY_VALUES: Final = MapOf(
    AnyOf(Number(), Text(4096), Flag(), ListOf(Text(800), 2)), 256, longest_key=4096
)
_EVENT_ID: Final = Text(48)
_NUMBER: Final = Integer(0, 1 << 53)
_ID: Final = Text(MAX_ID)
_POSITION: Final = Integer(0)
_LOG_ID: Final = Text(32)
# How many events of a request were acknowledged while the node reached nobody it knows.
_ALONE: Final = Integer(1, MAX_EVENTS)

LOCAL_TYPES: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        # From the client.
        "attach": {
            "version": Integer(0, 1 << 31),
            "software": Text(64),
            "client": Optional(_ID),
            "token": Optional(Text(64)),
            "history": Optional(_LOG_ID),
            "acknowledged": Optional(_POSITION),
            "aside": Optional(Flag()),
        },
        "subscribe": {
            "number": _NUMBER,
            "id": _ID,
            "expression": Text(MAX_EXPRESSION),
            "start": Optional(Text(8)),
        },
        "unsubscribe": {"number": _NUMBER, "id": _ID},
        "publish": {"number": _NUMBER, "values": _VALUES},
        "publish_many": {"number": _NUMBER, "events": ListOf(_VALUES, MAX_EVENTS)},
        "acknowledge": {"position": _POSITION},
        "forget": {"number": _NUMBER},
        "advertise": {"number": _NUMBER, "id": _ID, "expression": Text(MAX_EXPRESSION)},
        "unadvertise": {"number": _NUMBER, "id": _ID},
        "tables": {"number": _NUMBER},
        "trace": {"number": _NUMBER, "id": _EVENT_ID},
        "status": {"number": _NUMBER},
        "snapshot": {"number": _NUMBER},
        "metrics": {"number": _NUMBER},
        "shutdown": {"number": _NUMBER},
        # From the node.
        "attached": {
            "version": Integer(0, 1 << 31),
            "software": Text(64),
            "peer": Text(16),
            "schema": Text(MAX_ANSWER),
            "history": Optional(_LOG_ID),
            "role": Optional(Text(16)),
        },
        "done": {
            "number": _NUMBER,
            "result": Optional(Text(MAX_ANSWER)),
            "alone": Optional(_ALONE),
        },
        "published": {
            "number": _NUMBER,
            "ids": ListOf(_EVENT_ID, MAX_EVENTS),
            "alone": Optional(_ALONE),
        },
        "unacknowledged": {
            "number": _NUMBER,
            "ids": ListOf(_EVENT_ID, MAX_EVENTS),
            "published": Integer(1, MAX_EVENTS),
            "reason": Text(1 << 15),
        },
        "outcomes": {
            "number": _NUMBER,
            "ids": ListOf(_EVENT_ID, MAX_EVENTS),
            "causes": ListOf(Text(64), MAX_EVENTS),
            "reasons": ListOf(Text(MAX_REASON), MAX_EVENTS),
            "alone": Optional(_ALONE),
        },
        "refused": {"number": _NUMBER, "cause": Text(64), "reason": Text(1 << 15)},
        "event": {
            "position": _POSITION,
            "id": _EVENT_ID,
            "values": _VALUES,
            "publisher": Text(16),
            "published_at": Number(),
            "subscriptions": ListOf(_ID, 256),
        },
    }
)
_WITH_ANY_VALUES: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "publish": {**LOCAL_TYPES["publish"], "values": _ANY_VALUES},
        "publish_many": {**LOCAL_TYPES["publish_many"], "events": ListOf(_ANY_VALUES, MAX_EVENTS)},
        "event": {**LOCAL_TYPES["event"], "values": _ANY_VALUES},
    }
)
FRAMES: Final = CONTROL_FRAMES.extended(LOCAL_TYPES)
BROKER_FRAMES: Final = CONTROL_FRAMES.extended({**LOCAL_TYPES, **_WITH_ANY_VALUES})


def admitted_end(stream: trio.abc.Stream, frame: Frame, rest: bytes) -> Admitted:
    """What a `Connection` has to know of its other end, which here has no key and no address.

    Args:
        stream: what leads to it.
        frame: how it introduced itself.
        rest: what was read after that frame.
    """
    hello = Hello(frame["version"], frame["software"], "", 0, (), b"", None)
    identity = PeerIdentity(0, name=frame.get("client", "the local socket"))
    return Admitted(stream, identity, hello, False, Address("local", 0), rest)


def event_frame(event: EventLike, subscriptions: list[str], position: int = 0) -> bytes:
    """An event for a client.

    Args:
        event: the event.
        subscriptions: ids of those that it matches.
        position: in the node's history, 0 for clients without a name.
    """
    return encode_frame(
        "event",
        position=position,
        id=id_text(event.id),
        values=values_to_wire(event.values),
        publisher=id_text(event.publisher),
        published_at=event.published_at,
        subscriptions=subscriptions,
    )


def id_text(number: int) -> str:
    """How events and peers are named: 16 hexadecimal digits, since JSON has no room for more."""
    return f"{number:016x}"


def values_to_wire(values: Mapping[str, object]) -> dict[str, object]:
    """Canonical values as they travel, to a node that knows their types by its schema."""
    return {name: _plain(value) for name, value in values.items()}


def values_from_wire(schema: Schema, values: Mapping[str, Any]) -> dict[str, Value]:
    """Canonical values of an event that travelled from or to such a node.

    Raises:
        BadFrame: a pair is no fraction.
        ContentError: the values do not fit the schema.
    """
    return schema.check_event({name: _exact(value) for name, value in values.items()})


def schema_to_wire(schema: Schema) -> str:
    """A schema as it travels."""
    return json.dumps(schema.to_mapping(), default=literal, separators=(",", ":"))


def schema_from_wire(text: str) -> Schema:
    """The schema that travelled.

    Raises:
        BadFrame: it is none.
        ConfigError: it is an impossible one.
    """
    try:
        tables = json.loads(text)
    except (ValueError, RecursionError):
        tables = None
    if not isinstance(tables, dict):
        raise BadFrame("attached", "schema", shorten(text), "a schema as JSON")
    return Schema.from_mapping(tables)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return literal(value)
    if isinstance(value, Fraction):
        return [str(value.numerator), str(value.denominator)]
    if isinstance(value, int) and not INT64_LOW <= value <= INT64_HIGH:
        return [str(value), "1"]
    return value


def _exact(value: Any) -> object:
    if not isinstance(value, list):
        return value
    if len(value) != 2 or not all(map(_DIGITS.fullmatch, value)) or int(value[1]) == 0:
        raise BadFrame("event", "values", shorten(value), "numerator and denominator")
    return Fraction(int(value[0]), int(value[1]))
