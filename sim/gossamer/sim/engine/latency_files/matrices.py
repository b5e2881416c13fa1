"""Matrices of measured latencies, in the forms in which they are published.

- *full*: m lines of m numbers, from the site of the line to that of the column;
- *triangular*: line i has i numbers, from site i to sites 1 to i, or line 1 has m and the last one
  1; of PeerSim's `TriangularMatrixParser`, after a line that says m, line i has those from site
  i + 1 to sites 1 to i;
- *pairs*: two sites and a number a line, as the King data of p2psim has them (Gummadi, Saroiu,
  Gribble, IMW 2002), after lines ``node i`` or without them. A pair that is given one way round
  only holds both ways.

A first line that says m is passed over. Blanks, commas and semicolons separate; blank lines and
what follows a "#" are passed over; -1, nan and the like are pairs that were not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.sim.engine.latency_files.text_files import Line, lines_of, measured, read_text
from gossamer.sim.errors import ScenarioError

Floats = npt.NDArray[np.float64]

FULL, TRIANGULAR, PAIRS = "full", "triangular", "pairs"
FORMS: Final = (FULL, TRIANGULAR, PAIRS)
WHAT: Final = "the latency matrix"
_NODE: Final = "node"
_PAIR: Final = 3


def read_matrix(path: Path, form: str | None = None, most: float = 1e12) -> Floats:
    """Read a matrix of latencies.

    Args:
        path: of the file.
        form: one of `FORMS`; told by the lengths of the lines if None.
        most: that a latency may be.

    Returns:
        float64[m, m] in the file's unit, NaN where nothing was measured.

    Raises:
        ScenarioError: the file cannot be read or holds no such matrix; names the line.
    """
    lines = list(lines_of(read_text(path, WHAT)))
    named = {line.words[1] for line in lines if _names_site(line)}
    lines = [line for line in lines if not _names_site(line)]
    if not lines:
        raise ScenarioError(str(path), WHAT, None, "at least one line", "empty")
    form = _form_of(lines, bool(named)) if form is None else form
    if form == PAIRS:
        return _from_pairs(path, lines, named, most)
    return _from_rows(path, lines, form, most)


def _names_site(line: Line) -> bool:
    return line.words[0].lower() == _NODE and len(line.words) > 1


def _form_of(lines: Sequence[Line], has_sites: bool) -> str:
    """The form that the lengths of lines speak for."""
    if has_sites:
        return PAIRS
    lengths = [len(line.words) for line in (lines if _heading(lines) is None else lines[1:])]
    count = len(lengths)
    if all(length == count for length in lengths):
        return FULL
    if all(length == _PAIR for length in lengths):
        return PAIRS
    rising = lengths[0] == 1 or lengths == list(range(count, 0, -1))
    return TRIANGULAR if rising else PAIRS if lengths[0] == _PAIR else FULL


def _heading(lines: Sequence[Line]) -> int | None:
    """The number of sites, if the first line says nothing else and the others are in keeping."""
    lengths = [len(line.words) for line in lines[1:]]
    rest = len(lengths)
    if rest == 0 or not (len(lines[0].words) == 1 and lines[0].words[0].isdecimal()):
        return None
    said = int(lines[0].words[0])
    triangular = lengths == list(range(1, rest + 1))
    full = lengths == [rest] * rest
    fits = (said == rest and (full or triangular)) or (said == rest + 1 and triangular)
    return said if fits else None


def _from_rows(path: Path, lines: Sequence[Line], form: str, most: float) -> Floats:
    heading = _heading(lines)
    if heading is not None:
        lines = lines[1:]
    count = len(lines)
    falling = form == TRIANGULAR and count > 1 and len(lines[0].words) == count
    above = 1 if heading == count + 1 else 0
    matrix = np.full((count + above, count + above), np.nan)
    for i, line in enumerate(lines):
        length = count if form == FULL else count - i if falling else i + 1
        if len(line.words) != length:
            place = f"{path}, line {line.number}"
            raise ScenarioError(place, "number of latencies", len(line.words), f"{length}")
        row = _row(path, line, most)
        if form == FULL:
            matrix[i] = row
        elif falling:
            matrix[i, i:] = matrix[i:, i] = row
        else:
            matrix[i + above, : i + 1] = matrix[: i + 1, i + above] = row
    return matrix


def _row(path: Path, line: Line, most: float) -> Floats:
    """The numbers of a line, at once where nothing is odd about them."""
    try:
        row = np.array(line.words, np.float64)
    except ValueError:
        row = np.array([-1.0])
    if (row >= 0).all() and (row <= most).all():
        return row
    return np.array([measured(path, line, i, most) for i in range(1, len(line.words) + 1)])


def _from_pairs(path: Path, lines: Sequence[Line], named: set[str], most: float) -> Floats:
    for line in lines:
        if len(line.words) != _PAIR:
            expected = "two sites and a latency"
            place = f"{path}, line {line.number}"
            raise ScenarioError(place, "number of words", len(line.words), expected)
    ends = [line.words[place] for line in lines for place in (0, 1)]
    sites = {name: i for i, name in enumerate(_in_order({*named, *ends}))}
    matrix = np.full((len(sites), len(sites)), np.nan)
    given = np.zeros(matrix.shape, np.bool_)
    for line in lines:
        i, j = sites[line.words[0]], sites[line.words[1]]
        if given[i, j]:
            pair = " ".join(line.words[:2])
            place = f"{path}, line {line.number}"
            raise ScenarioError(place, "the pair", pair, "one that is not given before")
        matrix[i, j] = measured(path, line, _PAIR, most)
        given[i, j] = True
    one_way = given.T & ~given
    matrix[one_way] = matrix.T[one_way]
    return matrix


def _in_order(names: set[str]) -> list[str]:
    """Names in order of number where all are numbers, else of text."""
    if all(name.isdecimal() for name in names):
        return sorted(names, key=int)
    return sorted(names)
