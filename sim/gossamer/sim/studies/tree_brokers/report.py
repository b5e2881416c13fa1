"""The results of a run of a broker overlay: what they have of their own in the result folder.

<covering>/deliveries, queues, brokers, aggregates.parquet   see `records.CoveringRecord`
plots/delay, queues, triggered, tables, false_positives      see `plots`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import numpy as np

from gossamer.sim.results.report import table_html
from gossamer.sim.studies.tree_brokers.records import BrokerRunRecord, CoveringRecord

# Subscriptions kept for nobody that the report lists, those with most false positives first.
LISTED: Final = 20


def facts(record: BrokerRunRecord, summary: Mapping[str, Any]) -> str:
    """The line below the title, HTML."""
    workload = record.scenario["workload"]
    first = next(iter(record.systems.values()))
    subscriptions = workload["roots"] * (workload["degree"] + 1)
    memory = summary["peak_rss_bytes"] / 2**20
    return (
        f"{len(first.brokers['broker'])} brokers, {subscriptions:,} subscriptions, "
        f"{workload['unsubscriptions']:,} of {workload['roots']:,} roots taken back, "
        f"{first.totals['publications']:,} publications, seed {summary['seed']}; "
        f"{summary['wall_s']:.1f} s of computing, at most {memory:,.0f} MiB of memory"
    )


def kept_for_nobody(record: BrokerRunRecord) -> str:
    """Which subscriptions stand for nobody, and what each costs."""
    parts = []
    for name, one in record.systems.items():
        rows = aggregate_rows(one)
        if rows:
            head = "".join(f"<th>{title}</th>" for title in _KEPT_COLUMNS)
            body = [
                "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"
                for row in rows[:LISTED]
            ]
            shown = f", the {LISTED} costliest" if len(rows) > LISTED else ""
            parts.append(f"<h3>{escape(name)}: {len(rows):,}{shown}</h3>" + table_html(head, body))
    return "<h2>Subscriptions kept for nobody</h2>" + "".join(parts) if parts else ""


_KEPT_COLUMNS: Final = ("broker", "neighbour", "subscription", "publications", "unwanted")


def aggregate_rows(record: CoveringRecord) -> Sequence[tuple[object, ...]]:
    """Subscriptions that stand for nobody, costliest first: broker, neighbour, subscription,
    publications that it brought, those of them that nobody wanted."""
    kept = record.aggregates
    columns = [kept[name] for name in ("broker", "neighbour", "filter", "arrivals")]
    unwanted = kept["false_positives"]
    order = np.lexsort((np.arange(len(unwanted)), -kept["arrivals"], -unwanted))
    return [tuple(column[place].item() for column in (*columns, unwanted)) for place in order]
