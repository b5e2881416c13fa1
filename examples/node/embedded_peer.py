"""A peer inside an application: no node runs beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import attrs
import trio

from gossamer.node.commands.folder import load
from gossamer.node.peer.cluster_info import cluster_schema
from gossamer.node.peer.peer import open_peer


async def main(folder: Path) -> None:
    config = load(folder).config
    config = attrs.evolve(config, schema=cluster_schema(config))
    async with open_peer(config) as peer:
        await peer.ready()
        async with peer.subscribe("price > 80") as quotes:
            await peer.publish({"symbol": "IBM", "price": 81.5, "day": "2026-11-20"})
            quote = await anext(quotes)
            print(quote.values["symbol"], quote.values["price"])


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
