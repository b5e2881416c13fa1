"""The effects of one message, in order."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from gossamer.protocol.brokers.core.effects import (
    Deliver,
    Effect,
    Effects,
    Published,
    Refuse,
    Send,
    SetTimer,
)
from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.core.state import BrokerState, Timer
from gossamer.protocol.kernel.errors import ProtocolError

StateT = TypeVar("StateT", bound=BrokerState)


class Outbox(Generic[StateT]):
    """Collects effects, and counts them.

    Attributes:
        now: time of the step, in microseconds.
        effects: so far.
    """

    __slots__ = ("_state", "effects", "now")

    def __init__(self, state: StateT, now: int) -> None:
        self.now = now
        self.effects = Effects()
        self._state = state

    def give_id(self) -> Id:
        """A new identifier, for what a client subscribes, advertises or publishes now."""
        given = self._state.new_id()
        self.effects.id = given
        return given

    def add(self, effect: Effect) -> None:
        """Add an effect that has no rule of its own."""
        self.effects.append(effect)

    def send(self, neighbour: str, message: Any) -> None:
        """Send a message to a neighbour."""
        self.put(neighbour, message, type(message).__name__)

    def put(self, neighbour: str, message: Any, kind: str) -> None:
        """Send a message as it is, and count it as one of a kind."""
        sent = self._state.counters.sent
        sent[kind] = sent.get(kind, 0) + 1
        self.effects.append(Send(neighbour, message))

    def deliver(self, client: str, publication: Published, labels: tuple[str, ...]) -> None:
        """Hand a publication to a client."""
        self._state.counters.delivered += 1
        self.effects.append(Deliver(client, publication, labels))

    def set_timer(self, name: str, delay: int) -> None:
        """Ask for a timer in so many microseconds, unless it is set already."""
        timer = self._state.timers.setdefault(name, Timer())
        if timer.at is None:
            timer.token += 1
            timer.at = self.now + delay
            self.effects.append(SetTimer(name, timer.token, timer.at))

    def set_again(self, name: str, timer: Timer) -> None:
        """Ask once more for a timer that is set."""
        if timer.at is not None:
            self.effects.append(SetTimer(name, timer.token, timer.at))

    def close(self) -> Effects:
        """All effects; nothing can be added afterwards."""
        return self.effects

    def refuse(self, source: Hop | None, error: ProtocolError, message: Any) -> Effects:
        """All effects of a message that is refused: that its sender is told, and nothing else."""
        self._state.counters.refused += 1
        return Effects([Refuse(source, error, message)])
