"""The points at which taking over has a say, and what happens there without it: nothing more.

A broker's state has one such object. Under `ScotSettings.take_over` it is a
`take_over.take_over.TakeOver`, and beside such brokers a `take_over.take_over.Bystander`. What
neighbours make of subscriptions (`broadcast`) is all that asks otherwise who takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    BidNotification,
    Notification,
)
from gossamer.protocol.brokers.scot.memory.take_over_memory import TakeOverMemory
from gossamer.protocol.content.filters import Filter

if TYPE_CHECKING:
    from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
    from gossamer.protocol.brokers.scot.memory.state import State
    from gossamer.protocol.brokers.scot.memory.table import Entry

    CarryOut = Callable[[State, ScotOutbox, str, Any], None]
    Route = Callable[[State, ScotOutbox, Hop, BetweenBrokers], None]


class NoTakeOver:
    """What a broker does that takes nobody's clients over.

    Attributes:
        memory: what is remembered for taking over; None without that.
    """

    memory: TakeOverMemory | None = None

    # Around messages

    def from_client(
        self, state: State, out: ScotOutbox, name: str, message: Any, carry_out: CarryOut
    ) -> None:
        """A client asks for something."""
        carry_out(state, out, name, message)

    def from_neighbour(
        self, state: State, out: ScotOutbox, source: Hop, message: BetweenBrokers, route: Route
    ) -> None:
        """A neighbour has sent something."""
        route(state, out, source, message)

    def after_host(self, state: State, out: ScotOutbox, message: Any) -> None:
        """The broker has taken note of what the host reported."""

    # Links

    def backups(self, state: State) -> tuple[str, ...]:
        """The neighbours that back this broker up, in the order in which they take over."""
        del state
        return ()

    def link_came(self, state: State, out: ScotOutbox, name: str) -> None:
        """A link works, and its other end was told nothing yet."""

    def link_changed(
        self, state: State, out: ScotOutbox, name: str, before: tuple[str, ...], *, works: bool
    ) -> None:
        """A link came or went; `before` that, others may have been the backups."""

    # What is sent and delivered

    def send(self, state: State, out: ScotOutbox, neighbour: str, message: BetweenBrokers) -> None:
        """A message is to be sent."""
        del state
        out.put(neighbour, message, type(message).__name__)

    def give(
        self,
        state: State,
        out: ScotOutbox,
        name: str,
        notification: Notification | BidNotification,
        labels: tuple[str, ...],
    ) -> None:
        """A client is to be handed a notification."""
        del state
        out.deliver(name, notification, labels)

    def stand_in(
        self, state: State, out: ScotOutbox, notification: Notification, cluster: int
    ) -> None:
        """The broker of a cluster in this region is dead, and its clients may want this."""

    # Clients

    def attach(self, state: State, out: ScotOutbox, name: str) -> None:
        """A client comes; raises what speaks against letting it in."""

    def detach(self, state: State, out: ScotOutbox, name: str) -> None:
        """A client has left."""

    def promise(
        self, state: State, out: ScotOutbox, name: str, label: str, id_: Id, wanted: Filter
    ) -> None:
        """A client's subscription stands."""

    def take_back(self, state: State, out: ScotOutbox, name: str, label: str) -> None:
        """A client's subscription stands no more."""

    def acknowledge(self, state: State, out: ScotOutbox, name: str, ids: tuple[Id, ...]) -> None:
        """A client has these notifications."""

    # Subscriptions of neighbours

    def has_ended(self, neighbour: str, id_: Id) -> bool:
        """Whether the end of a subscription came before that, by another way."""
        del neighbour, id_
        return False

    def ends(self, neighbour: str, id_: Id) -> None:
        """The end of a subscription came by another way than its link, which works."""

    def stands(self, id_: Id) -> bool:
        """Whether a subscription that was passed on is known wherever it went, and may cover."""
        del id_
        return True

    def doubt(self, id_: Id) -> None:
        """A subscription had no way to some broker."""

    def replacing(self, state: State, out: ScotOutbox, gone: Entry, *, covered: bool) -> bool:
        """A subscription ended; what it alone covered, if anything, is passed on next.

        Returns whether `replaced` sees to its end once that has been passed on.
        """
        del state, out, gone, covered
        return False

    def replaced(self, state: State, out: ScotOutbox) -> None:
        """What was announced to `replacing` has been passed on."""

    @property
    def passes_on_again(self) -> bool:
        """Whether a subscription that comes again goes on again."""
        return False


NO_TAKE_OVER = NoTakeOver()
