"""Names above and before the numbers of a table, as pandas, R and spreadsheets write them.

Names are text, or numbers in order from 0 or 1 on where the place says that they are names. What
may be either is refused: numbers never become names in silence, nor names numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import attrs

from gossamer.sim.engine.latency_files.text_files import NUMBER, UNMEASURED, Line, Table
from gossamer.sim.errors import ScenarioError

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
