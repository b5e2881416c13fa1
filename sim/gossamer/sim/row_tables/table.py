"""A table that is made row by row, or any rows at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import brentq

from gossamer.sim.study.draws import Int64s

# Units made at a time: large enough that NumPy's overhead does not count, small enough for caches.
CHUNK: Final = 65_536


@attrs.frozen
class Field:
    """A column of a table.

    Attributes:
        name: of the column.
        kind: its Arrow type.
        meaning: in words, with its unit.
    """

    name: str
    kind: pa.DataType
    meaning: str


@attrs.frozen(kw_only=True)
class RowTable:
    """A table made from units, most of which make one row each.

    Attributes:
        name: of the table, and of its folder.
        units: how many; unit numbers count from 0.
        fields: its columns, in order.
        make: columns of the rows that these units make, in the order of units. It depends on
            nothing but the unit numbers, and can be pickled.
    """

    name: str
    units: int
    fields: tuple[Field, ...]
    make: Callable[[Int64s], Mapping[str, Any]]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns; none is ever null."""
        return pa.schema([(field.name, field.kind) for field in self.fields])

    def batch(self, units: Int64s) -> pa.RecordBatch:
        """The rows that these units make."""
        made = self.make(units)
        columns = [pa.array(made[field.name], type=field.kind) for field in self.fields]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def part(self, first: int, count: int) -> pa.RecordBatch:
        """The rows of units from ``first`` on, as many as there are."""
        return self.batch(np.arange(first, min(first + count, self.units), dtype=np.int64))

    def batches(self, chunk: int = CHUNK) -> Iterator[pa.RecordBatch]:
        """All rows, ``chunk`` units at a time."""
        for first in range(0, self.units, chunk):
            yield self.part(first, chunk)

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(self.batches(), self.schema)


def write_plainly(table: RowTable, file: Path, chunk: int = CHUNK) -> int:
    """Write a table with NumPy and PyArrow alone, in this process; returns the rows written."""
    rows = 0
    with pq.ParquetWriter(file, table.schema, compression="zstd") as writer:
        for batch in table.batches(chunk):
            writer.write_batch(batch)
            rows += len(batch)
    return rows


def text_array(texts: Sequence[str], places: object) -> pa.Array:
    """The texts at these places of a list: string[n]."""
    return pa.array(texts, pa.string()).take(pa.array(places))


def list_array(lengths: Int64s, items: object) -> pa.ListArray:
    """Lists of these lengths, whose items stand one after another."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(items))


# Fits by which a workload that was made is checked against what was asked for.


# Beyond which nothing is told apart.
_LEAST, _MOST = -20.0, 100.0


def fitted_exponent(counts: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Exponent of Zipf's law by maximum likelihood, and its standard error.

    Args:
        counts: int64[ranks], how often each rank was drawn, the most popular first.

    Returns:
        Both NaN where fewer than two ranks or no draws are there.
    """
    drawn = int(counts.sum())
    if len(counts) < 2 or drawn == 0:
        return math.nan, math.nan
    logs = np.log(np.arange(1, len(counts) + 1))
    seen = float(counts @ logs) / drawn

    def moments(exponent: float) -> tuple[float, float]:
        """Mean and variance of the logarithm of a rank."""
        powers = -exponent * logs
        weights = np.exp(powers - powers.max())
        weights /= weights.sum()
        mean = float(weights @ logs)
        return mean, float(weights @ (logs - mean) ** 2)

    if not moments(_MOST)[0] < seen < moments(_LEAST)[0]:
        return (_MOST if seen <= moments(_MOST)[0] else _LEAST), math.nan
    exponent = float(brentq(lambda one: moments(one)[0] - seen, _LEAST, _MOST))
    variance = moments(exponent)[1]
    return exponent, 1 / math.sqrt(drawn * variance) if variance > 0 else math.nan
