"""The measures of one covering in a storm, from its tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer.sim.results.summary import percentile
from gossamer.sim.studies.tree_brokers.records import CoveringRecord
from gossamer.sim.study.records import Column


def summarise_covering(record: CoveringRecord) -> dict[str, Any]:
    """The entry of ``summary.json``: ratios 0 to 1, times in seconds.

    What is meant by each measure stands in `gossamer.sim.studies.peers.measuring.measures`. ``core`` has triggered
    messages and table entries of each core broker.
    """
    delays, published = record.deliveries["delay_s"], record.deliveries["published_s"]
    brokers = record.brokers
    at_core = np.isin(brokers["broker"], record.core)
    last = brokers["broker"] == record.core[-1]
    late = published >= np.quantile(published, 0.9) if len(published) else slice(0)
    return {
        "delay_mean_s": _mean(delays),
        "delay_p99_s": percentile(delays, 99),
        "delay_max_s": percentile(delays, 100),
        "delay_end_s": _mean(delays[late]),
        "queue_max": int(longest_queue(record).max(initial=0)),
        "triggered_messages": int(brokers["triggered"].sum()),
        "triggered_last": int(brokers["triggered"][last].sum()),
        "table_entries_mean": _mean(brokers["table"]),
        "table_entries_core": _mean(brokers["table"][at_core]),
        "false_positives": int(brokers["false_positives"].sum()),
        "false_positive_ratio": _ratio(brokers["false_positives"], brokers["publications"]),
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


def _mean(values: Column) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else math.nan


def _ratio(parts: Column, wholes: Column) -> float:
    whole = int(wholes.sum())
    return int(parts.sum()) / whole if whole else math.nan
