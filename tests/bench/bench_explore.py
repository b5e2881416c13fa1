"""How many states a second an exploration finds, of a protocol of 64 bytes a node.

Run it by hand: ``python tests/bench/bench_explore.py [--nodes 4] [--states 2000000] [--runs 3]``.
Nodes pass numbers on to random others and keep the last eight, so that there are states without
end. Figures are states a second of processor time, one core, with an invariant that is compiled and
looks at every word: the median and the extremes. Compilation, or the loading of what was compiled,
is in them: let there be so many states that it does not count.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import gossamer.sim as gs
from bench.common import read_options

KEPT, NUMBERS = 8, 5

Number = gs.message("Number", value=int)


class Passing(gs.Protocol):
    """Eight words of a node, of which each message moves one."""

    last = gs.column(int, KEPT)

    step = gs.Timer(rounds=1)

    def on_step(self, me: int, net: gs.Net) -> None:
        """Send the next number to somebody."""
        Number.send(net, gs.draw_other(self, me), (self.last[me, 0] + 1) % NUMBERS)

    def on_number(self, me: int, net: gs.Net, sender: int, value: int) -> None:  # noqa: ARG002
        """Keep a number, and forget the oldest."""
        gs.insert_at(self.last[me], 0, value)

    @gs.invariant
    @gs.rule
    def all_are_small(self, alive: Any) -> Any:
        """No number is beyond the greatest."""
        for node in range(len(self.last)):
            for place in range(KEPT):
                if alive[node] and self.last[node, place] >= NUMBERS:
                    return False
        return True


def main() -> None:
    """Explore, and print states a second."""
    options = read_options(__doc__, nodes=4, states=2_000_000, runs=3)
    bounds = {"draws": max(options.nodes - 1, 1), "in_flight": 3}
    gs.explore(Passing, options.nodes, states=1, **bounds)
    rates = []
    for _ in range(options.runs):
        begin = process_time()
        found = gs.explore(Passing, options.nodes, states=options.states, **bounds)
        rates.append(found.states / (process_time() - begin))
    print(found)
    print(f"{median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) states a second")


if __name__ == "__main__":
    main()
