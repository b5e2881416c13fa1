"""What a subscription and a publication cost in the matching index, and what composite ones do.

Run it by hand: ``python tests/bench/bench_matching.py [--sizes 1000 20000] [--out bench.json]``, by
default from 1,000 to 200,000 subscriptions of about four predicates, with little and with heavy
covering. Quotes are synthetic unless ``--quotes`` names a gzipped CSV file of them. Figures are
microseconds of processor time: adding a subscription with its covering determined, as a mean while
the last tenth is added; matching and removing likewise.
"""

from __future__ import annotations

import sys
from itertools import islice, product
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import (
    SEED,
    Row,
    print_rows,
    quotes_of,
    read_options,
    seconds_each,
    timed_row,
    write_rows,
)
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.filters.composite import parse_composite
from gossamer.protocol.content.matching.composite_matcher import CompositeMatcher
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.sim.bench.measurement import state_bytes
from gossamer.sim.studies.stock_quotes import Quote, heavy_covering, little_covering

SIZES = [1_000, 5_000, 20_000, 50_000, 200_000]
WORKLOADS = {"little": little_covering, "heavy": heavy_covering}
RUNS, PUBLICATIONS, REMOVED = 5, 1_000, 1_000
WINDOW = 200


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
    """Pairs of quotes joined by a variable: one symbol closes where the other opens."""
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


def main() -> None:
    chosen = read_options(__doc__, sizes=SIZES, quotes=Path, out=Path)
    keep_compiled_code()
    quotes = quotes_of(chosen.quotes)
    rows: list[Row] = []
    for name, size in product(WORKLOADS, chosen.sizes):
        rows += measure_index(name, size, quotes)
    for size in chosen.sizes:
        rows += measure_composites(size, quotes)
    print_rows(rows, filters="filters", roots="roots", matches="matches", bytes="bytes")
    write_rows(chosen.out, rows)


if __name__ == "__main__":
    main()
