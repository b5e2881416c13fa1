"""Parquet files of the user's own: columns of known names and types, read strictly."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.sim.errors import ScenarioError

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@attrs.frozen(eq=False)
class OwnTable:
    """A table of a file, as arrays of one length.

    Attributes:
        path: of the file.
        wholes: columns of whole numbers by name, int64.
        numbers: columns of numbers by name, float64, NaN and infinities among them.
    """

    path: Path
    wholes: Mapping[str, Int64s]
    numbers: Mapping[str, Floats]

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(next(iter(self.wholes.values())))

    def has(self, column: str) -> bool:
        """Whether there is such a column."""
        return column in self.wholes or column in self.numbers

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column by name."""
        return self.wholes[name] if name in self.wholes else self.numbers[name]

    def error(self, row: int, column: str, expected: str) -> ScenarioError:
        """That the value in a row, from 0 on, is another than was expected."""
        value = self.column(column)[row].item()
        return ScenarioError(f"{self.path}, row {row + 1}", column, value, expected)

    def check(self, column: str, holds: Bools, expected: str) -> None:
        """Raise `ScenarioError` about the first row in which a column does not hold."""
        if not holds.all():
            raise self.error(int(np.argmin(holds)), column, expected)

    def require(self, *columns: str) -> None:
        """Raise `ScenarioError` about the first column that is missing."""
        for name in columns:
            if not self.has(name):
                there = ", ".join((*self.wholes, *self.numbers))
                expected = f"a column beside {there}"
                raise ScenarioError(str(self.path), f"column {name}", None, expected, "missing")


def read_own(path: Path, wholes: Sequence[str], numbers: Sequence[str]) -> OwnTable:
    """The columns of a file, each of which has to be known.

    Args:
        path: of the file.
        wholes: names of columns of whole numbers.
        numbers: names of columns of numbers.

    Raises:
        ScenarioError: there is no such file, it is damaged, has no rows, or a column that is not
            known, twice there, of another type, or has nulls.
    """
    table = _read(path)
    known = (*wholes, *numbers)
    names = table.column_names
    for name in names:
        if name not in known or names.count(name) > 1:
            found = "unknown" if name not in known else "there twice"
            expected = f"columns among {', '.join(known)}"
            raise ScenarioError(str(path), f"column {name}", None, expected, found)
    if not names or len(table) == 0:
        raise ScenarioError(str(path), "number of rows", 0, "at least one")
    return OwnTable(
        path,
        {name: _whole(path, name, table[name]) for name in names if name in wholes},
        {name: _number(path, name, table[name]) for name in names if name in numbers},
    )


def content_of(path: Path) -> dict[str, str]:
    """A file by its name and content, in place of where it lies.

    Raises:
        ScenarioError: it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            fingerprint = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None
    return {"file": path.name, "fingerprint": fingerprint}


def _read(path: Path) -> pa.Table:
    try:
        with path.open("rb") as stream:
            source = pq.ParquetFile(stream, page_checksum_verification=True)
            table = source.read()
            table.validate(full=True)
    except pa.ArrowException as error:
        found = f"damaged or not Parquet ({_reason(error)})"
        expected = "a complete Parquet file"
        raise ScenarioError(str(path), "the content", None, expected, found) from error
    except OSError as error:
        raise _unreadable(path, error) from None
    return table


def _unreadable(path: Path, error: OSError) -> ScenarioError:
    # Arrow raises some without a number.
    found = error.strerror or _reason(error)
    return ScenarioError(str(path), "the file", None, "a readable Parquet file", found)


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _check(path: Path, name: str, column: pa.ChunkedArray, fits: bool, expected: str) -> None:
    if not fits:
        raise ScenarioError(str(path), f"the type of column {name}", str(column.type), expected)
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py() + 1
        raise ScenarioError(f"{path}, row {row}", name, None, "a value", "null")


def _whole(path: Path, name: str, column: pa.ChunkedArray) -> Int64s:
    _check(path, name, column, pa.types.is_integer(column.type), "whole numbers")
    try:
        return np.asarray(column.cast(pa.int64()).to_numpy(), np.int64)
    except pa.ArrowInvalid:
        raise ScenarioError(str(path), name, None, "numbers of 64 bits", "too large") from None


def _number(path: Path, name: str, column: pa.ChunkedArray) -> Floats:
    fits = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    _check(path, name, column, fits, "numbers")
    return np.asarray(column.to_numpy(), np.float64)
