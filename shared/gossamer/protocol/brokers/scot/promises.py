"""What is promised is numbered, kept until it is acknowledged, and known to a backup first."""

from __future__ import annotations

import itertools

from attrs import evolve

from gossamer.protocol.brokers.core.effects import Adopted, Settled
from gossamer.protocol.brokers.core.messages import NAMELESS, ClientError, Id
from gossamer.protocol.brokers.scot import broadcast
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.broadcast import relay
from gossamer.protocol.brokers.scot.state import ScotOutbox, State
from gossamer.protocol.brokers.scot.table import Entry
from gossamer.protocol.brokers.scot.take_over_memory import (
    NOBODY,
    Copy,
    Ending,
    NoTakeOver,
    TakeOverMemory,
    Task,
)
from gossamer.protocol.brokers.scot.topology import NO_CLUSTERS
from gossamer.protocol.content.filters import Filter


class Promises(NoTakeOver):
    """What a broker does under `ScotSettings.take_over` with what it sends and promises.

    Attributes:
        memory: what it remembers for that.
    """

    memory: TakeOverMemory

    def __init__(self, memory: TakeOverMemory) -> None:
        self.memory = memory

    # Tasks

    def begin(self, state: State, out: ScotOutbox, task: Task) -> None:
        """Whatever is sent from now on is because of this task."""
        out.task = task
        out.lost_before = state.counters.lost

    def begin_for_client(self, state: State, out: ScotOutbox) -> int:
        """The same for a client's message; returns its ticket."""
        ticket = self.memory.new_number()
        self.begin(state, out, Task(ticket))
        return ticket

    def end(self, state: State, out: ScotOutbox, *, again: bool = False) -> None:
        """Everything was sent; what had nowhere to go makes the task unsafe.

        Unless it is sent again, by a broker that will know where.
        """
        task = out.task
        assert task is not None
        lost = not again and state.counters.lost != out.lost_before
        task.safe = task.safe and not lost
        self.finish(state, out, task)
        out.task = None

    def finish(self, state: State, out: ScotOutbox, task: Task) -> None:
        """Nothing more follows from a task, or one message less."""
        task.open -= 1
        if task.open or task.source == NOBODY:
            return
        if isinstance(task.source, int):
            out.add(Settled(task.source, task.safe))
            return
        if isinstance(task.source, Ending):
            self._pass_on_end(state, out, task.source)
            return
        name, number = task.source
        if name not in state.down and name in state.labels:
            super().send(state, out, name, m.Acknowledge(number, task.safe))

    # Subscriptions that cover others

    def stands(self, id_: Id) -> bool:
        """Whether all that followed from a subscription is acknowledged."""
        return id_ not in self.memory.passing and id_ not in self.memory.doubtful

    def doubt(self, id_: Id) -> None:
        """It covers none, as it may not be known everywhere."""
        self.memory.doubtful.add(id_)

    def replacing(self, state: State, out: ScotOutbox, gone: Entry, *, covered: bool) -> bool:
        """The end of a subscription waits until what it covered is known everywhere."""
        self.memory.doubtful.discard(gone.id)
        if not covered:
            return False
        if out.task is not None:
            out.task.open += 1
        out.task = Task(Ending(gone, out.task))
        return True

    def replaced(self, state: State, out: ScotOutbox) -> None:
        """If all is acknowledged already, the end need not wait."""
        task = out.task
        assert task is not None
        assert isinstance(task.source, Ending)
        out.task = task.source.task
        self.finish(state, out, task)

    def _pass_on_end(self, state: State, out: ScotOutbox, ending: Ending) -> None:
        during, before, out.task = out.task, state.counters.lost, ending.task
        broadcast.pass_on_end(state, out, ending.entry)
        out.task = during
        if ending.task is not None:
            ending.task.safe = ending.task.safe and state.counters.lost == before
            self.finish(state, out, ending.task)

    # What is sent

    def send(
        self, state: State, out: ScotOutbox, neighbour: str, message: m.BetweenBrokers
    ) -> None:
        """Send a message, numbered if somebody waits for its end.

        Over a link that does not work nothing is sent; subscriptions go around it. Their ends take
        every way that they may still be on, so that none overtakes what it takes back.
        """
        followed = isinstance(message, m.Unsubscription) and self._follow(
            state, out, neighbour, message
        )
        if neighbour in state.down:
            # A subscription that nobody waits for is told when the link is up: around it, its end
            # could not follow it, and might come first.
            if (isinstance(message, m.Subscription) and out.task is not None) or (
                isinstance(message, m.Unsubscription) and not followed
            ):
                relay(state, out, neighbour, message)
            return
        if out.task is None or not isinstance(message, m.Tracked):
            super().send(state, out, neighbour, message)
            return
        number = self.memory.keep(Copy(neighbour, message, out.task))
        out.task.open += 1
        out.put(neighbour, m.Numbered(number, message), type(message).__name__)

    def _follow(self, state: State, out: ScotOutbox, neighbour: str, end: m.Unsubscription) -> bool:
        """Send the end of a subscription after it, by the ways around a link that it took.

        Returns whether there are any that it may still be on.
        """
        link = state.position.label, state.labels[neighbour]
        ways = {
            (copy.neighbour, evolve(copy.message, message=end)): None
            for copy in self.memory.copies.values()
            if isinstance(copy.message, m.Relay)
            and isinstance(copy.message.message, m.Subscription | m.Unsubscription)
            and copy.message.message.id == end.id
            and (copy.message.origin, *copy.message.path[-1:]) == link
        }
        for first, way in ways:
            out.send(first, way)
        return bool(ways)

    def back_up(self, state: State, out: ScotOutbox, message: m.Tracked) -> None:
        """Tell the backups, if there are any."""
        for name in self.backups(state):
            out.send(name, message)

    def send_alone(self, state: State, out: ScotOutbox, neighbour: str, message: m.Tracked) -> None:
        """Send a message again if it is not acknowledged, though nobody else waits for that."""
        self.begin(state, out, Task(NOBODY))
        out.send(neighbour, message)
        self.end(state, out)

    def backups(self, state: State) -> tuple[str, ...]:
        """The next brokers of this region whose links work."""
        return next_in_region(state, state.cluster)

    # What is delivered

    def give(
        self, state: State, out: ScotOutbox, name: str, notification: m.Handed, labels: m.Labels
    ) -> None:
        """Deliver a notification, unless it came before, and keep it until it is acknowledged."""
        if isinstance(notification, m.BidNotification) or name.startswith(NAMELESS):
            out.deliver(name, notification, labels)
            return
        kept = self.memory.unacknowledged.setdefault(name, {})
        if self.memory.note(name, notification.id):
            out.deliver(name, notification, labels)
            plain = evolve(notification, targets=NO_CLUSTERS)
            kept[notification.id] = m.UnacknowledgedDelivery(name, plain, labels)
        if notification.id in kept:
            self.back_up(state, out, kept[notification.id])

    def give_on(self, state: State, out: ScotOutbox, one: m.UnacknowledgedDelivery) -> None:
        """Give a client what another broker could not."""
        self.memory.note(one.client, one.notification.id)
        out.deliver(one.client, one.notification, one.labels)
        self.memory.unacknowledged.setdefault(one.client, {})[one.notification.id] = one
        self.back_up(state, out, one)

    def acknowledge(self, state: State, out: ScotOutbox, name: str, ids: tuple[Id, ...]) -> None:
        """Keep notifications of a client no longer."""
        kept = self.memory.unacknowledged.get(name, {})
        taken = tuple(id_ for id_ in ids if kept.pop(id_, None) is not None)
        if taken:
            for replica in self.memory.replicas.values():
                if name in replica.guests:
                    replica.acknowledge(name, taken)
            self.back_up(state, out, m.Taken(name, taken))

    # What clients ask for

    def promise(
        self, state: State, out: ScotOutbox, name: str, label: str, id_: Id, wanted: Filter
    ) -> None:
        """Let the backup remember a client's subscription."""
        if not name.startswith(NAMELESS):
            self.back_up(state, out, m.Promised(name, label, id_, wanted))

    def take_back(self, state: State, out: ScotOutbox, name: str, label: str) -> None:
        """Let the backup forget a client's subscription."""
        if not name.startswith(NAMELESS):
            self.back_up(state, out, m.TakenBack(name, label))

    def attach(self, state: State, out: ScotOutbox, name: str) -> None:
        """If the broker of a client that comes is dead, give it what that has not delivered.

        Raises `ClientError`, and leaves everything as it was, if its broker is there, or a
        backup that takes over before this one.
        """
        homes = [c for c, replica in self.memory.replicas.items() if name in replica.clients]
        for cluster in homes:
            self._check_dead(state, name, cluster)
        waiting: dict[Id, m.UnacknowledgedDelivery] = {}
        for cluster in homes:
            replica = self.memory.replicas[cluster]
            replica.guests.add(name)
            waiting |= replica.unacknowledged.get(name, {})
            promised = replica.promised.get(name, {}).values()
            if promised or len(homes) == 1:
                place = state.position.label._replace(cluster=cluster)
                asked = tuple((one.label, one.filter) for one in promised)
                out.add(Adopted(name, str(place), asked))
        for one in waiting.values():
            self.give_on(state, out, one)

    def _check_dead(self, state: State, name: str, cluster: int) -> None:
        home = state.secondary.get(cluster)
        if home is None or home in state.down:
            home = next(iter(next_in_region(state, cluster)), state.name)
        if home != state.name:
            reason = f"is a client of broker {state.labels[home]}, which is there"
            raise ClientError(name, f"{reason}: expected it to go there, or another name")

    def detach(self, state: State, out: ScotOutbox, name: str) -> None:
        """Forget what was kept for a client, here and at the backup."""
        self.memory.unacknowledged.pop(name, None)
        for replica in self.memory.replicas.values():
            replica.guests.discard(name)
        if not name.startswith(NAMELESS):
            self.back_up(state, out, m.ClientLeft(name))

    def check_own(self, state: State, name: str) -> None:
        """Raises `ClientError` for a client that is here because its broker is dead."""
        for cluster, replica in self.memory.replicas.items():
            if name in replica.guests:
                own = state.position.label._replace(cluster=cluster)
                raise ClientError(
                    name,
                    f"is here as long as its broker {own} is not there, and cannot change what it "
                    "has asked for until that is back",
                )

    # Clients of a dead broker

    def stand_in(
        self, state: State, out: ScotOutbox, notification: m.Notification, cluster: int
    ) -> None:
        """Have the first backup of a dead broker of this region take a notification."""
        for name in next_in_region(state, cluster)[:1]:
            if name == state.name:
                self.keep_for(state, out, notification, cluster)
            else:
                out.send(name, m.ProxyNotification(notification, cluster))

    def keep_for(
        self, state: State, out: ScotOutbox, notification: m.Notification, cluster: int
    ) -> None:
        """Take a notification for the clients of a broker of this region, which was dead.

        If that is back, it gets it. Clients that came here get it, for all others it is kept, by
        the first backup at the others, too. Where nothing is known of that broker, or not all as it
        had no backups, the notification counts as lost.
        """
        home = state.secondary.get(cluster)
        if home is not None and home not in state.down:
            out.send(home, m.ProxyNotification(notification, cluster))
            return
        replica = self.memory.replicas.get(cluster)
        state.counters.lost += replica is None or home in state.not_taking_over
        if replica is None:
            return
        self._have_kept(state, out, m.ProxyNotification(notification, cluster))
        for name, labels in replica.matching(notification.values):
            if name in replica.guests:
                self.give(state, out, name, notification, labels)
            elif self.memory.note(name, notification.id):
                kept = replica.unacknowledged.setdefault(name, {})
                kept[notification.id] = m.UnacknowledgedDelivery(name, notification, labels)

    def _have_kept(self, state: State, out: ScotOutbox, message: m.ProxyNotification) -> None:
        """As first backup, have the others keep what this one keeps.

        Those before it in order may live though the links to them do not work: then a client may be
        with them. Where more than one backup is kept they are told, around those links.
        """
        backups = next_in_region(state, message.cluster)
        if backups[:1] != (state.name,):
            return
        for name in backups[1:]:
            out.send(name, message)
        clusters = state.position.clusters
        before = (state.cluster - message.cluster) % clusters
        for step in range(1, before) if state.settings.backups > 1 else ():
            other = state.secondary.get((message.cluster + step) % clusters)
            if other is not None and state.takes_over(other):
                relay(state, out, other, message)


def next_in_region(state: State, cluster: int, *, as_it_was: bool = False) -> tuple[str, ...]:
    """The brokers that back up the one of a cluster in this region, as far as they work.

    Args:
        state: of the broker that asks.
        cluster: of the one that is backed up.
        as_it_was: count this broker among them though it takes nobody's clients over any more.
    """
    clusters = state.position.clusters
    others = ((cluster + step) % clusters for step in range(1, clusters))
    names = (state.name if c == state.cluster else state.secondary.get(c) for c in others)
    working = (
        name
        for name in names
        if name is not None
        and name not in state.down
        and (state.takes_over(name) or (as_it_was and name == state.name))
    )
    return tuple(itertools.islice(working, state.settings.backups))
