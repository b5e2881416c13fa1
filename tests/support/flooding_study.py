"""A study of brokers of a fourth family, from outside the package: `support.flooding` in a network.

What floods is counted on a line of brokers, and on a star of as many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

import attrs
import networkx as nx
import numpy as np
from rich.table import Table as RichTable

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.effects import Deliver, Send
from gossamer.protocol.content.filters import parse
from gossamer.sim.studies.checkpointed_runs import run_systems
from gossamer.sim.study.contract import Execution, Study
from gossamer.sim.study.records import (
    WHOLE,
    Columns,
    Expected,
    Measure,
    Row,
    RunRecord,
    Table,
    distribution,
    measure_rows,
)
from gossamer.sim.study.scenario_format import ScenarioFormat
from gossamer.sim.study.scenarios import whole_field
from support.flooding import FloodingBroker

OVERLAYS: Final = {"line": nx.path_graph, "star": lambda count: nx.star_graph(count - 1)}


@attrs.frozen(kw_only=True)
class FloodingScenario:
    """Brokers with a client each, of which the first publishes numbers below 100; a client wants
    those that are not above its own number."""

    kind: ClassVar[str] = "flooding"

    name: str = "flooding"
    seed: int = whole_field(0, 1 << 32, default=1)
    brokers: int = whole_field(2, 100, default=5)
    publications: int = whole_field(1, 10_000, default=20)


@attrs.frozen(kw_only=True, eq=False)
class Flood:
    """What came of it: a row for each delivery, and how many messages brokers sent."""

    name: str
    hops: Table
    messages: int

    @property
    def totals(self) -> Mapping[str, int | float]:
        return {"messages": self.messages}

    def tables(self) -> Iterator[tuple[str, Table]]:
        yield "floods", self.hops


@attrs.frozen(kw_only=True)
class OnOverlay:
    scenario: FloodingScenario
    overlay: str

    @property
    def label(self) -> str:
        return self.overlay

    def run(self) -> Flood:
        scenario = self.scenario
        graph = nx.relabel_nodes(OVERLAYS[self.overlay](scenario.brokers), "B{}".format)
        brokers = {name: FloodingBroker(name) for name in graph}
        waiting: deque[tuple[str, m.Hop | None, Any]] = deque()
        waiting += [(one, None, m.NeighbourUp(other)) for one in graph for other in graph[one]]
        for number, name in enumerate(brokers):
            wanted = (("low", parse(f"number <= {100 * number // len(brokers)}")),)
            waiting.append((name, m.client(f"client of {name}"), m.Attach(wanted)))
        draws = np.random.default_rng(scenario.seed).integers(0, 100, scenario.publications)
        waiting += [("B0", m.client("client of B0"), m.Publish({"number": int(n)})) for n in draws]
        hops = []
        while waiting:
            name, source, message = waiting.popleft()
            for effect in brokers[name].handle(0, source, message):
                if isinstance(effect, Send):
                    waiting.append((effect.neighbour, m.neighbour(name), effect.message))
                elif isinstance(effect, Deliver):
                    hops.append(effect.publication.hops)  # type: ignore[attr-defined]
        messages = sum(sum(one.counters.sent.values()) for one in brokers.values())
        table = {"hops": np.asarray(hops, np.int64)}
        return Flood(name=self.overlay, hops=table, messages=messages)


class FloodingStudy(Study[FloodingScenario, RunRecord[Flood]]):
    kind = FloodingScenario.kind
    format = ScenarioFormat(scenario=FloodingScenario, sections={})
    measures = (
        Measure("messages", "messages", "count", "lower", "Sent between brokers.", brief=True),
        Measure("deliveries", "deliveries", "count", "higher", "Handed to clients.", brief=True),
    )
    tables = MappingProxyType({"floods": Expected({"hops": WHOLE})})

    def check(self, scenario: FloodingScenario) -> int:
        return 100 * scenario.brokers * scenario.publications

    def preview(self, scenario: FloodingScenario) -> RichTable:
        table = RichTable(title=f"{scenario.name}: would run", show_header=False)
        table.add_row("brokers", f"{scenario.brokers:,}")
        return table

    def run(self, scenario: FloodingScenario, text: str, execution: Execution) -> RunRecord[Flood]:
        tasks = {name: OnOverlay(scenario=scenario, overlay=name) for name in OVERLAYS}
        return RunRecord[Flood](
            scenario={"kind": self.kind, **attrs.asdict(scenario)},
            scenario_text=text,
            seed=scenario.seed,
            wall_s=0.0,
            systems=run_systems(tasks, scenario, execution, name="overlays"),
        )

    def summarise(self, system: Any) -> dict[str, Any]:
        found = {"messages": system.messages, "deliveries": len(system.hops["hops"])}
        return {**found, "totals": dict(system.totals), "settings": {"overlay": system.name}}

    def facts(self, record: RunRecord[Flood], summary: Mapping[str, Any]) -> str:
        return f"{record.scenario['brokers']} flooding brokers, seed {summary['seed']}"

    def rows(self, tables: Mapping[str, Columns]) -> Iterator[Row]:
        hops = tables["floods"]["hops"]
        yield from measure_rows({"deliveries": float(len(hops))})
        yield from distribution("hops", hops)


FLOODS: Final = FloodingStudy()
