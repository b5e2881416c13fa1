"""What a publication costs 15 brokers of a SCOT in processes, with and without taking over.

python tests/bench/bench_scot_node.py [PUBLICATIONS]
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil
import trio

from gossamer.node.local.client import LocalClient
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot
from support.broker_processes import ScotProcesses, scot_processes
from support.node_processes import Shell

BATCH = 50
EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
SCOT = Scot(Factor.of("abcde", EDGES), Factor.complete(3))
MODES = {
    "static": {"routing": "static"},
    "dynamic": {"routing": "dynamic"},
    "dynamic, taking over": {"routing": "dynamic", "around_failures": "true", "take_over": "true"},
}


def processor_s(scot: ScotProcesses) -> float:
    times = [psutil.Process(one.pid).cpu_times() for one in scot.running.values()]
    return float(sum(one.user + one.system for one in times))


async def listen(
    scot: ScotProcesses, at: BrokerLabel, wanted: int, *, task_status: trio.TaskStatus[None]
) -> None:
    async def take(client: LocalClient) -> None:
        await client.subscribe("all", "present(x)")
        task_status.started()
        for _ in range(wanted):
            await client.acknowledge(await anext(client.events))

    await scot.with_client(at, f"client-{at.region}{at.cluster}", take)


async def publish(count: int, client: LocalClient) -> None:
    for first in range(0, count, BATCH):
        await client.publish_many([{"x": n} for n in range(first, min(first + BATCH, count))])


async def measure(folder: Path, count: int, settings: dict[str, str]) -> tuple[float, float]:
    """Seconds, and seconds of processor time, that publications to 15 subscribers take."""
    async with scot_processes(Shell(folder, forks=False), SCOT, **settings) as scot:
        async with trio.open_nursery() as nursery:
            for at in SCOT.brokers:
                await nursery.start(partial(listen, scot, at, count))
            began, before = trio.current_time(), processor_s(scot)
            await scot.with_client(SCOT.brokers[0], "exchange", partial(publish, count))
        return trio.current_time() - began, processor_s(scot) - before


def main(count: int) -> None:
    print(f"{count} publications, a subscriber at each of {SCOT.broker_count} brokers")
    for name, settings in MODES.items():
        with tempfile.TemporaryDirectory() as folder:
            took_s, processor = trio.run(measure, Path(folder), count, settings)
        each = 1000 / count
        print(
            f"{name}: {took_s * each:.1f} ms each, "
            f"{processor * each / SCOT.broker_count:.2f} ms of processor time at each broker"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
