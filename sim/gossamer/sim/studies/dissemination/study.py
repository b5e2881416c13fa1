"""Dissemination trees as a study: previewed and reported; see `study.contract`.

<strategy>/documents, links, trees, pictured, mergers, states.parquet   see `records`
plots/cost, mergers, states, trees                                      see `plots`
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.results.report import table_html
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
from gossamer.sim.studies.side_by_side import SideBySideStudy, check_memory, effort
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import peak_memory_bytes

keep_compiled_code()

_SMALLEST: Final = TreesScenario(
    topology=TopologySection(kind="barabasi_albert", brokers=10, capacity=1.0),
    workload=WorkloadSection(keywords=5, documents=20),
    planning=Planning(sample_share=1.0),
)

# Measured: what a process takes with the compiler loaded, and for each document with its keywords,
# matches and bill; the path table takes 12 bytes a pair of brokers.
PROCESS_BYTES = 300 * 2**20
PAIR_BYTES = 12
DOCUMENT_BYTES = 2_000

# Processes that a scenario's strategies are spread over draw its workload once each.
_setting = lru_cache(maxsize=1)(TreesScenario.setting)


@lru_cache
def warm_up(strategy: str) -> None:
    """Run a strategy once on next to nothing, so that no planning time is one of compiling."""
    run_strategy(strategy, _SMALLEST.setting())


def check_trees(scenario: TreesScenario) -> tuple[Topology, int]:
    """Topology and bytes needed, when all that can be refused before a run is possible.

    Raises:
        ScenarioError: a file of the scenario cannot be read or holds what cannot be, or this
            machine has not enough memory.
    """
    topology = scenario.topology.build(scenario.seed)
    if scenario.workload.file is not None:
        scenario.routed(topology)
    nodes = topology.graph.nodes
    needed = PROCESS_BYTES + PAIR_BYTES * nodes**2 + DOCUMENT_BYTES * scenario.workload.documents
    check_memory(needed, "topology.brokers", nodes, "fewer: {} would be needed")
    return topology, needed


class TreesStudy(SideBySideStudy[TreesScenario, StrategyRecord]):
    """Strategies of dissemination on one topology and workload."""

    kind = KIND
    format = FORMAT
    measures = TREES_MEASURES
    listed = "strategies"

    def taken_from(self, kind: str, folder: Path) -> Mapping[str, object]:
        """Subscriptions and documents of a workload of keywords."""
        if kind != WORKLOAD_KIND:
            return super().taken_from(kind, folder)
        return {"workload.file": folder}

    def check(self, scenario: TreesScenario) -> int:
        return check_trees(scenario)[1]

    def sizes(self, scenario: TreesScenario) -> Iterator[tuple[str, str]]:
        topology, needed = check_trees(scenario)
        graph, workload, capacity = topology.graph, scenario.workload, scenario.topology.capacity
        if workload.file is not None:
            documents = f"of {workload.file.name}"
        else:
            documents = (
                f"{workload.documents:,}, with up to {workload.document_keywords} of "
                f"{workload.keywords:,} keywords"
            )
        yield "strategies", ", ".join(scenario.strategies)
        yield "topology", f"{topology.name}: {graph.nodes:,} brokers, {graph.links:,} links"
        yield "links carry", f"{capacity:,g} each" if capacity else "anything"
        yield "neighbourhoods", f"{100 * workload.neighbourhood:g} % of the brokers"
        yield "documents", f"{documents}; {100 * scenario.planning.sample_share:g} % sampled"
        yield "memory", f"about {needed / 2**20:,.0f} MiB a process"

    def common(self, scenario: TreesScenario) -> Topology:
        return scenario.topology.build(scenario.seed)

    def run_one(self, scenario: TreesScenario, system: str) -> StrategyRecord:
        with use_compiled():
            warm_up(system)
            setting: Setting = _setting(scenario)
            outcome = run_strategy(system, setting)
            settings, states = attrs.asdict(scenario.planning), scenario.planning.states
            return strategy_record(setting, outcome, settings, states, peak_memory_bytes())

    def run(self, scenario: TreesScenario, text: str, execution: Execution) -> TreesRunRecord:
        """Run all; each has the cost of OPT beside its own if that is among them."""
        record = super().run(scenario, text, execution)
        systems = record.systems
        if "OPT" not in systems:
            return record
        optimum = float(systems["OPT"].documents["cost"].sum())
        beside = {name: attrs.evolve(one, optimum=optimum) for name, one in systems.items()}
        return dataclasses.replace(record, systems=beside)

    def summarise(self, system: Any) -> dict[str, Any]:
        return summarise_strategy(system)

    def facts(self, record: TreesRunRecord, summary: Mapping[str, Any]) -> str:
        totals = next(iter(record.systems.values())).totals
        verdicts = "".join(
            f"; {escape(name)}: {escape(one.verdict)}"
            for name, one in record.systems.items()
            if one.verdict
        )
        return (
            f"{escape(record.common.name)}: {totals['brokers']:,} brokers, "
            f"{totals['links']:,} links, "
            f"{totals['subscriptions']:,} subscriptions; {totals['documents']:,} documents, "
            f"{totals['sampled']:,} of them sampled; {effort(summary)}{verdicts}"
        )

    def drawings(self, record: TreesRunRecord) -> Iterable[Drawing]:
        from gossamer.sim.studies.dissemination.plots import drawings

        return drawings(record)

    def more(self, record: TreesRunRecord, summary: Mapping[str, Any]) -> str:
        """The links that have to carry more than they can, by strategy."""
        del record
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
            '<th>strategy</th><th>link</th><th class="value">load</th>'
            '<th class="value">capacity</th>'
        )
        title = "<h2>Links beyond their capacity, the worst of each strategy</h2>"
        return title + table_html(head, rows)


TREES: Final = TreesStudy()
