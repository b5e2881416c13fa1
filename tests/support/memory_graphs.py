"""Nodes that are brokers of a general graph, on a network in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from gossamer.node.broker.contract.host import FamilyHost
from gossamer.node.broker.families.graph.host import GraphHost
from gossamer.protocol.brokers.graph.memory.settings import GraphSettings
from support.memory_brokers import LIMITS, PATIENCE_S, MemoryBrokers
from support.memory_transport import MemoryNetwork
from support.waiting import eventually

RING = ((1, 2), (2, 3), (3, 4), (4, 5), (5, 1), (2, 5))
# All documents are sampled, and any saving is worth other trees, so that there are many.
PLANNING = GraphSettings(probability=1.0, interval=5_000_000, threshold=0.0)


@attrs.define
class MemoryGraph(MemoryBrokers):
    """Brokers of a graph, by number.

    Attributes:
        planning: settings of all brokers.
    """

    planning: GraphSettings = PLANNING

    def family(self, number: int) -> FamilyHost:
        del number
        return GraphHost(self.planning)

    async def settle_graph(self) -> None:
        """Wait until all that run use trees that join just them, and nothing is under way."""
        await eventually(self._is_quiet, PATIENCE_S)

    def coordinator(self) -> int:
        """The number of the coordinator, as all take it."""
        (name,) = {self.machine(number).term.broker for number in self.nodes}
        return int(name, 16)

    def machine(self, number: int) -> Any:
        """The broker of a node."""
        return self.nodes[number].engine.broker

    def _is_quiet(self) -> bool:
        running = {f"{number:016x}" for number in self.nodes}
        versions = set()
        for number, node in self.nodes.items():
            broker = self.machine(number)
            sizes = broker.sizes()
            if node.engine.waiting or node.engine.busy or node.backlog or sizes.in_flight:
                return False
            if broker.present is None or broker.reachable != running:
                return False
            if broker.term.broker != min(running):
                return False
            if not running <= set(broker.present.plan.brokers) or broker.phase == "planning":
                return False
            grouped = set(broker.present.groups)
            if any(one not in grouped for one in broker.interests() if one.broker in running):
                return False
            versions.add(broker.present.plan.version)
        return len(versions) == 1


@asynccontextmanager
async def memory_graph(
    folder: Path,
    edges: Iterable[tuple[int, int]] = RING,
    network: MemoryNetwork | None = None,
    **changes: Any,
) -> AsyncIterator[MemoryGraph]:
    """Brokers with these links that all run; stopped at the end."""
    edges = list(edges)
    async with trio.open_nursery() as nursery:
        made = MemoryGraph(
            network or MemoryNetwork(), folder, nursery, edges, limits=LIMITS, **changes
        )
        for number in sorted({end for edge in edges for end in edge}):
            await made.start(number)
        await made.settle_graph()
        yield made
        for number in list(made.nodes):
            await made.stop(number)
