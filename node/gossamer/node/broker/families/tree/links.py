"""Links of a tree broker: one that would close a cycle is refused."""

from __future__ import annotations

from typing import Any

from gossamer.node.broker.links.links import Neighbour, Neighbours
from gossamer.protocol.brokers.core.effects import Refuse
from gossamer.protocol.brokers.core.errors import CycleError


class TreeNeighbours(Neighbours):
    """All neighbours of a tree broker."""

    def unfit(self, effect: Refuse) -> tuple[Neighbour, str] | None:
        """Who advertises what came another way already."""
        one = self.source_of(effect)
        if one is None or not isinstance(effect.error, CycleError):
            return None
        return one, self._about_cycle(effect.error)

    def _about_cycle(self, error: Any) -> str:
        other = self.label(error.known.name) if not error.known.is_client else "a client here"
        return (
            f"this link would close a cycle: what {self.label(error.advertisement.broker)} "
            f"advertises came by way of {other} already, expected brokers to form a tree"
        )
