"""What a subscription and a publication cost in the matching index, and what composite ones do.

Run it by hand: ``python tests/bench/bench_matching.py [--sizes 1000 20000] [--out bench.json]``, by
default from 1,000 to 200,000 subscriptions of about four predicates, with little and with heavy
covering. Quotes are synthetic unless ``--quotes`` names a gzipped CSV file of them, which is read
where it lies. Figures are microseconds of processor time: adding a subscription with its covering
determined, as a mean while the last tenth is added; matching and removing likewise. The aims at
20,000 are 80 for a subscription and 30 for a publication.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.filters.composite import parse_composite
from gossamer.protocol.content.matching.composite_matcher import CompositeMatcher
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.bench.measurement import state_bytes
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
RUNS, PUBLICATIONS, REMOVED = 5, 1_000, 1_000
WINDOW = 200


def seconds_each(work: Callable[[Any], object], items: Sequence[Any], runs: int) -> list[float]:
    """Processor seconds an item, for as many parts of the items as there are runs."""
    found = []
    size = max(len(items) // runs, 1)
    for begin in range(0, size * runs, size):
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


def measure_index(name: str, size: int, quotes: list[Quote]) -> list[dict[str, Any]]:
    """Load an index, then add, match and remove at that size."""
    rng = Random(SEED)
    wanted: list[Filter] = list(islice(WORKLOADS[name](quotes, SEED), size))
    index = MatchingIndex(compiled=True)
    warm_up(index)
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
        row(f"{name}: add", size, added, "subscription", **shape),
        row(f"{name}: add, mean from empty", size, loaded, "subscription", **shape),
        row(f"{name}: match", size, matched, "publication", matches=matches / 5000, **shape),
        row(f"{name}: remove", size, removed, "subscription", **shape),
    ]


def measure_composites(size: int, quotes: list[Quote]) -> list[dict[str, Any]]:
    """Pairs of quotes joined by a variable: one symbol closes where the other opens."""
    rng = Random(SEED)
    matcher = CompositeMatcher(compiled=True)
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
        row("composite: add", size, added, "subscription"),
        row("composite: step", size, stepped, "publication", waiting=matcher.waiting),
    ]


def warm_up(index: MatchingIndex) -> None:
    """Let rules be compiled, or read from the cache, before anything is timed."""
    for text in ("price > 2", "price > 1"):
        index.add(parse(text))
    index.match({})
    for filter_id in (1, 0):
        index.remove(filter_id)


def print_table(rows: Iterable[dict[str, Any]]) -> None:
    """One line a row."""
    print(
        f"{'what':32}{'size':>9}{'us':>9}{'least':>9}{'filters':>9}{'roots':>8}{'matches':>9}{'bytes':>7}"
    )
    for one in rows:
        held, roots, bytes_ = (one.get(key, "") for key in ("filters", "roots", "bytes"))
        matches = f"{one['matches']:.1f}" if "matches" in one else ""
        print(
            f"{one['name']:32}{one['size']:>9,}{one['median_s'] * 1e6:>9.1f}"
            f"{one['least_s'] * 1e6:>9.1f}"
            f"{held:>9}{roots:>8}{matches:>9}{bytes_:>7}"
        )


def main() -> None:
    """Measure, print, and write `bench.json` if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--quotes", type=Path)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    keep_compiled_code()
    quotes = read_quotes(chosen.quotes) if chosen.quotes else make_quotes(100_000, SEED)
    gc.collect()
    gc.freeze()  # the quotes are not the index's
    rows = []
    for name in WORKLOADS:
        for size in chosen.sizes:
            rows += measure_index(name, size, quotes)
    for size in chosen.sizes:
        rows += measure_composites(size, quotes)
    print(machine())
    print_table(rows)
    if chosen.out:
        chosen.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
