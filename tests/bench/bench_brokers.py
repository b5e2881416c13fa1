"""What a subscription, a publication, an unsubscription and a burst cost a broker.

Run it by hand: ``python tests/bench/bench_brokers.py [--sizes 1000 20000] [--out bench.json]``. One
broker between a publisher's tree and a neighbour that subscribes, with the compiled index; quotes
are synthetic unless ``--quotes`` names a gzipped CSV file of them, which is read where it lies.
Figures are microseconds of processor time, everything from frame to effects included: of a
subscription as a mean from empty and while the last tenth is added, of publications then, and of
taking a tenth back. *Clients* are a hundred at the broker itself, in place of the neighbour: what
they get has to be listed for each, where for a neighbour it is enough to know that it gets
something. A burst is the unsubscription of one subscription that covers a number of others, given
for each that it triggers.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.core.index import compiled_index
from gossamer.protocol.brokers.core.messages import Attach, NeighbourUp, Subscribe
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.memory.messages import (
    Advertisement,
    BetweenBrokers,
    Frame,
    Publication,
    Subscription,
    Synchronise,
    Unsubscription,
)
from gossamer.protocol.content.filters import Filter, exact_publication, parse
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.studies.stock_quotes import (
    Quote,
    heavy_covering,
    little_covering,
    make_quotes,
    read_quotes,
)

SEED = 1
SIZES = (1_000, 5_000, 20_000, 50_000, 200_000)
WORKLOADS = {"little": little_covering, "heavy": heavy_covering}
COVERINGS = ("off", "lazy", "active", "selective")
BURSTS = (100, 700, 2_100)
CLIENTS, RUNS, PUBLICATIONS = 100, 5, 2_000
PUBLISHER, SUBSCRIBER = neighbour("P"), neighbour("S")


class Between:
    """A broker between two neighbours."""

    def __init__(self, covering: str, advertised: Filter) -> None:
        self.broker = TreeBroker("B", TreeSettings(covering=covering), new_index=compiled_index)
        self.advertisement = Id("P", 1)
        self.frames = {PUBLISHER: 1, SUBSCRIBER: 1}
        offers = (Advertisement(self.advertisement, advertised),)
        for hop, told in ((PUBLISHER, offers), (SUBSCRIBER, ())):
            self.broker.handle(0, None, NeighbourUp(hop.name))
            self.broker.handle(0, hop, Frame(1, 1, Synchronise(told, ())))

    def subscribe(self, numbered: tuple[int, Filter]) -> None:
        number, wanted = numbered
        self.take(SUBSCRIBER, Subscription(Id("S", number), wanted))

    def unsubscribe(self, number: int) -> int:
        return self.take(SUBSCRIBER, Unsubscription(Id("S", number)))

    def publish(self, numbered: tuple[int, dict[str, Any]]) -> int:
        number, values = numbered
        return self.take(PUBLISHER, Publication(Id("P", number), self.advertisement, values))

    def take(self, hop: Any, message: BetweenBrokers) -> int:
        self.frames[hop] += 1
        return len(self.broker.handle(0, hop, Frame(1, self.frames[hop], message)))


def measure(name: str, covering: str, size: int, quotes: list[Quote]) -> list[dict[str, Any]]:
    """Load a broker, publish to it, and take a tenth of the subscriptions back."""
    between = Between(covering, everything(quotes))
    wanted = list(enumerate(islice(WORKLOADS[name](quotes, SEED), size)))
    numbered = publications(quotes)
    warm_up(between, size, wanted[0][1])
    late = max(size // 10, 100)
    with only_the_brokers_memory():
        loaded = seconds_each(between.subscribe, wanted[:-late], 1)
        subscribed = seconds_each(between.subscribe, wanted[-late:])
        sent = between.broker.sizes().sent
        published = seconds_each(between.publish, numbered)
        left = seconds_each(between.unsubscribe, Random(SEED).sample(range(size), size // 10))
    label = f"{name}, {covering}"
    return [
        row(f"{label}: subscribe, mean", size, loaded, "subscription", sent=sent),
        row(f"{label}: subscribe, last", size, subscribed, "subscription", sent=sent),
        row(f"{label}: publish", size, published, "publication", sent=sent),
        row(f"{label}: unsubscribe", size, left, "unsubscription", sent=sent),
    ]


def measure_clients(name: str, size: int, quotes: list[Quote]) -> dict[str, Any]:
    """Publish to a broker whose own clients subscribe."""
    between = Between("active", everything(quotes))
    for number in range(CLIENTS):
        between.broker.handle(0, client(str(number)), Attach())
    for number, wanted in enumerate(islice(WORKLOADS[name](quotes, SEED), size)):
        asked = Subscribe(str(number), wanted)
        between.broker.handle(0, client(str(number % CLIENTS)), asked)
    numbered = publications(quotes)
    got = 0

    def publish(one: tuple[int, dict[str, Any]]) -> None:
        nonlocal got
        got += between.publish(one)

    with only_the_brokers_memory():
        published = seconds_each(publish, numbered)
    got //= len(numbered)
    return row(f"{name}, clients: publish", size, published, "publication", sent=got)


def everything(quotes: list[Quote]) -> Filter:
    """An advertisement of all quotes."""
    return parse(" and ".join(f"present({attribute})" for attribute in quotes[0]))


def publications(quotes: list[Quote]) -> list[tuple[int, dict[str, Any]]]:
    """Some quotes, numbered as a broker numbers its publications."""
    chosen = Random(SEED).choices(quotes, k=PUBLICATIONS)
    return list(enumerate((exact_publication(quote) for quote in chosen), start=2))


def warm_up(between: Between, size: int, wanted: Filter) -> None:
    """Let rules be compiled, or read from the cache, before anything is timed."""
    between.subscribe((size, wanted))
    between.subscribe((size + 1, wanted))
    between.publish((1, {}))
    between.unsubscribe(size)
    between.unsubscribe(size + 1)


@contextmanager
def only_the_brokers_memory() -> Iterator[None]:
    """Let the garbage collector look at nothing older."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def measure_burst(covering: str, size: int) -> dict[str, Any]:
    """Five subscriptions that cover `size` others each, taken back one by one."""
    rng = Random(SEED)
    between = Between(covering, parse("present(group) and present(x) and present(y)"))
    number = 0
    for group in range(5):
        for _ in range(size):
            x, y = rng.uniform(0, 1000), rng.uniform(0, 1000)
            box = f"x >= {x} and x < {x + 10} and y >= {y} and y < {y + 10}"
            between.subscribe((10 + number, parse(f"group == {group} and {box}")))
            number += 1
    for group in range(5):
        between.subscribe((group, parse(f"group == {group}")))
    seconds = []
    triggered = 0
    for group in range(5):
        begun = process_time()
        triggered = max(between.unsubscribe(group) - 1, 1)
        seconds.append((process_time() - begun) / triggered)
    return row(f"burst, {covering}", size, seconds, "triggered", sent=triggered)


def seconds_each(
    work: Callable[[Any], object], items: Sequence[Any], runs: int = RUNS
) -> list[float]:
    """Processor seconds an item, for as many parts of the items as there are runs."""
    size = max(len(items) // runs, 1)
    found = []
    for begin in range(0, runs * size, size):
        begun = process_time()
        for item in items[begin : begin + size]:
            work(item)
        found.append((process_time() - begun) / size)
    return found


def row(name: str, size: int, seconds: list[float], unit: str, **more: Any) -> dict[str, Any]:
    """A row of `bench.json`."""
    return {
        "name": name,
        "size": size,
        "median_s": median(seconds),
        "least_s": min(seconds),
        "runs": len(seconds),
        "unit": unit,
        "machine": machine(),
        **more,
    }


def print_table(rows: Iterable[dict[str, Any]]) -> None:
    """One line a row."""
    print(f"{'what':32}{'size':>9}{'us':>9}{'least':>9}{'sent, got':>11}")
    for one in rows:
        us = f"{one['median_s'] * 1e6:>9.1f}{one['least_s'] * 1e6:>9.1f}"
        print(f"{one['name']:32}{one['size']:>9,}{us}{one['sent']:>11,}")


def main() -> None:
    """Measure, print, and write `bench.json` if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--quotes", type=Path)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    keep_compiled_code()
    quotes = read_quotes(chosen.quotes) if chosen.quotes else make_quotes(100_000, SEED)
    rows = [
        one
        for name in WORKLOADS
        for covering in COVERINGS
        for size in chosen.sizes
        for one in measure(name, covering, size, quotes)
    ]
    rows += [measure_clients(name, size, quotes) for name in WORKLOADS for size in chosen.sizes]
    rows += [measure_burst("active", size) for size in BURSTS]
    print(machine())
    print_table(rows)
    if chosen.out:
        chosen.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
