"""A run of a SCOT: a scenario in, a `ScotRunRecord` out.

Ways of routing run side by side, a process each, and share nothing. One that is finished is kept at
once, so that an interrupted run goes on with the others.
"""

from __future__ import annotations

import time
from pathlib import Path

import attrs

from gossamer.sim.studies.scot.burst import run_burst
from gossamer.sim.studies.scot.records import RoutingRecord, ScotRunRecord
from gossamer.sim.studies.scot.scenario import ScotScenario
from gossamer.sim.studies.side_by_side import run_systems
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.environment import peak_memory_bytes, versions
from gossamer.sim.study.tasks import Progress


@attrs.frozen(kw_only=True)
class _Routing:
    """One way of routing of a scenario: a task of `run_tasks`."""

    scenario: ScotScenario
    routing: str

    @property
    def label(self) -> str:
        return self.routing

    def run(self) -> RoutingRecord:
        burst = self.scenario.run_of(self.routing)
        result = run_burst(burst)
        return RoutingRecord(
            name=self.routing, burst=burst, result=result, peak_rss_bytes=peak_memory_bytes()
        )


def simulate_scot(
    scenario: ScotScenario,
    text: str = "",
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    processes: int = 2,
) -> ScotRunRecord:
    """Run a scenario to its end.

    Args:
        scenario: what to run.
        text: the file that it was read from, kept with the results.
        progress: called with "routings", those that are done and those in all.
        checkpoint: folder where each way of routing is kept when it is finished; removed by
            whoever writes the results; none is if None.
        resume: run only those that are not kept there.
        processes: how many run at a time.

    Raises:
        ScenarioError: what is kept is of another scenario.
        SimulationError: a run failed; those that are finished are kept.
    """
    started = time.monotonic()
    execution = Execution(
        progress=progress, checkpoint=checkpoint, resume=resume, workers=processes
    )
    tasks = {routing: _Routing(scenario=scenario, routing=routing) for routing in scenario.routings}
    systems = run_systems(tasks, scenario, execution, name="routings")
    return ScotRunRecord(
        scenario={"kind": scenario.kind, **attrs.asdict(scenario)},
        scenario_text=text,
        seed=scenario.seed,
        versions=versions(),
        wall_s=time.monotonic() - started,
        peak_rss_bytes=max(one.peak_rss_bytes for one in systems.values()),
        systems=systems,
    )
