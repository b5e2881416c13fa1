"""Tables of numbers in text files: what matrices, coordinates and attributes have in common.

A file has one separator, which holds for all its lines: tabs if it has any, else semicolons, else
commas, else blanks, of which several count as one. Cells may be in double quotes. Between tabs and
semicolons numbers may have decimal commas, where no number of the file has a point and commas
cannot be those of thousands. A "#" outside of quotes begins a comment; blank lines are passed over.
The last line has an end as all others do: a file that was cut off lacks it.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import attrs

from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.sim.errors import ScenarioError

NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# As long as int() takes them.
WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
NATURAL: Final = re.compile(r"[0-9]{1,18}")
_COMMA_NUMBER: Final = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_THOUSANDS: Final = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_COMMA: Final = "a decimal comma"
_COMMENT: Final = re.compile(r'^((?:[^"#]|"[^"]*")*)#.*')
# How files write that something was not measured.
UNMEASURED: Final = frozenset({"", "-", "-1", "-1.0", "x", "na", "nan", "none", "null", "inf"})


class TextLine(NamedTuple):
    """A line that is not blank: its number in the file, from 1 on, and its text."""

    number: int
    text: str


class Line(NamedTuple):
    """A line of a table: its number in the file, from 1 on, and its cells without blanks around."""

    number: int
    cells: list[str]


@attrs.frozen(eq=False)
class Table:
    """Lines of a file, cut into cells.

    Attributes:
        path: of the file.
        separator: between cells: a tab, semicolon, comma or blank.
        lines: with something in them.
        left: columns of the file that are not in the lines any more, all at their beginning.
    """

    path: Path
    separator: str
    lines: Sequence[Line]
    left: int = 0

    def place(self, line: Line, column: int | None = None) -> str:
        """A line, or one of its cells from 1 on, as errors name it."""
        return place_of(self.path, line.number, None if column is None else column + self.left)

    def number(self, line: Line, column: int, what: str, most: float = math.inf) -> float:
        """The cell in a column from 1 on as a finite number, with ``most`` given from 0 to that.

        Raises:
            ScenarioError: it is none.
        """
        word = line.cells[column - 1]
        value = self._value(word)
        if math.isfinite(value) and (most == math.inf or 0 <= value <= most):
            return value
        expected = "a finite number" if most == math.inf else f"a number from 0 to {most:g}"
        if "," in word:
            expected += f" with {self._mark}"
        raise ScenarioError(self.place(line, column), what, word, expected)

    def measured(self, line: Line, column: int, what: str, most: float) -> float:
        """As `number`, NaN where the cell says that nothing was measured."""
        if line.cells[column - 1].lower() in UNMEASURED:
            return math.nan
        return self.number(line, column, what, most)

    def check_columns(self, columns: int) -> None:
        """Raise `ScenarioError` about the first line that has another number of columns."""
        for line in self.lines:
            if len(line.cells) != columns:
                found = len(line.cells)
                raise ScenarioError(self.place(line), "number of columns", found, f"{columns}")

    def _value(self, word: str) -> float:
        if NUMBER.fullmatch(word):
            return float(word)
        if _COMMA_NUMBER.fullmatch(word) and self._mark == _COMMA:
            return float(word.replace(",", "."))
        return math.nan

    @cached_property
    def _mark(self) -> str:
        """The decimal mark that numbers with a comma have to have, in words."""
        if self.separator not in "\t;":
            return "a decimal point"
        words = [word for line in self.lines for word in line.cells]
        if any("." in word and NUMBER.fullmatch(word) for word in words):
            return "a decimal point, as others of the file"
        commas = [word for word in words if _COMMA_NUMBER.fullmatch(word)]
        if all(_THOUSANDS.fullmatch(word) for word in commas):
            return "a decimal point, or without one, as the comma may be that of thousands"
        return _COMMA


def place_of(path: Path, line: int, column: int | None = None) -> str:
    """A line of a file, or a column of it, as errors name it."""
    return f"{path}, line {line}" + ("" if column is None else f", column {column}")


def read_text(path: Path, what: str) -> str:
    """The text of a file that holds ``what``; raises `ScenarioError` where there is none."""
    try:
        return decoded(path.read_bytes())
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ScenarioError(str(path), what, None, "a readable file", reason) from None
    except EncodingError as error:
        raise ScenarioError(str(path), what, None, "text in UTF-8", error.reason) from None


def text_lines(path: Path, text: str) -> list[TextLine]:
    """The lines of a text that are not blank.

    Raises:
        ScenarioError: the last one has no end, so that something may be missing.
    """
    texts = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if texts[-1].strip():
        expected = "one with a line end, which a file that was cut off lacks"
        raise ScenarioError(place_of(path, len(texts)), "the last line", texts[-1], expected)
    return [TextLine(i, line) for i, line in enumerate(texts, start=1) if line.strip()]


def without_comments(lines: Iterable[TextLine]) -> list[TextLine]:
    """Lines without what follows a "#", and without those that are nothing else."""
    bare = (
        TextLine(line.number, _COMMENT.sub(r"\1", line.text)) if "#" in line.text else line
        for line in lines
    )
    return [line for line in bare if line.text.strip()]


def read_table(path: Path, what: str) -> Table:
    """The table in a file; raises `ScenarioError` where there is none."""
    return table_of(path, what, without_comments(text_lines(path, read_text(path, what))))


def table_of(path: Path, what: str, lines: Sequence[TextLine]) -> Table:
    """The table that lines without comments are.

    Raises:
        ScenarioError: there is no line, or one has quotes that do not fit.
    """
    if not lines:
        raise ScenarioError(str(path), what, None, "at least one line", "empty")
    separator = next((one for one in "\t;," if any(one in line.text for line in lines)), " ")
    return Table(path, separator, list(_cut(path, separator, lines)))


def _cut(path: Path, separator: str, lines: Sequence[TextLine]) -> Iterator[Line]:
    around = " " if separator == "\t" else None
    texts = (line.text.strip(around) for line in lines)
    rows = csv.reader(texts, delimiter=separator, skipinitialspace=True, strict=True)
    for place, line in enumerate(lines, start=1):
        try:
            cells = next(rows)
        except (csv.Error, StopIteration):
            cells = []
        # A quote without an end goes on in the next line.
        if not cells or rows.line_num != place:
            expected = "cells of which each is in a pair of double quotes, or in none"
            raise ScenarioError(place_of(path, line.number), "the line", line.text, expected)
        yield Line(line.number, cells if separator == " " else [cell.strip() for cell in cells])


# Names above and before the numbers of a table, as pandas, R and spreadsheets write them.
#
# Names are text, or numbers in order from 0 or 1 on where the place says that they are names. What
# may be either is refused: numbers never become names in silence, nor names numbers.

# R writes numbered columns as V1, X2 and the like.
_PREFIX: Final = re.compile(r"[A-Za-z]+(?=[0-9])")


class NamedTable(NamedTuple):
    """A table, and the names that the file has around it.

    Attributes:
        table: the numbers.
        above: names of columns, empty if there are none.
        before: names of rows, empty if there are none.
    """

    table: Table
    above: Sequence[str]
    before: Sequence[str]


def is_number(cell: str) -> bool:
    """Whether a cell is a number, with either decimal mark."""
    return NUMBER.fullmatch(cell.replace(",", ".", 1)) is not None


def is_numbered(cells: Sequence[str]) -> bool:
    """Whether cells are the numbers from 0 or from 1 on, in order."""
    first = 0 if cells[:1] == ["0"] else 1
    return list(cells) == [str(i) for i in range(first, first + len(cells))]


def without_names(table: Table, *, numbers: bool = True) -> NamedTable:
    """A table apart from the names above and before it.

    Args:
        table: all lines of a file.
        numbers: whether names above the columns may be numbers in order where nothing else says so.

    Raises:
        ScenarioError: names are those of nothing, or may be numbers.
    """
    first, rows = table.lines[0], table.lines[1:]
    if not rows or not _are_names(table, first.cells, rows, numbers):
        return NamedTable(table, (), ())
    below = attrs.evolve(table, lines=rows)
    width, before = len(rows[0].cells), [line.cells[0] for line in rows]
    corner = len(first.cells) == width
    below.check_columns(width)
    if len(first.cells) != width - 1 and not corner:
        expected = f"{width}, one a column, or {width - 1}, without one over the names of rows"
        raise ScenarioError(table.place(first), "number of names", len(first.cells), expected)
    if corner and not (first.cells[0] == "" or first.cells[1:] == before):
        return NamedTable(below, first.cells, ())
    odd = [i for i, name in enumerate(before) if name == "" or is_number(name)]
    if odd and not is_numbered(before):
        at = odd[0]
        expected = "the name of a row, as all rows have one: text, or their numbers in order"
        raise ScenarioError(table.place(rows[at], 1), "the cell", before[at], expected)
    shorter = [Line(line.number, line.cells[1:]) for line in rows]
    left = attrs.evolve(below, lines=shorter, left=table.left + 1)
    return NamedTable(left, first.cells[1:] if corner else first.cells, before)


def check_same(named: NamedTable, first: Line) -> None:
    """Check that the names above a matrix, in the line ``first``, are those before it.

    Raises:
        ScenarioError: they are others, or in another order.
    """
    above = [_PREFIX.sub("", name) for name in named.above]
    alike = list(named.above) == list(named.before)
    if not alike and not (is_numbered(named.before) and is_numbered(above)):
        where = named.table.place(first)
        expected = f"those before the rows, {', '.join(named.before[:9])}, in the same order"
        raise ScenarioError(where, "the names of columns", ", ".join(named.above[:9]), expected)


def has_zero_diagonal(lines: Sequence[Line]) -> bool:
    """Whether lines are a square whose diagonal is 0 or was not measured."""
    if any(len(line.cells) != len(lines) for line in lines):
        return False
    diagonal = [line.cells[i].replace(",", ".", 1) for i, line in enumerate(lines)]
    return all(
        cell.lower() in UNMEASURED or (is_number(cell) and float(cell) == 0) for cell in diagonal
    )


def _are_names(table: Table, cells: list[str], rows: Sequence[Line], numbers: bool) -> bool:
    """Whether the cells of the first line are names; raises where that cannot be told."""
    if any(not is_number(cell) and cell.lower() not in UNMEASURED for cell in cells):
        return not any(map(is_number, cells)) or (numbers and is_numbered(cells[1:]))
    width = len(rows[0].cells)
    if is_numbered(cells) and len(cells) > 1:
        square = numbers and len(rows) == width == len(cells)
        return square or len(cells) == width - 1
    before = [line.cells[0] for line in rows]
    if cells[0] != "" or len(cells) < 2:
        return False
    named = is_numbered(cells[1:]) and is_numbered(before)
    empty = all(line.cells[i : i + 1] == [""] for i, line in enumerate(rows, start=1))
    if named == empty and len(cells) == width == len(rows) + 1:
        expected = "a latency, or names in the first line and column that cannot be latencies"
        raise ScenarioError(table.place(table.lines[0], 1), "the cell", None, expected, "empty")
    return named
