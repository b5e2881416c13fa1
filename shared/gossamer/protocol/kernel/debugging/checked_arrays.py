"""Arrays that refuse a wrong index and a write to another peer's row.

Compiled rules do neither: past its end an array is foreign memory, and an index of -1, which often
means "nobody", is the last. What rules write is told by where it lies in memory, so slices, tables
of tables and columns that share a block (`struct.Rows`) need no rules of their own.

Where rows run side by side, what rules write must not be read of other rows either: that is refused
once both were seen of an array, whichever came first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

# A rule: its name, file and line.
Place = tuple[str, str, int]


class RuleFault(IndexError):
    """What a rule does that rules may not; `checked_run` adds which rule does it, and when.

    An IndexError, as that is how arrays end loops over them.

    Attributes:
        place: name, file and line of the rule, None where that is who was called last.
    """

    def __init__(self, fault: str, place: Place | None = None) -> None:
        self.place = place
        super().__init__(fault)


class UnknownPeer(RuleFault):
    """A record to or from a peer that there is not."""


class OwnRow:
    """The row that the rule in hand may write.

    Args:
        side_by_side: whether other rows run at the same time.

    Attributes:
        row: its number, -1 while no row may be written.
    """

    def __init__(self, side_by_side: bool = False) -> None:
        self.row = -1
        self.side_by_side = side_by_side


class Rows:
    """Where in memory the rows of an array begin.

    Args:
        array: one row a peer.
        own: which of them may be written.
    """

    def __init__(self, array: np.ndarray[Any, Any], own: OwnRow) -> None:
        self.own = own
        self._first = _address(array)
        self._row_bytes = int(array.strides[0])
        self._is_written = False
        self._read: tuple[str, Place] | None = None

    def of(self, part: np.ndarray[Any, Any]) -> tuple[int, int]:
        """The first and last row that a part of the array lies in."""
        first = last = _address(part) - self._first
        for extent, stride in zip(part.shape, part.strides, strict=True):
            reach = (extent - 1) * stride
            first, last = first + min(reach, 0), last + max(reach, 0)
        return first // self._row_bytes, last // self._row_bytes

    def stranger(self, part: np.ndarray[Any, Any]) -> int | None:
        """A row other than the own one that a part of the array lies in, None if there is none."""
        if part.size == 0 or self._row_bytes == 0:
            return None
        return next((row for row in self.of(part) if row != self.own.row), None)

    def note_write(self) -> None:
        """A rule writes its row; refused where one has read another row side by side."""
        self._is_written = True
        self._refuse_race()

    def note_read(self, part: np.ndarray[Any, Any], name: str) -> None:
        """A rule reads a part of the array; refused where that is of other rows, and written."""
        if self._read is not None or self.own.row < 0 or part.size == 0 or self._row_bytes == 0:
            return
        first, last = self.of(part)
        if not first <= self.own.row <= last:
            fault = f"as row {self.own.row} it reads row {first} of {name}, which rules write"
            self._read = fault, _caller()
            self._refuse_race()

    def _refuse_race(self) -> None:
        if self._is_written and self._read is not None:
            fault, place = self._read
            expected = "its own row only, as other rows run at the same time"
            raise RuleFault(f"{fault}, expected {expected}", place)


def _caller() -> Place:
    """The innermost function outside of this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


class CheckedArray(np.ndarray[Any, Any]):
    """A view of an array that checks how it is indexed and, where it has rows, who writes them.

    What reaches other rows is read-only for NumPy; what may be written of it is written through
    the array behind it.
    """

    _name = ""
    _behind: np.ndarray[Any, Any] | None = None
    _rows: Rows | None = None

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        behind = self._plain()
        found = behind[index]
        if self._rows is not None and self._rows.own.side_by_side:
            for part in _touched(index, behind):
                self._rows.note_read(part, self._name)
        if not isinstance(found, np.ndarray) or found.dtype.hasobject:
            return found
        if found.base is None or not np.may_share_memory(found, behind):
            return found
        return _part(found, self._name, self._rows)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        behind = self._plain()
        self._check_value(value, behind)
        if self._rows is not None:
            self._check_rows(index, behind)
        behind[index] = value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        targets = options.get("out", ())
        for target in targets:
            if isinstance(target, CheckedArray) and target._rows is not None:
                target._check_rows(..., target._plain())
        if targets:
            options["out"] = tuple(_plain_of(target) for target in targets)
        for given in inputs:
            if isinstance(given, CheckedArray):
                given._note_read_whole()
        result = getattr(ufunc, method)(*map(_plain_of, inputs), **options)
        return targets[0] if targets else result

    def _note_read_whole(self) -> None:
        if self._rows is not None and self._rows.own.side_by_side:
            self._rows.note_read(self._plain(), self._name)

    def _plain(self) -> np.ndarray[Any, Any]:
        return self.view(np.ndarray) if self._behind is None else self._behind

    def _check(self, index: Any) -> None:
        """Refuse numbers that count from the end or go past it."""
        parts = index if isinstance(index, tuple) else (index,)
        if any(part is None or part is Ellipsis for part in parts):
            return
        for axis, part in enumerate(parts[: self.ndim]):
            if isinstance(part, int | np.integer) and not 0 <= part < self.shape[axis]:
                raise RuleFault(
                    f"index {part} of axis {axis} of {self._name}, "
                    f"expected 0 to {self.shape[axis] - 1}"
                )

    def _check_value(self, value: Any, behind: np.ndarray[Any, Any]) -> None:
        """Refuse None, and fractions where there are whole numbers, which would be cut off."""
        if value is None:
            raise RuleFault(f"it writes None to {self._name}, expected a number")
        several = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        if behind.dtype.kind in "iub" and (several or isinstance(value, float | np.floating)):
            shown = "floats" if several else f"the float {value!s}"
            raise RuleFault(
                f"it writes {shown} to {self._name}, of {behind.dtype}, where fractions are cut "
                "off, expected a whole number, such as int(...) makes it"
            )

    def _check_rows(self, index: Any, behind: np.ndarray[Any, Any]) -> None:
        assert self._rows is not None
        for part in _touched(index, behind):
            stranger = self._rows.stranger(part)
            if stranger is not None:
                own = self._rows.own.row
                raise RuleFault(
                    f"it writes row {stranger} of {self._name}, expected "
                    + (f"its own row {own} only" if own >= 0 else "no write at all here")
                )
        self._rows.note_write()


def _touched(index: Any, behind: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """The parts of an array, as views of it, that an index is about."""
    parts = index if isinstance(index, tuple) else (index,)
    if all(isinstance(part, int | np.integer | slice) or part is ... for part in parts):
        yield behind[
            tuple(
                slice(part, part + 1) if isinstance(part, int | np.integer) else part
                for part in parts
            )
        ]
        return
    # Arrays of indices: every element on its own.
    places = np.arange(behind.size).reshape(behind.shape)[index]
    for place in np.ravel(places):
        yield behind[tuple(slice(i, i + 1) for i in np.unravel_index(place, behind.shape))]


def _plain_of(value: Any) -> Any:
    return value._plain() if isinstance(value, CheckedArray) else value


def _part(found: np.ndarray[Any, Any], name: str, rows: Rows | None) -> CheckedArray:
    """A view of ``found``; in what lies in the own row altogether rows only matter side by side."""
    part = found.view(CheckedArray)
    part._name = name
    part._behind = found
    if rows is not None and rows.stranger(found) is not None:
        part._rows = rows
        part.flags.writeable = False
    elif rows is not None and rows.own.side_by_side:
        part._rows = rows
    return part


def checked_array(array: np.ndarray[Any, Any], name: str, own: OwnRow | None) -> CheckedArray:
    """A checked view of ``array``.

    Args:
        array: any array; it is not changed by this.
        name: what errors call it.
        own: whose row ``array``, one row a peer, may be written; None where it has no rows.
    """
    part = array.view(np.ndarray).view(CheckedArray)
    part._name = name
    part._behind = array.view(np.ndarray)
    if own is not None and array.ndim > 0:
        part._rows = Rows(array, own)
        part.flags.writeable = False
    return part


class CheckedWords(CheckedArray):
    """Words of which a rule may touch those from ``low`` up to ``high`` only."""

    low = 0
    high = 0
    _called = "the record"

    def __iter__(self) -> Any:
        # By index it would begin outside of the words there are, and seem to have none.
        raise RuleFault(f"it goes through all of {self._name}, expected {self._called} only")

    def _check(self, index: Any) -> None:
        if isinstance(index, slice):
            first, last = index.start, index.stop
            if first is not None and first == last:
                return
            last = None if last is None else last - 1
        else:
            first = last = index
        for place in (first, last):
            if place is None or not self.low <= place < self.high:
                raise RuleFault(
                    f"word {place} of {self._name}, expected {self.low} to {self.high - 1}, "
                    f"which are {self._called}"
                )


def checked_words(
    words: np.ndarray[Any, Any], name: str, low: int, high: int, called: str
) -> CheckedWords:
    """A view of ``words`` of which ``words[low:high]`` may be touched, ``called`` so in errors."""
    checked = words.view(np.ndarray).view(CheckedWords)
    checked._name = name
    checked._behind = words.view(np.ndarray)
    checked.low, checked.high, checked._called = low, high, called
    return checked
