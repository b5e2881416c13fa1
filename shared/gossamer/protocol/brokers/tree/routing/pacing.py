"""Paced pruning: what a subscription quenched is sent in batches (beyond the papers).

The papers' pruning compares what an unsubscription displaces with fixed numbers, and what it then
preserves brings false positives for as long as it stands. Here the load decides. Where more is
quenched than fits into a batch, the subscription is preserved, and what hangs below it is sent a
batch at a time: the next goes when the neighbour has acknowledged the one before, which it does
when that has passed its input queue, and while this broker is not congested itself. How long that
took says how large the next may be: batches grow while they pass in less than half of
`release_delay`, and halve when they take longer than that. So a queue never holds more than a
batch of one link, however large the burst, and as much is held back as that takes and no more: the
last batch ends the aggregate. The next broker, which quenched all of it meanwhile, then does the
same, one link after the other towards the publishers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.tree.memory.link import Link
from gossamer.protocol.brokers.tree.memory.messages import Acknowledge, Unsubscription
from gossamer.protocol.brokers.tree.memory.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.memory.sent import Aggregate
from gossamer.protocol.brokers.tree.memory.state import State
from gossamer.protocol.brokers.tree.routing.covering import drop_aggregate, offer_besides, withdraw

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
