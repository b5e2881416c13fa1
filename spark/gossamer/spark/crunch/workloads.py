"""What a workload is like, from its tables: popularity, sizes, matches per event, load.

Every kind of workload has rankings (what is chosen how often, most popular first) and quantities
(how they are distributed), listed below by table and in Spark's SQL. Ranges on hashed attributes
have besides how many subscriptions an event matches, and how evenly events fall on the domain of
each attribute, which is the load of those who look after a part of it.

Counts and percentiles are exact; executors find them (see `quantiles`), and the driver sees how
many things were chosen how often, but not which. Matches are counted for all events of one
attribute up to as many rows as are wanted exactly, and else for a sample of events (see `matches`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gossamer.protocol.peer.space.ring import RING
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
from gossamer.spark.crunch.deliveries import EXACT, ROW_SCHEMA, as_table
from gossamer.spark.crunch.folders import SystemTables
from gossamer.spark.crunch.matches import matched_by_all, matched_by_some
from gossamer.spark.crunch.quantiles import distribution
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
        "vinifera": {
            "places of subscriptions": ("subscriptions", "nullif(place, -1)"),
            "places of events": ("events", "nullif(place, -1)"),
        },
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


@attrs.frozen(eq=False)
class Tallies:
    """How often things were chosen, without the things: few numbers of however many things.

    Attributes:
        counts: int64[k], ascending and different.
        times: int64[k], how many things were chosen so often.
    """

    counts: Ints
    times: Ints

    @property
    def different(self) -> int:
        """How many things were chosen at all."""
        return int(self.times.sum())

    @property
    def choices(self) -> int:
        """How many choices there were."""
        return int(self.counts @ self.times)

    def of_ranks(self, ranks: Ints) -> Ints:
        """How often the things of these ranks were chosen; the most popular has rank 1."""
        last = np.cumsum(self.times[::-1])
        return np.asarray(self.counts[::-1][np.searchsorted(last, ranks)], np.int64)

    def gini(self) -> float:
        """Gini's coefficient of how often each thing was chosen, see `statistics.gini`."""
        last = np.cumsum(self.times).tolist()
        # In Python's numbers, which do not overflow: the sum of ranks times counts.
        ranked = sum(
            count * ((end - times + 1 + end) * times // 2)
            for count, times, end in zip(
                self.counts.tolist(), self.times.tolist(), last, strict=True
            )
        )
        different = self.different
        return float(2 * ranked / (different * self.choices) - (different + 1) / different)


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
            yield EXACT, list(ranking(name, self._tallies(table, expression)))
        for name, (table, expression) in _QUANTITIES.get(kind, {}).items():
            yield self._quantity(name, self._values(table, expression))
        attributes = self._attributes()
        for a in range(attributes):
            yield from self._attribute(a)
        if attributes:
            yield self._matches(attributes)

    def _read(self, table: str) -> Any:
        folder = self.system.folder / table
        with opened_table(folder.tables()[0]) as first:
            schema = first.schema_arrow.remove_metadata()
        return read_frame(self.session, folder, schema)

    def _attributes(self) -> int:
        """How many hashed attributes ranges are asked for on; 0 of other kinds."""
        if self.system.system != "vinifera":
            return 0
        return sum(name.startswith("value_") for name in self._read("events").columns)

    def _tallies(self, table: str, expression: str) -> Tallies:
        """How often values come, and how many come so often; null does not count."""
        counts = self._values(table, expression).groupBy("value").count()
        found = counts.groupBy("count").agg({"*": "count"}).toArrow().sort_by("count")
        return Tallies(*(found[name].to_numpy() for name in ("count", "count(1)")))

    def _loads(self, table: str, expression: str) -> Ints:
        """How many rows each part of a domain has, of those parts that have any."""
        counts = self._values(table, expression).groupBy("value").count()
        return np.asarray(counts.toArrow()["count"].to_numpy(), np.int64)

    def _values(self, table: str, expression: str) -> Any:
        frame = self._read(table).selectExpr(f"{expression} as value")
        return frame.where("value is not null")

    def _quantity(self, name: str, values: Any) -> Part:
        """How a quantity is distributed."""
        found = distribution(values)
        if found is None:
            return EXACT, []
        return EXACT, list(quantity_of(name, found.mean, found.centiles))

    def _attribute(self, a: int) -> Iterator[Part]:
        """Widths of ranges on an attribute, and how evenly subscriptions and events lie on it."""
        width = f"case when constrained >= 0 then (high_{a} - low_{a}) / {RING}D end"
        name = f"width on attribute {a}"
        yield self._quantity(name, self._values("subscriptions", width))
        wanted = f"case when constrained >= 0 and (constrained & {1 << a}) > 0 then 1 end"
        number = self._values("subscriptions", wanted).count()
        rows = [Row(MEASURE, f"subscriptions_on_attribute_{a}", 0.0, float(number))]
        part = f"cast(value_{a} div {RING // _PARTS + 1} as int)"
        rows += spread(f"events over the domain of attribute {a}", self._loads("events", part))
        yield EXACT, rows

    def _matches(self, attributes: int) -> Part:
        """How many subscriptions an event matches."""
        name = "subscriptions that an event matches"
        subscriptions = self._read("subscriptions").where("constrained >= 0")
        events = self._read("events")
        rows = self.system.table_rows
        if attributes == 1 and max(rows.values(), default=0) <= self.exact_up_to:
            with matched_by_all(subscriptions, events) as matched:
                return self._quantity(name, matched)
        chosen = events.where(f"event < {SAMPLED_EVENTS}").orderBy("event").toArrow()
        points = np.stack([chosen[f"value_{a}"].to_numpy() for a in range(attributes)], axis=1)
        return SAMPLE, list(quantity(name, matched_by_some(subscriptions, points)))


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
