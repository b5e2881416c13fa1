"""What carries boxes to a neighbour, and asks whether it lives; and whom a peer asks."""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, Outbox, close_record, open_record
from gossamer.protocol.kernel.rows.row_search import write_rows
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import INSTALL_NEWS
from gossamer.protocol.peer.rendezvous.installation_boxes import head_words
from gossamer.protocol.peer.state.links import (
    age_in,
    handle_in,
    note_asked,
    question_of_next_round,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.lookup import handle_of_slot
from gossamer.protocol.peer.state.resting import interval, may_rest, next_level
from gossamer.protocol.peer.state.state import State


@rule
def send_boxes(
    s: State, p: int, kind: int, to: int, first: int, count: int, answer: int, out: Outbox
) -> None:
    """Send the boxes ``work.lists[first:first + count]``.

    The body is the own descriptor, whether an answer is wanted with, above that bit, the level at
    which ``p`` rests, the count, and the boxes.
    """
    head = head_words(s)
    size = s.work.box.shape[0]
    at = open_record(out, kind, to, s.sampler.handle[p], head + count * size)
    if at < 0:
        return
    words = out.words
    write_own_descriptor(s, p, words, at + BODY)
    words[at + BODY + head - 2] = answer | next_level(s, p) << 1
    words[at + BODY + head - 1] = count
    write_rows(s.work.lists, first, count, words, at + BODY + head)
    close_record(out, at, head + count * size)


@inline_rule
def needs_answer(s: State, p: int, k: int) -> int:
    """Whether the neighbour in slot ``k`` is to answer: on the ring, or not heard of for long.

    The ring has to be right in every round, unless it rests; of others it is enough to know that
    they live.
    """
    on_ring = k < 2 * s.params.ring_links and interval(s, p) == 1
    return int(on_ring or is_long_silent(s, p, k))


@inline_rule
def is_long_silent(s: State, p: int, k: int) -> Any:
    """Whether the neighbour in slot ``k`` was not heard of for so long that it is to be asked.

    Of two that rest one asks, and the other is content to have been asked.
    """
    on_ring = k < 2 * s.params.ring_links
    patience = s.params.refresh_rounds if on_ring else s.params.heartbeat_rounds
    return age_in(s.links[p, k]) >= max(patience, interval(s, p))


@rule
def ask(s: State, p: int, k: int, out: Outbox) -> None:
    """Ask the neighbour in slot ``k`` for an answer, and for nothing else."""
    send_boxes(s, p, INSTALL_NEWS, handle_of_slot(s, p, k), 0, 0, 1, out)
    note_asked(s, p, k)


@rule
def ask_the_silent(s: State, p: int, out: Outbox) -> None:
    """Ask those who have been silent for long for an answer, and for nothing else."""
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0 and is_long_silent(s, p, k):
            ask(s, p, k, out)


@rule
def ask_those_sent_to(s: State, p: int, out: Outbox) -> None:
    """Before a round, ask those who were sent an event in the last, and not heard of since."""
    if may_rest(s):
        for k in range(s.links.shape[1]):
            handle = handle_in(s.links[p, k])
            if s.links[p, k] >= 0 and s.asked[p, k] == question_of_next_round(s, p, handle):
                ask(s, p, k, out)


@rule
def ask_everybody(s: State, p: int, out: Outbox) -> None:
    """Ask all neighbours whether they live, where several have turned out not to.

    Goes beyond the paper: failures come together, and who waits for each to be due for a question
    takes rounds to find out.
    """
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0:
            ask(s, p, k, out)
