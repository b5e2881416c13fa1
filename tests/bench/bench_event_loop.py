"""For how long a broker node holds its event loop: to store itself, and until there are trees.

Run it by hand: ``python tests/bench/bench_event_loop.py [dump] [trees] [--out FILE]``.

dump: a broker with ``--dumped`` subscriptions of a neighbour is driven as a node drives it: by its
engine, with its journal in a state file on a disk. Publications come, every eighth message is a
subscription, and every eighth takes one back; a dump begins whenever a node would begin one. Every
step of every task of the event loop is timed. Printed are the longest, in milliseconds, of

- *snapshot*: making the process that dumps, while the tables stand still,
- *dump*: taking its dump in, storing it in portions, and giving up what it replaces,
- *journal*: handling messages and storing them while nothing is dumped, and *meanwhile*;

by the clock, by the processor time of its thread, the longest search for garbage, the longest
processor time without it, and the median step by the clock; and how long messages waited for the
broker. ``--in-this-process`` makes dumps without a process for them.

trees: a random graph of brokers with three links each, ``--planned`` subscriptions of one of a
hundred topics at random brokers, and documents about one of them, are planned for as the
coordinator of a node has it done: in a copy of the process, by compiled rules where that pays.
Printed are seconds until the trees are there, for the second time and for the first, which may have
to compile rules, and by how much a task that wakes up each millisecond was late at most.

More than ``--limit`` milliseconds of processor time of a snapshot or a dump, garbage apart, or more
than ``--limit-s`` seconds until there are trees, end in exit code 1.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator
from itertools import count, islice
from operator import sub
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bench_brokers import ADVERTISED, PUBLISHER, SUBSCRIBER, connect, everything
from bench.common import SEED, Row, print_table, read_options, write_rows
from gossamer.compiled.store import keep_compiled_code
from gossamer.node.broker import forked_work
from gossamer.node.broker.engine import Engine, Input
from gossamer.node.broker.families.tree import TreeHost
from gossamer.node.broker.forked_work import Apart, Begun, Work
from gossamer.node.broker.host import NEVER, Match
from gossamer.node.broker.journal import StoredJournal
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.store.writer import open_writer
from gossamer.protocol.brokers.core.broker import compiled_index
from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.graph import settings as graphs
from gossamer.protocol.brokers.graph.coordinator import MakePlan
from gossamer.protocol.brokers.graph.messages import Planned, Version
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings, messages
from gossamer.protocol.content.filters import exact_publication
from gossamer.sim.studies.stock_quotes import Quote, make_quotes
from support.quote_subscriptions import little_covering

ROOM = 256
OF_MESSAGES = 8
WARM_UP = 500
WAKE_S = 0.001
TOPICS = 100
# Parts of the names of tasks that take a dump in, and that write.
THOSE_WHO_DUMP = ("_go_on_with", "_serve")
SNAPSHOT, DUMP, JOURNAL, MEANWHILE = "snapshot", "dump", "journal", "journal meanwhile"
COLUMNS = ("longest_ms", "processor_ms", "garbage_ms", "without_ms", "median_ms")


class Took:
    """How long steps took in seconds, by the clock and the processor, and searching for garbage."""

    def __init__(self) -> None:
        # Arrays, so that keeping it costs the loop little.
        self.walls, self.processor, self.garbage = array("d"), array("d"), array("d")

    def note(self, wall: float, processor: float = 0.0, garbage: float = 0.0) -> None:
        self.walls.append(wall)
        self.processor.append(processor)
        self.garbage.append(garbage)

    def row(self, what: str) -> Row:
        without = max(map(sub, self.processor, self.garbage))
        longest = map(max, (self.walls, self.processor, self.garbage))
        in_ms = [1e3 * seconds for seconds in (*longest, without, median(self.walls))]
        return {"what": what, **dict(zip(COLUMNS, in_ms, strict=True)), "times": len(self.walls)}


def now() -> tuple[float, float]:
    return perf_counter(), thread_time()


class Steps(trio.abc.Instrument):
    """How long steps of tasks took, by what was going on, and what the longest spent on garbage."""

    def __init__(self) -> None:
        self.journal: StoredJournal
        self.took: dict[str, Took] = defaultdict(Took)
        self._dumping = False
        self._begun = now()
        self._collected = self._collecting = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        del task
        self._begun, self._collected = now(), 0.0
        self._dumping = self.journal.dumping

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if not (self._dumping or self.journal.dumping):
            what = JOURNAL
        else:
            what = DUMP if any(name in task.name for name in THOSE_WHO_DUMP) else MEANWHILE
        self._note(what, self._begun)

    def timed(self, apart: Apart) -> Apart:
        def begin(work: Work) -> Begun:
            begun = now()
            try:
                return apart(work)
            finally:
                self._note(SNAPSHOT, begun)
                # It counts once.
                before, first, ended = self._begun, begun, now()
                self._begun = before[0] + ended[0] - first[0], before[1] + ended[1] - first[1]

        return begin

    def on_garbage(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = thread_time()
        else:
            self._collected += thread_time() - self._collecting

    def _note(self, what: str, begun: tuple[float, float]) -> None:
        wall, processor = now()
        self.took[what].note(wall - begun[0], processor - begun[1], self._collected)


class Bystander:
    """Carries out nothing: links and clients are no part of what is measured."""

    backlog = 0

    def queued(self, effect: Deliver | Match) -> QueuedDelivery | None:
        raise AssertionError(f"nobody here has asked for {effect}")

    def carry_out(self, told: Input, effects: list[Any]) -> None:
        del told, effects


def reported_by_neighbours(quotes: list[Quote], size: int) -> Iterator[tuple[Hop, messages.Frame]]:
    """So many subscriptions of one neighbour, then publications of another as well."""
    filters, draws = little_covering(quotes, SEED), Random(SEED)
    published = [exact_publication(quote) for quote in quotes]
    numbers, gone, publications = count(1), count(1), count(2)
    frames = {PUBLISHER: count(2), SUBSCRIBER: count(2)}
    for number in count():
        hop, drawn = SUBSCRIBER, draws.randrange(OF_MESSAGES) if number >= size else 0
        message: messages.BetweenBrokers
        if drawn == 0:
            message = messages.Subscription(Id("S", next(numbers)), next(filters))
        elif drawn == 1:
            message = messages.Unsubscription(Id("S", next(gone)))
        else:
            hop, id_ = PUBLISHER, Id("P", next(publications))
            message = messages.Publication(id_, ADVERTISED, draws.choice(published))
        yield hop, messages.Frame(1, next(frames[hop]), message)


async def measure_dumps(size: int, dumps: int, apart: Apart, folder: Path) -> list[Row]:
    """Let a broker go on until it has been dumped so often."""
    quotes, host, steps = make_quotes(20_000, SEED), TreeHost(TreeSettings()), Steps()
    broker = TreeBroker("B", host.of, new_index=compiled_index)
    told = reported_by_neighbours(quotes, size)
    gc.collect()
    gc.freeze()  # as a node does before its broker is there
    connect(broker, everything(quotes))
    for hop, message in islice(told, size + WARM_UP):
        broker.handle(0, hop, message)
    waits = Took()
    gc.callbacks.append(steps.on_garbage)
    async with open_writer(folder / "state.db") as writer:
        journal = steps.journal = StoredJournal(writer, host, steps.timed(apart))
        await journal.dump(broker, 1)
        steps.took.clear()
        engine = Engine(broker, journal, Bystander(), now=1, congested_queue=NEVER, room=ROOM)

        async def bring() -> None:
            for hop, message in told:
                begun = perf_counter()
                await engine.submit_with_patience(hop, message)
                waits.note(perf_counter() - begun)

        steps.before_task_step(trio.lowlevel.current_task())
        trio.lowlevel.add_instrument(steps)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.run)
            nursery.start_soon(bring)
            while len(steps.took[SNAPSHOT].walls) < dumps or journal.dumping:
                await trio.sleep(0.1)
            nursery.cancel_scope.cancel()
        trio.lowlevel.remove_instrument(steps)
    gc.callbacks.remove(steps.on_garbage)
    found = [steps.took[what].row(what) for what in (SNAPSHOT, DUMP, MEANWHILE, JOURNAL)]
    return [*found, waits.row("wait of a message")]


def problem_of(brokers: int, subscriptions: int, documents: int, strategy: str) -> graphs.Problem:
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
    return graphs.Problem(
        version=Version(1, names[0], 1),
        strategy=strategy,
        brokers=names,
        links=tuple((one, other, 1.0) for one, other in sorted(links)),
        absent={},
        interests=tuple((Id(names[at], number), at) for number, at in enumerate(served)),
        documents=tuple(found),
        present=None,
    )


async def measure_planning(problem: graphs.Problem) -> Row:
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
        planned = await forked_work.worked_out(MakePlan(1, problem), forked_work.in_a_process)
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
        *(__doc__, ("dump", "trees")),
        dumped=100_000,
        dumps=3,
        in_this_process=False,
        limit=float,
        planned=[100, 1000],
        brokers=50,
        documents=300,
        limit_s=float,
        strategy=(graphs.MULT, *graphs.STRATEGIES),
        out=Path,
    )
    rows: list[Row] = []
    held_ms = slowest_s = 0.0
    if "trees" in chosen.words:  # before there is a large broker, as processes are copied
        problems = [
            problem_of(chosen.brokers, size, chosen.documents, chosen.strategy)
            for size in chosen.planned
        ]
        firsts = [trio.run(measure_planning, one)["seconds"] for one in problems]
        again = [trio.run(measure_planning, one) for one in problems]
        found = [{**one, "first_s": first} for one, first in zip(again, firsts, strict=True)]
        print_table([*found[0]], [[*one.values()] for one in found])
        slowest_s = max(one["seconds"] for one in found)
        rows += found
    if "dump" in chosen.words:
        keep_compiled_code()
        here = chosen.in_this_process
        apart = forked_work.in_this_process if here else forked_work.in_a_process
        with tempfile.TemporaryDirectory() as folder:
            dumps = trio.run(measure_dumps, chosen.dumped, chosen.dumps, apart, Path(folder))
        print_table([*dumps[0]], [[*one.values()] for one in dumps])
        held_ms = max(one["without_ms"] for one in dumps if one["what"] in (SNAPSHOT, DUMP))
        rows += dumps
    write_rows(chosen.out, rows)
    limits = (chosen.limit, held_ms), (chosen.limit_s, slowest_s)
    return int(any(limit is not None and most > limit for limit, most in limits))


if __name__ == "__main__":
    sys.exit(main())
