"""What a run leaves in memory: the contract between the engines and whoever writes results.

The column mappings below fix names, order and dtypes of its tables (see `study.records`). Times are
seconds of simulated time since the start of the run, cycles count from 0, handles are rows of the
simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gossamer.sim.study import records as run_records
from gossamer.sim.study.records import Table, by_message, check_table

# One row per published event. All messages that carry the event to a node count as received: on its
# way to the rendezvous nodes, down the delivery trees, and again, until the end of the run.
EVENT_COLUMNS: dict[str, str] = {
    "event": "int64",
    "cycle": "int32",
    "time_s": "float64",
    "publisher": "int32",
    "expected": "int32",  # subscribers that had to get the event
    "delivered": "int32",  # of those, how many did
    "received": "int32",  # messages carrying the event that nodes received
    "uninterested": "int32",  # of those, received by nodes without a matching subscription
    "duplicates": "int32",  # further deliveries to an application
    # Of the uninterested, first copies that came down a tree to nodes which pass them to nobody.
    "false_positives": "int32",
}

# One row per delivery of an event to a subscriber.
DELIVERY_COLUMNS: dict[str, str] = {
    "event": "int64",
    "node": "int32",
    "hops": "int16",  # from the publisher
    "tree_hops": "int16",  # from the rendezvous node
    "time_s": "float64",
}

# One row per node that was ever part of the run.
NODE_COLUMNS: dict[str, str] = {
    "node": "int32",
    "load": "float64",  # share of all events that the node handled without interest, 0 to 1
    "received": "int64",
    "uninterested": "int64",
    "forwarded": "int64",
    "routing_table_entries": "int32",  # entries of the content routing table at the end
    "identifier": "int64",
    "in_degree": "int32",
}

# One row per cycle.
CYCLE_COLUMNS: dict[str, str] = {
    "cycle": "int32",
    "time_s": "float64",
    "population": "int32",  # nodes online
    "control_messages": "int64",
    "events": "int32",
    "expected": "int64",
    "delivered": "int64",
    "received": "int64",
    "uninterested": "int64",
    "hops_sum": "int64",
    "routing_table_entries": "int64",  # summed over the nodes online
    "ring_correct": "float64",  # share of online nodes whose successor link is right, 0 to 1
    "friend_utility": "float64",  # mean utility of friend links, 0 to 1
}

# One row per cycle: what nodes took in it.
TRAFFIC_COLUMNS: dict[str, str] = {
    "cycle": "int32",
    "time_s": "float64",  # when it ended
    "node_s": "float64",  # seconds that nodes were online in it, of all together
    "messages": "int64",
    "size_bytes": "int64",
}
TRAFFIC_TABLES = ("messages", "traffic", "node_traffic")
NODE_TRAFFIC_COLUMNS: dict[str, str] = {
    "node": "int32",
    "sent_bytes": "int64",  # of what others took from it
    "received_bytes": "int64",
}

OVERLAY_NODE_COLUMNS: dict[str, str] = {
    "identifier": "int64",
    "primary": "int32",  # index of the primary attribute
    "low": "int64",  # range on the primary attribute, as hashed values
    "high": "int64",
}
OVERLAY_LINK_COLUMNS: dict[str, str] = {
    "source": "int32",  # rows of the overlay's node table
    "target": "int32",
    "kind": "int8",  # index into LINK_KINDS
}


@dataclass(frozen=True, slots=True)
class OverlaySnapshot:
    """The overlay at one moment: its nodes and its links.

    Attributes:
        nodes: table of OVERLAY_NODE_COLUMNS, one row a node.
        links: table of OVERLAY_LINK_COLUMNS, one row a directed link.

    Raises:
        InvariantError: a column is missing, foreign, or has the wrong dtype or length.
    """

    nodes: Table
    links: Table

    def __post_init__(self) -> None:
        check_table("overlay_nodes", self.nodes, OVERLAY_NODE_COLUMNS)
        check_table("overlay_links", self.links, OVERLAY_LINK_COLUMNS)


@dataclass(frozen=True, slots=True)
class TrafficTables:
    """What messages came to in bytes.

    Attributes:
        messages: a row for each kind of message: message, count, size_bytes.
        rounds: table of TRAFFIC_COLUMNS.
        nodes: table of NODE_TRAFFIC_COLUMNS.
        fates: what became of messages that were not taken as they were sent.

    Raises:
        InvariantError: a column is missing, foreign, or has the wrong dtype or length.
    """

    messages: Table
    rounds: Table
    nodes: Table
    fates: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_table("traffic", self.rounds, TRAFFIC_COLUMNS)
        check_table("node_traffic", self.nodes, NODE_TRAFFIC_COLUMNS)

    @property
    def by_message(self) -> dict[str, int]:
        """By message, its bytes."""
        return by_message(self.messages, "size_bytes")


@dataclass(frozen=True, slots=True)
class SystemRecord:
    """What one system (Vinifera or the baseline) did in a run.

    Attributes:
        name: name of the system, also of its folder in the results.
        settings: the parameters it ran with, plain values.
        events, deliveries, nodes, cycles: tables of the columns above.
        overlay: the overlay at the end of the run, or None where it was too large to keep.
        totals: further counts. They enter the result hash, so the seed alone must decide them.
        traffic: in bytes; None where nobody counted, as with real peers.

    Raises:
        InvariantError: a column is missing, foreign, or has the wrong dtype or length.
    """

    name: str
    settings: Mapping[str, Any]
    events: Table
    deliveries: Table
    nodes: Table
    cycles: Table
    overlay: OverlaySnapshot | None = None
    totals: Mapping[str, int | float] = field(default_factory=dict)
    traffic: TrafficTables | None = None

    def __post_init__(self) -> None:
        check_table("events", self.events, EVENT_COLUMNS)
        check_table("deliveries", self.deliveries, DELIVERY_COLUMNS)
        check_table("nodes", self.nodes, NODE_COLUMNS)
        check_table("cycles", self.cycles, CYCLE_COLUMNS)

    def tables(self) -> Iterator[tuple[str, Table]]:
        yield "events", self.events
        yield "deliveries", self.deliveries
        yield "nodes", self.nodes
        yield "cycles", self.cycles
        if self.overlay is not None:
            yield "overlay_nodes", self.overlay.nodes
            yield "overlay_links", self.overlay.links
        if self.traffic is not None:
            yield from zip(
                TRAFFIC_TABLES,
                (self.traffic.messages, self.traffic.rounds, self.traffic.nodes),
                strict=True,
            )


def restored(name: str, summary: Mapping[str, Any], tables: Mapping[str, Table]) -> SystemRecord:
    """The record of a system from its entry of ``summary.json`` and all its tables."""
    overlay = traffic = None
    if "overlay_nodes" in tables:
        overlay = OverlaySnapshot(tables["overlay_nodes"], tables["overlay_links"])
    if "traffic" in tables:
        messages, rounds, nodes = (tables[table] for table in TRAFFIC_TABLES)
        traffic = TrafficTables(messages, rounds, nodes, summary.get("fates", {}))
    return SystemRecord(
        name=name,
        settings=summary["settings"],
        **{table: tables[table] for table in ("events", "deliveries", "nodes", "cycles")},
        overlay=overlay,
        totals=summary["totals"],
        traffic=traffic,
    )


RunRecord: TypeAlias = run_records.RunRecord[SystemRecord]
