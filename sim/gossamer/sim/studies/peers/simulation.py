"""A run as one object: a scenario in, a `RunRecord` out; interrupted runs go on where they were.

Systems run side by side: compiled loops let go of the interpreter's lock, and no system reads
another's state. Where there are more threads than systems, each system has several.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from gossamer.sim.churn import ChurnTrace
from gossamer.sim.studies.checkpointed_runs import CHECKPOINT_EVERY_S, run_in_threads, run_to_end
from gossamer.sim.studies.peers.inputs.own_tables import content_of
from gossamer.sim.studies.peers.inputs.scenario import Scenario, System
from gossamer.sim.studies.peers.inputs.table_workload import taken_from
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.studies.peers.running.preparation import prepare
from gossamer.sim.studies.peers.running.system_run import SystemRun
from gossamer.sim.study.checkpoints import Checkpoints
from gossamer.sim.study.environment import peak_memory_bytes, versions
from gossamer.sim.study.tasks import Progress
from gossamer.sim.study.watching import Watch


def simulate(
    scenario: Scenario,
    text: str = "",
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    threads: int = 2,
    checkpoint_every_s: float = CHECKPOINT_EVERY_S,
    watch: Watch | None = None,
) -> RunRecord:
    """Run a scenario to its end.

    Args:
        scenario: what to run.
        text: the file that it was read from, kept with the results.
        progress: called with a system's name, rounds done and rounds in all; at the beginning
            and after every round.
        checkpoint: folder for checkpoints, written every ``checkpoint_every_s`` seconds and
            removed by whoever writes the results; none are written if None.
        resume: go on from the checkpoints in that folder.
        threads: how many there are, each kept on a core of its own where there are that many
            cores; a single one is left to the operating system. So many systems run at a time;
            where there are fewer, threads share the rows of one, if the windows engine runs it
            (see `suits_windows`). Changes no result.
        checkpoint_every_s: wall-clock time between checkpoints; more where writing one takes so
            long that it would be more than a twentieth of the run.
        watch: looks at each system between two rounds, see `gossamer.sim.study.watching`; changes
            no result.

    Raises:
        ScenarioError: the scenario cannot be run, see `prepare`, or the checkpoints are of
            another one.
        CapacityError: a table was too small for the run.
    """
    started = time.monotonic()
    checkpoints = Checkpoints(checkpoint, scenario) if checkpoint is not None else None
    trace = prepare(scenario).trace

    def run_one(system: System, cores: Sequence[int | None]) -> SystemRun:
        kept: SystemRun | None = checkpoints.load(system.name) if checkpoints and resume else None
        run = SystemRun(scenario, system, trace) if kept is None else kept
        run.use_cores(cores)
        run_to_end(run, progress, checkpoints, checkpoint_every_s, watch)
        return run

    runs = run_in_threads(run_one, scenario.systems, max(1, threads))
    return RunRecord(
        scenario=_described(scenario, trace),
        scenario_text=text,
        seed=scenario.seed,
        versions=versions(),
        wall_s=time.monotonic() - started,
        peak_rss_bytes=peak_memory_bytes(),
        systems={run.system.name: run.record() for run in runs},
    )


def _described(scenario: Scenario, trace: ChurnTrace | None) -> dict[str, Any]:
    """The scenario as plain values; files by name and content, not by where they lie."""
    plain = attrs.asdict(scenario)
    taken, found = scenario.workload, taken_from(scenario)
    if taken is None:
        del plain["workload"]
    elif found is not None:
        plain["workload"] = {"folder": found.path.name, "fingerprint": found.fingerprint}
    else:
        files = {"subscriptions": taken.subscriptions, "events": taken.events}
        plain["workload"] = {
            name: content_of(file) for name, file in files.items() if file is not None
        }
    if scenario.churn is not None and trace is not None:
        plain["churn"]["trace"] = scenario.churn.trace.name
        plain["churn"]["fingerprint"] = trace.fingerprint()
    return plain
