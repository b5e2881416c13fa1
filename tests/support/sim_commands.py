"""`gossamer sim` as it is typed, and what it reads."""

from __future__ import annotations

import shlex

from gossamer.command.main import main
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from support.installed_command import MadeUpSimulation

TRACE = "a 2 0 600 900 3600\nb 1 0 3600\nc 1 120.5 1800\n"
SCENARIO = 'name = "small"\nseed = 5\nnodes = 50\nrounds = 10\n[events]\nwarm_up_rounds = 5\n'


def sim(line: str) -> int:
    """The exit code of `gossamer sim` with the arguments in ``line``."""
    return main(["sim", *shlex.split(line)])


def run_of(simulation: MadeUpSimulation) -> Scenario:
    """The scenario of the only call of the stand-in."""
    assert len(simulation.calls) == 1
    return simulation.calls[0][0]
