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
