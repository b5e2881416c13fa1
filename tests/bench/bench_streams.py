"""How many events pass one peer, the commands of three nodes, and peers that all publish at once.

Run it by hand: ``python tests/bench/bench_streams.py [PART ...] [--runs 5]``. Parts are

    peer      a peer publishes stock quotes as fast as they are acknowledged, and another, in a
              process of its own, hands each of them to five subscriptions there; ``--events``
    commands  ``gossamer pub --jsonl -`` publishes ``--lines`` lines at one of three nodes, and
              ``gossamer sub`` prints what comes at another: events a second of the clock until the
              last is acknowledged and printed, and the processor time of all nodes for each
    together  at each of ``--peers`` peers ``gossamer pub --jsonl`` publishes its share of ``--all``
              events, and ``gossamer sub`` with a name writes what it wants to files, at each peer
              fewer; ``--busy`` keeps so many processors busy meanwhile, ``--set SECTION.KEY=VALUE``
              changes settings. Copies, repetitions and losses are what the peers counted.

Everything is as nodes have it but for what is set. Medians of the runs, after one in which machine
code comes into use; they fail unless every event came once to everybody who wants it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import SEED, print_medians, read_options
from bench.stacks.peer_processes import PATIENCE_S, PeerProcesses, peer_processes
from gossamer.sim.bench.benchmarks import machine
from support.clusters import MadeCluster
from support.node_fleets import Fleet, ids_in, publish_at_once, subscribers, thresholds
from support.node_processes import Shell, free_ports, wait_for_line
from support.quotes import make_quotes
from support.spark_processes import HUNG_S, wait_for

SUBSCRIPTIONS = 5
SETTLING_ROUNDS = 20  # in which the overlay forms and subscriptions become known
ROUND_S = 0.5
NODES, PORTS_OF_A_NODE = 3, 3
COUNTED = {
    "copies sent for an event": "events_forwarded_total",
    "taken twice": 'redundant_total{cause="duplicate"}',
    "new ones refused": 'dropped_total{cause="overload"}',
    "frames dropped": 'dropped_total{cause="queue full"}',
}
FOR_EACH = ("copies sent for an event", "taken twice")

Figures = dict[str, float]


def one_peer(events: int, runs: int) -> list[Figures]:
    quotes = make_quotes(events, SEED)
    with (
        tempfile.TemporaryDirectory() as folder,
        peer_processes(MadeCluster(Path(folder) / "first"), (1, 1)) as peers,
    ):
        peers.open(ROUND_S, {})
        peers.call("ready")
        wishes = [(number, 0, "price >= 0") for number in range(SUBSCRIPTIONS)]
        peers.programs[1].call("subscribe", wishes=wishes)
        peers.call("rest", rounds=SETTLING_ROUNDS)
        return [_publish(peers, quotes) for _ in range(1 + runs)]


def _publish(peers: PeerProcesses, quotes: Sequence[Mapping[str, float]]) -> Figures:
    publisher, taker = peers.programs
    before = [one["cpu_s"] for one in peers.call("usage")]
    answers = publisher.call("publish", quotes=[(0, 0.0, dict(quote)) for quote in quotes])
    events = [event for event, _, _ in answers]
    taker.call("wait_for", count=SUBSCRIPTIONS * len(quotes), patience_s=PATIENCE_S)
    after = [one["cpu_s"] for one in peers.call("usage")]
    peers.call("rest", rounds=2)
    receipts = [event for _, event, _ in taker.call("take_receipts")]
    if sorted(receipts) != sorted(events * SUBSCRIPTIONS):
        sys.exit(f"{len(events)} events came as {len(receipts)} deliveries")
    if any(seconds < 0 for _, _, seconds in answers):
        sys.exit("an event was not acknowledged")
    used = [end - begin for begin, end in zip(before, after, strict=True)]
    return {
        "events published a processor second": len(events) / used[0],
        "events taken and delivered a processor second": len(events) / used[1],
    }


def commands(lines: int, runs: int) -> list[Figures]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        shell = Shell(Path(folder), forks=False)
        port = free_ports(PORTS_OF_A_NODE * NODES)
        made = ("--peers", str(NODES), "--preset", "local", "--port", str(port))
        shell.ok("node", "init", "demo", *made)
        names = [f"demo/peer{number}" for number in range(1, NODES + 1)]
        nodes = [stack.enter_context(shell.node(name)) for name in names]
        return [_pass(shell, nodes, lines) for _ in range(1 + runs)]


def _pass(shell: Shell, nodes: Sequence[subprocess.Popen[str]], lines: int) -> Figures:
    events = ({"symbol": "IBM", "price": one["price"]} for one in make_quotes(lines, SEED))
    text = "".join(json.dumps(event) + "\n" for event in events)
    with _subscriber(shell, lines) as (subscriber, printed):
        before = sum(map(_used_s, nodes))
        began = time.monotonic()
        command = ("pub", "--folder", "demo/peer1", "--jsonl", "-")
        publisher = shell.start(*command, stdin=subprocess.PIPE)
        _, said = publisher.communicate(text, timeout=PATIENCE_S + lines / 50)
        acknowledged_s = time.monotonic() - began
        if publisher.returncode:
            sys.exit(said)
        subscriber.communicate(timeout=PATIENCE_S + lines / 50)
        printed_s = time.monotonic() - began
        used = sum(map(_used_s, nodes)) - before
        ids = [json.loads(line)["id"] for line in printed.read_text().splitlines()]
    if len(set(ids)) != lines or len(ids) != lines:
        sys.exit(f"{lines} events came as {len(ids)} lines, {len(set(ids))} of them different")
    return {
        "pub: events acknowledged a second": lines / acknowledged_s,
        "sub: events printed a second": lines / printed_s,
        "processor time of the three nodes for an event, us": 1e6 * used / lines,
    }


@contextmanager
def _subscriber(shell: Shell, lines: int) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """`gossamer sub` at the last node, in force, until it has printed so many lines."""
    printed = shell.folder / "printed"
    with printed.open("w") as out:
        asked = ("sub", "price >= 0", "--folder", f"demo/peer{NODES}", "--count", str(lines))
        process = shell.start(*asked, stdout=out)
        try:
            wait_for_line(process, "subscribed")
            time.sleep(SETTLING_ROUNDS * ROUND_S / 2)  # until all peers know of it
            yield process, printed
        finally:
            process.kill()
            process.wait()


def _used_s(process: subprocess.Popen[str]) -> float:
    found = psutil.Process(process.pid)
    times = [one.cpu_times() for one in (found, *found.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def together(events: int, runs: int, peers: int, busy: int, changes: list[str]) -> list[Figures]:
    draws = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        shell = Shell(Path(folder))
        pairs = (text.split("=", 1) for text in ("discovery.multicast=false", *changes))
        settings = {name.replace(".", "__"): json.loads(value) for name, value in pairs}
        fleet = Fleet.make(shell, peers, **settings)
        stack.callback(fleet.stop)
        fleet.start(*fleet.names)
        trio.run(fleet.ready)
        stack.enter_context(subscribers(shell, fleet, rotate_s=1))
        for _ in range(busy):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.enter_context(process)
            stack.callback(process.kill)
        return [_at_once(shell, fleet, events, draws) for _ in range(1 + runs)]


def _at_once(shell: Shell, fleet: Fleet, events: int, draws: random.Random) -> Figures:
    """Publish once, and wait until all is there."""
    before, began = trio.run(_totals, fleet), time.monotonic()
    published = publish_at_once(shell, fleet, events, draws, HUNG_S)
    took_s = time.monotonic() - began
    for name, least in thresholds(fleet).items():
        wanted = {event for event, price in published.items() if price >= least}
        got = shell.folder / "got" / name
        wait_for(lambda got=got, wanted=wanted: wanted <= ids_in([*got.glob("*.jsonl")]))  # type: ignore[misc]
    after = trio.run(_totals, fleet)
    figures = {"acknowledged a second": len(published) / took_s}
    for label in COUNTED:
        share = len(published) if label in FOR_EACH else 1
        figures[label] = (after[label] - before[label]) / share
    return figures


async def _totals(fleet: Fleet) -> Figures:
    """What the peers have counted together."""
    found = dict.fromkeys(COUNTED, 0.0)
    for name in fleet.names:
        async with fleet.client(name) as client:
            lines = (await client.metrics()).splitlines()
        for label, metric in COUNTED.items():
            values = [one for one in lines if one.startswith(f"gossamer_{metric} ")]
            found[label] += sum(float(one.rsplit(" ", 1)[1]) for one in values)
    return found


def main() -> None:
    given = read_options(
        *(__doc__, ("peer", "commands", "together")),
        runs=5,
        events=10_000,
        lines=100_000,
        all=6000,
        peers=6,
        busy=0,
        set=[str],
    )
    print(machine())
    if "together" in given.words:
        print_medians(together(given.all, given.runs, given.peers, given.busy, given.set)[1:])
    os.environ["GOSSAMER_TEST_COMPILED"] = "always"
    if "peer" in given.words:
        print_medians(one_peer(given.events, given.runs)[1:])
    if "commands" in given.words:
        print_medians(commands(given.lines, given.runs)[1:])


if __name__ == "__main__":
    main()
