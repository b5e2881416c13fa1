"""The kinds of values, canonical forms, literals and JSON; payloads, by which nothing is matched.

Numbers are exact reals: integers, floats, Decimals and Fractions compare by the number they stand
for, never after rounding. Strings compare by code point, dates by the instant in UTC.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Final

from attrs import frozen

from gossamer.protocol.content.limits import MAX_CONTENT_TYPE, MAX_DIGITS, MAX_PAYLOAD_BYTES
from gossamer.protocol.kernel.errors import ContentError

Number = int | float | Fraction
Value = int | float | Fraction | str | datetime

_TOO_MANY_DIGITS: Final[int] = 10**MAX_DIGITS
_LAST_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)
_LONGEST_PLAIN_INTEGER: Final = 10**18
_LONGEST_DESCRIBED: Final = 60
# A decimal of so many characters has no more digits than every float keeps.
_SURELY_SHORT: Final = 15
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_DATE_PATTERN: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII
)


class Kind(Enum):
    """Values of different kinds never compare, and never match each other's constraints."""

    NUMBER = "number"
    STRING = "string"
    DATE = "date"
    BOOLEAN = "boolean"

    # Kinds are keys wherever filters are looked up; the inherited hash would take a call each.
    __hash__ = object.__hash__


def canonical(value: object) -> Value | None:
    """The one form of a value that every equal value shares, or None if it is not a value.

    A number becomes an int where it is whole, else a float where that is exact, else a Fraction.
    A date becomes a datetime in UTC: a date without time is its first instant, a time without
    zone is taken as UTC. Booleans, NaN, infinities, numbers of more than `MAX_DIGITS` digits and
    strings with lone surrogates are no values.
    """
    if type(value) is int:
        return _bounded(value)
    if isinstance(value, float):
        return _canonical_float(float(value))
    if isinstance(value, str):
        return str(value) if is_well_formed(value) else None
    if isinstance(value, date):
        return _canonical_date(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    return _canonical_number(value)


def read_number(text: str) -> Number | None:
    """The number that a text writes, such as ``-3``, ``80.5``, ``1e-9`` or ``1/3``; None if none.

    A decimal is the nearest float if that writes itself as this decimal, as those of up to 15
    digits do, and exact where not: ``9007199254740993.0`` and ``1e500`` are what they say.
    """
    numerator, slash, denominator = text.partition("/")
    try:
        if slash:
            longest = max(len(numerator), len(denominator))
            read = longest <= MAX_DIGITS + 1
            return canonical_number(Fraction(int(numerator), int(denominator))) if read else None
        decimal = Decimal(text)
        if not decimal.is_finite() or not _is_of_few_digits(decimal):
            return None
        is_short = len(text) <= _SURELY_SHORT and "e" not in text.lower()
        if not is_short and decimal != Decimal(repr(float(decimal))):
            return canonical_number(Fraction(decimal))
        return canonical_number(float(decimal))
    except (ArithmeticError, ValueError):
        return None


def canonical_number(value: Number) -> Number | None:
    """A number in its canonical form, as `canonical`."""
    found = canonical(value)
    return None if isinstance(found, str | datetime) else found


def kind_of(value: Value) -> Kind:
    """The kind of a canonical value."""
    if isinstance(value, str):
        return Kind.STRING
    return Kind.DATE if isinstance(value, datetime) else Kind.NUMBER


def is_well_formed(text: str) -> bool:
    """Whether a string is without lone surrogates, so that it can be encoded."""
    return text.isascii() or not any(ord(character) in _SURROGATES for character in text)


def _canonical_float(value: float) -> Number | None:
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


def _canonical_date(value: date) -> datetime | None:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC, fold=0)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return None


def _canonical_number(value: Real | Decimal) -> Number | None:
    if isinstance(value, Integral):
        return _bounded(int(value))
    if isinstance(value, Decimal) and not _is_of_few_digits(value):
        return None
    ratio = _exact_ratio(value)
    if ratio is None or not _is_bounded(ratio):
        return None
    if ratio.denominator == 1:
        return ratio.numerator
    nearest = _nearest_float(ratio)
    return nearest if nearest is not None and nearest == ratio else ratio


def _exact_ratio(value: Real | Decimal) -> Fraction | None:
    # Every number type, numpy's included, states its own exact ratio; float() might round it.
    as_integer_ratio = getattr(value, "as_integer_ratio", None)
    if as_integer_ratio is None:
        return None
    try:
        return Fraction(*as_integer_ratio())
    except (OverflowError, ValueError):  # infinities, NaN
        return None


def _bounded(value: int) -> int | None:
    return value if -_TOO_MANY_DIGITS < value < _TOO_MANY_DIGITS else None


def _is_of_few_digits(value: Decimal) -> bool:
    # A few characters can stand for a number that takes all memory to write out.
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and abs(exponent) <= 2 * MAX_DIGITS


def _is_bounded(ratio: Fraction) -> bool:
    return abs(ratio.numerator) < _TOO_MANY_DIGITS and ratio.denominator < _TOO_MANY_DIGITS


def _nearest_float(ratio: Fraction) -> float | None:
    try:
        return float(ratio)
    except OverflowError:
        return None


def described(value: object) -> str:
    """A value in words that name its type, for messages."""
    if isinstance(value, bool):
        return f"the boolean {value}"
    if isinstance(value, str):
        cut = "..." if len(value) > _LONGEST_DESCRIBED else ""
        return f"the string {quoted(value[:_LONGEST_DESCRIBED])}{cut}"
    if isinstance(value, date):
        form = canonical(value)
        return f"the date {literal(form) if form is not None else value.isoformat()}"
    if isinstance(value, Integral):
        return f"the integer {_shown(value)}"
    if isinstance(value, Real | Decimal):
        return f"the number {_shown(value)}"
    return f"{in_short(value)} of type {type(value).__name__}"


def _shown(value: object) -> str:
    try:
        text = str(value)
    except ValueError:  # Python writes no integer of some thousand digits
        return f"of more than {MAX_DIGITS} digits"
    return text if len(text) <= _LONGEST_DESCRIBED else f"{text[:_LONGEST_DESCRIBED]}..."


class _Short(reprlib.Repr):
    """As Python writes values, cut short, whatever they hold."""

    def __init__(self) -> None:
        super().__init__()
        self.maxother = _LONGEST_DESCRIBED

    def repr_int(self, x: int, level: int) -> str:
        """An integer, unless Python would not write it."""
        if x.bit_length() > 128:
            return f"a whole number of {x.bit_length()} bits"
        return super().repr_int(x, level)


in_short: Final = _Short().repr
"""Writes any value in some tens of characters, for messages."""


def literal(value: Value) -> str:
    """The text of a canonical value; `language` reads it back as an equal value."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, datetime):
        return _date_literal(value)
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, int) and abs(value) >= _LONGEST_PLAIN_INTEGER:
        nearest = _nearest_float(Fraction(value))
        return repr(nearest) if nearest is not None and nearest == value else str(value)
    return repr(value)


def quoted(text: str) -> str:
    """A string between double quotes, with quotes, backslashes and unprintables escaped."""
    return f'"{"".join(_escaped(character) for character in text)}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _date_literal(value: datetime) -> str:
    if (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0):
        return value.date().isoformat()
    return value.replace(tzinfo=None).isoformat() + "Z"


def parse_date(text: str) -> datetime | None:
    """The instant that `2020-01-31` or `2020-01-31T12:00:00Z` names, or None if it names none.

    Seconds, their fraction (up to microseconds) and the zone may be left out; no zone means UTC.
    """
    if _DATE_PATTERN.fullmatch(text) is None:
        return None
    try:
        return _canonical_date(datetime.fromisoformat(text))
    except ValueError:
        return None


def span_test(
    least: Any, most: Any, *, above: bool = False, below: bool = False
) -> Callable[[Any], bool]:
    """Whether a value lies between two, which belong to what lies between unless said otherwise."""
    if above:
        return (lambda v: least < v < most) if below else (lambda v: least < v <= most)
    return (lambda v: least <= v < most) if below else (lambda v: least <= v <= most)


def prefix_successor(prefix: str) -> str | None:
    """The least string above every string that starts with `prefix`, or None if there is none."""
    kept = prefix.rstrip(chr(_LAST_CODE_POINT))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return kept[:-1] + chr(following)


# Values of events in JSON, exactly: what is written reads back as an equal value.
#
# JSON has no infinities and no fractions, which are written as ``{"number": "1/3"}``. Dates are
# written as text; only a schema tells them from other text.

_NUMBER: Final = "number"
_INFINITE: Final = {"inf": math.inf, "-inf": -math.inf}


def read_json(text: str) -> Any:
    """What a JSON text says, numbers as they are written.

    Raises:
        ValueError: it is no JSON, or gives a name two values, of which one would be lost.
        RecursionError: it is nested too deeply.
    """
    return json.loads(
        text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_exact_float
    )


def values_of_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of an event of which `read_json` made these."""
    return {name: _exact(value) for name, value in values.items()}


def values_to_json(values: Mapping[str, Any]) -> dict[str, object]:
    """Canonical values of an event as `json.dumps` writes them."""
    return {name: _plain(value) for name, value in values.items()}


def _exact(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {_NUMBER} and isinstance(value[_NUMBER], str):
        text = value[_NUMBER]
        number = _INFINITE.get(text, read_number(text))
        return value if number is None else number
    return value


def _plain(value: Any) -> object:
    if isinstance(value, Fraction) or (isinstance(value, float) and math.isinf(value)):
        return {_NUMBER: literal(value)}
    return literal(value) if isinstance(value, datetime) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{quoted(name[:60])} has two values, expected one")
        found[name] = value
    return found


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is no number of JSON")


def _exact_float(text: str) -> object:
    number = read_number(text)
    if number is None:
        raise ValueError(f"a number of more than {MAX_DIGITS} digits")
    return number


UNKNOWN_TYPE: Final = "application/octet-stream"

_CONTENT_TYPE: Final = re.compile(r"[!-.0-~]+/[!-.0-~]+(?: *; *[!-~]+)*")


@frozen
class Payload:
    """What an event carries beside its values.

    Raises `ContentError` for more bytes than allowed, and for what is no content type.

    Attributes:
        data: the bytes.
        content_type: what they are, as of MIME (RFC 6838), such as "text/plain; charset=utf-8".
    """

    data: bytes
    content_type: str = UNKNOWN_TYPE

    def __attrs_post_init__(self) -> None:
        if type(self.data) is not bytes:
            raise ContentError("", f"a payload is bytes, not {type(self.data).__name__}")
        if len(self.data) > MAX_PAYLOAD_BYTES:
            size = len(self.data)
            raise ContentError("", f"a payload takes {MAX_PAYLOAD_BYTES} bytes, not {size}")
        if not _is_content_type(self.content_type):
            expected = "such as 'image/png'"
            raise ContentError(
                "", f"{str(self.content_type)[:60]!r} is no content type, {expected}"
            )


def _is_content_type(text: object) -> bool:
    return (
        isinstance(text, str)
        and len(text) <= MAX_CONTENT_TYPE
        and _CONTENT_TYPE.fullmatch(text) is not None
    )
