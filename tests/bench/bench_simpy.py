"""Events a second of plain nodes beside SimPy doing the same work, in one run.

Run it by hand, with SimPy 4 installed: ``python tests/bench/bench_simpy.py [nodes ...]``, by
default 10^3 and 10^4. Once a second each node asks a random other one, which answers; a message
takes a tenth of a second. An event is a timer or a message. SimPy does it in two ways: a process a
node with a store for its messages, as its documents do, and callbacks of timeouts, its fastest. The
three take turns; the figures are medians of processor time of one thread.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import by_turns, timed
from gossamer.sim.bench.gossip_benchmarks import NodeGossip
from gossamer.sim.custom.conditions import Conditions
from gossamer.sim.custom.plain.driver import PlainDriver
from gossamer.sim.engine.latency import constant_latency

LATENCY_S, ROUNDS, RUNS = 0.1, 20, 5


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


def main(sizes: list[int]) -> None:
    ways: dict[str, Callable[[int], int]] = {
        "plain nodes": run_nodes,
        "SimPy, stores": run_simpy_stores,
        "SimPy, callbacks": run_simpy_callbacks,
    }
    for nodes in sizes:
        works = {name: partial(timed, partial(way, nodes)) for name, way in ways.items()}
        for name, found in by_turns(works, RUNS).items():
            rate = median(events / seconds for seconds, events in found)
            print(f"{nodes:>7,} nodes  {name:<17} {rate / 1000:8,.0f} thousand events/s")


if __name__ == "__main__":
    main([int(float(size)) for size in sys.argv[1:]] or [1_000, 10_000])
