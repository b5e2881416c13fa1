"""What is told by the tables of a system of peers that were read back, but that of deliveries.

Measures mean what they mean in ``summary.json``; those that are there have its names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from gossamer.sim.studies.peers.measuring.summary import load_shares, worst_hour_hit_ratio
from gossamer.sim.study.records import REAL, WHOLE, Expected
from gossamer.sim.study.statistics import (
    Columns,
    Row,
    distribution,
    gini,
    mean,
    measure_rows,
    percentile,
    ratio,
    series,
    total,
)

TABLES: Final[Mapping[str, Expected]] = MappingProxyType(
    {
        "events": Expected(
            {
                "event": WHOLE,
                "time_s": REAL,
                "expected": WHOLE,
                "delivered": WHOLE,
                "received": WHOLE,
                "uninterested": WHOLE,
            },
            {"cycle": WHOLE, "duplicates": WHOLE, "false_positives": WHOLE},
        ),
        "deliveries": Expected(
            {"event": WHOLE, "hops": WHOLE}, {"tree_hops": WHOLE, "time_s": REAL}
        ),
        "nodes": Expected({"load": REAL}, {"received": WHOLE, "routing_table_entries": WHOLE}),
        "cycles": Expected(
            {"time_s": REAL, "population": WHOLE},
            {
                "cycle": WHOLE,
                "control_messages": WHOLE,
                "expected": WHOLE,
                "delivered": WHOLE,
                "received": WHOLE,
                "uninterested": WHOLE,
                "routing_table_entries": WHOLE,
                "ring_correct": REAL,
                "friend_utility": REAL,
            },
        ),
    }
)


def peer_rows(events: Columns, nodes: Columns, cycles: Columns) -> Iterator[Row]:
    """What the events, nodes and cycles of peers tell."""
    yield from measure_rows(eventmeasure_rows(events))
    yield from measure_rows(node_measures(nodes))
    yield from measure_rows(cycle_measures(cycles))
    yield from distribution("load", nodes["load"])
    yield from cycle_series(cycles)


def eventmeasure_rows(events: Columns) -> dict[str, float]:
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
