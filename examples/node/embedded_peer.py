"""A peer inside an application: no node runs beside it."""

from __future__ import annotations

import sys

import trio

from gossamer.node import open_peer


async def main(folder: str) -> None:
    async with open_peer(folder) as peer:
        await peer.ready()
        async with peer.subscribe("price > 80") as quotes:
            await peer.publish({"symbol": "IBM", "price": 81.5, "day": "2026-11-20"})
            quote = await anext(quotes)
            print(quote.values["symbol"], quote.values["price"])


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
