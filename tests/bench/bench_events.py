"""Events a second of the event engine under the simplest protocol, through its real `step`.

Run it by hand: ``python tests/bench/bench_events.py [nodes ...]``, by default 10^5 and 10^6. As
many pings are under way as there are nodes; whoever takes one sends the next to a random node. One
thread. Prints the median of the timed runs, their extremes, and the shape of the machine; the aim
is five million events a second at 10^5 nodes.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.bench.ping_protocol import START, forward_step, make_ping_counts
from gossamer.sim.engine.cycle_engine import make_network
from gossamer.sim.engine.event_engine import EventEngine, draw_phases
from gossamer.sim.engine.latency import Int64s, Latency, constant_latency, uniform_latency
from gossamer.sim.engine.link_conditions import make_link_conditions

PERIOD, SEED = 1000, 1
WARM_UP_ROUNDS, TIMED_RUNS, EVENTS_A_RUN = 4, 7, 4_000_000
LATENCIES = {"constant": constant_latency(PERIOD), "uniform": uniform_latency(1, 2 * PERIOD - 1)}


def measure(latency: Latency, nodes: int) -> list[float]:
    def start_once(cycle: int) -> Int64s:
        return draw_phases(nodes if cycle == 0 else 0, 1, PERIOD, SEED)

    engine = EventEngine(
        make_ping_counts(nodes),
        forward_step,
        (START,),
        make_network(nodes),
        SEED,
        period=PERIOD,
        firing_ticks=start_once,
        links=make_link_conditions(nodes, latency=latency),
        reserve=64,
    )
    engine.run_until(WARM_UP_ROUNDS * PERIOD)
    rates = []
    for _ in range(TIMED_RUNS):
        before = engine.counts()["passed"]
        begin = time.perf_counter()
        engine.run_until(engine.tick + max(EVENTS_A_RUN // nodes, 1) * PERIOD)
        seconds = time.perf_counter() - begin
        rates.append((engine.counts()["passed"] - before) / seconds)
    return rates


def main() -> None:
    print(machine())
    for nodes in [int(argument) for argument in sys.argv[1:]] or [10**5, 10**6]:
        for name, latency in LATENCIES.items():
            rates = np.array(measure(latency, nodes)) / 1e6
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            print(
                f"{nodes:>9,} nodes, {name:8} latency: {np.median(rates):5.1f} million events/s"
                f" ({rates.min():.1f} to {rates.max():.1f}), peak {peak / 1e9:.2f} GB"
            )


if __name__ == "__main__":
    main()
