"""Frames to bytes and back: four bytes of length, then one CBOR map with text keys.

The client's side of what docs/local-protocol.md describes. The node is of
the same user, so that its answers are checked for what the client uses of them only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from struct import Struct
from typing import Any, Final, Protocol, SupportsIndex

import cbor2

from gossamer.client.errors import RefusedByNodeError, UnusableValueError
from gossamer.client.results import UNKNOWN_TYPE, LastMark, Payload, PayloadLike
from gossamer.protocol.content.limits import (
    FRAME_BYTES,
    MAX_ANY_ATTRIBUTES,
    MAX_ANY_NAME,
    MAX_CONTENT_TYPE,
    MAX_DIGITS,
    MAX_KNOWN_ATTRIBUTES,
    MAX_NAME,
    MAX_PAYLOAD_BYTES,
    MAX_STRING,
)

VERSION: Final = 2

NEW, RETAINED, LAST = "new", "retained", "last"
# What a node is to its clients.
PEER, BROKER = "peer", "broker"

Frame = dict[str, Any]

_HEADER: Final = Struct(">I")


class BadAnswerError(Exception):
    """What came is no frame of a node; never leaves the client."""


def encode_frame(frame_type: str, /, **fields: object) -> bytes:
    """The bytes of a frame, header included.

    Raises:
        RefusedByNodeError: it is longer than any node takes.
        UnusableValueError: a text in it has lone surrogates.
    """
    try:
        body = cbor2.dumps({"type": frame_type, **fields})
    except UnicodeEncodeError as error:
        found = f"the text {error.object!a:.80} has lone surrogates"
        raise UnusableValueError(f"{found}, expected text of Unicode") from None
    if len(body) > FRAME_BYTES:
        reason = f"a request of {len(body)} bytes, expected at most {FRAME_BYTES}"
        raise RefusedByNodeError("FrameTooLarge", reason)
    return _HEADER.pack(len(body)) + body


class FrameReader:
    """Bytes in pieces of any size to frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._buffer += data

    def next_frame(self) -> Frame | None:
        """The next whole frame; None where more bytes are needed.

        Raises:
            BadAnswerError: it is too long or unreadable.
        """
        if len(self._buffer) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._buffer)
        if length > FRAME_BYTES:
            raise BadAnswerError(f"a frame of {length} bytes, expected at most {FRAME_BYTES}")
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        try:
            frame = cbor2.loads(body)
        except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
            raise BadAnswerError(f"a frame that is unreadable ({str(error)[:120]})") from None
        if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
            raise BadAnswerError("a frame without a type, expected a map that has one")
        return frame

    def __iter__(self) -> Iterator[Frame]:
        while (frame := self.next_frame()) is not None:
            yield frame


def _unusable_payload(found: str) -> UnusableValueError:
    expected = f"at most {MAX_PAYLOAD_BYTES} bytes, of a type of at most {MAX_CONTENT_TYPE}"
    return UnusableValueError(f"a payload is {found}, expected {expected} characters")


def payload_fields(payload: PayloadLike | None) -> dict[str, object]:
    """What a request says of a payload; the node refuses a content type that is none.

    Raises:
        UnusableValueError: it cannot travel.
    """
    if payload is None:
        return {}
    if not isinstance(payload.data, bytes):
        raise _unusable_payload(f"of type {type(payload.data).__name__}")
    if len(payload.data) > MAX_PAYLOAD_BYTES:
        raise _unusable_payload(f"of {len(payload.data)} bytes")
    if len(payload.content_type) > MAX_CONTENT_TYPE:
        raise _unusable_payload(f"of a type of {len(payload.content_type)} characters")
    return {"payload": payload.data, "content_type": payload.content_type}


def last_fields(last: LastMark | None) -> dict[str, object]:
    """What a request says of an event that is the last of a value."""
    if last is None:
        return {}
    lasts = {"lasts": last.lasts_s} if last.lasts_s else {}
    return {"last": last.attribute, "deleted": last.deleted, **lasts}


def payload_of(frame: Frame) -> Payload | None:
    """The payload that an event or a reply has."""
    if "payload" not in frame:
        return None
    return Payload(frame["payload"], frame.get("content_type", UNKNOWN_TYPE))


# Values of events as they travel over the local socket, and as an application has them.
#
# The node checks values against its schema; here they only take the form that carries them exactly.
# Numbers that are no 64-bit integers or floats travel as texts, and so do dates.

_INT64: Final = 1 << 63
# Numbers with more digits are none that travel; decimals could take all memory as fractions.
_TOO_MANY_DIGITS: Final[int] = 10**MAX_DIGITS
_NUMBER, _DATE = "number", "date"
_ANY_VALUE: Final = "a finite number, a text, a boolean or a date"


class Values(Protocol):
    """How values of events travel to and from a node, once it has introduced itself.

    Attributes:
        errors: what `to_wire` raises for values that cannot travel.
    """

    errors: tuple[type[Exception], ...]

    def adopt(self, attached: Frame) -> None:
        """Take over what the node said its events are made of."""

    def to_wire(self, values: Mapping[str, object]) -> dict[str, object]:
        """Values of an event that is to be published."""

    def from_wire(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values of an event that came."""


def _unusable(attribute: object, found: str, expected: str = _ANY_VALUE) -> UnusableValueError:
    sentence = f"attribute {attribute!r:.80} is {found}, expected {expected}"
    return UnusableValueError(sentence, attribute)


class PlainValues:
    """Values that the node alone checks: numbers, texts, booleans and dates.

    Attributes:
        schema: what the node's events are made of, as in schema.toml; empty at a broker that takes
            any attributes.
    """

    errors: tuple[type[Exception], ...] = (UnusableValueError,)

    def __init__(self) -> None:
        self.schema: dict[str, dict[str, Any]] = {}
        self._dates: frozenset[str] = frozenset()
        self._is_broker = False

    def adopt(self, attached: Frame) -> None:
        """Take over what the node said its events are made of."""
        self.schema = json.loads(attached["schema"]) if attached["schema"] else {}
        self._is_broker = attached.get("role") == BROKER
        self._dates = frozenset(
            name for name, table in self.schema.items() if table.get("type") == "date"
        )

    def to_wire(self, values: Mapping[str, object]) -> dict[str, object]:
        """Values of an event that is to be published.

        Raises:
            UnusableValueError: one of them is of no kind that events have.
        """
        most = MAX_ANY_ATTRIBUTES if self._is_broker else MAX_KNOWN_ATTRIBUTES
        if len(values) > most:
            raise _unusable("", f"one of {len(values)}", f"at most {most} in an event")
        return {name: self._to_wire(name, value) for name, value in values.items()}

    def from_wire(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values of an event that came: int, float, Fraction, str, bool, or datetime in UTC."""
        return {name: self._from_wire(name, value) for name, value in values.items()}

    def _to_wire(self, name: str, value: object) -> object:
        longest = MAX_ANY_NAME if self._is_broker else MAX_NAME
        if not is_text(name, longest):
            raise _unusable(name, "no name", f"a text of at most {longest} characters")
        if isinstance(value, str):
            if not is_text(value, MAX_STRING):
                found = f"a text of {len(value)} characters"
                expected = f"at most {MAX_STRING}, and no lone surrogates"
                raise _unusable(name, found, expected)
            return value
        if isinstance(value, bool):
            return value
        if isinstance(value, date):
            return [_DATE, _date_text(value)] if self._is_broker else _date_text(value)
        if isinstance(value, int) and -_INT64 <= value < _INT64:
            return int(value)
        if isinstance(value, float) and math.isfinite(value):
            return float(value)
        ratio = _ratio(value)
        if ratio is None:
            raise _unusable(name, f"{value!r:.60} of type {type(value).__name__}")
        if not (abs(ratio.numerator) < _TOO_MANY_DIGITS > ratio.denominator):
            expected = f"numerator and denominator of at most {MAX_DIGITS} digits"
            raise _unusable(name, "a number of more digits", expected)
        if self._is_broker:
            return [_NUMBER, f"{ratio.numerator}/{ratio.denominator}"]
        return [str(ratio.numerator), str(ratio.denominator)]

    def _from_wire(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            kind, text = value
            if self._is_broker and kind == _DATE:
                return _date(text)
            return _number(Fraction(text) if self._is_broker else Fraction(int(kind), int(text)))
        return _date(value) if name in self._dates and isinstance(value, str) else value


def is_text(value: object, most: int) -> bool:
    """Whether something is a text of at most so many characters, which can be encoded."""
    if not isinstance(value, str) or len(value) > most:
        return False
    return value.isascii() or not any("\ud800" <= one <= "\udfff" for one in value)


def _ratio(value: object) -> Fraction | None:
    """The number as a fraction, None where it is none; numpy's numbers state theirs as well."""
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int) or abs(exponent) > 2 * MAX_DIGITS:
            return None
    if isinstance(value, SupportsIndex):
        return Fraction(value.__index__())
    as_integer_ratio = getattr(value, "as_integer_ratio", None)
    if as_integer_ratio is None:
        return None
    try:
        numerator, denominator = as_integer_ratio()
        return Fraction(int(numerator), int(denominator))
    except (OverflowError, ValueError):  # infinities, NaN
        return None


def _number(ratio: Fraction) -> int | Fraction:
    return ratio.numerator if ratio.denominator == 1 else ratio


def _date_text(value: date) -> str:
    if not isinstance(value, datetime):
        return value.isoformat()
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def _date(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
