"""Three brokers of this machine in a row, an exchange at one end, and traders that ask and leave.

python three_brokers.py FOLDER    makes a cluster in FOLDER, and prints who gets what
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import trio

from gossamer.client import NodeError, RefusedByNodeError, Subscription, open_client

GOSSAMER = [sys.executable, "-m", "gossamer.command.main"]
PORT = int(os.environ.get("FIRST_PORT", "7790"))
OFFER = "present(symbol) and price > 0"
QUOTES = ({"symbol": "IBM", "price": 81.5}, {"symbol": "HPQ", "price": 31})


@contextmanager
def broker(folder: Path, *neighbours: str) -> Iterator[None]:
    """A broker that runs, connected to its neighbours as soon as they do."""
    named = [word for one in neighbours for word in ("--neighbour", one)]
    options = ["--role", "broker", "--covering", "incremental", *named]
    command = [*GOSSAMER, "node", "run", str(folder), *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


async def wait_for_socket(folder: Path) -> None:
    """Wait until the broker in a folder answers its clients."""
    while True:
        try:
            async with open_client(folder):
                return
        except NodeError:
            await trio.sleep(0.1)


async def wait_for_tables(folder: Path, **sizes: int) -> None:
    """Wait until a broker knows so many advertisements and subscriptions."""
    async with open_client(folder) as client:
        while not sizes.items() <= (await client.tables())["sizes"].items():
            await trio.sleep(0.1)


async def take(name: str, events: Subscription) -> None:
    """Print the next publication that a client gets."""
    event = await anext(events)
    await events.acknowledge(event)
    print(f"{name} gets {event.values['symbol']} at {event.values['price']}")


async def trade(first: Path, last: Path) -> None:
    """An exchange at the first broker; ada and bob at the last."""
    for folder in (first, last):
        await wait_for_socket(folder)
    async with (
        open_client(first) as exchange,
        open_client(last) as traders,
        traders.subscribe('symbol == "IBM" and 0 < price < 100', name="bob") as bob,
    ):
        await exchange.advertise("quotes", OFFER)
        await wait_for_tables(last, advertisements=1)
        async with traders.subscribe("price > 0", name="ada") as ada:
            # The first broker hears of ada's subscription only, which covers bob's.
            await wait_for_tables(first, subscriptions=1)
            for quote in QUOTES:
                await exchange.publish(quote)
            await take("ada", ada)
            await take("bob", bob)
            await take("ada", ada)
            await ada.forget()
        await exchange.publish({"symbol": "IBM", "price": 82})
        await take("bob", bob)
        # A publication that was not announced comes back.
        try:
            await exchange.publish({"symbol": "IBM", "price": -1})
        except RefusedByNodeError as error:
            print("refused:", error.cause)


def main(folder: Path) -> None:
    """Make the cluster, run the brokers, and trade."""
    init = [*GOSSAMER, "node", "init", str(folder), "--peers", "3", "--port", str(PORT)]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
    peers = [folder / f"peer{number}" for number in (1, 2, 3)]
    with ExitStack() as stack:
        for number, peer in enumerate(peers):
            before = [f"127.0.0.1:{PORT + number - 1}"] if number else []
            stack.enter_context(broker(peer, *before))
        trio.run(trade, peers[0], peers[-1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
