"""What peers of one machine take that all publish as fast as they can.

Run it by hand: ``python tests/bench/bench_together.py [--peers 6] [--events 6000] [--runs 5]
[--busy 0] [--set SECTION.KEY=VALUE ...]``.

At every peer ``gossamer pub --jsonl`` publishes its share, and ``gossamer sub`` with a name writes
what it wants to files, at each peer fewer events. Figures are events acknowledged a second of the
clock, and of the counters of the peers: copies sent for an event, copies that a peer had already,
new events refused, and frames that did not fit into queues. ``--busy`` keeps so many processors
busy meanwhile. The first run, in which compiled rules are loaded, does not count. The run fails
unless every event came to everybody who wants it.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import SEED, print_medians, read_options
from gossamer.sim.bench.benchmarks import machine
from support.node_fleets import Fleet, ids_in, publish_at_once, subscribers, thresholds
from support.node_processes import Shell
from support.spark_processes import HUNG_S, wait_for

COUNTED = {
    "copies sent for an event": "events_forwarded_total",
    "taken twice": 'redundant_total{cause="duplicate"}',
    "new ones refused": 'dropped_total{cause="overload"}',
    "frames dropped": 'dropped_total{cause="queue full"}',
}
FOR_EACH = ("copies sent for an event", "taken twice")


async def totals(fleet: Fleet) -> dict[str, float]:
    """What the peers have counted together."""
    found = dict.fromkeys(COUNTED, 0.0)
    for name in fleet.names:
        async with fleet.client(name) as client:
            lines = (await client.metrics()).splitlines()
        for label, metric in COUNTED.items():
            values = [one for one in lines if one.startswith(f"gossamer_{metric} ")]
            found[label] += sum(float(one.rsplit(" ", 1)[1]) for one in values)
    return found


def run(shell: Shell, fleet: Fleet, events: int, draws: random.Random) -> Mapping[str, float]:
    """Publish once, wait until all is there, and return what it took."""
    before, began = trio.run(totals, fleet), time.monotonic()
    published = publish_at_once(shell, fleet, events, draws, HUNG_S)
    took_s = time.monotonic() - began
    for name, least in thresholds(fleet).items():
        wanted = {event for event, price in published.items() if price >= least}
        got = shell.folder / "got" / name
        wait_for(lambda got=got, wanted=wanted: wanted <= ids_in([*got.glob("*.jsonl")]))  # type: ignore[misc]
    after = trio.run(totals, fleet)
    figures = {"acknowledged a second": len(published) / took_s}
    for label in COUNTED:
        share = len(published) if label in FOR_EACH else 1
        figures[label] = (after[label] - before[label]) / share
    return figures


def main() -> None:
    options = read_options(__doc__, peers=6, events=6000, runs=5, busy=0, set=[str])
    draws = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        shell = Shell(Path(folder))
        pairs = (text.split("=", 1) for text in ("discovery.multicast=false", *options.set))
        settings = {name.replace(".", "__"): json.loads(value) for name, value in pairs}
        fleet = Fleet.make(shell, options.peers, **settings)
        stack.callback(fleet.stop)
        fleet.start(*fleet.names)
        trio.run(fleet.ready)
        stack.enter_context(subscribers(shell, fleet, rotate_s=1))
        for _ in range(options.busy):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.enter_context(busy)
            stack.callback(busy.kill)
        runs = [run(shell, fleet, options.events, draws) for _ in range(options.runs + 1)][1:]
    print(machine())
    print_medians(runs)


if __name__ == "__main__":
    main()
