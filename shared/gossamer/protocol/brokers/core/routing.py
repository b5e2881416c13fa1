"""What a family of brokers is: how it routes. `broker.Broker` does everything else."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from gossamer.protocol.brokers.core.clients import ClientRules, OutboxT, StateT
from gossamer.protocol.brokers.core.codec import Codec
from gossamer.protocol.brokers.core.errors import UnknownNeighbourError
from gossamer.protocol.brokers.core.identifiers import Hop


class Routing(ClientRules[StateT, OutboxT]):
    """The rules of one family, for any of its brokers: what they remember is in their state.

    A method that refuses what it is asked raises a `LocalProtocolError` or `RemoteProtocolError`
    before it has changed anything; the broker makes a `Refuse` of it.

    Attributes:
        codec: the messages of the family.
    """

    codec: ClassVar[Codec]

    # Around every message

    @abstractmethod
    def begin(self, state: StateT, now: int, message: object) -> OutboxT:
        """Get ready for a message that comes at ``now`` microseconds; returns an empty outbox."""

    def end(self, state: StateT, out: OutboxT) -> None:
        """See to what follows from any message that was not refused."""

    # Neighbours

    def from_neighbour(self, state: StateT, out: OutboxT, source: Hop, message: Any) -> None:
        """Take what a neighbour sent: check it, count it, and hand it to `on_message`.

        Raises `UnknownNeighbourError`, and what the codec and `on_message` raise.
        """
        if not self.is_neighbour(state, source.name):
            raise UnknownNeighbourError(source.name)
        self.codec.check_between(message)
        kind = self.kind_of(message)
        received = state.counters.received
        received[kind] = received.get(kind, 0) + 1
        self.on_message(state, out, source, message)

    def kind_of(self, message: Any) -> str:
        """As what a message is counted."""
        return type(message).__name__

    @abstractmethod
    def is_neighbour(self, state: StateT, name: str) -> bool:
        """Whether the host has reported a link to that broker."""

    @abstractmethod
    def on_message(self, state: StateT, out: OutboxT, source: Hop, message: Any) -> None:
        """Take a message of a neighbour that is counted, and whose form is right."""

    # The host

    @abstractmethod
    def on_host(self, state: StateT, out: OutboxT, message: Any) -> None:
        """Take what the host reports: links, a restart, congestion and what else the codec has."""

    def on_timer(self, state: StateT, out: OutboxT, name: str) -> None:
        """A timer that was set is due."""

    # As plain data

    @abstractmethod
    def dump(self, state: StateT) -> dict[str, Any]:
        """What brokers of the family remember besides what all brokers do, as plain data."""

    @abstractmethod
    def load(self, state: StateT, data: Mapping[str, Any]) -> None:
        """Take that up again, in a state that holds nothing else but what all brokers remember.

        Whatever it raises for data that is no dump becomes a `DumpError`.
        """
