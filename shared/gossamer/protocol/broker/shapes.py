"""Shapes of messages as plain data: a kind, then fields in the order in which a class names them.

Made of the parts that `plain` reads and writes. Brokers of trees and of SCOTs share them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import fields, frozen

from gossamer.protocol.broker.errors import MalformedMessageError
from gossamer.protocol.broker.plain import (
    UNNAMED,
    Read,
    malformed,
    plain_filter,
    plain_values,
    read_filter,
    read_flag,
    read_id,
    read_list,
    read_name,
    read_values,
    read_whole,
)

MAX_ASKED: Final = 10_000
"""Most filters with which a client attaches."""


@frozen
class Part:
    """A field of a message: how it becomes plain data, and how it is read."""

    plain: Callable[[Any], object]
    read: Read


@frozen
class Shape:
    """A kind of message and its parts, in the order of its class."""

    kind: type
    parts: Mapping[str, Part]

    def plain(self, message: object) -> list[object]:
        """The fields of a message."""
        return [part.plain(getattr(message, name)) for name, part in self.parts.items()]

    def read(self, name: str, data: list[object]) -> Any:
        """The message with these fields; raises `MalformedMessageError`."""
        if len(data) != len(self.parts):
            expected = f"{len(self.parts)} fields"
            raise MalformedMessageError(name, "length", f"{len(data)} fields", expected)
        found = zip(self.parts.items(), data, strict=True)
        try:
            return self.kind(*[part.read(one, field) for (field, part), one in found])
        except MalformedMessageError as error:
            if error.message != UNNAMED:
                raise
            raise MalformedMessageError(name, error.field, error.value, error.expected) from None


def shape(kind: type, *parts: Part) -> Shape:
    """The shape of a class whose fields are these parts."""
    names = [field.name for field in fields(kind)]
    return Shape(kind, dict(zip(names, parts, strict=True)))


class Kinds:
    """Messages of several shapes, each a list that begins with the name of its kind."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = shapes
        self._names = {one.kind: name for name, one in shapes.items()}

    def plain(self, message: object) -> list[object]:
        """A message as plain data."""
        name = self._names[type(message)]
        return [name, *self._shapes[name].plain(message)]

    def read(self, data: object, field: str) -> Any:
        """The message that came as plain data; raises `MalformedMessageError`."""
        if type(data) is not list or not data or type(data[0]) is not str:
            raise malformed(field, data, "a list that begins with the kind of a message")
        found = self._shapes.get(data[0])
        if found is None:
            raise malformed(field, data[0], "one of " + ", ".join(self._shapes))
        return found.read(data[0], data[1:])

    @property
    def part(self) -> Part:
        """A field that holds one of them."""
        return Part(self.plain, self.read)


def same(value: object) -> object:
    """What is plain data already."""
    return value


def maybe(part: Part) -> Part:
    """A field that may hold nothing."""
    return Part(
        lambda value: None if value is None else part.plain(value),
        lambda data, field: None if data is None else part.read(data, field),
    )


def many(part: Part, most: int) -> Part:
    """A field that holds so many at most."""
    return Part(lambda value: [part.plain(one) for one in value], read_list(part.read, most))


def pair(one: Part, other: Part, expected: str) -> Part:
    """A field that holds two parts; ``expected`` says of what."""

    def read(data: object, field: str) -> tuple[object, object]:
        if type(data) is not list or len(data) != 2:
            raise malformed(field, data, expected)
        return one.read(data[0], field), other.read(data[1], field)

    return Part(lambda value: [one.plain(value[0]), other.plain(value[1])], read)


ID: Final = Part(list, read_id)
NAME: Final = Part(same, read_name)
FLAG: Final = Part(same, read_flag)
COUNT: Final = Part(same, read_whole())
FILTER: Final = Part(plain_filter, read_filter)
VALUES: Final = Part(plain_values, read_values)
ASKED: Final = many(pair(NAME, FILTER, "a label and a filter"), MAX_ASKED)
