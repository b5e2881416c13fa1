"""Events as people write them, on the command line and in JSON lines, and as they are printed."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from io import TextIOBase
from types import MappingProxyType
from typing import Any, Final, TextIO

from attrs import define, field

from gossamer.client.results import Payload, ReceivedEvent
from gossamer.node.errors import EventInputError
from gossamer.protocol.content import filters
from gossamer.protocol.content.attributes import Attribute, BooleanAttribute, Numeric
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import (
    Value,
    quoted,
    read_json,
    read_number,
    values_of_json,
    values_to_json,
)
from gossamer.protocol.kernel.errors import ContentError, ExpressionError

# What begins like one attribute and its value, and not like a publication.
_PLAIN_ARGUMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")

_BOOLEANS: Final = {"true": True, "false": False}


def event_of_arguments(schema: Schema | None, arguments: Sequence[str]) -> dict[str, Any]:
    """The event that ``key=value`` arguments describe.

    Without a schema a value is a number if it reads as one, or true or false, and else a string,
    which may stand between double quotes; one argument may also be a whole publication.

    Raises:
        EventInputError: an argument is none, or its value does not fit the schema.
    """
    if schema is None:
        return _free_event(arguments)
    values: dict[str, object] = {}
    for argument, name, text in _pairs(arguments):
        try:
            attribute = schema[name]
        except ContentError as error:
            known = ", ".join(schema.names)
            raise EventInputError(argument, f"{error} (there are {known})") from None
        values[name] = _typed(attribute, text, argument)
    return _checked(schema, values, " ".join(arguments) or "nothing")


def event_of_line(schema: Schema | None, line: str | bytes, number: int) -> dict[str, Any]:
    """The event of a line of JSON: the values, or what `gossamer sub` prints of an event.

    Raises:
        EventInputError: the line is no such event.
    """
    place = f"line {number}"
    try:
        text = line if isinstance(line, str) else line.decode("utf-8-sig")
        content = read_json(text)
    except UnicodeDecodeError as error:
        raise EventInputError(place, f"no UTF-8 text at byte {error.start + 1}") from None
    except (ValueError, RecursionError) as error:
        raise EventInputError(place, f"no JSON ({error}), expected one event a line") from None
    if isinstance(content, dict) and "payload" in content and "values" in content:
        reason = "carries a payload, expected values only (--payload publishes one at a time)"
        raise EventInputError(place, reason)
    if isinstance(content, dict) and "id" in content and isinstance(content.get("values"), dict):
        content = content["values"]
    if not isinstance(content, dict):
        expected = 'an object such as {"symbol": "IBM", "price": 80.5}'
        raise EventInputError(place, f"no object, expected {expected}")
    values = values_of_json(content)
    if schema is None:
        return _exact(values, place)
    return _checked(schema, values, place)


def line_of_event(event: ReceivedEvent, more: Mapping[str, object] = MappingProxyType({})) -> str:
    """An event, or a match of several, as a line of JSON, with more fields at its end."""
    if event.match:
        matched = [_fields_of(one) for one in event.match]
        fields = {"id": event.id, "published_at": event.published_at, "match": matched}
        return json.dumps({**fields, **more}, ensure_ascii=False)
    return json.dumps(
        {
            **_fields_of(event),
            **_payload_fields(event.payload),
            **({"late": True} if event.late else {}),
            **({"last": event.last} if event.last else {}),
            **({"deleted": True} if event.deleted else {}),
            **more,
        },
        ensure_ascii=False,
    )


def _fields_of(event: ReceivedEvent) -> dict[str, object]:
    return {
        "id": event.id,
        "published_at": event.published_at,
        "publisher": event.publisher,
        "values": values_to_json(event.values),
    }


def write_text(out: TextIO | TextIOBase, text: str) -> bool:
    """Write text at once; return whether anybody reads it, False from then on."""
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        # Python would complain when it closes the stream at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return False
    return True


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Each argument, its attribute and the text of its value."""
    names = set()
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals:
            raise EventInputError(argument, "expected attribute=value, such as price=80.5")
        if name in names:
            raise EventInputError(argument, f"attribute {name!r} has a value already")
        names.add(name)
        yield argument, name, text


def _free_event(arguments: Sequence[str]) -> dict[str, Any]:
    if len(arguments) == 1 and not _PLAIN_ARGUMENT.match(arguments[0]):
        return publication_of_text(arguments[0], arguments[0][:60])
    values = {name: _free_value(text) for _, name, text in _pairs(arguments)}
    return _exact(values, " ".join(arguments))


def publication_of_text(text: str, place: str) -> dict[str, Any]:
    """The publication that a text describes, in gossamer's language or PADRES'.

    Raises:
        EventInputError: it describes none.
    """
    try:
        return filters.parse_publication(text)
    except ExpressionError as error:
        raise EventInputError(place, str(error)) from None


def _free_value(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    number = read_number(text)
    return text if number is None else number


def _exact(values: Mapping[str, object], place: str) -> dict[str, Any]:
    try:
        return filters.exact_publication(values)
    except ContentError as error:
        raise EventInputError(place, str(error)) from None


def _typed(attribute: Attribute, text: str, argument: str) -> object:
    """What ``text`` means for the attribute; the domain is checked with everything else."""
    if isinstance(attribute, BooleanAttribute):
        return _BOOLEANS.get(text, text)
    if not isinstance(attribute, Numeric):
        return text
    number = read_number(text)
    if number is None:
        expected = f"attribute {attribute.name!r} takes {attribute.expected}"
        raise EventInputError(argument, f"{expected}, not {quoted(text[:60])}")
    return number


def _checked(schema: Schema, values: Mapping[str, object], place: str) -> dict[str, Value]:
    try:
        return schema.check_event(values)
    except ContentError as error:
        raise EventInputError(place, str(error)) from None


def _payload_fields(payload: Payload | None) -> dict[str, object]:
    if payload is None:
        return {}
    text = base64.b64encode(payload.data).decode()
    return {"payload": {"content_type": payload.content_type, "base64": text}}


# Lines that were not published: the first are named, the others counted by kind at the end.


# Lines that are named each, and kinds that are named of the others.
LISTED: Final = 10
KINDS: Final = 5
# Kinds that are told from each other at all.
_MOST_KINDS: Final = 100
# What differs between two lines of one kind: values, places within them, details.
_VALUES: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\([^)]*\)|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?')


@define
class _Kind:
    example: EventInputError
    count: int = 0


@define
class Refusals:
    """Why lines were not published."""

    listed: int = 0
    _kinds: dict[str, _Kind] = field(factory=dict)

    def take(self, error: EventInputError) -> str | None:
        """A sentence about a line; None if it is only counted, after so many others."""
        if self.listed < LISTED:
            self.listed += 1
            return str(error)
        kind = _VALUES.sub("#", error.reason)
        if kind not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            kind = next(reversed(self._kinds))
        self._kinds.setdefault(kind, _Kind(error)).count += 1
        return None

    def summary(self) -> Iterator[str]:
        """Sentences about the lines that were only counted."""
        kinds = sorted(self._kinds.values(), key=lambda kind: -kind.count)
        if kinds:
            yield f"{_lines(sum(kind.count for kind in kinds))} more:"
        for kind in kinds[:KINDS]:
            more = "" if kind.count == 1 else f" (and {kind.count - 1:,} like it)"
            yield f"  {kind.example}{more}"
        left = sum(kind.count for kind in kinds[KINDS:])
        if left:
            yield f"  {_lines(left)} for other reasons"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"
