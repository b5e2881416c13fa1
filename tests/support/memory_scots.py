"""Nodes that are brokers of a SCOT, on a network in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from gossamer.node.broker.assembly import BrokerNode
from gossamer.node.broker.contract.host import FamilyHost
from gossamer.node.broker.families.scot.host import ScotHost
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotSettings
from support.memory_brokers import LIMITS, PATIENCE_S, MemoryBrokers
from support.memory_transport import MemoryNetwork
from support.waiting import eventually

SCOT = Scot(Factor.path("abc"), Factor.complete(3))
TAKING_OVER = ScotSettings(around_failures=True, take_over=True)


@attrs.define
class MemoryScot(MemoryBrokers):
    """Brokers of a SCOT, numbered cluster by cluster from 1 on.

    Attributes:
        scot: the overlay.
        routing: settings of all brokers.
        places: where brokers take themselves to be that are mistaken.
        words: what brokers say of their overlay that are of another.
    """

    scot: Scot = SCOT
    routing: ScotSettings = TAKING_OVER
    places: dict[int, BrokerLabel] = attrs.field(factory=dict)
    words: dict[int, str] = attrs.field(factory=dict)

    def label(self, number: int) -> BrokerLabel:
        return self.places.get(number, self.scot.brokers[number - 1])

    def number(self, region: str, cluster: int) -> int:
        return self.scot.brokers.index(BrokerLabel(region, cluster)) + 1

    def family(self, number: int) -> FamilyHost:
        position = self.scot.position(self.label(number))
        return ScotHost(position, self.routing, self.words.get(number, "the overlay"))

    def at(self, region: str, cluster: int) -> BrokerNode:
        """A node by its place."""
        return self.nodes[self.number(region, cluster)]

    async def settle_scot(self) -> None:
        """Wait until all links among those that run are up and nothing is under way."""
        await eventually(self._all_is_quiet, PATIENCE_S)

    def _all_is_quiet(self) -> bool:
        for number, node in self.nodes.items():
            broker: Any = node.engine.broker
            if node.engine.waiting or node.engine.busy or node.backlog:
                return False
            if any(connection.queued_bytes for connection in node.pool):
                return False
            if broker.take_over_memory is not None and broker.take_over_memory.copies:
                return False
            beside = {
                one if other == number else other
                for one, other in self.edges
                if number in (one, other)
            }
            running = {f"{one:016x}" for one in beside if one in self.nodes}
            if running & broker.down or not running <= set(broker.neighbours()):
                return False
        return True


@asynccontextmanager
async def memory_scot(
    folder: Path, network: MemoryNetwork | None = None, scot: Scot = SCOT, **changes: Any
) -> AsyncIterator[MemoryScot]:
    """A SCOT whose brokers all run; stopped at the end."""
    numbers = {label: number for number, label in enumerate(scot.brokers, 1)}
    edges = [(numbers[one], numbers[other]) for one, other in scot.links()]
    async with trio.open_nursery() as nursery:
        made = MemoryScot(
            network or MemoryNetwork(), folder, nursery, edges, limits=LIMITS, scot=scot, **changes
        )
        for number in numbers.values():
            await made.start(number)
        await made.settle_scot()
        yield made
        for number in list(made.nodes):
            await made.stop(number)
