"""Dimensions: values as 64-bit keys in the same order, and intervals over them.

Values of different kinds never compare, so an attribute has a dimension for each kind that filters
ask of it, and one more for filters that ask for its presence only. Dimensions are counted, and
numbers of those that no filter uses are used again.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping
from datetime import timedelta
from fractions import Fraction
from typing import Final, NamedTuple

from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.domains import DOMAINS, Cut, Dates, Exact, Strings
from gossamer.protocol.content.filters.filter import Filter
from gossamer.protocol.content.matching.search import ROW_WORDS
from gossamer.protocol.content.values import Kind

# Cuts as 64-bit keys in the same order, so that compiled code compares integers.
#
# Numbers need no table: a float's bits, read as an integer, are its place among all floats. A key
# is twice that place, plus one above the float. Between two floats lie infinitely many reals that
# are none (1/3, 2**60 + 1, and whatever is beyond 2^±254); they share the key above the lower float
# where an interval begins and the key below the upper one where it ends. So keys never contradict
# the order, but what they say of such inexact ends has to be checked exactly.

LEAST: Final = -(1 << 62)
MOST: Final = 1 << 62
"""Below and above all keys."""

_AS_FLOAT: Final = struct.Struct("<d")
_AS_WORD: Final = struct.Struct("<q")
_MAGNITUDE: Final = (1 << 63) - 1
_FIRST: Final = 769 << 52
"""Bits of 2^-254, the least magnitude that has a key of its own."""
_LAST: Final = (1279 << 52) - 1
_WHOLE: Final = 1 << 53
"""Whole numbers below are floats exactly."""
_RANKS: Final = _LAST - _FIRST + 1
_MICROSECOND: Final = timedelta(microseconds=1)


def number_rank(value: Exact) -> tuple[int, bool]:
    """The place of a number among the floats that have keys, and whether it is one of them.

    What is none takes the place of the next such float below it.
    """
    nearest = value if isinstance(value, float) else _float_below(value)
    magnitude = _AS_WORD.unpack(_AS_FLOAT.pack(nearest))[0] & _MAGNITUDE
    if _FIRST <= magnitude <= _LAST:
        rank = magnitude - _FIRST + 1
        return (rank if nearest > 0 else -rank), nearest == value
    if nearest == 0:
        return 0, value == 0
    if math.isinf(nearest):
        return (_RANKS + 1 if nearest > 0 else -_RANKS - 1), nearest == value
    if magnitude < _FIRST:
        return (0 if nearest > 0 else -1), False
    return (_RANKS if nearest > 0 else -_RANKS - 1), False


def _float_below(value: int | Fraction) -> float:
    """The greatest float that is not above a number."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0) if value > 0 else -math.inf
    if nearest > value:
        return math.nextafter(nearest, -math.inf)
    return nearest


def plain_rank(value: Exact) -> int | None:
    """As `number_rank`, quickly, of a number that is a float with a key, as most are; else None."""
    if type(value) is int and -_WHOLE < value < _WHOLE:
        value = float(value)
    if type(value) is float:
        magnitude = _AS_WORD.unpack(_AS_FLOAT.pack(value))[0] & _MAGNITUDE
        if _FIRST <= magnitude <= _LAST:
            rank: int = magnitude - _FIRST + 1
            return rank if value > 0 else -rank
    return None


def number_cell(value: Exact) -> int:
    """The key where the interval of a single number begins; it ends at the next key."""
    rank, exact = number_rank(value)
    return 2 * rank + (not exact)


def number_keys(low: Cut, high: Cut) -> tuple[int, int, bool]:
    """The keys of an interval's ends, and whether both are exact."""
    rank = plain_rank(low[0])
    low_key, low_exact = number_low(low) if rank is None else (2 * rank + low[1], True)
    rank = plain_rank(high[0])
    high_key, high_exact = number_high(high) if rank is None else (2 * rank + high[1], True)
    return low_key, high_key, low_exact and high_exact


def number_low(cut: Cut) -> tuple[int, bool]:
    """The key of a cut where an interval begins, and whether it is exact."""
    rank, exact = number_rank(cut[0])
    return 2 * rank + (cut[1] if exact else 1), exact


def number_high(cut: Cut) -> tuple[int, bool]:
    """The key of a cut where an interval ends, and whether it is exact."""
    rank, exact = number_rank(cut[0])
    return 2 * rank + (cut[1] if exact else 2), exact


def date_key(cut: Cut) -> int:
    """The key of a cut between instants: microseconds since the first, and one more at the top."""
    return int((cut[0] - Dates.bottom[0]) // _MICROSECOND) + int(cut[1])


def boolean_key(cut: Cut) -> int:
    """The key of a cut between booleans."""
    return int(cut[0])


# Cuts between strings, in order, with labels that grow as they do.
#
# Order maintenance as in Dietz and Sleator (STOC 1987), in its simplest form: a new cut takes an
# even label between its neighbours', and only where there is none left do all get new ones. A cut
# next to the newest takes a label close to it, so that names which arrive in order do not halve
# what is left.

Relabelled = Callable[[list[int], list[int]], None]
"""Told the old labels in order and the new ones."""

_CHUNK: Final = 512
_STRIDE: Final = 1 << 40
_SHARE: Final = 64


class StringOrder:
    """Every cut that some filter uses, counted; a cut that none uses lies between two labels."""

    def __init__(self, relabelled: Relabelled) -> None:
        self._relabelled = relabelled
        self._labels: dict[Cut, int] = {}
        self._uses: dict[Cut, int] = {}
        self._chunks: list[list[Cut]] = [[]]
        self._newest: Cut | None = None

    def __len__(self) -> int:
        return len(self._labels)

    def key(self, cut: Cut) -> int:
        """The label of a cut; of one that is not in use, an odd key between its neighbours'."""
        label = self._labels.get(cut)
        if label is not None:
            return label
        if cut == Strings.bottom:
            return LEAST
        if cut == Strings.top:
            return MOST
        return self._neighbours(cut)[0] + 1

    def use(self, cut: Cut) -> None:
        """Count a use of a cut; all keys may change, of which `relabelled` is told."""
        if cut in self._uses:
            self._uses[cut] += 1
        elif cut not in (Strings.bottom, Strings.top):
            self._uses[cut] = 1
            self._labels[cut] = self._free_label(cut)
            self._put(cut)
            self._newest = cut

    def release(self, cut: Cut) -> None:
        """Count one use of a cut less."""
        if cut in (Strings.bottom, Strings.top):
            return
        self._uses[cut] -= 1
        if not self._uses[cut]:
            del self._uses[cut], self._labels[cut]
            self._drop(cut)

    def _free_label(self, cut: Cut) -> int:
        below, above = self._neighbours(cut)
        if above - below < 4:
            self._spread()
            below, above = self._neighbours(cut)
        newest = None if self._newest is None else self._labels.get(self._newest)
        step = max(min(_STRIDE, (above - below) // _SHARE), 2) & ~1
        if newest is not None and newest == below:
            return below + step
        if newest is not None and newest == above:
            return above - step
        return (below + above) // 2 & ~1

    def _spread(self) -> None:
        cuts = [cut for chunk in self._chunks for cut in chunk]
        old = [self._labels[cut] for cut in cuts]
        step = (MOST - LEAST) // (len(cuts) + 1) & ~1
        new = [LEAST + step * (place + 1) for place in range(len(cuts))]
        self._labels = dict(zip(cuts, new, strict=True))
        self._relabelled(old, new)

    def _neighbours(self, cut: Cut) -> tuple[int, int]:
        """The labels around a cut that has none."""
        place = self._chunk_of(cut)
        chunk = self._chunks[place]
        within = bisect_left(chunk, cut)
        if within:
            below = self._labels[chunk[within - 1]]
        else:
            below = LEAST if place == 0 else self._labels[self._chunks[place - 1][-1]]
        if within < len(chunk):
            above = self._labels[chunk[within]]
        else:
            last = place + 1 >= len(self._chunks)
            above = MOST if last else self._labels[self._chunks[place + 1][0]]
        return below, above

    def _chunk_of(self, cut: Cut) -> int:
        return max(bisect_right(self._chunks, cut, key=_first) - 1, 0)

    def _put(self, cut: Cut) -> None:
        place = self._chunk_of(cut)
        chunk = self._chunks[place]
        insort(chunk, cut)
        if len(chunk) > _CHUNK:
            half = len(chunk) // 2
            self._chunks.insert(place + 1, chunk[half:])
            del chunk[half:]

    def _drop(self, cut: Cut) -> None:
        place = self._chunk_of(cut)
        chunk = self._chunks[place]
        del chunk[bisect_left(chunk, cut)]
        if not chunk and len(self._chunks) > 1:
            del self._chunks[place]


def _first(chunk: list[Cut]) -> Cut:
    return chunk[0] if chunk else ()


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
