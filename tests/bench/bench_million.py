"""A million subscriptions of four predicates: what a publication costs, beside what it matches.

Run it by hand: ``python tests/bench/bench_million.py [--sizes 100000 1000000] [--quotes FILE]
[--out bench.json]``. Quotes are read from a gzipped CSV file where it lies, or made up.

The workloads, four predicates a subscription each:

padres   the shape of PADRES' stock demo: class and symbol equal, two prices below a bound, written
         and read as PADRES' text
ranges   a symbol, a range of a price, a least volume
mixed    strings (equal or a prefix), numbers, dates as text and booleans, three or four of them
parts    the same, a third of them by a part of the symbol, which no order of strings narrows; at
         most 20,000, as each is looked at

A publication takes some time, and then some for every subscription that it matches. Both are fitted
to a thousand publications by least squares and reported apart; so is `reach`, with 32 marks
on the subscriptions, which names who gets a publication without listing what matches. Microseconds
of processor time; bytes of arrays, and of everything by the growth of resident memory.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, Final

import numpy as np

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.bench.measurement import state_bytes
from gossamer.sim.studies.stock_quotes import Quote, make_quotes, read_quotes

SEED: Final = 1
PUBLICATIONS: Final = 1_000
MARKS: Final = 32
PART: Final = 10_000
MOST_PARTS: Final = 20_000


def padres_texts(quotes: Sequence[Quote], seed: int) -> Iterator[str]:
    """Subscriptions as PADRES' demo has them, with bounds around prices that were seen."""
    rng = Random(seed)
    while True:
        quote = rng.choice(quotes)
        opened, high = (_cents(quote[name], rng.uniform(0.5, 1.5)) for name in ("open", "high"))
        yield (
            f"[class,eq,stock],[symbol,eq,'{quote['symbol']}'],"
            f"[open,<,{opened:.2f}],[high,<,{high:.2f}]"
        )


def range_texts(quotes: Sequence[Quote], seed: int) -> Iterator[str]:
    """A symbol, a range of closing prices within a tenth, and a least volume."""
    rng = Random(seed)
    while True:
        quote = rng.choice(quotes)
        low = _cents(quote["close"], rng.uniform(0.9, 1.0))
        volume = int(float(str(quote["volume"])) * rng.uniform(0.2, 1.5))
        yield (
            f'symbol == "{quote["symbol"]}" and close >= {low} and close < {low * 1.1:.2f} '
            f"and volume > {volume}"
        )


def mixed_texts(quotes: Sequence[Quote], seed: int) -> Iterator[str]:
    """Predicates on values of all types, three of them or four."""
    return _mixed(quotes, seed, ("== ", "startswith "))


def part_texts(quotes: Sequence[Quote], seed: int) -> Iterator[str]:
    """The same, and some that ask for a part of a string."""
    return _mixed(quotes, seed, ("== ", "startswith ", "contains "))


def _mixed(quotes: Sequence[Quote], seed: int, operators: Sequence[str]) -> Iterator[str]:
    rng = Random(seed)
    while True:
        quote = rng.choice(quotes)
        symbol, day = str(quote["symbol"]), str(quote["date"])
        parts = [
            f'symbol {rng.choice(operators)}"{symbol if rng.random() < 0.7 else symbol[:2]}"',
            f"close {rng.choice(('<', '>='))} {_cents(quote['close'], rng.uniform(0.8, 1.2))}",
            f'date >= "{day[:7]}"' if rng.random() < 0.5 else f'date startswith "{day[:7]}"',
            f"rising == {rng.choice(('true', 'false'))}",
        ]
        yield " and ".join(rng.sample(parts, rng.choice((3, 4))))


WORKLOADS: Final[dict[str, Callable[[Sequence[Quote], int], Iterator[str]]]] = {
    "padres": padres_texts,
    "ranges": range_texts,
    "mixed": mixed_texts,
    "parts": part_texts,
}


def _cents(price: object, factor: float) -> float:
    return round(float(str(price)) * factor + 0.01, 2)


def resident() -> int:
    """Bytes of resident memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def load(index: MatchingIndex, texts: Iterator[str], size: int) -> dict[str, float]:
    """Add so many subscriptions; seconds of reading and adding one, and of adding the last ones."""
    read = added = last = 0.0
    begun_with = resident()
    for done in range(0, size, PART):
        begun = process_time()
        wanted: list[Filter] = [parse(next(texts)) for _ in range(min(PART, size - done))]
        read += process_time() - begun
        begun = process_time()
        for number, one in enumerate(wanted):
            holder = 1 << (done + number) % MARKS
            index.mark(index.add(one).id, holder, among=holder)
        last = process_time() - begun
        added += last
    return {
        "read_s": read / size,
        "add_s": added / size,
        "add_last_s": last / min(PART, size),
        "resident_bytes": (resident() - begun_with) / size,
        "array_bytes": state_bytes(index._storage.table) / len(index),
    }


def match(index: MatchingIndex, published: Sequence[Quote]) -> dict[str, float]:
    """What a publication costs: the whole, and the part that grows with what it matches."""
    seconds, found = np.zeros(len(published)), np.zeros(len(published))
    for number, quote in enumerate(published):
        begun = process_time()
        matching = index.match(quote)
        seconds[number] = process_time() - begun
        found[number] = len(matching)
    columns = np.column_stack([np.ones(len(published)), found])
    (fixed, each), *_ = np.linalg.lstsq(columns, seconds, rcond=None)
    begun = process_time()
    for quote in published:
        index.reach(quote, (1 << MARKS) - 1, 0)
    reach = (process_time() - begun) / len(published)
    return {
        "match_s": float(seconds.mean()),
        "fixed_s": float(fixed),
        "each_s": float(each),
        "least_s": float(seconds.min()),
        "matches": float(found.mean()),
        "reach_s": reach,
    }


def measure(name: str, size: int, quotes: list[Quote]) -> dict[str, Any]:
    """A row: a workload at a size."""
    index = MatchingIndex(compiled=True)
    warm_up(index)
    rng = Random(SEED)
    found = load(index, WORKLOADS[name](quotes, SEED), size)
    published = [
        quote | {"rising": rng.random() < 0.5} for quote in rng.choices(quotes, k=PUBLICATIONS)
    ]
    found |= match(index, published)
    return {"name": name, "size": size, "filters": len(index), **found, "machine": machine()}


def warm_up(index: MatchingIndex) -> None:
    """Let rules be compiled, or read from the cache, before anything is timed."""
    for text in ("price > 2", "price > 1"):
        index.mark(index.add(parse(text)).id, 1)
    index.match({})
    index.reach({}, 1, 0)
    for filter_id in (1, 0):
        index.remove(filter_id)


def print_head() -> None:
    """What the columns of `print_row` are; times are microseconds."""
    columns = ("read", "add", "add_last", "match", "fixed", "least", "reach")
    print("workload        size  different  " + "  ".join(f"{one:>8}" for one in columns), end="")
    print("  each    matches  array B  resident B", flush=True)


def print_row(one: dict[str, Any]) -> None:
    """One line, as soon as it is known."""
    columns = ("read", "add", "add_last", "match", "fixed", "least", "reach")
    times = "  ".join(f"{one[f'{column}_s'] * 1e6:8.1f}" for column in columns)
    print(
        f"{one['name']:9}{one['size']:>11,}{one['filters']:>11,}  {times}"
        f"{one['each_s'] * 1e6:6.2f}{one['matches']:>11,.1f}"
        f"{one['array_bytes']:>9.0f}{one['resident_bytes']:>12.0f}",
        flush=True,
    )


def main() -> None:
    """Measure, print, and write `bench.json` if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=(100_000, 1_000_000))
    parser.add_argument("--workloads", nargs="*", default=list(WORKLOADS), choices=list(WORKLOADS))
    parser.add_argument("--quotes", type=Path)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    keep_compiled_code()
    quotes = read_quotes(chosen.quotes) if chosen.quotes else make_quotes(100_000, SEED)
    gc.collect()
    gc.freeze()  # the quotes are not the index's
    print(machine())
    print_head()
    rows = []
    for size in chosen.sizes:
        for name in chosen.workloads:
            most = MOST_PARTS if name == "parts" else size
            rows.append(measure(name, min(size, most), quotes))
            print_row(rows[-1])
            gc.collect()
    if chosen.out:
        chosen.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
