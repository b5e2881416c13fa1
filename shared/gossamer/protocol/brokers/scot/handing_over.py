"""Between brokers of a region: what a backup remembers, and how it hands that back.

See `take_over` for what is promised.
"""

from __future__ import annotations

from attrs import evolve

from gossamer.protocol.brokers.core.effects import Dismissed, Withdrawn
from gossamer.protocol.brokers.core.messages import NAMELESS, Hop, client
from gossamer.protocol.brokers.core.state import Session
from gossamer.protocol.brokers.scot import broadcast
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.detours import again, within_cluster
from gossamer.protocol.brokers.scot.promises import Promises, next_in_region
from gossamer.protocol.brokers.scot.state import ScotOutbox, State, wrong_clusters
from gossamer.protocol.brokers.scot.table import Entry
from gossamer.protocol.brokers.scot.take_over_memory import (
    Copy,
    ReplicatedPromises,
    TakeOverMemory,
    subscription_in,
)


def on_taking_over(
    own: Promises, state: State, out: ScotOutbox, hop: Hop, message: m.TakingOver
) -> None:
    """Take what a broker of the same region sent, so that either can stand in for the other.

    Raises `RemoteProtocolError`, and leaves everything as it was, for a broker of another region,
    and for a notification that is for a cluster that does not exist.
    """
    if isinstance(message, m.Acknowledge):
        _on_acknowledge(own, state, out, hop, message)
        return
    if isinstance(message, m.Relay):
        broadcast.on_relay(state, out, hop, message)
        return
    memory = own.memory
    sender = state.labels[hop.name].cluster
    if sender == state.cluster:
        kind = type(message).__name__
        raise wrong_clusters(kind, hop.name, [sender], "expected a broker of the same region")
    match message:
        case m.ProxyNotification():
            _on_proxy_notification(own, state, out, hop, message)
        case m.HandBack():
            _on_hand_back(own, state, out, hop, message)
        case m.Replica(promised, deliveries):
            memory.replicas[sender] = kept = ReplicatedPromises()
            for one in (*promised, *deliveries):
                _remember(memory, kept, one)
        case m.NoBackup():
            memory.replicas.pop(sender, None)
        case _:
            _remember(memory, memory.replicas.setdefault(sender, ReplicatedPromises()), message)
            if isinstance(message, m.Taken):
                _taken_by_guest(memory, sender, message)


def _taken_by_guest(memory: TakeOverMemory, sender: int, message: m.Taken) -> None:
    """A client that another backup has taken over needs these no more, whoever is its next."""
    for cluster, replica in memory.replicas.items():
        if cluster != sender and message.client in replica.clients:
            replica.acknowledge(message.client, message.ids)


def _on_proxy_notification(
    own: Promises, state: State, out: ScotOutbox, hop: Hop, message: m.ProxyNotification
) -> None:
    if not 0 <= message.cluster < state.position.clusters:
        expected = f"expected one from 0 to {state.position.clusters - 1}"
        raise wrong_clusters("ProxyNotification", hop.name, [message.cluster], expected)
    if message.cluster == state.cluster:
        local = within_cluster(state, message.notification, None).local
        out.deliver_to(message.notification, local)
    else:
        own.keep_for(state, out, message.notification, message.cluster)


def _on_acknowledge(
    own: Promises, state: State, out: ScotOutbox, hop: Hop, message: m.Acknowledge
) -> None:
    """Something that was sent on has come to its end."""
    copy = own.memory.copies.get(message.number)
    if copy is None or copy.neighbour != hop.name:
        state.counters.stale += 1
        return
    own.memory.drop(message.number)
    told = subscription_in(copy.message)
    if told is not None and not message.safe and state.table.get(told) is not None:
        own.memory.doubtful.add(told)
    copy.task.safe = copy.task.safe and message.safe
    own.finish(state, out, copy.task)


def send_again(own: Promises, state: State, out: ScotOutbox, name: str) -> None:
    """Send again, by other ways, what a neighbour has not acknowledged; its link is down."""
    for number, copy in list(own.memory.copies.items()):
        if copy.neighbour == name:
            own.memory.drop(number)
            own.begin(state, out, copy.task)
            _send_again(own, state, out, copy)
            own.end(state, out)


def hand_back(own: Promises, state: State, out: ScotOutbox, name: str) -> None:
    """Hand back to a broker of this region what its clients have not had, and let them go."""
    cluster = state.labels[name].cluster
    kept = own.memory.replicas.get(cluster)
    if cluster == state.cluster or kept is None:
        return
    acted, kept.acted = kept.acted, False
    if not (state.takes_over(name) and state.takes_over(state.name)):
        # It is no backup of that broker any more, and hears no more of its clients.
        del own.memory.replicas[cluster]
    is_first = state.name in next_in_region(state, cluster, as_it_was=True)[:1]
    if not (is_first or acted or kept.guests):
        return  # Those that were first know what the clients took there.
    for one in kept.clients:
        guest = one in kept.guests
        waiting = (own.memory if guest else kept).unacknowledged.get(one, {})
        promised = tuple(kept.promised.get(one, {}).values())
        taken = tuple(kept.taken.get(one, {}))
        own.send_alone(state, out, name, m.HandBack(one, taken, promised, tuple(waiting.values())))
        if guest:
            del state.clients[one]
            own.detach(state, out, one)
            out.add(Dismissed(one, str(state.labels[name])))


def note_acting(own: Promises, state: State) -> None:
    """A link came or went: note for which brokers that are gone this one is the first backup."""
    for cluster, kept in own.memory.replicas.items():
        name = state.secondary.get(cluster)
        if name in state.down and state.name in next_in_region(state, cluster)[:1]:
            kept.acted = True


def backups_changed(
    own: Promises, state: State, out: ScotOutbox, before: tuple[str, ...], came: str
) -> None:
    """A link came or went: tell a new backup everything, and an old one that it is none.

    So is who comes back: it may have been one when this broker had more backups, or when another
    was dead.
    """
    now = own.backups(state)
    back = came in state.secondary.values() and came not in state.unknown
    former = (*before, came) if back and state.settings.take_over else before
    for name in dict.fromkeys(former):
        if name not in now and name in state.labels and state.takes_over(name):
            out.send(name, m.NoBackup())
    for name in now:
        if name not in before:
            out.send(name, _replica(state, own.memory))


def _send_again(own: Promises, state: State, out: ScotOutbox, copy: Copy) -> None:
    match copy.message:
        case m.Notification() | m.Detour() | m.Bypass():
            again(state, out, copy.neighbour, copy.message)
        case m.ProxyNotification(notification, cluster):
            own.stand_in(state, out, notification, cluster)
        case m.Subscription() | m.Unsubscription():
            broadcast.relay(state, out, copy.neighbour, copy.message)
        case m.Relay():
            path = (state.labels[copy.neighbour], *copy.message.path)
            broadcast.hand_on(state, out, evolve(copy.message, path=path))
        case m.HandBack():
            _take_again(state, own.memory, copy.neighbour, copy.message)
        case m.UnacknowledgedDelivery(name, notification) as message:
            if notification.id in own.memory.unacknowledged.get(name, {}):
                own.back_up(state, out, message)
        case message:
            own.back_up(state, out, message)


def _remember(memory: TakeOverMemory, kept: ReplicatedPromises, message: object) -> None:
    match message:
        case m.Promised(name, label):
            kept.promised.setdefault(name, {})[label] = message
        case m.TakenBack(name, label):
            kept.promised.get(name, {}).pop(label, None)
        case m.UnacknowledgedDelivery(name, notification):
            memory.note(name, notification.id)
            kept.unacknowledged.setdefault(name, {})[notification.id] = message
        case m.Taken(name, ids):
            for id_ in ids:
                kept.unacknowledged.get(name, {}).pop(id_, None)
        case m.ClientLeft(name):
            kept.promised.pop(name, None)
            kept.unacknowledged.pop(name, None)


def _on_hand_back(
    own: Promises, state: State, out: ScotOutbox, hop: Hop, message: m.HandBack
) -> None:
    """Go on with a client; a broker that has lost its memory first attaches it again."""
    name = message.client
    if hop.name in state.unknown:
        _attach_again(own, state, out, message)
    if name not in state.clients:
        return
    waiting = own.memory.unacknowledged.get(name, {})
    taken = tuple(id_ for id_ in message.taken if id_ in waiting or not state.settings.take_over)
    if taken:
        out.add(Withdrawn(name, taken))
        own.acknowledge(state, out, name, taken)
    for id_ in message.taken:
        own.memory.note(name, id_)
    for one in message.unacknowledged:
        own.give(state, out, name, one.notification, one.labels)


def _attach_again(own: Promises, state: State, out: ScotOutbox, message: m.HandBack) -> None:
    session = state.clients.setdefault(message.client, Session(message.client))
    for one in message.promised:
        if one.label not in session.subscriptions and state.table.get(one.id) is None:
            session.subscriptions[one.label] = one.id
            hop = client(session.name)
            entry = Entry(one.id, one.filter, hop, broadcast.host_cluster(state), one.label)
            broadcast.subscribe(state, out, entry)
            own.promise(state, out, session.name, one.label, one.id, one.filter)


def _take_again(state: State, memory: TakeOverMemory, name: str, message: m.HandBack) -> None:
    """Keep what could not be handed back."""
    kept = memory.replicas.setdefault(state.labels[name].cluster, ReplicatedPromises())
    kept.taken.setdefault(message.client, {}).update(dict.fromkeys(message.taken))
    for one in message.promised:
        kept.promised.setdefault(message.client, {}).setdefault(one.label, one)
    for delivery in message.unacknowledged:
        waiting = kept.unacknowledged.setdefault(message.client, {})
        waiting.setdefault(delivery.notification.id, delivery)


def _replica(state: State, memory: TakeOverMemory) -> m.Replica:
    promised = (
        m.Promised(session.name, label, id_, state.table[id_].filter)
        for session in state.clients.values()
        if not session.name.startswith(NAMELESS)
        for label, id_ in session.subscriptions.items()
    )
    waiting = (one for held in memory.unacknowledged.values() for one in held.values())
    return m.Replica(tuple(promised), tuple(waiting))
