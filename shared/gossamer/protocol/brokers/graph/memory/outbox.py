"""The effects of one message, in order."""

from __future__ import annotations

from gossamer.protocol.brokers.core.effects import SetTimer
from gossamer.protocol.brokers.core.timers import Timer
from gossamer.protocol.brokers.graph.memory.effects import Deliver, Effect, Send
from gossamer.protocol.brokers.graph.memory.messages import BetweenBrokers, Document
from gossamer.protocol.brokers.graph.memory.state import State


class Outbox:
    """Collects effects, and counts them.

    Attributes:
        now: time of the step, in microseconds.
        effects: so far.
    """

    def __init__(self, state: State, now: int) -> None:
        self.now = now
        self.effects: list[Effect] = []
        self._state = state

    def send(self, neighbour: str, message: BetweenBrokers) -> None:
        """Send a message to a neighbour, if its link works."""
        link = self._state.links.get(neighbour)
        if link is not None and link.up:
            sent = self._state.counters.sent
            kind = type(message).__name__
            sent[kind] = sent.get(kind, 0) + 1
            self.effects.append(Send(neighbour, message))

    def flood(self, message: BetweenBrokers, besides: str | None = None) -> None:
        """Send a message to all neighbours but one."""
        for name in sorted(self._state.links):
            if name != besides:
                self.send(name, message)

    def deliver(self, client: str, document: Document, labels: tuple[str, ...]) -> None:
        """Hand a document to a client."""
        self._state.counters.delivered += 1
        self.effects.append(Deliver(client, document, labels))

    def set_timer(self, name: str, delay: int) -> None:
        """Ask for a timer in so many microseconds, unless it is set already."""
        timer = self._state.timers.setdefault(name, Timer())
        if timer.at is None:
            timer.token += 1
            timer.at = self.now + delay
            self.effects.append(SetTimer(name, timer.token, timer.at))
