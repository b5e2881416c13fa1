"""For how long a broker node with large tables holds its event loop while it stores itself.

Run it by hand: ``python tests/bench/bench_broker_dump.py [--subscriptions 100000] [--out FILE]``. A
broker with so many subscriptions of a neighbour is driven as a node drives it: by its engine, with
its journal in a state file on a disk. Publications come, every eighth message is a subscription,
and every eighth takes one back; a dump begins whenever a node would begin one. Every step of every
task of the event loop is timed. Printed are the longest, in milliseconds:

- *snapshot*: making the process that dumps, while the tables stand still,
- *dump*: taking its dump in, storing it in portions, and giving up what it replaces,
- *journal*: handling messages and storing them while nothing is dumped, and *meanwhile*;

as the clock has it, and by the processor time of its thread alone, which other processes do not add
to; the longest search for garbage by the interpreter, which follows from what is allocated at any
time, the longest processor time without it, and the median step by the clock. For how long messages
waited for the broker is printed as well. ``--in-this-process`` makes dumps as nodes did before,
without a process for them. Where ``--limit`` is given, in milliseconds, more processor time without
the search for garbage, of a snapshot or a dump, ends in exit code 1.
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
from bench.common import SEED, Row, read_options, write_rows
from gossamer.compiled.store import keep_compiled_code
from gossamer.node.broker.contract.host import NEVER
from gossamer.node.broker.contract.matches import Match
from gossamer.node.broker.engine.apart import Apart, Begun, Work, in_a_process, in_this_process
from gossamer.node.broker.engine.engine import Engine, Input
from gossamer.node.broker.engine.journal import StoredJournal
from gossamer.node.broker.families.tree.host import TreeHost
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.store.writer import open_writer
from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.core.index import compiled_index
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.memory.messages import (
    BetweenBrokers,
    Frame,
    Publication,
    Subscription,
    Unsubscription,
)
from gossamer.protocol.content.filters import exact_publication
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.studies.stock_quotes import Quote, little_covering, make_quotes

ROOM = 256
OF_MESSAGES = 8
WARM_UP = 500
# Parts of the names of tasks that take a dump in, and that write.
THOSE_WHO_DUMP = ("_go_on_with", "_serve")
SNAPSHOT, DUMP, JOURNAL, MEANWHILE = "snapshot", "dump", "journal", "journal meanwhile"


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
        """A row of the table, in milliseconds."""
        longest = {
            "longest_ms": max(self.walls),
            "processor_ms": max(self.processor),
            "garbage_ms": max(self.garbage),
            "without_ms": max(map(sub, self.processor, self.garbage)),
            "median_ms": median(self.walls),
        }
        in_ms = {name: 1e3 * seconds for name, seconds in longest.items()}
        return {"what": what, **in_ms, "times": len(self.walls)}


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
                wall, processor = now()
                # It counts once.
                spent = wall - begun[0], processor - begun[1]
                self._begun = self._begun[0] + spent[0], self._begun[1] + spent[1]

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


class Neighbours:
    """What a broker is told by two neighbours, one that publishes and one that subscribes."""

    def __init__(self, quotes: list[Quote]) -> None:
        self._everything = everything(quotes)
        self._quotes = [exact_publication(quote) for quote in quotes]
        self._filters = little_covering(quotes, SEED)
        self._frames = {PUBLISHER: count(2), SUBSCRIBER: count(2)}
        self._numbers, self._gone = count(1), count(1)
        self._publications = count(2)
        self._draws = Random(SEED)

    def begin(self, broker: TreeBroker, size: int) -> None:
        """Both come, the one with an advertisement of everything, the other with subscriptions."""
        connect(broker, self._everything)
        for _ in range(size):
            broker.handle(0, *self._framed(SUBSCRIBER, self._subscription()))

    def go_on(self) -> Iterator[tuple[Hop, Frame]]:
        while True:
            drawn = self._draws.randrange(OF_MESSAGES)
            if drawn == 0:
                yield self._framed(SUBSCRIBER, self._subscription())
            elif drawn == 1:
                yield self._framed(SUBSCRIBER, Unsubscription(Id("S", next(self._gone))))
            else:
                id_, values = Id("P", next(self._publications)), self._draws.choice(self._quotes)
                yield self._framed(PUBLISHER, Publication(id_, ADVERTISED, values))

    def _subscription(self) -> Subscription:
        return Subscription(Id("S", next(self._numbers)), next(self._filters))

    def _framed(self, hop: Hop, message: BetweenBrokers) -> tuple[Hop, Frame]:
        return hop, Frame(1, next(self._frames[hop]), message)


async def measure(size: int, dumps: int, apart: Apart, folder: Path) -> list[Row]:
    """Let a broker go on until it has been dumped so often."""
    told, host, steps = Neighbours(make_quotes(20_000, SEED)), TreeHost(TreeSettings()), Steps()
    broker = TreeBroker("B", host.of, new_index=compiled_index)
    gc.collect()
    gc.freeze()  # as a node does before its broker is there
    told.begin(broker, size)
    for hop, message in islice(told.go_on(), WARM_UP):
        broker.handle(0, hop, message)
    waits = Took()
    gc.callbacks.append(steps.on_garbage)
    async with open_writer(folder / "state.db") as writer:
        journal = steps.journal = StoredJournal(writer, host, steps.timed(apart))
        await journal.dump(broker, 1)
        steps.took.clear()
        engine = Engine(broker, journal, Bystander(), now=1, congested_queue=NEVER, room=ROOM)

        async def bring() -> None:
            for hop, message in told.go_on():
                begun = perf_counter()
                await engine.bring(hop, message)
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


def main() -> int:
    """Measure and print; returns 1 where a dump held the loop for longer than the limit."""
    chosen = read_options(
        __doc__, subscriptions=100_000, dumps=3, in_this_process=False, limit=float, out=Path
    )
    keep_compiled_code()
    apart = in_this_process if chosen.in_this_process else in_a_process
    with tempfile.TemporaryDirectory() as folder:
        rows = trio.run(measure, chosen.subscriptions, chosen.dumps, apart, Path(folder))
    print(machine())
    columns = ("longest_ms", "processor_ms", "garbage_ms", "without_ms", "median_ms")
    print(f"{'what':20}" + "".join(f"{name:>14}" for name in columns) + f"{'times':>10}")
    for one in rows:
        times = "".join(f"{one[name]:>14.3f}" for name in columns)
        print(f"{one['what']:20}{times}{one['times']:>10,}")
    write_rows(chosen.out, rows)
    held = max(one["without_ms"] for one in rows if one["what"] in (SNAPSHOT, DUMP))
    return int(chosen.limit is not None and held > chosen.limit)


if __name__ == "__main__":
    sys.exit(main())
