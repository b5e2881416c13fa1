"""Scenes of clients that move, held against a matcher without any overlay, and SCOTs watched."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from attrs import define, field

from gossamer.protocol.brokers.core.effects import Deliver, Effect
from gossamer.protocol.brokers.core.messages import Hop, Id, Publish, Subscribe, Unsubscribe
from gossamer.protocol.brokers.scot.messages import Message, QueueReport, Subscription
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.protocol.content.filters import Filter
from gossamer.sim.studies.scot.replay_network import Unobserved
from gossamer.sim.studies.tree_brokers.scene import NUMBER, SECOND, Scene, Stage, Workload
from gossamer.sim.studies.tree_brokers.service_times import FixedTimes

SWIFT = FixedTimes(subscription=500, unsubscription=500, publication=500)
# Within which any message arrives everywhere, at those times.
SETTLED = 2 * SECOND
_NEVER = 1 << 62


class Stay(NamedTuple):
    """A subscription at a broker, from a time to another."""

    broker: str
    label: str
    filter: Filter
    begin: int
    end: int


def stays(workload: Workload, span: int) -> list[Stay]:
    open_ = {(one.broker, one.label): (one.filter, -_NEVER) for one in workload.standing()}
    found = []
    for at, broker, message in workload.steps(span):
        if isinstance(message, Subscribe):
            assert (broker, message.label) not in open_, "nobody is at a broker twice"
            open_[broker, message.label] = (message.filter, at)
        elif isinstance(message, Unsubscribe):
            wanted, begin = open_.pop((broker, message.label))
            found.append(Stay(broker, message.label, wanted, begin, at))
    return found + [Stay(*place, *what, _NEVER) for place, what in open_.items()]


def play(workload: Workload, settings: TreeSettings, span: int) -> int:
    """Perform a scene and check every delivery; returns how many had to be.

    Whoever subscribed some time before a publication and stays for some time after it gets it, and
    nobody gets it who was not subscribed around then.
    """
    got: dict[int, set[tuple[str, str]]] = defaultdict(set)

    def witness(number: int, broker: str, effect: Deliver) -> None:
        for label in effect.labels:
            assert (broker, label) not in got[number], "nobody is served twice"
            got[number].add((broker, label))

    scene = Scene(workload=workload, settings=settings, service=SWIFT, span=span)
    Stage(scene).perform(witness=witness)
    had_to_be = 0
    subscribed = stays(workload, span)
    for at, _, message in workload.steps(span):
        if not isinstance(message, Publish):
            continue
        values = dict(message.values)
        number = values[NUMBER]
        assert isinstance(number, int)
        matching = [one for one in subscribed if one.filter.matches(values)]
        must, may = (
            {
                (one.broker, one.label)
                for one in matching
                if one.begin <= at - margin and one.end >= at + margin
            }
            for margin in (SETTLED, -SETTLED)
        )
        if at < span - SETTLED:
            assert must <= got[number], f"publication {number} was missed"
        assert got[number] <= may, f"publication {number} was for others"
        had_to_be += len(must)
    return had_to_be


@define
class Watcher(Unobserved):
    deliveries: list[tuple[int, str]] = field(factory=list)
    got: Counter[tuple[str, Id]] = field(factory=Counter)
    rows: list[tuple[int, int]] = field(factory=list)
    reached: dict[Id, int] = field(factory=dict)
    windows: list[tuple[int, int, int]] = field(factory=list)

    def handled(
        self,
        now: int,
        arrived: int,  # noqa: ARG002
        broker: str,  # noqa: ARG002
        source: Hop,  # noqa: ARG002
        message: Message,
        effects: list[Effect],
    ) -> None:
        clients = sum(isinstance(effect, Deliver) for effect in effects)
        if clients:
            self.rows.append((now, clients))
        if isinstance(message, Subscription):
            self.reached[message.id] = now

    def delivered(self, now: int, effect: Deliver) -> None:
        self.deliveries.append((now, effect.client))
        self.got[effect.client, effect.publication.id] += 1

    def window_ended(self, now: int, queues: dict[tuple[str, str], QueueReport]) -> None:
        lengths = [report.length for report in queues.values()]
        self.windows.append((now, max(lengths, default=0), sum(lengths)))
