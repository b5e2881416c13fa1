"""The measures of a run: what each is called, how it is printed and what it means.

Terms follow the evaluation of the Vinifera paper (Sec. V).
"""

from __future__ import annotations

from gossamer.sim.study.records import Measure

MEASURES: tuple[Measure, ...] = (
    Measure(
        "hit_ratio",
        "hit ratio",
        "ratio",
        "higher",
        "Of all deliveries that had to happen, the share that did.",
        brief=True,
    ),
    Measure(
        "hit_ratio_worst_hour",
        "hit ratio, worst hour",
        "ratio",
        "higher",
        "The lowest hit ratio among the events published within one hour of simulated time.",
        brief=True,
    ),
    Measure(
        "traffic_overhead",
        "traffic overhead",
        "ratio",
        "lower",
        "Of all messages that carried an event to a node, first copies and further ones, however "
        "late, the share that reached a node without a matching subscription.",
        brief=True,
    ),
    Measure(
        "path_length_mean",
        "path length, mean (hops)",
        "number",
        "lower",
        "Mean number of hops from the publisher to a subscriber that got the event.",
        brief=True,
    ),
    Measure(
        "path_length_p99",
        "path length, 99 % (hops)",
        "count",
        "lower",
        "The number of hops that 99 % of the deliveries did not exceed.",
        brief=True,
    ),
    Measure(
        "path_length_max",
        "path length, longest (hops)",
        "count",
        "lower",
        "The longest path of any delivery.",
    ),
    Measure(
        "tree_length_mean",
        "delivery tree depth, mean (hops)",
        "number",
        "lower",
        "Mean number of hops from the rendezvous node to the subscriber.",
    ),
    Measure(
        "load_p50",
        "load, median node",
        "ratio",
        "lower",
        "Load of a node: the share of all events that it handled without interest in them. Half "
        "of the nodes carry no more than this.",
        brief=True,
    ),
    Measure(
        "load_p95",
        "load, 95 % of nodes",
        "ratio",
        "lower",
        "The load that 95 % of the nodes do not exceed.",
    ),
    Measure(
        "load_p99",
        "load, 99 % of nodes",
        "ratio",
        "lower",
        "The load that 99 % of the nodes do not exceed.",
        brief=True,
    ),
    Measure(
        "load_max",
        "load, busiest node",
        "ratio",
        "lower",
        "The load of the busiest node.",
        brief=True,
    ),
    Measure(
        "routing_table_entries_mean",
        "routing table entries, mean",
        "number",
        "lower",
        "Mean number of entries in a node's content routing table at the end of the run.",
        brief=True,
    ),
    Measure(
        "routing_table_entries_max",
        "routing table entries, largest",
        "count",
        "lower",
        "Entries in the largest content routing table at the end of the run.",
        brief=True,
    ),
    Measure(
        "control_messages_per_node_cycle",
        "control messages per node and cycle",
        "number",
        "lower",
        "Messages of peer sampling, topology management and subscription installation that an "
        "online node sent in a cycle, on average.",
        brief=True,
    ),
    Measure(
        "bytes_per_node_and_second",
        "bytes a node and second",
        "fine",
        "lower",
        "Bytes of all messages that an online node took in a second, on average: 8 for each word "
        "of a record and its header.",
        brief=True,
    ),
    Measure(
        "duplicates",
        "duplicate deliveries",
        "count",
        "lower",
        "Deliveries of an event to an application that already had it; there are none unless "
        "peers forget too soon what they have seen (event_memory).",
        brief=True,
    ),
    Measure(
        "false_positives",
        "false positives",
        "count",
        "lower",
        "Events that came down a tree to a node, for the first time, which neither wanted them nor "
        "passed them on: only because a routing table had merged subscriptions, or was not up to "
        "date.",
    ),
    Measure(
        "ring_correct_final",
        "ring links correct at the end",
        "ratio",
        "higher",
        "Share of the online nodes whose successor link was right in the last cycle.",
    ),
    Measure(
        "friend_utility_final",
        "friend utility at the end",
        "ratio",
        "higher",
        "Mean utility (overlap over union of the ranges) of friend links in the last cycle.",
    ),
    Measure("events", "events published", "count", None, "Events published in the run."),
    Measure("expected", "deliveries due", "count", None, "Deliveries that had to happen."),
    Measure("delivered", "deliveries made", "count", None, "Of those, the deliveries that did."),
    Measure(
        "received",
        "event messages",
        "count",
        None,
        "Messages that carried an event to a node, on any part of its way, repeated and late ones "
        "included.",
    ),
)
