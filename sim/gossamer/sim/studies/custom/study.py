"""Protocols of one's own as a study, see `gossamer.sim.study.contract`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from types import MappingProxyType
from typing import Any, Final

import psutil
from rich.console import Group, RenderableType

from gossamer.command.tables import FittingTable
from gossamer.sim.custom.conditions import whole_seconds
from gossamer.sim.custom.node import Node
from gossamer.sim.custom.protocol import bytes_a_node
from gossamer.sim.engine.latency import Latency
from gossamer.sim.engine.windows.window_engine import suits_windows
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.report import table_html
from gossamer.sim.studies.checkpointed_runs import only
from gossamer.sim.studies.custom.records import (
    LOG,
    MEASURES,
    CustomRecord,
    CustomRunRecord,
    course_of,
    summarise_system,
)
from gossamer.sim.studies.custom.rehearsal import rehearse
from gossamer.sim.studies.custom.scenario import FORMAT, KIND, CustomScenario, CustomSystem
from gossamer.sim.studies.custom.simulation import Prepared, prepare, simulate_custom
from gossamer.sim.studies.worlds.network import make_latency
from gossamer.sim.studies.worlds.sessions import latency_words, network_words
from gossamer.sim.study.contract import Execution, Study, size_table
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import (
    REAL,
    WHOLE,
    Columns,
    Expected,
    Measure,
    Row,
    Table,
    distribution,
    measure_rows,
)
from gossamer.sim.study.watching import Course

# What a scenario would run, and about how much memory that takes.


# Measured and rounded up: a process with all libraries, a plain node, and what engines have a node.
_PROCESS_BYTES: Final = 400 * 2**20
_PLAIN_NODE_BYTES: Final = 2000
_ENGINE_BYTES: Final = 200


def bytes_of(scenario: CustomScenario, nodes: int) -> int:
    """About how many bytes a run needs.

    Raises:
        ScenarioError: this machine has less.
    """
    needed = _PROCESS_BYTES + nodes * sum(map(_bytes_a_node, scenario.systems))
    present = psutil.virtual_memory().total
    if needed > present:
        expected = f"so few that about {needed / 2**30:.1f} GiB are not more than this machine has"
        raise ScenarioError(None, "nodes", nodes, expected)
    return needed


def _bytes_a_node(system: CustomSystem) -> int:
    declared = system.protocol.declared
    if issubclass(declared.owner, Node):
        return _PLAIN_NODE_BYTES
    return bytes_a_node(declared, system.settings) + _ENGINE_BYTES


def _engine_words(scenario: CustomScenario, latency: Latency) -> str:
    """Which engine runs, and whether threads are of use to it."""
    if scenario.engine != "windows" or suits_windows(latency, whole_seconds(scenario.round_s)):
        return scenario.engine
    return "windows, on one thread, as messages may take less than a fiftieth of a round"


def preview_table(scenario: CustomScenario, prepared: Prepared) -> Group:
    """What would run, for people."""
    latency = make_latency(scenario.network, prepared.nodes, scenario.seed)
    rows = [
        ("nodes", f"{prepared.nodes:,}"),
        ("rounds", f"at most {prepared.rounds:,}, of {scenario.round_s:g} s"),
        ("engine", _engine_words(scenario, latency)),
        ("latency", latency_words(latency, prepared.nodes, scenario.seed)),
        ("links", network_words(scenario.network)),
        ("memory", f"about {bytes_of(scenario, prepared.nodes) / 2**20:,.0f} MiB"),
    ]
    systems = FittingTable("system", "protocol", "written as", "settings", "messages (bytes)")
    for system in scenario.systems:
        declared = system.protocol.declared
        plain = issubclass(declared.owner, Node)
        systems.add_row(
            system.name,
            system.protocol.label,
            "plain classes" if plain else "rules",
            ", ".join(f"{name} = {value}" for name, value in system.settings.items()),
            ", ".join(f"{name} ({one.size_bytes})" for name, one in declared.messages.items()),
        )
    return Group(size_table(scenario.name, rows), systems)


class CustomStudy(Study[CustomScenario, CustomRunRecord]):
    """Protocols of the user's, side by side under the same conditions."""

    kind = KIND
    format = FORMAT
    progress_unit = "rounds"
    threaded = True
    watched = True
    measures = MEASURES
    tables = MappingProxyType(
        {
            "rounds": Expected(
                {"round": WHOLE, "population": WHOLE, "messages": WHOLE, "size_bytes": WHOLE},
                {"time_s": REAL},
            ),
            "nodes": Expected({"sent_bytes": WHOLE, "received_bytes": WHOLE}),
        }
    )

    def compiles(self, scenario: CustomScenario) -> bool:
        owners = (system.protocol.declared.owner for system in scenario.systems)
        return not all(issubclass(owner, Node) for owner in owners)

    def alone(self, scenario: CustomScenario, system: str) -> CustomScenario:
        return only(scenario, system)

    def check(self, scenario: CustomScenario) -> int:
        prepared = prepare(scenario)
        needed = bytes_of(scenario, prepared.nodes)
        rehearse(scenario, prepared.nodes)
        return needed

    def preview(self, scenario: CustomScenario) -> RenderableType:
        self.check(scenario)
        return preview_table(scenario, prepare(scenario))

    def run(self, scenario: CustomScenario, text: str, execution: Execution) -> CustomRunRecord:
        return simulate_custom(scenario, text, execution)

    def summarise(self, system: Any) -> dict[str, Any]:
        return summarise_system(system)

    def measures_of(self, summary: Mapping[str, Any]) -> tuple[Measure, ...]:
        explained: Mapping[str, Any] = summary["scenario"].get("measures", {})
        own = (Measure(name, **about, brief=True) for name, about in explained.items())
        return (*own, *MEASURES)

    def facts(self, record: CustomRunRecord, summary: Mapping[str, Any]) -> str:
        scenario = record.scenario
        return (
            f"{scenario['nodes']:,} nodes, at most {scenario['rounds']:,} rounds of "
            f"{scenario['round_s']:g} s, {escape(scenario['engine'])} engine, "
            f"seed {summary['seed']}; {summary['wall_s']:.1f} s of computing"
        )

    def drawings(self, record: CustomRunRecord) -> Iterable[Drawing]:
        from gossamer.sim.studies.custom.plots import drawings

        return drawings(record.systems, record.scenario["measures"])

    def restored(
        self, name: str, summary: Mapping[str, Any], tables: Mapping[str, Table]
    ) -> CustomRecord:
        logs = {
            table.removeprefix(LOG): found
            for table, found in tables.items()
            if table.startswith(LOG)
        }
        return CustomRecord(
            name=name,
            settings=summary["settings"],
            **{table: tables[table] for table in ("rounds", "messages", "nodes")},
            logs=logs,
            totals=summary["totals"],
            stopped=summary["stopped"],
        )

    def course(self, tables: Callable[[str], Table], scenario: Mapping[str, Any]) -> Course:
        return course_of(tables("rounds"), scenario["measures"])

    def more(self, record: CustomRunRecord, summary: Mapping[str, Any]) -> str:
        rows = [
            f"<tr><td>{escape(name)}</td><td>{escape(str(message))}</td>"
            f'<td class="value">{count:,}</td><td class="value">{size:,}</td></tr>'
            for name, system in record.systems.items()
            for message, count, size in zip(
                *(
                    system.messages[column].tolist()
                    for column in ("message", "count", "size_bytes")
                ),
                strict=True,
            )
        ]
        value = 'class="value"'
        head = f"<th>system</th><th>message</th><th {value}>taken</th><th {value}>bytes</th>"
        ended = [f"<p>{escape(told)}</p>" for told in self.remarks(summary["systems"])]
        return f"<h2>Messages</h2>{table_html(head, rows)}{''.join(ended)}"

    def remarks(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        for name, system in systems.items():
            if system["stopped"] is not None:
                rounds = system["rounds_run"]
                yield f"{name} was ended by an observer after {rounds} rounds: {system['stopped']}."

    def rows(self, tables: Mapping[str, Columns]) -> Iterator[Row]:
        rounds, nodes = tables["rounds"], tables["nodes"]
        last = {name: float(rounds[name][-1]) for name in ("messages", "size_bytes")}
        yield from measure_rows(last)
        yield from distribution("sent_bytes", nodes["sent_bytes"])
        yield from distribution("received_bytes", nodes["received_bytes"])


CUSTOM: Final = CustomStudy()
