"""Runs a scene and measures what the papers plot: delays, queues, tables, what is triggered."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Final

import attrs
import numpy as np

from gossamer.protocol.broker import Broker
from gossamer.protocol.broker.counters import TableSizes
from gossamer.protocol.broker.effects import Deliver, Moved, Refuse
from gossamer.protocol.broker.index import NewIndex, SharedIndex
from gossamer.protocol.broker.messages import Advertise, Attach, Message, Publish, Subscribe
from gossamer.sim.brokers.engine import BrokerNetwork
from gossamer.sim.brokers.service import ServiceTimes
from gossamer.sim.brokers.workloads.draws import Int64s
from gossamer.sim.brokers.workloads.scene import NUMBER, SECOND, Scene, Step
from gossamer.sim.errors import SimulationError

# Between two subscriptions before the scene begins: each settles before the next.
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


@attrs.frozen
class _OnceBegun:
    """Service times that are nothing before the scene begins."""

    service: ServiceTimes
    begun: list[bool]

    def of(self, message: Message, sizes: Callable[[], TableSizes], wall_s: float) -> int:
        return self.service.of(message, sizes, wall_s) if self.begun else 0


@attrs.define
class _Ledger:
    """The observer: publication, time, broker and subscriptions of every delivery, in a row."""

    places: dict[str, int]
    witness: Witness | None
    rows: array[int] = attrs.field(factory=lambda: array("q"))

    def delivered(self, now: int, broker: str, effect: Deliver) -> None:
        number = effect.publication.values[NUMBER]
        assert isinstance(number, int)
        self.rows.extend((number, now, self.places[broker], len(effect.labels)))
        if self.witness is not None:
            self.witness(number, broker, effect)

    def refused(self, now: int, broker: str, effect: Refuse) -> None:
        raise SimulationError(f"broker {broker} refused a message at {now}: {effect.error}")

    def moved(self, now: int, broker: str, effect: Moved) -> None:  # noqa: ARG002
        raise SimulationError(f"broker {broker} moved a client, expected that none asks for it")


class _Stage:
    def __init__(self, scene: Scene, new_index: NewIndex, witness: Witness | None) -> None:
        graph = scene.workload.overlay.graph
        self.scene = scene
        self.names = tuple(graph)
        self.brokers = {
            name: Broker(name, scene.settings, new_index=new_index) for name in self.names
        }
        self.begun: list[bool] = []
        self.ledger = _Ledger({name: i for i, name in enumerate(self.names)}, witness)
        service = _OnceBegun(scene.service, self.begun)
        self.network = BrokerNetwork(graph, self.brokers, service, scene.links, self.ledger)
        self.due: list[int] = []

    def send(self, at: int, broker: str, message: Message) -> None:
        self.network.send(at, f"clients of {broker}", broker, message)

    def set_up(self, progress: Progress) -> None:
        """Attach clients, advertise, and subscribe one after another."""
        for name in self.names:
            self.send(0, name, Attach())
        for broker, label, announced in self.scene.workload.advertisements():
            self.send(self.network.now, broker, Advertise(label, announced))
            self.network.run(self.network.now + _SPACING)
        standing = list(self.scene.workload.standing())
        for done, (broker, label, wanted) in enumerate(standing):
            self.send(self.network.now, broker, Subscribe(label, wanted))
            self.network.run(self.network.now + _SPACING)
            progress(done + 1, len(standing))

    def follow(self, steps: Iterator[Step], origin: int) -> None:
        """Do the next step when its time comes, and then the one after it."""
        step = next(steps, None)
        if step is not None:
            self.network.call(origin + step.at, lambda: self._do(step, steps, origin))

    def _do(self, step: Step, steps: Iterator[Step], origin: int) -> None:
        if isinstance(step.message, Publish):
            self.due.append(self.network.now)
        self.send(self.network.now, step.broker, step.message)
        self.follow(steps, origin)

    def counts(self) -> Int64s:
        """int64[3, brokers]: publications received, false positives, triggered messages."""
        counters = [self.brokers[name].counters for name in self.names]
        return np.array(
            [
                [found.received.get("Publication", 0) for found in counters],
                [found.false_positives for found in counters],
                [sum(found.triggered_received.values()) for found in counters],
            ],
            np.int64,
        )

    def look(self) -> tuple[list[int], list[int]]:
        """Queues and tables of all brokers now."""
        queues = [self.network.queue(name) for name in self.names]
        return queues, [self.brokers[name].sizes().subscriptions for name in self.names]


def perform(
    scene: Scene,
    *,
    new_index: NewIndex = SharedIndex,
    witness: Witness | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Performance:
    """Let a scene happen.

    Args:
        scene: what is to happen.
        new_index: of filters; `compiled_index` for large workloads.
        witness: told the number of each publication, where it was delivered, and to whom.
        progress: called with what is done and all there is: standing subscriptions, then seconds.

    Raises:
        SimulationError: a broker refused what a client asked for.
    """
    stage = _Stage(scene, new_index, witness)
    stage.set_up(progress)
    stage.begun.append(True)
    begin = stage.network.now
    stage.follow(scene.workload.steps(scene.warm_up + scene.span), begin)
    stage.network.run(begin + scene.warm_up)
    before, origin = stage.counts(), stage.network.now
    looks: list[tuple[list[int], list[int]]] = []
    times = range(scene.sample_every, scene.span + 1, scene.sample_every)
    for time in times:
        stage.network.run(origin + time)
        looks.append(stage.look())
        progress(time // SECOND, scene.span // SECOND)
    received, false_positives, triggered = stage.counts() - before
    published = np.array(stage.due, np.int64) - origin
    queues, tables = np.array(looks, np.int64).reshape(-1, 2, len(stage.names)).swapaxes(0, 1)
    return Performance(
        brokers=stage.names,
        published=published,
        deliveries=_delays(stage.ledger.rows, published, origin),
        times=np.array(times, np.int64),
        queues=queues,
        tables=tables,
        received=received,
        false_positives=false_positives,
        triggered=triggered,
    )


def _delays(rows: array[int], published: Int64s, origin: int) -> Int64s:
    """The ledger's rows of what was due after the warm-up, with delays in place of times."""
    found = np.frombuffer(rows, np.int64).reshape(-1, _ROW).copy()
    due = published[found[:, 0]]
    found[:, 1] -= due + origin
    return found[due >= 0]
