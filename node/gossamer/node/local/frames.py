"""What travels over the local socket.

Values are numbers, text and booleans. What is none of these travels as text (dates) or as a pair
of texts, numerator and denominator (fractions, and whole numbers of more than 64 bits): the schema,
which both ends have, tells what is meant.
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

from gossamer.client.frames import payload_fields
from gossamer.node.errors import BadFrame
from gossamer.node.local.peer_like import EventLike
from gossamer.node.peer.unicast.last_values import LastMark, mark_of, marked
from gossamer.node.peer.unicast.messages import MAX_TOKEN, opened
from gossamer.node.transport.base import Address, Admitted, Hello, PeerIdentity
from gossamer.node.transport.frames import CONTROL_FRAMES, encode_frame
from gossamer.node.transport.schema import (
    INT64_HIGH,
    INT64_LOW,
    AnyOf,
    Bytes,
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
from gossamer.protocol.content.limits import (
    MAX_ANY_ATTRIBUTES,
    MAX_ANY_NAME,
    MAX_CONTENT_TYPE,
    MAX_DIGITS,
    MAX_EVENTS,
    MAX_EXPRESSION,
    MAX_KNOWN_ATTRIBUTES,
    MAX_LITERAL,
    MAX_NAME,
    MAX_PAYLOAD_BYTES,
    MAX_STRING,
)
from gossamer.protocol.content.schema import Schema, read_leniently
from gossamer.protocol.content.values import UNKNOWN_TYPE, Payload, Value, literal
from gossamer.protocol.kernel.errors import ContentError
from gossamer.protocol.patterns.replies import MOST_REPLIES

MAX_ANSWER: Final = 1 << 19
# Why one event of many was not published, or not acknowledged: 256 of them fit into a frame.
MAX_REASON: Final = 1024

_DIGITS: Final = re.compile(rf"-?[0-9]{{1,{MAX_DIGITS}}}")
# Of events at a peer, whose schema names what they are made of; and at a broker, of anything.
_VALUES: Final = MapOf(
    AnyOf(Number(), Text(MAX_STRING), Flag(), ListOf(Text(1 + MAX_DIGITS), 2)), MAX_KNOWN_ATTRIBUTES
)
_ANY_VALUES: Final = MapOf(
    AnyOf(Number(), Text(MAX_STRING), Flag(), ListOf(Text(MAX_LITERAL), 2)),
    MAX_ANY_ATTRIBUTES,
    longest_key=MAX_ANY_NAME,
)
_EVENT_ID: Final = Text(48)
_NUMBER: Final = Integer(0, 1 << 53)
_ID: Final = Text(MAX_NAME)
_POSITION: Final = Integer(0)
_LOG_ID: Final = Text(32)
# How many events of a request were acknowledged while the node reached nobody it knows.
_ALONE: Final = Integer(1, MAX_EVENTS)

_PAYLOAD: Final[Mapping[str, Field]] = {
    "payload": Optional(Bytes(MAX_PAYLOAD_BYTES)),
    "content_type": Optional(Text(MAX_CONTENT_TYPE)),
}

# Seconds for which a request may wait for replies, and in which publications match together.
_PATIENCE: Final = Number(0.001, 86_400.0)

# Of an event that is the last of its value of an attribute.
_LAST: Final[Mapping[str, Field]] = {
    "last": Optional(Text(256)),
    "lasts": Optional(Number(0.001, 1e9)),
    "deleted": Optional(Flag()),
}

# Requests that say no more than what they are.
_PLAIN: Final = "forget tables status snapshot members cluster metrics reload shutdown"

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
            "ordered": Optional(Flag()),
        },
        "subscribe": {
            "number": _NUMBER,
            "id": _ID,
            "expression": Text(MAX_EXPRESSION),
            "start": Optional(Text(8)),
            "group": Optional(_ID),
            "window": Optional(Integer(1, MAX_EVENTS)),
            "within": Optional(_PATIENCE),
        },
        "unsubscribe": {"number": _NUMBER, "id": _ID},
        "publish": {"number": _NUMBER, "values": _VALUES, **_LAST, **_PAYLOAD},
        "publish_many": {"number": _NUMBER, "events": ListOf(_VALUES, MAX_EVENTS)},
        "request": {
            "number": _NUMBER,
            "values": _VALUES,
            "timeout": _PATIENCE,
            "replies": Integer(1, MOST_REPLIES),
            **_PAYLOAD,
        },
        "reply": {
            "number": _NUMBER,
            "request": Text(MAX_TOKEN),
            "failed": Optional(Flag()),
            **_PAYLOAD,
        },
        "acknowledge": {"position": _POSITION},
        "settle": {"id": _EVENT_ID},
        "leave": {"number": _NUMBER, "group": _ID, "expression": Text(MAX_EXPRESSION)},
        "advertise": {"number": _NUMBER, "id": _ID, "expression": Text(MAX_EXPRESSION)},
        "unadvertise": {"number": _NUMBER, "id": _ID},
        "trace": {"number": _NUMBER, "id": _EVENT_ID},
        **{kind: {"number": _NUMBER} for kind in _PLAIN.split()},
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
            "request": Optional(Text(MAX_TOKEN)),
            "timeout": Optional(_PATIENCE),
            "late": Optional(Flag()),
            "last": Optional(Text(256)),
            "deleted": Optional(Flag()),
            **_PAYLOAD,
        },
        "match": {
            "position": _POSITION,
            "id": _EVENT_ID,
            "published_at": Number(),
            "subscriptions": ListOf(_ID, 1),
            "alternative": Integer(0),
            "events": ListOf(MapOf(AnyOf(Number(), Text(64), _ANY_VALUES), 4), 256),
        },
        "replied": {
            "number": _NUMBER,
            "replier": Text(16),
            "failed": Flag(),
            **_PAYLOAD,
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
    """What a `Connection` has to know of its other end, which here has no key and no address."""
    hello = Hello(frame["version"], frame["software"], "", 0, (), b"", None)
    identity = PeerIdentity(0, name=frame.get("client", "the local socket"))
    return Admitted(stream, identity, hello, False, Address("local", 0), rest)


def event_frame(
    event: EventLike, subscriptions: list[str], position: int = 0, *, late: bool = False
) -> bytes:
    """An event for a client.

    Args:
        event: the event.
        subscriptions: ids of those that it matches.
        position: in the node's history, 0 for clients without a name.
        late: whether a later event of the same publisher came before, to a client that wants order.
    """
    payload, mark = mark_of(event.payload)
    payload, reply_to = opened(payload)
    more: dict[str, object] = {}
    if mark is not None:
        more |= {"last": mark.attribute, "deleted": mark.is_deleted}
    if late:
        more["late"] = True
    if reply_to is not None:
        more |= {"request": reply_to.to_token(), "timeout": reply_to.patience_s}
    return encode_frame(
        "event",
        position=position,
        id=id_text(event.id),
        values=values_to_wire(event.values),
        publisher=id_text(event.publisher),
        published_at=event.published_at,
        subscriptions=subscriptions,
        **more,
        **payload_fields(payload),
    )


def payload_of(frame: Frame) -> Payload | None:
    """The payload that a frame carries, with the mark of a last value where it has one.

    Raises:
        ContentError: what it says of its type is no content type; an attribute is absent.
    """
    payload = None
    if "payload" in frame:
        payload = Payload(frame["payload"], frame.get("content_type", UNKNOWN_TYPE))
    if "last" not in frame:
        return payload
    attribute, lasts_s = frame["last"], float(frame.get("lasts", 0.0))
    if attribute not in frame["values"]:
        raise ContentError("", f"attribute {attribute!r} of a last value is absent from the event")
    return marked(payload, LastMark(attribute, lasts_s, frame.get("deleted", False)))


def refusal(frame: Frame, error: BadFrame) -> bytes | None:
    """The answer to a request whose fields are impossible; None where it has no number.

    It alone fails: what else the client asks for is not touched.
    """
    kind, number = frame.get("type"), frame.get("number")
    if isinstance(kind, str) and kind in LOCAL_TYPES and _NUMBER.fault(number) is None:
        reason = str(error)[:MAX_REASON]
        return encode_frame("refused", number=number, cause=type(error).__name__, reason=reason)
    return None


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


def event_values_from_wire(schema: Schema, values: Mapping[str, Any]) -> dict[str, Value]:
    """Canonical values of an event that was published by this version of the schema or a later one.

    Attributes that are not known yet are left out, and domains may be wider.

    Raises:
        BadFrame: a pair is no fraction.
        WrongValueError: a value is not of the attribute's kind.
    """
    known = {name: _exact(value) for name, value in values.items() if name in schema.names}
    return {name: read_leniently(schema[name], value) for name, value in known.items()}


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
    return Schema.from_mapping(tables, MAX_KNOWN_ATTRIBUTES)


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
