"""The same client under asyncio: two subscriptions, each in a task of its own."""

from __future__ import annotations

import asyncio
import sys

from gossamer.client import Client, open_client


async def watch(node: Client, what: str, expression: str, subscribed: asyncio.Event) -> None:
    async with node.subscribe(expression) as quotes:
        subscribed.set()
        quote = await anext(quotes)
        print(f"{what}: {quote.values['symbol']} {quote.values['price']}")


async def main(folder: str) -> None:
    async with open_client(folder) as node, asyncio.TaskGroup() as tasks:
        for what, expression in (("dear", "price > 80"), ("cheap", "price < 20")):
            subscribed = asyncio.Event()
            tasks.create_task(watch(node, what, expression, subscribed))
            await subscribed.wait()
        for price in (81.5, 12.0):
            await node.publish({"symbol": "IBM", "price": price, "day": "2026-11-20"})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
