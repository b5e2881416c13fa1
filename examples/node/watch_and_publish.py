"""An application that uses the node of its machine: it watches some quotes and publishes others."""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from gossamer.node.commands.folder import address_of
from gossamer.node.local.client import open_client
from gossamer.node.local.follower import follow

QUOTES = [("IBM", 79.5), ("IBM", 81.0), ("HAL", 99.0), ("IBM", 82.25)]
WANTED = {"dear": 'symbol == "IBM" and price > 80'}


async def main(folder: Path) -> None:
    address = address_of(folder)
    # The node keeps what "watcher" has not acknowledged, even while it is not connected.
    async with follow(address, WANTED, name="watcher") as quotes:
        async with open_client(address) as client:
            for symbol, price in QUOTES:
                await client.publish({"symbol": symbol, "price": price, "day": "2026-11-20"})
        for _ in range(2):
            quote = await anext(quotes)
            print(quote.values["symbol"], quote.values["price"])
            await quotes.acknowledge(quote)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
