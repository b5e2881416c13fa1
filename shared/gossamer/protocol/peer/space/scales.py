"""Coordinates: every attribute's values as exact rationals on a line, in the attribute's order.

A scale says where a value stands on its line and which stretch of the line is the domain. The hash
maps that stretch to the ring; nothing is rounded before that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Final

from attrs import frozen

from gossamer.protocol.content.attributes import (
    Attribute,
    BooleanAttribute,
    DateAttribute,
    DecimalAttribute,
    EnumerationAttribute,
    FloatAttribute,
    IntegerAttribute,
    StringAttribute,
    check_constant,
)
from gossamer.protocol.content.values import Number

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_CODE_POINTS: Final = 0x110000


@frozen
class Scale:
    """The line of one attribute.

    Attributes:
        coordinate: a value's place on the line; non-decreasing, defined outside the domain too.
            Raises `WrongValueError` for values of another type.
        origin: coordinate of the least value of the domain.
        width: length of the stretch that is mapped to the ring, above 0. Discrete types give each
            value a cell of width 1, so their stretch ends one cell after the greatest value.
    """

    coordinate: Callable[[object], Number]
    origin: Number
    width: Number


def scale_of(attribute: Attribute, steps: int) -> Scale:
    """The scale of an attribute; strings keep as many characters as `steps` steps can use."""
    if isinstance(attribute, StringAttribute):
        return _string_scale(attribute, steps)
    if isinstance(attribute, EnumerationAttribute):
        return Scale(attribute.rank, 0, len(attribute.values))
    if isinstance(attribute, BooleanAttribute):
        return Scale(lambda value: int(attribute.check(value)), 0, 2)
    if isinstance(attribute, DateAttribute):
        return _date_scale(attribute)
    return _number_scale(attribute)


def _number_scale(attribute: IntegerAttribute | FloatAttribute | DecimalAttribute) -> Scale:
    cell = 1 if isinstance(attribute, IntegerAttribute) else 0
    width = Fraction(attribute.maximum) - Fraction(attribute.minimum) + cell
    return Scale(partial(_number, attribute), attribute.minimum, width)


def _number(attribute: Attribute, value: object) -> Number:
    number = check_constant(attribute, value)
    assert not isinstance(number, str | datetime)
    return number


def _date_scale(attribute: DateAttribute) -> Scale:
    origin = _microseconds(attribute, attribute.minimum)
    width = _microseconds(attribute, attribute.maximum) - origin + 1
    return Scale(partial(_microseconds, attribute), origin, width)


def _microseconds(attribute: Attribute, value: object) -> int:
    instant = check_constant(attribute, value)
    assert isinstance(instant, datetime)
    return (instant - _EPOCH) // _MICROSECOND


def _string_scale(attribute: StringAttribute, steps: int) -> Scale:
    letters = attribute.alphabet
    base = 1 + (_CODE_POINTS if letters is None else len(letters))
    skipped = _common_prefix(attribute.minimum, attribute.maximum)
    kept = 0
    origin, width = 0, 0
    while width < steps:
        kept += 1
        rank = _StringRank(attribute, base, skipped, kept)
        origin = rank(attribute.minimum)
        end = base**kept if attribute.maximum is None else rank(attribute.maximum) + 1
        width = end - origin
    return Scale(rank, origin, width)


def _common_prefix(low: str, high: str | None) -> int:
    # Every string between the two ends starts with what both ends start with.
    if high is None:
        return 0
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    return shared


@frozen
class _StringRank:
    """The `kept` characters after the first `skipped`, as digits of a number in base `base`.

    Digit 0 stands for the end of the string, digit i for the i-th character of the alphabet. A
    character outside the alphabet (only bounds of subscriptions have any) counts as the end of
    all strings that continue with the character before it.
    """

    attribute: StringAttribute
    base: int
    skipped: int
    kept: int

    def __call__(self, value: object) -> int:
        text = str(check_constant(self.attribute, value))
        text = max(text, self.attribute.minimum)
        if self.attribute.maximum is not None:
            text = min(text, self.attribute.maximum)
        rank = 0
        for place in range(self.skipped, self.skipped + self.kept):
            digit, spelt = self._digit(text, place)
            rank = rank * self.base + digit
            if not spelt:
                remaining = self.skipped + self.kept - place - 1
                return (rank + 1) * int(self.base**remaining) - 1
        return rank

    def _digit(self, text: str, place: int) -> tuple[int, bool]:
        if place >= len(text):
            return 0, True
        letters = self.attribute.alphabet
        if letters is None:
            return ord(text[place]) + 1, True
        digit = bisect_right(letters, text[place])
        return digit, digit > 0 and letters[digit - 1] == text[place]
