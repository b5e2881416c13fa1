"""Forty real peers under load: latency, deliveries a second, memory, start, and exactness.

Run it by hand: ``python tests/bench/bench_node.py [--small] [--round SECONDS] [--out FOLDER]``.
Peers run in several processes and talk TLS over loopback. All publish stock quotes in turn, first
at a steady rate, then in bursts, each as soon as the one before was delivered. A run in which a
subscription does not get every quote that it matches once, and nothing else, ends with an error.
Figures are printed beside their aims, and written to ``bench.json``.

A delivery is an event handed to a subscription. Processor seconds are those of all processes, with
gossip, encryption, matching, and the applications. Traffic overhead is the share of event copies
that peers took which want nothing of the kind, hops are how many peers a delivered event came
through; both are counted in a stream of their own at the end, as that takes time. Memory is what is
resident, pages that processes share included, but for what is said not to be shared.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
from attrs import define, evolve, field, frozen

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import SEED, read_options, write_rows
from bench.stacks.peer_processes import PATIENCE_S, PeerProcesses, peer_processes
from support.clusters import MadeCluster
from support.node_processes import Shell
from support.quotes import SCHEMA, WIDTHS, Quote, Wish, make_quotes, make_wishes

LEAD_S = 0.5  # from saying when a steady stream begins to its beginning
ARRIVAL_S = 30.0  # without any delivery, after which no more are waited for
SETTLING_S = 3.0  # the same, while subscriptions may not be known everywhere yet
SETTLING_ROUNDS = 60  # more than an overlay takes to form
WATCHED = 400  # quotes published while copies and hops are counted
STARTS = 5  # of a node alone, of which the median is told
QUIET_ROUNDS = 4  # after the last delivery, in which nothing else may come


@frozen
class Size:
    processes: tuple[int, ...]  # peers of each; the first has one, to tell what further ones cost
    wishes: int  # subscriptions, shared out evenly
    steady: int  # quotes published at the steady rate
    rate: float
    bursts: int
    burst: int  # quotes of each
    round_s: float
    widths: tuple[float, float] = WIDTHS  # least and largest share of the quotes in a range

    @property
    def peers(self) -> int:
        return sum(self.processes)


FULL = Size((1, 13, 13, 13), wishes=200, steady=6000, rate=200, bursts=10, burst=400, round_s=0.5)
SMALL = Size((1, 5), wishes=30, steady=100, rate=100, bursts=1, burst=100, round_s=0.2)


@frozen
class Measure:
    """A line of the report; ``aim`` is the most or the least that is hoped for, None for none."""

    name: str
    value: float
    unit: str
    aim: str = ""

    def __str__(self) -> str:
        aim = f"   (aim: {self.aim})" if self.aim else ""
        return f"{self.name:46} {self.value:>10,.4g} {self.unit}{aim}"


@define
class Stream:
    """Quotes published one after another, and what came of them."""

    quotes: Sequence[Quote]
    published: list[tuple[int, float]]  # of each its event and when it was due, Unix seconds
    acknowledged: list[float]  # seconds that took, of each; -1 where nobody did
    receipts: list[tuple[int, int, float]]  # [wish, event, when] of what subscriptions got
    before: list[dict[str, Any]]  # what the processes had used
    used: list[dict[str, Any]]

    def latencies_ms(self) -> list[float]:
        at = dict(self.published)
        return sorted(1e3 * (taken - at[event]) for _, event, taken in self.receipts)

    def reached(self, peers: int) -> int:
        """Deliveries, counting those to one peer of ``peers`` once."""
        return len({(wish % peers, event) for wish, event, _ in self.receipts})

    def total(self, name: str) -> float:
        return _grown(self.before, self.used, name)


@define(eq=False)
class Bench:
    size: Size
    peers: PeerProcesses
    wishes: Sequence[Wish]
    unexpected: Counter[str] = field(factory=Counter)  # matches missing, repeated, or false
    unanswered: int = 0  # publications that nobody acknowledged in time
    tried: set[int] = field(factory=set)  # events published before, which may come late

    def settle(self, quotes: Sequence[Quote]) -> float:
        """Subscribe, and publish until all get what they should; return how long that took."""
        shares = self.peers.shared_out([wish.expression for wish in self.wishes])
        self.peers.call_each("subscribe", [{"wishes": share} for share in shares])
        patience_s = PATIENCE_S + SETTLING_ROUNDS * self.size.round_s
        begin = time.monotonic()
        while time.monotonic() - begin < patience_s:
            stream = self._publish(quotes, [0.0] * len(quotes), SETTLING_S)
            self.tried.update(event for event, _ in stream.published)
            if not self._wrong(stream)["missing"]:
                return time.monotonic() - begin
        raise RuntimeError(f"subscriptions were not in force within {patience_s} s")

    def steady(self, quotes: Sequence[Quote]) -> Stream:
        begin = time.time() + LEAD_S
        return self._run(quotes, [begin + i / self.size.rate for i in range(len(quotes))])

    def burst(self, quotes: Sequence[Quote]) -> Stream:
        return self._run(quotes, [0.0] * len(quotes))

    def watch(self, quotes: Sequence[Quote]) -> list[Measure]:
        """Publish at the steady rate once more, and count what the events cost on their way."""
        self.peers.call("watch")
        self.steady(quotes)
        seen = [one for part in self.peers.call("take_traffic") for one in part]
        hops = sorted(n for one in seen for n, times in one["hops"] for _ in range(times))
        uninterested, received = (
            sum(one[key] for one in seen) for key in ("uninterested", "received")
        )
        return [
            Measure("traffic overhead", 100 * uninterested / received, "%"),
            Measure("hops of a delivery, mean", statistics.mean(hops), ""),
            Measure("hops of a delivery, 99th percentile", hops[len(hops) * 99 // 100], ""),
        ]

    def _run(self, quotes: Sequence[Quote], due: Sequence[float]) -> Stream:
        stream = self._publish(quotes, due, ARRIVAL_S)
        self.peers.call("rest", rounds=QUIET_ROUNDS)
        stream.receipts.extend(self._take_receipts())
        self.unexpected.update(self._wrong(stream))
        self.unanswered += sum(seconds < 0 for seconds in stream.acknowledged)
        return stream

    def _publish(self, quotes: Sequence[Quote], due: Sequence[float], patience_s: float) -> Stream:
        """Publish, and wait until as much was delivered as there are matches, or none comes."""
        shares = self.peers.shared_out([*zip(due, quotes, strict=True)])
        asked = [{"quotes": [(place, *one) for _, place, one in share]} for share in shares]
        before = self.peers.call("usage")
        answers = self.peers.call_each("publish", asked)
        in_order = sorted(
            (number, *answer)
            for share, done in zip(shares, answers, strict=True)
            for (number, _, _), answer in zip(share, done, strict=True)
        )
        published = [(event, due[number] or told) for number, event, told, _ in in_order]
        acknowledged = [seconds for _, _, _, seconds in in_order]
        counts = [
            sum(wish.wants(quote) for _, _, wish in share for quote in quotes)
            for share in self.peers.shared_out(self.wishes)
        ]
        waits = [{"count": count, "patience_s": patience_s} for count in counts]
        self.peers.call_each("wait_for", waits)
        used = self.peers.call("usage")
        return Stream(quotes, published, acknowledged, self._take_receipts(), before, used)

    def _take_receipts(self) -> list[tuple[int, int, float]]:
        """What subscriptions got since the last time, but for what was only tried."""
        taken = [tuple(one) for part in self.peers.call("take_receipts") for one in part]
        return [one for one in taken if one[1] not in self.tried]

    def _wrong(self, stream: Stream) -> Counter[str]:
        """How many deliveries were missing, repeated, or of what was not wanted."""
        place = {event: i for i, (event, _) in enumerate(stream.published)}
        due = {
            (number, i)
            for number, wish in enumerate(self.wishes)
            for i, quote in enumerate(stream.quotes)
            if wish.wants(quote)
        }
        got = Counter((wish, place.get(event, -1)) for wish, event, _ in stream.receipts)
        return +Counter(
            {
                "missing": len(due - got.keys()),
                "false": len(got.keys() - due),
                "repeated": got.total() - len(got),
            }
        )


def measure_start(folder: Path) -> list[Measure]:
    """What it takes to start a node alone, and what it holds then: medians of several starts.

    Modules are compiled before, as they are after the first start of what a user has installed.
    """
    folder.mkdir()
    with patch.dict(os.environ, {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        shell = Shell(folder, forks=False)
        _, *imports = [_import_client() for _ in range(1 + STARTS)]
    shell.ok("node", "init", "one")
    _, *starts = [_start_once(shell) for _ in range(1 + STARTS)]
    seconds, used, resident, unshared = map(statistics.median, zip(*starts, strict=True))
    return [
        Measure("importing the client, processor time", statistics.median(imports), "s", "0.15 s"),
        Measure("a process from start to ready", seconds, "s", "0.5 s"),
        Measure("processor time of that", used, "s"),
        Measure("memory of that process, alone", resident / 1e6, "MB"),
        Measure("memory of a node alone, not shared", unshared / 1e6, "MB"),
    ]


def _import_client() -> float:
    """Processor seconds in which a program imports what it needs to use a node."""
    probe = "import time; began = time.process_time(); "
    probe += "from gossamer.client import connect, open_client; print(time.process_time() - began)"
    return float(subprocess.check_output([sys.executable, "-c", probe], text=True))


def _start_once(shell: Shell) -> tuple[float, float, int, int]:
    """Seconds and processor seconds until a node is ready, bytes resident and not shared."""
    begin = time.monotonic()
    chosen = ("listen.addresses", "listen.join_addresses", "page.address")
    ports = [part for name in chosen for part in ("--set", f"{name}=127.0.0.1:0")]
    with shell.node("one", *ports) as process:
        seconds = time.monotonic() - begin
        found = psutil.Process(process.pid)
        used, memory = found.cpu_times(), found.memory_full_info()
    return seconds, used.user + used.system, memory.rss, memory.uss


def measure(size: Size, folder: Path) -> tuple[list[Measure], Counter[str]]:
    quotes = make_quotes(size.steady + size.bursts * size.burst, SEED)
    with peer_processes(MadeCluster(folder / "first"), size.processes) as peers:
        begin = time.time()
        peers.open(size.round_s, {"delivery": {"event_memory": 8 * size.burst * len(SCHEMA)}})
        ready_s = max(peers.call("ready")) - begin
        bench = Bench(size, peers, make_wishes(size.wishes, quotes, SEED, size.widths))
        settled_s = bench.settle(quotes[:40])
        peers.call("become_whole")
        idle = peers.call("usage")
        peers.call("rest", rounds=10)
        rested = peers.call("usage")
        memory = [one["resident_bytes"] / 1e6 for one in rested]
        unshared = rested[0]["unshared_bytes"] / 1e6
        steady = bench.steady(quotes[: size.steady])
        rest = quotes[size.steady :]
        bursts = [bench.burst(rest[i : i + size.burst]) for i in range(0, len(rest), size.burst)]
        traffic = bench.watch(rest[:WATCHED])
    busy = max(one.used[0]["unshared_bytes"] for one in (steady, *bursts)) / 1e6
    latencies = steady.latencies_ms()
    per_cpu_s = [len(one.receipts) / one.total("cpu_s") for one in (steady, *bursts)]
    bursts_per_cpu_s = max(size.burst / one.total("cpu_s") for one in bursts)
    bursts_reached = max(one.reached(size.peers) / one.total("cpu_s") for one in bursts)
    round_ms = 1e3 * _grown(idle, rested, "cpu_s") / _grown(idle, rested, "rounds")
    reached, steady_cpu_s = steady.reached(size.peers), steady.total("cpu_s")
    further = [
        (total - memory[0]) / (one["peers"] - 1)
        for total, one in zip(memory[1:], rested[1:], strict=True)
    ]
    measures = [
        Measure("peers", size.peers, ""),
        Measure("seconds of a gossip round", size.round_s, "s"),
        Measure("all peers started and ready", ready_s, "s", "5 s"),
        Measure("subscriptions in force after", settled_s, "s"),
        Measure("publications a second", size.rate, "1/s"),
        Measure("deliveries of a publication", len(steady.receipts) / size.steady, ""),
        Measure("peers reached by a publication", reached / size.steady, ""),
        Measure("latency, median", statistics.median(latencies), "ms"),
        Measure("latency, 99th percentile", latencies[len(latencies) * 99 // 100], "ms", "15 ms"),
        Measure("acknowledged after, median", 1e3 * statistics.median(steady.acknowledged), "ms"),
        Measure("publications not acknowledged", bench.unanswered, ""),
        Measure("deliveries a processor second", per_cpu_s[0], "1/s", "20,000"),
        Measure("the same, counting a peer's once", reached / steady_cpu_s, "1/s", "10,000"),
        Measure("publications a processor second", size.steady / steady_cpu_s, "1/s"),
        Measure("bursts: deliveries a processor second", max(per_cpu_s[1:]), "1/s", "30,000"),
        Measure("bursts: counting a peer's once", bursts_reached, "1/s", "25,000"),
        Measure("bursts: publications a processor second", bursts_per_cpu_s, "1/s"),
        Measure(
            "copies sent for each peer reached", steady.total("events_forwarded") / reached, ""
        ),
        *traffic,
        Measure("processor time of a peer's gossip round", round_ms, "ms"),
        Measure("memory of a process with one peer", memory[0], "MB", "60 MB"),
        Measure("memory of that process, not shared", unshared, "MB"),
        Measure("memory of that process when busy, not shared", busy, "MB", "75 MB"),
        Measure("connections of that peer", rested[0]["connections"], ""),
        Measure("memory of each further peer", statistics.mean(further), "MB", "3 MB"),
    ]
    return [*measures, *measure_start(folder / "alone")], bench.unexpected


def _grown(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], name: str) -> float:
    return float(sum(one[name] for one in after) - sum(one[name] for one in before))


def main() -> None:
    modes = ("auto", "always", "never")
    changes: dict[str, Any] = {"round_s": float, "steady": int, "rate": float, "bursts": int}
    given = read_options(
        __doc__, small=False, compiled=modes, out=Path(), widths=[float], **changes
    )
    given.widths = tuple(given.widths)
    changed = {name: value for name in (*changes, "widths") if (value := getattr(given, name))}
    size = evolve(SMALL if given.small else FULL, **changed)
    os.environ["GOSSAMER_TEST_COMPILED"] = given.compiled
    with tempfile.TemporaryDirectory() as folder:
        measures, unexpected = measure(size, Path(folder))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(*measures, sep="\n")
    rows = [
        {"name": f"node: {one.name}", "size": size.peers, "value": one.value, "unit": one.unit}
        for one in measures
    ]
    given.out.mkdir(parents=True, exist_ok=True)
    write_rows(given.out / "bench.json", rows)
    if unexpected:
        sys.exit(f"deliveries were wrong: {dict(unexpected)}")
    print("every match was delivered once, and nothing else")


if __name__ == "__main__":
    main()
