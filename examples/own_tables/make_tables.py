"""Make a file of subscriptions and one of events for `ticks.toml`, with pyarrow alone.

    python examples/own_tables/make_tables.py [FOLDER]   (default: the folder of this script)

300 nodes trade in one of ten markets. A node wants the prices of its market that are below its
limit; half of them have a second limit in the next market, too. Ticks come every twelve seconds,
in a burst of one a second in the last five minutes; node 0 publishes those of markets 0 to 4, node
1 the others.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NODES, MARKETS, SEED = 300, 10, 7
MARKET, PRICE = 1, 2


def main(folder: Path) -> None:
    """Write ``interests.parquet`` and ``ticks.parquet``."""
    draws = np.random.default_rng(SEED)
    interests = [
        row
        for node in range(NODES)
        for subscription in range(1 + node % 2)
        for row in interest(node, subscription, float(draws.uniform(0.1, 0.4)))
    ]
    times = [*range(600, 2400, 12), *range(2400, 2700)]
    ticks = [row for event, time_s in enumerate(times) for row in tick(event, float(time_s), draws)]
    pq.write_table(pa.Table.from_pylist(interests), folder / "interests.parquet")
    pq.write_table(pa.Table.from_pylist(ticks), folder / "ticks.parquet")


def interest(node: int, subscription: int, limit: float) -> list[dict[str, int | float]]:
    """One subscription: a row for the market, whose cell of the domain it is, one for the price."""
    market = (node + subscription) % MARKETS
    of = {"node": node, "subscription": subscription}
    return [
        of | {"attribute": MARKET, "low": market / MARKETS, "high": (market + 0.99) / MARKETS},
        of | {"attribute": PRICE, "low": 0.0, "high": limit},
    ]


def tick(event: int, time_s: float, draws: np.random.Generator) -> list[dict[str, int | float]]:
    """One event: a row for its market, in the middle of the cell, and one for its price."""
    market = int(draws.integers(MARKETS))
    of = {"event": event, "time_s": time_s, "publisher": market * 2 // MARKETS}
    return [
        of | {"attribute": MARKET, "value": (market + 0.5) / MARKETS},
        of | {"attribute": PRICE, "value": float(draws.beta(2, 4))},
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
