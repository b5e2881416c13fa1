"""A run of kind "trees": a scenario in, a `TreesRunRecord` out.

Strategies run side by side in processes and share nothing but what the scenario draws. A strategy
that is finished is kept at once, so that an interrupted run goes on with the others.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.studies.dissemination.records import (
    StrategyRecord,
    TreesRunRecord,
    strategy_record,
)
from gossamer.sim.studies.dissemination.scenario import (
    Planning,
    TopologySection,
    TreesScenario,
    WorkloadSection,
)
from gossamer.sim.studies.dissemination.strategies import Setting, run_strategy
from gossamer.sim.studies.side_by_side import run_systems
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.environment import peak_memory_bytes, versions
from gossamer.sim.study.tasks import Progress

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
