"""The effects of one message at a SCOT broker."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.protocol.brokers.core.effects import Outbox
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    BidNotification,
    Notification,
)
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.brokers.scot.memory.take_over_memory import Task


class ScotOutbox(Outbox[State]):
    """Collects effects, and counts them; who takes over has a say in what is sent and delivered.

    Attributes:
        task: because of which messages are sent now; None if nobody waits for their end.
        lost_before: copies that the broker had lost when that task was taken up.
    """

    __slots__ = ("lost_before", "task")

    def __init__(self, state: State, now: int) -> None:
        super().__init__(state, now)
        self.task: Task | None = None
        self.lost_before = 0

    def send(self, neighbour: str, message: BetweenBrokers) -> None:
        """Send a message to a neighbour."""
        self._state.take_over.send(self._state, self, neighbour, message)

    def deliver_to(
        self, notification: Notification | BidNotification, entries: Iterable[Entry]
    ) -> None:
        """Hand a notification to the clients of these subscriptions, to each client once."""
        labels: dict[str, list[str]] = {}
        for entry in sorted(entries, key=_by_id):
            labels.setdefault(entry.hop.name, []).append(entry.label)
        for name in sorted(labels):
            self._state.take_over.give(self._state, self, name, notification, tuple(labels[name]))


def _by_id(entry: Entry) -> Id:
    return entry.id
