"""Taking over the clients of a dead broker; beyond the paper, `ScotSettings.take_over`.

What is promised, while at most as many brokers and links fail at once as there are backups, for
good or for a while, and links have settled before more do:

- A subscription that was acknowledged as safe gets every notification that is acknowledged as safe
  to its publisher afterwards, whichever broker is dead, its own included.
- Nobody gets a notification twice from the same broker. A client that was taken over may get again
  what it took just before its broker died.

How:

- *Acknowledgements follow the way back.* Subscriptions and notifications are numbered by whoever
  sends them on. A broker acknowledges one when all that it sent because of it is acknowledged
  (`take_over_memory.Task`), so that the host broker knows when everybody has it.
- *Backups know first.* The backups of a broker are those of its region in the next clusters whose
  links work, `ScotSettings.backups` of them. They are sent what the broker promises its clients:
  their subscriptions, and notifications until they are acknowledged. Those count as sent on:
  nothing is acknowledged before the backups have acknowledged it.
- *What was under way is sent again.* Copies that were not acknowledged when a link fails go around
  it, notifications by `around.again` and subscriptions by `relaying`. Whoever gets a notification
  twice passes it on twice; hosts deliver it once.
- *The backup stands in.* Routing tables are what they would be without failures: notifications
  for the clients of a dead broker lead there, go around it by way of its region, and are handed to
  its first backup (`ProxyNotification`). That delivers them to clients that came to it, keeps them
  for the others, and has the other backups keep them as well.
- *It hands back* (`handing_over`). When the broker is there again, it gets what its clients have
  not had, hears what they have taken meanwhile, and is sent on what comes to the backup late.
- *Who comes back does all again* once it knows what it has missed (`resynchronising`).

Not promised: where no other broker of the region works, what is promised has no backup. While
several are away, a publication may have no way to some broker; then it is not acknowledged as safe.
Names of clients that ask for something have to differ within a region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gossamer.protocol.brokers.core.effects import Awaits
from gossamer.protocol.brokers.core.identifiers import Hop, Id, client
from gossamer.protocol.brokers.core.messages import (
    ClientAcknowledge,
    Restarted,
    Subscribe,
    Unsubscribe,
)
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    Numbered,
    Synchronise,
    TakingOver,
)
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.take_over_memory import NOBODY, Task
from gossamer.protocol.brokers.scot.take_over.handing_over import (
    backups_changed,
    hand_back,
    note_acting,
    on_taking_over,
    send_again,
)
from gossamer.protocol.brokers.scot.take_over.promises import Promises
from gossamer.protocol.brokers.scot.take_over.resynchronising import hold, replay

if TYPE_CHECKING:
    from gossamer.protocol.brokers.scot.memory.no_take_over import CarryOut, Route


class TakeOver(Promises):
    """What a broker does under `ScotSettings.take_over` at the points that `NoTakeOver` names."""

    def from_client(
        self, state: State, out: ScotOutbox, name: str, message: Any, carry_out: CarryOut
    ) -> None:
        """Carry out what a client asks, and have it told when that is safe."""
        if isinstance(message, ClientAcknowledge):
            carry_out(state, out, name, message)
            return
        out.add(Awaits(self.begin_for_client(state, out)))
        before = state.next_number
        if isinstance(message, Subscribe | Unsubscribe):
            self.check_own(state, name)
        carry_out(state, out, name, message)
        again = hold(self, state, out, client(name), message, before)
        self.end(state, out, again=again)

    def from_neighbour(
        self, state: State, out: ScotOutbox, source: Hop, message: BetweenBrokers, route: Route
    ) -> None:
        """Route what a neighbour sent, and acknowledge it when all that followed has come."""
        if isinstance(message, Numbered):
            self.begin(state, out, Task((source.name, message.number)))
            before = state.next_number
            self._take(state, out, source, message.message, route)
            again = hold(self, state, out, source, message.message, before)
            self.end(state, out, again=again)
        elif isinstance(message, Synchronise):
            self.begin(state, out, Task(NOBODY))
            route(state, out, source, message)
            self.end(state, out)
            replay(self, state, out)
        else:
            self._take(state, out, source, message, route)

    def _take(
        self, state: State, out: ScotOutbox, source: Hop, message: BetweenBrokers, route: Route
    ) -> None:
        if isinstance(message, TakingOver):
            on_taking_over(self, state, out, source, message)
        else:
            route(state, out, source, message)

    def after_host(self, state: State, out: ScotOutbox, message: Any) -> None:
        """Forget what was under way when the broker was started; do again what it held."""
        if isinstance(message, Restarted):
            self.memory.restarted()
        replay(self, state, out)

    # Links

    def link_came(self, state: State, out: ScotOutbox, name: str) -> None:
        """Hand clients back before the broker is told what stands: then it has all its clients."""
        hand_back(self, state, out, name)

    def link_changed(
        self, state: State, out: ScotOutbox, name: str, before: tuple[str, ...], *, works: bool
    ) -> None:
        """See to the backups; send again what was under way on a link that went."""
        self.memory.link_changed(name)
        backups_changed(self, state, out, before, name if works else "")
        note_acting(self, state)
        if not works:
            send_again(self, state, out, name)

    # Subscriptions of neighbours

    def has_ended(self, neighbour: str, id_: Id) -> bool:
        """Whether the end of a subscription came before that, around its link."""
        return (neighbour, id_) in self.memory.ended

    def ends(self, neighbour: str, id_: Id) -> None:
        """Remember that: the subscription may still come over its link."""
        self.memory.note_end(neighbour, id_)

    @property
    def passes_on_again(self) -> bool:
        """It is acknowledged once it is known everywhere; the first may be on its way."""
        return True
