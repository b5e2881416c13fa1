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
for value in {made}:
    run(make(value))
"""


def run_script(script: Path, given: int, cache: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, script, str(given)],
        env={**os.environ, "GOSSAMER_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# Each a folder, the value in its script, the given one, and what is found.
FEW = [("one", "1", 0, 1), ("one", "GIVEN", 4, 4)]
MANY = [*FEW[:1], ("one", "2", 0, 2), ("other", "3", 0, 3)]
MANY += [("other", "GIVEN", given, given) for given in (4, 5)]


@pytest.mark.parametrize(
    ("engine", "made", "versions"),
    [
        ("cycle", (7, 8), FEW),
        *(pytest.param(one, (7, 8, 9), MANY, marks=pytest.mark.campaign) for one in ENGINES),
    ],
)
def test_each_run_is_of_the_script_as_it_stands(
    engine: str, made: tuple[int, ...], versions: list[tuple[str, str, int, int]], tmp_path: Path
) -> None:
    """In a folder a script has a value, perhaps the given one; then what it gives."""
    for folder, value, given, found in versions:
        script = tmp_path / folder / "script.py"
        script.parent.mkdir(exist_ok=True)
        script.write_text(SCRIPT.format(engine=ENGINES[engine], value=value, made=made))
        lines = run_script(script, given, tmp_path / "cache")
        assert lines == [" ".join(3 * [str(number)]) for number in (found, *made)]
