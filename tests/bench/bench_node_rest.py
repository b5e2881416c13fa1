"""A node that nothing is asked of, among others: processor time, wake-ups and bytes of a second.

    python tests/bench/bench_node_rest.py [--peers 3 6 40] [--rests 1 16] [--settle 120]
        [--seconds 60] [--out FILE]

The node has a process of its own, the others share one; all talk TLS over loopback, and each has a
subscription. Bytes are those of frames either way, before TLS. A wake-up is a return from waiting
for sockets and timers. Nothing is published.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import SEED, Row, read_options, write_rows
from bench.stacks.peer_processes import peer_processes
from support.clusters import MadeCluster
from support.quotes import make_quotes, make_wishes

ROUND_S = 0.5


def at_rest(peers: int, rest: int, settle_s: float, seconds: float) -> Row:
    """What the first of so many nodes does a second."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = MadeCluster(Path(folder) / "first")
        with peer_processes(cluster, (1, peers - 1)) as processes:
            processes.open(ROUND_S, {"rest_rounds": rest})
            processes.call("ready")
            wishes = make_wishes(peers, make_quotes(1000, SEED), SEED)
            shares = processes.shared_out([wish.expression for wish in wishes])
            processes.call_each("subscribe", [{"wishes": share} for share in shares])
            time.sleep(settle_s)
            before, _ = processes.call("activity")
            began = time.monotonic()
            time.sleep(seconds)
            after, _ = processes.call("activity")
            passed_s = time.monotonic() - began
    grown = {name: (after[name] - before[name]) / passed_s for name in before}
    return {
        "peers": peers,
        "rest_rounds": rest,
        "ms of a processor": round(1e3 * grown["cpu_s"], 2),
        "wake-ups": round(grown["wakes"], 1),
        "bytes": round(grown["bytes"]),
        "frames": round(grown["frames"], 2),
    }


def main() -> None:
    given = read_options(
        *(__doc__,), peers=[3, 6, 40], rests=[1, 16], settle=120.0, seconds=60.0, out=Path
    )
    rows: list[Row] = []
    for peers in given.peers:
        for rest in given.rests:
            rows.append(at_rest(peers, rest, given.settle, given.seconds))
            print(" | ".join(str(value) for value in rows[-1].values()), flush=True)
    print(" | ".join(rows[0]))
    write_rows(given.out, rows)


if __name__ == "__main__":
    main()
