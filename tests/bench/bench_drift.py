"""Peers that move while events are on their way: drops, misses and the longest path, by seeds.

Run it by hand: ``python tests/bench/bench_drift.py [--nodes 60] [--rounds 100] [--seeds 200]
[--first 1] [--latency 0] [--out FILE]``. Every 20 rounds three in ten subscribers draw other
interests and three in ten shift theirs; `kindred` is as its preset is, but that a copy is dropped
after 4 log2 N + 16 hops. With a latency, in seconds, the event engine runs, else the cycle engine.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gossamer.sim as gs
from bench.common import Row, read_options, write_rows

ROUND_S = 60.0
DRIFT = gs.Drift(every_s=20 * ROUND_S, replaced=0.3, shifted=0.3, shift=0.02)


def play(seed: int, nodes: int, rounds: int, latency_s: float) -> Row:
    """Deliveries due and missed, copies dropped, and the longest path, of one seed."""
    link = gs.Link(latency="constant", latency_s=latency_s) if latency_s else gs.Link()
    limit = int(4 * math.log2(nodes)) + 16
    found = gs.simulate(
        nodes=nodes,
        rounds=rounds,
        round_s=ROUND_S,
        seed=seed,
        engine="event" if latency_s else "cycle",
        systems=[gs.System("kindred", preset="kindred", hop_limit=limit)],
        subscriptions=gs.Subscriptions(kind="random"),
        events=gs.Events(per_round=3.0),
        drift=DRIFT,
        network=link,
    )["kindred"]
    missed = found.expected - found.delivered
    dropped = found.totals["hop_limit_drops"]
    hops = int(np.max(found.deliveries["hops"], initial=0))
    return {"seed": seed, "due": found.expected, "missed": missed, "dropped": dropped, "hops": hops}


def main() -> None:
    given = read_options(__doc__, nodes=60, rounds=100, seeds=200, first=1, latency=0.0, out=Path)
    rows: list[Row] = []
    for seed in range(given.first, given.first + given.seeds):
        rows.append(row := play(seed, given.nodes, given.rounds, given.latency))
        if row["missed"] or row["dropped"]:
            print(row, flush=True)
        write_rows(given.out, rows)
    due, missed, dropped = (sum(row[key] for row in rows) for key in ("due", "missed", "dropped"))
    longest = max(row["hops"] for row in rows)
    print(
        f"{given.nodes} nodes, {len(rows)} seeds: {missed} of {due} missed, {dropped} copies "
        f"dropped, the longest path {longest} hops"
    )


if __name__ == "__main__":
    main()
