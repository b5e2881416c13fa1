"""How long a graph broker's node waits for trees, and for how long that holds its event loop.

Run it by hand: ``python tests/bench/bench_planning.py [--subscriptions 100 1000] [--out FILE]``. A
random graph of brokers with three links each, subscriptions of one of a hundred topics at random
brokers, and documents about one of them, are planned for as the coordinator of a node has it done:
in a copy of the process, by compiled rules where that pays. Printed are seconds until the trees are
there, for the second time and for the first, which may have to compile rules, and by how many
milliseconds a task that wakes up each millisecond was late at most.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from time import perf_counter

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import SEED, Row, read_options, write_rows
from gossamer.node.broker.engine.forked_work import in_a_process, worked_out
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.graph.coordinator import MakePlan
from gossamer.protocol.brokers.graph.messages import Planned, Version
from gossamer.protocol.brokers.graph.settings import MULT, STRATEGIES, Problem
from gossamer.sim.bench.benchmarks import machine

WAKE_S = 0.001
TOPICS = 100


def problem_of(brokers: int, subscriptions: int, documents: int, strategy: str) -> Problem:
    draws = Random(SEED)
    names = tuple(f"{number:016x}" for number in range(brokers))
    links = {(draws.randrange(number), number) for number in range(1, brokers)}
    while len(links) < 3 * brokers // 2:
        one, other = sorted(draws.sample(range(brokers), 2))
        links.add((one, other))
    served = [draws.randrange(brokers) for _ in range(subscriptions)]
    asked: dict[int, list[int]] = {topic: [] for topic in range(TOPICS)}
    for number in range(subscriptions):
        asked[draws.randrange(TOPICS)].append(number)
    found = [
        (draws.randrange(brokers), tuple(asked[draws.randrange(TOPICS)])) for _ in range(documents)
    ]
    return Problem(
        version=Version(1, names[0], 1),
        strategy=strategy,
        brokers=names,
        links=tuple((one, other, 1.0) for one, other in sorted(links)),
        absent={},
        interests=tuple((Id(names[at], number), at) for number, at in enumerate(served)),
        documents=tuple(found),
        present=None,
    )


async def measure(problem: Problem) -> Row:
    late = 0.0

    async def watch() -> None:
        nonlocal late
        while True:
            begun = perf_counter()
            await trio.sleep(WAKE_S)
            late = max(late, perf_counter() - begun - WAKE_S)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        begun = perf_counter()
        planned = await worked_out(MakePlan(1, problem), in_a_process)
        took = perf_counter() - begun
        nursery.cancel_scope.cancel()
    assert isinstance(planned, Planned)
    return {
        "brokers": len(problem.brokers),
        "subscriptions": len(problem.interests),
        "documents": len(problem.documents),
        "strategy": problem.strategy,
        "trees": len(planned.plan.trees),
        "seconds": took,
        "late_ms": 1e3 * late,
    }


def main() -> int:
    chosen = read_options(
        __doc__,
        brokers=50,
        subscriptions=[100, 1000],
        documents=300,
        strategy=(MULT, *STRATEGIES),
        limit=float,
        out=Path,
    )
    print(machine())
    rows = []
    for size in chosen.subscriptions:
        problem = problem_of(chosen.brokers, size, chosen.documents, chosen.strategy)
        first = trio.run(measure, problem)
        rows.append({**trio.run(measure, problem), "first_s": first["seconds"]})
        rounded = {k: round(v, 2) if isinstance(v, float) else v for k, v in rows[-1].items()}
        print(*(f"{name} {value}" for name, value in rounded.items()), flush=True)
    write_rows(chosen.out, rows)
    slowest = max(row["seconds"] for row in rows)
    return int(chosen.limit is not None and slowest > chosen.limit)


if __name__ == "__main__":
    sys.exit(main())
