"""Attributes of nodes: constants, draws from distributions, or columns of files.

What a node is depends on the seed, the attribute's name and the node's row, so that it is the same
for all systems of a run and stays what it is when others join.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix_many
from gossamer.sim.engine.latency_files.site_latency import (
    DRAWN,
    IN_ORDER,
    PLACINGS,
    check_first_line,
)
from gossamer.sim.engine.latency_files.text_files import read_table
from gossamer.sim.errors import ScenarioError

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[Any]

_ONE: Final = float(1 << 62)
_STREAM: Final = 0x61747472
WHAT: Final = "the file of attributes"
FILE, COLUMN, PLACING = "file", "column", "placing"
VALUES, WEIGHTS = "values", "weights"


def _uniform(u: Floats, low: float, high: float) -> Floats:
    return low + (high - low) * u


def _whole(u: Floats, low: float, high: float) -> Floats:
    return np.minimum(low + np.floor((high - low + 1) * u), high)


def _normal(u: Floats, mean: float, deviation: float) -> Floats:
    return np.asarray(mean + deviation * _standard_normal(u))


def _lognormal(u: Floats, median: float, sigma: float) -> Floats:
    return np.asarray(median * np.exp(sigma * _standard_normal(u)))


def _standard_normal(u: Floats) -> Any:
    from scipy.special import ndtri

    return ndtri(np.maximum(u, 1 / _ONE))


def _exponential(u: Floats, mean: float) -> Floats:
    return np.asarray(-mean * np.log1p(-u))


def _pareto(u: Floats, least: float, shape: float) -> Floats:
    return np.asarray(least * np.exp(-np.log1p(-u) / shape))


@attrs.frozen
class _Distribution:
    """A distribution: its quantile function, its parameters in words, and which it takes."""

    quantile: Callable[..., Floats]
    names: str
    fits: Callable[..., bool]

    @property
    def parameters(self) -> int:
        return self.names.count(",") + 1


DISTRIBUTIONS: Final[Mapping[str, _Distribution]] = {
    "uniform": _Distribution(_uniform, "[low, high]", lambda low, high: low <= high),
    "whole": _Distribution(
        _whole, "[low, high]", lambda low, high: low <= high and low % 1 == high % 1 == 0
    ),
    "normal": _Distribution(_normal, "[mean, deviation]", lambda _mean, width: width >= 0),
    "lognormal": _Distribution(
        _lognormal, "[median, sigma]", lambda median, sigma: median > 0 and sigma >= 0
    ),
    "exponential": _Distribution(_exponential, "mean", lambda mean: mean > 0),
    "pareto": _Distribution(
        _pareto, "[least, shape]", lambda least, shape: least > 0 and shape > 0
    ),
}


@attrs.frozen
class Attribute:
    """What nodes have under one name, checked when built.

    Attributes:
        name: of the attribute.
        given: as in a scenario: a number or truth value that all nodes have; a list, from which
            each draws; or a table with one of the DISTRIBUTIONS, with values and their weights,
            or with a file and a column of it.
    """

    name: str
    given: Any

    def __attrs_post_init__(self) -> None:
        given = self.given
        if not self.name.isidentifier():
            raise ScenarioError(None, "attributes", self.name, "names of letters, digits and _")
        if isinstance(given, list | tuple):
            self._check_numbers(given, self.name)
        elif isinstance(given, dict):
            self._check_table(given)
        elif not _is_number(given):
            raise self._error("", given, "a number, a list of numbers to draw from, or a table")

    def _check_table(self, table: Mapping[str, Any]) -> None:
        if FILE in table:
            self._check_file(table)
            return
        if VALUES in table:
            self._check_known(table, (VALUES, WEIGHTS))
            self._check_numbers(table[VALUES], VALUES)
            weights = table.get(WEIGHTS, [1] * len(table[VALUES]))
            self._check_numbers(weights, WEIGHTS)
            fits = len(weights) == len(table[VALUES]) and min(weights) >= 0 and sum(weights) > 0
            if not fits:
                expected = f"{len(table[VALUES])} numbers from 0, one a value and not all of them 0"
                raise self._error(f".{WEIGHTS}", weights, expected)
            return
        kind = next(iter(table), "")
        if kind not in DISTRIBUTIONS or len(table) != 1:
            known = ", ".join((*DISTRIBUTIONS, VALUES, FILE))
            raise self._error("", table, f"a table with one of {known}")
        one = DISTRIBUTIONS[kind]
        numbers = table[kind] if isinstance(table[kind], list | tuple) else [table[kind]]
        fits = all(_is_number(value) for value in numbers) and len(numbers) == one.parameters
        if not (fits and one.fits(*numbers)):
            raise self._error(f".{kind}", table[kind], f"possible values of {one.names}")

    def _check_file(self, table: Mapping[str, Any]) -> None:
        self._check_known(table, (FILE, COLUMN, PLACING))
        if not isinstance(table[FILE], str | Path):
            raise self._error(f".{FILE}", table[FILE], "the path of a file, as text")
        column = table.get(COLUMN, 1)
        named = isinstance(column, str) and column != ""
        if not named and not (type(column) is int and column >= 1):
            expected = "the name of a column, or its number from 1 on"
            raise self._error(f".{COLUMN}", column, expected)
        if table.get(PLACING, IN_ORDER) not in PLACINGS:
            raise self._error(f".{PLACING}", table[PLACING], "one of " + ", ".join(PLACINGS))

    def _check_known(self, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                expected = "one of " + ", ".join(known)
                raise ScenarioError(
                    None, f"attributes.{self.name}.{key}", table[key], expected, "an unknown key"
                )

    def _check_numbers(self, values: Any, what: str) -> None:
        fits = isinstance(values, list | tuple) and len(values) > 0 and all(map(_is_number, values))
        if not fits:
            field = "" if what == self.name else f".{what}"
            raise self._error(field, values, "a list of numbers, not empty")

    def _error(self, field: str, value: object, expected: str) -> ScenarioError:
        return ScenarioError(None, f"attributes.{self.name}{field}", value, expected)

    def of_nodes(self, nodes: int, seed: int) -> Values:
        """What each of ``nodes`` nodes has: bool, int64 or float64[n].

        Raises:
            ScenarioError: a file is at fault, or has too few rows.
        """
        given = self.given
        drawn = mix_many(seed, np.arange(nodes), _STREAM + zlib.crc32(self.name.encode())) / _ONE
        if isinstance(given, list | tuple):
            return _chosen(drawn, given, [1] * len(given))
        if not isinstance(given, dict):
            return np.full(nodes, given)
        if FILE in given:
            return self._from_file(given, nodes, drawn)
        if VALUES in given:
            return _chosen(drawn, given[VALUES], given.get(WEIGHTS, [1] * len(given[VALUES])))
        kind, parameters = next(iter(given.items()))
        numbers = parameters if isinstance(parameters, list | tuple) else [parameters]
        values = DISTRIBUTIONS[kind].quantile(drawn, *numbers)
        return values.astype(np.int64) if kind == "whole" else values

    def _from_file(self, table: Mapping[str, Any], nodes: int, drawn: Floats) -> Values:
        column = read_column(Path(table[FILE]), table.get(COLUMN, 1))
        if table.get(PLACING, IN_ORDER) == DRAWN:
            column = column[(drawn * len(column)).astype(np.int64)]
        elif len(column) < nodes:
            expected = f"{nodes}, one a node, or placing = {DRAWN!r}"
            raise ScenarioError(str(table[FILE]), "number of rows", len(column), expected)
        column = column[:nodes]
        is_whole = (column == np.floor(column)).all() and (np.abs(column) < 2**53).all()
        return column.astype(np.int64) if is_whole else column


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _chosen(drawn: Floats, values: Any, weights: Any) -> Values:
    shares = np.cumsum(np.asarray(weights, np.float64))
    place = np.searchsorted(shares / shares[-1], drawn, "right")
    return np.asarray(values)[np.minimum(place, len(values) - 1)]


def read_column(path: Path, column: str | int) -> Floats:
    """A column of a file of numbers; see `latency_files.text_files` for what separates them.

    Args:
        path: of the file.
        column: its name in the first line, or its number from 1 on in a file without names.

    Raises:
        ScenarioError: the file cannot be read, has no such column, lines of several lengths, or
            no numbers in the column.
    """
    table = read_table(path, WHAT)
    columns = len(table.lines[0].cells)
    table.check_columns(columns)
    if isinstance(column, str):
        names = table.lines[0].cells
        if names.count(column) != 1:
            expected = f"one of {', '.join(names)}" if column not in names else "a name of one only"
            raise ScenarioError(str(path), "the column", column, expected)
        what, place = column, names.index(column) + 1
        table = attrs.evolve(table, lines=table.lines[1:])
    else:
        check_first_line(table)
        what, place = f"column {column}", column
    if not table.lines:
        raise ScenarioError(str(path), WHAT, None, "at least one row", "empty")
    if place > columns:
        where = table.place(table.lines[0])
        raise ScenarioError(where, "number of columns", columns, f"at least {place}")
    return np.array([table.number(line, place, what) for line in table.lines])
