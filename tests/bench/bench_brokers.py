"""What a subscription, a publication, an unsubscription and a burst cost a broker.

Run it by hand: ``python tests/bench/bench_brokers.py [--sizes 1000 20000] [--out bench.json]``. One
broker between a publisher's tree and a neighbour that subscribes, with the compiled index; quotes
are synthetic unless ``--quotes`` names a gzipped CSV file of them, which is read where it lies.
Figures are microseconds of processor time, everything from frame to effects included. A burst is
the unsubscription of one subscription that covers a number of others, given for each that it
triggers.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any

from gossamer.protocol.broker import Broker, BrokerSettings, Id, neighbour
from gossamer.protocol.broker.index import compiled_index
from gossamer.protocol.broker.messages import (
    Advertisement,
    BetweenBrokers,
    Frame,
    NeighbourUp,
    Publication,
    Subscription,
    Synchronise,
    Unsubscription,
)
from gossamer.protocol.content.filters import Filter, exact_publication, parse
from gossamer.sim.benchmarks import machine
from gossamer.sim.compilation import keep_compiled_code
from gossamer.sim.quotes import Quote, heavy_covering, little_covering, make_quotes, read_quotes

SEED = 1
SIZES = (1_000, 5_000, 20_000, 50_000)
WORKLOADS = {"little": little_covering, "heavy": heavy_covering}
COVERINGS = ("off", "lazy", "active")
BURSTS = (100, 700, 2_100)
PUBLICATIONS = 2_000
PUBLISHER, SUBSCRIBER = neighbour("P"), neighbour("S")


class Between:
    """A broker between two neighbours."""

    def __init__(self, covering: str, advertised: Filter) -> None:
        self.broker = Broker("B", BrokerSettings(covering=covering), new_index=compiled_index)
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
    rng = Random(SEED)
    offered = " and ".join(f"present({attribute})" for attribute in quotes[0])
    between = Between(covering, parse(offered))
    wanted = list(enumerate(islice(WORKLOADS[name](quotes, SEED), size)))
    between.subscribe((size, wanted[0][1]))
    subscribed = seconds_each(between.subscribe, wanted)
    sent = between.broker.sizes().sent
    chosen = [exact_publication(quote) for quote in rng.choices(quotes, k=PUBLICATIONS + 1)]
    numbered = list(enumerate(chosen, start=2))
    between.publish(numbered[0])
    published = seconds_each(between.publish, numbered[1:])
    left = seconds_each(between.unsubscribe, rng.sample(range(size), size // 10))
    label = f"{name}, {covering}"
    return [
        row(f"{label}: subscribe", size, subscribed, "subscription", sent=sent),
        row(f"{label}: publish", size, published, "publication", sent=sent),
        row(f"{label}: unsubscribe", size, left, "unsubscription", sent=sent),
    ]


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


def seconds_each(work: Callable[[Any], object], items: Sequence[Any]) -> list[float]:
    """Processor seconds an item, for each fifth of the items."""
    size = max(len(items) // 5, 1)
    found = []
    for begin in range(0, 5 * size, size):
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
        "runs": len(seconds),
        "unit": unit,
        "machine": machine(),
        **more,
    }


def print_table(rows: Iterable[dict[str, Any]]) -> None:
    """One line a row."""
    print(f"{'what':32}{'size':>9}{'us':>9}{'sent':>9}")
    for one in rows:
        print(f"{one['name']:32}{one['size']:>9,}{one['median_s'] * 1e6:>9.1f}{one['sent']:>9,}")


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
    rows += [measure_burst("active", size) for size in BURSTS]
    print(machine())
    print_table(rows)
    if chosen.out:
        chosen.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
