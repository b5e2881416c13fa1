"""Table II of the incremental paper with our own code, and when its bursts come back.

Run it by hand: ``python tests/bench/bench_table2.py [--bursts] [--out bench.json]``. The 49 brokers
of the controlled scenario (Sec. V-A) get 42,000 subscriptions, 20 of which cover 2,099 others each,
and then publications, under active covering, lazy covering and none. Given is processor time a
message, from frame to effects, at the core broker E, which all publications pass, and as a mean
over all brokers. *Covering* is the time in questions about what was sent; *matching* is the rest of
what a subscription costs. ``--bursts`` then runs the burst of Sec. V-A2 under a simulated clock
with the times measured, and some factors faster and slower, until queues grow.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import Row, print_table, read_options, timed, write_rows
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core import messages as asked
from gossamer.protocol.brokers.core.broker import compiled_index
from gossamer.protocol.brokers.core.effects import Send
from gossamer.protocol.brokers.core.messages import Hop, client, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree import messages as sent
from gossamer.protocol.brokers.tree.state import Sent
from gossamer.protocol.brokers.tree.tables import SubscriptionTable
from gossamer.protocol.content.filters import parse
from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.studies.tree_brokers import unsubscription_burst as bursts
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.studies.tree_brokers.service_times import FixedTimes
from gossamer.sim.studies.tree_brokers.topology import controlled_49

ROOTS, DEGREE, UNSUBSCRIPTIONS, REACH = 20, 2_099, 5, 2.0
KINDS = ("matching", "covering", "unsubscription", "publication")
KINDS_OF = {
    **dict.fromkeys((asked.Subscribe, sent.Subscription), "matching"),
    **dict.fromkeys((asked.Unsubscribe, sent.Unsubscription), "unsubscription"),
    **dict.fromkeys((asked.Publish, sent.Publication), "publication"),
}
# By covering the paper's milliseconds a message, in the order of `KINDS`.
PAPER = {
    "active": (0.81, 12.0, 1.4, 3.0),
    "lazy": (1.6, 27.0, 0.0, 6.2),
    "off": (1.6, 0.0, 0.0, 7.9),
}
FACTORS = (0.1, 0.3, 1, 3, 10)  # slower than measured


class Pump:
    """Brokers on an overlay that take messages in turn, and what each kind takes each of them."""

    def __init__(self, covering: str) -> None:
        self.overlay = controlled_49()
        settings = TreeSettings(covering=covering)
        self.brokers = {
            name: TreeBroker(name, settings, new_index=compiled_index)
            for name in self.overlay.graph
        }
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)
        self.messages: Counter[tuple[str, str]] = Counter()
        self.covering_s = 0.0
        self.waiting: deque[tuple[str, Hop | None, sent.Message]] = deque()
        for name, other in self.overlay.graph.edges:
            self.take(name, None, asked.NeighbourUp(other))
            self.take(other, None, asked.NeighbourUp(name))

    def take(self, broker: str, source: Hop | None, message: sent.Message) -> None:
        self.waiting.append((broker, source, message))
        while self.waiting:
            self._step(*self.waiting.popleft())

    def _step(self, name: str, source: Hop | None, message: sent.Message) -> None:
        self.covering_s = 0.0
        took, effects = timed(partial(self.brokers[name].handle, 0, source, message))
        content = message.message if isinstance(message, sent.Frame) else message
        if kind := KINDS_OF.get(type(content)):
            self.messages[name, kind] += 1
            self.seconds[name, kind] += took - self.covering_s
            if kind == "matching":
                self.seconds[name, "covering"] += self.covering_s
        for effect in effects:
            if isinstance(effect, Send):
                self.waiting.append((effect.neighbour, neighbour(name), effect.message))

    @contextmanager
    def timed_covering(self) -> Iterator[None]:
        """Count the time in questions about what was sent."""

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **named: Any) -> Any:
                spent, found = timed(partial(function, *args, **named))
                self.covering_s += spent
                return found

            return call

        with (
            patch.object(Sent, "coverer", counted(Sent.coverer)),
            patch.object(Sent, "covered_by", counted(Sent.covered_by)),
            patch.object(SubscriptionTable, "is_covered", counted(SubscriptionTable.is_covered)),
        ):
            yield


def measure(covering: str, publications: int) -> Pump:
    """Load an overlay, publish to it, and take some of the covering subscriptions back."""
    pump = Pump(covering)
    workload = CoveringWorkload(ROOTS, DEGREE)
    publishers, subscribers = pump.overlay.publisher_hosts, pump.overlay.subscriber_hosts
    for host in dict.fromkeys((*publishers, *subscribers)):
        pump.take(host, client("c"), asked.Attach())
    for host in publishers:
        pump.take(host, client("c"), asked.Advertise("all", parse("x >= 0 and present(y)")))
    draws = np.random.Generator(np.random.Philox(key=[1, 2]))
    wanted = list(workload.subscriptions())
    homes = [subscribers[int(home)] for home in draws.integers(0, len(subscribers), len(wanted))]
    gc.disable()  # else every broker pays for looking through the memory of all 49
    with pump.timed_covering():
        for host, one in zip(homes, wanted, strict=True):
            pump.take(host, client("c"), asked.Subscribe(one.label, one.filter))
        for number in range(publications):
            values = workload.publication(number, REACH)
            pump.take(publishers[number % len(publishers)], client("c"), asked.Publish(values))
        roots = [(host, one) for host, one in zip(homes, wanted, strict=True) if one.is_root]
        for host, one in roots[:UNSUBSCRIPTIONS]:
            pump.take(host, client("c"), asked.Unsubscribe(one.label))
    gc.enable()
    return pump


def row(pump: Pump, covering: str, brokers: list[str], where: str) -> Row:
    seconds = {kind: sum(pump.seconds[name, kind] for name in brokers) for kind in KINDS}
    messages = {kind: sum(pump.messages[name, kind] for name in brokers) for kind in KINDS}
    each = messages | {"covering": messages["matching"]}
    return {
        "name": f"Table II, {covering}, {where}",
        "covering": covering,
        "where": where,
        "us": {kind: 1e6 * seconds[kind] / max(each[kind], 1) for kind in KINDS},
        "messages": messages,
        "machine": machine(),
    }


def print_conclusions(ours: Mapping[str, Mapping[str, float]]) -> None:
    """What the paper concludes from the table, and whether that holds here."""
    matching, covering = ours["active"]["matching"], ours["active"]["covering"]
    print(f"covering costs {covering / matching:.1f} times what matching does (paper: 15)")
    print(f"lazy covering costs {ours['lazy']['covering'] / covering:.1f} of active (paper: 2.3)")
    share = ours["active"]["publication"] / ours["off"]["publication"]
    print(f"active publishes in {share:.2f} of the time without covering (paper: 0.38)")


def burst(covering: str, us: Mapping[str, float], factor: float) -> Row:
    """The longest core queue and the longest delay of a burst: 5 unsubscriptions, one every 0.5 s,
    and a publication every 10 ms, which take some times the microseconds measured."""
    service = FixedTimes(
        subscription=round(factor * (us["matching"] + us["covering"])),
        unsubscription=round(factor * us["unsubscription"]),
        publication=round(factor * us["publication"]),
    )
    planned = bursts.UnsubscriptionBurst(
        overlay=controlled_49(),
        workload=CoveringWorkload(UNSUBSCRIPTIONS, DEGREE),
        settings=TreeSettings(covering=covering),
        service=service,
        unsubscriptions=UNSUBSCRIPTIONS,
        publish_every=bursts.SECOND // 100,
        calm=2 * bursts.SECOND,
        aftermath=10 * bursts.SECOND,
        reach=REACH,
        sample_every=bursts.SECOND // 20,
    )
    result = bursts.run_burst(planned, new_index=compiled_index)
    return {
        "covering": covering,
        "triggered": DEGREE,
        "subscription_us": service.subscription,
        "longest_queue": int(result.queues.max()),
        "queue_at_the_end": int(result.queues[-1].max()),
        "longest_delay_s": float(result.deliveries[:, 1].max()) / bursts.SECOND,
        "triggered_messages": sum(result.triggered.values()),
    }


def main() -> None:
    chosen = read_options(__doc__, publications=1_000, bursts=False, out=Path)
    keep_compiled_code()
    rows = []
    for covering in PAPER:
        pump = measure(covering, chosen.publications)
        rows += [row(pump, covering, ["E"], "E"), row(pump, covering, list(pump.brokers), "all")]
    shown: list[Sequence[object]] = [
        (one["name"], *one["us"].values(), sum(one["messages"].values())) for one in rows
    ]
    shown += [(f"paper, {name}", *(1000 * ms for ms in times), "") for name, times in PAPER.items()]
    print_table(("microseconds a message", *KINDS, "messages"), shown)
    ours = {one["covering"]: one["us"] for one in rows if one["where"] == "E"}
    print_conclusions(ours)
    found = []
    for factor in FACTORS if chosen.bursts else ():
        for covering in ("active", "incremental"):
            found.append(burst(covering, ours["active"], factor))
            print(found[-1], flush=True)
    write_rows(chosen.out, rows + found)


if __name__ == "__main__":
    main()
