"""What a frame of each type may hold, declared field by field and checked after decoding.

A field says what is wrong with a value by returning a `Fault`, or None where nothing is: no
exception and no text is made for values that are in order, which all but a few are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, cast

import attrs

from gossamer.node.errors import BadFrame
from gossamer.protocol.kernel.errors import ConfigError

Frame = dict[str, Any]
# Reads the body of a frame that is no CBOR map; raises `BadFrame`.
OwnForm = Callable[[bytes | bytearray], Frame]

INT64_LOW, INT64_HIGH = -(1 << 63), (1 << 63) - 1

SHOWN_CHARACTERS = 40


class Fault(NamedTuple):
    """What is wrong with a value: where in it, what is there, and what was expected."""

    path: str
    value: object
    expected: str


class Field(Protocol):
    """One field of a frame."""

    def fault(self, value: object) -> Fault | None:
        """What is wrong with ``value``, or None."""
        ...

    def __str__(self) -> str:
        """What is expected, in words."""
        ...


@attrs.frozen(slots=True)
class Integer:
    """A whole number; never a truth value."""

    low: int = INT64_LOW
    high: int = INT64_HIGH

    def fault(self, value: object) -> Fault | None:
        if type(value) is int and self.low <= value <= self.high:
            return None
        return Fault("", value, str(self))

    def __str__(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


@attrs.frozen(slots=True)
class Number:
    """A whole number of 64 bits or a finite float."""

    low: float = -math.inf
    high: float = math.inf

    def fault(self, value: object) -> Fault | None:
        if type(value) is float:
            good = math.isfinite(value)
        else:
            good = type(value) is int and INT64_LOW <= value <= INT64_HIGH
        if good and self.low <= cast(float, value) <= self.high:
            return None
        return Fault("", value, str(self))

    def __str__(self) -> str:
        return f"a finite number from {self.low} to {self.high}"


@attrs.frozen(slots=True)
class Flag:
    """A truth value."""

    def fault(self, value: object) -> Fault | None:
        return None if value is True or value is False else Fault("", value, str(self))

    def __str__(self) -> str:
        return "true or false"


@attrs.frozen(slots=True)
class Text:
    """Unicode text of bounded length, in characters."""

    longest: int

    def fault(self, value: object) -> Fault | None:
        if type(value) is str and len(value) <= self.longest:
            return None
        return Fault("", value, str(self))

    def __str__(self) -> str:
        return f"text of at most {self.longest} characters"


@attrs.frozen(slots=True)
class Bytes:
    """Bytes of bounded length."""

    longest: int
    shortest: int = 0

    def fault(self, value: object) -> Fault | None:
        if type(value) is bytes and self.shortest <= len(value) <= self.longest:
            return None
        return Fault("", value, str(self))

    def __str__(self) -> str:
        return f"{self.shortest} to {self.longest} bytes"


@attrs.frozen(slots=True)
class ListOf:
    """A list of bounded length, each entry as ``entry`` says."""

    entry: Field
    longest: int

    def fault(self, value: object) -> Fault | None:
        if type(value) is not list or len(value) > self.longest:
            return Fault("", value, str(self))
        for i, entry in enumerate(value):
            fault = self.entry.fault(entry)
            if fault is not None:
                return Fault(f"[{i}]{fault.path}", fault.value, fault.expected)
        return None

    def __str__(self) -> str:
        return f"a list of at most {self.longest} entries, each {self.entry}"


@attrs.frozen(slots=True)
class MapOf:
    """A map of bounded size from text to what ``value`` says."""

    value: Field
    largest: int
    longest_key: int = 64

    def fault(self, value: object) -> Fault | None:
        if type(value) is not dict or len(value) > self.largest:
            return Fault("", value, str(self))
        for key, entry in value.items():
            if type(key) is not str or len(key) > self.longest_key:
                return Fault("", key, f"text keys of at most {self.longest_key} characters")
            fault = self.value.fault(entry)
            if fault is not None:
                return Fault(f"[{shorten(key)}]{fault.path}", fault.value, fault.expected)
        return None

    def __str__(self) -> str:
        return f"a map of at most {self.largest} entries, each {self.value}"


class AnyOf:
    """Whatever one of several fields accepts."""

    __slots__ = ("choices",)

    def __init__(self, *choices: Field) -> None:
        self.choices = choices

    def fault(self, value: object) -> Fault | None:
        if any(choice.fault(value) is None for choice in self.choices):
            return None
        return Fault("", value, str(self))

    def __str__(self) -> str:
        return " or ".join(map(str, self.choices))


@attrs.frozen(slots=True)
class Optional:
    """A field that may be left out; where it is present it is as ``field`` says."""

    field: Field

    def fault(self, value: object) -> Fault | None:
        return self.field.fault(value)

    def __str__(self) -> str:
        return f"{self.field}, or nothing"


class _Shape:
    """The fields of one type, arranged for checking: by name, what checks it and if it must be."""

    __slots__ = ("checks", "required")

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self.required = [name for name, field in fields.items() if not isinstance(field, Optional)]
        self.checks: dict[str, tuple[Callable[[object], Fault | None], bool]] = {
            name: (field.fault, name in self.required) for name, field in fields.items()
        }
        self.checks["type"] = (Text(64).fault, False)


class FrameTypes:
    """The types of frames that a connection knows, by name.

    Types are added by making a larger set of them, never by changing one in use.

    Attributes:
        own_forms: what reads frames that are no CBOR maps, by the first byte of their bodies.
    """

    def __init__(
        self,
        types: Mapping[str, Mapping[str, Field]],
        own_forms: Mapping[int, OwnForm] | None = None,
    ) -> None:
        self.own_forms = {} if own_forms is None else dict(own_forms)
        self._fields = {name: dict(fields) for name, fields in types.items()}
        self._shapes = {name: _Shape(fields) for name, fields in types.items()}

    def __contains__(self, name: object) -> bool:
        return name in self._shapes

    def __iter__(self) -> Iterator[str]:
        """The names of the types."""
        return iter(self._shapes)

    def extended(
        self,
        types: Mapping[str, Mapping[str, Field]],
        own_forms: Mapping[int, OwnForm] | None = None,
    ) -> FrameTypes:
        """These types and ``types``, and what reads those that have a form of their own.

        Raises:
            ConfigError: a type of that name exists, or a field is called "type".
        """
        for name, fields in types.items():
            if name in self._shapes:
                raise ConfigError("frame type", name, "a name that no other type has")
            if "type" in fields:
                raise ConfigError(f"frame type {name}", "type", "another name for the field")
        return FrameTypes({**self._fields, **types}, {**self.own_forms, **(own_forms or {})})

    def check(self, frame: Frame) -> None:
        """Let ``frame`` pass if it is of a known type and has that type's fields and no others.

        Raises:
            BadFrame: it does not; the frame is unchanged.
        """
        name = frame.get("type")
        if type(name) is not str or (shape := self._shapes.get(name)) is None:
            raise BadFrame("frame", "type", shorten(name), "a known type of frame")
        found = 0
        for field, value in frame.items():
            check = shape.checks.get(field)
            if check is None:
                raise BadFrame(name, "a field", shorten(field), "fields of this type only")
            if check[0](value) is not None:
                raise self._complaint(frame, field)
            found += check[1]
        if found != len(shape.required):
            missing = next(field for field in shape.required if field not in frame)
            raise self._complaint(frame, missing)

    def _complaint(self, frame: Frame, name: str) -> BadFrame:
        """What to say about the field ``name``, which is known to be wrong."""
        field = self._fields[frame["type"]][name]
        if name not in frame:
            return BadFrame(frame["type"], name, "missing", str(field))
        fault = field.fault(frame[name])
        assert fault is not None
        return BadFrame(frame["type"], name + fault.path, shorten(fault.value), fault.expected)


def shorten(value: object) -> str:
    """``value`` as text of at most `SHOWN_CHARACTERS`, without ever making a long one of it."""
    if isinstance(value, str | bytes):
        shown = repr(value[:SHOWN_CHARACTERS])
        # What is escaped takes up to ten characters in the place of one.
        short = len(value) <= SHOWN_CHARACTERS and len(shown) <= SHOWN_CHARACTERS + len("b''")
        return shown if short else f"{shown[:SHOWN_CHARACTERS]}... ({len(value)} long)"
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'map'} of {len(value)}"
    return repr(value)[:SHOWN_CHARACTERS]
