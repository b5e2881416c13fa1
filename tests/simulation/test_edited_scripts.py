"""A script with a protocol of its own, run, edited and run again, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ENGINES = {
    "cycle": "from gossamer.sim.engine.cycle_engine import CycleEngine as Engine",
    "event": "from gossamer.sim.engine.event_engine import EventEngine as Engine",
}
SCRIPT = """
import sys

import numpy as np

from gossamer.protocol.kernel.records import USER
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.engine.cycle_engine import make_network
{engine}


class Cells(Struct):
    a: np.ndarray


def run(step):
    state = Cells(a=np.zeros(3, np.int64))
    engine = Engine(state, step, (USER,), make_network(3), 1)
    engine.run_cycle()
    print(*state.a)


GIVEN = int(sys.argv[1])


@rule
def step(s, p, now, words, at, out):
    s.a[p] = {value}


def make(value):
    @rule
    def step(s, p, now, words, at, out):
        s.a[p] = value
    return step


run(step)
for value in (7, 8, 9):
    run(make(value))
"""


def run_script(script: Path, given: int, cache: Path) -> list[str]:
    """Run a script in a process of its own; returns the lines that it prints."""
    done = subprocess.run(
        [sys.executable, script, str(given)],
        env={**os.environ, "GOSSAMER_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("engine", ["cycle", pytest.param("event", marks=pytest.mark.campaign)])
def test_each_run_is_of_the_script_as_it_stands(engine: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    one, other = tmp_path / "one" / "script.py", tmp_path / "other" / "script.py"

    def write(script: Path, value: str) -> None:
        script.parent.mkdir(exist_ok=True)
        script.write_text(SCRIPT.format(engine=ENGINES[engine], value=value))

    made_in_one_process = ["7 7 7", "8 8 8", "9 9 9"]
    write(one, "1")
    assert run_script(one, 0, cache) == ["1 1 1", *made_in_one_process]
    write(one, "2")
    assert run_script(one, 0, cache) == ["2 2 2", *made_in_one_process]
    write(other, "3")
    assert run_script(other, 0, cache) == ["3 3 3", *made_in_one_process]
    write(other, "GIVEN")
    assert run_script(other, 4, cache) == ["4 4 4", *made_in_one_process]
    assert run_script(other, 5, cache) == ["5 5 5", *made_in_one_process]
