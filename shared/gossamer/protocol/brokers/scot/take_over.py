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
  it, notifications by `detours.again` and subscriptions by `broadcast`. Whoever gets a notification
  twice passes it on twice; hosts deliver it once.
- *The backup stands in.* Routing tables are what they would be without failures: notifications
  for the clients of a dead broker lead there, go around it by way of its region, and are handed to
  its first backup (`ProxyNotification`). That delivers them to clients that came to it, keeps them
  for the others, and has the other backups keep them as well.
- *It hands back* (`handing_over`). When the broker is there again, it gets what its clients have
  not had, hears what they have taken meanwhile, and is sent on what comes to the backup late.
- *Who comes back does all again* once it knows what it has missed (`resynchronise`).

Not promised: where no other broker of the region works, what is promised has no backup. While
several are away, a publication may have no way to some broker; then it is not acknowledged as safe.
Names of clients that ask for something have to differ within a region.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gossamer.protocol.brokers.core import messages as core
from gossamer.protocol.brokers.core.effects import Awaits
from gossamer.protocol.brokers.core.messages import Hop, Id, client, neighbour
from gossamer.protocol.brokers.scot import broadcast, handing_over
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.promises import Promises, next_in_region
from gossamer.protocol.brokers.scot.routing import ALGORITHMS
from gossamer.protocol.brokers.scot.state import ScotOutbox, State
from gossamer.protocol.brokers.scot.table import Entry
from gossamer.protocol.brokers.scot.take_over_memory import (
    NOBODY,
    REMEMBERED,
    Held,
    NoTakeOver,
    Replayable,
    Task,
)
from gossamer.protocol.content.filters import exact_publication

if TYPE_CHECKING:
    from gossamer.protocol.brokers.scot.take_over_memory import CarryOut, Route


# What a broker of a SCOT does until it knows all that stands; beyond the paper, `take_over`.
#
# A broker that was started again, with or without its memory, has missed what happened meanwhile,
# and its links come up one by one. What is to go through it until then may be for somebody of whom
# it has yet to hear. So it does twice what it is asked: at once, as well as it can, and again once
# all neighbours have told it what stands, and its clients were handed back. Only then it
# acknowledges. Hosts deliver what comes twice once.
#
# If some neighbour does not come, the host gives up waiting (`WaitedEnough`). A broker that knows
# its tables goes around that one from then on; one without memory says that what it does is not
# safe.
#
# A broker that begins without memory learns from its neighbours whether it was there before: who
# remembers the link to it does not tell *anew*. If it was not, but others have subscribed before it
# came, it has missed as much: so it is when an overlay grows.


def hold(
    own: Promises, state: State, out: ScotOutbox, hop: Hop, message: m.Message, before: int
) -> bool:
    """Let what is done now be done again later; returns whether that is so.

    Args:
        own: of the broker.
        state: of a broker that may know all.
        out: with the task of the message.
        hop: the client or neighbour that sent it.
        message: what was carried out just now.
        before: the last number of an identifier that the broker had given until then.
    """
    assert out.task is not None
    if state.knows_all:
        return False
    found = [Held(out.task, *one) for one in _replayable(state, hop, message, before)]
    if state.waited:
        out.task.safe = out.task.safe and not (found and state.has_missed)
        return False
    for one in found:
        one.task.open += 1
    own.memory.held += found
    while len(own.memory.held) > REMEMBERED:
        oldest = own.memory.held.pop(0)
        oldest.task.safe = False
        own.finish(state, out, oldest.task)
    return bool(found)


def replay(own: Promises, state: State, out: ScotOutbox) -> None:
    """Do again what was done before the broker knew all, if it does now."""
    if not (state.knows_all or state.waited):
        return
    held, own.memory.held = own.memory.held, []
    for one in held:
        one.task.safe = one.task.safe and (state.knows_all or not state.has_missed)
        own.begin(state, out, one.task)
        if one.hop.is_client or one.hop.name in state.labels:
            _again(own, state, out, one.hop, one.message)
        own.end(state, out)


def _replayable(
    state: State, hop: Hop, message: m.Message, before: int
) -> Iterator[tuple[Hop, Replayable]]:
    """What of a message has to be done again, and as whose."""
    match message:
        case m.Relay(m.Subscription() as told, origin, ()):
            name = state.named(origin)
            yield neighbour(name or hop.name), told
        case core.Publish(values):
            id_ = Id(state.name, state.next_number)
            yield hop, m.Notification(id_, exact_publication(values))
        case _ if hop.is_client:
            for number in range(before + 1, state.next_number + 1):
                entry = state.table.get(Id(state.name, number))
                if entry is not None:
                    yield hop, m.Subscription(entry.id, entry.filter, entry.host)
        case _ if isinstance(message, Replayable):
            yield hop, message


def _again(own: Promises, state: State, out: ScotOutbox, hop: Hop, message: Replayable) -> None:
    match message:
        case m.Subscription(id_):
            _subscribe_again(own, state, out, id_)
        case m.ProxyNotification():
            handing_over.on_taking_over(own, state, out, hop, message)
        case _:
            ALGORITHMS[state.settings.routing].on_message(state, out, hop, message)


def _subscribe_again(own: Promises, state: State, out: ScotOutbox, id_: Id) -> None:
    entry = state.table.get(id_)
    if entry is None:
        return
    broadcast.pass_on_again(state, out, entry)
    if entry.hop.is_client:
        own.promise(state, out, entry.hop.name, entry.label, id_, entry.filter)


class TakeOver(Promises):
    """What a broker does under `ScotSettings.take_over` at the points that `NoTakeOver` names."""

    def from_client(
        self, state: State, out: ScotOutbox, name: str, message: Any, carry_out: CarryOut
    ) -> None:
        """Carry out what a client asks, and have it told when that is safe."""
        if isinstance(message, core.ClientAcknowledge):
            carry_out(state, out, name, message)
            return
        out.add(Awaits(self.begin_for_client(state, out)))
        before = state.next_number
        if isinstance(message, core.Subscribe | core.Unsubscribe):
            self.check_own(state, name)
        carry_out(state, out, name, message)
        again = hold(self, state, out, client(name), message, before)
        self.end(state, out, again=again)

    def from_neighbour(
        self, state: State, out: ScotOutbox, source: Hop, message: m.BetweenBrokers, route: Route
    ) -> None:
        """Route what a neighbour sent, and acknowledge it when all that followed has come."""
        if isinstance(message, m.Numbered):
            self.begin(state, out, Task((source.name, message.number)))
            before = state.next_number
            self._take(state, out, source, message.message, route)
            again = hold(self, state, out, source, message.message, before)
            self.end(state, out, again=again)
        elif isinstance(message, m.Synchronise):
            self.begin(state, out, Task(NOBODY))
            route(state, out, source, message)
            self.end(state, out)
            replay(self, state, out)
        else:
            self._take(state, out, source, message, route)

    def _take(
        self, state: State, out: ScotOutbox, source: Hop, message: m.BetweenBrokers, route: Route
    ) -> None:
        if isinstance(message, m.TakingOver):
            handing_over.on_taking_over(self, state, out, source, message)
        else:
            route(state, out, source, message)

    def after_host(self, state: State, out: ScotOutbox, message: Any) -> None:
        """Forget what was under way when the broker was started; do again what it held."""
        if isinstance(message, core.Restarted):
            self.memory.restarted()
        replay(self, state, out)

    # Links

    def link_came(self, state: State, out: ScotOutbox, name: str) -> None:
        """Hand clients back before the broker is told what stands: then it has all its clients."""
        handing_over.hand_back(self, state, out, name)

    def link_changed(
        self, state: State, out: ScotOutbox, name: str, before: tuple[str, ...], *, works: bool
    ) -> None:
        """See to the backups; send again what was under way on a link that went."""
        self.memory.link_changed(name)
        handing_over.backups_changed(self, state, out, before, name if works else "")
        handing_over.note_acting(self, state)
        if not works:
            handing_over.send_again(self, state, out, name)

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


# A broker that takes over nobody's clients while others do; beyond the paper.
#
# So it is while the brokers of an overlay are restarted one after another with another
# `ScotSettings.take_over`. It is no backup and has none, and its own clients are told at once that
# what they ask for is done. For the others it does its part, so that what they acknowledge as safe
# is:
#
# - It passes on what is numbered as `take_over` does, and acknowledges it when all that followed
#   has come; what its own clients are handed is with its host by then.
# - Its clients get what comes twice once.
# - It takes what backups hand back, as it may have had some when it was started last. What it keeps
#   itself for clients of others it hands back when their broker is there.
#
# Where nobody takes over, no message is numbered, and all goes as by `NoTakeOver`.


class Bystander(TakeOver):
    """What a broker does that does not take over, at the points that `NoTakeOver` names."""

    def from_client(
        self, state: State, out: ScotOutbox, name: str, message: Any, carry_out: CarryOut
    ) -> None:
        """Carry out what a client asks; nobody waits for what follows."""
        if isinstance(message, core.Subscribe | core.Unsubscribe):
            self.check_own(state, name)
        carry_out(state, out, name, message)

    def from_neighbour(
        self, state: State, out: ScotOutbox, source: Hop, message: m.BetweenBrokers, route: Route
    ) -> None:
        """As who takes over, but what follows from what stands is not sent around failures."""
        if isinstance(message, m.Synchronise):
            route(state, out, source, message)
            replay(self, state, out)
        else:
            super().from_neighbour(state, out, source, message, route)

    def backups(self, state: State) -> tuple[str, ...]:
        """None, and so nobody hears what this broker promises its clients."""
        return ()

    def send(
        self, state: State, out: ScotOutbox, neighbour: str, message: m.BetweenBrokers
    ) -> None:
        """Number a message and take it around failures only where somebody waits for its end.

        A notification that nobody takes around a link (`ScotSettings.around_failures`) is lost.
        """
        if out.task is None:
            NoTakeOver.send(self, state, out, neighbour, message)
            return
        if neighbour in state.down and isinstance(message, m.Notification | m.Detour | m.Bypass):
            state.counters.lost += 1
        super().send(state, out, neighbour, message)

    def replacing(self, state: State, out: ScotOutbox, gone: Entry, *, covered: bool) -> bool:
        """An end waits where somebody waits for it; else the order of messages is enough."""
        waits = out.task is not None and covered
        return super().replacing(state, out, gone, covered=waits)

    def give(
        self, state: State, out: ScotOutbox, name: str, notification: m.Handed, labels: m.Labels
    ) -> None:
        """Deliver a notification, unless it came before; the host keeps it.

        What guests are handed is kept here, too, for their brokers.
        """
        if name in self.memory.guests:
            super().give(state, out, name, notification, labels)
        elif name.startswith(core.NAMELESS) or self.memory.note(name, notification.id):
            out.deliver(name, notification, labels)

    def stand_in(
        self, state: State, out: ScotOutbox, notification: m.Notification, cluster: int
    ) -> None:
        """Have a backup of a dead broker take a notification; without any it counts as lost."""
        if not next_in_region(state, cluster):
            state.counters.lost += out.task is not None
        super().stand_in(state, out, notification, cluster)
