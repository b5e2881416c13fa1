"""Path lengths and delays of all deliveries, the one table that is too large for one process.

Tasks read row groups and count deliveries by value: how many took so many hops and so long. From
these counts every percentile follows exactly, and there are few of them as long as delays are whole
rounds: then a task puts those of a system together. Of a system of many different delays these stay
where they are, and are found as quantities of workloads are (see `quantiles`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from gossamer.spark.crunch.quantiles import distribution
from gossamer.spark.handover import Mark
from gossamer.spark.session import slots
from gossamer.spark.storage.frames import by_tasks, opened_table, unreadable

EXACT: Final = "exact"
# Counts of a system up to which one task puts them together.
_MOST_TOGETHER: Final = 1 << 20
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
# The order of such rows.
IN_ORDER: Final = [(name, "ascending") for name in ("system", "part", "name", "x")]


def delivery_rows(session: Any, systems: Sequence[SystemTables]) -> pa.Table:
    """Measures and distributions of the deliveries of systems: a table of `ROW_SCHEMA`.

    What is found of a system does not depend on the others.

    Args:
        session: of Spark. All its workers need to see the tables.
        systems: whose; those without any deliveries have no rows in the result.
    """
    groups = [
        _Group(number=one.number, folder=one.folder, mark=one.mark, place=place)
        for one in systems
        for place in range(one.row_groups)
    ]
    if not groups:
        return ROW_SCHEMA.empty_table()
    tasks = _TASKS_A_SLOT * slots(session)
    counts = by_tasks(session, groups, _Group.counts, COUNT_SCHEMA, tasks).persist()
    try:
        sizes = counts.groupBy("system").count().collect()
        large = sorted(row["system"] for row in sizes if row["count"] > _MOST_TOGETHER)
        is_large = counts["system"].isin(large)
        tables = [_together(counts.where(~is_large))]
        if large:
            tables.append(_together(_without_delays(counts.where(is_large))))
        tables += [_delays(counts.where(counts["system"] == one), one) for one in large]
    finally:
        counts.unpersist()
    return pa.concat_tables(tables).sort_by(IN_ORDER)


@attrs.frozen(kw_only=True)
class _Group:
    """One row group of a system's table of deliveries."""

    number: int
    folder: Place
    mark: Mark
    place: int

    def counts(self) -> Iterator[pa.RecordBatch]:
        """How often hops, tree hops and delay come together; null where one is not known."""
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
        columns = [pa.array(np.full(rows, self.number, np.int32)), *hops, self._delays(read)]
        yield from counted(pa.table(columns, names=COUNT_SCHEMA.names[:-1])).to_batches()

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


def counted(deliveries: pa.Table) -> pa.Table:
    """How often each row comes: a table of `COUNT_SCHEMA`."""
    names = COUNT_SCHEMA.names[:-1]
    found = deliveries.group_by(names, use_threads=False).aggregate([([], "count_all")])
    return (
        found.rename_columns({"count_all": "count"}).select(COUNT_SCHEMA.names).cast(COUNT_SCHEMA)
    )


def _together(counts: Any) -> pa.Table:
    """What the counts of systems tell, those of each put together by a task."""
    from pyspark.sql.pandas.types import from_arrow_schema

    made = counts.groupBy("system").applyInArrow(_rows_of_counts, from_arrow_schema(ROW_SCHEMA))
    return made.toArrow().cast(ROW_SCHEMA)


def _without_delays(counts: Any) -> Any:
    """The counts by hops alone."""
    added = counts.groupBy("system", "hops", "tree_hops").agg({"count": "sum"})
    none = "cast(null as double) as delay"
    return added.selectExpr("system", "hops", "tree_hops", none, "`sum(count)` as count")


def _delays(counts: Any, system: int) -> pa.Table:
    """What the delays of one system tell."""
    known = counts.where("delay is not null and not isnan(delay)")
    found = distribution(known.selectExpr("delay as value", "count as times"))
    if found is None:
        return ROW_SCHEMA.empty_table()
    rows = list(column_rows("delay", "delay", found.mean, found.centiles, unit="_s"))
    return as_table(system, rows, EXACT)


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
        centiles = [counted_percentile(values, times, one) for one in PER_CENTS.tolist()]
        yield from column_rows(measure, curve, mean, centiles, unit=unit)


def column_rows(
    measure: str,
    curve: str,
    mean: float,
    centiles: Sequence[float],
    *,
    chosen: Sequence[int] = _CENTILES,
    unit: str = "",
) -> Iterator[Row]:
    """The rows of a column of which the mean and every per cent are known."""
    yield Row(MEASURE, f"{measure}_mean{unit}", 0.0, mean)
    for per_cent in chosen:
        name = "max" if per_cent == 100 else f"p{per_cent}"
        yield Row(MEASURE, f"{measure}_{name}{unit}", 0.0, centiles[per_cent])
    for per_cent, value in zip(PER_CENTS.tolist(), centiles, strict=True):
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
