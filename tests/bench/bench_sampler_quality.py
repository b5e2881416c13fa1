"""The tables of docs/samplers.md: what overlays of the samplers are like, with mass failures.

Run it by hand: ``python tests/bench/bench_sampler_quality.py [--nodes N] [sampler ...]``, by
default 10^4 nodes and every sampler. Prints the means of three seeds as Markdown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import read_options
from gossamer.protocol.peer.settings.config import SAMPLERS
from support.sampler_quality import Overlay

SEEDS = (1, 2, 3)
CYCLES = 50
FAILURES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
BROADCASTS = 100  # before the next cycle
FIRSTS = 20  # forks of each overlay of which the first broadcast counts
HEALED_AFTER = (1, 2, 5, 10)
BROADCASTS_THEN = LAST = 10


def failure_row(formed: Overlay, share: float) -> list[float]:
    """Reliability after a share of the nodes failed: at once, over broadcasts, and after cycles."""
    overlay = formed.fork()
    overlay.fail(share)
    first = [overlay.fork().broadcast()[0] for _ in range(FIRSTS)]
    reached = overlay.fork().broadcasts(BROADCASTS)
    row = [*map(np.mean, (first, reached, reached[-LAST:]))]
    # Healed by cycles alone, without the broadcasts that found failed neighbours.
    cycles = 0
    for after in HEALED_AFTER:
        overlay.run(after - cycles)
        cycles = after
        row.append(np.mean(overlay.fork().broadcasts(BROADCASTS_THEN)))
    return [*map(float, row)]


def tables(name: str, nodes: int) -> Iterator[str]:
    formed = [Overlay(name, nodes, seed) for seed in SEEDS]
    for overlay in formed:
        overlay.run(CYCLES)
    for share in FAILURES:
        rows = [failure_row(overlay, share) for overlay in formed]
        cells = " | ".join(f"{100 * value:.1f}" for value in np.mean(rows, axis=0))
        yield f"| {name} | {100 * share:.0f} % | {cells} |"
    hops = np.mean([one.broadcast()[1] for one in formed for _ in range(BROADCASTS)])
    clustered, path, degree, deviation, full = np.mean([one.graph() for one in formed], axis=0)
    yield (
        f"| {name} | {clustered:.5f} | {path:.2f} | {degree:.2f} | {deviation:.2f} "
        f"| {100 * full:.1f} % | {hops:.1f} |"
    )


def main() -> None:
    given = read_options(__doc__, SAMPLERS, nodes=10_000)
    after = " | ".join(f"after {cycles}" for cycles in HEALED_AFTER)
    print(f"| sampler | failed | first | mean of {BROADCASTS} | last {LAST} | {after} |")
    print("| sampler | clustering | path | in-degree | sd | at the mode | last delivery |")
    for name in given.words:
        for row in tables(name, given.nodes):
            print(row, flush=True)


if __name__ == "__main__":
    main()
