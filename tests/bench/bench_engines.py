"""What the simulator's engines take: events a second, beside SimPy, and to start.

Run it by hand: ``python tests/bench/bench_engines.py [PART ...] [--nodes N ...]``. Parts are

    pings   events a second under the simplest protocol, through its real `step`: as `gossamer sim
            bench events`, also with uniform latency, by default for 10^5 and 10^6 nodes. As many
            pings are under way as there are nodes; whoever takes one sends the next to a random
            node. The aim is five million events a second at 10^5 nodes.
    simpy   plain nodes beside SimPy 4 doing the same, by default for 10^3 and 10^4 nodes. Once a
            second each node asks a random other one, which answers; a message takes a tenth of a
            second. An event is a timer or a message. SimPy does it by a process a node with a store
            for its messages, as its documents do, and by callbacks of timeouts, its fastest way.
    start   how long a whole small scenario (50 peers, 6 rounds, both engines) takes in a process of
            its own, nine times after one that may compile, by each of ``--pythons``, which may be
            of different checkouts; the least, the median, and its ratio to the first.

Ways take turns; figures are medians, of processor time of one thread but for ``start``.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import by_turns, read_options, timed
from gossamer.sim.bench import engine_benchmarks
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.bench.engine_benchmarks import NodeGossip
from gossamer.sim.custom.conditions import Conditions
from gossamer.sim.custom.plain_driver import PlainDriver
from gossamer.sim.engine.latency import constant_latency, uniform_latency
from gossamer.sim.study.records import peak_memory_bytes

LATENCIES = {
    "constant": constant_latency,
    "uniform": lambda period: uniform_latency(1, 2 * period - 1),
}
PING_RUNS, SIMPY_RUNS, STARTS = 7, 5, 9
LATENCY_S, ROUNDS = 0.1, 20
PROGRAM = """
from gossamer.sim.studies.peers.inputs.scenario import Events, Scenario, System
from gossamer.sim.studies.peers.study import simulate
for engine in ("cycle", "event"):
    scenario = Scenario(nodes=50, rounds=6, engine=engine, events=Events(warm_up_rounds=2))
    simulate(scenario, execution=Execution(workers=1))
"""


def measure_pings(sizes: list[int]) -> None:
    for nodes in sizes:
        for name, latency in LATENCIES.items():
            with patch.object(engine_benchmarks, "constant_latency", latency):
                found = engine_benchmarks.measure_pings(False, nodes, PING_RUNS).seconds
            rates = [1 / seconds for seconds in found]
            print(
                f"{nodes:>9,} nodes, {name:8} latency: {median(rates):5.1f} million events/s"
                f" ({min(rates):.1f} to {max(rates):.1f}), peak {peak_memory_bytes() / 1e9:.2f} GB"
            )


def run_nodes(nodes: int) -> int:
    conditions = Conditions(nodes=nodes, latency=constant_latency(round(1000 * LATENCY_S)))
    driver = PlainDriver(NodeGossip.declared, {}, conditions)
    driver.begin()
    driver.run_until(1000 * ROUNDS)
    asked = sum(node.asked for node in driver.nodes)
    return int(asked + sum(driver.traffic().messages.values()))


def run_simpy_stores(nodes: int) -> int:
    import simpy

    env, draws, events = simpy.Environment(), random.Random(1), [0]
    stores = [simpy.Store(env) for _ in range(nodes)]

    def carry(to: int, message: tuple[str, int, int]) -> Iterator[Any]:
        yield env.timeout(LATENCY_S)
        yield stores[to].put(message)

    def ask(me: int) -> Iterator[Any]:
        yield env.timeout(draws.random())
        number = 0
        while True:
            events[0] += 1
            number += 1
            other = draws.randrange(nodes - 1)
            env.process(carry(other + (other >= me), ("question", me, number)))
            yield env.timeout(1.0)

    def answer(me: int) -> Generator[Any, Any, None]:
        answered = 0
        while True:
            kind, sender, number = yield stores[me].get()
            events[0] += 1
            if kind == "question":
                env.process(carry(sender, ("answer", me, number)))
            else:
                answered += 1

    for me in range(nodes):
        env.process(ask(me))
        env.process(answer(me))
    env.run(until=ROUNDS)
    return events[0]


def run_simpy_callbacks(nodes: int) -> int:
    import simpy

    env, draws, events = simpy.Environment(), random.Random(1), [0]
    answered = [0] * nodes

    def send(to: int, message: tuple[str, int, int]) -> None:
        env.timeout(LATENCY_S, (to, message)).callbacks.append(take)

    def take(event: Any) -> None:
        events[0] += 1
        to, (kind, sender, number) = event.value
        if kind == "question":
            send(sender, ("answer", to, number))
        else:
            answered[to] += 1

    def ask(me: int) -> Iterator[Any]:
        yield env.timeout(draws.random())
        number = 0
        while True:
            events[0] += 1
            number += 1
            other = draws.randrange(nodes - 1)
            send(other + (other >= me), ("question", me, number))
            yield env.timeout(1.0)

    for me in range(nodes):
        env.process(ask(me))
    env.run(until=ROUNDS)
    return events[0]


WAYS: dict[str, Callable[[int], int]] = {
    "plain nodes": run_nodes,
    "SimPy, stores": run_simpy_stores,
    "SimPy, callbacks": run_simpy_callbacks,
}


def measure_ways(sizes: list[int]) -> None:
    for nodes in sizes:
        works = {name: partial(timed, partial(way, nodes)) for name, way in WAYS.items()}
        for name, found in by_turns(works, SIMPY_RUNS).items():
            rate = median(events / seconds for seconds, events in found)
            print(f"{nodes:>7,} nodes  {name:<17} {rate / 1000:8,.0f} thousand events/s")


def start(python: str) -> float:
    begin = perf_counter()
    subprocess.run([python, "-c", PROGRAM], check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - begin


def measure_starts(pythons: list[str]) -> None:
    starts = {python: partial(start, python) for python in pythons}
    by_turns(starts, 1)  # may compile
    seconds = by_turns(starts, STARTS)
    first = median(seconds[pythons[0]])
    for python, taken in seconds.items():
        extremes = f"({min(taken):.2f} to {max(taken):.2f})"
        print(f"{median(taken):.2f} s {extremes}  {median(taken) / first:.3f}  {python}")


def main() -> None:
    given = read_options(
        __doc__, ("pings", "simpy", "start"), nodes=[int], pythons=[sys.executable]
    )
    print(machine())
    if "pings" in given.words:
        measure_pings(given.nodes or [10**5, 10**6])
    if "simpy" in given.words:
        measure_ways(given.nodes or [10**3, 10**4])
    if "start" in given.words:
        measure_starts(given.pythons)


if __name__ == "__main__":
    main()
