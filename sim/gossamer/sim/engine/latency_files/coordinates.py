"""Coordinates of sites, between which messages take the Euclidean distance.

A line a site, a number a dimension, as network coordinates are published (Vivaldi: Dabek, Cox,
Kaashoek, Morris, SIGCOMM 2004). A first line of names of dimensions is passed over, and so is a
column of names under an empty cell or before the first name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.sim.engine.latency_files.names import is_numbered, without_names
from gossamer.sim.engine.latency_files.text_files import WHOLE, Table, read_table
from gossamer.sim.errors import ScenarioError

WHAT: Final = "the coordinates"
MOST_DIMENSIONS: Final = 16
_AXES: Final = (["x"], ["x", "y"], ["x", "y", "z"])


def read_coordinates(path: Path) -> npt.NDArray[np.float64]:
    """Read coordinates: float64[m, d], in the file's unit.

    Raises:
        ScenarioError: the file cannot be read, a line has another number of numbers than the
            first or something else than numbers, or what may be names may be numbers; names the
            line.
    """
    whole = read_table(path, WHAT)
    check_first_line(whole)
    table, above, before = without_names(whole, numbers=False)
    if above and not before:
        _check_axes(whole, list(above))
    dimensions = len(table.lines[0].cells)
    if dimensions > MOST_DIMENSIONS:
        place = table.place(table.lines[0])
        raise ScenarioError(place, "number of columns", dimensions, f"at most {MOST_DIMENSIONS}")
    table.check_columns(dimensions)
    if not above:
        _check_first_column(table)
    columns = range(1, dimensions + 1)
    rows = [[table.number(line, i, f"coordinate {i}") for i in columns] for line in table.lines]
    return np.array(rows)


def check_first_line(table: Table) -> None:
    """Check that the first line is not 0, 1, 2 and so on, which pandas writes above columns.

    Raises:
        ScenarioError: it is, so that it may be names or numbers.
    """
    first = table.lines[0]
    width = len(table.lines[-1].cells)
    if first.cells[0] == "0" and is_numbered(first.cells) and len(first.cells) == width > 1:
        expected = 'numbers such as 0.0, or names of columns after a "#"'
        raise ScenarioError(table.place(first), "the line", " ".join(first.cells), expected)


def _check_axes(table: Table, names: list[str]) -> None:
    """Check that names are those of dimensions: of what others name, a column may be no number."""
    plain = [name.lower() for name in names]
    stem = plain[0].rstrip("0123456789")
    counted = is_numbered([name.removeprefix(stem) for name in plain])
    if plain not in _AXES and not counted:
        expected = "x, y, z or one name with numbers in order (x1, x2), or a file without names"
        place = table.place(table.lines[0])
        raise ScenarioError(place, "the names of columns", ", ".join(names), expected)


def _check_first_column(table: Table) -> None:
    """Check that the first column does not number the sites, as pandas does without names."""
    first = [line.cells[0] for line in table.lines]
    others = [cell for line in table.lines for cell in line.cells[1:]]
    if len(first) > 2 and is_numbered(first) and not all(map(WHOLE.fullmatch, others)):
        place = table.place(table.lines[0], 1)
        expected = f"coordinates such as {first[0]}.0, as these may be the numbers of sites"
        raise ScenarioError(place, "the column", ", ".join(first[:3]), expected)
