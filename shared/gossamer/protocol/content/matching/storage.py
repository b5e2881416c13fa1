"""The host's side of a table: room for filters, and the calls of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from gossamer.protocol.content.filters.domains import exact_kind, exact_value
from gossamer.protocol.content.matching.dimensions import (
    LEAST,
    MOST,
    PRESENCE,
    Box,
    Dimensions,
    Rows,
)
from gossamer.protocol.content.matching.search import (
    CHILD,
    DOUBT_STORED,
    DOUBTFUL,
    ENCLOSING,
    FOUND_BITS,
    FREE_NODES,
    HELD,
    HIGH,
    HOLDERS,
    LEFT,
    LENGTH,
    LOW,
    MARKS,
    MET,
    NONE,
    OVERLAPPING,
    PARENT,
    RECORD,
    RECORD_HEADER,
    RIGHT,
    ROOT,
    ROW_WORDS,
    SEVERAL,
    SPLIT,
    SPLIT_DIMENSION,
    WITHIN,
    Table,
    Words,
    grown,
    make_table,
    search,
)
from gossamer.protocol.content.matching.tree import insert, remove, set_marks
from gossamer.protocol.content.values import Kind
from gossamer.protocol.kernel.rules import Rule

_FIRST_SIZE = 64
_FIRST_WORDS = 1024
_NODES_KEPT_FREE = 16


class Storage:
    """Slots and records of a table that grows; whatever is freed is used again.

    Attributes:
        table: the present arrays; a larger table takes its place when there is no room.
    """

    def __init__(self, compiled: bool) -> None:
        self.table: Table = make_table(_FIRST_SIZE, _FIRST_WORDS, _FIRST_SIZE, _FIRST_SIZE)
        self._search = _form(search, compiled)
        self._insert = _form(insert, compiled)
        self._remove = _form(remove, compiled)
        self._set_marks = _form(set_marks, compiled)
        self._free_slots: list[int] = []
        self._slots = 0
        self._free_records: dict[int, list[int]] = {}
        self._words = 0

    def search(self, words: list[int]) -> tuple[list[int], list[int]]:
        """The slots that certainly answer a question, and those that may."""
        table = self.table
        table.query[: len(words)] = words
        answer = int(self._search(table))
        if not answer:
            return [], []
        doubtful, found = answer >> FOUND_BITS, answer & ((1 << FOUND_BITS) - 1)
        certain = table.found[:found].tolist()
        if not doubtful:
            return certain, []
        return certain, table.found[len(table.found) - doubtful :].tolist()

    def met(self) -> tuple[int, int]:
        """Marks of what the last search did not list, and how many hold it: 0, 1, or more."""
        counters = self.table.counters
        return int(counters[MET]), int(counters[HOLDERS])

    def rows(self, slot: int) -> list[int]:
        """Dimension, low and high of each row of a slot, one after the other."""
        record = int(self._record(slot))
        begin = record + RECORD_HEADER
        length = int(self.table.records[record + LENGTH])
        found: list[int] = self.table.records[begin : begin + ROW_WORDS * length].tolist()
        return found

    def is_doubtful(self, slot: int) -> bool:
        """Whether the rows of a slot are not all there is to its filter."""
        return bool(self.table.records[self._record(slot) + DOUBTFUL])

    def take_slot(self, rows: Rows, doubtful: bool, marks: int) -> int:
        """A slot with its record written, not yet in the tree; a root, as it has no parent."""
        slot = self._free_slots.pop() if self._free_slots else self._slots
        length = len(rows) // ROW_WORDS
        free = self._free_records.get(length)
        record = free.pop() if free else self._words
        end = record + RECORD_HEADER + len(rows)
        self._slots, self._words = max(self._slots, slot + 1), max(self._words, end)
        self._make_room()
        table = self.table
        header = [slot, NONE, length, int(doubtful), NONE, HELD | ROOT | marks, 0]
        table.records[record:end] = header + rows
        table.slots[slot] = (record, NONE, NONE, NONE)
        return slot

    def give_back(self, slot: int) -> None:
        """Free a slot that is not in the tree, and its record."""
        record = self.table.slots[slot, RECORD]
        length = int(self.table.records[record + LENGTH])
        self._free_records.setdefault(length, []).append(int(record))
        self._free_slots.append(slot)
        self.table.slots[slot, RECORD] = NONE

    def reserve_dimensions(self, dimensions: int) -> None:
        """Make room for so many dimensions."""
        if dimensions > len(self.table.wanted):
            self._grow(dimensions=2 * dimensions)

    def insert(self, slot: int) -> None:
        """Put a slot into the tree."""
        if self.table.counters[FREE_NODES] < _NODES_KEPT_FREE:
            self._grow(nodes=2 * len(self.table.nodes))
        self._insert(self.table, self._record(slot))

    def remove(self, slot: int) -> None:
        """Take a slot out of the tree."""
        self._remove(self.table, self._record(slot))

    def hang(self, slot: int, parent: int) -> None:
        """Hang a slot that is not in the tree below another that covers it."""
        slots = self.table.slots
        sibling = slots[parent, CHILD]
        slots[slot, LEFT], slots[slot, RIGHT] = NONE, sibling
        if sibling != NONE:
            slots[sibling, LEFT] = slot
        slots[parent, CHILD] = slot
        record = self._record(slot)
        self.table.records[record + PARENT] = parent
        self.table.records[record + MARKS] &= ~ROOT

    def hang_root(self, slot: int, parent: int) -> None:
        """Hang a root that is in the tree below another that covers it."""
        self._change(slot, ROOT, 0)
        self.hang(slot, parent)

    def unhang(self, slot: int) -> None:
        """Make a slot that is not in the tree hang below none."""
        slots = self.table.slots
        parent, (left, right) = self.parent(slot), slots[slot, LEFT:]
        if left != NONE:
            slots[left, RIGHT] = right
        elif parent != NONE:
            slots[parent, CHILD] = right
        if right != NONE:
            slots[right, LEFT] = left
        self.table.records[self._record(slot) + PARENT] = NONE

    def make_root(self, slot: int) -> None:
        """Make a slot that is in the tree a root."""
        self.unhang(slot)
        self._change(slot, 0, ROOT)

    def mark(self, slot: int, marks: int, several: int, among: int) -> None:
        """Give a slot that is in the tree these marks, and no others among some."""
        records, record = self.table.records, self._record(slot)
        marks |= int(records[record + MARKS]) & ~among
        several |= int(records[record + SEVERAL]) & ~among
        self._set_marks(self.table, record, marks, several)

    def children(self, slot: int) -> list[int]:
        """The slots that hang below a slot."""
        found = []
        child = int(self.table.slots[slot, CHILD])
        while child != NONE:
            found.append(child)
            child = int(self.table.slots[child, RIGHT])
        return found

    def parent(self, slot: int) -> int:
        """The slot that a slot hangs below, or NONE."""
        return int(self.table.records[self._record(slot) + PARENT])

    def roots(self) -> list[int]:
        """The slots that hang below none, in ascending order."""
        records = self.table.slots[: self._slots, RECORD]
        held = np.flatnonzero(records != NONE)
        found: list[int] = held[self.table.records[records[held] + PARENT] == NONE].tolist()
        return found

    def move_keys(self, dimensions: list[int], old: list[int], new: list[int]) -> None:
        """Replace keys of some dimensions, in rows and in nodes, in the same order."""
        table = self.table
        at = table.slots[: self._slots, RECORD]
        at = at[at != NONE]
        for row in range(int(table.records[at + LENGTH].max(initial=0))):
            at = at[table.records[at + LENGTH] > row]
            begins = at + RECORD_HEADER + ROW_WORDS * row
            begins = begins[np.isin(table.records[begins], dimensions)]
            for word in (LOW, HIGH):
                table.records[begins + word] = _moved(table.records[begins + word], old, new)
        divides = np.isin(table.nodes[:, SPLIT_DIMENSION], dimensions)
        table.nodes[divides, SPLIT] = _moved(table.nodes[divides, SPLIT], old, new)

    def _change(self, slot: int, lost: int, gained: int) -> None:
        records, record = self.table.records, self._record(slot)
        marks = int(records[record + MARKS]) & ~lost | gained
        self._set_marks(self.table, record, marks, int(records[record + SEVERAL]))

    def _record(self, slot: int) -> Any:
        return self.table.slots[slot, RECORD]

    def _make_room(self) -> None:
        slots, words = len(self.table.slots), len(self.table.records)
        if self._slots > slots or self._words > words:
            self._grow(
                slots=2 * slots if self._slots > slots else slots,
                words=2 * max(words, self._words) if self._words > words else words,
            )

    def _grow(self, slots: int = 0, words: int = 0, nodes: int = 0, dimensions: int = 0) -> None:
        table = self.table
        self.table = grown(
            table,
            max(slots, len(table.slots)),
            max(words, len(table.records)),
            max(nodes, len(table.nodes)),
            max(dimensions, len(table.wanted)),
        )


def _form(rule: Rule, compiled: bool) -> Callable[..., Any]:
    return rule.compiled if compiled else rule.interpreted


def _moved(keys: Words, old: list[int], new: list[int]) -> Words:
    """Keys that were labels by what these are now, others behind the label that they lay behind."""
    if not old:
        return keys
    labels, moved = np.array(old, np.int64), np.array(new, np.int64)
    place = np.searchsorted(labels, keys, side="right") - 1
    below = np.maximum(place, 0)
    behind = np.where(place < 0, LEAST + 1, moved[below] + (labels[below] != keys))
    return np.where((keys == LEAST) | (keys == MOST), keys, behind)


# What is asked of an index, as the words that the search rule reads.
#
# Subscriptions relate by what they ask for: an attribute that the covering one does not constrain
# is no matter, one that it constrains alone is fatal. An advertisement allows its own attributes
# only, so there it is the other way round. Every question says so by two settings: whether all that
# is stored has to be wanted, and how many of the wanted attributes have to be stored.
#
# A question is None where no stored filter can be an answer.

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
