"""A hundred thousand nodes of all of Vinifera: time, memory, ring, friends, deliveries.

Run it by hand: ``python tests/bench/bench_scale.py [runs]``, by default three times. Runs
``examples/scale/scenario.toml`` without files: 50 rounds, 1,000 events. Friends are held against
the best there are, for 200 nodes the K_f others of most utility that are no ring or small-world
neighbours. The aims are 180 s, 6 GB, a right ring, 95 % of the optimum and all deliveries.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.utility import friend_utility
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.measuring.overlay_measures import (
    mean_friend_utility,
    ring_correctness,
)
from gossamer.sim.studies.peers.measuring.summary import summarise_system
from gossamer.sim.studies.peers.running.system_run import SystemRun
from gossamer.sim.study.records import peak_memory_bytes
from gossamer.sim.study.scenarios import read_scenario

SCENARIO = Path(__file__).parents[2] / "examples" / "scale" / "scenario.toml"
SAMPLED_NODES = 200


@rule
def utility_of_everybody(s: Any, p: int, utilities: Any) -> None:
    """Write to ``utilities`` what each node would be worth to ``p`` as a friend."""
    for q in range(len(utilities)):
        utilities[q] = friend_utility(s, p, s.sampler.profile[q], 0)


def best_utility(s: State, p: int) -> float:
    utilities = np.empty(len(s.links))
    utility_of_everybody.compiled(s, p, utilities)
    first = 2 * s.params.ring_links + s.params.small_world_links
    taken = s.links[p, :first]
    utilities[taken[taken >= 0] & 0xFFFFFFFF] = -1.0
    utilities[p] = -1.0
    friends = s.params.friend_links
    return float(np.mean(np.partition(utilities, -friends)[-friends:]))


def share_of_optimum(s: State) -> float:
    sample = np.zeros(len(s.links), np.bool_)
    sample[:: max(1, len(s.links) // SAMPLED_NODES)] = True
    best = np.mean([best_utility(s, int(p)) for p in np.flatnonzero(sample)])
    return float(mean_friend_utility(s, sample) / best)


def run_once(number: int) -> float:
    """Run the scenario once, print what came of it, and return its seconds."""
    scenario, _ = read_scenario(SCENARIO)
    assert isinstance(scenario, Scenario)
    begun = time.perf_counter()
    run = SystemRun(scenario, scenario.systems[0], None)
    while not run.is_finished:
        run.run_round()
    seconds = time.perf_counter() - begun
    state, alive = run.state, run.engine.network.alive
    summary = summarise_system(run.record())
    print(
        f"run {number}: {scenario.nodes:,} nodes, {run.rounds} rounds, {seconds:.0f} s, "
        f"peak {peak_memory_bytes() / 1e9:.2f} GB, ring {ring_correctness(state, alive):.2%}, "
        f"friends {share_of_optimum(state):.1%} of the optimum, "
        f"deliveries {summary['hit_ratio']:.4%}"
    )
    return seconds


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seconds = [run_once(number + 1) for number in range(runs)]
    print(f"median {np.median(seconds):.0f} s of {runs} runs on {machine()}")


if __name__ == "__main__":
    main()
