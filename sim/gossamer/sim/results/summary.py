"""From the tables of a run to ``summary.json``: the measures of each system and the result hash."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, time
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

import numpy as np

from gossamer.sim.studies.tree_brokers.records import BrokerRunRecord
from gossamer.sim.studies.peers.measuring.records import RunRecord, SystemRecord
from gossamer.sim.study.records import Column, Table
from gossamer.sim.studies.scot.records import ScotRunRecord
from gossamer.sim.studies.dissemination.records import TreesRunRecord

HOUR_S = 3600.0

# Rows are hashed in the order of these columns, so that the order in which an engine happened to
# write them does not matter; those of brokers and trees have one order.
_ROW_ORDER: dict[str, tuple[str, ...]] = {
    "events": ("event",),
    "deliveries": ("event", "node", "hops", "time_s"),
    "nodes": ("node",),
    "cycles": ("cycle",),
    "overlay_nodes": (),
    "overlay_links": ("source", "target", "kind"),
}


def summarise(
    record: RunRecord | BrokerRunRecord | ScotRunRecord | TreesRunRecord,
    of_system: Callable[[Any], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The content of ``summary.json``: plain values only, NaN and infinity replaced by None.

    Args:
        record: the run.
        of_system: the measures of one of its systems; `summarise_system` if None.
    """
    measures_of: Callable[[Any], dict[str, Any]] = of_system or summarise_system
    summary: dict[str, Any] = {
        "scenario": dict(record.scenario),
        "seed": record.seed,
        "versions": dict(record.versions),
        "wall_s": record.wall_s,
        "peak_rss_bytes": record.peak_rss_bytes,
        "result_hash": result_hash(record),
        "systems": {name: measures_of(system) for name, system in record.systems.items()},
    }
    plain: dict[str, Any] = _plain(summary)
    return plain


def summarise_system(system: SystemRecord) -> dict[str, Any]:
    """The measures of one system (see `gossamer.sim.studies.peers.measuring.measures`); ratios 0 to 1, times in seconds.

    A measure for which there was nothing to observe is NaN.
    """
    events, deliveries, nodes, cycles = (
        system.events,
        system.deliveries,
        system.nodes,
        system.cycles,
    )
    worst_hour, worst_ratio = worst_hour_hit_ratio(events)
    hops, load = deliveries["hops"], nodes["load"]
    entries = nodes["routing_table_entries"]
    return {
        "hit_ratio": _ratio(events["delivered"].sum(), events["expected"].sum()),
        "hit_ratio_worst_hour": worst_ratio,
        "worst_hour": worst_hour,
        "traffic_overhead": _ratio(events["uninterested"].sum(), events["received"].sum()),
        "path_length_mean": _mean(hops),
        "path_length_p50": percentile(hops, 50),
        "path_length_p99": percentile(hops, 99),
        "path_length_max": percentile(hops, 100),
        "tree_length_mean": _mean(deliveries["tree_hops"]),
        "load_p50": percentile(load, 50),
        "load_p95": percentile(load, 95),
        "load_p99": percentile(load, 99),
        "load_max": percentile(load, 100),
        "routing_table_entries_mean": _mean(entries),
        "routing_table_entries_p99": percentile(entries, 99),
        "routing_table_entries_max": percentile(entries, 100),
        "control_messages_per_node_cycle": _ratio(
            cycles["control_messages"].sum(), cycles["population"].sum(dtype=np.int64)
        ),
        "duplicates": int(events["duplicates"].sum()),
        "false_positives": int(events["false_positives"].sum()),
        "ring_correct_final": _last_populated(cycles, "ring_correct"),
        "friend_utility_final": _last_populated(cycles, "friend_utility"),
        "events": len(events["event"]),
        "expected": int(events["expected"].sum()),
        "delivered": int(events["delivered"].sum()),
        "received": int(events["received"].sum()),
        "uninterested": int(events["uninterested"].sum()),
        "nodes": len(nodes["node"]),
        "cycles": len(cycles["cycle"]),
        "totals": dict(system.totals),
        "settings": dict(system.settings),
    }


def worst_hour_hit_ratio(events: Table) -> tuple[int | None, float]:
    """The hour of simulated time (counted from 0) with the lowest hit ratio, and that ratio.

    Hours in which nothing was expected do not count; with none left the answer is (None, NaN).
    """
    hours = np.floor_divide(events["time_s"], HOUR_S).astype(np.int64)
    present, which = np.unique(hours, return_inverse=True)
    expected = np.bincount(which, weights=events["expected"], minlength=len(present))
    delivered = np.bincount(which, weights=events["delivered"], minlength=len(present))
    due = expected > 0
    if not due.any():
        return None, math.nan
    ratios = delivered[due] / expected[due]
    worst = int(np.argmin(ratios))
    return int(present[due][worst]), float(ratios[worst])


def percentile(values: Column, per_cent: float) -> float:
    """The smallest observed value that ``per_cent`` of ``values`` do not exceed; NaN of none."""
    if len(values) == 0:
        return math.nan
    place = percentile_place(len(values), per_cent)
    return float(np.partition(values, place)[place])


def percentile_place(count: int, per_cent: float) -> int:
    """The place of that value among ``count`` values in order, of which there is one at least."""
    # In fractions: in floating point 28 % of 25 values are a little more than 7.
    return max(math.ceil(Fraction(per_cent) * count / 100), 1) - 1


def load_shares(load: Column) -> dict[str, float]:
    """Shares of nodes with no load, and with more than 60 %; NaN where there are no nodes."""
    shares = {"load_zero": load == 0, "load_above_60": load > 0.6}
    return {name: float(np.mean(one)) if len(one) else math.nan for name, one in shares.items()}


def result_hash(record: RunRecord | BrokerRunRecord | ScotRunRecord | TreesRunRecord) -> str:
    """SHA-256, in hexadecimal, over everything in ``record`` that seed and scenario decide.

    Covers the tables, overlays and totals of every system and the seed; not wall-clock time,
    memory, versions, the scenario's wording, the byte order of the machine or the order of rows.
    """
    digest = hashlib.sha256()
    digest.update(f"gossamer result 1\nseed {record.seed}\n".encode())
    for name in sorted(record.systems):
        system = record.systems[name]
        totals = json.dumps(_plain(dict(system.totals)), sort_keys=True)
        digest.update(f"system {name}\ntotals {totals}\n".encode())
        for table_name, table in system.tables():
            order = _ROW_ORDER[table_name] if isinstance(record, RunRecord) else ()
            _hash_table(digest, table_name, table, order)
    return digest.hexdigest()


def dump_json(summary: Mapping[str, Any]) -> str:
    """The text of ``summary.json``, ending in a newline."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _hash_table(digest: hashlib._Hash, name: str, table: Table, order_by: Sequence[str]) -> None:
    """Feed the canonical bytes of ``table``, its rows in the order of columns, to ``digest``."""
    keys = [table[column] for column in reversed(order_by)]
    order = np.lexsort(keys) if keys else slice(None)
    for column in sorted(table):
        values = table[column][order]
        digest.update(f"{name}.{column} {values.dtype.name} {len(values)}\n".encode())
        digest.update(_canonical(values))


def _canonical(values: Column) -> bytes:
    """Little-endian bytes of ``values``, with one bit pattern for zero and one for NaN."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.nan, values + 0.0)
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()


def _plain(value: Any) -> Any:
    """``value`` with only the types that JSON has; NaN and infinities become None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, PathLike):
        return fspath(value)
    return value


def _ratio(part: Any, whole: Any) -> float:
    return float(part) / float(whole) if whole else math.nan


def _mean(values: Column) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else math.nan


def _last_populated(cycles: Table, name: str) -> float:
    """The last value that was measured while anybody was online; at the end nobody may be."""
    values = cycles[name][(cycles["population"] > 0) & ~np.isnan(cycles[name])]
    return float(values[-1]) if len(values) else math.nan
