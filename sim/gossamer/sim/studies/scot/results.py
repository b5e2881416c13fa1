"""The results of a run of a SCOT: what they have of their own in the result folder.

<routing>/deliveries, queues, subscriptions.parquet   see `records.RoutingRecord`
plots/overlay, delay, queues, messages                see `plots`
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gossamer.sim.results.results import PLOTS_FOLDER, REPORT_FILE, Form, write_results
from gossamer.sim.studies.scot.records import ScotRunRecord, summarise_routing


def write_scot_results(
    record: ScotRunRecord, path: Path, *, pictures: bool = True
) -> dict[str, Any]:
    """Write ``record`` as the result folder ``path``, see `results.write_results`."""
    form = Form(summarise_routing, _write_pictures)
    return write_results(record, path, pictures=pictures, form=form)


def _write_pictures(record: ScotRunRecord, summary: dict[str, Any], folder: Path) -> None:
    from gossamer.sim.results.report import report_html
    from gossamer.sim.studies.scot.plots import write_plots

    plots = write_plots(record, folder / PLOTS_FOLDER)
    page = report_html(record, summary, plots, facts=_facts(record, summary))
    (folder / REPORT_FILE).write_text(page, encoding="utf-8")


def _facts(record: ScotRunRecord, summary: Mapping[str, Any]) -> str:
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
