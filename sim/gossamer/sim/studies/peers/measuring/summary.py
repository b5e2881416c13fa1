"""The measures of a system of peers: what each is called and means, and their values from tables.

Terms follow the evaluation of the Vinifera paper (Sec. V).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from gossamer.sim.studies.peers.measuring.records import SystemRecord, TrafficTables
from gossamer.sim.study.records import (
    REAL,
    WHOLE,
    Column,
    Columns,
    Expected,
    Row,
    Table,
    distribution,
    gini,
    mean,
    measure_rows,
    measures_of,
    percentile,
    ratio,
    series,
    total,
)

HOUR_S = 3600.0
MEASURES = measures_of("""
    hit_ratio: hit ratio | ratio | higher | brief
        Of all deliveries that had to happen, the share that did.
    hit_ratio_worst_hour: hit ratio, worst hour | ratio | higher | brief
        The lowest hit ratio among the events published within one hour of simulated time.
    traffic_overhead: traffic overhead | ratio | lower | brief
        Of all messages that carried an event to a node, first copies and further ones, however
        late, the share that reached a node without a matching subscription.
    path_length_mean: path length, mean (hops) | number | lower | brief
        Mean number of hops from the publisher to a subscriber that got the event.
    path_length_p99: path length, 99 % (hops) | count | lower | brief
        The number of hops that 99 % of the deliveries did not exceed.
    path_length_max: path length, longest (hops) | count | lower
        The longest path of any delivery.
    tree_length_mean: delivery tree depth, mean (hops) | number | lower
        Mean number of hops from the rendezvous node to the subscriber.
    load_p50: load, median node | ratio | lower | brief
        Load of a node: the share of all events that it handled without interest in them. Half
        of the nodes carry no more than this.
    load_p95: load, 95 % of nodes | ratio | lower
        The load that 95 % of the nodes do not exceed.
    load_p99: load, 99 % of nodes | ratio | lower | brief
        The load that 99 % of the nodes do not exceed.
    load_max: load, busiest node | ratio | lower | brief
        The load of the busiest node.
    routing_table_entries_mean: routing table entries, mean | number | lower | brief
        Mean number of entries in a node's content routing table at the end of the run.
    routing_table_entries_max: routing table entries, largest | count | lower | brief
        Entries in the largest content routing table at the end of the run.
    control_messages_per_node_cycle: control messages per node and cycle | number | lower | brief
        Messages of peer sampling, topology management and subscription installation that an
        online node sent in a cycle, on average.
    bytes_per_node_and_second: bytes a node and second | fine | lower | brief
        Bytes of all messages that an online node took in a second, on average: 8 for each word
        of a record and its header.
    duplicates: duplicate deliveries | count | lower | brief
        Deliveries of an event to an application that already had it; there are none unless
        peers forget too soon what they have seen (event_memory).
    false_positives: false positives | count | lower
        Events that came down a tree to a node, for the first time, which neither wanted them
        nor passed them on: only because a routing table had merged subscriptions, or was not up
        to date.
    ring_correct_final: ring links correct at the end | ratio | higher
        Share of the online nodes whose successor link was right in the last cycle.
    friend_utility_final: friend utility at the end | ratio | higher
        Mean utility (overlap over union of the ranges) of friend links in the last cycle.
    events: events published | count | -
        Events published in the run.
    expected: deliveries due | count | -
        Deliveries that had to happen.
    delivered: deliveries made | count | -
        Of those, the deliveries that did.
    received: event messages | count | -
        Messages that carried an event to a node, on any part of its way, repeated and late ones
        included.
""")

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
    """The measures of one system (see `MEASURES`); ratios 0 to 1, times in seconds.

    A measure for which there was nothing to observe is NaN.
    """
    events, deliveries = system.events, system.deliveries
    nodes, cycles = system.nodes, system.cycles
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
        **{f"load_p{p}": percentile(load, p) for p in (50, 95, 99)},
        "load_max": percentile(load, 100),
        **_table_sizes(entries),
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


def _table_sizes(entries: Column) -> dict[str, float]:
    """How many entries content routing tables have."""
    return {
        "routing_table_entries_mean": mean(entries),
        "routing_table_entries_p99": percentile(entries, 99),
        "routing_table_entries_max": percentile(entries, 100),
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


# What is told by the tables of a system of peers that were read back, but that of deliveries.
#
# Measures mean what they mean in ``summary.json``; those that are there have its names.


_COUNTED: Final = ("expected", "delivered", "received", "uninterested")
TABLES: Final[Mapping[str, Expected]] = MappingProxyType(
    {
        "events": Expected(
            {"event": WHOLE, "time_s": REAL, **dict.fromkeys(_COUNTED, WHOLE)},
            {"cycle": WHOLE, "duplicates": WHOLE, "false_positives": WHOLE},
        ),
        "deliveries": Expected(
            {"event": WHOLE, "hops": WHOLE}, {"tree_hops": WHOLE, "time_s": REAL}
        ),
        "nodes": Expected({"load": REAL}, {"received": WHOLE, "routing_table_entries": WHOLE}),
        "cycles": Expected(
            {"time_s": REAL, "population": WHOLE},
            {
                **dict.fromkeys(("cycle", "control_messages", *_COUNTED), WHOLE),
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
        **_table_sizes(entries),
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
        found[f"{name}_final"] = _last_populated(cycles, name) if name in cycles else math.nan
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


# Tables of fixed size that a run has outgrown, in words.
#
# Every table of a peer has a size. Where a scenario decides how much a table has to hold it is
# sized by it (`config.event_memory_for`); what finds no room elsewhere is counted by peers, and
# told here. So is what a run is too short for.


class Bound(NamedTuple):
    """What is counted when a table has outgrown its size.

    It is one of `SystemRecord.totals`; a larger value of the setting would help, if there is one.
    """

    total: str
    setting: str | None
    happened: str


BOUNDS = (
    Bound(
        "forgotten_copies",
        "event_memory",
        "event copies were forgotten while they could still come again or be asked for, so that "
        "events may be missed or delivered twice",
    ),
    Bound(
        "pushed_out_copies",
        "held_events",
        "held event copies made room before the retention time was over, so that nodes which come "
        "back may miss them",
    ),
    Bound(
        "publications_not_taken",
        "pending_publications",
        "publications were not taken, since as many waited for their acknowledgement",
    ),
    Bound(
        "late_events", None, "events of the file come after the last round, and were not published"
    ),
    Bound(
        "refused_subscriptions",
        "routing_table_entries",
        "subscriptions found no room in a routing table, so that events did not get to them there",
    ),
    Bound(
        "hop_limit_drops",
        "hop_limit",
        "event copies took more hops than any should, and were dropped; they go round, so that no "
        "larger limit brings them there",
    ),
    Bound(
        "merged_subscriptions",
        "boxes_per_neighbour",
        "times subscriptions were merged, which costs messages and no event",
    ),
    Bound(
        "forgotten_failures",
        "failures_remembered",
        "failed nodes were forgotten while others could still name them, which costs messages",
    ),
)


def outgrown(systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for every bound that a system has outgrown.

    Args:
        systems: what `summary.json` has of each, by name.
    """
    for name, system in systems.items():
        totals = system.get("totals", {})
        for bound in BOUNDS:
            count = totals.get(bound.total, 0)
            if count:
                size = system.get("settings", {}).get(bound.setting)
                advice = "" if bound.setting is None else f" ({bound.setting} is {size})"
                yield f"{name}: {count:,} {bound.happened}{advice}."
