"""What messages are made of, as plain data and back: identifiers, filters and values.

Plain data are whole numbers of 64 bits, finite floats, texts, booleans, None, lists, and dicts with
texts for keys: what JSON and CBOR carry. A filter is its text in gossamer's language. A value that
is no plain number, text or boolean is a pair of texts: its kind and its literal.

Each part reads what anybody may have sent: it takes time and memory in proportion to what it is
given, and raises nothing but `MalformedMessageError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

from gossamer.protocol.brokers.core.messages import Id, MalformedMessageError
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter, Publication
from gossamer.protocol.content.filters.domains import Exact, exact_literal, exact_value
from gossamer.protocol.content.filters.language import MAX_WRITTEN_COMPARISONS, MAX_WRITTEN_TEXT
from gossamer.protocol.content.filters.predicates import name_text
from gossamer.protocol.content.limits import (
    MAX_ANY_ATTRIBUTES,
    MAX_ANY_NAME,
    MAX_LITERAL,
    MAX_NAME,
    MAX_STRING,
)
from gossamer.protocol.content.values import described, in_short
from gossamer.protocol.kernel.errors import ContentError, ExpressionError

UNNAMED: Final = "frame"
"""What a message is called before its kind is known."""
WHOLE: Final = 1 << 63
"""Whole numbers in plain data are at least minus this, and less."""

_NUMBER, _DATE = "number", "date"

Read = Callable[[object, str], Any]
"""Makes a part of plain data, and calls it by a name if it is none."""


def read_whole(low: int = 0, high: int = WHOLE - 1) -> Read:
    """Reads whole numbers between two bounds."""

    def read(data: object, field: str) -> int:
        if type(data) is not int or not low <= data <= high:
            raise malformed(field, data, f"a whole number from {low} to {high}")
        return data

    return read


def read_flag(data: object, field: str) -> bool:
    """Reads true or false."""
    if data is not True and data is not False:
        raise malformed(field, data, "true or false")
    return data


def read_name(data: object, field: str) -> str:
    """Reads the name of a broker or client, or a label."""
    if type(data) is not str or not 0 < len(data) <= MAX_NAME or not data.isprintable():
        raise malformed(field, data, f"1 to {MAX_NAME} printable characters")
    return data


def read_id(data: object, field: str) -> Id:
    """Reads an identifier: a broker's name and a number."""
    if type(data) is not list or len(data) != 2:
        raise malformed(field, data, "a broker's name and a number")
    return Id(read_name(data[0], field), _number(data[1], field))


_number: Final = read_whole()


def read_list(entry: Read, most: int) -> Read:
    """Reads lists of so many entries at most, as tuples."""

    def read(data: object, field: str) -> tuple[Any, ...]:
        if type(data) is not list or len(data) > most:
            raise malformed(field, data, f"a list of at most {most} entries")
        return tuple(entry(one, field) for one in data)

    return read


def read_filter(data: object, field: str) -> Filter:
    """Reads a filter's text."""
    if type(data) is not str:
        raise malformed(field, data, "the text of a filter")
    try:
        return _parsed(data)
    except ExpressionError as error:
        raise malformed(field, data, f"a filter ({error.reason})") from None
    except ContentError as error:
        raise malformed(field, data, f"a filter ({error})") from None


@lru_cache(4096)
def _parsed(text: str) -> Filter:
    found = filters.parse_written(text)
    plain_filter(found)  # what is read has to be written again
    return found


# For as long as the filters are there: a dump writes all that a broker has.
_texts: Final[WeakKeyDictionary[Filter, str]] = WeakKeyDictionary()


def plain_filter(wanted: Filter) -> str:
    """A filter as plain data; `ContentError` for one whose text nobody would read."""
    text = _texts.get(wanted)
    if text is None:
        text = _texts[wanted] = _text_of(wanted)
    return text


def _text_of(wanted: Filter) -> str:
    count = len(wanted.comparisons())
    if count > MAX_WRITTEN_COMPARISONS:
        raise _too_large(count, "comparisons", MAX_WRITTEN_COMPARISONS)
    text = filters.to_text(wanted)
    if len(text) > MAX_WRITTEN_TEXT:
        raise _too_large(len(text), "characters", MAX_WRITTEN_TEXT)
    return text


def _too_large(count: int, what: str, most: int) -> ContentError:
    return ContentError("", f"the filter has {count} {what} when written out, more than {most}")


def plain_values(values: Publication) -> dict[str, object]:
    """A publication as plain data; `ContentError` for one that nobody would read."""
    if len(values) > MAX_ANY_ATTRIBUTES:
        reason = f"a publication of {len(values)} attributes, expected at most {MAX_ANY_ATTRIBUTES}"
        raise ContentError("", reason)
    for name in values:
        name_text(name)
    return {name: plain_value(value, name) for name, value in values.items()}


def check_filter(wanted: object, field: str) -> None:
    """Let a filter pass that can be written and read again.

    Raises `MalformedMessageError` for what is no filter, `ContentError` for one that is too long.
    """
    if not isinstance(wanted, Filter):
        raise malformed(field, wanted, "a filter")
    plain_filter(wanted)


def check_values(values: object, field: str) -> None:
    """Let values of a publication pass that can be written and read again.

    Raises `MalformedMessageError` for what is no publication, `ContentError` for values that are
    none or too long.
    """
    if not isinstance(values, Mapping):
        raise malformed(field, values, "values by attribute")
    if len(values) > MAX_ANY_ATTRIBUTES:
        plain_values(dict(values))
    for name, value in values.items():
        if not (type(name) is str and _is_short_name(name)):
            read_attribute(name, field)
        if not _is_plainly_exact(value):
            for one, exact in filters.exact_publication({name: value}).items():
                plain_value(exact, one)


def _is_short_name(name: str) -> bool:
    # What nearly all names are, told quickly; others are looked at more closely.
    return len(name) <= MAX_NAME and name.isascii() and name.isidentifier()


def _is_plainly_exact(value: object) -> bool:
    # What nearly all values are, likewise.
    kind = type(value)
    if kind is str:
        return len(value) <= MAX_STRING and value.isascii()  # type: ignore[arg-type,attr-defined]
    if kind is float:
        return abs(value) <= _LARGEST  # type: ignore[arg-type]
    return kind is bool or (kind is int and -WHOLE <= value < WHOLE)  # type: ignore[operator]


def plain_value(value: Exact, name: str = "") -> object:
    """An exact value as plain data; `ContentError` for one that nobody would read."""
    if isinstance(value, str):
        if len(value) > MAX_STRING:
            reason = (
                f"attribute {name!r} has {len(value)} characters, expected at most {MAX_STRING}"
            )
            raise ContentError(name, reason)
        return value
    if isinstance(value, bool) or (isinstance(value, int) and -WHOLE <= value < WHOLE):
        return value
    if isinstance(value, float) and abs(value) <= _LARGEST:
        return value
    if exact_value(value) is None:
        raise ContentError(name, f"attribute {name!r} has {described(value)}, which is no value")
    literal = _fraction(value) if isinstance(value, int | Fraction) else exact_literal(value)
    return [_DATE if isinstance(value, datetime) else _NUMBER, literal]


_LARGEST: Final = 1.7976931348623157e308


def _fraction(value: int | Fraction) -> str:
    """A number as it is: a literal may be a float that is read as a whole number again."""
    return f"{value.numerator}/{value.denominator}"


def read_values(data: object, field: str) -> Publication:
    """Reads a publication."""
    if type(data) is not dict or len(data) > MAX_ANY_ATTRIBUTES:
        raise malformed(field, data, f"at most {MAX_ANY_ATTRIBUTES} values by attribute")
    return {read_attribute(name, field): read_value(value, field) for name, value in data.items()}


def read_attribute(data: object, field: str) -> str:
    """Reads the name of an attribute."""
    if type(data) is not str or len(data) > MAX_ANY_NAME or exact_value(data) is None:
        raise malformed(field, data, "the name of an attribute")
    try:
        name_text(data)
    except ContentError as error:
        raise malformed(field, data, f"the name of an attribute ({error})") from None
    return data


def read_value(data: object, field: str) -> Exact:
    """Reads a value."""
    if type(data) is list:
        return _read_literal(data, field)
    if type(data) is str and len(data) > MAX_STRING:
        raise malformed(field, data, f"at most {MAX_STRING} characters")
    if type(data) is int and not -WHOLE <= data < WHOLE:
        raise malformed(field, data, "whole numbers of more than 64 bits as texts")
    value = exact_value(data) if type(data) in (int, float, str, bool) else None
    if value is None:
        raise malformed(field, data, "a number, string, date or boolean")
    return value


def _read_literal(data: list[object], field: str) -> Exact:
    if len(data) != 2 or data[0] not in (_NUMBER, _DATE):
        raise malformed(field, data, f"{_NUMBER!r} or {_DATE!r}, and a literal")
    kind, text = data
    value = _literal(text) if type(text) is str and len(text) <= MAX_LITERAL else None
    if (
        value is None
        or isinstance(value, str | bool)
        or isinstance(value, datetime) is (kind == _NUMBER)
    ):
        raise malformed(field, text, f"a {kind}")
    return value


def _literal(text: str) -> Exact | None:
    try:
        found = filters.parse_publication(f"value = {text}")
        plain_values(found)  # what is read has to be written again
    except (ExpressionError, ContentError):
        return None
    return found["value"] if len(found) == 1 else None


def malformed(field: str, value: object, expected: str) -> MalformedMessageError:
    """The error about a part of a message; the message is not known here."""
    return MalformedMessageError(UNNAMED, field, shown(value), expected)


def shown(value: object) -> str:
    """A value in a few words, whatever it is."""
    if isinstance(value, str | bytes):
        return repr(value[:40]) + ("..." if len(value) > 40 else "")
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'map'} of {len(value)}"
    return in_short(value)[:60]
