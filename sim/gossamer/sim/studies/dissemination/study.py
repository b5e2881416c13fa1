"""Dissemination trees as a study: previewed and reported; see `study.contract`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, Final

import attrs
import psutil
from rich.console import Group, RenderableType

from gossamer.command.tables import FittingTable
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.report import table_html
from gossamer.sim.studies.checkpointed_runs import run_systems
from gossamer.sim.studies.dissemination.records import (
    TREES_MEASURES,
    StrategyRecord,
    TreesRunRecord,
    strategy_record,
    summarise_strategy,
)
from gossamer.sim.studies.dissemination.scenario import (
    FORMAT,
    KIND,
    Planning,
    TopologySection,
    TreesScenario,
    WorkloadSection,
)
from gossamer.sim.studies.dissemination.strategies import Setting, run_strategy
from gossamer.sim.studies.dissemination.topologies import Topology
from gossamer.sim.studies.dissemination.workload import KIND as WORKLOAD_KIND
from gossamer.sim.study.contract import Execution, Study
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import peak_memory_bytes, versions
from gossamer.sim.study.tasks import Progress

# A run of kind "trees": a scenario in, a `TreesRunRecord` out.
#
# Strategies run side by side in processes and share nothing but what the scenario draws. A strategy
# that is finished is kept at once, so that an interrupted run goes on with the others.


keep_compiled_code()

_SMALLEST: Final = TreesScenario(
    topology=TopologySection(kind="barabasi_albert", brokers=10, capacity=1.0),
    workload=WorkloadSection(keywords=5, documents=20),
    planning=Planning(sample_share=1.0),
)

# Processes that a scenario's strategies are spread over draw its workload once each.
_setting = lru_cache(maxsize=1)(TreesScenario.setting)


@lru_cache
def warm_up(strategy: str) -> None:
    """Run a strategy once on next to nothing, so that no planning time is one of compiling."""
    run_strategy(strategy, _SMALLEST.setting())


@attrs.frozen(kw_only=True)
class _Strategy:
    """One strategy of a scenario: a task of `run_tasks`."""

    scenario: TreesScenario
    strategy: str

    @property
    def label(self) -> str:
        return self.strategy

    def run(self) -> StrategyRecord:
        with use_compiled():
            warm_up(self.strategy)
            setting: Setting = _setting(self.scenario)
            outcome = run_strategy(self.strategy, setting)
            return strategy_record(
                setting,
                outcome,
                attrs.asdict(self.scenario.planning),
                self.scenario.planning.states,
                peak_memory_bytes(),
            )


def simulate_trees(
    scenario: TreesScenario,
    text: str = "",
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    processes: int = 2,
) -> TreesRunRecord:
    """Run a scenario to its end.

    Args:
        scenario: what to run.
        text: the file that it was read from, kept with the results.
        progress: called with "strategies", strategies done and strategies in all.
        checkpoint: folder where each strategy is kept when it is finished; removed by whoever
            writes the results; none is if None.
        resume: run only those that are not kept there.
        processes: strategies that run at a time.

    Raises:
        ScenarioError: a file that the scenario names is at fault, or what is kept is of another
            scenario.
        SimulationError: a strategy failed; those that are finished are kept.
    """
    started = time.monotonic()
    topology = scenario.topology.build(scenario.seed)
    execution = Execution(
        progress=progress, checkpoint=checkpoint, resume=resume, workers=processes
    )
    tasks = {
        strategy: _Strategy(scenario=scenario, strategy=strategy)
        for strategy in scenario.strategies
    }
    systems = run_systems(tasks, scenario, execution, name="strategies")
    return TreesRunRecord(
        scenario={"kind": scenario.kind, **attrs.asdict(scenario)},
        scenario_text=text,
        seed=scenario.seed,
        versions=versions(),
        wall_s=time.monotonic() - started,
        peak_rss_bytes=max(one.peak_rss_bytes for one in systems.values()),
        topology=topology,
        systems=_beside_optimum(systems),
    )


def _beside_optimum(systems: dict[str, StrategyRecord]) -> dict[str, StrategyRecord]:
    """The strategies' records, each with the cost of OPT if that is among them."""
    if "OPT" not in systems:
        return systems
    optimum = float(systems["OPT"].documents["cost"].sum())
    return {name: attrs.evolve(one, optimum=optimum) for name, one in systems.items()}


# What a scenario of kind "trees" would run, shown as a table.


# Measured: what a process takes with the compiler loaded, and for each document with its keywords,
# matches and bill; the path table takes 12 bytes a pair of brokers.
PROCESS_BYTES = 300 * 2**20
PAIR_BYTES = 12
DOCUMENT_BYTES = 2_000


def memory_bytes(scenario: TreesScenario, topology: Topology) -> int:
    """About what the process of one strategy will need."""
    pairs = topology.graph.nodes**2
    return PROCESS_BYTES + PAIR_BYTES * pairs + DOCUMENT_BYTES * scenario.workload.documents


def check_trees(scenario: TreesScenario) -> Topology:
    """The topology, when all that can be refused before a run is found to be possible.

    Raises:
        ScenarioError: a file of the scenario cannot be read or holds what cannot be, or this
            machine has not enough memory.
    """
    topology = scenario.topology.build(scenario.seed)
    if scenario.workload.file is not None:
        scenario.routed(topology)
    needed, present = memory_bytes(scenario, topology), psutil.virtual_memory().total
    if needed > present:
        expected = f"fewer: {_gib(needed)} would be needed, and this machine has {_gib(present)}"
        raise ScenarioError(None, "topology.brokers", topology.graph.nodes, expected)
    return topology


def trees_preview_table(scenario: TreesScenario) -> Group:
    """Check a scenario, its files and this machine, and show its size for people.

    Raises:
        ScenarioError: see `check_trees`.
    """
    topology = check_trees(scenario)
    table = FittingTable(
        title=f"{scenario.name}: would run",
        title_justify="left",
        title_style="bold",
        show_header=False,
    )
    for label, value in _rows(scenario, topology):
        table.add_row(label, value)
    return Group(table)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _rows(scenario: TreesScenario, topology: Topology) -> list[tuple[str, str]]:
    graph, workload = topology.graph, scenario.workload
    if workload.file is not None:
        documents = f"of {workload.file.name}"
    else:
        documents = (
            f"{workload.documents:,}, with up to {workload.document_keywords} of "
            f"{workload.keywords:,} keywords"
        )
    sampled = f"{100 * scenario.planning.sample_share:g} % sampled"
    capacity = scenario.topology.capacity
    return [
        ("strategies", ", ".join(scenario.strategies)),
        ("topology", f"{topology.name}: {graph.nodes:,} brokers, {graph.links:,} links"),
        ("links carry", f"{capacity:,g} each" if capacity else "anything"),
        ("neighbourhoods", f"{100 * workload.neighbourhood:g} % of the brokers"),
        ("documents", f"{documents}; {sampled}"),
        ("memory", f"about {memory_bytes(scenario, topology) / 2**20:,.0f} MiB a process"),
    ]


# The results of a run of kind "trees": what they have of their own in the result folder.
#
# <strategy>/documents, links, trees, pictured, mergers, states.parquet   see `records`
# plots/cost, mergers, states, trees                                      see `plots`


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


class TreesStudy(Study[TreesScenario, TreesRunRecord]):
    """Strategies of dissemination on one topology and workload."""

    kind = KIND
    format = FORMAT
    measures = TREES_MEASURES

    def taken_from(self, kind: str, folder: Path) -> Mapping[str, object]:
        """Subscriptions and documents of a workload of keywords."""
        if kind != WORKLOAD_KIND:
            return super().taken_from(kind, folder)
        return {"workload.file": folder}

    def check(self, scenario: TreesScenario) -> int:
        return memory_bytes(scenario, check_trees(scenario))

    def preview(self, scenario: TreesScenario) -> RenderableType:
        return trees_preview_table(scenario)

    def run(self, scenario: TreesScenario, text: str, execution: Execution) -> TreesRunRecord:
        return simulate_trees(
            scenario,
            text,
            progress=execution.progress,
            checkpoint=execution.checkpoint,
            resume=execution.resume,
            processes=execution.workers,
        )

    def summarise(self, system: Any) -> dict[str, Any]:
        return summarise_strategy(system)

    def facts(self, record: TreesRunRecord, summary: Mapping[str, Any]) -> str:
        return facts(record, summary)

    def drawings(self, record: TreesRunRecord) -> Iterable[Drawing]:
        from gossamer.sim.studies.dissemination.plots import drawings

        return drawings(record)

    def more(self, record: TreesRunRecord, summary: Mapping[str, Any]) -> str:
        del record
        return overloaded(summary)


TREES: Final = TreesStudy()
