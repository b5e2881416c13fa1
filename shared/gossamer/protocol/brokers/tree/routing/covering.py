"""Covering: what is sent on a link, what is quenched, and what follows when something goes.

One invariant makes routing right: on every link, each subscription that should be known there was
sent, or hangs below one that was sent and covers it. New subscriptions go before the one that they
replace, so it holds at the neighbour at every moment too, and no publication is missed.

Covering off, lazy, active and packed differ by `settings.Covering` only.
"""

from __future__ import annotations

from collections.abc import Collection

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.tree.memory.link import Link
from gossamer.protocol.brokers.tree.memory.messages import Subscription, Unsubscription
from gossamer.protocol.brokers.tree.memory.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.memory.settings import QUENCHED
from gossamer.protocol.brokers.tree.memory.state import State
from gossamer.protocol.brokers.tree.memory.subscriptions import Entry
from gossamer.protocol.content.filters import covers


def offer(
    state: State, out: TreeOutbox, link: Link, entries: Collection[Entry], triggered: bool
) -> None:
    """Make subscriptions known on a link: each is quenched by what was sent, or sent.

    Those that others among them cover come last, so that they need not be taken back.
    """
    uncovered = [entry for entry in entries if not _quench(link, entry)]
    if state.settings.rules.quench:
        uncovered, rest = state.subscriptions.uncovered_first(uncovered)
    else:
        rest = []
    for entry in uncovered:
        _send(state, out, link, entry, triggered)
    for entry in rest:
        if not _quench(link, entry):
            _send(state, out, link, entry, triggered)


def offer_besides(
    state: State, out: TreeOutbox, link: Link, entries: Collection[Entry], besides: Id
) -> None:
    """As `offer`, of what was quenched by something that stays for now and quenches no more."""
    uncovered, rest = state.subscriptions.uncovered_first(entries)
    for entry in (*uncovered, *rest):
        if not _quench(link, entry, besides):
            _send(state, out, link, entry, triggered=True)


def cover_anew(state: State, out: TreeOutbox, link: Link) -> None:
    """Work out by the covering in use what is to stand on a link, which is down.

    Nothing is kept for nobody any more. What stands there until the link is up is as it was, so
    that what comes meanwhile comes as before; then `Synchronise` tells what is new before it takes
    back what is not to stand any more.
    """
    link.sent.clear()
    link.batch, link.window = None, 0
    towards = [entry for entry in state.subscriptions if link.name in entry.towards]
    offer(state, out, link, towards, triggered=False)


def drop_aggregate(state: State, out: TreeOutbox, link: Link, id_: Id) -> None:
    """Take back what a link kept for nobody.

    Without any tuples, the next broker preserves it in turn if its removal would displace others
    there: the critical broker moves a hop towards the publisher.
    """
    state.counters.dropped += 1
    withdraw(state, out, link, Unsubscription(id_, critical=(), triggered=True))


def withdraw(state: State, out: TreeOutbox, link: Link, message: Unsubscription) -> None:
    """Take back what was sent on a link, after making known what it alone quenched.

    The latter are the triggered subscriptions: NRS(S), the new root subscriptions (selective
    paper, Sec. III-B).
    """
    free = link.sent.remove(message.id)
    state.counters.examined += len(free)
    offer(state, out, link, [state.subscriptions[id_] for id_ in free], triggered=True)
    out.send_on(link, message)


def displaced_by(state: State, link: Link, id_: Id, enough: int) -> set[Id]:
    """What a subscription that goes displaces on a link, as `TreeSettings.displaced` has it.

    Either what it quenches there, all of which `withdraw` examines again; or what `withdraw` would
    have to send, or as many of it as are enough. Only the counters change.
    """
    if state.settings.displaced == QUENCHED:
        return set(link.sent.quenched_by(id_))
    return _triggered_by(state, link, id_, enough)


def _triggered_by(state: State, link: Link, id_: Id, enough: int) -> set[Id]:
    quenched = {covered: state.subscriptions[covered] for covered in link.sent.quenched_by(id_)}
    found: set[Id] = set()
    for entry in quenched.values():
        if len(found) >= enough:
            break
        state.counters.examined += 1
        left = link.sent.coverer(entry.filter, besides=id_) is None
        if left and not state.subscriptions.is_covered(entry, quenched):
            found.add(entry.id)
    return found


def _quench(link: Link, entry: Entry, besides: Id | None = None) -> bool:
    coverer = link.sent.coverer(entry.filter, besides)
    if coverer is None:
        return False
    link.sent.hang(entry.id, coverer)
    return True


def _send(state: State, out: TreeOutbox, link: Link, entry: Entry, triggered: bool) -> None:
    out.send_on(link, Subscription(entry.id, entry.filter, triggered))
    covered = link.sent.covered_by(entry.filter) if state.settings.rules.clean else []
    link.sent.add(entry.id, entry.filter)
    for id_ in covered:
        _clean(state, out, link, id_, entry)


def _clean(state: State, out: TreeOutbox, link: Link, id_: Id, coverer: Entry) -> None:
    """Active covering: what a new subscription covers is taken back (Sec. V-A2 of the selective
    paper)."""
    left = []
    for free in link.sent.remove(id_):
        entry = state.subscriptions[free]
        if covers(coverer.filter, entry.filter):
            link.sent.hang(free, coverer.id)
        else:
            left.append(entry)
    offer(state, out, link, left, triggered=True)
    out.send_on(link, Unsubscription(id_, triggered=True))
    # Not where its advertisements have just gone, or where nobody holds it any more.
    cleaned = state.subscriptions.get(id_)
    if cleaned is not None and link.name in cleaned.towards:
        link.sent.hang(id_, coverer.id)
