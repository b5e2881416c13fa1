"""A million subscriptions of four predicates: what a publication costs, beside what it matches.

Run it by hand: ``python tests/bench/bench_million.py [--sizes 100000 1000000] [--quotes FILE]
[--out bench.json]``. Quotes are of a gzipped CSV file, or made up. The workloads, with four
predicates a subscription:

padres   the shape of PADRES' stock demo: class and symbol equal, two prices below a bound, written
         and read as PADRES' text
ranges   a symbol, a range of a price, a least volume
mixed    strings (equal or a prefix), numbers, dates as text and booleans, three or four of them
parts    the same, a third of them by a part of the symbol, which no order of strings narrows; at
         most 20,000, as each is looked at

Microseconds of processor time: what a publication takes, and what for each subscription that it
matches, fitted to a thousand publications by least squares; and `reach`, with 32 marks on the
subscriptions, which names who gets a publication without listing what matches. Bytes of arrays, and
of everything by the growth of resident memory.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bench_matching import warm_up
from bench.common import SEED, Row, quotes_of, read_options, timed, write_rows
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.bench.measurement import state_bytes
from gossamer.sim.studies.stock_quotes import Quote

PUBLICATIONS: Final = 1_000
MARKS: Final = 32
PART: Final = 10_000
MOST_PARTS: Final = 20_000


def padres_texts(quotes: Sequence[Quote], seed: int) -> Iterator[str]:
    rng = Random(seed)
    while True:
        quote = rng.choice(quotes)
        opened, high = (_cents(quote[name], rng.uniform(0.5, 1.5)) for name in ("open", "high"))
        yield (
            f"[class,eq,stock],[symbol,eq,'{quote['symbol']}'],"
            f"[open,<,{opened:.2f}],[high,<,{high:.2f}]"
        )


def range_texts(quotes: Sequence[Quote], seed: int) -> Iterator[str]:
    rng = Random(seed)
    while True:
        quote = rng.choice(quotes)
        low = _cents(quote["close"], rng.uniform(0.9, 1.0))
        volume = int(float(str(quote["volume"])) * rng.uniform(0.2, 1.5))
        yield (
            f'symbol == "{quote["symbol"]}" and close >= {low} and close < {low * 1.1:.2f} '
            f"and volume > {volume}"
        )


def mixed_texts(operators: str, quotes: Sequence[Quote], seed: int) -> Iterator[str]:
    """Three or four predicates on values of all types, with these operators of a string."""
    rng = Random(seed)
    while True:
        quote = rng.choice(quotes)
        symbol, day = str(quote["symbol"]), str(quote["date"])
        operator = rng.choice(operators.split())
        parts = [
            f'symbol {operator} "{symbol if rng.random() < 0.7 else symbol[:2]}"',
            f"close {rng.choice(('<', '>='))} {_cents(quote['close'], rng.uniform(0.8, 1.2))}",
            f'date >= "{day[:7]}"' if rng.random() < 0.5 else f'date startswith "{day[:7]}"',
            f"rising == {rng.choice(('true', 'false'))}",
        ]
        yield " and ".join(rng.sample(parts, rng.choice((3, 4))))


WORKLOADS: Final[dict[str, Callable[[Sequence[Quote], int], Iterator[str]]]] = {
    "padres": padres_texts,
    "ranges": range_texts,
    "mixed": partial(mixed_texts, "== startswith"),
    "parts": partial(mixed_texts, "== startswith contains"),
}


def _cents(price: object, factor: float) -> float:
    return round(float(str(price)) * factor + 0.01, 2)


def load(index: MatchingIndex, texts: Iterator[str], size: int) -> dict[str, float]:
    """Add so many subscriptions; seconds of reading and adding one, and of adding the last ones."""
    read = added = last = 0.0
    resident = psutil.Process().memory_info().rss

    def add(first: int, wanted: Sequence[Filter]) -> None:
        for number, one in enumerate(wanted, start=first):
            holder = 1 << number % MARKS
            index.mark(index.add(one).id, holder, among=holder)

    for done in range(0, size, PART):
        part = map(parse, islice(texts, min(PART, size - done)))
        seconds, wanted = timed(partial(list[Filter], part))
        read += seconds
        last, _ = timed(partial(add, done, wanted))
        added += last
    return {
        "read_s": read / size,
        "add_s": added / size,
        "add_last_s": last / min(PART, size),
        "resident_bytes": (psutil.Process().memory_info().rss - resident) / size,
        "array_bytes": state_bytes(index._storage.table) / len(index),
    }


def match(index: MatchingIndex, published: Sequence[Quote]) -> dict[str, float]:
    count = len(published)
    seconds, found = np.zeros(count), np.zeros(count)
    for number, quote in enumerate(published):
        seconds[number], matching = timed(partial(index.match, quote))
        found[number] = len(matching)
    columns = np.column_stack([np.ones(count), found])
    (fixed, each), *_ = np.linalg.lstsq(columns, seconds, rcond=None)
    reach, _ = timed(lambda: [index.reach(quote, (1 << MARKS) - 1, 0) for quote in published])
    return {
        "match_s": float(seconds.mean()),
        "fixed_s": float(fixed),
        "each_s": float(each),
        "least_s": float(seconds.min()),
        "matches": float(found.mean()),
        "reach_s": reach / count,
    }


def measure(name: str, size: int, quotes: list[Quote]) -> Row:
    index, rng = MatchingIndex(compiled=True), Random(SEED)
    warm_up(index)
    found = load(index, WORKLOADS[name](quotes, SEED), size)
    chosen = rng.choices(quotes, k=PUBLICATIONS)
    found |= match(index, [quote | {"rising": rng.random() < 0.5} for quote in chosen])
    return {"name": name, "size": size, "filters": len(index), **found, "machine": machine()}


COLUMNS: Final = ("read", "add", "add_last", "match", "fixed", "least", "reach")


def print_row(one: Row) -> None:
    """One line, as soon as it is known; times are microseconds."""
    times = "  ".join(f"{one[f'{column}_s'] * 1e6:8.1f}" for column in COLUMNS)
    print(
        f"{one['name']:9}{one['size']:>11,}{one['filters']:>11,}  {times}"
        f"{one['each_s'] * 1e6:6.2f}{one['matches']:>11,.1f}"
        f"{one['array_bytes']:>9.0f}{one['resident_bytes']:>12.0f}",
        flush=True,
    )


def main() -> None:
    sizes = [100_000, 1_000_000]
    chosen = read_options(__doc__, sizes=sizes, workloads=[*WORKLOADS], quotes=Path, out=Path)
    keep_compiled_code()
    quotes = quotes_of(chosen.quotes)
    print(machine())
    print("workload        size  different", *(f"{one:>8}" for one in COLUMNS), sep="  ", end="")
    print("  each    matches  array B  resident B", flush=True)
    rows = []
    for size in chosen.sizes:
        for name in chosen.workloads:
            most = MOST_PARTS if name == "parts" else size
            rows.append(measure(name, min(size, most), quotes))
            print_row(rows[-1])
            gc.collect()
    write_rows(chosen.out, rows)


if __name__ == "__main__":
    main()
