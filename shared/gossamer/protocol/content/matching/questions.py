"""What is asked of an index, as the words that the search rule reads.

Subscriptions relate by what they ask for: an attribute that the covering one does not constrain is
no matter, one that it constrains alone is fatal. An advertisement allows its own attributes only,
so there it is the other way round. Every question says so by two settings: whether all that is
stored has to be wanted, and how many of the wanted attributes have to be stored.

A question is None where no stored filter can be an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gossamer.protocol.content.filters.domains import exact_kind, exact_value
from gossamer.protocol.content.matching.dimensions import PRESENCE, Box, Dimensions
from gossamer.protocol.content.matching.keys import LEAST, MOST
from gossamer.protocol.content.matching.table import ENCLOSING, OVERLAPPING, WITHIN
from gossamer.protocol.content.values import Kind

Words = list[int]
Asked = list[int]
"""Dimension, low, high, and whether it has to be stored, for one dimension after the other."""

ALL: Final = 1 << 31
"""More answers than there can be."""

_OPTIONAL, _REQUIRED = 0, 1
_PLAIN: Final[dict[type, Kind]] = {int: Kind.NUMBER, float: Kind.NUMBER, str: Kind.STRING}
"""Types whose values are exact as they are, unless NaN or not ASCII."""
_NOTHING: Final = (MOST, LEAST)
"""An interval that no stored one overlaps."""


class Questions:
    """Puts questions about publications and filters in terms of dimensions."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions

    def matching(self, publication: Mapping[str, object]) -> Words:
        """Subscriptions that a publication matches."""
        asked: Asked = []
        for name, value in publication.items():
            numbers = self._dimensions.of(name)
            if numbers:
                self._ask_value(asked, numbers, value)
        return [ENCLOSING, 1, 0, 1, 0, 0, ALL, len(asked) // 4, *asked]

    def allowing(self, publication: Mapping[str, object]) -> Words | None:
        """Advertisements that allow a publication."""
        asked: Asked = []
        for name, value in publication.items():
            if not self._ask_value(asked, self._dimensions.of(name), value):
                return None
        return [ENCLOSING, 0, len(publication), 1, 0, 0, ALL, len(asked) // 4, *asked]

    def covering(self, wanted: Box, enough: int = ALL) -> Words:
        """Filters that cover a filter."""
        asked = self._ask_kind_or_presence(wanted, by_presence=False)
        return [ENCLOSING, 1, 0, 1, 0, 0, enough, len(asked) // 4, *asked]

    def covered(self, wanted: Box, only_roots: bool = False) -> Words | None:
        """Filters that a filter covers."""
        asked: Asked = []
        for name, kind, low, high in wanted.sides:
            numbers = self._dimensions.of(name)
            if kind is None:
                _ask_all(asked, numbers)
            elif kind in numbers:
                asked += (numbers[kind], low, high, _REQUIRED)
            else:
                return None
        number, every = len(asked) // 4, len(wanted.sides)
        return [WITHIN, 0, every, 0, not wanted.exact, only_roots, ALL, number, *asked]

    def intersecting(self, wanted: Box) -> Words:
        """Subscriptions that some publication matches together with a filter."""
        asked: Asked = []
        for name, kind, low, high in wanted.sides:
            for other, number in self._dimensions.of(name).items():
                if other is None or kind is None:
                    continue
                # A value has one kind, so whatever asks for another is disjoint.
                interval = (low, high) if other is kind else _NOTHING
                asked += (number, *interval, _OPTIONAL)
        return [OVERLAPPING, 0, 0, 1, not wanted.exact, 0, ALL, len(asked) // 4, *asked]

    def met_by_advertisement(self, advertisement: Box) -> Words:
        """Subscriptions that some publication of an advertisement matches."""
        asked = self._ask_kind_or_presence(advertisement, by_presence=True)
        return [OVERLAPPING, 1, 0, 1, not advertisement.exact, 0, ALL, len(asked) // 4, *asked]

    def met_by_subscription(self, subscription: Box) -> Words:
        """Advertisements of which some publication matches a subscription."""
        asked = self._ask_kind_or_presence(subscription, by_presence=True)
        number, every = len(asked) // 4, len(subscription.sides)
        return [OVERLAPPING, 0, every, 1, not subscription.exact, 0, ALL, number, *asked]

    def _ask_kind_or_presence(self, wanted: Box, by_presence: bool) -> Asked:
        """For each attribute what has an interval of its kind, or asks for presence.

        `by_presence`: where presence is wanted, stored intervals of any kind will do.
        """
        asked: Asked = []
        for name, kind, low, high in wanted.sides:
            numbers = self._dimensions.of(name)
            if kind is None and by_presence:
                _ask_all(asked, numbers)
            elif kind in numbers:
                asked += (numbers[kind], low, high, _OPTIONAL)
            if kind is not None and None in numbers:
                asked += (numbers[None], *PRESENCE, _OPTIONAL)
        return asked

    def _ask_value(self, asked: Asked, numbers: Mapping[Kind | None, int], value: object) -> bool:
        """Ask what a value of an attribute satisfies; returns whether anything can be stored."""
        kind = _PLAIN.get(type(value))
        if kind is None or value != value or (kind is Kind.STRING and not _is_ascii(value)):
            value = exact_value(value)
            if value is None:
                return False
            kind = exact_kind(value)
        if kind in numbers:
            low, high = self._dimensions.cell(kind, value)
            asked += (numbers[kind], low, high, _OPTIONAL)
        if None in numbers:
            asked += (numbers[None], *PRESENCE, _OPTIONAL)
        return kind in numbers or None in numbers


def _is_ascii(value: object) -> bool:
    return isinstance(value, str) and value.isascii()


def _ask_all(asked: Asked, numbers: Mapping[Kind | None, int]) -> None:
    for number in numbers.values():
        asked += (number, LEAST, MOST, _OPTIONAL)
