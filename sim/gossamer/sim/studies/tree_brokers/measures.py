"""The measures of one covering in a burst, from its tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.sim.studies.tree_brokers.records import CoveringRecord
from gossamer.sim.study.measure import Measure
from gossamer.sim.study.records import Column
from gossamer.sim.study.statistics import mean, percentile, ratio

# Terms follow the evaluations of both papers on filter aggregation (Sec. V).
BROKER_MEASURES: tuple[Measure, ...] = (
    Measure(
        "delay_mean_s",
        "delay, mean (s)",
        "fine",
        "lower",
        "Mean time from publication to delivery, of all publications from the first "
        "unsubscription on.",
        brief=True,
    ),
    Measure(
        "delay_p99_s",
        "delay, 99 % (s)",
        "fine",
        "lower",
        "Time that 99 % of the deliveries do not exceed.",
    ),
    Measure(
        "delay_max_s",
        "delay, longest (s)",
        "fine",
        "lower",
        "The longest time from publication to delivery.",
        brief=True,
    ),
    Measure(
        "delay_end_s",
        "delay at the end (s)",
        "fine",
        "lower",
        "Mean delay of the last tenth of the publications.",
    ),
    Measure(
        "queue_max",
        "longest core queue",
        "count",
        "lower",
        "The longest input queue of a core broker, in messages.",
        brief=True,
    ),
    Measure(
        "triggered_messages",
        "triggered messages",
        "count",
        "lower",
        "Subscriptions and unsubscriptions that brokers received although nobody asked for them; "
        "a pack is one message.",
        brief=True,
    ),
    Measure(
        "triggered_last",
        "triggered messages at the last core broker",
        "count",
        "lower",
        "Those that the core broker next to the publishers received.",
        brief=True,
    ),
    Measure(
        "table_entries_mean",
        "routing table entries, mean",
        "number",
        "lower",
        "Entries of a broker's routing table at the end.",
    ),
    Measure(
        "table_entries_core",
        "routing table entries, core",
        "number",
        "lower",
        "Entries of a core broker's routing table at the end, mean.",
        brief=True,
    ),
    Measure(
        "false_positive_ratio",
        "false positives",
        "ratio",
        "lower",
        "Share of the publications between brokers that reached one where nobody wanted them.",
        brief=True,
    ),
    Measure(
        "kept_for_nobody",
        "subscriptions kept for nobody",
        "count",
        None,
        "Taken back by their clients, but standing at a neighbour for what they cover.",
        brief=True,
    ),
    Measure(
        "messages",
        "messages",
        "count",
        "lower",
        "Messages that brokers took from clients and from each other.",
        brief=True,
    ),
    Measure("publications", "publications", "count", None, "Publications issued."),
    Measure("deliveries", "deliveries made", "count", None, "Publications handed to clients."),
)


def summarise_covering(record: CoveringRecord) -> dict[str, Any]:
    """The entry of ``summary.json``: ratios 0 to 1, times in seconds.

    ``core`` has triggered messages and table entries of each core broker.
    """
    delays, published = record.deliveries["delay_s"], record.deliveries["published_s"]
    brokers = record.brokers
    at_core = np.isin(brokers["broker"], record.core)
    last = brokers["broker"] == record.core[-1]
    late = published >= np.quantile(published, 0.9) if len(published) else slice(0)
    return {
        "delay_mean_s": mean(delays),
        "delay_p99_s": percentile(delays, 99),
        "delay_max_s": percentile(delays, 100),
        "delay_end_s": mean(delays[late]),
        "queue_max": int(longest_queue(record).max(initial=0)),
        "triggered_messages": int(brokers["triggered"].sum()),
        "triggered_last": int(brokers["triggered"][last].sum()),
        "table_entries_mean": mean(brokers["table"]),
        "table_entries_core": mean(brokers["table"][at_core]),
        "false_positives": int(brokers["false_positives"].sum()),
        "false_positive_ratio": ratio(
            int(brokers["false_positives"].sum()), int(brokers["publications"].sum())
        ),
        "kept_for_nobody": len(record.aggregates["broker"]),
        "messages": int(brokers["handled"].sum()),
        "publications": record.totals["publications"],
        "deliveries": len(delays),
        "core": {
            str(name): {"triggered": int(triggered), "table": int(table)}
            for name, triggered, table, chosen in zip(
                brokers["broker"], brokers["triggered"], brokers["table"], at_core, strict=True
            )
            if chosen
        },
        "totals": dict(record.totals),
        "settings": dict(record.settings),
    }


def longest_queue(record: CoveringRecord) -> Column:
    """int64[looks]: the longest input queue of the core at each look."""
    return np.asarray(np.max([record.queues[name] for name in record.core], axis=0))
