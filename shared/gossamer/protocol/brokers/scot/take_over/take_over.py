"""Taking over the clients of a dead broker; beyond the paper, `ScotSettings.take_over`.

What is promised, while one broker or one link at a time fails for good or for a while, and links
have settled before the next does:

- A subscription that was acknowledged as safe gets every notification that is acknowledged as safe
  to its publisher afterwards, whichever broker is dead, its own included.
- Nobody gets a notification twice from the same broker. A client that was taken over may get again
  what it took just before its broker died.

How:

- *Acknowledgements follow the way back.* Subscriptions and notifications are numbered by whoever
  sends them on. A broker acknowledges one when all that it sent because of it is acknowledged
  (`keeping.Task`), so that the host broker knows when everybody has it.
- *A backup knows first.* The backup of a broker is the one of its region in the next cluster whose
  link works. It is told what the broker promises its clients: their subscriptions, and
  notifications until they are taken. Those count as sent on: nothing is acknowledged before the
  backup has acknowledged it.
- *What was under way is sent again.* Copies that were not acknowledged when a link fails go around
  it, notifications by `around.again` and subscriptions by `relaying`. Whoever gets a notification
  twice passes it on twice; hosts deliver it once.
- *The backup stands in.* Routing tables are what they would be without failures: notifications
  for the clients of a dead broker lead there, go around it by way of its region, and are handed to
  its backup (`ProxyNotification`). That delivers them to clients that came to it, and keeps them
  for the others.
- *It hands back.* When the broker is there again, it gets what its clients are owed, is told what
  they have taken meanwhile, and is sent on what comes to the backup late.
- *Who comes back does all twice* until it knows what it has missed (`coming_back`).

Not promised: where no other broker of the region works, what is promised has no backup. Names of
clients that ask for something have to differ within a region.
"""

from __future__ import annotations

from attrs import evolve

from gossamer.protocol.brokers.core.identifiers import NAMELESS, Hop, client
from gossamer.protocol.brokers.scot.memory.effects import Dismissed, Withdrawn
from gossamer.protocol.brokers.scot.memory.keeping import Copy, Keeping, Kept
from gossamer.protocol.brokers.scot.memory.messages import (
    Acknowledge,
    Bypass,
    Detour,
    Gone,
    HandBack,
    Notification,
    Owed,
    Promised,
    ProxyNotification,
    Relay,
    Replica,
    Subscription,
    Taken,
    TakenBack,
    TakingOver,
    Unsubscription,
)
from gossamer.protocol.brokers.scot.memory.state import Session, State
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.brokers.scot.overlay.errors import WrongClusterError
from gossamer.protocol.brokers.scot.routing.around import again
from gossamer.protocol.brokers.scot.routing.broadcast import host_cluster, subscribe
from gossamer.protocol.brokers.scot.routing.targets import within_cluster
from gossamer.protocol.brokers.scot.take_over.numbered_outbox import KeepingOutbox, next_in_region
from gossamer.protocol.brokers.scot.take_over.relaying import hand_on, on_relay, relay


def on_taking_over(state: State, out: KeepingOutbox, hop: Hop, message: TakingOver) -> None:
    """Take what a broker of the same region sent, so that either can stand in for the other.

    Raises `WrongClusterError`, and leaves everything as it was, for a broker of another region, and
    for a notification that is for a cluster that does not exist.
    """
    if isinstance(message, Acknowledge):
        _on_acknowledge(state, out, hop, message)
        return
    if isinstance(message, Relay):
        on_relay(state, out, hop, message)
        return
    keeping = out.keeping
    sender = state.labels[hop.name].cluster
    if sender == state.cluster:
        kind = type(message).__name__
        raise WrongClusterError(kind, hop.name, [sender], "expected a broker of the same region")
    match message:
        case ProxyNotification():
            _on_proxy_notification(state, out, hop, message)
        case HandBack():
            _on_hand_back(state, out, hop, message)
        case Replica(promised, owed):
            keeping.replicas[sender] = kept = Kept()
            for one in (*promised, *owed):
                _remember(keeping, kept, one)
        case _:
            _remember(keeping, keeping.replicas.setdefault(sender, Kept()), message)


def _on_proxy_notification(
    state: State, out: KeepingOutbox, hop: Hop, message: ProxyNotification
) -> None:
    if not 0 <= message.cluster < state.position.clusters:
        expected = f"expected one from 0 to {state.position.clusters - 1}"
        raise WrongClusterError("Stead", hop.name, [message.cluster], expected)
    if message.cluster == state.cluster:
        own = within_cluster(state, message.notification, None).local
        out.deliver(message.notification, own)
    else:
        out.keep_for(message.notification, message.cluster)


def _on_acknowledge(state: State, out: KeepingOutbox, hop: Hop, message: Acknowledge) -> None:
    """Something that was sent on has come to its end."""
    copy = out.keeping.copies.get(message.number)
    if copy is None or copy.neighbour != hop.name:
        state.counters.stale += 1
        return
    del out.keeping.copies[message.number]
    copy.task.safe = copy.task.safe and message.safe
    out.finish(copy.task)


def on_link_down(state: State, out: KeepingOutbox, name: str) -> None:
    """Send again, by other ways, what a neighbour has not acknowledged; its link is down."""
    for number, copy in list(out.keeping.copies.items()):
        if copy.neighbour == name:
            del out.keeping.copies[number]
            out.begin(copy.task)
            _send_again(state, out, copy)
            out.end()


def hand_back(state: State, out: KeepingOutbox, name: str) -> None:
    """Hand back to a broker of this region what its clients are owed, and let them go."""
    cluster = state.labels[name].cluster
    kept = out.keeping.replicas.get(cluster)
    if cluster == state.cluster or kept is None:
        return
    for one in kept.clients:
        guest = one in kept.guests
        owed = (out.keeping.owed if guest else kept.owed).get(one, {})
        promised = tuple(kept.promised.get(one, {}).values())
        taken = tuple(kept.taken.get(one, {}))
        out.send_alone(name, HandBack(one, taken, promised, tuple(owed.values())))
        if guest:
            del state.clients[one]
            out.detach(one)
            out.effects.append(Dismissed(one, str(state.labels[name])))


def backup_changed(state: State, out: KeepingOutbox, before: str | None) -> None:
    """A link came or went: tell a new backup everything, and an old one that it is none."""
    now = next_in_region(state, state.cluster)
    if now == before:
        return
    if before is not None and before in state.labels:
        out.send(before, Replica((), ()))
    if now is not None:
        out.send(now, _replica(state, out.keeping))


def _send_again(state: State, out: KeepingOutbox, copy: Copy) -> None:
    match copy.message:
        case Notification() | Detour() | Bypass():
            again(state, out, copy.neighbour, copy.message)
        case ProxyNotification(notification, cluster):
            out.stand_in(notification, cluster)
        case Subscription() | Unsubscription():
            relay(state, out, copy.neighbour, copy.message)
        case Relay():
            path = (state.labels[copy.neighbour], *copy.message.path)
            hand_on(state, out, evolve(copy.message, path=path))
        case HandBack():
            _take_again(state, out.keeping, copy.neighbour, copy.message)
        case message:
            out.back_up(message)


def _remember(keeping: Keeping, kept: Kept, message: object) -> None:
    match message:
        case Promised(name, label):
            kept.promised.setdefault(name, {})[label] = message
        case TakenBack(name, label):
            kept.promised.get(name, {}).pop(label, None)
        case Owed(name, notification):
            keeping.note(name, notification.id)
            kept.owed.setdefault(name, {})[notification.id] = message
        case Taken(name, ids):
            for id_ in ids:
                kept.owed.get(name, {}).pop(id_, None)
        case Gone(name):
            kept.promised.pop(name, None)
            kept.owed.pop(name, None)


def _on_hand_back(state: State, out: KeepingOutbox, hop: Hop, message: HandBack) -> None:
    """Go on with a client; a broker that has lost its memory first attaches it again."""
    name = message.client
    if hop.name in state.unknown:
        _attach_again(state, out, message)
    if name not in state.clients:
        return
    owed = out.keeping.owed.get(name, {})
    taken = tuple(id_ for id_ in message.taken if id_ in owed)
    if taken:
        out.effects.append(Withdrawn(name, taken))
        out.took(name, taken)
    for id_ in message.taken:
        out.keeping.note(name, id_)
    for one in message.owed:
        out.give(name, one.notification, one.labels)


def _attach_again(state: State, out: KeepingOutbox, message: HandBack) -> None:
    session = state.clients.setdefault(message.client, Session(message.client))
    for one in message.promised:
        if one.label not in session.subscriptions and state.table.get(one.id) is None:
            session.subscriptions[one.label] = one.id
            hop = client(session.name)
            entry = Entry(one.id, one.filter, hop, host_cluster(state), one.label)
            subscribe(state, out, entry)
            out.promise(session.name, one.label, one.id, one.filter)


def _take_again(state: State, keeping: Keeping, name: str, message: HandBack) -> None:
    """Keep what could not be handed back."""
    kept = keeping.replicas.setdefault(state.labels[name].cluster, Kept())
    kept.taken.setdefault(message.client, {}).update(dict.fromkeys(message.taken))
    for one in message.promised:
        kept.promised.setdefault(message.client, {}).setdefault(one.label, one)
    for owed in message.owed:
        kept.owed.setdefault(message.client, {}).setdefault(owed.notification.id, owed)


def _replica(state: State, keeping: Keeping) -> Replica:
    promised = (
        Promised(session.name, label, id_, state.table[id_].filter)
        for session in state.clients.values()
        if not session.name.startswith(NAMELESS)
        for label, id_ in session.subscriptions.items()
    )
    owed = (one for held in keeping.owed.values() for one in held.values())
    return Replica(tuple(promised), tuple(owed))
