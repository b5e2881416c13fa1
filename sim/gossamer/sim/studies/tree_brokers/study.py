"""Broker overlays as a study: previewed, run, reported; see `study.contract`.

<covering>/deliveries, queues, brokers, aggregates.parquet   see `records.CoveringRecord`
plots/delay, queues, triggered, tables, false_positives      see `plots`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

import numpy as np

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.broker import compiled_index
from gossamer.sim.results.report import table_html
from gossamer.sim.studies.side_by_side import SideBySideStudy, check_memory, effort
from gossamer.sim.studies.tree_brokers.records import (
    BROKER_MEASURES,
    TABLES,
    BrokerRunRecord,
    CoveringRecord,
    broker_rows,
    covering_record,
    restored,
    summarise_covering,
)
from gossamer.sim.studies.tree_brokers.scenario import FORMAT, KIND, BrokerScenario
from gossamer.sim.studies.tree_brokers.unsubscription_burst import run_burst
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Columns, Row, Table, peak_memory_bytes

keep_compiled_code()

# Measured: what a process takes with the compiler loaded, and for a subscription of the 55 brokers.
PROCESS_BYTES = 250 * 2**20
SUBSCRIPTION_BYTES = 14_000

# Subscriptions kept for nobody that the report lists, those with most false positives first.
LISTED: Final = 20
_KEPT_COLUMNS: Final = ("broker", "neighbour", "subscription", "publications", "unwanted")


def aggregate_rows(record: CoveringRecord) -> Sequence[tuple[object, ...]]:
    """Subscriptions that stand for nobody, costliest first: broker, neighbour, subscription,
    publications that it brought, those of them that nobody wanted."""
    kept = record.aggregates
    columns = [kept[name] for name in ("broker", "neighbour", "filter", "arrivals")]
    unwanted = kept["false_positives"]
    order = np.lexsort((np.arange(len(unwanted)), -kept["arrivals"], -unwanted))
    return [tuple(column[place].item() for column in (*columns, unwanted)) for place in order]


class BrokersStudy(SideBySideStudy[BrokerScenario, CoveringRecord]):
    """A burst of unsubscriptions on a tree of brokers, under several coverings."""

    kind = KIND
    format = FORMAT
    measures = BROKER_MEASURES
    tables = TABLES
    listed = "coverings"

    def check(self, scenario: BrokerScenario) -> int:
        workload = scenario.workload
        needed = PROCESS_BYTES + SUBSCRIPTION_BYTES * workload.subscriptions
        words = f"fewer subscriptions: {workload.subscriptions:,} need {{}}"
        return check_memory(needed, "workload.roots", workload.roots, words)

    def sizes(self, scenario: BrokerScenario) -> Iterator[tuple[str, str]]:
        needed = self.check(scenario)
        overlay, workload, timing = scenario.overlay.build(), scenario.workload, scenario.timing
        publications = round((timing.calm_s + timing.aftermath_s) / timing.publish_every_s)
        yield "coverings", ", ".join(scenario.coverings)
        yield "overlay", f"{overlay.name}, {len(overlay.graph)} brokers"
        yield "subscriptions", f"{workload.subscriptions:,}"
        yield (
            "taken back",
            f"{workload.unsubscriptions:,} of {workload.roots:,} roots, "
            f"each of which covers {workload.degree:,}",
        )
        yield "publications", f"{publications:,}"
        yield "service times", scenario.service.kind
        yield "memory", f"about {needed / 2**20:,.0f} MiB a covering"

    def run_one(self, scenario: BrokerScenario, system: str) -> CoveringRecord:
        burst = scenario.burst(system)
        result = run_burst(burst, new_index=compiled_index)
        return covering_record(system, burst, result, peak_memory_bytes())

    def summarise(self, system: Any) -> dict[str, Any]:
        return summarise_covering(system)

    def facts(self, record: BrokerRunRecord, summary: Mapping[str, Any]) -> str:
        workload = record.scenario["workload"]
        first = next(iter(record.systems.values()))
        subscriptions = workload["roots"] * (workload["degree"] + 1)
        return (
            f"{len(first.brokers['broker'])} brokers, {subscriptions:,} subscriptions, "
            f"{workload['unsubscriptions']:,} of {workload['roots']:,} roots taken back, "
            f"{first.totals['publications']:,} publications, {effort(summary)}"
        )

    def drawings(self, record: BrokerRunRecord) -> Iterable[Drawing]:
        from gossamer.sim.studies.tree_brokers.plots import drawings

        return drawings(record.systems)

    def more(self, record: BrokerRunRecord, summary: Mapping[str, Any]) -> str:
        """Which subscriptions stand for nobody, and what each costs."""
        del summary
        parts = []
        head = "".join(f"<th>{title}</th>" for title in _KEPT_COLUMNS)
        for name, one in record.systems.items():
            rows = aggregate_rows(one)
            body = [
                "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"
                for row in rows[:LISTED]
            ]
            shown = f", the {LISTED} costliest" if len(rows) > LISTED else ""
            if rows:
                title = f"<h3>{escape(name)}: {len(rows):,}{shown}</h3>"
                parts.append(title + table_html(head, body))
        return "<h2>Subscriptions kept for nobody</h2>" + "".join(parts) if parts else ""

    def restored(
        self, name: str, summary: Mapping[str, Any], tables: Mapping[str, Table]
    ) -> CoveringRecord:
        return restored(name, summary, tables)

    def rows(self, tables: Mapping[str, Columns]) -> Iterator[Row]:
        return broker_rows(tables["queues"], tables["brokers"])


BROKERS: Final = BrokersStudy()
