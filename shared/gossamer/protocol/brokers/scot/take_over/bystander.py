"""A broker that takes over nobody's clients while others do; beyond the paper.

So it is while the brokers of an overlay are restarted one after another with another
`ScotSettings.take_over`. It is no backup and has none, and its own clients are told at once that
what they ask for is done. For the others it does its part, so that what they acknowledge as safe
is:

- It passes on what is numbered as `take_over` does, and acknowledges it when all that followed has
  come; what its own clients are handed is with its host by then.
- Its clients get what comes twice once.
- It takes what backups hand back, as it may have had some when it was started last. What it keeps
  itself for clients of others it hands back when their broker is there.

Where nobody takes over, no message is numbered, and all goes as by `NoTakeOver`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gossamer.protocol.brokers.core.identifiers import NAMELESS, Hop
from gossamer.protocol.brokers.core.messages import Subscribe, Unsubscribe
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    BidNotification,
    Bypass,
    Detour,
    Notification,
    Synchronise,
)
from gossamer.protocol.brokers.scot.memory.no_take_over import NoTakeOver
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.brokers.scot.take_over.promises import next_in_region
from gossamer.protocol.brokers.scot.take_over.resynchronising import replay
from gossamer.protocol.brokers.scot.take_over.take_over import TakeOver

if TYPE_CHECKING:
    from gossamer.protocol.brokers.scot.memory.no_take_over import CarryOut, Route


class Bystander(TakeOver):
    """What a broker does that does not take over, at the points that `NoTakeOver` names."""

    def from_client(
        self, state: State, out: ScotOutbox, name: str, message: Any, carry_out: CarryOut
    ) -> None:
        """Carry out what a client asks; nobody waits for what follows."""
        if isinstance(message, Subscribe | Unsubscribe):
            self.check_own(state, name)
        carry_out(state, out, name, message)

    def from_neighbour(
        self, state: State, out: ScotOutbox, source: Hop, message: BetweenBrokers, route: Route
    ) -> None:
        """As who takes over, but what follows from what stands is not sent around failures."""
        if isinstance(message, Synchronise):
            route(state, out, source, message)
            replay(self, state, out)
        else:
            super().from_neighbour(state, out, source, message, route)

    def backups(self, state: State) -> tuple[str, ...]:
        """None, and so nobody hears what this broker promises its clients."""
        del state
        return ()

    def send(self, state: State, out: ScotOutbox, neighbour: str, message: BetweenBrokers) -> None:
        """Number a message and take it around failures only where somebody waits for its end.

        A notification that nobody takes around a link (`ScotSettings.around_failures`) is lost.
        """
        if out.task is None:
            NoTakeOver.send(self, state, out, neighbour, message)
            return
        if neighbour in state.down and isinstance(message, Notification | Detour | Bypass):
            state.counters.lost += 1
        super().send(state, out, neighbour, message)

    def replacing(self, state: State, out: ScotOutbox, gone: Entry, *, covered: bool) -> bool:
        """An end waits where somebody waits for it; else the order of messages is enough."""
        waits = out.task is not None and covered
        return super().replacing(state, out, gone, covered=waits)

    def give(
        self,
        state: State,
        out: ScotOutbox,
        name: str,
        notification: Notification | BidNotification,
        labels: tuple[str, ...],
    ) -> None:
        """Deliver a notification, unless it came before; the host keeps it.

        What guests are handed is kept here, too, for their brokers.
        """
        if name in self.memory.guests:
            super().give(state, out, name, notification, labels)
        elif name.startswith(NAMELESS) or self.memory.note(name, notification.id):
            out.deliver(name, notification, labels)

    def stand_in(
        self, state: State, out: ScotOutbox, notification: Notification, cluster: int
    ) -> None:
        """Have a backup of a dead broker take a notification; without any it counts as lost."""
        if not next_in_region(state, cluster):
            state.counters.lost += out.task is not None
        super().stand_in(state, out, notification, cluster)
