"""Seconds a cycle and bytes a node of every sampler alone, through the cycle engine.

Run it by hand: ``python tests/bench/bench_sampling.py [nodes ...]``, by default 10^4, 10^5 and
10^6. Views of 20, shuffles of 8, no profiles, one thread, from random views. Prints the median of
the timed cycles, after warm-up, beside the prototype figure that twice of is the aim.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import make_sampler, sample_hint, sample_step
from gossamer.protocol.peer.settings.config import SAMPLERS
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.initialisers import fill_random_views

VIEW_SIZE, SHUFFLE_LENGTH, SEED = 20, 8, 1
WARM_UP_CYCLES, TIMED_CYCLES = 10, 15
PROTOTYPE_S = {
    ("newscast", 10**4): 0.0016,
    ("newscast", 10**5): 0.017,
    ("newscast", 10**6): 0.18,
    ("cyclon", 10**4): 0.0017,
    ("cyclon", 10**5): 0.018,
    ("cyclon", 10**6): 0.19,
}


def measure(name: str, nodes: int) -> tuple[float, float]:
    """Median seconds a cycle, and bytes of sampler state a node."""
    sampler = make_sampler(nodes, name, VIEW_SIZE, SHUFFLE_LENGTH, 0, SEED)
    network = make_network(nodes)
    fill_random_views(sampler, network.alive, SEED, VIEW_SIZE)
    engine = CycleEngine(sampler, sample_step, (SAMPLE_TIMER,), network, SEED, hint=sample_hint)
    for _ in range(WARM_UP_CYCLES):
        engine.run_cycle()
    seconds = []
    for _ in range(TIMED_CYCLES):
        begin = time.perf_counter()
        engine.run_cycle()
        seconds.append(time.perf_counter() - begin)
    arrays = [value for value in vars(sampler).values() if isinstance(value, np.ndarray)]
    return float(np.median(seconds)), sum(array.nbytes for array in arrays) / nodes


def main() -> None:
    """Measure the sizes given on the command line."""
    sizes = [int(argument) for argument in sys.argv[1:]] or [10**4, 10**5, 10**6]
    for nodes in sizes:
        for name in SAMPLERS:
            seconds, state_bytes = measure(name, nodes)
            prototype = PROTOTYPE_S.get((name, nodes))
            beside = f" (prototype {prototype} s)" if prototype else ""
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            print(
                f"{name:9} {nodes:>9,} nodes  {seconds:.5f} s/cycle{beside}"
                f"  {state_bytes:.0f} bytes/node, peak {peak / 1e9:.2f} GB"
            )


if __name__ == "__main__":
    main()
