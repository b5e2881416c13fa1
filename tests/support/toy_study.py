"""A study that is no part of gossamer: gamblers who win or lose a coin in every round.

It is registered by its name alone, ``support.toy_study:TOY`` or the path of this file.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

import attrs
import numpy as np
from matplotlib.figure import Figure
from rich.table import Table as RichTable

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.checkpointed_runs import run_systems
from gossamer.sim.study.contract import Execution, Study
from gossamer.sim.study.plot import Drawing
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
from gossamer.sim.study.scenarios import number_field, whole_field

COINS: Final = ("fair", "biased")
MOST_ROUNDS: Final = 1_000_000


@attrs.frozen(kw_only=True)
class ToyScenario:
    """Gamblers with a coin each, by which they are called, and win or lose in every round.

    The biased coin wins more often than it loses by the chance ``bias``.
    """

    kind: ClassVar[str] = "toy"

    name: str = "toy"
    seed: int = whole_field(0, 1 << 32, default=1)
    rounds: int = whole_field(1, MOST_ROUNDS, default=100)
    bias: float = number_field("from 0 to 1", lambda x: 0 <= x <= 1, default=0.5)
    coins: tuple[str, ...] = COINS


@attrs.frozen(kw_only=True, eq=False)
class Purse:
    """What a gambler has after each round: a table with the column coins."""

    name: str
    coins: Table

    @property
    def totals(self) -> Mapping[str, int | float]:
        return {"won": int((np.diff(self.coins["coins"], prepend=0) > 0).sum())}

    def tables(self) -> Iterator[tuple[str, Table]]:
        yield "purse", self.coins


ToyRecord: TypeAlias = RunRecord[Purse]


@attrs.frozen(kw_only=True)
class Gambler:
    scenario: ToyScenario
    coin: str

    @property
    def label(self) -> str:
        return self.coin

    def run(self) -> Purse:
        chance = 0.5 + (self.scenario.bias / 2 if self.coin == "biased" else 0)
        draws = np.random.default_rng(self.scenario.seed).random(self.scenario.rounds)
        coins = np.cumsum(np.where(draws < chance, 1, -1))
        return Purse(name=self.coin, coins={"coins": coins.astype(np.int64)})


class ToyStudy(Study[ToyScenario, ToyRecord]):
    kind = ToyScenario.kind
    format = ScenarioFormat(scenario=ToyScenario, sections={})
    measures = (
        Measure("coins_final", "coins at the end", "count", "higher", "Won less lost.", brief=True),
        Measure("coins_most", "most coins", "count", "higher", "The most after any round."),
    )
    tables = MappingProxyType({"purse": Expected({"coins": WHOLE})})

    def check(self, scenario: ToyScenario) -> int:
        if scenario.name == "impossible":
            raise ScenarioError(None, "name", scenario.name, "a name that is possible")
        return 8 * scenario.rounds

    def preview(self, scenario: ToyScenario) -> RichTable:
        self.check(scenario)
        table = RichTable(title=f"{scenario.name}: would run", show_header=False)
        table.add_row("rounds", f"{scenario.rounds:,}")
        return table

    def run(self, scenario: ToyScenario, text: str, execution: Execution) -> ToyRecord:
        started = time.monotonic()
        gamblers = {coin: Gambler(scenario=scenario, coin=coin) for coin in scenario.coins}
        return ToyRecord(
            scenario={"kind": self.kind, **attrs.asdict(scenario)},
            scenario_text=text,
            seed=scenario.seed,
            systems=run_systems(gamblers, scenario, execution, name="gamblers"),
            wall_s=time.monotonic() - started,
        )

    def summarise(self, system: Any) -> dict[str, Any]:
        coins = system.coins["coins"]
        found = {"coins_final": int(coins[-1]), "coins_most": int(coins.max())}
        return {**found, "totals": dict(system.totals), "settings": {"coin": system.name}}

    def facts(self, record: ToyRecord, summary: Mapping[str, Any]) -> str:
        return f"{len(record.systems)} gamblers, seed {summary['seed']}"

    def drawings(self, record: ToyRecord) -> Iterable[Drawing]:
        def draw() -> Figure:
            figure = Figure()
            axes = figure.subplots()
            for name, purse in record.systems.items():
                axes.plot(dict(purse.tables())["purse"]["coins"], label=name)
            return figure

        return [Drawing("coins", "Coins", "Coins after each round.", draw)]

    def rows(self, tables: Mapping[str, Columns]) -> Iterator[Row]:
        coins = tables["purse"]["coins"]
        yield from measure_rows({"coins_final": float(coins[-1])})
        yield from distribution("coins", coins)


TOY: Final = ToyStudy()
