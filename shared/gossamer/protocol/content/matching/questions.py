"""What is asked of an index, as the words that the search rule reads.

Subscriptions relate by what they ask for: an attribute that the covering one does not constrain is
no matter, one that it constrains alone is fatal. An advertisement allows its own attributes only,
so there it is the other way round. Every question says so by two settings: whether all that is
stored has to be wanted, and how many of the wanted attributes have to be stored.

A question is None where no stored filter can be an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gossamer.protocol.content.filters.domains import exact_kind, exact_value
from gossamer.protocol.content.matching.dimensions import LEAST, MOST, PRESENCE, Box, Dimensions
from gossamer.protocol.content.matching.search import (
    DOUBT_STORED,
    ENCLOSING,
    HELD,
    OVERLAPPING,
    WITHIN,
)
from gossamer.protocol.content.values import Kind

Question = list[int]
Asked = list[int]
"""Dimension, low, high, and whether it has to be stored, for one dimension after the other."""

ALL: Final = 1 << 31
"""More answers than there can be."""

_OPTIONAL, _REQUIRED = 0, 1
_STRING: Final = Kind.STRING
_PLAIN: Final[dict[type, Kind]] = {int: Kind.NUMBER, float: Kind.NUMBER, str: Kind.STRING}
"""Types whose values are exact as they are, unless NaN or not ASCII."""
_NOTHING: Final = (MOST, LEAST)
"""An interval that no stored one overlaps."""


class Questions:
    """Puts questions about publications in terms of dimensions."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions

    def matching(self, publication: Mapping[str, object]) -> Question:
        """Subscriptions that a publication matches."""
        asked: Asked = []
        for name, value in publication.items():
            numbers = self._dimensions.of(name)
            if numbers:
                self._ask_value(asked, numbers, value)
        return _question(asked, ENCLOSING, all_stored=1)

    def allowing(self, publication: Mapping[str, object]) -> Question | None:
        """Advertisements that allow a publication."""
        asked: Asked = []
        for name, value in publication.items():
            if not self._ask_value(asked, self._dimensions.of(name), value):
                return None
        return _question(asked, ENCLOSING, stored_wanted=len(publication))

    def _ask_value(self, asked: Asked, numbers: Mapping[Kind | None, int], value: Any) -> bool:
        """Ask what a value of an attribute satisfies; returns whether anything can be stored."""
        kind = _PLAIN.get(type(value))
        if kind is None or value != value or (kind is _STRING and not value.isascii()):
            value = exact_value(value)
            if value is None:
                return False
            kind = exact_kind(value)
        number, present = numbers.get(kind), numbers.get(None)
        if number is not None:
            asked += (number, *self._dimensions.cell(kind, value), _OPTIONAL)
        if present is not None:
            asked += (present, *PRESENCE, _OPTIONAL)
        return number is not None or present is not None


def covering(wanted: Box) -> Question:
    """Filters that cover a filter."""
    return _question(_ask_kind_or_presence(wanted, by_presence=False), ENCLOSING, all_stored=1)


def covered(wanted: Box) -> Question | None:
    """Filters that a filter covers."""
    asked: Asked = []
    for numbers, kind, low, high in wanted.sides:
        if kind is None:
            _ask_all(asked, numbers)
        elif kind in numbers:
            asked += (numbers[kind], low, high, _REQUIRED)
        else:
            return None
    words = _question(asked, WITHIN, stored_wanted=len(wanted.sides), doubt_all=not wanted.exact)
    words[DOUBT_STORED] = 0
    return words


def intersecting(wanted: Box) -> Question:
    """Subscriptions that some publication matches together with a filter."""
    asked: Asked = []
    for numbers, kind, low, high in wanted.sides:
        for other, number in numbers.items():
            if other is None or kind is None:
                continue
            # A value has one kind, so whatever asks for another is disjoint.
            interval = (low, high) if other is kind else _NOTHING
            asked += (number, *interval, _OPTIONAL)
    return _question(asked, OVERLAPPING, doubt_all=not wanted.exact)


def met_by_advertisement(advertisement: Box) -> Question:
    """Subscriptions that some publication of an advertisement matches."""
    asked = _ask_kind_or_presence(advertisement, by_presence=True)
    return _question(asked, OVERLAPPING, all_stored=1, doubt_all=not advertisement.exact)


def met_by_subscription(subscription: Box) -> Question:
    """Advertisements of which some publication matches a subscription."""
    asked = _ask_kind_or_presence(subscription, by_presence=True)
    every = len(subscription.sides)
    return _question(asked, OVERLAPPING, stored_wanted=every, doubt_all=not subscription.exact)


def _question(
    asked: Asked,
    relation: int,
    all_stored: int = 0,
    stored_wanted: int = 0,
    doubt_all: bool = False,
) -> Question:
    header = [relation, all_stored, stored_wanted, 1, doubt_all, HELD, HELD, ALL, len(asked) // 4]
    return header + asked


def _ask_kind_or_presence(wanted: Box, by_presence: bool) -> Asked:
    """For each attribute what has an interval of its kind, or asks for presence.

    `by_presence`: where presence is wanted, stored intervals of any kind will do.
    """
    asked: Asked = []
    for numbers, kind, low, high in wanted.sides:
        if kind is None and by_presence:
            _ask_all(asked, numbers)
        elif kind in numbers:
            asked += (numbers[kind], low, high, _OPTIONAL)
        if kind is not None and None in numbers:
            asked += (numbers[None], *PRESENCE, _OPTIONAL)
    return asked


def _ask_all(asked: Asked, numbers: Mapping[Kind | None, int]) -> None:
    for number in numbers.values():
        asked += (number, LEAST, MOST, _OPTIONAL)
