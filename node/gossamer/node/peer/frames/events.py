"""Events as applications know them: exact values, and how these travel and are remembered."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import islice
from typing import Any, Final

import attrs

from gossamer.node.security.identity import decode, encode
from gossamer.node.security.sealing import publisher_of
from gossamer.protocol.content.limits import MAX_LITERAL
from gossamer.protocol.content.schema import FIRST_VERSION, SchemaVersion, read_leniently
from gossamer.protocol.content.values import Kind, Payload, Value
from gossamer.protocol.kernel.errors import ContentError
from gossamer.protocol.peer.record_table.records import CLASS_AT

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# Events that are looked at to find whose most are.
LOOKED_AT: Final = 512
_WORD: Final = range(-(1 << 63), 1 << 63)


@attrs.frozen
class Event:
    """An event as it is handed to applications.

    Attributes:
        id: its identifier, unique in the overlay.
        values: by attribute, exactly as published.
        publisher: permanent key of its publisher, who has signed it; without certificates, whom it
            names.
        published_at: Unix seconds by the publisher's clock.
        payload: what it carries beside its values.
    """

    id: int
    values: Mapping[str, Value]
    publisher: int
    published_at: float
    payload: Payload | None = None


_PARTS: Final = ([int, int, int, list], [int, int, int, list, list])


class EventFormat:
    """Exact values of events of one schema, to bytes and back.

    An event's bytes are a list of its publisher's key, the microseconds at which it was published,
    the version of the schema, and its values: each at its attribute's place in the schema, which
    never changes, null where it is absent, the last not null. Where it has a payload, a list of
    content type and bytes is the fifth.

    Values of a version later than this one, which may be of attributes or outside of domains that
    are known here, are read as far as they are.
    """

    def __init__(self, version: SchemaVersion) -> None:
        self._version = version.number
        self._names = version.known.names
        self._parts = [
            (one, one.name, _READERS.get(one.kind, _as_it_is), one.check) for one in version.known
        ]

    def to_bytes(
        self,
        values: Mapping[str, Value],
        publisher: int,
        published_at: float,
        payload: Payload | None = None,
    ) -> bytes:
        """An event whose values `Schema.check_event` has made."""
        plain = [_to_plain(values[n]) if n in values else None for n in self._names]
        while plain and plain[-1] is None:
            plain.pop()
        content: list[object] = [publisher, max(0, round(published_at * 1e6)), self._version, plain]
        if payload is not None:
            content.append([payload.content_type, payload.data])
        return encode(content)

    def from_bytes(self, event: int, data: bytes) -> Event:
        """The event that ``data`` stands for.

        Raises:
            ValueError: it is no event of this schema.
        """
        content = decode(data)
        if type(content) is not list or [type(part) for part in content] not in _PARTS:
            raise ValueError("not the parts of an event")
        publisher, microseconds, version, plain, *more = content
        if version < FIRST_VERSION or not plain or plain[-1] is None:
            raise ValueError("no version of a schema, or no values")
        if len(plain) > len(self._parts) and version <= self._version:
            raise ValueError(f"{len(plain)} values, expected {len(self._parts)} at most")
        try:
            values = self._values(version, plain)
            return Event(event, values, publisher, microseconds / 1e6, _payload(*more))
        except (ContentError, OverflowError) as error:
            raise ValueError(str(error)) from error

    def _values(self, version: int, plain: list[Any]) -> dict[str, Value]:
        given = zip(self._parts, plain, strict=False)
        if version > self._version:
            return {
                one.name: read_leniently(one, read(value))
                for (one, _, read, _), value in given
                if value is not None
            }
        return {
            name: check(read(value)) for (_, name, read, check), value in given if value is not None
        }


def _payload(part: list[Any] | None = None) -> Payload | None:
    """The payload that the fifth part of an event stands for, if there is one."""
    if part is None:
        return None
    if len(part) != 2:
        raise ValueError("no content type and bytes")
    return Payload(part[1], part[0])


def _to_plain(value: Value) -> int | float | str:
    # By type: whether something is a Fraction is long to find out of what is none.
    if type(value) is float or type(value) is str:
        return value
    if isinstance(value, int):
        return value if value in _WORD else str(value)
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    return str(value)


def _as_it_is(value: Any) -> object:
    return value


def _number(value: Any) -> object:
    if type(value) is not str:
        return value
    if len(value) > MAX_LITERAL:  # numbers that CBOR has no plain form for travel as text
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
    """Events as they are sealed, at most ``events`` of them with ``size`` bytes together.

    The oldest are forgotten first.
    """

    def __init__(self, events: int, size: int) -> None:
        self.bytes = 0
        self._limit = events
        self._limit_bytes = size
        self._events: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._events)

    def keep(self, event: int, sealed: bytes) -> None:
        """Remember an event; one that is known stays as it came first."""
        if event in self._events:
            return
        self._events[event] = sealed
        self.bytes += len(sealed)
        while len(self._events) > self._limit or self.bytes > self._limit_bytes:
            self.bytes -= len(self._events.popitem(last=False)[1])

    def find(self, event: int) -> bytes | None:
        """All of an event, None where it is not remembered."""
        return self._events.get(event)


class SharedMemory:
    """Events as they are sealed, within bounds that publishers share.

    The oldest of the class that takes most makes room, as in the protocol's log of them.

    Attributes:
        bytes: of all.
    """

    def __init__(self, events: int, size: int) -> None:
        self.bytes = 0
        self._limit = events
        self._limit_bytes = size
        self._classes: dict[int, OrderedDict[int, bytes]] = {}
        self._sizes: Counter[int] = Counter()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def keep(self, event: int, sealed: bytes) -> None:
        """Remember an event; one that is known stays as it came first."""
        of_class = self._classes.setdefault(event >> CLASS_AT, OrderedDict())
        if event in of_class:
            return
        of_class[event] = sealed
        self._count += 1
        self._grow(event >> CLASS_AT, len(sealed))
        while self.bytes > self._limit_bytes or self._count > self._limit:
            largest = self._largest()
            _, dropped = self._classes[largest].popitem(last=False)
            self._count -= 1
            self._grow(largest, -len(dropped))

    def find(self, event: int) -> bytes | None:
        """All of an event, None where it is not remembered."""
        of_class = self._classes.get(event >> CLASS_AT)
        return None if of_class is None else of_class.get(event)

    def main_publisher(self) -> int | None:
        """Whose events, as they say, are most of the newest of the class that takes most."""
        if not self.bytes:
            return None
        newest = islice(reversed(self._classes[self._largest()].values()), LOOKED_AT)
        return Counter(map(publisher_of, newest)).most_common(1)[0][0]

    def _largest(self) -> int:
        return max(self._sizes, key=self._sizes.__getitem__)

    def _grow(self, of_class: int, size: int) -> None:
        self.bytes += size
        self._sizes[of_class] += size


class EventMemory(ValueMemory):
    """The events, as they are sealed, that this peer may yet have to pass on or deliver.

    Those that it holds for peers that are away last longer.

    Attributes:
        held: these.
        pinned: events that are kept until they are taken out here.
    """

    def __init__(self, events: int, size: int, held: SharedMemory | None = None) -> None:
        """A memory of its own bounds, beside that of the events that are held."""
        super().__init__(events, size)
        self.held = SharedMemory(0, 0) if held is None else held
        self.pinned: dict[int, bytes] = {}

    def hold(self, event: int) -> None:
        """Let an event that is remembered be held."""
        sealed = self.find(event)
        if sealed is not None:
            self.held.keep(event, sealed)

    def find(self, event: int) -> bytes | None:
        """All of an event, None where it is neither remembered nor held nor pinned."""
        sealed = self._events.get(event)
        if sealed is None:
            sealed = self.pinned.get(event)
        return self.held.find(event) if sealed is None else sealed
