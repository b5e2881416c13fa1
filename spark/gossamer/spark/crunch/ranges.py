"""The tables of a workload of ranges on hashed attributes, as tasks read and count them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.protocol.peer.space.ring import RING
from gossamer.spark.crunch.counting.matches import POINTS
from gossamer.spark.crunch.counting.scanning import Rows, Scan
from gossamer.spark.crunch.counting.tallies import COUNTED, count_columns
from gossamer.spark.crunch.folders import SystemTables
from gossamer.spark.storage.frames import opened_table

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
