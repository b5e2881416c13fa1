"""A run as one object: a scenario in, a `RunRecord` out; interrupted runs go on where they were.

Systems run side by side, one thread each: compiled loops let go of the interpreter's lock, and no
system reads another's state.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs

from gossamer.sim.churn import ChurnTrace
from gossamer.sim.studies.peers.inputs.scenario import Scenario, System
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.studies.peers.running.preparation import prepare
from gossamer.sim.studies.peers.running.system_run import SystemRun
from gossamer.sim.study.checkpoints import Checkpoints
from gossamer.sim.study.environment import peak_memory_bytes, versions
from gossamer.sim.study.tasks import Progress

CHECKPOINT_EVERY_S = 180.0
# A run spends at most one part in so many of its time on checkpoints, however large they are.
CHECKPOINT_SHARE = 20


def simulate(
    scenario: Scenario,
    text: str = "",
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    threads: int = 2,
    checkpoint_every_s: float = CHECKPOINT_EVERY_S,
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
        threads: systems that run at a time.
        checkpoint_every_s: wall-clock time between checkpoints; more where writing one takes so
            long that it would be more than a twentieth of the run.

    Raises:
        ScenarioError: the scenario cannot be run, see `prepare`, or the checkpoints are of
            another one.
        CapacityError: a table was too small for the run.
    """
    started = time.monotonic()
    checkpoints = Checkpoints(checkpoint, scenario) if checkpoint is not None else None
    trace = prepare(scenario).trace

    def run_one(system: System) -> SystemRun:
        kept: SystemRun | None = checkpoints.load(system.name) if checkpoints and resume else None
        run = SystemRun(scenario, system, trace) if kept is None else kept
        return _run_to_end(run, progress, checkpoints, checkpoint_every_s)

    with ThreadPoolExecutor(max(1, threads)) as pool:
        runs = list(pool.map(run_one, scenario.systems))
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
    """The scenario as plain values; the trace by name and content, not by where it lies."""
    plain = attrs.asdict(scenario)
    if scenario.churn is not None and trace is not None:
        plain["churn"]["trace"] = scenario.churn.trace.name
        plain["churn"]["fingerprint"] = trace.fingerprint()
    return plain


def _run_to_end(
    run: SystemRun, progress: Progress | None, checkpoints: Checkpoints | None, every_s: float
) -> SystemRun:
    started = saved = time.monotonic()
    pause = every_s
    if progress is not None:
        progress(run.system.name, run.engine.cycle, run.rounds)
    try:
        while not run.is_finished:
            run.run_round()
            if progress is not None:
                progress(run.system.name, run.engine.cycle, run.rounds)
            if checkpoints is not None and time.monotonic() - saved >= pause:
                begun = time.monotonic()
                checkpoints.save(run.system.name, run)
                saved = time.monotonic()
                pause = max(every_s, CHECKPOINT_SHARE * (saved - begun))
    except KeyboardInterrupt:
        # Raised by `progress`, between two rounds: the run is whole.
        if checkpoints is not None:
            checkpoints.save(run.system.name, run)
        raise
    if checkpoints is not None and time.monotonic() - started >= every_s:
        checkpoints.save(run.system.name, run)
    return run
