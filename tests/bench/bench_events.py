"""Events a second of the event engine under the simplest protocol, through its real `step`.

Run it by hand: ``python tests/bench/bench_events.py [nodes ...]``, by default 10^5 and 10^6. As
`gossamer sim bench events`, also with uniform latency: as many pings are under way as there are
nodes; whoever takes one sends the next to a random node. The aim is five million events a second at
10^5 nodes.
"""

from __future__ import annotations

import sys
from statistics import median
from unittest.mock import patch

from gossamer.sim.bench import event_benchmarks
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.bench.event_benchmarks import measure_pings
from gossamer.sim.engine.latency import constant_latency, uniform_latency
from gossamer.sim.study.environment import peak_memory_bytes

RUNS = 7
LATENCIES = {
    "constant": constant_latency,
    "uniform": lambda period: uniform_latency(1, 2 * period - 1),
}


def main() -> None:
    print(machine())
    for nodes in [int(argument) for argument in sys.argv[1:]] or [10**5, 10**6]:
        for name, latency in LATENCIES.items():
            with patch.object(event_benchmarks, "constant_latency", latency):
                rates = [1 / seconds for seconds in measure_pings(False, nodes, RUNS).seconds]
            print(
                f"{nodes:>9,} nodes, {name:8} latency: {median(rates):5.1f} million events/s"
                f" ({min(rates):.1f} to {max(rates):.1f}), peak {peak_memory_bytes() / 1e9:.2f} GB"
            )


if __name__ == "__main__":
    main()
