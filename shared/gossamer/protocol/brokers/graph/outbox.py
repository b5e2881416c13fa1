"""The effects of one message at a graph broker."""

from __future__ import annotations

from gossamer.protocol.brokers.core.effects import Outbox
from gossamer.protocol.brokers.graph.messages import BetweenBrokers
from gossamer.protocol.brokers.graph.state import State


class GraphOutbox(Outbox[State]):
    """Collects effects, and counts them; nothing is sent on a link that does not work."""

    __slots__ = ()

    def send(self, neighbour: str, message: BetweenBrokers) -> None:
        """Send a message to a neighbour, if its link works."""
        link = self._state.links.get(neighbour)
        if link is not None and link.up:
            super().send(neighbour, message)

    def flood(self, message: BetweenBrokers, besides: str | None = None) -> None:
        """Send a message to all neighbours but one."""
        for name in sorted(self._state.links):
            if name != besides:
                self.send(name, message)
