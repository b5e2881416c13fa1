"""Peers without servers as a study, see `gossamer.sim.study.contract`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from rich.console import RenderableType

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.scenario import KIND, Scenario
from gossamer.sim.studies.peers.inputs.scenario_file import FORMAT
from gossamer.sim.studies.peers.inputs.table_workload import KIND as WORKLOAD_KIND
from gossamer.sim.studies.peers.inputs.table_workload import values_for
from gossamer.sim.studies.peers.measuring.kept_workload import KEEPABLE, kept_tables
from gossamer.sim.studies.peers.measuring.measures import MEASURES
from gossamer.sim.studies.peers.measuring.records import (
    TRAFFIC_TABLES,
    RunRecord,
    SystemRecord,
    restored,
)
from gossamer.sim.studies.peers.measuring.round_by_round import course_of, places_of
from gossamer.sim.studies.peers.measuring.summary import (
    ROW_ORDER,
    TABLES,
    outgrown,
    peer_rows,
    summarise_system,
)
from gossamer.sim.studies.peers.preview import preview, preview_table
from gossamer.sim.studies.peers.simulation import simulate
from gossamer.sim.study.contract import Execution, Study
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Table
from gossamer.sim.study.statistics import Columns, Row
from gossamer.sim.study.watching import Course, Floats


class PeersStudy(Study[Scenario, RunRecord]):
    """Vinifera and its baseline on one workload, under churn."""

    kind = KIND
    format = FORMAT
    progress_unit = "rounds"
    threaded = True
    watched = True
    keepable = KEEPABLE
    measures = MEASURES
    row_order = ROW_ORDER
    unhashed = TRAFFIC_TABLES
    tables = TABLES

    def alone(self, scenario: Scenario, system: str) -> Scenario:
        chosen = tuple(one for one in scenario.systems if one.name == system)
        if not chosen:
            known = ", ".join(one.name for one in scenario.systems)
            raise ScenarioError(None, "system", system, f"one of {known}")
        alone: Scenario = attrs.evolve(scenario, systems=chosen)
        return alone

    def taken_from(self, kind: str, folder: Path) -> Mapping[str, object]:
        """Subscriptions and events of a workload "vinifera", or the trace of one of churn."""
        if kind == "churn":
            return {"churn.trace": folder / "trace.parquet"}
        return values_for(folder) if kind == WORKLOAD_KIND else super().taken_from(kind, folder)

    def check(self, scenario: Scenario) -> int:
        return preview(scenario).memory_bytes

    def preview(self, scenario: Scenario) -> RenderableType:
        return preview_table(preview(scenario))

    def run(self, scenario: Scenario, text: str, execution: Execution) -> RunRecord:
        return simulate(
            scenario,
            text,
            progress=execution.progress,
            checkpoint=execution.checkpoint,
            resume=execution.resume,
            threads=execution.workers,
            watch=execution.watch,
        )

    def summarise(self, system: Any) -> dict[str, Any]:
        return summarise_system(system)

    def facts(self, record: RunRecord, summary: Mapping[str, Any]) -> str:
        del record
        systems = summary["systems"].values()
        nodes, cycles, events = (
            max((system[name] for system in systems), default=0)
            for name in ("nodes", "cycles", "events")
        )
        memory = summary["peak_rss_bytes"] / 2**20
        return (
            f"{nodes:,} nodes, {cycles:,} cycles, {events:,} events, seed {summary['seed']}; "
            f"{summary['wall_s']:.1f} s of computing, at most {memory:,.0f} MiB of memory"
        )

    def drawings(self, record: RunRecord) -> Iterable[Drawing]:
        from gossamer.sim.studies.peers.measuring.plots import drawings

        return drawings(record.systems)

    def restored(
        self, name: str, summary: Mapping[str, Any], tables: Mapping[str, Table]
    ) -> SystemRecord:
        return restored(name, summary, tables)

    def course(self, tables: Callable[[str], Table], scenario: Mapping[str, Any]) -> Course:
        del scenario
        return course_of(tables("cycles"))

    def places(self, nodes: Table) -> Mapping[str, Floats]:
        return places_of(nodes)

    def keep(self, scenario: Scenario, record: RunRecord, what: str) -> Iterator[tuple[str, Table]]:
        return kept_tables(scenario, record, what)

    def too_small(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        return outgrown(systems)

    def rows(self, tables: Mapping[str, Columns]) -> Iterator[Row]:
        return peer_rows(tables["events"], tables["nodes"], tables["cycles"])


PEERS: Final = PeersStudy()
