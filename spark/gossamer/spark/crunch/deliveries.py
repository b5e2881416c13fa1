"""Path lengths and delays of all deliveries, the one table that is too large for one process.

Deliveries are counted by value: how many took so many hops and so long. From these counts every
percentile follows exactly, and there are few of them as long as delays are whole rounds. Where
there are many deliveries of many different delays, percentiles of delays are sketched (Greenwald
and Khanna, as Spark has it), of a rank that is wrong by less than one in ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gossamer.sim.summary import percentile
from gossamer.spark.crunch.folders import SystemTables
from gossamer.spark.crunch.small import CDF, MEASURE, PER_CENTS, Row
from gossamer.spark.crunch.tables import BROKERS, PEERS

EXACT, SKETCH = "exact", "sketch"

# Different delays of a system up to which counting them is cheap, however many deliveries.
_FEW_DELAYS: Final = 1_000_000
_SKETCH_ACCURACY: Final = 10_000
_CENTILES: Final = (50, 90, 95, 99, 100)
_ROWS: Final = "system int, part string, name string, x double, value double, method string"

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


def delivery_rows(session: Any, systems: Sequence[SystemTables], exact_up_to: int) -> pa.Table:
    """Measures and distributions of the deliveries of systems: a table of `ROW_SCHEMA`.

    Args:
        session: of Spark.
        systems: of kinds that have deliveries; those without any have no rows in the result.
        exact_up_to: deliveries of all systems up to which every delay is counted.
    """
    frames = [
        frame
        for kind, read in ((PEERS, _peer_deliveries), (BROKERS, _broker_deliveries))
        if (frame := read(session, [one for one in systems if one.kind == kind and one.deliveries]))
        is not None
    ]
    if not frames:
        return ROW_SCHEMA.empty_table()
    deliveries = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    if sum(system.deliveries for system in systems) <= exact_up_to or _are_few(deliveries):
        return _exact(deliveries)
    return _sketched(deliveries)


def _peer_deliveries(session: Any, systems: Sequence[SystemTables]) -> Any:
    from pyspark.sql import functions as f

    if not systems:
        return None
    schema = "event bigint, hops bigint, tree_hops bigint, time_s double"
    deliveries = _read(session, systems, "deliveries", schema)
    events = _read(session, systems, "events", "event bigint, time_s double")
    published = events.select("system", "event", f.col("time_s").alias("published_s"))
    return deliveries.join(published, ["system", "event"], "left").select(
        "system",
        f.col("hops").cast("int").alias("hops"),
        f.col("tree_hops").cast("int").alias("tree_hops"),
        (f.col("time_s") - f.col("published_s")).alias("delay"),
    )


def _broker_deliveries(session: Any, systems: Sequence[SystemTables]) -> Any:
    from pyspark.sql import functions as f

    if not systems:
        return None
    deliveries = _read(session, systems, "deliveries", "delay_s double")
    none = f.lit(None).cast("int")
    return deliveries.select(
        "system", none.alias("hops"), none.alias("tree_hops"), f.col("delay_s").alias("delay")
    )


def _read(session: Any, systems: Sequence[SystemTables], table: str, schema: str) -> Any:
    """One table of many systems, with a column that tells which system a row is of.

    Columns that a file lacks are null.
    """
    from pyspark.sql import functions as f

    files = {(system.folder / f"{table}.parquet").as_uri(): system.number for system in systems}
    read = session.read.schema(schema).parquet(*files)
    known = session.createDataFrame(list(files.items()), "file string, system int")
    tagged = read.withColumn("file", f.col("_metadata.file_path"))
    return tagged.join(f.broadcast(known), "file").drop("file")


def _are_few(deliveries: Any) -> bool:
    """Whether no system has many different delays."""
    from pyspark.sql import functions as f

    different = deliveries.groupBy("system").agg(f.approx_count_distinct("delay").alias("n"))
    most = different.agg(f.max("n")).first()[0]
    return most is None or most <= _FEW_DELAYS


def _counted(deliveries: Any) -> Any:
    from pyspark.sql import functions as f

    return deliveries.groupBy("system", "hops", "tree_hops", "delay").agg(
        f.count(f.lit(1)).alias("count")
    )


def _exact(deliveries: Any) -> pa.Table:
    counted = _counted(deliveries)
    made = counted.groupBy("system").applyInArrow(_rows_of_counts, _ROWS)
    return _sorted(made.toArrow())


def _sketched(deliveries: Any) -> pa.Table:
    """Hops exactly, percentiles of delays by sketches."""
    from pyspark.sql import functions as f

    none = f.lit(None).cast("double")
    hops = _exact(deliveries.withColumn("delay", none))
    wanted = [per_cent / 100 for per_cent in (*_CENTILES, *PER_CENTS.tolist())]
    sketches = deliveries.groupBy("system").agg(
        f.percentile_approx("delay", wanted, _SKETCH_ACCURACY).alias("centiles"),
        f.avg("delay").alias("mean"),
        f.max("delay").alias("most"),
    )
    tables = [hops]
    for found in sketches.collect():
        if found["centiles"] is None:
            continue
        # Ends are known exactly all the same.
        centiles = [*found["centiles"]]
        rows = [Row(MEASURE, "delay_mean_s", 0.0, found["mean"])]
        for per_cent, value in zip(_CENTILES, centiles, strict=False):
            name = "delay_max_s" if per_cent == 100 else f"delay_p{per_cent}_s"
            rows.append(Row(MEASURE, name, 0.0, found["most"] if per_cent == 100 else value))
        for per_cent, value in zip(PER_CENTS.tolist(), centiles[len(_CENTILES) :], strict=True):
            rows.append(Row(CDF, "delay", float(per_cent), value))
        tables.append(as_table(found["system"], rows, SKETCH))
    return _sorted(pa.concat_tables(tables))


def _rows_of_counts(counts: pa.Table) -> pa.Table:
    """What the counts of one system tell."""
    columns: dict[str, npt.NDArray[Any]] = {
        name: counts[name].to_numpy() for name in ("hops", "tree_hops", "delay", "count")
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
    """`gossamer.sim.summary.percentile` of values that come several times each, ascending."""
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
