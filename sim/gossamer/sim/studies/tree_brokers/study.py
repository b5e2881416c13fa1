"""Broker overlays as a study, see `gossamer.sim.study.contract`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rich.console import RenderableType

from gossamer.sim.studies.tree_brokers.crunched import TABLES, broker_rows
from gossamer.sim.studies.tree_brokers.measures import BROKER_MEASURES, summarise_covering
from gossamer.sim.studies.tree_brokers.preview import (
    broker_preview_table,
    check_memory,
    memory_bytes,
)
from gossamer.sim.studies.tree_brokers.records import BrokerRunRecord, CoveringRecord, restored
from gossamer.sim.studies.tree_brokers.report import facts, kept_for_nobody
from gossamer.sim.studies.tree_brokers.scenario import KIND, BrokerScenario
from gossamer.sim.studies.tree_brokers.scenario_file import scenario_from_document, scenario_to_toml
from gossamer.sim.studies.tree_brokers.simulation import simulate_brokers
from gossamer.sim.study.contract import Execution, Study
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Table
from gossamer.sim.study.statistics import Columns, Row
from gossamer.sim.study.toml_files import Document


class BrokersStudy(Study[BrokerScenario, BrokerRunRecord]):
    """A burst of unsubscriptions on a tree of brokers, under several coverings."""

    kind = KIND
    measures = BROKER_MEASURES
    tables = TABLES

    def read(self, document: Document, overrides: Mapping[str, object]) -> BrokerScenario:
        return scenario_from_document(document, overrides)

    def write(self, scenario: BrokerScenario) -> str:
        return scenario_to_toml(scenario)

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
