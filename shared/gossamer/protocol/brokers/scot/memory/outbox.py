"""The effects of one message, in order."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.scot.memory.counters import Counters
from gossamer.protocol.brokers.scot.memory.effects import Deliver, Effect, Send
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    BidNotification,
    Notification,
)
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.content.filters import Filter


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
        self._put(neighbour, message, type(message).__name__)

    def _put(self, neighbour: str, message: BetweenBrokers, kind: str) -> None:
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
            self.give(name, notification, tuple(labels[name]))

    def give(
        self, name: str, notification: Notification | BidNotification, labels: tuple[str, ...]
    ) -> None:
        """Hand a notification to a client."""
        self._counters.delivered += 1
        self.effects.append(Deliver(name, notification, labels))

    # What else is done by a broker that takes over (`keeping_outbox`).

    def promise(self, name: str, label: str, id_: Id, wanted: Filter) -> None:
        """A client's subscription stands."""

    def take_back(self, name: str, label: str) -> None:
        """A client's subscription stands no more."""

    def took(self, name: str, ids: Iterable[Id]) -> None:
        """A client has taken notifications."""

    def attach(self, name: str) -> None:
        """A client comes."""

    def check_own(self, name: str) -> None:
        """A client is about to change what it asks for."""

    def detach(self, name: str) -> None:
        """A client is none any more."""

    def stand_in(self, notification: Notification, cluster: int) -> None:
        """The broker of a cluster in this region is dead, and its clients may want this."""


def _by_id(entry: Entry) -> Id:
    return entry.id
