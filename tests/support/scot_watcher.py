"""Writes down what happens in a simulated network of a SCOT."""

from __future__ import annotations

from collections import Counter

from attrs import define, field

from gossamer.protocol.brokers.core.effects import Deliver, Effect
from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.scot.memory.messages import Message, QueueReport, Subscription
from gossamer.sim.studies.scot.replay.network import Unobserved


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
