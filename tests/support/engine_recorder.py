"""What is around the engine of a broker's node, and takes notes."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from attrs import define, field

from gossamer.node.broker.contract.host import HostedBroker
from gossamer.node.broker.contract.matches import Match
from gossamer.node.broker.engine.engine import Input
from gossamer.node.broker.engine.journal import Entry
from gossamer.node.errors import StoreError
from gossamer.node.store.broker import QueuedDelivery
from gossamer.protocol.brokers.core.effects import Deliver, Effect


@define(eq=False)
class Recorder:
    """A journal and hands that note what they are given, in one order.

    The disk refuses so often as ``failures`` says, and waits until the gate is set.
    """

    happened: list[str] = field(factory=list)
    kept: list[str] = field(factory=list)
    failures: int = 0
    gate: trio.Event = field(factory=trio.Event)
    backlog: int = 0

    async def keep(self, entries: Sequence[Entry], deliveries: Sequence[QueuedDelivery]) -> None:
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise StoreError("state.db", "is full")
        self.happened.append(f"kept {len(entries)} and {len(deliveries)}")
        self.kept += [type(entry.message).__name__ for entry in entries]

    async def dump_if_due(self, broker: HostedBroker, now: int, nursery: trio.Nursery) -> None:
        assert broker.name == "B"
        assert now >= 0
        assert nursery.child_tasks is not None

    def queued(self, effect: Deliver | Match) -> QueuedDelivery | None:
        return QueuedDelivery(effect.client, b"")

    def carry_out(self, told: Input, effects: list[Effect]) -> None:
        kinds = [type(effect).__name__ for effect in effects]
        self.happened.append(" ".join([type(told.message).__name__, *kinds]))
