"""Four brokers of a SCOT, two clusters of two: one is killed, and its client is served by another.

python take_over.py FOLDER    makes a cluster in FOLDER, and prints who gets what from whom
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import trio

from gossamer.client import Client, NodeError, Subscription, open_client

GOSSAMER = [sys.executable, "-m", "gossamer.command.main"]
PORT = int(os.environ.get("FIRST_PORT", "7795"))
# Region and cluster of each broker, and which brokers it dials: those beside it that came before.
PLACES = {1: ("a", 0, ()), 2: ("b", 0, (1,)), 3: ("a", 1, (1,)), 4: ("b", 1, (2, 3))}
OVERLAY = ["--overlay", "scot", "--clusters", "2", "--edge", "a-b"]
SWITCHES = ["--set", "scot.around_failures=true", "--set", "scot.take_over=true"]


def start(root: Path, number: int) -> subprocess.Popen[bytes]:
    """A broker that runs."""
    region, cluster, beside = PLACES[number]
    command = [*GOSSAMER, "node", "run", str(root / f"peer{number}"), "--role", "broker", *OVERLAY]
    command += ["--region", region, "--cluster", str(cluster), *SWITCHES]
    command += [word for one in beside for word in ("--neighbour", f"127.0.0.1:{PORT + one - 1}")]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


async def wait_for_links(root: Path, number: int, links: int) -> None:
    """Wait until a broker runs, and so many of its links do."""
    while True:
        try:
            async with open_client(root / f"peer{number}") as client:
                told = await client.tables()
                if sum(link["up"] for link in told["links"]) == links:
                    return
        except NodeError:
            pass  # it does not run yet
        await trio.sleep(0.1)


def subscribe(client: Client) -> AbstractAsyncContextManager[Subscription]:
    """What ada asks for, at whichever broker."""
    return client.subscribe("price < 100", name="ada")


async def take(root: Path, number: int, count: int) -> None:
    """Let ada take so many publications from a broker."""
    async with open_client(root / f"peer{number}") as client, subscribe(client) as ada:
        for _ in range(count):
            event = await anext(ada)
            await ada.acknowledge(event)
            print(f"ada gets {event.values['symbol']} at {event.values['price']} from peer{number}")


async def trade(root: Path, running: dict[int, subprocess.Popen[bytes]]) -> None:
    """Ada is a client of peer2, and the exchange one of peer3."""
    for number in PLACES:
        await wait_for_links(root, number, 2)
    async with open_client(root / "peer2") as client, subscribe(client):
        pass  # the broker knows her from now on
    async with open_client(root / "peer3") as exchange:
        await exchange.publish({"symbol": "IBM", "price": 81.5})
        running[2].kill()
        print("peer2 is killed")
        # What is acknowledged now is kept for ada by peer4, the other broker of region b.
        await exchange.publish({"symbol": "HPQ", "price": 31})
        await wait_for_links(root, 4, 1)
        await take(root, 4, 2)
        running[2] = start(root, 2)
        await wait_for_links(root, 4, 2)
        print("peer2 is there again")
        await exchange.publish({"symbol": "IBM", "price": 82})
        await take(root, 2, 1)
        try:
            await take(root, 4, 0)
        except NodeError as error:
            print(error)


def main(root: Path) -> None:
    """Make the cluster, run the brokers, and trade."""
    init = [*GOSSAMER, "node", "init", str(root), "--peers", "4", "--port", str(PORT)]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
    running = {number: start(root, number) for number in PLACES}
    try:
        trio.run(trade, root, running)
    finally:
        for process in running.values():
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
