"""Dissemination trees as a study, see `gossamer.sim.study.contract`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import RenderableType

from gossamer.sim.studies.dissemination.measures import TREES_MEASURES, summarise_strategy
from gossamer.sim.studies.dissemination.preview import (
    check_trees,
    memory_bytes,
    trees_preview_table,
)
from gossamer.sim.studies.dissemination.records import TreesRunRecord
from gossamer.sim.studies.dissemination.report import facts, overloaded
from gossamer.sim.studies.dissemination.scenario import KIND, TreesScenario
from gossamer.sim.studies.dissemination.scenario_file import (
    resolve_paths,
    scenario_from_document,
    scenario_to_toml,
)
from gossamer.sim.studies.dissemination.simulation import simulate_trees
from gossamer.sim.studies.dissemination.workload.keyword_tables import KIND as WORKLOAD_KIND
from gossamer.sim.study.contract import Execution, Study
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.toml_files import Document


class TreesStudy(Study[TreesScenario, TreesRunRecord]):
    """Strategies of dissemination on one topology and workload."""

    kind = KIND
    measures = TREES_MEASURES

    def resolve_paths(self, document: Document, folder: Path) -> bool:
        return resolve_paths(document, folder)

    def read(self, document: Document, overrides: Mapping[str, object]) -> TreesScenario:
        return scenario_from_document(document, overrides)

    def write(self, scenario: TreesScenario) -> str:
        return scenario_to_toml(scenario)

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
