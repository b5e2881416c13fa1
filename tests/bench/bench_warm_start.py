"""How long a simulation takes to start when all its code has been compiled before.

Run it by hand: ``python tests/bench/bench_warm_start.py [PYTHON ...]``. Each interpreter, by
default the present one, runs a whole small scenario (50 peers, 6 rounds, both engines) in a process
of its own, nine times after one that may compile; several of them, of different checkouts, take
turns. Prints the median seconds of each and its ratio to the first.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import by_turns

RUNS = 9
PROGRAM = """
from gossamer.sim.studies.peers.inputs.scenario import Events, Scenario, System
from gossamer.sim.studies.peers.simulation import simulate
for engine in ("cycle", "event"):
    scenario = Scenario(nodes=50, rounds=6, engine=engine, events=Events(warm_up_rounds=2))
    simulate(scenario, threads=1)
"""


def start(python: str) -> float:
    begin = time.perf_counter()
    subprocess.run([python, "-c", PROGRAM], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main(pythons: list[str]) -> None:
    starts = {python: partial(start, python) for python in pythons}
    by_turns(starts, 1)  # may compile
    seconds = by_turns(starts, RUNS)
    first = median(seconds[pythons[0]])
    print("seconds (least to most)      ratio  interpreter")
    for python, taken in seconds.items():
        extremes = f"({min(taken):.2f} to {max(taken):.2f})"
        print(f"{median(taken):.2f} {extremes}  {median(taken) / first:.3f}  {python}")


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
