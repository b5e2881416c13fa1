"""The controlled scenario of both pruning papers: a storm of unsubscriptions (Sec. V-A, V-B).

Subscriptions are issued one after another; then publishers publish at a steady rate, and after a
while a number of root subscriptions is taken back, each of which brings up the subscriptions that
it covered. What is measured is what the papers plot: delays, input queues of the core brokers,
triggered messages, routing tables, false positives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.broker import Broker, BrokerSettings
from gossamer.protocol.broker.effects import Deliver, Moved, Refuse
from gossamer.protocol.broker.index import NewIndex, SharedIndex
from gossamer.protocol.broker.messages import Advertise, Attach, Publish, Subscribe, Unsubscribe
from gossamer.protocol.content.filters import parse
from gossamer.sim.brokers.engine import BrokerNetwork, Links
from gossamer.sim.brokers.service import ServiceTimes
from gossamer.sim.brokers.staircase import Staircase, Wanted
from gossamer.sim.brokers.topology import BrokerOverlay
from gossamer.sim.errors import SimulationError

SECOND: Final = 1_000_000
# Every publication carries its number, by which its deliveries are known.
NUMBER: Final = "number"
_OFFER: Final = parse("x >= 0 and present(y) and number >= 0")

Progress = Callable[[int, int], None]


@attrs.frozen(kw_only=True)
class Storm:
    """What is to happen; all times are microseconds.

    Attributes:
        overlay, workload: who is where, and what is wanted. One client a broker subscribes.
        settings: of all brokers.
        service, links: what messages cost.
        unsubscriptions: how many roots are taken back.
        subscribe_every, unsubscribe_every, publish_every: time between two; the defaults are those
            of the selective paper.
        calm: for how long there are publications before the first unsubscription.
        aftermath: for how long there are some from it on.
        reach: roots that a publication matches, about.
        sample_every: time between two looks at the queues.
        seed: of who subscribes where.
    """

    overlay: BrokerOverlay
    workload: Staircase
    settings: BrokerSettings
    service: ServiceTimes
    links: Links = attrs.field(factory=Links)
    unsubscriptions: int = 300
    subscribe_every: int = 1_500_000
    unsubscribe_every: int = 500_000
    publish_every: int = 400_000
    calm: int = 600 * SECOND
    aftermath: int = 3_600 * SECOND
    reach: float = 3.0
    sample_every: int = SECOND
    seed: int = 1


@attrs.frozen(eq=False)
class StormResult:
    """What came of it.

    Attributes:
        published: int64[m], when each publication was due, from the first unsubscription on.
        deliveries: int64[d, 2], publication and delay in microseconds of each delivery.
        receivers: list of length d, the broker of each delivery.
        queues: int64[samples, core], input queues of the core brokers.
        triggered: by core broker, subscriptions and unsubscriptions received since the first
            unsubscription that nobody asked for.
        tables: by core broker, routing table entries at the end.
        false_positives: publications that reached a broker where nobody wanted them, since then.
        publications: publications that brokers sent each other, since then.
    """

    published: npt.NDArray[np.int64]
    deliveries: npt.NDArray[np.int64]
    receivers: list[str]
    queues: npt.NDArray[np.int64]
    triggered: dict[str, int]
    tables: dict[str, int]
    false_positives: int
    publications: int


@attrs.define
class _Ledger:
    """The observer: deliveries, as publication, time and broker."""

    rows: list[tuple[int, int, str]] = attrs.field(factory=list)

    def delivered(self, now: int, broker: str, effect: Deliver) -> None:
        number = effect.publication.values[NUMBER]
        assert isinstance(number, int)
        self.rows.append((number, now, broker))

    def refused(self, now: int, broker: str, effect: Refuse) -> None:
        raise SimulationError(f"broker {broker} refused a message at {now}: {effect.error}")

    def moved(self, now: int, broker: str, effect: Moved) -> None:  # noqa: ARG002
        raise SimulationError(f"broker {broker} moved a client, expected that nobody moves")


class _Run:
    def __init__(self, storm: Storm, new_index: NewIndex) -> None:
        self.storm = storm
        self.brokers = {
            name: Broker(name, storm.settings, new_index=new_index) for name in storm.overlay.graph
        }
        self.ledger = _Ledger()
        self.network = BrokerNetwork(
            storm.overlay.graph, self.brokers, storm.service, storm.links, self.ledger
        )
        self.due: list[int] = []

    def client(self, broker: str) -> str:
        return f"client of {broker}"

    def attach(self) -> None:
        overlay = self.storm.overlay
        for host in dict.fromkeys((*overlay.publisher_hosts, *overlay.subscriber_hosts)):
            self.network.send(0, self.client(host), host, Attach())
        for host in overlay.publisher_hosts:
            self.network.send(SECOND, self.client(host), host, Advertise("everything", _OFFER))
        self.network.run(10 * SECOND)

    def subscribe(self, progress: Progress) -> list[tuple[str, Wanted]]:
        storm, hosts = self.storm, self.storm.overlay.subscriber_hosts
        draws = np.random.Generator(np.random.Philox(key=[storm.seed, 2]))
        wanted = list(storm.workload.subscriptions())
        homes = draws.integers(0, len(hosts), len(wanted))
        placed = [(hosts[int(home)], one) for home, one in zip(homes, wanted, strict=True)]
        for done, (host, one) in enumerate(placed):
            asked = Subscribe(one.label, one.filter)
            self.network.send(self.network.now, self.client(host), host, asked)
            self.network.run(self.network.now + storm.subscribe_every)
            progress(done + 1, len(placed))
        self.network.run(self.network.now + 100 * SECOND)
        return placed

    def publish_for(self, span: int) -> None:
        storm, hosts = self.storm, self.storm.overlay.publisher_hosts
        for at in range(self.network.now, self.network.now + span, storm.publish_every):
            number = len(self.due)
            self.due.append(at)
            values = storm.workload.publication(number, storm.reach) | {NUMBER: number}
            host = hosts[number % len(hosts)]
            self.network.send(at, self.client(host), host, Publish(values))

    def unsubscribe(self, placed: list[tuple[str, Wanted]]) -> None:
        roots = [(host, one) for host, one in placed if one.is_root]
        at = self.network.now
        for host, one in roots[: self.storm.unsubscriptions]:
            self.network.send(at, self.client(host), host, Unsubscribe(one.label))
            at += self.storm.unsubscribe_every

    def watch(self, span: int) -> npt.NDArray[np.int64]:
        core, end = self.storm.overlay.core, self.network.now + span
        samples = []
        while self.network.now < end:
            self.network.run(self.network.now + self.storm.sample_every)
            samples.append([self.network.queue(name) for name in core])
        return np.array(samples, np.int64).reshape(-1, len(core))

    def triggered(self) -> dict[str, int]:
        counters = {name: self.brokers[name].counters for name in self.storm.overlay.core}
        return {name: sum(found.triggered_received.values()) for name, found in counters.items()}

    def false_positives(self) -> int:
        return sum(broker.counters.false_positives for broker in self.brokers.values())

    def publications(self) -> int:
        return sum(one.counters.sent.get("Publication", 0) for one in self.brokers.values())


def run_storm(
    storm: Storm,
    *,
    new_index: NewIndex = SharedIndex,
    progress: Progress = lambda _done, _all: None,
) -> StormResult:
    """Let a storm happen.

    Args:
        storm: what is to happen.
        new_index: of filters; `compiled_index` for large workloads.
        progress: called with the subscriptions issued so far and all of them.

    Raises:
        SimulationError: a broker refused what a client asked for.
    """
    run = _Run(storm, new_index)
    run.attach()
    placed = run.subscribe(progress)
    run.publish_for(storm.calm)
    run.network.run(run.network.now + storm.calm)
    before = run.triggered(), run.false_positives(), run.publications()
    first, begin = len(run.due), run.network.now
    run.unsubscribe(placed)
    run.publish_for(storm.aftermath)
    queues = run.watch(storm.aftermath)
    rows = [row for row in run.ledger.rows if row[0] >= first]
    return StormResult(
        published=np.array(run.due[first:], np.int64) - begin,
        deliveries=np.array(
            [(number - first, now - run.due[number]) for number, now, _ in rows], np.int64
        ).reshape(-1, 2),
        receivers=[broker for _, _, broker in rows],
        queues=queues,
        triggered={name: count - before[0][name] for name, count in run.triggered().items()},
        tables={name: run.brokers[name].sizes().subscriptions for name in storm.overlay.core},
        false_positives=run.false_positives() - before[1],
        publications=run.publications() - before[2],
    )
