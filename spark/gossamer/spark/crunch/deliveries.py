"""Path lengths and delays of all deliveries, the one table that is too large for one process.

Tasks read row groups and count deliveries by value: how many took so many hops and so long. From
these counts every percentile follows exactly, and there are few of them as long as delays are whole
rounds. Where there are many deliveries of many different delays, percentiles of delays are sketched
(Greenwald and Khanna, as Spark has it), of a rank that is wrong by less than one in ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import Place
from gossamer.sim.study.records import CDF, MEASURE, PER_CENTS, Row, percentile
from gossamer.spark.crunch.folders import SystemTables
from gossamer.spark.handover import Mark
from gossamer.spark.session import slots
from gossamer.spark.storage.frames import opened_table, unreadable

EXACT, SKETCH = "exact", "sketch"

# Share of the deliveries of a row group up to which their different values are few.
_FEW: Final = 0.05
SKETCH_ACCURACY: Final = 10_000
_CENTILES: Final = (50, 90, 95, 99, 100)
_TASKS_A_SLOT: Final = 8

COUNT_SCHEMA: Final = pa.schema(
    [
        ("system", pa.int32()),
        ("hops", pa.int32()),
        ("tree_hops", pa.int32()),
        ("delay", pa.float64()),
        ("count", pa.int64()),
    ]
)
ROW_SCHEMA: Final = pa.schema(
    [
        ("system", pa.int32()),
        ("part", pa.string()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("value", pa.float64()),
        ("method", pa.string()),
    ]
)


def delivery_rows(session: Any, systems: Sequence[SystemTables], *, exact: bool) -> pa.Table:
    """Measures and distributions of the deliveries of systems: a table of `ROW_SCHEMA`.

    Args:
        session: of Spark. All its workers need to see the tables.
        systems: whose; those without any deliveries have no rows in the result.
        exact: whether every delay is counted, although there may be many different ones.
    """
    groups = [
        _Group(number=one.number, folder=one.folder, mark=one.mark, place=place)
        for one in systems
        if one.deliveries
        for place in range(_row_groups(one))
    ]
    if not groups:
        return ROW_SCHEMA.empty_table()
    if exact or _have_few_delays(groups):
        return _exact(_read(session, groups, _Counter(groups, with_delays=True)))
    return _sketched(session, groups)


@attrs.frozen(kw_only=True)
class _Group:
    """One row group of a system's table of deliveries."""

    number: int
    folder: Place
    mark: Mark
    place: int

    def deliveries(self, with_delays: bool) -> pa.Table:
        """Hops, tree hops and delay of each; null where that is not known, or not asked for."""
        file = self.folder / "deliveries.parquet"
        self.mark.check()
        try:
            with opened_table(file) as opened:
                wanted = ("event", "hops", "tree_hops", "time_s", "delay_s")
                names = [name for name in wanted if name in opened.schema_arrow.names]
                read = opened.read_row_group(self.place, columns=names)
        except (pa.ArrowException, OSError) as error:
            raise ResultsError(file, unreadable(file, error, "is damaged")) from None
        rows = len(read)
        hops = (_column(read, name, pa.int32()) for name in ("hops", "tree_hops"))
        delays = self._delays(read) if with_delays else pa.nulls(rows, pa.float64())
        columns = [pa.array(np.full(rows, self.number, np.int32)), *hops, delays]
        return pa.table(columns, names=COUNT_SCHEMA.names[:-1])

    def _delays(self, read: pa.Table) -> Any:
        if "delay_s" in read.column_names:
            return _column(read, "delay_s", pa.float64())
        if "time_s" not in read.column_names:
            return pa.nulls(len(read), pa.float64())
        events, began = published(self.folder)
        if len(events) == 0:
            return pa.nulls(len(read), pa.float64())
        event = read["event"].to_numpy()
        place = np.minimum(np.searchsorted(events, event), len(events) - 1)
        delay = read["time_s"].to_numpy() - began[place]
        return pa.array(delay, mask=events[place] != event)


@lru_cache(maxsize=4)
def published(folder: Place) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Events in order, and when the round began in which each was published.

    The time of a delivery is the beginning of its round, so that delays are whole rounds. Without
    the columns that tell rounds there is nothing.
    """
    events = _sorted_columns(folder / "events.parquet", "event", "cycle")
    cycles = _sorted_columns(folder / "cycles.parquet", "cycle", "time_s")
    if events is None or cycles is None or len(cycles[0]) == 0:
        return np.empty(0, np.int64), np.empty(0)
    place = np.minimum(np.searchsorted(cycles[0], events[1]), len(cycles[0]) - 1)
    known = cycles[0][place] == events[1]
    return events[0][known], cycles[1][place[known]]


def _sorted_columns(
    file: Place, key: str, value: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Two columns of a table in the order of the first; None where it lacks one."""
    if not file.exists():
        return None
    with opened_table(file) as opened:
        if not {key, value} <= set(opened.schema_arrow.names):
            return None
        table = opened.read(columns=[key, value]).sort_by(key)
    return table[key].to_numpy(), table[value].to_numpy()


def _column(table: pa.Table, name: str, kind: pa.DataType) -> Any:
    """A column as another type; null where the table has none."""
    return table[name].cast(kind) if name in table.column_names else pa.nulls(len(table), kind)


@attrs.frozen
class _Counter:
    """Counts deliveries by value, row group by row group."""

    groups: Sequence[_Group]
    with_delays: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from counted(self.groups[number].deliveries(self.with_delays)).to_batches()


@attrs.frozen
class _Delays:
    """The delays of all deliveries."""

    groups: Sequence[_Group]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                table = self.groups[number].deliveries(with_delays=True)
                chosen = table.select(["system", "delay"]).drop_null()
                yield from chosen.combine_chunks().to_batches()


def counted(deliveries: pa.Table) -> pa.Table:
    """How often each row comes: a table of `COUNT_SCHEMA`."""
    names = COUNT_SCHEMA.names[:-1]
    found = deliveries.group_by(names, use_threads=False).aggregate([([], "count_all")])
    return (
        found.rename_columns({"count_all": "count"}).select(COUNT_SCHEMA.names).cast(COUNT_SCHEMA)
    )


def _row_groups(system: SystemTables) -> int:
    with opened_table(system.folder / "deliveries.parquet") as opened:
        return int(opened.metadata.num_row_groups)


def _have_few_delays(groups: Sequence[_Group]) -> bool:
    """Whether the first row group of each system has few different delays."""
    first = {group.number: group for group in reversed(groups)}
    tables = (group.deliveries(with_delays=True) for group in first.values())
    return all(pc.count_distinct(table["delay"]).as_py() <= _FEW * len(table) for table in tables)


def _read(session: Any, groups: Sequence[_Group], reader: Any, schema: Any = COUNT_SCHEMA) -> Any:
    """What a reader makes of row groups, as a data frame."""
    from pyspark.sql.pandas.types import from_arrow_schema

    tasks = min(len(groups), _TASKS_A_SLOT * slots(session))
    numbers = session.range(0, len(groups), 1, tasks)
    return numbers.mapInArrow(reader, from_arrow_schema(schema))


def _exact(counts: Any) -> pa.Table:
    from pyspark.sql.pandas.types import from_arrow_schema

    made = counts.groupBy("system").applyInArrow(_rows_of_counts, from_arrow_schema(ROW_SCHEMA))
    return _sorted(made.toArrow())


def _sketched(session: Any, groups: Sequence[_Group]) -> pa.Table:
    """Hops exactly, percentiles of delays by sketches."""
    from pyspark.sql import functions as f

    tables = [_exact(_read(session, groups, _Counter(groups, with_delays=False)))]
    schema = pa.schema([COUNT_SCHEMA.field("system"), COUNT_SCHEMA.field("delay")])
    wanted = [per_cent / 100 for per_cent in (*_CENTILES, *PER_CENTS.tolist())]
    sketches = _read(session, groups, _Delays(groups), schema).groupBy("system")
    for found in sketches.agg(
        f.percentile_approx("delay", wanted, SKETCH_ACCURACY).alias("centiles"),
        f.avg("delay").alias("mean"),
        f.max("delay").alias("most"),
    ).collect():
        rows = [Row(MEASURE, "delay_mean_s", 0.0, found["mean"])]
        for per_cent, value in zip(_CENTILES, found["centiles"], strict=False):
            name = "delay_max_s" if per_cent == 100 else f"delay_p{per_cent}_s"
            rows.append(Row(MEASURE, name, 0.0, found["most"] if per_cent == 100 else value))
        curve = found["centiles"][len(_CENTILES) :]
        for per_cent, value in zip(PER_CENTS.tolist(), curve, strict=True):
            rows.append(Row(CDF, "delay", float(per_cent), value))
        tables.append(as_table(found["system"], rows, SKETCH))
    return _sorted(pa.concat_tables(tables))


def _rows_of_counts(counts: pa.Table) -> pa.Table:
    """What the counts of one system tell."""
    columns: dict[str, npt.NDArray[Any]] = {
        name: pc.cast(counts[name], pa.float64()).to_numpy(zero_copy_only=False)
        for name in ("hops", "tree_hops", "delay", "count")
    }
    rows = list(count_rows(columns))
    return as_table(counts["system"][0].as_py(), rows, EXACT)


def count_rows(columns: Mapping[str, npt.NDArray[Any]]) -> Iterator[Row]:
    """Measures and distributions from counts by value; NaN stands for values that are missing."""
    numbers = columns["count"]
    yield Row(MEASURE, "deliveries", 0.0, float(numbers.sum()))
    names = {
        "hops": ("path_length", "", "path length"),
        "tree_hops": ("tree_length", "", "tree length"),
        "delay": ("delay", "_s", "delay"),
    }
    for column, (measure, unit, curve) in names.items():
        values, times = _merged(columns[column].astype(np.float64), numbers)
        if len(values) == 0:
            continue
        mean = float((values * times).sum() / times.sum())
        yield Row(MEASURE, f"{measure}_mean{unit}", 0.0, mean)
        for per_cent in _CENTILES:
            name = "max" if per_cent == 100 else f"p{per_cent}"
            value = counted_percentile(values, times, per_cent)
            yield Row(MEASURE, f"{measure}_{name}{unit}", 0.0, value)
        for per_cent in PER_CENTS.tolist():
            value = counted_percentile(values, times, per_cent)
            yield Row(CDF, curve, float(per_cent), value)


def _merged(
    values: npt.NDArray[np.float64], numbers: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Different values, ascending, and how often each comes; those that are missing left out."""
    there = ~np.isnan(values)
    different, place = np.unique(values[there], return_inverse=True)
    times = np.zeros(len(different), np.int64)
    np.add.at(times, place, numbers[there].astype(np.int64))
    return different, times


def counted_percentile(
    values: npt.NDArray[np.float64], times: npt.NDArray[np.int64], per_cent: int
) -> float:
    """`summary.percentile` of values that come several times each, ascending."""
    if len(values) == 0:
        return percentile(values, per_cent)
    below = np.cumsum(times)
    # The first value that so many per cent do not exceed; in whole numbers, so that it is exact.
    place = int(np.searchsorted(below * 100, per_cent * int(below[-1]), side="left"))
    return float(values[min(place, len(values) - 1)])


def as_table(system: int, rows: Sequence[Row], method: str) -> pa.Table:
    """Rows of one system as a table of `ROW_SCHEMA`."""
    parts, names, xs, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "system": pa.array([system] * len(rows), pa.int32()),
            "part": pa.array(parts, pa.string()),
            "name": pa.array(names, pa.string()),
            "x": pa.array(xs, pa.float64()),
            "value": pa.array(values, pa.float64()),
            "method": pa.array([method] * len(rows), pa.string()),
        },
        schema=ROW_SCHEMA,
    )


def _sorted(table: pa.Table) -> pa.Table:
    keys = [(name, "ascending") for name in ("system", "part", "name", "x")]
    return table.cast(ROW_SCHEMA).sort_by(keys)
