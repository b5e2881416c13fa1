"""Broker overlays as a study: previewed, run, reported; see `study.contract`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import psutil
from rich.console import Group, RenderableType

from gossamer.command.tables import FittingTable
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.broker import compiled_index
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.report import table_html
from gossamer.sim.studies.checkpointed_runs import run_systems
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
from gossamer.sim.studies.tree_brokers.scenario import (
    FORMAT,
    KIND,
    BrokerScenario,
)
from gossamer.sim.studies.tree_brokers.unsubscription_burst import run_burst
from gossamer.sim.study.contract import Execution, Study
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Columns, Row, Table, peak_memory_bytes, versions
from gossamer.sim.study.tasks import Progress

# What a scenario of kind "brokers" would run, shown as a table.


# Measured: what a process takes with the compiler loaded, and for a subscription of the 55 brokers.
PROCESS_BYTES = 250 * 2**20
SUBSCRIPTION_BYTES = 14_000


def memory_bytes(scenario: BrokerScenario) -> int:
    """About what the process of one covering will need."""
    return PROCESS_BYTES + SUBSCRIPTION_BYTES * scenario.workload.subscriptions


def check_memory(scenario: BrokerScenario) -> None:
    """Refuse what this machine has no memory for; raises `ScenarioError`."""
    present = psutil.virtual_memory().total
    if memory_bytes(scenario) > present:
        expected = (
            f"fewer subscriptions: {scenario.workload.subscriptions:,} need "
            f"{_gib(memory_bytes(scenario))}, and this machine has {_gib(present)}"
        )
        raise ScenarioError(None, "workload.roots", scenario.workload.roots, expected)


def broker_preview_table(scenario: BrokerScenario) -> Group:
    """Check a scenario against this machine, and show its size for people.

    Raises:
        ScenarioError: the machine has not enough memory.
    """
    check_memory(scenario)
    table = FittingTable(
        title=f"{scenario.name}: would run",
        title_justify="left",
        title_style="bold",
        show_header=False,
    )
    for label, value in _rows(scenario):
        table.add_row(label, value)
    return Group(table)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _rows(scenario: BrokerScenario) -> list[tuple[str, str]]:
    overlay, workload, timing = scenario.overlay.build(), scenario.workload, scenario.timing
    publications = round((timing.calm_s + timing.aftermath_s) / timing.publish_every_s)
    return [
        ("coverings", ", ".join(scenario.coverings)),
        ("overlay", f"{overlay.name}, {len(overlay.graph)} brokers"),
        ("subscriptions", f"{workload.subscriptions:,}"),
        (
            "taken back",
            f"{workload.unsubscriptions:,} of {workload.roots:,} roots, "
            f"each of which covers {workload.degree:,}",
        ),
        ("publications", f"{publications:,}"),
        ("service times", scenario.service.kind),
        ("memory", f"about {memory_bytes(scenario) / 2**20:,.0f} MiB a covering"),
    ]


# The results of a run of a broker overlay: what they have of their own in the result folder.
#
# <covering>/deliveries, queues, brokers, aggregates.parquet   see `records.CoveringRecord`
# plots/delay, queues, triggered, tables, false_positives      see `plots`


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


# A run of a broker overlay: a scenario in, a `BrokerRunRecord` out.
#
# Coverings run side by side, a process each, and share nothing. A covering that is finished is kept
# at once, so that an interrupted run goes on with the others.


keep_compiled_code()


@attrs.frozen(kw_only=True)
class _Covering:
    """One covering of a scenario: a task of `run_tasks`."""

    scenario: BrokerScenario
    covering: str

    @property
    def label(self) -> str:
        return self.covering

    def run(self) -> CoveringRecord:
        burst = self.scenario.burst(self.covering)
        result = run_burst(burst, new_index=compiled_index)
        return covering_record(self.covering, burst, result, peak_memory_bytes())


def simulate_brokers(
    scenario: BrokerScenario,
    text: str = "",
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    processes: int = 2,
) -> BrokerRunRecord:
    """Run a scenario to its end.

    Args:
        scenario: what to run.
        text: the file that it was read from, kept with the results.
        progress: called with "coverings", coverings done and coverings in all.
        checkpoint: folder where each covering is kept when it is finished; removed by whoever
            writes the results; none is if None.
        resume: run only those that are not kept there.
        processes: coverings that run at a time.

    Raises:
        ScenarioError: what is kept is of another scenario.
        SimulationError: a covering failed; those that are finished are kept.
    """
    started = time.monotonic()
    execution = Execution(
        progress=progress, checkpoint=checkpoint, resume=resume, workers=processes
    )
    tasks = {
        covering: _Covering(scenario=scenario, covering=covering) for covering in scenario.coverings
    }
    systems = run_systems(tasks, scenario, execution, name="coverings")
    return BrokerRunRecord(
        scenario={"kind": scenario.kind, **attrs.asdict(scenario)},
        scenario_text=text,
        seed=scenario.seed,
        versions=versions(),
        wall_s=time.monotonic() - started,
        peak_rss_bytes=max(one.peak_rss_bytes for one in systems.values()),
        systems=systems,
    )


class BrokersStudy(Study[BrokerScenario, BrokerRunRecord]):
    """A burst of unsubscriptions on a tree of brokers, under several coverings."""

    kind = KIND
    format = FORMAT
    measures = BROKER_MEASURES
    tables = TABLES

    def check(self, scenario: BrokerScenario) -> int:
        check_memory(scenario)
        return memory_bytes(scenario)

    def preview(self, scenario: BrokerScenario) -> RenderableType:
        return broker_preview_table(scenario)

    def run(self, scenario: BrokerScenario, text: str, execution: Execution) -> BrokerRunRecord:
        return simulate_brokers(
            scenario,
            text,
            progress=execution.progress,
            checkpoint=execution.checkpoint,
            resume=execution.resume,
            processes=execution.workers,
        )

    def summarise(self, system: Any) -> dict[str, Any]:
        return summarise_covering(system)

    def facts(self, record: BrokerRunRecord, summary: Mapping[str, Any]) -> str:
        return facts(record, summary)

    def drawings(self, record: BrokerRunRecord) -> Iterable[Drawing]:
        from gossamer.sim.studies.tree_brokers.plots import drawings

        return drawings(record.systems)

    def more(self, record: BrokerRunRecord, summary: Mapping[str, Any]) -> str:
        del summary
        return kept_for_nobody(record)

    def restored(
        self, name: str, summary: Mapping[str, Any], tables: Mapping[str, Table]
    ) -> CoveringRecord:
        return restored(name, summary, tables)

    def rows(self, tables: Mapping[str, Columns]) -> Iterator[Row]:
        return broker_rows(tables["queues"], tables["brokers"])


BROKERS: Final = BrokersStudy()
