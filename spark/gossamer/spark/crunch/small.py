"""Measures, distributions and series of one system, from its tables but that of deliveries.

Everything here is exact, and a function of one system's tables, so that a task can do it apart from
all others. Measures mean what they mean in ``summary.json``; those that stand there have its names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from gossamer.sim.results.summary import load_shares, percentile, worst_hour_hit_ratio
from gossamer.spark.crunch.tables import BROKERS, PEERS

Floats = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]

MEASURE, CDF, LORENZ, SERIES, RANKS = "measure", "cdf", "lorenz", "series", "ranks"

_OF_PEERS: Final = ("events", "nodes", "cycles")
_OF_BROKERS: Final = ("queues", "brokers")

# Points of a distribution that are kept: whole per cents.
PER_CENTS: Final = np.arange(101)
# Points of a series that are kept; longer ones are drawn in groups.
MOST_POINTS: Final = 400


class Row(NamedTuple):
    """One value: of a measure (x is 0), or a point (x, value) of a curve."""

    part: str
    name: str
    x: float
    value: float


def rows_of(kind: str, folder: Path) -> Iterator[Row]:
    """All that is told by the tables of a system in a folder."""
    if kind == PEERS:
        events, nodes, cycles = (_columns(folder / f"{name}.parquet") for name in _OF_PEERS)
        yield from peer_rows(events, nodes, cycles)
    elif kind == BROKERS:
        queues, brokers = (_columns(folder / f"{name}.parquet") for name in _OF_BROKERS)
        yield from broker_rows(queues, brokers)


def peer_rows(events: Columns, nodes: Columns, cycles: Columns) -> Iterator[Row]:
    """What the events, nodes and cycles of peers tell."""
    yield from _measures(event_measures(events))
    yield from _measures(node_measures(nodes))
    yield from _measures(cycle_measures(cycles))
    yield from distribution("load", nodes["load"])
    yield from cycle_series(cycles)


def broker_rows(queues: Columns, brokers: Columns) -> Iterator[Row]:
    """What the queues and counts of brokers tell."""
    longest = _longest(queues)
    yield from _measures(
        {
            "queue_max": float(longest.max(initial=0)),
            "table_entries_mean": mean(brokers["table"]),
            "table_entries_gini": gini(brokers["table"]),
            "handled_gini": gini(brokers["handled"]),
            "messages": total(brokers, "handled"),
            "triggered_messages": total(brokers, "triggered"),
            "false_positives": total(brokers, "false_positives"),
            "false_positive_ratio": ratio(
                total(brokers, "false_positives"), total(brokers, "publications")
            ),
        }
    )
    yield from distribution("messages handled", brokers["handled"])
    yield from series("longest queue", queues["time_s"], longest, np.ones(len(longest)))


def event_measures(events: Columns) -> dict[str, float]:
    """Hits, misses and duplicates; a miss is a delivery that was due and not made."""
    expected, delivered = events["expected"], events["delivered"]
    missed = np.maximum(expected.astype(np.int64) - delivered, 0)
    reached_nobody = (delivered == 0) & (expected > 0)
    duplicates = events.get("duplicates", np.empty(0))
    return {
        "hit_ratio": ratio(delivered.sum(dtype=np.int64), expected.sum(dtype=np.int64)),
        "hit_ratio_worst_hour": worst_hour_hit_ratio(events)[1],
        "traffic_overhead": ratio(total(events, "uninterested"), total(events, "received")),
        "events": float(len(expected)),
        "expected": total(events, "expected"),
        "delivered": total(events, "delivered"),
        "received": total(events, "received"),
        "uninterested": total(events, "uninterested"),
        "missed": float(missed.sum()),
        "missed_events": float((missed > 0).sum()),
        "missed_event_reached_nobody": float(missed[reached_nobody].sum()),
        "missed_event_reached_others": float(missed[~reached_nobody].sum()),
        "duplicates": total(events, "duplicates"),
        "duplicated_events": float((duplicates > 0).sum()) if len(duplicates) else math.nan,
        "duplicate_ratio": ratio(
            total(events, "duplicates"), total(events, "duplicates") + total(events, "delivered")
        ),
        "false_positives": total(events, "false_positives"),
    }


def node_measures(nodes: Columns) -> dict[str, float]:
    """How load and tables are spread over nodes."""
    load = nodes["load"].astype(np.float64)
    entries = nodes.get("routing_table_entries", np.empty(0))
    return {
        "nodes": float(len(load)),
        "load_mean": mean(np.sort(load)),
        **{f"load_p{p}": percentile(load, p) for p in (50, 90, 95, 99)},
        "load_max": percentile(load, 100),
        "load_gini": gini(load),
        **load_shares(load),
        "received_gini": gini(nodes.get("received", np.empty(0))),
        "routing_table_entries_mean": mean(entries),
        "routing_table_entries_p99": percentile(entries, 99),
        "routing_table_entries_max": percentile(entries, 100),
    }


def cycle_measures(cycles: Columns) -> dict[str, float]:
    """What it costs to keep the overlay, and how good it is in the end."""
    found = {
        "cycles": float(len(cycles["population"])),
        "control_messages_per_node_cycle": ratio(
            total(cycles, "control_messages"), total(cycles, "population")
        ),
    }
    for name in ("ring_correct", "friend_utility"):
        values = cycles.get(name, np.empty(0))
        known = values[(cycles["population"] > 0) & ~np.isnan(values)] if len(values) else values
        found[f"{name}_final"] = float(known[-1]) if len(known) else math.nan
    return found


def cycle_series(cycles: Columns) -> Iterator[Row]:
    """Hit ratio, overhead, population and table sizes in the course of the run."""
    time = cycles["time_s"]
    ones = np.ones(len(time))
    wanted = {
        "population": ("population", None),
        "hit ratio": ("delivered", "expected"),
        "traffic overhead": ("uninterested", "received"),
        "table entries a node": ("routing_table_entries", "population"),
        "control messages a node": ("control_messages", "population"),
        "ring correct": ("ring_correct", None),
    }
    for name, (part, whole) in wanted.items():
        if part in cycles and (whole is None or whole in cycles):
            yield from series(name, time, cycles[part], ones if whole is None else cycles[whole])


def series(
    name: str, time: npt.NDArray[Any], parts: npt.NDArray[Any], wholes: npt.NDArray[Any]
) -> Iterator[Row]:
    """Parts over wholes in the course of time, long ones in groups; none where no whole is."""
    size = max(1, -(-len(time) // MOST_POINTS))
    group = np.arange(len(time)) // size
    known = ~np.isnan(parts.astype(np.float64))
    over = np.bincount(group, np.where(known, wholes, 0).astype(np.float64))
    under = np.bincount(group, np.where(known, parts, 0).astype(np.float64))
    for place in np.flatnonzero(over > 0):
        yield Row(SERIES, name, float(time[place * size]), float(under[place] / over[place]))


def distribution(name: str, values: npt.NDArray[Any]) -> Iterator[Row]:
    """Percentiles and the Lorenz curve of values, at every per cent."""
    if len(values) == 0:
        return
    ordered = np.sort(values.astype(np.float64))
    for per_cent in PER_CENTS.tolist():
        yield Row(CDF, name, float(per_cent), percentile(ordered, per_cent))
    for share, part in zip(PER_CENTS / 100, lorenz(ordered), strict=True):
        yield Row(LORENZ, name, float(share), float(part))


def lorenz(values: npt.NDArray[Any]) -> Floats:
    """float64[101]: the part of the sum that the lowest 0, 1, .. 100 % of the values have.

    Between two values the curve is straight; of values that are all 0 it is the diagonal.
    """
    ordered = np.sort(values.astype(np.float64))
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    if sums[-1] <= 0:
        return PER_CENTS / 100
    places = np.linspace(0, len(ordered), len(PER_CENTS))
    return np.asarray(np.interp(places, np.arange(len(sums)), sums) / sums[-1])


def gini(values: npt.NDArray[Any]) -> float:
    """Gini's coefficient: 0 where all values are equal, near 1 where one has everything.

    Twice the area between the Lorenz curve and the diagonal; 0 of values that are all 0, NaN of
    none.
    """
    if len(values) == 0:
        return math.nan
    ordered = np.sort(values.astype(np.float64))
    whole = float(ordered.sum())
    if whole <= 0:
        return 0.0
    count = len(ordered)
    ranks = np.arange(1, count + 1)
    return float(2 * (ranks @ ordered) / (count * whole) - (count + 1) / count)


def mean(values: npt.NDArray[Any]) -> float:
    """The mean; NaN of none."""
    return float(values.mean(dtype=np.float64)) if len(values) else math.nan


def total(table: Columns, column: str) -> float:
    """The sum of a column of whole numbers; NaN where it is missing."""
    return float(table[column].sum(dtype=np.int64)) if column in table else math.nan


def ratio(part: float, whole: float) -> float:
    """A part of a whole; NaN where there is none."""
    return float(part) / float(whole) if whole > 0 else math.nan


def _longest(queues: Columns) -> npt.NDArray[Any]:
    """The longest queue at each look; the brokers that were looked at differ between runs."""
    columns = [values for name, values in queues.items() if name != "time_s"]
    looks = len(queues["time_s"])
    return np.max(columns, axis=0) if columns else np.zeros(looks, np.int64)


def _measures(found: Mapping[str, float]) -> Iterator[Row]:
    for name, value in found.items():
        yield Row(MEASURE, name, 0.0, value)


def _columns(file: Path) -> dict[str, npt.NDArray[Any]]:
    table = pq.read_table(file, page_checksum_verification=True)
    return {name: table[name].to_numpy() for name in table.column_names}


def summary_rows(measures: Mapping[str, Any], skipped: Iterable[str] = ()) -> Iterator[Row]:
    """The numbers of a summary's entry, totals included, but those that are skipped."""
    left_out = frozenset(skipped)
    for name, value in measures.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in left_out:
            yield Row(MEASURE, name, 0.0, float(value))
    for name, value in (measures.get("totals") or {}).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield Row(MEASURE, f"total_{name}", 0.0, float(value))
