"""How many events pass one peer, and the commands of three nodes, in a second.

Run it by hand: ``python tests/bench/bench_streams.py [--events N] [--lines N] [--runs 5]``.

One peer: a peer publishes stock quotes as fast as they are acknowledged, and another, in a process
of its own, hands each of them to five subscriptions there. Figures are events for each second of
processor time of either process. Three nodes: ``gossamer pub --jsonl -`` publishes lines at one
node, ``gossamer sub`` prints what comes at another. Figures are events a second of the clock, until
the last is acknowledged and until it is printed, and the processor time of all nodes for each
event. Everything is as nodes have it. Medians of the runs, which fail unless every event came once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import SEED, print_medians, read_options
from bench.stacks.peer_processes import PATIENCE_S, PeerProcesses, peer_processes
from gossamer.sim.bench.benchmarks import machine
from support.clusters import MadeCluster
from support.node_processes import Shell, free_ports, wait_for_line
from support.quotes import make_quotes

SUBSCRIPTIONS = 5
SETTLING_ROUNDS = 20  # in which the overlay forms and subscriptions become known
ROUND_S = 0.5
NODES, PORTS_OF_A_NODE = 3, 3

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
        # The first run is where machine code comes into use.
        return [_publish(peers, quotes) for _ in range(1 + runs)][1:]


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
        return [_pass(shell, nodes, lines) for _ in range(1 + runs)][1:]


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


def main() -> None:
    given = read_options(__doc__, events=10_000, lines=100_000, runs=5)
    os.environ["GOSSAMER_TEST_COMPILED"] = "always"
    print(machine())
    for runs in (one_peer(given.events, given.runs), commands(given.lines, given.runs)):
        print_medians(runs)


if __name__ == "__main__":
    main()
