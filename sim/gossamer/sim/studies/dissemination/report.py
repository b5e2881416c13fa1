"""The results of a run of kind "trees": what they have of their own in the result folder.

<strategy>/documents, links, trees, pictured, mergers, states.parquet   see `records`
plots/cost, mergers, states, trees                                      see `plots`
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from gossamer.sim.results.report import table_html
from gossamer.sim.studies.dissemination.records import TreesRunRecord


def facts(record: TreesRunRecord, summary: Mapping[str, Any]) -> str:
    """The line below the title, HTML."""
    totals = next(iter(record.systems.values())).totals
    memory = summary["peak_rss_bytes"] / 2**20
    verdicts = "".join(
        f"; {escape(name)}: {escape(one.verdict)}"
        for name, one in record.systems.items()
        if one.verdict
    )
    return (
        f"{escape(record.topology.name)}: {totals['brokers']:,} brokers, "
        f"{totals['links']:,} links, "
        f"{totals['subscriptions']:,} subscriptions; {totals['documents']:,} documents, "
        f"{totals['sampled']:,} of them sampled; seed {summary['seed']}; "
        f"{summary['wall_s']:.1f} s of computing, at most {memory:,.0f} MiB of memory{verdicts}"
    )


def overloaded(summary: Mapping[str, Any]) -> str:
    """The links that have to carry more than they can, by strategy."""
    rows = [
        f"<tr><td>{escape(name)}</td><td>{escape(link['one'])}, {escape(link['other'])}</td>"
        f'<td class="value">{link["load"]:,.0f}</td>'
        f'<td class="value">{link["capacity"]:,.0f}</td></tr>'
        for name, strategy in summary["systems"].items()
        for link in strategy["worst_links"]
    ]
    if not rows:
        return ""
    head = (
        '<th>strategy</th><th>link</th><th class="value">load</th><th class="value">capacity</th>'
    )
    return "<h2>Links beyond their capacity, the worst of each strategy</h2>" + table_html(
        head, rows
    )
