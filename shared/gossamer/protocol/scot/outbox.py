"""The effects of one message, in order."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.protocol.broker.identifiers import Id
from gossamer.protocol.scot.counters import Counters
from gossamer.protocol.scot.effects import Deliver, Effect, Send
from gossamer.protocol.scot.messages import BetweenBrokers, BidNotification, Notification
from gossamer.protocol.scot.table import Entry


class Outbox:
    """Collects effects, and counts them.

    Attributes:
        effects: so far.
    """

    def __init__(self, counters: Counters) -> None:
        self.effects: list[Effect] = []
        self._counters = counters

    def send(self, neighbour: str, message: BetweenBrokers) -> None:
        """Send a message to a neighbour."""
        kind = type(message).__name__
        self._counters.sent[kind] = self._counters.sent.get(kind, 0) + 1
        self.effects.append(Send(neighbour, message))

    def deliver(
        self, notification: Notification | BidNotification, entries: Iterable[Entry]
    ) -> None:
        """Hand a notification to the clients of these subscriptions, to each client once."""
        labels: dict[str, list[str]] = {}
        for entry in sorted(entries, key=_by_id):
            labels.setdefault(entry.hop.name, []).append(entry.label)
        for name in sorted(labels):
            self._counters.delivered += 1
            self.effects.append(Deliver(name, notification, tuple(labels[name])))


def _by_id(entry: Entry) -> Id:
    return entry.id
