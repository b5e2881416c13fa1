"""What a broker remembers so that nothing it acknowledged is lost with it (`take_over`)."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.table import Entry
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters import Publication as Values

REMEMBERED: Final = 8192
"""Notifications by client, and ends by neighbour, that are recognised when they come again. Only
those come again that were under way when something failed; a guess at how many these are at most.
"""

Replayable = m.Subscription | m.Notification | m.Detour | m.Bypass | m.ProxyNotification
"""What a broker that does not know all does again when it does."""

NOBODY: Final = 0
"""The source of a task whose end nobody waits for."""


@define(eq=False)
class Task:
    """A message, and everything that was sent because of it.

    Attributes:
        source: who is told that it came to an end: a neighbour and its number of the message, or
            the ticket of a client's, or nobody; or a subscription that ends then.
        open: messages that are not acknowledged, and one while more may follow.
        safe: whether nothing was lost so far.
    """

    source: tuple[str, int] | int | Ending
    open: int = 1
    safe: bool = True


@define(eq=False)
class Ending:
    """A subscription that is gone, of which others hear once they know what it covered.

    Attributes:
        task: that its end follows from, if anybody waits for that.
    """

    entry: Entry
    task: Task | None


@define(eq=False)
class Copy:
    """A numbered message that a neighbour has not acknowledged."""

    neighbour: str
    message: m.Tracked
    task: Task


@define(eq=False)
class Held:
    """What is to be done again once the broker knows all that stands; the task waits for it."""

    task: Task
    hop: Hop
    message: Replayable


@define(eq=False)
class ReplicatedPromises:
    """What a broker of the region has promised its clients.

    Attributes:
        promised: subscriptions, by client and label.
        unacknowledged: notifications that were not taken, by client and in order.
        guests: clients that came here because their broker was dead.
        taken: notifications that guests took here and their broker may still keep, by client.
        acted: whether this broker has been the first backup since theirs was last here: then it
            knows what its clients took.
    """

    promised: dict[str, dict[str, m.Promised]] = field(factory=dict)
    unacknowledged: dict[str, dict[Id, m.UnacknowledgedDelivery]] = field(factory=dict)
    guests: set[str] = field(factory=set)
    acted: bool = False
    taken: dict[str, dict[Id, None]] = field(factory=dict)

    def acknowledge(self, name: str, ids: Iterable[Id]) -> None:
        """A guest has taken notifications.

        Its broker may still keep those that were handed over when it died, and some of the next.
        """
        kept, taken = self.unacknowledged.get(name, {}), self.taken.setdefault(name, {})
        for id_ in ids:
            if kept.pop(id_, None) is not None or len(taken) < REMEMBERED:
                taken[id_] = None

    def matching(self, values: Values) -> list[tuple[str, tuple[str, ...]]]:
        """The clients that want what was published, and by which of their subscriptions."""
        found = []
        for name in sorted(self.promised):
            wanted = self.promised[name].values()
            labels = tuple(one.label for one in wanted if one.filter.matches(values))
            if labels:
                found.append((name, labels))
        return found

    @property
    def clients(self) -> list[str]:
        """All that were promised something."""
        return sorted({*self.promised, *self.unacknowledged, *self.guests, *self.taken})


@define(eq=False)
class TakeOverMemory:
    """The memory of taking over.

    Attributes:
        next_number: of the next numbered message, or ticket.
        copies: numbered messages that are not acknowledged.
        unacknowledged: notifications that clients have not taken, by client and in order.
        replicas: what other brokers of the region have promised, by their clusters.
        seen: notifications by client that were delivered or kept lately.
        held: what is to be done again, in order.
        ended: subscriptions by neighbour whose end came around a link that seemed to work: they may
            still come over that.
        passing: messages under way, by the subscription that they make known.
        doubtful: subscriptions that may not be known everywhere though none is; they cover none.
    """

    next_number: int = 0
    copies: dict[int, Copy] = field(factory=dict)
    unacknowledged: dict[str, dict[Id, m.UnacknowledgedDelivery]] = field(factory=dict)
    replicas: dict[int, ReplicatedPromises] = field(factory=dict)
    seen: OrderedDict[tuple[str, Id], None] = field(factory=OrderedDict)
    held: list[Held] = field(factory=list)
    ended: OrderedDict[tuple[str, Id], None] = field(factory=OrderedDict)
    passing: Counter[Id] = field(factory=Counter)
    doubtful: set[Id] = field(factory=set)

    @property
    def guests(self) -> set[str]:
        """Clients that are here because their brokers are dead."""
        return {name for kept in self.replicas.values() for name in kept.guests}

    def restarted(self) -> None:
        """The broker was started again: whatever was under way goes other ways."""
        self.doubtful = self.unproven
        self.passing.clear()
        self.copies.clear()
        self.held.clear()

    @property
    def unproven(self) -> set[Id]:
        """Subscriptions that were passed on and may not be known everywhere."""
        return self.doubtful | self.passing.keys()

    def keep(self, copy: Copy) -> int:
        """Keep what is sent until it is acknowledged; returns its number."""
        number = self.new_number()
        self.copies[number] = copy
        told = subscription_in(copy.message)
        if told is not None:
            self.passing[told] += 1
        return number

    def drop(self, number: int) -> Copy:
        """Keep that no longer."""
        copy = self.copies.pop(number)
        told = subscription_in(copy.message)
        if told is not None:
            self.passing[told] -= 1
            if not self.passing[told]:
                del self.passing[told]
        return copy

    def new_number(self) -> int:
        """A number that was never used."""
        self.next_number += 1
        return self.next_number

    def note(self, client: str, id_: Id) -> bool:
        """Remember a notification of a client; returns whether it is new."""
        return _remember(self.seen, (client, id_))

    def note_end(self, neighbour: str, id_: Id) -> None:
        """Remember that the end of a neighbour's subscription came by another way."""
        _remember(self.ended, (neighbour, id_))

    def link_changed(self, neighbour: str) -> None:
        """Whatever was under way on a link has come, or will not."""
        for name, id_ in [one for one in self.ended if one[0] == neighbour]:
            del self.ended[name, id_]


def subscription_in(message: m.Tracked) -> Id | None:
    """The subscription that a message makes known, on its way or around a link; None if none."""
    carried = message.message if isinstance(message, m.Relay) else message
    return carried.id if isinstance(carried, m.Subscription) else None


def _remember(known: OrderedDict[tuple[str, Id], None], one: tuple[str, Id]) -> bool:
    if one in known:
        return False
    known[one] = None
    if len(known) > REMEMBERED:
        known.popitem(last=False)
    return True


# The points at which taking over has a say, and what happens there without it: nothing more.
#
# A broker's state has one such object. Under `ScotSettings.take_over` it is a
# `take_over.take_over.TakeOver`, and beside such brokers a `take_over.take_over.Bystander`. What
# neighbours make of subscriptions (`broadcast`) is all that asks otherwise who takes over.

if TYPE_CHECKING:
    from gossamer.protocol.brokers.scot.state import ScotOutbox, State
    from gossamer.protocol.brokers.scot.table import Entry

    CarryOut = Callable[[State, ScotOutbox, str, Any], None]
    Route = Callable[[State, ScotOutbox, Hop, m.BetweenBrokers], None]


class NoTakeOver:
    """What a broker does that takes nobody's clients over.

    Attributes:
        memory: what is remembered for taking over; None without that.
    """

    memory: TakeOverMemory | None = None

    # Around messages

    def from_client(
        self, state: State, out: ScotOutbox, name: str, message: object, carry_out: CarryOut
    ) -> None:
        """A client asks for something."""
        carry_out(state, out, name, message)

    def from_neighbour(
        self, state: State, out: ScotOutbox, source: Hop, message: m.BetweenBrokers, route: Route
    ) -> None:
        """A neighbour has sent something."""
        route(state, out, source, message)

    def after_host(self, state: State, out: ScotOutbox, message: object) -> None:
        """The broker has taken note of what the host reported."""

    # Links

    def backups(self, state: State) -> tuple[str, ...]:
        """The neighbours that back this broker up, in the order in which they take over."""
        return ()

    def link_came(self, state: State, out: ScotOutbox, name: str) -> None:
        """A link works, and its other end was told nothing yet."""

    def link_changed(
        self, state: State, out: ScotOutbox, name: str, before: tuple[str, ...], *, works: bool
    ) -> None:
        """A link came or went; `before` that, others may have been the backups."""

    # What is sent and delivered

    def send(
        self, state: State, out: ScotOutbox, neighbour: str, message: m.BetweenBrokers
    ) -> None:
        """A message is to be sent."""
        out.put(neighbour, message, type(message).__name__)

    def give(
        self, state: State, out: ScotOutbox, name: str, notification: m.Handed, labels: m.Labels
    ) -> None:
        """A client is to be handed a notification."""
        out.deliver(name, notification, labels)

    def stand_in(
        self, state: State, out: ScotOutbox, notification: m.Notification, cluster: int
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
        return False

    def ends(self, neighbour: str, id_: Id) -> None:
        """The end of a subscription came by another way than its link, which works."""

    def stands(self, id_: Id) -> bool:
        """Whether a subscription that was passed on is known wherever it went, and may cover."""
        return True

    def doubt(self, id_: Id) -> None:
        """A subscription had no way to some broker."""

    def replacing(self, state: State, out: ScotOutbox, gone: Entry, *, covered: bool) -> bool:
        """A subscription ended; what it alone covered, if anything, is passed on next.

        Returns whether `replaced` sees to its end once that has been passed on.
        """
        return False

    def replaced(self, state: State, out: ScotOutbox) -> None:
        """What was announced to `replacing` has been passed on."""

    @property
    def passes_on_again(self) -> bool:
        """Whether a subscription that comes again goes on again."""
        return False


NO_TAKE_OVER = NoTakeOver()
