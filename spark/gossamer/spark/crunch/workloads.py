"""What a workload is like, from its tables: popularity, sizes, matches per event, load.

Every kind of workload has rankings (what is chosen how often, most popular first) and quantities
(how they are distributed), listed below by table and in Spark's SQL. Ranges on hashed attributes
have besides how many subscriptions an event matches, and how evenly events fall on the domain of
each attribute, which is the load of those who look after a part of it.

Counts and percentiles are exact; executors find them (see `counting`), and the driver sees how many
things were chosen how often, but not which. Matches are counted for all events of one attribute up
to as many rows as are wanted exactly, and else for a sample of events. Of ranges there are the most
rows: tasks read their files themselves (see `ranges`), other kinds go by Spark's SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gossamer.sim.study.statistics import (
    CDF,
    LORENZ,
    MEASURE,
    PER_CENTS,
    RANKS,
    Row,
    gini,
    lorenz,
    percentile_place,
)
from gossamer.sim.study.statistics import mean as mean_of
from gossamer.spark.crunch.counting.matches import matched_by_all, matched_by_some
from gossamer.spark.crunch.counting.quantiles import distribution
from gossamer.spark.crunch.counting.tallies import Tallies, tallies_of
from gossamer.spark.crunch.deliveries import EXACT, ROW_SCHEMA, as_table
from gossamer.spark.crunch.folders import SystemTables
from gossamer.spark.crunch.ranges import RANGES, Ranges
from gossamer.spark.crunch.tables import WORKLOADS
from gossamer.spark.storage.frames import opened_table, read_frame

SAMPLE: Final = "sample"
# Events whose matches are counted where not all are.
SAMPLED_EVENTS: Final = 1_000
# Parts of an attribute's domain, between which load is compared.
_PARTS: Final = 1_000
# Ranks of a ranking that are kept, evenly on a logarithmic scale.
_MOST_RANKS: Final = 200
_CENTILES: Final = (50, 90, 99)

Ints = npt.NDArray[np.int64]
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
    yield Row(MEASURE, f"{_measure(name)}_mean", 0.0, float(mean))
    for per_cent in _CENTILES:
        yield Row(MEASURE, f"{_measure(name)}_p{per_cent}", 0.0, float(centiles[per_cent]))
    yield Row(MEASURE, f"{_measure(name)}_max", 0.0, float(centiles[-1]))
    for per_cent, value in zip(PER_CENTS.tolist(), centiles, strict=True):
        yield Row(CDF, name, float(per_cent), float(value))
