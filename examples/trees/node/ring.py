"""Four brokers of this machine on a ring; the one that makes their trees is killed, and comes back.

python ring.py FOLDER    makes a cluster in FOLDER, and prints who gets what
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from gossamer.client import NodeError, Subscription, open_client

GOSSAMER = [sys.executable, "-m", "gossamer.command.main"]
PORT = int(os.environ.get("FIRST_PORT", "7800"))
DIALS: dict[int, tuple[int, ...]] = {1: (), 2: (1,), 3: (2,), 4: (3, 1)}
Told = dict[str, Any]


def start(folder: Path, number: int) -> subprocess.Popen[bytes]:
    """Start a broker of the ring."""
    dialled = [f"--neighbour=127.0.0.1:{PORT + other - 1}" for other in DIALS[number]]
    options = ["--role", "broker", "--overlay", "graph", *dialled]
    command = [*GOSSAMER, "node", "run", str(folder / f"peer{number}"), *options]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


async def wait_until(folder: Path, number: int, condition: Callable[[Told], bool]) -> Told:
    """Wait until a broker is there and its tables are as they should be."""
    while True:
        try:
            async with open_client(folder / f"peer{number}") as client:
                told = await client.tables()
            if condition(told):
                return told
        except NodeError:
            pass
        await trio.sleep(0.1)


def is_served(told: Told) -> bool:
    """Whether the one subscription has a tree, and all brokers reach each other."""
    trees = [row["tree"] for row in told["subscriptions"]]
    return len(told["reachable"]) == len(DIALS) and len(trees) == 1 and None not in trees


async def take(name: str, events: Subscription) -> None:
    """Print the next publication that a client gets."""
    event = await anext(events)
    await events.acknowledge(event)
    print(f"{name} gets {event.values['symbol']} at {event.values['price']}")


async def trade(folder: Path, running: dict[int, subprocess.Popen[bytes]]) -> None:
    """An exchange at one broker, ada at another; the coordinator is one that neither is at."""
    for number in DIALS:
        await wait_until(folder, number, lambda told: len(told["reachable"]) == len(DIALS))
    told = await wait_until(folder, 1, lambda told: told["term"] > 0 and told["trees"])
    peers = {number: await peer_of(folder, number) for number in DIALS}
    first = next(number for number, key in peers.items() if key in told["coordinator"])
    ada_at, exchange_at = [number for number in DIALS if number != first][:2]
    async with (
        open_client(folder / f"peer{exchange_at}") as exchange,
        open_client(folder / f"peer{ada_at}") as client,
        client.subscribe("price < 120", name="ada") as ada,
    ):
        await wait_until(folder, exchange_at, is_served)
        await exchange.publish({"symbol": "IBM", "price": 81.5})
        await take("ada", ada)
        running[first].kill()
        running.pop(first).wait()
        print("the coordinator is killed")
        await exchange.publish({"symbol": "HPQ", "price": 31})
        await take("ada", ada)
        await wait_until(folder, ada_at, lambda told: peers[first] not in told["coordinator"])
        print("another broker coordinates")
        running[first] = start(folder, first)
        await wait_until(folder, ada_at, lambda told: peers[first] in told["coordinator"])
        print("the first one is back")
        await exchange.publish({"symbol": "IBM", "price": 82})
        await take("ada", ada)


async def peer_of(folder: Path, number: int) -> str:
    """The key of a broker, as text."""
    async with open_client(folder / f"peer{number}") as client:
        return client.peer


def main(folder: Path) -> None:
    """Make the cluster, run the brokers, and trade."""
    peers = str(len(DIALS))
    init = [*GOSSAMER, "node", "init", str(folder), "--peers", peers, "--port", str(PORT)]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
    running = {number: start(folder, number) for number in DIALS}
    try:
        trio.run(trade, folder, running)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
