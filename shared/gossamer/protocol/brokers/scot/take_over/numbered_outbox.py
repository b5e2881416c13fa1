"""The effects of a broker that takes over: what it sends is numbered, what it promises is kept."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from gossamer.protocol.brokers.core.identifiers import NAMELESS, Id
from gossamer.protocol.brokers.scot.memory.effects import Adopted, Settled
from gossamer.protocol.brokers.scot.memory.keeping import NOBODY, Copy, Keeping, Task
from gossamer.protocol.brokers.scot.memory.messages import (
    Acknowledge,
    BetweenBrokers,
    BidNotification,
    Gone,
    Notification,
    Numbered,
    Owed,
    Promised,
    ProxyNotification,
    Relay,
    Subscription,
    Taken,
    TakenBack,
    Tracked,
    Unsubscription,
)
from gossamer.protocol.brokers.scot.memory.outbox import Outbox
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.overlay.errors import ElsewhereError, GuestError
from gossamer.protocol.brokers.scot.overlay.labels import NO_CLUSTERS
from gossamer.protocol.brokers.scot.take_over.relaying import relay
from gossamer.protocol.content.filters import Filter


class KeepingOutbox(Outbox):
    """Collects the effects of one message under `ScotSettings.take_over`.

    Attributes:
        task: because of which messages are sent now; None if nobody waits for their end.
        keeping: the broker's memory of taking over.
    """

    def __init__(self, state: State, keeping: Keeping) -> None:
        super().__init__(state.counters)
        self.task: Task | None = None
        self.keeping = keeping
        self._state = state
        self._lost = 0

    def begin(self, task: Task) -> None:
        """Whatever is sent from now on is because of this task."""
        self.task = task
        self._lost = self._state.counters.lost

    def begin_for_client(self) -> int:
        """The same for a client's message; returns its ticket."""
        ticket = self.keeping.new_number()
        self.begin(Task(ticket))
        return ticket

    def end(self, *, again: bool = False) -> None:
        """Everything was sent; what had nowhere to go makes the task unsafe.

        Unless it is sent again, by a broker that will know where.
        """
        assert self.task is not None
        lost = not again and self._state.counters.lost != self._lost
        self.task.safe = self.task.safe and not lost
        self.finish(self.task)
        self.task = None

    def send(self, neighbour: str, message: BetweenBrokers) -> None:
        """Send a message, numbered if somebody waits for its end.

        Over a link that does not work nothing is sent; subscriptions go around it. Their ends take
        every way that they may still be on, so that none overtakes what it takes back.
        """
        followed = isinstance(message, Unsubscription) and self._follow(neighbour, message)
        if neighbour in self._state.down:
            if isinstance(message, Subscription | Unsubscription) and not followed:
                relay(self._state, self, neighbour, message)
            return
        if self.task is None or not isinstance(message, Tracked):
            super().send(neighbour, message)
            return
        number = self.keeping.new_number()
        self.keeping.copies[number] = Copy(neighbour, message, self.task)
        self.task.open += 1
        self._put(neighbour, Numbered(number, message), type(message).__name__)

    def _follow(self, neighbour: str, end: Unsubscription) -> bool:
        """Send the end of a subscription after it, by the ways around a link that it took.

        Returns whether there are any that it may still be on.
        """
        link = self._state.position.label, self._state.labels[neighbour]
        ways = {
            (copy.neighbour, evolve(copy.message, message=end)): None
            for copy in self.keeping.copies.values()
            if isinstance(copy.message, Relay)
            and copy.message.message.id == end.id
            and (copy.message.origin, *copy.message.path[-1:]) == link
        }
        for first, way in ways:
            self.send(first, way)
        return bool(ways)

    def give(
        self, name: str, notification: Notification | BidNotification, labels: tuple[str, ...]
    ) -> None:
        """Deliver a notification, unless it came before, and keep it until it is taken."""
        if isinstance(notification, BidNotification) or name.startswith(NAMELESS):
            super().give(name, notification, labels)
            return
        owed = self.keeping.owed.setdefault(name, {})
        if self.keeping.note(name, notification.id):
            super().give(name, notification, labels)
            owed[notification.id] = Owed(name, evolve(notification, targets=NO_CLUSTERS), labels)
        if notification.id in owed:
            self.back_up(owed[notification.id])

    def promise(self, name: str, label: str, id_: Id, wanted: Filter) -> None:
        """Let the backup remember a client's subscription."""
        if not name.startswith(NAMELESS):
            self.back_up(Promised(name, label, id_, wanted))

    def take_back(self, name: str, label: str) -> None:
        """Let the backup forget a client's subscription."""
        if not name.startswith(NAMELESS):
            self.back_up(TakenBack(name, label))

    def took(self, name: str, ids: Iterable[Id]) -> None:
        """Keep notifications of a client no longer."""
        owed = self.keeping.owed.get(name, {})
        taken = tuple(id_ for id_ in ids if owed.pop(id_, None) is not None)
        if taken:
            for kept in self.keeping.replicas.values():
                if name in kept.guests:
                    kept.took(name, taken)
            self.back_up(Taken(name, taken))

    def attach(self, name: str) -> None:
        """If the broker of a client that comes is dead, give it what it is owed.

        Raises `ElsewhereError`, and leaves everything as it was, if its broker is there.
        """
        for cluster, kept in self.keeping.replicas.items():
            if name not in kept.clients:
                continue
            home = self._state.secondary.get(cluster)
            place = self._state.position.label._replace(cluster=cluster)
            if home is not None and home not in self._state.down:
                raise ElsewhereError(name, str(place))
            kept.guests.add(name)
            promised = kept.promised.get(name, {}).values()
            asked = tuple((one.label, one.filter) for one in promised)
            self.effects.append(Adopted(name, str(place), asked))
            for owed in kept.owed.get(name, {}).values():
                self.give_owed(owed)

    def give_owed(self, owed: Owed) -> None:
        """Give a client what another broker owed it."""
        self.keeping.note(owed.client, owed.notification.id)
        super().give(owed.client, owed.notification, owed.labels)
        self.keeping.owed.setdefault(owed.client, {})[owed.notification.id] = owed
        self.back_up(owed)

    def check_own(self, name: str) -> None:
        """Raises `GuestError` for a client that is here because its broker is dead."""
        for cluster, kept in self.keeping.replicas.items():
            if name in kept.guests:
                raise GuestError(name, str(self._state.position.label._replace(cluster=cluster)))

    def detach(self, name: str) -> None:
        """A client is none any more."""
        self.keeping.owed.pop(name, None)
        for kept in self.keeping.replicas.values():
            kept.guests.discard(name)
        if not name.startswith(NAMELESS):
            self.back_up(Gone(name))

    def stand_in(self, notification: Notification, cluster: int) -> None:
        """Have the backup of a dead broker of this region take a notification."""
        name = next_in_region(self._state, cluster)
        if name == self._state.name:
            self.keep_for(notification, cluster)
        elif name is not None:
            self.send(name, ProxyNotification(notification, cluster))

    def keep_for(self, notification: Notification, cluster: int) -> None:
        """Take a notification for the clients of a broker of this region, which was dead.

        If that is back, it gets it. Clients that came here get it, for all others it is kept. Where
        nothing is known of that broker, the notification counts as lost.
        """
        home = self._state.secondary.get(cluster)
        if home is not None and home not in self._state.down:
            self.send(home, ProxyNotification(notification, cluster))
            return
        kept = self.keeping.replicas.get(cluster)
        if kept is None:
            self._state.counters.lost += 1
            return
        for name, labels in kept.matching(notification.values):
            if name in kept.guests:
                self.give(name, notification, labels)
            elif self.keeping.note(name, notification.id):
                owed = kept.owed.setdefault(name, {})
                owed[notification.id] = Owed(name, notification, labels)

    def back_up(self, message: Tracked) -> None:
        """Tell the backup, if there is one."""
        name = next_in_region(self._state, self._state.cluster)
        if name is not None:
            self.send(name, message)

    def send_alone(self, neighbour: str, message: Tracked) -> None:
        """Send a message again if it is not acknowledged, though nobody else waits for that."""
        self.begin(Task(NOBODY))
        self.send(neighbour, message)
        self.end()

    def finish(self, task: Task) -> None:
        """Nothing more follows from a task, or one message less."""
        task.open -= 1
        if task.open:
            return
        if task.source == NOBODY:
            return
        if isinstance(task.source, int):
            self.effects.append(Settled(task.source, task.safe))
            return
        name, number = task.source
        if name not in self._state.down and name in self._state.labels:
            super().send(name, Acknowledge(number, task.safe))


def next_in_region(state: State, cluster: int) -> str | None:
    """The broker that backs up the one of a cluster in this region; None if none works."""
    clusters = state.position.clusters
    for step in range(1, clusters):
        other = (cluster + step) % clusters
        name = state.name if other == state.cluster else state.secondary.get(other)
        if name is not None and name not in state.down:
            return name
    return None
