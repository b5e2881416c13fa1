"""A scene: clients that subscribe, leave, move and publish; run and measured.

All clients of a broker are one to it, whose subscriptions have labels. A subscriber that moves is
"unsubscribed and resubscribed at different brokers" (selective paper, Sec. V-F).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

import attrs
import numpy as np

from gossamer.protocol.brokers.core.broker import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.messages import (
    Advertise,
    Attach,
    FromClient,
    Publish,
    Subscribe,
)
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.messages import Message
from gossamer.protocol.content.filters import Filter
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers.overlay_engine import BrokerNetwork, Links, Observer
from gossamer.sim.studies.tree_brokers.service_times import FixedTimes, ServiceTimes
from gossamer.sim.studies.tree_brokers.topology import BrokerOverlay
from gossamer.sim.study.draws import Int64s

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
# Every publication carries its number, by which its deliveries are known.
NUMBER: Final = "number"


class Placed(NamedTuple):
    """A filter that the clients of a broker ask for, or announce, under a label."""

    broker: str
    label: str
    filter: Filter


class Step(NamedTuple):
    """Something that the clients of a broker do, at a time in microseconds of the scene."""

    at: int
    broker: str
    message: FromClient


class Workload(Protocol):
    """Who asks for what, and what happens; the same whenever it is asked for."""

    @property
    def overlay(self) -> BrokerOverlay:
        """Who is linked to whom."""

    def advertisements(self) -> Iterable[Placed]:
        """What publishers announce, `NUMBER` included."""

    def standing(self) -> Iterable[Placed]:
        """What is subscribed before the scene begins, in that order."""

    def steps(self, span: int) -> Iterator[Step]:
        """What happens within ``span`` microseconds, in the order of time.

        Publications carry their number, which counts from 0.
        """


@attrs.frozen(kw_only=True)
class Scene:
    """What is to happen; all times are microseconds.

    Attributes:
        workload: who asks for what, and when.
        settings: of all brokers.
        service: what messages cost from the beginning of the scene on; before, they cost nothing.
        links: what links do.
        warm_up: for how long nothing is measured.
        span: for how long after that.
        drain: for how long deliveries are waited for when nothing is done any more.
        sample_every: time between two looks at queues and tables.
    """

    workload: Workload
    settings: TreeSettings
    service: ServiceTimes
    links: Links = attrs.field(factory=Links)
    warm_up: int = 0
    span: int = 60 * MINUTE
    drain: int = 0
    sample_every: int = SECOND

    def __attrs_post_init__(self) -> None:
        for name, least in (("warm_up", 0), ("span", 1), ("drain", 0), ("sample_every", 1)):
            value = getattr(self, name)
            if value < least:
                raise ScenarioError(None, f"scene.{name}", value, f"at least {least}")


def publishes(at: int, broker: str, number: int, values: Mapping[str, object]) -> Step:
    """A publisher at a broker publishes values."""
    return Step(at, broker, Publish({**values, NUMBER: number}))


def standing_for(service: FixedTimes, publications: int) -> FixedTimes:
    """Service times where each publication stands for several, so that brokers are as busy.

    A run with one publication in ten, each of which takes ten times as long, has the same load and
    a tenth of the events; delays are known to within the service time of one.
    """
    return attrs.evolve(service, publication=service.publication * publications)


# Runs a scene and measures what the papers plot: delays, queues, tables, what is triggered.


# Before the scene begins messages cost nothing, and each settles before the next.
_FREE: Final = FixedTimes(subscription=0, unsubscription=0, publication=0)
_SPACING: Final = SECOND
_ROW: Final = 4

Progress = Callable[[int, int], None]
Witness = Callable[[int, str, Deliver], None]


@attrs.frozen(eq=False)
class Performance:
    """What came of a scene; times are microseconds from the end of its warm-up.

    Attributes:
        brokers: names, in the order of columns.
        published: int64[m], when each publication was due; negative while warming up.
        deliveries: int64[d, 4]: publication, delay, broker, and subscriptions that it matched
            there, of publications that were due after the warm-up.
        times: int64[samples], when queues and tables were looked at.
        queues, tables: int64[samples, brokers], messages waiting, and routing table entries.
        received: int64[brokers], publications from neighbours after the warm-up.
        false_positives: int64[brokers], those of them that nobody there wanted.
        triggered: int64[brokers], subscriptions and unsubscriptions from neighbours after the
            warm-up that nobody had asked for.
    """

    brokers: tuple[str, ...]
    published: Int64s
    deliveries: Int64s
    times: Int64s
    queues: Int64s
    tables: Int64s
    received: Int64s
    false_positives: Int64s
    triggered: Int64s


@attrs.define
class _Ledger(Observer):
    """The observer: publication, time, broker and subscriptions of every delivery, in a row."""

    places: dict[str, int]
    witness: Witness | None = None
    rows: array[int] = attrs.field(factory=lambda: array("q"))

    def delivered(self, now: int, broker: str, effect: Deliver) -> None:
        number = effect.publication.values[NUMBER]
        assert isinstance(number, int)
        self.rows.extend((number, now, self.places[broker], len(effect.labels)))
        if self.witness is not None:
            self.witness(number, broker, effect)


class Stage:
    """An overlay on which a scene can be performed, with all that stands before it begins.

    It can be pickled, so that scenes that differ only in pruning share it.

    Args:
        scene: what is to happen.
        new_index: of filters; `compiled_index` for large workloads.
        progress: called with the standing subscriptions issued so far and all of them.
    """

    def __init__(
        self,
        scene: Scene,
        *,
        new_index: NewIndex = SharedIndex,
        progress: Progress = lambda _done, _all: None,
    ) -> None:
        graph = scene.workload.overlay.graph
        self._scene = scene
        self._names = tuple(graph)
        self._brokers = {
            name: TreeBroker(name, scene.settings, new_index=new_index) for name in self._names
        }
        self._ledger = _Ledger({name: i for i, name in enumerate(self._names)})
        self._network = BrokerNetwork(graph, self._brokers, _FREE, scene.links, self._ledger)
        self._due: list[int] = []
        self._set_up(progress)

    def change(self, settings: TreeSettings) -> None:
        """Let brokers go on with other settings, under which all would stand as it does.

        Raises:
            ConfigError: it would not; some brokers may have changed.
        """
        for broker in self._brokers.values():
            broker.configure(settings)

    def perform(
        self, *, witness: Witness | None = None, progress: Progress = lambda _done, _all: None
    ) -> Performance:
        """Let the scene happen, once.

        Args:
            witness: told the number of each publication, where it was delivered, and to whom.
            progress: called with the seconds done and all of them.

        Raises:
            SimulationError: a broker refused what a client asked for.
        """
        scene, network = self._scene, self._network
        network.service = scene.service
        self._ledger.witness = witness
        self._follow(scene.workload.steps(scene.warm_up + scene.span), network.now)
        network.run(network.now + scene.warm_up)
        before, origin = self._counts(), network.now
        looks: list[tuple[list[int], list[int]]] = []
        times = range(scene.sample_every, scene.span + 1, scene.sample_every)
        for time in times:
            network.run(origin + time)
            looks.append(self._look())
            progress(time // SECOND, scene.span // SECOND)
        received, false_positives, triggered = self._counts() - before
        network.run(origin + scene.span + scene.drain)
        published = np.array(self._due, np.int64) - origin
        queues, tables = np.array(looks, np.int64).reshape(-1, 2, len(self._names)).swapaxes(0, 1)
        return Performance(
            brokers=self._names,
            published=published,
            deliveries=_delays(self._ledger.rows, published, origin),
            times=np.array(times, np.int64),
            queues=queues,
            tables=tables,
            received=received,
            false_positives=false_positives,
            triggered=triggered,
        )

    def _set_up(self, progress: Progress) -> None:
        for name in self._names:
            self._send(name, Attach())
        for broker, label, announced in self._scene.workload.advertisements():
            self._send(broker, Advertise(label, announced))
        standing = list(self._scene.workload.standing())
        for done, (broker, label, wanted) in enumerate(standing):
            self._send(broker, Subscribe(label, wanted))
            progress(done + 1, len(standing))

    def _send(self, broker: str, message: Message) -> None:
        """Let it be sent, and everything follow from it before the next."""
        self._network.send(self._network.now, _clients(broker), broker, message)
        self._network.run(self._network.now + _SPACING)

    def _follow(self, steps: Iterator[Step], origin: int) -> None:
        """Do the next step when its time comes, and then the one after it."""
        step = next(steps, None)
        if step is not None:
            self._network.call(origin + step.at, lambda: self._do(step, steps, origin))

    def _do(self, step: Step, steps: Iterator[Step], origin: int) -> None:
        if isinstance(step.message, Publish):
            self._due.append(self._network.now)
        self._network.send(self._network.now, _clients(step.broker), step.broker, step.message)
        self._follow(steps, origin)

    def _counts(self) -> Int64s:
        """int64[3, brokers]: publications received, false positives, triggered messages."""
        counters = [self._brokers[name].counters for name in self._names]
        return np.array(
            [
                [found.received.get("Publication", 0) for found in counters],
                [found.false_positives for found in counters],
                [sum(found.triggered_received.values()) for found in counters],
            ],
            np.int64,
        )

    def _look(self) -> tuple[list[int], list[int]]:
        """Queues and tables of all brokers now."""
        queues = [self._network.queue(name) for name in self._names]
        return queues, [self._brokers[name].sizes().subscriptions for name in self._names]


def _clients(broker: str) -> str:
    return f"clients of {broker}"


def _delays(rows: array[int], published: Int64s, origin: int) -> Int64s:
    """The ledger's rows of what was due after the warm-up, with delays in place of times."""
    found = np.frombuffer(rows, np.int64).reshape(-1, _ROW).copy()
    due = published[found[:, 0]]
    found[:, 1] -= due + origin
    return found[due >= 0]
