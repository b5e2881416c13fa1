"""A run of a broker overlay: a scenario in, a `BrokerRunRecord` out.

Coverings run side by side, a process each, and share nothing. A covering that is finished is kept
at once, so that an interrupted run goes on with the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import attrs

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.index import compiled_index
from gossamer.sim.studies.tree_brokers.records import (
    BrokerRunRecord,
    CoveringRecord,
    covering_record,
)
from gossamer.sim.studies.tree_brokers.scenario import BrokerScenario
from gossamer.sim.studies.tree_brokers.storm import run_storm
from gossamer.sim.study.checkpoints import Checkpoints
from gossamer.sim.study.environment import peak_memory_bytes, versions
from gossamer.sim.study.tasks import Progress, run_tasks

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
        storm = self.scenario.storm(self.covering)
        result = run_storm(storm, new_index=compiled_index)
        return covering_record(self.covering, storm, result, peak_memory_bytes())


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
    checkpoints = Checkpoints(checkpoint, scenario) if checkpoint is not None else None
    kept: dict[str, CoveringRecord] = {}
    if resume and checkpoints is not None:
        kept = checkpoints.load_all(scenario.coverings)
    missing = [covering for covering in scenario.coverings if covering not in kept]

    def keep(record: CoveringRecord) -> None:
        kept[record.name] = record
        if checkpoints is not None:
            checkpoints.save(record.name, record)

    tasks = [_Covering(scenario=scenario, covering=covering) for covering in missing]
    run_tasks(tasks, processes, _counting(progress, len(kept)), name="coverings", finished=keep)
    return BrokerRunRecord(
        scenario={"kind": scenario.kind, **attrs.asdict(scenario)},
        scenario_text=text,
        seed=scenario.seed,
        versions=versions(),
        wall_s=time.monotonic() - started,
        peak_rss_bytes=max(kept[name].peak_rss_bytes for name in scenario.coverings),
        systems={name: kept[name] for name in scenario.coverings},
    )


def _counting(progress: Progress | None, before: int) -> Callable[[str, int, int], None]:
    """Progress that counts those that were finished before this run."""

    def report(name: str, done: int, total: int) -> None:
        if progress is not None:
            progress(name, before + done, before + total)

    return report
