"""What a subscription and a publication cost in the matching index, and what composite ones do.

Run it by hand: ``python tests/bench/bench_matching.py [PART ...] [--sizes 1000 20000] [--quotes
FILE] [--out bench.json]``. Quotes are synthetic, or of a gzipped CSV file. Parts are

    index       subscriptions of about four predicates, with little and with heavy covering
    composite   pairs of quotes joined by a variable: one symbol closes where the other opens
    million     ``--large`` subscriptions, by default 100,000 and a million, which mostly differ

Figures are microseconds of processor time: adding a subscription with its covering determined, as a
mean while the last tenth is added; matching and removing likewise. The workloads of ``million``,
with four predicates a subscription:

padres   the shape of PADRES' stock demo: class and symbol equal, two prices below a bound, written
         and read as PADRES' text
ranges   a symbol, a range of a price, a least volume
mixed    strings (equal or a prefix), numbers, dates as text and booleans, three or four of them
parts    the same, a third of them by a part of the symbol, which no order of strings narrows; at
         most 20,000, as each is looked at

It fits what a publication takes, and what for each subscription that it matches, to a thousand
publications by least squares; and `reach`, with 32 marks on the subscriptions, names who gets a
publication without listing what matches. Bytes are of arrays, and of everything by the growth of
resident memory.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, product
from pathlib import Path
from random import Random

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import common
from bench.common import SEED, Row, seconds_each, timed, timed_row
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.filters.composite import parse_composite
from gossamer.protocol.content.matching.composite_matcher import CompositeMatcher
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.bench.engine_benchmarks import state_bytes
from gossamer.sim.studies.stock_quotes import Quote
from support.quote_subscriptions import heavy_covering, little_covering

SIZES = [1_000, 5_000, 20_000, 50_000, 200_000]
WORKLOADS = {"little": little_covering, "heavy": heavy_covering}
RUNS, PUBLICATIONS, REMOVED, WINDOW = 5, 1_000, 1_000, 200
MARKS, PART, MOST_PARTS = 32, 10_000, 20_000


def measure_index(name: str, size: int, quotes: list[Quote]) -> list[Row]:
    """Load an index, then add, match and remove at that size."""
    index, rng = MatchingIndex(compiled=True), Random(SEED)
    warm_up(index)
    wanted: list[Filter] = list(islice(WORKLOADS[name](quotes, SEED), size))
    late = max(size // 10, 100)
    loaded = seconds_each(index.add, wanted[:-late], 1)
    added = seconds_each(index.add, wanted[-late:], RUNS)
    matches = 0

    def match(quote: Quote) -> None:
        nonlocal matches
        matches += len(index.match(quote))

    matched = seconds_each(match, rng.choices(quotes, k=PUBLICATIONS * RUNS), RUNS)
    held, roots = len(index), len(index.roots())
    stored = state_bytes(index._storage.table) / held
    leaving = rng.sample([index.id_of(one) for one in set(wanted)], min(REMOVED, held // 2))
    removed = seconds_each(index.remove, leaving, RUNS)
    shape = {"bytes": round(stored), "filters": held, "roots": roots}
    return [
        timed_row(f"{name}: add", size, added, "subscription", **shape),
        timed_row(f"{name}: add, mean from empty", size, loaded, "subscription", **shape),
        timed_row(f"{name}: match", size, matched, "publication", matches=matches / 5000, **shape),
        timed_row(f"{name}: remove", size, removed, "subscription", **shape),
    ]


def measure_composites(size: int, quotes: list[Quote]) -> list[Row]:
    matcher, rng = CompositeMatcher(compiled=True), Random(SEED)
    composites = []
    for _ in range(size):
        one, other = rng.choice(quotes), rng.choice(quotes)
        first = f'symbol == "{one["symbol"]}" and close >= {one["close"]} and close == $X'
        second = f'symbol == "{other["symbol"]}" and open == $X'
        composites.append(parse_composite(f"{{{first}}} & {{{second}}}"))
    added = seconds_each(lambda one: matcher.add(one, WINDOW), composites, RUNS)
    steps = list(enumerate(rng.choices(quotes, k=PUBLICATIONS)))
    stepped = seconds_each(lambda one: matcher.step(one[0], one[1], one[0]), steps, RUNS)
    return [
        timed_row("composite: add", size, added, "subscription"),
        timed_row("composite: step", size, stepped, "publication", waiting=matcher.waiting),
    ]


def warm_up(index: MatchingIndex) -> None:
    """Let rules be compiled, or read from the cache, before anything is timed."""
    for text in ("price > 2", "price > 1"):
        index.mark(index.add(parse(text)).id, 1)
    index.match({})
    index.reach({}, 1, 0)
    for filter_id in (1, 0):
        index.remove(filter_id)


def padres_texts(quotes: Sequence[Quote], rng: Random) -> Iterator[str]:
    while True:
        quote = rng.choice(quotes)
        opened, high = (_cents(quote[name], rng.uniform(0.5, 1.5)) for name in ("open", "high"))
        yield (
            f"[class,eq,stock],[symbol,eq,'{quote['symbol']}'],"
            f"[open,<,{opened:.2f}],[high,<,{high:.2f}]"
        )


def range_texts(quotes: Sequence[Quote], rng: Random) -> Iterator[str]:
    while True:
        quote = rng.choice(quotes)
        low = _cents(quote["close"], rng.uniform(0.9, 1.0))
        volume = int(float(str(quote["volume"])) * rng.uniform(0.2, 1.5))
        yield (
            f'symbol == "{quote["symbol"]}" and close >= {low} and close < {low * 1.1:.2f} '
            f"and volume > {volume}"
        )


def mixed_texts(operators: str, quotes: Sequence[Quote], rng: Random) -> Iterator[str]:
    """Three or four predicates on values of all types, with these operators of a string."""
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


LARGE: dict[str, Callable[[Sequence[Quote], Random], Iterator[str]]] = {
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
        "read_us": 1e6 * read / size,
        "add_us": 1e6 * added / size,
        "add_last_us": 1e6 * last / min(PART, size),
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
        "match_us": 1e6 * float(seconds.mean()),
        "fixed_us": 1e6 * float(fixed),
        "least_us": 1e6 * float(seconds.min()),
        "reach_us": 1e6 * reach / count,
        "each_us": 1e6 * float(each),
        "matches": float(found.mean()),
    }


def measure_large(name: str, size: int, quotes: list[Quote]) -> Row:
    index, rng = MatchingIndex(compiled=True), Random(SEED)
    warm_up(index)
    found = load(index, LARGE[name](quotes, Random(SEED)), size)
    chosen = rng.choices(quotes, k=PUBLICATIONS)
    found |= match(index, [quote | {"rising": rng.random() < 0.5} for quote in chosen])
    row = {"name": name, "size": size, "filters": len(index), **found, "machine": machine()}
    print(row, flush=True)
    gc.collect()
    return row


def main() -> None:
    chosen = common.read_options(
        *(__doc__, ("index", "composite", "million")),
        sizes=SIZES,
        large=[100_000, 1_000_000],
        workloads=[*LARGE],
        quotes=Path,
        out=Path,
    )
    keep_compiled_code()
    quotes = common.quotes_of(chosen.quotes)
    rows: list[Row] = []
    if "index" in chosen.words:
        for name, size in product(WORKLOADS, chosen.sizes):
            rows += measure_index(name, size, quotes)
    if "composite" in chosen.words:
        for size in chosen.sizes:
            rows += measure_composites(size, quotes)
    if rows:
        common.print_rows(rows, **{key: key for key in ("filters", "roots", "matches", "bytes")})
    if "million" in chosen.words:
        sizes = {"parts": MOST_PARTS}
        large = [
            measure_large(name, min(size, sizes.get(name, size)), quotes)
            for size, name in product(chosen.large, chosen.workloads)
        ]
        heads = [key for key in large[0] if key != "machine"]
        common.print_table(heads, ([row[key] for key in heads] for row in large))
        rows += large
    common.write_rows(chosen.out, rows)


if __name__ == "__main__":
    main()
