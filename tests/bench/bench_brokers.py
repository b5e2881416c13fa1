"""What a subscription, a publication, an unsubscription and a burst cost a broker.

Run it by hand: ``python tests/bench/bench_brokers.py [--sizes 1000 20000] [--out bench.json]``. One
broker between a publisher's tree and a neighbour that subscribes; quotes are synthetic unless
``--quotes`` names a gzipped CSV file of them. Figures are microseconds of processor time, from
frame to effects: of a subscription as a mean from empty and while the last tenth is added, of
publications then, and of taking a tenth back. *Clients* are a hundred at the broker itself, in
place of the neighbour. A burst is the unsubscription of one subscription that covers a number of
others, given for each that it triggers.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import common
from bench.bench_matching import SIZES, WORKLOADS
from bench.common import SEED, Row, seconds_each, timed, timed_row
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core import messages as asked
from gossamer.protocol.brokers.core.broker import compiled_index
from gossamer.protocol.brokers.core.messages import Id, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings, messages
from gossamer.protocol.content.filters import Filter, exact_publication, parse
from gossamer.sim.studies.stock_quotes import Quote

COVERINGS = ("off", "lazy", "active", "selective")
BURSTS = (100, 700, 2_100)
CLIENTS, RUNS, PUBLICATIONS = 100, 5, 2_000
PUBLISHER, SUBSCRIBER = neighbour("P"), neighbour("S")
ADVERTISED = Id("P", 1)


def connect(broker: TreeBroker, advertised: Filter) -> None:
    offers = (messages.Advertisement(ADVERTISED, advertised),)
    for hop, told in ((PUBLISHER, offers), (SUBSCRIBER, ())):
        broker.handle(0, None, asked.NeighbourUp(hop.name))
        broker.handle(0, hop, messages.Frame(1, 1, messages.Synchronise(told, ())))


class Between:
    def __init__(self, covering: str, advertised: Filter) -> None:
        self.broker = TreeBroker("B", TreeSettings(covering=covering), new_index=compiled_index)
        self.frames = {PUBLISHER: 1, SUBSCRIBER: 1}
        connect(self.broker, advertised)

    def subscribe(self, numbered: tuple[int, Filter]) -> None:
        number, wanted = numbered
        self.take(SUBSCRIBER, messages.Subscription(Id("S", number), wanted))

    def unsubscribe(self, number: int) -> int:
        return self.take(SUBSCRIBER, messages.Unsubscription(Id("S", number)))

    def publish(self, numbered: tuple[int, dict[str, Any]]) -> int:
        number, values = numbered
        return self.take(PUBLISHER, messages.Publication(Id("P", number), ADVERTISED, values))

    def take(self, hop: Any, message: messages.BetweenBrokers) -> int:
        self.frames[hop] += 1
        return len(self.broker.handle(0, hop, messages.Frame(1, self.frames[hop], message)))


def measure(name: str, covering: str, size: int, quotes: list[Quote]) -> list[Row]:
    """Load a broker, publish to it, and take a tenth of the subscriptions back."""
    between = Between(covering, everything(quotes))
    wanted = list(enumerate(islice(WORKLOADS[name](quotes, SEED), size)))
    numbered = publications(quotes)
    # Lets rules be compiled, or read from the cache.
    between.subscribe((size, wanted[0][1]))
    between.subscribe((size + 1, wanted[0][1]))
    between.publish((1, {}))
    between.unsubscribe(size)
    between.unsubscribe(size + 1)
    late = max(size // 10, 100)
    leaving = Random(SEED).sample(range(size), size // 10)
    with only_the_brokers_memory():
        found = {
            "subscribe, mean": seconds_each(between.subscribe, wanted[:-late], 1),
            "subscribe, last": seconds_each(between.subscribe, wanted[-late:], RUNS),
        }
        sent = between.broker.sizes().sent
        found["publish"] = seconds_each(between.publish, numbered, RUNS)
        found["unsubscribe"] = seconds_each(between.unsubscribe, leaving, RUNS)
    return [
        timed_row(f"{name}, {covering}: {what}", size, seconds, "message", sent=sent)
        for what, seconds in found.items()
    ]


def measure_clients(name: str, size: int, quotes: list[Quote]) -> Row:
    """Publish to a broker whose own clients subscribe."""
    between = Between("active", everything(quotes))
    for number in range(CLIENTS):
        between.broker.handle(0, client(str(number)), asked.Attach())
    for number, wanted in enumerate(islice(WORKLOADS[name](quotes, SEED), size)):
        told = asked.Subscribe(str(number), wanted)
        between.broker.handle(0, client(str(number % CLIENTS)), told)
    numbered = publications(quotes)
    got = 0

    def publish(one: tuple[int, dict[str, Any]]) -> None:
        nonlocal got
        got += between.publish(one)

    with only_the_brokers_memory():
        published = seconds_each(publish, numbered, RUNS)
    got //= len(numbered)
    return timed_row(f"{name}, clients: publish", size, published, "publication", sent=got)


def everything(quotes: list[Quote]) -> Filter:
    return parse(" and ".join(f"present({attribute})" for attribute in quotes[0]))


def publications(quotes: list[Quote]) -> list[tuple[int, dict[str, Any]]]:
    chosen = Random(SEED).choices(quotes, k=PUBLICATIONS)
    return list(enumerate((exact_publication(quote) for quote in chosen), start=2))


@contextmanager
def only_the_brokers_memory() -> Iterator[None]:
    """Let the garbage collector look at nothing older."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def measure_burst(covering: str, size: int) -> Row:
    """Five subscriptions that cover `size` others each, taken back one by one."""
    rng = Random(SEED)
    between = Between(covering, parse("present(group) and present(x) and present(y)"))
    for number in range(5 * size):
        x, y = rng.uniform(0, 1000), rng.uniform(0, 1000)
        box = f"x >= {x} and x < {x + 10} and y >= {y} and y < {y + 10}"
        between.subscribe((10 + number, parse(f"group == {number // size} and {box}")))
    for group in range(5):
        between.subscribe((group, parse(f"group == {group}")))
    seconds = []
    for group in range(5):
        spent, effects = timed(partial(between.unsubscribe, group))
        triggered = max(effects - 1, 1)
        seconds.append(spent / triggered)
    return timed_row(f"burst, {covering}", size, seconds, "triggered", sent=triggered)


def main() -> None:
    chosen = common.read_options(__doc__, sizes=SIZES, quotes=Path, out=Path)
    keep_compiled_code()
    quotes = common.quotes_of(chosen.quotes)
    rows: list[Row] = []
    for name, covering, size in product(WORKLOADS, COVERINGS, chosen.sizes):
        rows += measure(name, covering, size, quotes)
    rows += [measure_clients(name, size, quotes) for name in WORKLOADS for size in chosen.sizes]
    rows += [measure_burst("active", size) for size in BURSTS]
    common.print_rows(rows, sent="sent, got")
    common.write_rows(chosen.out, rows)


if __name__ == "__main__":
    main()
