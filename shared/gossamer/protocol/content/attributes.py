"""Attribute types and their domains (Vinifera, Sec. IV-A).

Every attribute A_i takes values between v_min and v_max, which the order-preserving hash maps to
the whole identifier ring. Impossible domains raise `ConfigError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import ClassVar, Final

from attrs import field, frozen

from gossamer.protocol.content.limits import MAX_STRING
from gossamer.protocol.content.values import (
    Kind,
    Number,
    Value,
    canonical,
    described,
    kind_of,
    literal,
    parse_date,
    quoted,
)
from gossamer.protocol.kernel.errors import ConfigError, WrongValueError

MAX_ENUMERATION: Final = 1 << 16
MAX_DECIMAL_DIGITS: Final = 15
_VALUES_NAMED_IN_MESSAGES: Final = 5
# Integers that are short for sure; most values are, or floats, and are as they are to be.
_WORD: Final = range(-(1 << 63), 1 << 63)


def _refuse(name: str, part: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"schema.{name}.{part}", value, expected)


def _number(value: object) -> Number | None:
    exact = canonical(value)
    return None if exact is None or isinstance(exact, str | datetime) else exact


def _date(value: object) -> datetime | None:
    instant = parse_date(value) if isinstance(value, str) else canonical(value)
    return instant if isinstance(instant, datetime) else None


def _sorted_characters(alphabet: str | None) -> str | None:
    # Anything but a string passes through, for the attribute itself to refuse.
    return "".join(sorted(set(alphabet))) if isinstance(alphabet, str) else alphabet


def _list_to_tuple(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(values) if isinstance(values, list) else values  # type: ignore[return-value]


@frozen
class IntegerAttribute:
    """Whole numbers from `minimum` to `maximum`, both included; a float that is whole is one."""

    type_name: ClassVar[str] = "integer"
    kind: ClassVar[Kind] = Kind.NUMBER

    name: str
    minimum: int
    maximum: int

    def __attrs_post_init__(self) -> None:
        for part, value in (("minimum", self.minimum), ("maximum", self.maximum)):
            if type(value) is not int:
                raise _refuse(self.name, part, value, "an integer")
        if self.maximum < self.minimum:
            raise _refuse(self.name, "maximum", self.maximum, f"at least {self.minimum}")

    @property
    def expected(self) -> str:
        """The domain in words."""
        return f"an integer from {self.minimum} to {self.maximum}"

    def check(self, value: object) -> int:
        """The value in canonical form; `WrongValueError` unless it belongs to the domain."""
        if type(value) is int and value in _WORD and self.minimum <= value <= self.maximum:
            return value
        exact = _number(value)
        if not isinstance(exact, int) or not self.minimum <= exact <= self.maximum:
            raise WrongValueError(self.name, described(value), self.expected)
        return exact


@frozen
class FloatAttribute:
    """Real numbers from `minimum` to `maximum`, both included; integers are real numbers."""

    type_name: ClassVar[str] = "float"
    kind: ClassVar[Kind] = Kind.NUMBER

    name: str
    minimum: Number
    maximum: Number

    def __attrs_post_init__(self) -> None:
        for part in ("minimum", "maximum"):
            exact = _number(getattr(self, part))
            if exact is None:
                raise _refuse(self.name, part, getattr(self, part), "a finite number")
            object.__setattr__(self, part, exact)
        if self.maximum <= self.minimum:
            raise _refuse(self.name, "maximum", self.maximum, f"more than {self.minimum}")

    @property
    def expected(self) -> str:
        """The domain in words."""
        return f"a number from {self.minimum} to {self.maximum}"

    def check(self, value: object) -> Number:
        """The value in canonical form; `WrongValueError` unless it belongs to the domain."""
        low, high = self.minimum, self.maximum
        if type(value) is float and low <= value <= high and not value.is_integer():
            return value
        exact = _number(value)
        if exact is None or not self.minimum <= exact <= self.maximum:
            raise WrongValueError(self.name, described(value), self.expected)
        return exact


@frozen
class StringAttribute:
    """Strings from `minimum` to `maximum` (None: no upper end), in code point order.

    With an `alphabet`, every character of a value is one of its characters; its own order and
    repetitions mean nothing.
    """

    type_name: ClassVar[str] = "string"
    kind: ClassVar[Kind] = Kind.STRING

    name: str
    alphabet: str | None = field(default=None, converter=_sorted_characters)
    minimum: str = ""
    maximum: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.alphabet is not None and not (
            isinstance(self.alphabet, str) and self.alphabet and canonical(self.alphabet)
        ):
            raise _refuse(self.name, "alphabet", self.alphabet, "a string of at least 1 character")
        self._check_end("minimum", self.minimum)
        if self.maximum is not None:
            self._check_end("maximum", self.maximum)
            if self.maximum <= self.minimum:
                raise _refuse(self.name, "maximum", self.maximum, f"above {self.minimum!r}")

    def _check_end(self, part: str, value: object) -> None:
        if not isinstance(value, str) or canonical(value) is None or not self._is_spelt(value):
            raise _refuse(self.name, part, value, f"a string{self._spelling}")

    def _is_spelt(self, value: str) -> bool:
        return self.alphabet is None or set(value) <= set(self.alphabet)

    @property
    def _spelling(self) -> str:
        return "" if self.alphabet is None else f" of the characters {quoted(self.alphabet)}"

    @property
    def expected(self) -> str:
        """The domain in words."""
        start = f" from {quoted(self.minimum)}" if self.minimum else ""
        end = "" if self.maximum is None else f" up to {quoted(self.maximum)}"
        return f"a string{self._spelling}{start}{end}"

    def check(self, value: object) -> str:
        """The value in canonical form; `WrongValueError` unless it belongs to the domain."""
        exact = canonical(value)
        if not isinstance(exact, str) or not self.has(exact):
            raise WrongValueError(self.name, described(value), self.expected)
        if len(exact) > MAX_STRING:
            found = f"a string of {len(exact)} characters"
            raise WrongValueError(self.name, found, f"strings of at most {MAX_STRING}")
        return exact

    def has(self, text: str) -> bool:
        """Whether a text in canonical form belongs to the domain."""
        inside = self.minimum <= text and (self.maximum is None or text <= self.maximum)
        return inside and self._is_spelt(text)


@frozen
class DateAttribute:
    """Instants in UTC, to the microsecond, from `minimum` to `maximum`, both included.

    A date without time is its first instant; text such as `2020-01-31T12:00:00Z` is read too.
    """

    type_name: ClassVar[str] = "date"
    kind: ClassVar[Kind] = Kind.DATE

    name: str
    minimum: datetime
    maximum: datetime

    def __attrs_post_init__(self) -> None:
        for part in ("minimum", "maximum"):
            instant = _date(getattr(self, part))
            if instant is None:
                raise _refuse(self.name, part, getattr(self, part), "a date")
            object.__setattr__(self, part, instant)
        if self.maximum < self.minimum:
            raise _refuse(self.name, "maximum", literal(self.maximum), f"{self._from} or later")

    @property
    def _from(self) -> str:
        return literal(self.minimum)

    @property
    def expected(self) -> str:
        """The domain in words."""
        return f"a date from {self._from} to {literal(self.maximum)}"

    def check(self, value: object) -> datetime:
        """The value in canonical form; `WrongValueError` unless it belongs to the domain."""
        instant = _date(value)
        if instant is None or not self.minimum <= instant <= self.maximum:
            raise WrongValueError(self.name, described(value), self.expected)
        return instant


@frozen
class EnumerationAttribute:
    """One of a list of strings; the list gives the order."""

    type_name: ClassVar[str] = "enumeration"
    kind: ClassVar[Kind] = Kind.STRING

    name: str
    values: tuple[str, ...] = field(converter=_list_to_tuple)
    _rank: dict[str, int] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        well_formed = (
            isinstance(self.values, tuple)
            and 1 <= len(self.values) <= MAX_ENUMERATION
            and all(
                isinstance(value, str) and canonical(value) is not None for value in self.values
            )
            and len(set(self.values)) == len(self.values)
        )
        if not well_formed:
            expected = f"a list of 1 to {MAX_ENUMERATION} different strings"
            raise _refuse(self.name, "values", self.values, expected)
        object.__setattr__(self, "_rank", {value: rank for rank, value in enumerate(self.values)})

    @property
    def expected(self) -> str:
        """The domain in words."""
        named = ", ".join(quoted(value) for value in self.values[:_VALUES_NAMED_IN_MESSAGES])
        more = len(self.values) - _VALUES_NAMED_IN_MESSAGES
        return f"one of the enumeration {named}" + (f" or {more} more" if more > 0 else "")

    @property
    def ranks(self) -> Mapping[str, int]:
        """The place in the list, from 0, of every value."""
        return self._rank

    def check(self, value: object) -> str:
        """The value in canonical form; `WrongValueError` unless it belongs to the domain."""
        self.rank(value)
        return str(value)

    def rank(self, value: object) -> int:
        """The place of the value in the list, from 0; `WrongValueError` unless it is there."""
        rank = self._rank.get(value) if isinstance(value, str) else None
        if rank is None:
            raise WrongValueError(self.name, described(value), self.expected)
        return rank


@frozen
class BooleanAttribute:
    """False and true, in this order."""

    type_name: ClassVar[str] = "boolean"
    kind: ClassVar[Kind] = Kind.BOOLEAN
    minimum: ClassVar[bool] = False
    maximum: ClassVar[bool] = True
    expected: ClassVar[str] = "true or false"

    name: str

    def check(self, value: object) -> bool:
        """The value; `WrongValueError` unless it is a boolean."""
        if not isinstance(value, bool):
            raise WrongValueError(self.name, described(value), self.expected)
        return value


@frozen
class DecimalAttribute:
    """Decimal numbers of at most `places` digits after the point, from `minimum` to `maximum`.

    A number of at most 15 digits is told from all others by the 64-bit float nearest to it, so
    that float is its canonical form, and is read and written as the decimal that it stands for.
    """

    type_name: ClassVar[str] = "decimal"
    kind: ClassVar[Kind] = Kind.NUMBER

    name: str
    minimum: Number
    maximum: Number
    places: int

    def __attrs_post_init__(self) -> None:
        if type(self.places) is not int or not 0 <= self.places <= MAX_DECIMAL_DIGITS:
            raise _refuse(self.name, "places", self.places, f"0 to {MAX_DECIMAL_DIGITS}")
        for part in ("minimum", "maximum"):
            value = self._nearest(getattr(self, part))
            if value is None:
                expected = f"a number of at most {MAX_DECIMAL_DIGITS} digits, {self._spelling}"
                raise _refuse(self.name, part, getattr(self, part), expected)
            object.__setattr__(self, part, value)
        if self.maximum <= self.minimum:
            raise _refuse(self.name, "maximum", self.maximum, f"more than {self.minimum}")

    @property
    def _spelling(self) -> str:
        return f"{self.places} after the point at most"

    @property
    def expected(self) -> str:
        """The domain in words."""
        return f"a decimal from {self.minimum} to {self.maximum} with {self._spelling}"

    def check(self, value: object) -> Number:
        """The value in canonical form; `WrongValueError` unless it belongs to the domain."""
        exact = self._nearest(value)
        if exact is None or not self.minimum <= exact <= self.maximum:
            raise WrongValueError(self.name, described(value), self.expected)
        return exact

    def _nearest(self, value: object) -> Number | None:
        """The canonical form of a decimal with so few digits, None for anything else."""
        exact = _number(value)
        if exact is None:
            return None
        # A float stands for the shortest decimal that is nearest to it.
        decimal = Fraction(repr(exact)) if isinstance(exact, float) else Fraction(exact)
        scaled = decimal * 10**self.places
        if scaled.denominator != 1 or abs(scaled) >= 10**MAX_DECIMAL_DIGITS:
            return None
        return _number(float(decimal))


Numeric = IntegerAttribute | FloatAttribute | DecimalAttribute
Attribute = Numeric | BooleanAttribute | StringAttribute | DateAttribute | EnumerationAttribute
"""Of any type."""


def check_constant(attribute: Attribute, value: object) -> Value:
    """The canonical form of a value to compare the attribute with, inside its domain or not.

    Decimals compare as the floats that stand for them. Raises `WrongValueError` unless its type is
    the attribute's; an enumeration compares with its own values only.
    """
    if isinstance(attribute, EnumerationAttribute):
        return attribute.check(value)
    if isinstance(attribute, BooleanAttribute):
        return attribute.check(value)
    constant = _date(value) if isinstance(attribute, DateAttribute) else canonical(value)
    if isinstance(attribute, DecimalAttribute) and isinstance(constant, Fraction):
        constant = canonical(float(constant))
    if constant is None or kind_of(constant) is not attribute.kind:
        raise WrongValueError(attribute.name, described(value), f"a {attribute.kind.value}")
    return constant
