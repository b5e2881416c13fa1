"""Checks of a workload after it was made: read back from its files, held against what was asked.

Every bound follows from the size of the sample: four standard errors, so that a sound workload
misses one in sixteen thousand times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gossamer.protocol.content.filters import parse
from gossamer.protocol.peer.space.ring import RING
from gossamer.sim.results.storage.place import Place
from gossamer.sim.row_tables.keywords import KeywordTables
from gossamer.sim.row_tables.kinds import RowWorkload
from gossamer.sim.row_tables.quotes import QuoteTables
from gossamer.sim.row_tables.subscriptions import CommuterRows, CoveringRows, SienaRows
from gossamer.sim.row_tables.table import fitted_exponent
from gossamer.sim.row_tables.vinifera import ChurnRows, ViniferaRows
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.studies.tree_brokers.siena import covering_degree
from gossamer.spark.storage.frames import read_frame

_ERRORS: Final = 4.0
# Of a share of the domain, when it is hashed.
_ROUNDING: Final = 1e-6
# Of the share of time online, where nodes do not come and go independently.
_SWING: Final = 0.05
# Roots whose covering degree is computed exactly, if they have so many subscriptions at most.
_ROOTS: Final = 20
_MOST_SAMPLED: Final = 5_000


@attrs.frozen(kw_only=True)
class Check:
    """One property of a workload.

    Attributes:
        name: of the property, in words.
        wanted: what was asked for.
        found: what is there; NaN, of too few rows to tell, is within any bounds.
        tolerance: by how much they may differ.
    """

    name: str
    wanted: float
    found: float
    tolerance: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether what is there is what was asked for."""
        return math.isnan(self.found) or abs(self.found - self.wanted) <= self.tolerance


def check_workload(session: Any, workload: RowWorkload, folder: Place) -> list[Check]:
    """The checks of a workload of any kind whose tables are in ``folder``."""
    schemas = {table.name: table.schema for table in workload.tables()}

    def read(name: str) -> Any:
        return read_frame(session, folder / name, schemas[name])

    found: list[Check] = []
    for kind, check in _CHECKS:
        if isinstance(workload, kind):
            found += check(workload, read)
    return found


def _row(frame: Any, **columns: Any) -> dict[str, Any]:
    """One row of aggregates."""
    values: dict[str, Any] = frame.agg(*(value.alias(name) for name, value in columns.items()))
    first = values.first()  # type: ignore[attr-defined]
    return {name: first[name] for name in columns}


def _share(name: str, wanted: float, hits: int | None, of: int) -> Check:
    """A check of a share of ``of`` independent draws."""
    found = (hits or 0) / of if of else math.nan
    error = math.sqrt(max(wanted * (1 - wanted), 1e-12) / max(of, 1))
    return Check(name=name, wanted=wanted, found=found, tolerance=_ERRORS * error + 1e-12)


def _zipf(name: str, wanted: float, frame: Any, column: str, places: int) -> Check:
    """A check of Zipf's exponent over the ranks in a column; negative ones do not count."""
    rows = frame.where(frame[column] >= 0).groupBy(column).count().collect()
    return _exponent(name, wanted, {row[column]: row["count"] for row in rows}, places)


def _exponent(name: str, wanted: float, counted: Mapping[int, int], places: int) -> Check:
    """A check of Zipf's exponent, of how often each rank comes."""
    counts = np.zeros(places, np.int64)
    for rank, count in counted.items():
        counts[rank] = count
    exponent, error = fitted_exponent(counts)
    return Check(name=name, wanted=wanted, found=exponent, tolerance=_ERRORS * error)


def _vinifera(workload: ViniferaRows, read: Callable[[str], Any]) -> Iterator[Check]:
    """One look at each table: all is counted by place, and -1 is where rows have none."""
    from pyspark.sql import functions as f

    spec = workload.spec
    tables = {"subscriptions": workload.subscriptions, "events": workload.events}
    extremes = Workload(spec, workload.seed).extreme_widths()
    near = odd = 0
    for table, rows in tables.items():
        frame = read(table)
        ends = [name for name in frame.columns if name.startswith(("low_", "high_", "value_"))]
        outside = f.lit(False)
        for name in ends:
            outside |= (f.col(name) < 0) | (f.col(name) >= RING)
        for a in range(spec.attributes if table == "subscriptions" else 0):
            outside |= f.col(f"low_{a}") > f.col(f"high_{a}")
        wrong = _odd(*extremes) if table == "subscriptions" else f.lit(False)
        told = frame.groupBy("place").agg(
            f.count("*").alias("rows"),
            f.sum(outside.cast("long")).alias("outside"),
            f.sum(wrong.cast("long")).alias("odd"),
        )
        seen = told.collect()
        near = sum(row["rows"] for row in seen if row["place"] >= 0)
        odd += sum(row["odd"] for row in seen)
        found = sum(row["rows"] for row in seen)
        yield Check(name=f"rows of {table}", wanted=rows, found=found)
        outliers = sum(row["outside"] for row in seen)
        yield Check(name=f"{table} outside the domain", wanted=0, found=outliers)
        if spec.kind == "skewed":
            counted = {row["place"]: row["rows"] for row in seen if row["place"] >= 0}
            name = f"Zipf exponent of {table}"
            yield _exponent(name, spec.exponent, counted, spec.places)
    if spec.kind == "skewed":
        yield _share("events near subscriptions", spec.correlation, near, workload.events)
    yield Check(name="ranges too narrow or too wide", wanted=0, found=odd)


def _odd(narrowest: float, widest: float) -> Any:
    """Whether no end of the domain cuts a range, and it is not as wide as drawn ranges are."""
    from pyspark.sql import functions as f

    share = (f.col("high_0") - f.col("low_0")) / RING
    least, most = narrowest * (1 - _ROUNDING), widest * (1 + _ROUNDING)
    uncut = (f.col("low_0") > 0) & (f.col("high_0") < RING - 512)
    return uncut & ((share < least) | (share > most))


def _siena(workload: SienaRows, read: Callable[[str], Any]) -> Iterator[Check]:
    from pyspark.sql import functions as f

    spec = workload.spec
    tables = {
        "subscriptions": (workload.subscriptions, spec.most_constraints),
        "events": (workload.events, spec.most_attributes),
    }
    for table, (rows, most) in tables.items():
        frame = read(table)
        # The first word of a row is drawn from all of them, the others from those that are left.
        first = frame.withColumn("rank", f.substring(f.col("names")[0], 2, 9).cast("int"))
        yield _zipf(f"Zipf exponent of {table}", spec.exponent, first, "rank", spec.names)
        outside = f.exists("values", lambda one: (one < 0) | (one >= spec.values))
        sizes = f.size("names")
        doubled = f.size(f.array_distinct("names")) != sizes
        wrong = outside | (sizes < 1) | (sizes > most) | doubled
        seen = _row(frame, rows=f.count("*"), wrong=f.sum(wrong.cast("long")), size=f.avg(sizes))
        yield Check(name=f"rows of {table}", wanted=rows, found=seen["rows"])
        yield Check(name=f"{table} outside their domains", wanted=0, found=seen["wrong"] or 0)
        error = math.sqrt((most**2 - 1) / 12 / max(rows, 1))
        yield Check(
            name=f"mean length of {table}",
            wanted=(1 + most) / 2,
            found=seen["size"] if seen["size"] is not None else math.nan,
            tolerance=_ERRORS * error + 1e-12,
        )
    equal = f.size(f.filter("operators", lambda one: one == "=="))
    seen = _row(read("subscriptions"), equal=f.sum(equal), all=f.sum(f.size("operators")))
    yield _share(
        "constraints that ask for equality", spec.shares[0], seen["equal"], seen["all"] or 0
    )


def _covering(workload: CoveringRows, read: Callable[[str], Any]) -> Iterator[Check]:
    from pyspark.sql import functions as f

    spec, frame = workload.spec, read("subscriptions")
    roots = f.sum(f.col("is_root").cast("long"))
    seen = _row(frame, rows=f.count("*"), different=f.count_distinct("x", "y"), roots=roots)
    yield Check(name="rows of subscriptions", wanted=spec.roots * spec.step, found=seen["rows"])
    yield Check(name="different ones", wanted=spec.roots * spec.step, found=seen["different"])
    yield Check(name="roots", wanted=spec.roots, found=seen["roots"])
    if 0 < min(_ROOTS, spec.roots) * spec.step <= _MOST_SAMPLED:
        sample = frame.where(f.col("root") < _ROOTS).collect()
        filters = [parse(f"x >= {row['x']} and y >= {row['y']}") for row in sample]
        degree = covering_degree(filters).degree
        name = f"covering degree of {min(_ROOTS, spec.roots)} roots"
        yield Check(name=name, wanted=spec.degree, found=degree)


@attrs.frozen(eq=False)
class _Neighbours:
    """Counts keywords that some broker wants who is not near their root.

    Attributes:
        near: int[roots, brokers], the neighbourhood of each root.
    """

    near: npt.NDArray[Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            near = self.near[batch["root"].to_numpy()]
            wanted = batch["brokers"].to_pylist()
            far = sum(
                not set(brokers) <= set(some.tolist())
                for brokers, some in zip(wanted, near, strict=True)
            )
            yield pa.RecordBatch.from_pydict({"rows": [len(batch)], "far": [far]})


def _keywords(workload: KeywordTables, read: Callable[[str], Any]) -> Iterator[Check]:
    from pyspark.sql import functions as f

    spec = workload.spec
    size = math.ceil(spec.locality.neighbourhood * spec.brokers)
    told = read("subscriptions").mapInArrow(_Neighbours(spec.near[:, :size]), "rows long, far long")
    seen = _row(told, rows=f.sum("rows"), far=f.sum("far"))
    rows, far = seen["rows"] or 0, seen["far"] or 0
    yield Check(name="rows of subscriptions", wanted=spec.locality.keywords, found=rows)
    yield Check(name="keywords wanted outside their neighbourhood", wanted=0, found=far)
    documents = read("events")
    yield Check(name="rows of events", wanted=spec.locality.documents, found=documents.count())
    empty = documents.where("size(keywords) < 1").count()
    yield Check(name="documents without keywords", wanted=0, found=empty)


def _commuters(workload: CommuterRows, read: Callable[[str], Any]) -> Iterator[Check]:
    from pyspark.sql import functions as f

    spec, people = workload.spec, read("subscriptions")
    counts = {row["sort"]: row["count"] for row in people.groupBy("sort").count().collect()}
    shares = {"commuter": spec.commuting, "wanderer": spec.wandering}
    for sort, wanted in shares.items():
        yield _share(f"share of {sort}s", wanted, counts.get(sort, 0), spec.subscribers)
    moves = read("moves")
    wrong = moves.where(f"at < 0 or at >= {workload.span} or from = to").count()
    yield Check(name="moves outside the scene or to nowhere", wanted=0, found=wrong)
    leaving = moves.join(people.where("sort = 'commuter'"), "subscription")
    seen = _row(leaving, rows=f.count("*"), mean=f.avg("at"))
    if abs(workload.span - 2 * spec.rush) <= spec.rush / 10 and seen["rows"]:
        error = spec.rush_spread / math.sqrt(seen["rows"])
        yield Check(
            name="mean time at which commuters leave",
            wanted=spec.rush,
            found=seen["mean"],
            tolerance=_ERRORS * error,
        )


def _quotes(workload: QuoteTables, read: Callable[[str], Any]) -> Iterator[Check]:
    quotes = read("events")
    inside = " and ".join(f"low <= {one} and {one} <= high" for one in ("open", "close"))
    sound = np.all(
        (workload.spec.source.prices[:, 2:3] <= workload.spec.source.prices)
        & (workload.spec.source.prices <= workload.spec.source.prices[:, 1:2])
    )
    yield Check(name="rows of events", wanted=workload.events, found=quotes.count())
    if sound:
        wrong = quotes.where(f"not ({inside}) or low <= 0 or volume < 0").count()
        yield Check(name="quotes outside the range of their day", wanted=0, found=wrong)
    empty = read("subscriptions").where("low >= high").count()
    yield Check(name="subscriptions to nothing", wanted=0, found=empty)
    symbols, counts = np.unique(workload.spec.source.symbols, return_counts=True)
    most = int(counts.argmax())
    seen = quotes.where(quotes["symbol"] == str(symbols[most])).count()
    wanted = float(counts[most] / counts.sum())
    yield _share(f"share of quotes of {symbols[most]}", wanted, seen, workload.events)


def _churn(workload: ChurnRows, read: Callable[[str], Any]) -> Iterator[Check]:
    from pyspark.sql import functions as f

    spec, sessions = workload.spec, read("sessions")
    steady = sessions.where(f.col("node") < spec.nodes)
    length = f.col("end_s") - f.col("start_s")
    wrong = (f.col("start_s") < 0) | (f.col("end_s") > spec.duration_s) | (length <= 0)
    seen = _row(steady, online=f.sum(length), wrong=f.sum(wrong.cast("long")))
    by_node = steady.groupBy("node").agg(f.sum(length).alias("online"))
    spread = _row(by_node, squares=f.sum(f.col("online") ** 2))["squares"] or 0.0
    time = spec.nodes * spec.duration_s
    share = (seen["online"] or 0.0) / time
    variance = spread / spec.nodes / spec.duration_s**2 - share**2
    # The renewal process knows no rhythm and no turns, which shift its mean by some per cent.
    swing = _SWING if spec.rhythm or spec.turns else 1.0 / spec.duration_s
    yield Check(name="sessions outside the trace", wanted=0, found=seen["wrong"] or 0)
    yield Check(
        name="share of time online",
        wanted=spec.availability,
        found=share,
        tolerance=_ERRORS * math.sqrt(max(variance, 0) / spec.nodes) + swing,
    )
    if spec.crowds:
        joined = sessions.where(f.col("node") >= spec.nodes).select("node").distinct().count()
        late = sum(crowd.nodes for crowd in spec.crowds)
        yield Check(name="nodes of flash crowds", wanted=late, found=joined)


_CHECKS: Sequence[tuple[type, Callable[[Any, Callable[[str], Any]], Iterator[Check]]]] = (
    (ViniferaRows, _vinifera),
    (SienaRows, _siena),
    (CoveringRows, _covering),
    (KeywordTables, _keywords),
    (CommuterRows, _commuters),
    (QuoteTables, _quotes),
    (ChurnRows, _churn),
)
