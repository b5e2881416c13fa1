"""What a workload is like, from its tables: popularity, sizes, matches per event, load.

Every kind of workload has rankings (what is chosen how often, most popular first) and quantities
(how they are distributed), listed below by table and in Spark's SQL. Ranges on hashed attributes
have besides how many subscriptions an event matches, and how evenly events fall on the domain of
each attribute, which is the load of those who look after a part of it.

Counts and percentiles are exact; executors find them (see `quantiles`), and the driver sees how
many things were chosen how often, but not which. Matches are counted for all events of one
attribute up to as many rows as are wanted exactly, and else for a sample of events. Of ranges
there are the most rows: tasks read their files themselves (see below), other kinds go by Spark's
SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.protocol.peer.space.ring import RING
from gossamer.sim.study.records import (
    LORENZ,
    MEASURE,
    PER_CENTS,
    RANKS,
    Row,
    gini,
    lorenz,
    percentile_place,
)
from gossamer.sim.study.records import mean as mean_of
from gossamer.spark.crunch.deliveries import EXACT, ROW_SCHEMA, as_table, column_rows
from gossamer.spark.crunch.folders import WORKLOADS, SystemTables
from gossamer.spark.crunch.matches import POINTS, Rows, Scan, matched_by_all, matched_by_some
from gossamer.spark.crunch.quantiles import (
    COUNTED,
    Tallies,
    count_columns,
    distribution,
    tallies_of,
)
from gossamer.spark.storage.frames import opened_table, read_frame

# The tables of a workload of ranges on hashed attributes, as tasks read and count them.


# The kind of these workloads.
RANGES: Final = "vinifera"
_SUBSCRIPTIONS, _EVENTS = "subscriptions", "events"

Ints = npt.NDArray[np.int64]


@attrs.frozen
class Ranges:
    """Subscriptions and events of one workload.

    Attributes:
        session: of Spark. All its workers need to see the tables.
        system: the workload.
    """

    session: Any
    system: SystemTables

    @property
    def tables(self) -> tuple[str, ...]:
        """Of both kinds of rows."""
        return _SUBSCRIPTIONS, _EVENTS

    @property
    def attributes(self) -> int:
        """How many there are."""
        with opened_table((self.system.folder / _EVENTS).tables()[0]) as first:
            names = first.schema_arrow.names
        return sum(name.startswith("value_") for name in names)

    def places(self, table: str) -> Any:
        """A frame of Spark: a row for each popular place near some rows, and their ``count``."""
        found = self._scan(table, ["place"], _near_places).mapInArrow(count_columns, COUNTED)
        return found.groupBy("value").agg({"times": "sum"}).withColumnRenamed("sum(times)", "count")

    def wanted(self) -> Ints:
        """int64[A]: how many subscriptions want something of each attribute."""
        constrained = self._scan(_SUBSCRIPTIONS, ["constrained"], _wanting)
        found = constrained.mapInArrow(count_columns, COUNTED).toArrow()
        bits, times = found["value"].to_numpy(), found["times"].to_numpy()
        return np.array([times[bits >> a & 1 == 1].sum() for a in range(self.attributes)], np.int64)

    def loads(self, parts: int) -> list[Ints]:
        """By attribute, how many events lie in each of equal parts of its domain that has any."""
        columns = [f"value_{a}" for a in range(self.attributes)]
        counts = self._scan(_EVENTS, columns, _PartsOf(parts)).mapInArrow(count_columns, COUNTED)
        added = counts.groupBy("name", "value").agg({"times": "sum"}).toArrow()
        names, times = added["name"], added["sum(times)"].to_numpy()
        return [times[pc.equal(names, name).to_numpy()] for name in columns]

    def widths(self, a: int) -> Scan:
        """How wide ranges are on an attribute, as a share of its domain."""
        columns = ["constrained", f"low_{a}", f"high_{a}"]
        return self._scan(_SUBSCRIPTIONS, columns, _widths)

    def points(self) -> Scan:
        """Ends of ranges and values of events of the only attribute, see `matches.POINTS`."""
        ends = self._rows(_SUBSCRIPTIONS, ["constrained", "low_0", "high_0"], _ends)
        return self._scan_of(ends, self._rows(_EVENTS, ["value_0"], _values))

    def boxes(self) -> Scan:
        """The ranges ``low_a`` to ``high_a`` of subscriptions that want something."""
        ends = [f"{end}_{a}" for a in range(self.attributes) for end in ("low", "high")]
        return self._scan(_SUBSCRIPTIONS, ["constrained", *ends], _wanting)

    def some_events(self, events: Any, most: int) -> Ints:
        """int64[k, A]: the values of the first events, of a frame of Spark."""
        first = events.where(f"event < {most}").orderBy("event").toArrow()
        return np.stack([first[f"value_{a}"].to_numpy() for a in range(self.attributes)], axis=1)

    def _rows(
        self, table: str, columns: Sequence[str], derive: Callable[[pa.RecordBatch], pa.RecordBatch]
    ) -> Rows:
        return Rows((self.system.folder / table).tables(), columns, derive)

    def _scan(
        self, table: str, columns: Sequence[str], derive: Callable[[pa.RecordBatch], pa.RecordBatch]
    ) -> Scan:
        return self._scan_of(self._rows(table, columns, derive))

    def _scan_of(self, *parts: Rows) -> Scan:
        return Scan(self.session, self.system.mark, parts)


# What tasks make of batches of the tables.


def _wanting(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Subscriptions that want something."""
    return batch.filter(pc.greater_equal(batch["constrained"], 0))


def _near_places(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pc.greater_equal(batch["place"], 0))


def _widths(batch: pa.RecordBatch) -> pa.RecordBatch:
    _, low, high = _wanting(batch).columns
    widths = (high.to_numpy() - low.to_numpy()) / float(RING)
    return pa.RecordBatch.from_arrays([pa.array(widths)], ["value"])


def _ends(batch: pa.RecordBatch) -> pa.RecordBatch:
    _, low, high = _wanting(batch).columns
    return pa.RecordBatch.from_arrays([low, pa.nulls(len(low), pa.int64()), high], list(POINTS))


def _values(batch: pa.RecordBatch) -> pa.RecordBatch:
    none = pa.nulls(len(batch), pa.int64())
    return pa.RecordBatch.from_arrays([none, batch.column(0), none], list(POINTS))


@attrs.frozen
class _PartsOf:
    """The part of the domain that each value lies in, of so many."""

    parts: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        size = RING // self.parts + 1
        columns = [pa.array(column.to_numpy() // size) for column in batch.columns]
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)


SAMPLE: Final = "sample"
# Events whose matches are counted where not all are.
SAMPLED_EVENTS: Final = 1_000
# Parts of an attribute's domain, between which load is compared.
_PARTS: Final = 1_000
# Ranks of a ranking that are kept, evenly on a logarithmic scale.
_MOST_RANKS: Final = 200
_CENTILES: Final = (50, 90, 99, 100)


# Table and expression, by name.
Expressions = Mapping[str, tuple[str, str]]

_RANKINGS: Final[Mapping[str, Expressions]] = MappingProxyType(
    {
        "siena": {
            "attributes of subscriptions": ("subscriptions", "explode(names)"),
            "attributes of events": ("events", "explode(names)"),
            "operators": ("subscriptions", "explode(operators)"),
        },
        "covering": {"roots": ("subscriptions", "root")},
        "keywords": {
            "brokers of keywords": ("subscriptions", "explode(brokers)"),
            "keywords of documents": ("events", "explode(keywords)"),
            "hosts of documents": ("events", "host"),
        },
        "commuters": {
            "homes": ("subscriptions", "home"),
            "brokers moved to": ("moves", "`to`"),
            "publishers": ("events", "publisher"),
        },
        "quotes": {
            "symbols of subscriptions": ("subscriptions", "symbol"),
            "symbols of quotes": ("events", "symbol"),
        },
        "churn": {"nodes by sessions": ("sessions", "node")},
    }
)
_QUANTITIES: Final[Mapping[str, Expressions]] = MappingProxyType(
    {
        "siena": {
            "constraints a subscription": ("subscriptions", "size(names)"),
            "attributes an event": ("events", "size(names)"),
        },
        "covering": {"x of events": ("events", "x"), "y of events": ("events", "y")},
        "keywords": {
            "brokers a keyword": ("subscriptions", "size(brokers)"),
            "keywords a document": ("events", "size(keywords)"),
            "size of a document": ("events", "`size`"),
        },
        "commuters": {
            "hour of a move": ("moves", "`at` / 3600e6"),
            "hour of an event": ("events", "`at` / 3600e6"),
        },
        "quotes": {
            "width of a price range in dollars": ("subscriptions", "high - low"),
            "closing price in dollars": ("events", "close"),
        },
        "churn": {"hours of a session": ("sessions", "(end_s - start_s) / 3600")},
    }
)


def workload_rows(session: Any, systems: Sequence[SystemTables], exact_up_to: int) -> pa.Table:
    """Measures and curves of the workloads among what is crunched: a table of `ROW_SCHEMA`.

    Args:
        session: of Spark. All its workers need to see the tables.
        systems: those that are no workloads have no rows in the result.
        exact_up_to: rows up to which matches are counted for all events.
    """
    found = [
        as_table(one.number, rows, method)
        for one in systems
        if one.kind == WORKLOADS
        for method, rows in _Workload(session, one, exact_up_to).parts()
    ]
    return pa.concat_tables(found) if found else ROW_SCHEMA.empty_table()


Part = tuple[str, list[Row]]


@attrs.frozen
class _Workload:
    """One workload; every part of what is told of it has one method."""

    session: Any
    system: SystemTables
    exact_up_to: int

    def parts(self) -> Iterator[Part]:
        """All that is told of it."""
        kind = self.system.system
        counts = self.system.table_rows
        yield EXACT, [Row(MEASURE, name, 0.0, float(rows)) for name, rows in counts.items()]
        for name, (table, expression) in _RANKINGS.get(kind, {}).items():
            counts = self._values(table, expression).groupBy("value").count()
            yield EXACT, list(ranking(name, tallies_of(counts)))
        for name, (table, expression) in _QUANTITIES.get(kind, {}).items():
            yield _quantity(name, self._values(table, expression))
        if kind == RANGES:
            yield from self._ranges(Ranges(self.session, self.system))

    def _read(self, table: str) -> Any:
        folder = self.system.folder / table
        with opened_table(folder.tables()[0]) as first:
            schema = first.schema_arrow.remove_metadata()
        return read_frame(self.session, folder, schema)

    def _values(self, table: str, expression: str) -> Any:
        frame = self._read(table).selectExpr(f"{expression} as value")
        return frame.where("value is not null")

    def _ranges(self, ranges: Ranges) -> Iterator[Part]:
        """What is told of ranges on hashed attributes."""
        for table in ranges.tables:
            counts = ranges.places(table)
            yield EXACT, list(ranking(f"places of {table}", tallies_of(counts)))
        wanted, loads = ranges.wanted(), ranges.loads(_PARTS)
        for a in range(ranges.attributes):
            yield _quantity(f"width on attribute {a}", ranges.widths(a))
            rows = [Row(MEASURE, f"subscriptions_on_attribute_{a}", 0.0, float(wanted[a]))]
            rows += spread(f"events over the domain of attribute {a}", loads[a])
            yield EXACT, rows
        name = "subscriptions that an event matches"
        if ranges.attributes == 1 and max(self.system.table_rows.values()) <= self.exact_up_to:
            with matched_by_all(ranges.points()) as matched:
                yield _quantity(name, matched)
            return
        points = ranges.some_events(self._read("events"), SAMPLED_EVENTS)
        yield SAMPLE, list(quantity(name, matched_by_some(ranges.boxes(), points)))


def _quantity(name: str, values: Any) -> Part:
    """How a quantity is distributed."""
    found = distribution(values)
    if found is None:
        return EXACT, []
    return EXACT, list(quantity_of(name, found.mean, found.centiles))


def _measure(name: str) -> str:
    return name.replace(" ", "_")


def ranking(name: str, tallies: Tallies) -> Iterator[Row]:
    """How unevenly choices fall, and the share of each rank; nothing of no choices."""
    if len(tallies.counts) == 0:
        return
    different, choices = tallies.different, tallies.choices
    first = float(tallies.of_ranks(np.ones(1, np.int64))[0] / choices)
    yield Row(MEASURE, f"{_measure(name)}_different", 0.0, float(different))
    yield Row(MEASURE, f"{_measure(name)}_first_share", 0.0, first)
    yield Row(MEASURE, f"{_measure(name)}_gini", 0.0, tallies.gini())
    spaced = np.geomspace(1, different, min(different, _MOST_RANKS)).round()
    ranks = np.unique(spaced.astype(np.int64))
    for rank, count in zip(ranks.tolist(), tallies.of_ranks(ranks).tolist(), strict=True):
        yield Row(RANKS, name, float(rank), count / choices)


def spread(name: str, counts: Ints) -> Iterator[Row]:
    """How evenly choices fall on the parts of a domain, those without any included."""
    if len(counts) == 0:
        return
    load = np.zeros(_PARTS, np.int64)
    load[: len(counts)] = counts
    yield Row(MEASURE, f"{_measure(name)}_gini", 0.0, gini(load))
    for share, part in zip(PER_CENTS / 100, lorenz(load), strict=True):
        yield Row(LORENZ, name, float(share), float(part))


def quantity(name: str, values: npt.NDArray[Any]) -> Iterator[Row]:
    """Mean and percentiles of values; nothing of none."""
    if len(values):
        ordered = np.sort(values.astype(np.float64))
        places = [percentile_place(len(ordered), per_cent) for per_cent in PER_CENTS.tolist()]
        centiles = ordered[places].tolist()
        yield from quantity_of(name, mean_of(ordered), centiles)


def quantity_of(name: str, mean: float, centiles: Sequence[float]) -> Iterator[Row]:
    """The rows of a quantity of which the mean and every per cent are known."""
    yield from column_rows(_measure(name), name, mean, centiles, chosen=_CENTILES)
