"""The controlled scenario of both pruning papers: a burst of unsubscriptions (Sec. V-A, V-B).

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

from gossamer.protocol.brokers.core.broker import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.messages import (
    Advertise,
    Attach,
    Publish,
    Subscribe,
    Unsubscribe,
)
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.content.filters import parse, to_text
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.tree_brokers.covering_workload import (
    ANYWHERE,
    CoveringWorkload,
    Wanted,
    placed,
)
from gossamer.sim.studies.tree_brokers.overlay_engine import BrokerNetwork, Links, Observer
from gossamer.sim.studies.tree_brokers.service_times import ServiceTimes
from gossamer.sim.studies.tree_brokers.topology import BrokerOverlay
from gossamer.sim.study.draws import rows_from, shuffled

SECOND: Final = 1_000_000
# Every publication carries its number, by which its deliveries are known.
NUMBER: Final = "number"
_OFFER: Final = parse("x >= 0 and present(y) and number >= 0")
# The seed's stream of which roots are taken back.
_TAKEN_BACK: Final = 283

Progress = Callable[[int, int], None]


@attrs.frozen(kw_only=True)
class UnsubscriptionBurst:
    """What is to happen; all times are microseconds.

    Attributes:
        overlay, workload: who is where, and what is wanted. One client a broker subscribes.
        settings: of all brokers.
        service, links: what messages cost.
        unsubscriptions: how many roots are taken back, random ones.
        subscribe_every, unsubscribe_every, publish_every: time between two; the defaults are those
            of the selective paper.
        calm: for how long there are publications before the first unsubscription.
        aftermath: for how long there are some from it on.
        drain: for how long at most the run goes on afterwards, until no message waits anywhere.
        reach: roots that a publication matches, about.
        placement: where clients are, one of `placement.PLACEMENTS`.
        sample_every: time between two looks at the queues.
        seed: of who subscribes where, and of which roots are taken back.
    """

    overlay: BrokerOverlay
    workload: CoveringWorkload
    settings: TreeSettings
    service: ServiceTimes
    links: Links = attrs.field(factory=Links)
    unsubscriptions: int = 300
    subscribe_every: int = 1_500_000
    unsubscribe_every: int = 500_000
    publish_every: int = 400_000
    calm: int = 600 * SECOND
    aftermath: int = 3_600 * SECOND
    drain: int = 0
    reach: float = 3.0
    placement: str = ANYWHERE
    sample_every: int = SECOND
    seed: int = 1


@attrs.frozen
class Tally:
    """What a broker did from the first unsubscription on, and its table at the end.

    Attributes:
        triggered: subscriptions and unsubscriptions received that nobody asked for; a pack is one.
        triggered_onward: subscriptions sent on that nobody asked for, see
            `Counters.triggered_onward`.
        handled: messages taken from clients and neighbours.
        arrived: publications that neighbours sent.
        false_positives: those of them that nobody here wanted.
        publications: publications sent to neighbours.
        table: routing table entries at the end.
        kept: subscriptions that links keep for nobody at the end.
    """

    triggered: int
    triggered_onward: int
    handled: int
    arrived: int
    false_positives: int
    publications: int
    table: int
    kept: int

    def since(self, before: Tally) -> Tally:
        """What was added to an earlier tally; sizes are as they are now."""
        counts = {
            name: getattr(self, name) - getattr(before, name)
            for name in attrs.fields_dict(Tally)
            if name not in ("table", "kept")
        }
        return attrs.evolve(self, **counts)


@attrs.frozen
class Kept:
    """A subscription that a link keeps for nobody, at the end.

    Attributes:
        broker, neighbour: the link, from the broker that keeps it to where it stands.
        filter: the subscription, in gossamer's language.
        arrivals: publications that it brought.
        false_positives: those of them that nobody wanted.
    """

    broker: str
    neighbour: str
    filter: str
    arrivals: int
    false_positives: int


@attrs.frozen(eq=False)
class BurstResult:
    """What came of it.

    Attributes:
        published: int64[m], when each publication was due, from the first unsubscription on.
        deliveries: int64[d, 2], publication and delay in microseconds of each delivery.
        receivers: list of length d, the broker of each delivery.
        queues: int64[samples, core], input queues of the core brokers.
        core: the core brokers, in order.
        tallies: of every broker.
        kept: what links keep for nobody.
    """

    published: npt.NDArray[np.int64]
    deliveries: npt.NDArray[np.int64]
    receivers: list[str]
    queues: npt.NDArray[np.int64]
    core: tuple[str, ...]
    tallies: dict[str, Tally]
    kept: list[Kept]

    @property
    def triggered(self) -> dict[str, int]:
        """Triggered messages by core broker."""
        return {name: self.tallies[name].triggered for name in self.core}

    @property
    def tables(self) -> dict[str, int]:
        """Routing table entries at the end, by core broker."""
        return {name: self.tallies[name].table for name in self.core}

    @property
    def false_positives(self) -> int:
        """Publications that reached a broker where nobody wanted them."""
        return sum(tally.false_positives for tally in self.tallies.values())

    @property
    def publications(self) -> int:
        """Publications that brokers sent each other."""
        return sum(tally.publications for tally in self.tallies.values())


@attrs.define
class _Ledger(Observer):
    """The observer: deliveries, as publication, time and broker."""

    rows: list[tuple[int, int, str]] = attrs.field(factory=list)

    def delivered(self, now: int, broker: str, effect: Deliver) -> None:
        number = effect.publication.values[NUMBER]
        assert isinstance(number, int)
        self.rows.append((number, now, broker))


class BurstRun:
    """An overlay with its subscriptions issued, about to be hit by a burst once.

    Args:
        burst: what is to happen.
        new_index: of filters; `compiled_index` for large workloads.
        progress: called with the subscriptions issued so far and all of them.

    Attributes:
        placed: host and subscription in the order of their issuing.

    Raises:
        SimulationError: a broker refused what a client asked for.
    """

    def __init__(
        self,
        burst: UnsubscriptionBurst,
        *,
        new_index: NewIndex = SharedIndex,
        progress: Progress = lambda _done, _all: None,
    ) -> None:
        self.burst = burst
        self.brokers = {
            name: TreeBroker(name, burst.settings, new_index=new_index)
            for name in burst.overlay.graph
        }
        self.ledger = _Ledger()
        self.network = BrokerNetwork(
            burst.overlay.graph, self.brokers, burst.service, burst.links, self.ledger
        )
        self.due: list[int] = []
        wanted = list(burst.workload.subscriptions())
        hosts = placed(burst.placement, burst.overlay, wanted, burst.seed)
        self.placed = list(zip(hosts, wanted, strict=True))
        self._attach()
        self._subscribe(progress)

    def change(self, burst: UnsubscriptionBurst) -> None:
        """Let another burst hit what stands: one that differs from here on only.

        Raises:
            SimulationError: the subscriptions would stand differently under it.
        """
        before = attrs.evolve(
            self.burst,
            settings=burst.settings,
            service=burst.service,
            unsubscriptions=burst.unsubscriptions,
            unsubscribe_every=burst.unsubscribe_every,
            calm=burst.calm,
            aftermath=burst.aftermath,
            drain=burst.drain,
        )
        if before != burst:
            raise SimulationError("a burst with other subscriptions cannot share their issuing")
        for broker in self.brokers.values():
            broker.configure(burst.settings)
        self.network.service = burst.service
        self.burst = burst

    def hit(self, progress: Progress = lambda _done, _all: None) -> BurstResult:
        """Let the burst happen.

        Args:
            progress: called with the samples taken so far and those of the aftermath.
        """
        burst = self.burst
        self._publish_for(burst.calm)
        self.network.run(self.network.now + burst.calm)
        before = self._tallies()
        first, begin = len(self.due), self.network.now
        self._unsubscribe()
        self._publish_for(burst.aftermath)
        queues = self._watch(progress)
        rows = [row for row in self.ledger.rows if row[0] >= first]
        return BurstResult(
            published=np.array(self.due[first:], np.int64) - begin,
            deliveries=np.array(
                [(number - first, now - self.due[number]) for number, now, _ in rows], np.int64
            ).reshape(-1, 2),
            receivers=[broker for _, _, broker in rows],
            queues=queues,
            core=burst.overlay.core,
            tallies={name: tally.since(before[name]) for name, tally in self._tallies().items()},
            kept=self._kept(),
        )

    # How it happens.

    def _attach(self) -> None:
        overlay = self.burst.overlay
        others = sorted({host for host, _ in self.placed})
        for host in dict.fromkeys((*overlay.publisher_hosts, *overlay.subscriber_hosts, *others)):
            self.network.send(0, _client(host), host, Attach())
        for host in overlay.publisher_hosts:
            self.network.send(SECOND, _client(host), host, Advertise("everything", _OFFER))
        self.network.run(10 * SECOND)

    def _subscribe(self, progress: Progress) -> None:
        for done, (host, one) in enumerate(self.placed):
            asked = Subscribe(one.label, one.filter)
            self.network.send(self.network.now, _client(host), host, asked)
            self.network.run(self.network.now + self.burst.subscribe_every)
            progress(done + 1, len(self.placed))
        self.network.run(self.network.now + 100 * SECOND)

    def _publish_for(self, span: int) -> None:
        burst, hosts = self.burst, self.burst.overlay.publisher_hosts
        for at in range(self.network.now, self.network.now + span, burst.publish_every):
            number = len(self.due)
            self.due.append(at)
            values = burst.workload.publication(number, burst.reach) | {NUMBER: number}
            host = hosts[number % len(hosts)]
            self.network.send(at, _client(host), host, Publish(values))

    def taken_back(self) -> list[tuple[str, Wanted]]:
        """Hosts and roots in the order in which the burst takes them back.

        Random ones: a root that was issued early has quenched more of what it covers than one that
        came late, so that neither may be preferred. A smaller burst of a seed takes back the first
        of a larger one.
        """
        roots = [(host, one) for host, one in self.placed if one.is_root]
        number = min(self.burst.unsubscriptions, len(roots))
        drawn = shuffled(self.burst.seed, _TAKEN_BACK, rows_from(0, number), len(roots))
        return [roots[place] for place in drawn.tolist()]

    def _unsubscribe(self) -> None:
        at = self.network.now
        for host, one in self.taken_back():
            self.network.send(at, _client(host), host, Unsubscribe(one.label))
            at += self.burst.unsubscribe_every

    def _watch(self, progress: Progress) -> npt.NDArray[np.int64]:
        """int64[samples, core]: the core's queues until nothing more is to be seen."""
        burst = self.burst
        end = self.network.now + burst.aftermath
        last = end + burst.drain
        samples, expected = [], -(-burst.aftermath // burst.sample_every)
        while self.network.now < end or (self.network.now < last and self._waiting()):
            self.network.run(self.network.now + burst.sample_every)
            samples.append([self.network.queue(name) for name in burst.overlay.core])
            progress(min(len(samples), expected), expected)
        return np.array(samples, np.int64).reshape(-1, len(burst.overlay.core))

    def _waiting(self) -> bool:
        return any(self.network.queue(name) for name in self.brokers)

    def _tallies(self) -> dict[str, Tally]:
        return {name: self._tally(name) for name in self.brokers}

    def _tally(self, name: str) -> Tally:
        counters, sizes = self.brokers[name].counters, self.brokers[name].sizes()
        return Tally(
            triggered=sum(counters.triggered_received.values()),
            triggered_onward=counters.triggered_onward,
            handled=self.network.handled(name),
            arrived=counters.received.get("Publication", 0),
            false_positives=counters.false_positives,
            publications=counters.sent.get("Publication", 0),
            table=sizes.subscriptions,
            kept=sizes.preserved,
        )

    def _kept(self) -> list[Kept]:
        return [
            Kept(name, other, to_text(one.filter), one.arrivals, one.false_positives)
            for name, broker in self.brokers.items()
            for other, aggregates in broker.aggregates().items()
            for one in aggregates
        ]


def run_burst(
    burst: UnsubscriptionBurst,
    *,
    new_index: NewIndex = SharedIndex,
    progress: Progress = lambda _done, _all: None,
) -> BurstResult:
    """Let a burst happen; see `BurstRun`."""
    return BurstRun(burst, new_index=new_index, progress=progress).hit()


def _client(broker: str) -> str:
    return f"client of {broker}"
