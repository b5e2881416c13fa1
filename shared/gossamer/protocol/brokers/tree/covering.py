"""Covering: what is sent on a link and what is quenched; and pruning that is paced.

One invariant makes routing right: on every link, each subscription that should be known there was
sent, or hangs below one that was sent and covers it. New subscriptions go before the one that they
replace, so it holds at the neighbour at every moment too, and no publication is missed.

Covering off, lazy, active and packed differ by `settings.Covering` only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.tree.messages import Acknowledge, Subscription, Unsubscription
from gossamer.protocol.brokers.tree.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.settings import QUENCHED
from gossamer.protocol.brokers.tree.state import Aggregate, Link, State
from gossamer.protocol.brokers.tree.tables import Entry
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


# Paced pruning: what a subscription quenched is sent in batches (beyond the papers).
#
# The papers' pruning compares what an unsubscription displaces with fixed numbers, and what it then
# preserves brings false positives for as long as it stands. Here the load decides. Where more is
# quenched than fits into a batch, the subscription is preserved, and what hangs below it is sent a
# batch at a time: the next goes when the neighbour has acknowledged the one before, which it does
# when that has passed its input queue, and while this broker is not congested itself. How long that
# took says how large the next may be: batches grow while they pass in less than half of
# `release_delay`, and halve when they take longer than that. So a queue never holds more than a
# batch of one link, however large the burst, and as much is held back as that takes and no more:
# the last batch ends the aggregate. The next broker, which quenched all of it meanwhile, then does
# the same, one link after the other towards the publishers.

PACE_TIMER = "pace"
LARGEST_BATCH: Final = 1024


def take_down(state: State, out: TreeOutbox, links: Sequence[Link], id_: Id) -> None:
    """Take a subscription back where what it quenched fits into a batch; begin to elsewhere."""
    for link in links:
        quenched = len(link.sent.quenched_by(id_))
        if quenched == 0 or (quenched <= _window(state, link) and _is_free(state, link)):
            before = link.out_number
            withdraw(state, out, link, Unsubscription(id_, critical=()))
            _note_batch(out, link, before, link.out_number - 1)
        else:
            state.counters.preserved += 1
            link.sent.preserve(id_)
            out.set_timer(PACE_TIMER, state.settings.release_interval)
            _send_batch(state, out, link)


def on_acknowledge(state: State, out: TreeOutbox, link: Link, message: Acknowledge) -> None:
    """A batch has passed the neighbour's input queue: send the next."""
    if link.batch is None or (message.session, message.number) < link.batch[:2]:
        return
    link.window = _next_window(state, link, out.now - link.batch[2])
    link.batch = None
    _send_batch(state, out, link)


def pace(state: State, out: TreeOutbox) -> None:
    """Send the next batches on links that wait for none.

    A batch that was never acknowledged, as a link failed or its other end does not pace, ends after
    `review_interval`.
    """
    for link in state.links_in_order():
        if link.batch is not None and out.now - link.batch[2] >= state.settings.review_interval:
            link.batch = None
        _send_batch(state, out, link)
    if any(link.sent.aggregates for link in state.links.values()):
        out.set_timer(PACE_TIMER, state.settings.release_interval)


def _window(state: State, link: Link) -> int:
    return link.window or state.settings.release_batch


def _next_window(state: State, link: Link, took: int) -> int:
    """How many subscriptions the next batch holds, when one took so many microseconds."""
    before = _window(state, link)
    if took > state.settings.release_delay:
        return max(before // 2, 1)
    if 2 * took <= state.settings.release_delay:
        return min(before + max(before // 4, 1), LARGEST_BATCH)
    return before


def _is_free(state: State, link: Link) -> bool:
    return link.up and link.batch is None and not state.congested


def _send_batch(state: State, out: TreeOutbox, link: Link) -> None:
    """Send what the oldest aggregates of a link quench, as much as fits into a batch."""
    room = _window(state, link)
    while room > 0 and link.sent.aggregates and _is_free(state, link):
        aggregate = next(iter(link.sent.aggregates.values()))
        before = link.out_number
        room -= _release(state, out, link, aggregate, room)
        if aggregate.id in link.sent and not link.sent.quenched_by(aggregate.id):
            drop_aggregate(state, out, link, aggregate.id)
            _note_batch(out, link, before, link.out_number - 1)
        else:
            _note_batch(out, link, before, link.out_number)


def _release(state: State, out: TreeOutbox, link: Link, aggregate: Aggregate, room: int) -> int:
    """Make some of what an aggregate quenches known; returns how many were looked at."""
    chosen = link.sent.quenched_by(aggregate.id)[:room]
    state.counters.examined += len(chosen)
    for id_ in chosen:
        link.sent.free(id_)
    offer_besides(state, out, link, [state.subscriptions[id_] for id_ in chosen], aggregate.id)
    return max(len(chosen), 1)


def _note_batch(out: TreeOutbox, link: Link, before: int, last: int) -> None:
    if last > before:
        link.batch = (link.out_session, last, out.now)
