"""What was published, acknowledged and delivered in a test of the delivery promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import attrs
import trio

from gossamer.node.errors import NotAcknowledged, PeerStopped
from gossamer.node.peer.peer import Peer


@attrs.define(eq=False)
class Reader:
    """A subscriber: an application that takes events of one range of prices."""

    low: float
    high: float
    got: list[int] = attrs.field(factory=list)  # ids of the events it was handed, in order

    @property
    def expression(self) -> str:
        return f"price >= {self.low} and price <= {self.high}"

    async def read(
        self,
        peer: Peer,
        name: str = "",
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        async with peer.subscribe(self.expression, name=name) as events:
            task_status.started()
            async for event in events:
                self.got.append(event.id)


@attrs.define(eq=False)
class Ledger:
    """The accounts of one test."""

    # Of every event published, by id, whether acknowledged or not.
    prices: dict[int, float] = attrs.field(factory=dict)
    acknowledged: set[int] = attrs.field(factory=set)  # ids of those that were
    given_up: int = 0  # how many publications were not acknowledged
    readers: dict[str, Reader] = attrs.field(factory=dict)

    async def publish(self, peer: Peer, price: float) -> None:
        try:
            event = await peer.publish({"price": price, "symbol": "A"})
        except NotAcknowledged as error:
            self.prices[error.event] = price
            self.given_up += 1
        except PeerStopped:
            return
        else:
            self.prices[event] = price
            self.acknowledged.add(event)

    def reader(self, name: str, low: float = 0, high: float = 1000) -> Reader:
        made = self.readers[name] = Reader(low, high)
        return made

    def due(self, name: str) -> set[int]:
        one = self.readers[name]
        return {e for e in self.acknowledged if one.low <= self.prices[e] <= one.high}

    def missing(self, names: Iterable[str] | None = None) -> dict[str, set[int]]:
        """The events that readers have still to get, of all or of those named."""
        chosen = self.readers if names is None else names
        lacking = {name: self.due(name) - set(self.readers[name].got) for name in chosen}
        return {name: events for name, events in lacking.items() if events}

    def repeated(self) -> dict[str, list[int]]:
        found = {name: _repeated(one.got) for name, one in self.readers.items()}
        return {name: events for name, events in found.items() if events}

    def summary(self, names: Collection[str] | None = None) -> str:
        chosen = self.readers if names is None else names
        due = sum(len(self.due(name)) for name in chosen)
        lost = sum(map(len, self.missing(chosen).values()))
        twice = sum(map(len, self.repeated().values()))
        return (
            f"{len(self.acknowledged)} events acknowledged, {self.given_up} not; "
            f"{due} deliveries due to {len(chosen)} readers, {lost} lost, {twice} repeated"
        )


def _repeated(events: Iterable[int]) -> list[int]:
    return [event for event, times in Counter(events).items() if times > 1]
