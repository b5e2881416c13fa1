"""Structured cyclic overlays as a study: previewed, run, reported; see `study.contract`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import psutil
from rich.console import Group, RenderableType

from gossamer.command.tables import FittingTable
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.checkpointed_runs import run_systems
from gossamer.sim.studies.scot.burst import run_burst
from gossamer.sim.studies.scot.records import (
    SCOT_MEASURES,
    RoutingRecord,
    ScotRunRecord,
    summarise_routing,
)
from gossamer.sim.studies.scot.scenario import (
    FORMAT,
    KIND,
    ScotScenario,
)
from gossamer.sim.study.contract import Execution, Study
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import peak_memory_bytes, versions
from gossamer.sim.study.tasks import Progress

# What a scenario of kind "scot" would run, shown as a table.


# Measured, and rounded up: a process with the compiler loaded; a subscription with what is written
# down of it at each broker; a publication with its deliveries at each broker.
PROCESS_BYTES = 300 * 2**20
SUBSCRIPTION_BYTES = 3_000
SUBSCRIPTION_BYTES_A_BROKER = 400
PUBLICATION_BYTES = 100
PUBLICATION_BYTES_A_BROKER = 50


def memory_bytes(scenario: ScotScenario) -> int:
    """About what the process of one way of routing will need, at most."""
    brokers = scenario.overlay.build().broker_count
    return (
        PROCESS_BYTES
        + scenario.workload.subscribers
        * (SUBSCRIPTION_BYTES + SUBSCRIPTION_BYTES_A_BROKER * brokers)
        + _publications(scenario) * (PUBLICATION_BYTES + PUBLICATION_BYTES_A_BROKER * brokers)
    )


def check_memory(scenario: ScotScenario) -> None:
    """Refuse what this machine has no memory for; raises `ScenarioError`."""
    present = psutil.virtual_memory().total
    if memory_bytes(scenario) > present:
        expected = (
            "fewer subscribers or publications: they need up to "
            f"{memory_bytes(scenario) / 2**30:.1f} GiB, and this machine has "
            f"{present / 2**30:.1f} GiB"
        )
        raise ScenarioError(None, "workload.subscribers", scenario.workload.subscribers, expected)


def check_scot(scenario: ScotScenario) -> None:
    """Refuse what can be refused before a run.

    Raises:
        ScenarioError: the machine has not enough memory, or the file of quotes is not as it should
            be.
    """
    check_memory(scenario)
    # Read, or made up, when they are asked for.
    _ = scenario.workload.contents(scenario.seed).contents


def scot_preview_table(scenario: ScotScenario) -> Group:
    """Check a scenario, its file and this machine, and show its size for people.

    Raises:
        ScenarioError: see `check_scot`.
    """
    check_scot(scenario)
    table = FittingTable(
        title=f"{scenario.name}: would run",
        title_justify="left",
        title_style="bold",
        show_header=False,
    )
    for label, value in _rows(scenario):
        table.add_row(label, value)
    return Group(table)


def _publications(scenario: ScotScenario) -> int:
    workload = scenario.workload
    return workload.publishers * workload.notifications + scenario.burst.notifications


def _rows(scenario: ScotScenario) -> list[tuple[str, str]]:
    scot, workload, burst = scenario.overlay.build(), scenario.workload, scenario.burst
    where = burst.broker or "any broker"
    return [
        ("routings", ", ".join(scenario.routings)),
        (
            "overlay",
            f"{scot.broker_count:,} brokers: {len(scot.clusters)} clusters of "
            f"{len(scot.regions)} regions",
        ),
        (
            "links",
            f"{scot.intra_cluster_count:,} within clusters, "
            f"{scot.inter_cluster_count:,} between them",
        ),
        ("subscribers", f"{workload.subscribers:,}, to {workload.kind}"),
        (
            "publishers",
            f"{workload.publishers:,}, each of {workload.notifications:,} notifications "
            f"at {workload.per_minute:,} a minute",
        ),
        (
            "burst",
            f"{burst.notifications:,} at {burst.per_minute:,} a minute from {where}, "
            f"to {burst.subscribers} subscribers in each cluster",
        ),
        ("memory", f"at most about {memory_bytes(scenario) / 2**20:,.0f} MiB a way of routing"),
    ]


# The results of a run of a SCOT: what they have of their own in the result folder.
#
# <routing>/deliveries, queues, subscriptions.parquet   see `records.RoutingRecord`
# plots/overlay, delay, queues, messages                see `plots`


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


# A run of a SCOT: a scenario in, a `ScotRunRecord` out.
#
# Ways of routing run side by side, a process each, and share nothing. One that is finished is kept
# at once, so that an interrupted run goes on with the others.


@attrs.frozen(kw_only=True)
class _Routing:
    """One way of routing of a scenario: a task of `run_tasks`."""

    scenario: ScotScenario
    routing: str

    @property
    def label(self) -> str:
        return self.routing

    def run(self) -> RoutingRecord:
        burst = self.scenario.run_of(self.routing)
        result = run_burst(burst)
        return RoutingRecord(
            name=self.routing, burst=burst, result=result, peak_rss_bytes=peak_memory_bytes()
        )


def simulate_scot(
    scenario: ScotScenario,
    text: str = "",
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    processes: int = 2,
) -> ScotRunRecord:
    """Run a scenario to its end.

    Args:
        scenario: what to run.
        text: the file that it was read from, kept with the results.
        progress: called with "routings", those that are done and those in all.
        checkpoint: folder where each way of routing is kept when it is finished; removed by
            whoever writes the results; none is if None.
        resume: run only those that are not kept there.
        processes: how many run at a time.

    Raises:
        ScenarioError: what is kept is of another scenario.
        SimulationError: a run failed; those that are finished are kept.
    """
    started = time.monotonic()
    execution = Execution(
        progress=progress, checkpoint=checkpoint, resume=resume, workers=processes
    )
    tasks = {routing: _Routing(scenario=scenario, routing=routing) for routing in scenario.routings}
    systems = run_systems(tasks, scenario, execution, name="routings")
    return ScotRunRecord(
        scenario={"kind": scenario.kind, **attrs.asdict(scenario)},
        scenario_text=text,
        seed=scenario.seed,
        versions=versions(),
        wall_s=time.monotonic() - started,
        peak_rss_bytes=max(one.peak_rss_bytes for one in systems.values()),
        systems=systems,
    )


class ScotStudy(Study[ScotScenario, ScotRunRecord]):
    """A burst of notifications on a structured cyclic overlay, under several ways of routing."""

    kind = KIND
    format = FORMAT
    measures = SCOT_MEASURES

    def check(self, scenario: ScotScenario) -> int:
        check_scot(scenario)
        return memory_bytes(scenario)

    def preview(self, scenario: ScotScenario) -> RenderableType:
        return scot_preview_table(scenario)

    def run(self, scenario: ScotScenario, text: str, execution: Execution) -> ScotRunRecord:
        return simulate_scot(
            scenario,
            text,
            progress=execution.progress,
            checkpoint=execution.checkpoint,
            resume=execution.resume,
            processes=execution.workers,
        )

    def summarise(self, system: Any) -> dict[str, Any]:
        return summarise_routing(system)

    def facts(self, record: ScotRunRecord, summary: Mapping[str, Any]) -> str:
        return facts(record, summary)

    def drawings(self, record: ScotRunRecord) -> Iterable[Drawing]:
        from gossamer.sim.studies.scot.plots import drawings

        return drawings(record)


SCOT: Final = ScotStudy()
