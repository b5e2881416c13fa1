"""A run of a broker overlay: a scenario in, a `BrokerRunRecord` out.

Coverings run side by side, a process each, and share nothing. A covering that is finished is kept
at once, so that an interrupted run goes on with the others.
"""

from __future__ import annotations

import time
from pathlib import Path

import attrs

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.routing import compiled_index
from gossamer.sim.studies.side_by_side import run_systems
from gossamer.sim.studies.tree_brokers.records import (
    BrokerRunRecord,
    CoveringRecord,
    covering_record,
)
from gossamer.sim.studies.tree_brokers.scenario import BrokerScenario
from gossamer.sim.studies.tree_brokers.unsubscription_burst import run_burst
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.environment import peak_memory_bytes, versions
from gossamer.sim.study.tasks import Progress

keep_compiled_code()


@attrs.frozen(kw_only=True)
class _Covering:
    """One covering of a scenario: a task of `run_tasks`."""

    scenario: BrokerScenario
    covering: str

    @property
    def label(self) -> str:
        return self.covering

    def run(self) -> CoveringRecord:
        burst = self.scenario.burst(self.covering)
        result = run_burst(burst, new_index=compiled_index)
        return covering_record(self.covering, burst, result, peak_memory_bytes())


def simulate_brokers(
    scenario: BrokerScenario,
    text: str = "",
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    processes: int = 2,
) -> BrokerRunRecord:
    """Run a scenario to its end.

    Args:
        scenario: what to run.
        text: the file that it was read from, kept with the results.
        progress: called with "coverings", coverings done and coverings in all.
        checkpoint: folder where each covering is kept when it is finished; removed by whoever
            writes the results; none is if None.
        resume: run only those that are not kept there.
        processes: coverings that run at a time.

    Raises:
        ScenarioError: what is kept is of another scenario.
        SimulationError: a covering failed; those that are finished are kept.
    """
    started = time.monotonic()
    execution = Execution(
        progress=progress, checkpoint=checkpoint, resume=resume, workers=processes
    )
    tasks = {
        covering: _Covering(scenario=scenario, covering=covering) for covering in scenario.coverings
    }
    systems = run_systems(tasks, scenario, execution, name="coverings")
    return BrokerRunRecord(
        scenario={"kind": scenario.kind, **attrs.asdict(scenario)},
        scenario_text=text,
        seed=scenario.seed,
        versions=versions(),
        wall_s=time.monotonic() - started,
        peak_rss_bytes=max(one.peak_rss_bytes for one in systems.values()),
        systems=systems,
    )
