"""The effect by which a coordinator has trees made."""

from __future__ import annotations

from attrs import frozen

from gossamer.protocol.brokers.core.effects import Compute
from gossamer.protocol.brokers.graph.coordinator.planning import solve
from gossamer.protocol.brokers.graph.memory.messages import Planned
from gossamer.protocol.brokers.graph.memory.problem import Problem


@frozen
class MakePlan(Compute):
    """Make trees, and hand `Planned` with this number back; that takes long."""

    number: int
    problem: Problem

    def work(self) -> Planned:
        """The trees."""
        return solve(self.number, self.problem)
