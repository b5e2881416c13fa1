"""The effect by which a coordinator has trees made."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from gossamer.protocol.brokers.core.effects import Compute
from gossamer.protocol.brokers.graph.coordinator.planning import solve
from gossamer.protocol.brokers.graph.memory.messages import Planned
from gossamer.protocol.brokers.graph.memory.problem import Problem

SOON_SOLVED: Final = 20_000
"""Subscriptions times documents that interpreted rules plan for in about half a second."""


@frozen
class MakePlan(Compute):
    """Make trees, and hand `Planned` with this number back; that takes long."""

    number: int
    problem: Problem

    @property
    def pays_to_compile(self) -> bool:
        """Whether the problem is one of those that take seconds."""
        return len(self.problem.interests) * len(self.problem.documents) > SOON_SOLVED

    def work(self) -> Planned:
        """The trees."""
        return solve(self.number, self.problem)
