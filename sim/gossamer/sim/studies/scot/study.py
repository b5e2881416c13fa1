"""Structured cyclic overlays as a study, see `gossamer.sim.study.contract`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import RenderableType

from gossamer.sim.studies.scot.measures import SCOT_MEASURES
from gossamer.sim.studies.scot.preview import check_scot, memory_bytes, scot_preview_table
from gossamer.sim.studies.scot.records import ScotRunRecord, summarise_routing
from gossamer.sim.studies.scot.report import facts
from gossamer.sim.studies.scot.scenario import KIND, ScotScenario
from gossamer.sim.studies.scot.scenario_file import scenario_from_document, scenario_to_toml
from gossamer.sim.studies.scot.simulation import simulate_scot
from gossamer.sim.study.contract import Execution, Study
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.toml_files import Document


class ScotStudy(Study[ScotScenario, ScotRunRecord]):
    """A burst of notifications on a structured cyclic overlay, under several ways of routing."""

    kind = KIND
    measures = SCOT_MEASURES

    def read(self, document: Document, overrides: Mapping[str, object]) -> ScotScenario:
        return scenario_from_document(document, overrides)

    def write(self, scenario: ScotScenario) -> str:
        return scenario_to_toml(scenario)

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
