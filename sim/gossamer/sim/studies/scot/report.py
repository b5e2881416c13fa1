"""The results of a run of a SCOT: what they have of their own in the result folder.

<routing>/deliveries, queues, subscriptions.parquet   see `records.RoutingRecord`
plots/overlay, delay, queues, messages                see `plots`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer.sim.studies.scot.records import ScotRunRecord


def facts(record: ScotRunRecord, summary: Mapping[str, Any]) -> str:
    """The line below the title, HTML."""
    burst = next(iter(record.systems.values())).burst
    scot = burst.scot
    memory = summary["peak_rss_bytes"] / 2**20
    return (
        f"{scot.broker_count} brokers in {len(scot.clusters)} clusters, "
        f"{burst.subscribers:,} subscribers, {burst.publishers:,} publishers, "
        f"a burst of {burst.burst_notifications:,} at {burst.burst_per_minute:,} a minute, "
        f"seed {summary['seed']}; "
        f"{summary['wall_s']:.1f} s of computing, at most {memory:,.0f} MiB of memory"
    )
