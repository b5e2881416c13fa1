"""`gossamer sim` as it is typed, and what it reads."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.command.main import main
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.study.contract import Execution
from support.installed_command import MadeUpSimulation

TRACE = "a 2 0 600 900 3600\nb 1 0 3600\nc 1 120.5 1800\n"
SCENARIO = 'name = "small"\nseed = 5\nnodes = 50\nrounds = 10\n[events]\nwarm_up_rounds = 5\n'


def sim(*line: object) -> int:
    """The exit code of `gossamer sim` with these arguments, or with those in one text."""
    words = shlex.split(line[0]) if len(line) == 1 and isinstance(line[0], str) else line
    return main(["sim", *map(str, words)])


def interrupted_after(rounds: int) -> Callable[[str, int, int], None]:
    """Progress that interrupts a run after so many rounds."""

    def interrupt(_name: str, done: int, _total: int) -> None:
        if done == rounds:
            raise KeyboardInterrupt

    return interrupt


def simulated_in_parts(
    scenario: Scenario, folder: Path, stop_at: int, *, threads: int, then: int = 1
) -> RunRecord:
    """A run of peers that is interrupted after so many rounds, and goes on with other threads."""
    progress = interrupted_after(stop_at)
    with pytest.raises(KeyboardInterrupt):
        simulate(scenario, "", Execution(progress=progress, checkpoint=folder, workers=threads))
    return simulate(scenario, "", Execution(checkpoint=folder, resume=True, workers=then))


def printed_by(program: str, hash_seed: str) -> str:
    """What a process with another PYTHONHASHSEED prints; it may import tests."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run_of(simulation: MadeUpSimulation) -> Scenario:
    assert len(simulation.calls) == 1
    return simulation.calls[0][0]
