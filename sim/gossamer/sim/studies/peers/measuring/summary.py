"""The measures of a system of peers, from its tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.sim.studies.peers.measuring.records import SystemRecord, TrafficTables
from gossamer.sim.study.records import Column, Table
from gossamer.sim.study.statistics import mean, percentile, ratio

HOUR_S = 3600.0

# Rows are hashed in the order of these columns, so that the order in which an engine happened to
# write them does not matter.
ROW_ORDER: dict[str, tuple[str, ...]] = {
    "events": ("event",),
    "deliveries": ("event", "node", "hops", "time_s"),
    "nodes": ("node",),
    "cycles": ("cycle",),
    "overlay_nodes": (),
    "overlay_links": ("source", "target", "kind"),
}


def summarise_system(system: SystemRecord) -> dict[str, Any]:
    """The measures of one system (see `measures`); ratios 0 to 1, times in seconds.

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
        "hit_ratio": ratio(events["delivered"].sum(), events["expected"].sum()),
        "hit_ratio_worst_hour": worst_ratio,
        "worst_hour": worst_hour,
        "traffic_overhead": ratio(events["uninterested"].sum(), events["received"].sum()),
        "path_length_mean": mean(hops),
        "path_length_p50": percentile(hops, 50),
        "path_length_p99": percentile(hops, 99),
        "path_length_max": percentile(hops, 100),
        "tree_length_mean": mean(deliveries["tree_hops"]),
        "load_p50": percentile(load, 50),
        "load_p95": percentile(load, 95),
        "load_p99": percentile(load, 99),
        "load_max": percentile(load, 100),
        "routing_table_entries_mean": mean(entries),
        "routing_table_entries_p99": percentile(entries, 99),
        "routing_table_entries_max": percentile(entries, 100),
        "control_messages_per_node_cycle": ratio(
            cycles["control_messages"].sum(), cycles["population"].sum(dtype=np.int64)
        ),
        **_traffic(system.traffic),
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


def _traffic(traffic: TrafficTables | None) -> dict[str, Any]:
    """What messages came to in bytes, where that was counted."""
    if traffic is None:
        return {"bytes_per_node_and_second": math.nan}
    size, node_s = traffic.rounds["size_bytes"].sum(), traffic.rounds["node_s"].sum()
    return {
        "bytes_per_node_and_second": ratio(size, node_s),
        "size_bytes": int(size),
        "bytes_by_message": traffic.by_message,
        "fates": dict(traffic.fates),
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


def load_shares(load: Column) -> dict[str, float]:
    """Shares of nodes with no load, and with more than 60 %; NaN where there are no nodes."""
    shares = {"load_zero": load == 0, "load_above_60": load > 0.6}
    return {name: float(np.mean(one)) if len(one) else math.nan for name, one in shares.items()}


def _last_populated(cycles: Table, name: str) -> float:
    """The last value that was measured while anybody was online; at the end nobody may be."""
    values = cycles[name][(cycles["population"] > 0) & ~np.isnan(cycles[name])]
    return float(values[-1]) if len(values) else math.nan
