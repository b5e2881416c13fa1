"""Matrices of measured latencies, in the forms in which they are published.

- *full*: m lines of m numbers, from the site of the line to that of the column, with names of the
  sites above and before them or without;
- *triangular*: line i has i numbers, from site i to sites 1 to i, or line 1 has m and the last one
  1; of PeerSim's `TriangularMatrixParser`, after a line that says m, line i has those from site
  i + 1 to sites 1 to i;
- *pairs*: two sites and a number a line, with names above them or without. A pair that is given
  one way round only holds both ways. The King data of p2psim (Gummadi, Saroiu, Gribble, IMW 2002)
  has all sites before that, a line ``node i`` each, and pairs as ``1,2 20500``.

A first line that says m of a full or triangular matrix is checked against what follows. -1, nan
and the like, and empty cells, are pairs that were not measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import attrs
import numpy as np

from gossamer.sim.engine.latency import Floats
from gossamer.sim.engine.latency_files.text_files import (
    NATURAL,
    Line,
    Table,
    TextLine,
    check_same,
    has_zero_diagonal,
    is_number,
    place_of,
    read_text,
    table_of,
    text_lines,
    without_comments,
    without_names,
)
from gossamer.sim.errors import ScenarioError

FULL, TRIANGULAR, PAIRS = "full", "triangular", "pairs"
FORMS: Final = (FULL, TRIANGULAR, PAIRS)
WHAT: Final = "the latency matrix"
_PAIR: Final = 3
_NODE: Final = re.compile(r"\s*node\s+([^\s,;]+)\s*", re.IGNORECASE)
_KING: Final = re.compile(r"\s*[^\s,;]+\s*,\s*[^\s,;]+\s+[^\s,;]+\s*")
# Of these signs float() takes nothing but numbers in their strict form.
_PLAIN_ROW: Final = re.compile(r"[0-9.eE+ -]*")


class _Shape(NamedTuple):
    """What the lines of a matrix are: its form, and the sites that the file says it has."""

    table: Table
    form: str
    sites: int | None = None


def read_matrix(path: Path, form: str | None = None, most: float = 1e12) -> Floats:
    """Read a matrix of latencies.

    Args:
        path: of the file.
        form: one of `FORMS`; told by the lengths of the lines if None.
        most: that a latency may be.

    Returns:
        float64[m, m] in the file's unit, NaN where nothing was measured.

    Raises:
        ScenarioError: the file cannot be read or holds no such matrix, or another one than it
            says; names line and column.
    """
    lines = without_comments(text_lines(path, read_text(path, WHAT)))
    named, lines = _nodes(path, lines)
    if all(_KING.fullmatch(line.text) for line in lines):
        lines = [TextLine(number, text.replace(",", " ", 1)) for number, text in lines]
    table = table_of(path, WHAT, lines)
    shape = _shape_of(table, PAIRS if named and form is None else form)
    if shape.form == PAIRS:
        return _from_pairs(shape.table, named, most)
    return _from_rows(shape, most)


def _nodes(path: Path, lines: Sequence[TextLine]) -> tuple[dict[str, TextLine], list[TextLine]]:
    """The lines ``node i`` of the King data by the site that each names, and the others."""
    named: dict[str, TextLine] = {}
    others = []
    for line in lines:
        found = _NODE.fullmatch(line.text)
        if found is None:
            others.append(line)
        elif named.setdefault(found[1], line) is not line:
            expected = "one that no line before names"
            raise ScenarioError(place_of(path, line.number), "the node", found[1], expected)
    return named, others


def _shape_of(table: Table, form: str | None) -> _Shape:
    """The form that was asked for, or that names and lengths of lines speak for."""
    said = _said(table)
    if said is not None and form != PAIRS:
        rest = attrs.evolve(table, lines=table.lines[1:])
        rising = len(rest.lines[0].cells) == 1
        return _Shape(rest, form or (TRIANGULAR if rising else FULL), said)
    named = without_names(table, numbers=form != PAIRS)
    below, first = named.table, table.lines[0]
    width = len(below.lines[0].cells)
    if named.above and not named.before:
        square = has_zero_diagonal(below.lines) and form is None
        if form is None and not square and (width != _PAIR or any(map(is_number, first.cells))):
            expected = "a diagonal of 0 below it, or network.matrix_form with what this is"
            raise ScenarioError(
                table.place(first), "the line", ", ".join(first.cells), expected, "one of names"
            )
        return _Shape(below, form or (FULL if square else PAIRS))
    if named.above and form != PAIRS and len(below.lines) == width == len(named.above):
        check_same(named, first)
    return _Shape(below, form or _form_of(below.lines))


def _said(table: Table) -> int | None:
    """The number of sites in the first line, if it has nothing else and is no part of a triangle.

    Raises:
        ScenarioError: other lines follow than that many sites have.
    """
    lengths = [len(line.cells) for line in table.lines]
    first = table.lines[0]
    is_row = (lengths[1:2] == [2] and lengths[2:3] != [2]) or first.cells == ["0"]
    if lengths[0] != 1 or is_row or not NATURAL.fullmatch(first.cells[0]):
        return None
    said, follow = int(first.cells[0]), len(lengths) - 1
    below = (said, said - 1) if lengths[1:2] == [1] else (said,)
    if follow not in below:
        expected = f"{' or '.join(map(str, below))} for {said} sites, as line {first.number} says"
        raise ScenarioError(str(table.path), "the number of lines", follow, expected)
    return said


def _form_of(lines: Sequence[Line]) -> str:
    lengths = [len(line.cells) for line in lines]
    count = len(lengths)
    if all(length == count for length in lengths):
        return FULL
    if all(length == _PAIR for length in lengths):
        return PAIRS
    rising = lengths[0] == 1 or lengths == list(range(count, 0, -1))
    return TRIANGULAR if rising else PAIRS if lengths[0] == _PAIR else FULL


def _from_rows(shape: _Shape, most: float) -> Floats:
    table, form = shape.table, shape.form
    count = len(table.lines)
    falling = form == TRIANGULAR and count > 1 and len(table.lines[0].cells) == count
    above = 1 if shape.sites == count + 1 else 0
    matrix = np.full((count + above, count + above), np.nan)
    for i, line in enumerate(table.lines):
        length = count if form == FULL else count - i if falling else i + 1
        if len(line.cells) != length:
            found = len(line.cells)
            raise ScenarioError(table.place(line), "number of latencies", found, f"{length}")
        row = _row(table, line, most)
        if form == FULL:
            matrix[i] = row
        elif falling:
            matrix[i, i:] = matrix[i:, i] = row
        else:
            matrix[i + above, : i + 1] = matrix[: i + 1, i + above] = row
    return matrix


def _row(table: Table, line: Line, most: float) -> Floats:
    """The numbers of a line, at once where nothing is odd about them."""
    try:
        plain = _PLAIN_ROW.fullmatch(" ".join(line.cells)) is not None
        row = np.array(line.cells if plain else ["-1"], np.float64)
    except ValueError:
        row = np.array([-1.0])
    if (row >= 0).all() and (row <= most).all():
        return row
    columns = range(1, len(line.cells) + 1)
    return np.array([table.measured(line, i, "the latency", most) for i in columns])


def _from_pairs(table: Table, named: dict[str, TextLine], most: float) -> Floats:
    for line in table.lines:
        if len(line.cells) != _PAIR:
            expected = "3, two sites and a latency"
            raise ScenarioError(table.place(line), "number of columns", len(line.cells), expected)
    ends: dict[str, tuple[Line, int]] = {}
    for line in table.lines:
        ends.setdefault(line.cells[0], (line, 1))
        ends.setdefault(line.cells[1], (line, 2))
    for name, (line, column) in ends.items():
        _check_site(table.place(line, column), name, named)
    for name, text in named.items():
        if name not in ends:
            place = place_of(table.path, text.number)
            raise ScenarioError(place, "the node", name, "one that is in a pair below")
    sites = {name: i for i, name in enumerate(_in_order({*named, *ends}))}
    matrix = np.full((len(sites), len(sites)), np.nan)
    given = np.zeros(matrix.shape, np.bool_)
    for line in table.lines:
        i, j = sites[line.cells[0]], sites[line.cells[1]]
        if given[i, j]:
            pair = " ".join(line.cells[:2])
            expected = "one that is not given before"
            raise ScenarioError(table.place(line), "the pair", pair, expected)
        matrix[i, j] = table.measured(line, _PAIR, "the latency", most)
        given[i, j] = True
    one_way = given.T & ~given
    matrix[one_way] = matrix.T[one_way]
    return matrix


def _check_site(place: str, name: str, named: dict[str, TextLine]) -> None:
    """Check the name of a site: a whole number or a text, and a node of the file if it has some."""
    is_name = name.isprintable() and name != "" and (_is_whole(name) or not is_number(name))
    if not is_name or (named and name not in named):
        expected = "one of the nodes above" if named else "a whole number, or a name that is none"
        raise ScenarioError(place, "the site", name, expected)


def _is_whole(name: str) -> bool:
    return NATURAL.fullmatch(name) is not None and (name == "0" or name[0] != "0")


def _in_order(names: set[str]) -> list[str]:
    """Names in order of number where all are numbers, else of text."""
    if all(map(NATURAL.fullmatch, names)):
        return sorted(names, key=int)
    return sorted(names)
