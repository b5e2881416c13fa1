"""An application that uses the node of its machine: it watches some quotes and publishes others.

It runs under trio; with `anyio.run(main, Path(sys.argv[1]), backend="asyncio")` under asyncio.
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from gossamer.client import open_client

QUOTES = [("IBM", 79.5), ("IBM", 81.0), ("HAL", 99.0), ("IBM", 82.25)]
WANTED = 'symbol == "IBM" and price > 80'


async def main(folder: Path) -> None:
    # The node keeps what "watcher" has not acknowledged, even while it is not connected.
    async with open_client(folder) as node, node.subscribe(WANTED, name="watcher") as quotes:
        for symbol, price in QUOTES:
            await node.publish({"symbol": symbol, "price": price, "day": "2026-11-20"})
        for _ in range(2):
            quote = await anext(quotes)
            print(quote.values["symbol"], quote.values["price"])
            await quotes.acknowledge(quote)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
