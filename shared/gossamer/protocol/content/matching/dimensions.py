"""Dimensions: what compiled code knows of attributes, and intervals over them as keys.

Values of different kinds never compare, so an attribute has a dimension for each kind that filters
ask of it, and one more for filters that ask for its presence only. Dimensions are counted, and
numbers of those that no filter uses are used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.domains import DOMAINS, Exact
from gossamer.protocol.content.filters.filter import Filter
from gossamer.protocol.content.matching.keys import (
    boolean_key,
    date_key,
    number_cell,
    number_keys,
    plain_rank,
)
from gossamer.protocol.content.matching.string_order import Relabelled, StringOrder
from gossamer.protocol.content.matching.table import ROW_WORDS
from gossamer.protocol.content.values import Kind

Rows = list[int]
"""A dimension and the keys of an interval, for one constraint after the other."""


class Box(NamedTuple):
    """A filter by kinds and keys.

    Attributes:
        sides: for each constraint the dimensions of its attribute by kind, its kind, and the keys
            of its interval.
        exact: whether that is all there is to it.
    """

    sides: list[tuple[Mapping[Kind | None, int], Kind | None, int, int]]
    exact: bool


_NUMBER: Final = Kind.NUMBER
_STRING: Final = Kind.STRING
_NO_NUMBERS: Final[Mapping[Kind | None, int]] = {}
PRESENCE: Final = (0, 1)
"""The interval of every filter and value in the dimension of presence."""


class Dimensions:
    """Numbers and counts of dimensions, and the order of strings."""

    def __init__(self, relabelled: Relabelled) -> None:
        self._numbers: dict[str, dict[Kind | None, int]] = {}
        # Where each number stands in those.
        self._places: dict[int, tuple[Mapping[Kind | None, int], Kind | None]] = {}
        self._uses: dict[int, int] = {}
        self._free: list[int] = []
        self._strings = StringOrder(relabelled)

    def __len__(self) -> int:
        return len(self._uses) + len(self._free)

    def of(self, attribute: str) -> Mapping[Kind | None, int]:
        """The dimensions of an attribute by kind; None is that of presence."""
        return self._numbers.get(attribute, _NO_NUMBERS)

    def of_kind(self, wanted: Kind) -> list[int]:
        """The dimensions of a kind."""
        return [number for number, (_, kind) in self._places.items() if kind is wanted]

    def enter(self, wanted: Filter) -> Box:
        """Count the dimensions and strings of a filter, and return it by kinds and keys."""
        for name, constraint in wanted.constraints:
            self._use_dimension(name, constraint.kind)
            if constraint.kind is _STRING:
                self._strings.use(constraint.low)
                self._strings.use(constraint.high)
        return self.box(wanted)

    def box(self, wanted: Filter) -> Box:
        """A filter by kinds and keys."""
        sides = []
        exact = True
        for name, constraint in wanted.constraints:
            low, high, ends_exact = self._interval(constraint)
            exact = exact and ends_exact and constraint.is_interval
            sides.append((self.of(name), constraint.kind, low, high))
        return Box(sides, exact)

    def box_of(self, rows: Rows, exact: bool) -> Box:
        """The box of a filter that was entered, by its rows."""
        places = self._places
        sides = [
            (*places[rows[at]], rows[at + 1], rows[at + 2]) for at in range(0, len(rows), ROW_WORDS)
        ]
        return Box(sides, exact)

    def release(self, wanted: Filter) -> None:
        """Count the dimensions and strings of a filter less."""
        for name, constraint in wanted.constraints:
            if constraint.kind is _STRING:
                self._strings.release(constraint.low)
                self._strings.release(constraint.high)
            self._release_dimension(name, constraint.kind)

    def _interval(self, constraint: Constraint) -> tuple[int, int, bool]:
        kind, low, high = constraint.kind, constraint.low, constraint.high
        if kind is _NUMBER:
            return number_keys(low, high)
        if kind is _STRING:
            return self._strings.key(low), self._strings.key(high), True
        if kind is None:
            return (*PRESENCE, True)
        key = date_key if kind is Kind.DATE else boolean_key
        return key(low), key(high), True

    def cell(self, kind: Kind, value: Exact) -> tuple[int, int]:
        """The keys around a value of a kind."""
        if kind is _NUMBER:
            rank = plain_rank(value)
            low = number_cell(value) if rank is None else 2 * rank
            return low, low + 1
        before = DOMAINS[kind].before(value)
        if kind is _STRING:
            _, stem, nuls = before
            return self._strings.key(before), self._strings.key((0, stem, nuls + 1))
        low = (date_key if kind is Kind.DATE else boolean_key)(before)
        return low, low + 1

    def _use_dimension(self, attribute: str, kind: Kind | None) -> None:
        numbers = self._numbers.get(attribute)
        if numbers is None:
            numbers = self._numbers[attribute] = {}
        number = numbers.get(kind)
        if number is None:
            number = self._free.pop() if self._free else len(self)
            numbers[kind] = number
            self._uses[number] = 0
            self._places[number] = (numbers, kind)
        self._uses[number] += 1

    def _release_dimension(self, attribute: str, kind: Kind | None) -> None:
        numbers = self._numbers[attribute]
        number = numbers[kind]
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._uses[number], self._places[number], numbers[kind]
            self._free.append(number)
            if not numbers:
                del self._numbers[attribute]


def rows_of(box: Box) -> Rows:
    """The rows of a filter that was entered.

    Strings come last: the tree divides by what is equal to one, so that is mostly known.
    """
    rows: Rows = []
    strings: Rows = []
    for numbers, kind, low, high in box.sides:
        if kind is _STRING:
            strings += (numbers[kind], low, high)
        else:
            rows += (numbers[kind], low, high)
    return rows + strings
