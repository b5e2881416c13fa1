"""Events as applications know them: exact values, and how these travel and are remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import attrs

from gossamer.node.security.encoding import decode, encode
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Kind, Value

MAX_EVENT_BYTES: Final = 1 << 16
EVENT_ID_BITS: Final = 58

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_WORD: Final = range(-(1 << 63), 1 << 63)
# Numbers that CBOR has no plain form for travel as text; longer ones no program means.
_LONGEST_NUMBER: Final = 400


@attrs.frozen
class Event:
    """An event as it is handed to applications.

    Attributes:
        id: its identifier, unique in the overlay.
        values: by attribute, exactly as published.
        publisher: permanent key that the event names as its publisher's; nobody has signed it.
        published_at: Unix seconds by the publisher's clock.
    """

    id: int
    values: Mapping[str, Value]
    publisher: int
    published_at: float


# An event's bytes are a list of three, and the first is a key, which mostly takes eight bytes.
_BEGINS_WITH_KEY: Final = b"\x83\x1b"


def publisher_of(data: bytes) -> int:
    """The key of the publisher that an event's bytes name, without reading the rest.

    -1 where they name none, and where its key is shorter than one key in a billion is.
    """
    if data[:2] != _BEGINS_WITH_KEY or len(data) < 10:
        return -1
    return int.from_bytes(data[2:10], "big")


class EventFormat:
    """Exact values of events of one schema, to bytes and back."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._parts = [(one.name, _READERS.get(one.kind, _as_it_is), one.check) for one in schema]

    def to_bytes(self, values: Mapping[str, Value], publisher: int, published_at: float) -> bytes:
        """An event whose values `Schema.check_event` has made."""
        plain = [_to_plain(values[name]) for name in self._schema.names]
        return encode([publisher, max(0, round(published_at * 1e6)), plain])

    def from_bytes(self, event: int, data: bytes) -> Event:
        """The event that ``data`` stands for.

        Raises:
            ValueError: it is no event of this schema.
        """
        content = decode(data)
        if type(content) is not list or [type(part) for part in content] != [int, int, list]:
            raise ValueError("not the parts of an event")
        publisher, microseconds, plain = content
        if len(plain) != len(self._schema):
            raise ValueError(f"{len(plain)} values, expected {len(self._schema)}")
        try:
            values = {
                name: check(read(value))
                for (name, read, check), value in zip(self._parts, plain, strict=True)
            }
            return Event(event, values, publisher, microseconds / 1e6)
        except (ContentError, OverflowError) as error:
            raise ValueError(str(error)) from error


def _to_plain(value: Value) -> int | float | str:
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(value, Fraction) or (isinstance(value, int) and value not in _WORD):
        return str(value)
    return value


def _as_it_is(value: Any) -> object:
    return value


def _number(value: Any) -> object:
    if type(value) is not str:
        return value
    if len(value) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(value)} characters")
    return _fraction(value)


def _date(microseconds: Any) -> object:
    if type(microseconds) is not int:
        return microseconds
    try:
        return _EPOCH + microseconds * _MICROSECOND
    except OverflowError as error:
        raise ValueError(f"{microseconds} microseconds are no date") from error


def _fraction(text: str) -> Fraction:
    numerator, stroke, denominator = text.partition("/")
    try:
        return Fraction(int(numerator), int(denominator) if stroke else 1)
    except ZeroDivisionError as error:
        raise ValueError("a fraction of nothing") from error


# What undoes `_to_plain`, by the kind of an attribute; whether a value belongs to the attribute is
# not said.
_READERS: Final[Mapping[Kind, Callable[[Any], object]]] = {Kind.DATE: _date, Kind.NUMBER: _number}


class ValueMemory:
    """Values of events, at most ``events`` of them with ``size`` bytes together.

    The oldest are forgotten first.
    """

    def __init__(self, events: int, size: int) -> None:
        self.bytes = 0
        self._limit = events
        self._limit_bytes = size
        self._values: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def keep(self, event: int, values: bytes) -> None:
        """Remember an event; one that is known keeps the values that came first."""
        if event in self._values:
            return
        self._values[event] = values
        self.bytes += len(values)
        while len(self._values) > self._limit or self.bytes > self._limit_bytes:
            self.bytes -= len(self._values.popitem(last=False)[1])

    def find(self, event: int) -> bytes | None:
        """The values of an event, None where it is not remembered."""
        return self._values.get(event)


class EventMemory(ValueMemory):
    """The values of the events that this peer may yet have to pass on or deliver.

    Those that it holds for peers that are away last longer.

    Attributes:
        held: their values.
        pinned: values that are kept until they are taken out here.
    """

    def __init__(self, events: int, size: int, held: ValueMemory | None = None) -> None:
        """A memory of its own bounds, beside that of the events that are held."""
        super().__init__(events, size)
        self.held = ValueMemory(0, 0) if held is None else held
        self.pinned: dict[int, bytes] = {}

    def hold(self, event: int) -> None:
        """Let an event that is remembered be held."""
        values = self.find(event)
        if values is not None:
            self.held.keep(event, values)

    def find(self, event: int) -> bytes | None:
        """The values of an event, None where it is neither remembered nor held nor pinned."""
        values = super().find(event)
        if values is None:
            values = self.pinned.get(event)
        return self.held.find(event) if values is None else values
