"""Rows of Parquet files as tasks read them themselves, without the way through Java.

Spark turns what it reads into rows of its own and those into batches again for Python, which takes
longer than most of what is to be counted. A scan has `mapInArrow` as frames of Spark have it, for
functions that need nothing but a few columns of files, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import Place
from gossamer.spark.handover import Mark
from gossamer.spark.session import slots
from gossamer.spark.storage.frames import opened_table, unreadable

_BATCH_ROWS: Final = 1 << 16
# A task costs a tenth of a second beside its work; with more of them slow ones hold up less.
_TASKS_A_SLOT: Final = 4

Batches = Iterator[pa.RecordBatch]
# What tasks do with their rows.
Function = Callable[[Batches], Batches]


@attrs.frozen
class Rows:
    """Rows of some files.

    Attributes:
        files: the files.
        columns: which are read.
        derive: makes of a batch of these what functions get; called in tasks.
    """

    files: Sequence[Place]
    columns: Sequence[str]
    derive: Callable[[pa.RecordBatch], pa.RecordBatch]


@attrs.frozen
class Scan:
    """Rows of files, all of one form once they are derived.

    Attributes:
        session: of Spark.
        mark: by which tasks tell that they see the same files as this process.
        parts: the rows.
    """

    session: Any
    mark: Mark
    parts: Sequence[Rows]

    def mapInArrow(self, function: Function, schema: str) -> Any:  # noqa: N802, Spark's name
        """A frame of what ``function`` makes of the rows; where files are many, some a task."""
        reader = _Reader(self.mark, self.parts, function)
        files = sum(len(part.files) for part in self.parts)
        tasks = max(1, min(files, _TASKS_A_SLOT * slots(self.session)))
        numbers = self.session.range(0, files, 1, tasks)
        return numbers.mapInArrow(reader, schema)


@attrs.frozen
class Derived:
    """What tasks make of the rows of a frame of Spark, with `mapInArrow` for functions of that.

    Spark itself would carry it to Java and back between the two.

    Attributes:
        frame: of Spark.
        derive: makes of a task's rows what functions get.
    """

    frame: Any
    derive: Function

    def mapInArrow(self, function: Function, schema: str) -> Any:  # noqa: N802, Spark's name
        """A frame of what ``function`` makes of what is derived."""
        return self.frame.mapInArrow(_Composed(self.derive, function), schema)


@attrs.frozen
class _Composed:
    """One function after another."""

    first: Function
    then: Function

    def __call__(self, batches: Batches) -> Batches:
        return self.then(self.first(batches))


@attrs.frozen
class _Reader:
    """Gives a function the rows of the files whose numbers a task gets."""

    mark: Mark
    parts: Sequence[Rows]
    function: Function

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self.mark.check()
        yield from self.function(self._rows(batches))

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = [(part, file) for part in self.parts for file in part.files]
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part, file = files[number]
                yield from map(part.derive, _read(file, part.columns))


def _read(file: Place, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        with opened_table(file) as opened:
            for batch in opened.iter_batches(_BATCH_ROWS, columns=list(columns)):
                yield batch.select(list(columns))
    except (pa.ArrowException, OSError) as error:
        damaged = "is damaged, expected a whole Parquet table"
        raise ResultsError(file, unreadable(file, error, damaged)) from None
