"""How many subscriptions each event of a workload matches, found by executors.

With one attribute, an event matches the ranges that have begun at its value, less those that have
ended before it. Tasks sort the ends of ranges and the values of events a portion at a time, count
equal ones, and cut them into parts of the domain. Whoever gets a part puts its portions together
and counts within it; the driver adds what earlier parts have left. A portion of a part is one row
of Spark's, so that Spark itself neither sorts nor groups points. With more attributes a sample of
events is held against all subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import Place
from gossamer.spark.crunch.quantiles import added_up
from gossamer.spark.handover import Mark
from gossamer.spark.session import slots
from gossamer.spark.storage.frames import opened_table, unreadable

# Rows of Parquet files as tasks read them themselves, without the way through Java.
#
# Spark turns what it reads into rows of its own and those into batches again for Python, which
# takes longer than most of what is to be counted. A scan has `mapInArrow` as frames of Spark have
# it, for functions that need nothing but a few columns of files, one after another.


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


# Points of a part, about: what one task puts together.
_PART_POINTS: Final = 2_000_000
# Points that are sorted at a time.
_PORTION_POINTS: Final = 1 << 20
# One point in so many of each batch is looked at to find where parts are cut.
_SAMPLED: Final = 1_000
_BEGIN, _EVENT, _END = 0, 1, 2
POINTS: Final = ("begin", "event", "end")
_COLUMNS: Final = "part int, kind int, at binary, times binary"
_PORTION: Final = pa.schema(
    [("part", pa.int32()), ("kind", pa.int32()), ("at", pa.binary()), ("times", pa.binary())]
)
_MATCHED: Final = "part int, more long, value binary, times binary"

Ints = npt.NDArray[np.int64]


@contextmanager
def matched_by_all(points: Any) -> Iterator[Any]:
    """Rows of ``value``, a number of matches, and ``times``, how many events have it.

    A number may come in several rows, which are in no order. Executors keep them until the end, a
    row of Spark's for each part.

    Args:
        points: a frame of Spark, or a scan, of the columns `POINTS`, null where a row has none:
            ``begin`` and ``end`` of ranges, both included, and ``event``, the values of events.
    """
    cuts = _cuts(points)
    portions = points.mapInArrow(Cutter(cuts), _COLUMNS)
    # As many tasks as parts: what is kept else stays in 200, each a wait for a Python process.
    parts = portions.repartition(len(cuts) + 1, "part")
    matched = parts.groupBy("part").applyInArrow(matched_in_part, _MATCHED).persist()
    try:
        yield Derived(matched, Began(_began(matched)))
    finally:
        matched.unpersist()


def _cuts(points: Any) -> Ints:
    """The values with which parts begin but the first, so that these are about equally large."""
    told = points.mapInArrow(sampled, "at long, points long").toArrow()
    parts = -(-sum(told["points"].to_pylist()) // _PART_POINTS)
    at = np.sort(told["at"].to_numpy())
    if parts < 2:
        return at[:0]
    return np.unique(at[len(at) * np.arange(1, parts) // parts])


def sampled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Some points of a task, and beside each how many it stands for."""
    for batch in batches:
        for column in batch.columns:
            at = column.drop_null()
            if len(at):
                chosen = at.take(pa.array(range(0, len(at), _SAMPLED)))
                stands = np.full(len(chosen), _SAMPLED, np.int64)
                stands[-1] = len(at) - _SAMPLED * (len(chosen) - 1)
                yield pa.RecordBatch.from_arrays([chosen, pa.array(stands)], ["at", "points"])


@attrs.frozen(eq=False)
class Cutter:
    """Makes of the points of a task portions of parts, sorted and counted.

    Attributes:
        cuts: int64[parts - 1], ascending: the values with which parts begin but the first.
    """

    cuts: Ints

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kept: list[pa.RecordBatch] = []
        for batch in batches:
            kept.append(batch)
            if sum(map(len, kept)) >= _PORTION_POINTS:
                yield self._portions(kept)
                kept = []
        if kept:
            yield self._portions(kept)

    def _portions(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        rows = []
        for kind in (_BEGIN, _EVENT, _END):
            columns = [batch.column(kind).drop_null().to_numpy() for batch in batches]
            at, times = np.unique(np.concatenate(columns), return_counts=True)
            places = [0, *np.searchsorted(at, self.cuts).tolist(), len(at)]
            for part, (first, end) in enumerate(pairwise(places)):
                if first < end:
                    one = {"at": at[first:end].tobytes(), "times": times[first:end].tobytes()}
                    rows.append({"part": part, "kind": kind, **one})
        return pa.RecordBatch.from_pylist(rows, schema=_PORTION)


def matched_in_part(portions: pa.Table) -> pa.Table:
    """The numbers of matches of the events of one part, as if nothing had begun before it.

    Args:
        portions: of one part.

    Returns:
        One row: ``part``, how many ``more`` ranges begin than end in it, and as bytes of int64
        the different numbers, ``value``, and how many events have each, ``times``.
    """
    part = portions["part"][0].as_py()
    begins, events, ends = (_joined(portions, kind) for kind in (_BEGIN, _EVENT, _END))
    begun = _up_to(begins, np.searchsorted(begins[0], events[0], side="right"))
    ended = _up_to(ends, np.searchsorted(ends[0], events[0], side="left"))
    values, times = added_up([(begun - ended, events[1])])
    more = int(begins[1].sum() - ends[1].sum())
    return pa.table(
        {
            "part": pa.array([part], pa.int32()),
            "more": pa.array([more], pa.int64()),
            "value": pa.array([values.tobytes()], pa.binary()),
            "times": pa.array([times.tobytes()], pa.binary()),
        }
    )


def _joined(portions: pa.Table, kind: int) -> tuple[Ints, Ints]:
    """The points of a kind in their order, and how often each comes; equal ones may be apart."""
    chosen = [
        tuple(np.frombuffer(row[name], np.int64) for name in ("at", "times"))
        for row in portions.to_pylist()
        if row["kind"] == kind
    ]
    if not chosen:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    at, times = map(np.concatenate, zip(*chosen, strict=True))
    order = np.argsort(at, kind="stable")
    return at[order], times[order]


def _up_to(points: tuple[Ints, Ints], places: Ints) -> Ints:
    """How many points come before each of some places."""
    return np.concatenate(([0], np.cumsum(points[1])))[places]


def _began(matched: Any) -> Ints:
    """By part the ranges that have begun before it, and not ended."""
    told = matched.select("part", "more").collect()
    more = np.zeros(1 + max((row["part"] for row in told), default=0), np.int64)
    for row in told:
        more[row["part"]] = row["more"]
    return np.asarray(np.cumsum(more) - more, np.int64)


@attrs.frozen(eq=False)
class Began:
    """Adds to numbers of matches within a part what had begun before it.

    Attributes:
        before: int64[parts], ranges that have begun before each part, and not ended.
    """

    before: Ints

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                values, times = (np.frombuffer(row[name], np.int64) for name in ("value", "times"))
                columns = [pa.array(values + self.before[row["part"]]), pa.array(times)]
                yield pa.RecordBatch.from_arrays(columns, ["value", "times"])


@attrs.frozen(eq=False)
class Matcher:
    """Counts by event the subscriptions of a task that it matches.

    Attributes:
        points: int64[events, A], hashed.
    """

    points: Ints

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        on_a_line = self.points.shape[1] == 1
        matched = self._on_a_line(batches) if on_a_line else self._in_boxes(batches)
        places = np.arange(len(matched), dtype=np.int64)
        yield pa.RecordBatch.from_pydict({"place": places, "matched": matched})

    def _on_a_line(self, batches: Iterable[pa.RecordBatch]) -> Ints:
        """Of one attribute: from the first event in a range on one more, after the last not."""
        order = np.argsort(self.points[:, 0], kind="stable")
        values = self.points[order, 0]
        changes = np.zeros(len(values) + 1, np.int64)
        for batch in batches:
            for name, side, step in (("low_0", "left", 1), ("high_0", "right", -1)):
                at = np.searchsorted(values, batch[name].to_numpy(), side)  # type: ignore[call-overload]
                changes += step * np.bincount(at, minlength=len(changes))
        matched = np.zeros(len(values), np.int64)
        matched[order] = np.cumsum(changes)[:-1]
        return matched

    def _in_boxes(self, batches: Iterable[pa.RecordBatch]) -> Ints:
        matched = np.zeros(len(self.points), np.int64)
        for batch in batches:
            inside = np.ones((len(self.points), len(batch)), np.bool_)
            for a in range(self.points.shape[1]):
                values = self.points[:, a, np.newaxis]
                inside &= values >= batch[f"low_{a}"].to_numpy()
                inside &= values <= batch[f"high_{a}"].to_numpy()
            matched += inside.sum(axis=1)
        return matched


def matched_by_some(subscriptions: Any, points: Ints) -> Ints:
    """int64[events]: how many subscriptions each of some events matches.

    Args:
        subscriptions: a frame of Spark, or a scan: ranges ``low_a`` to ``high_a`` of every
            attribute ``a``.
        points: int64[events, A], hashed.
    """
    counts = subscriptions.mapInArrow(Matcher(points), "place long, matched long")
    added = counts.groupBy("place").sum("matched").toArrow()
    matched = np.zeros(len(points), np.int64)
    matched[added["place"].to_numpy()] = added["sum(matched)"].to_numpy()
    return matched
