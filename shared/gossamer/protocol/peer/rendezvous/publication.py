"""Publications that are acknowledged: their publisher learns when enough peers hold them.

Goes beyond the paper, where whoever publishes hears nothing more of it. An event copy that names
its publisher is answered by the last of the rendezvous node's k successors that take it
(`replicas`), or by the rendezvous node itself where there are none: by then all of them hold it.
Where it cannot reach the publisher, its neighbours on the ring pass the answer on, if they can.
The publisher remembers what is not answered and publishes it again, after pauses that grow; peers
that hold a copy drop it and answer. With `replay_rounds`, those who hold an event hand it to
subscribers whose path broke with a peer that failed, so that an acknowledged event survives k
failures at once.
"""

from __future__ import annotations

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    TO,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rows.row_search import position_in_column
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    EVENT_ATTRIBUTE,
    EVENT_ID,
    EVENT_ORIGIN,
    EVENT_VALUES,
    NOT_PUBLISHED,
    PUBLISHED,
    STORED,
    STORED_FOR,
)
from gossamer.protocol.peer.state.links import HANDLE_MASK, handle_in
from gossamer.protocol.peer.state.state import MALFORMED, NOT_TAKEN, State

NOBODY = -1

# Words of a publication in `State.pending`, before its values: the event (-1 where the place is
# free), a bit for each attribute whose rendezvous node has not answered, the round of the last try,
# and how many rounds after it comes the next.
PENDING_EVENT, UNANSWERED, TRIED_AT, NEXT_TRY_AFTER, PENDING_VALUES = 0, 1, 2, 3, 4

# A publication is tried again after `retry_rounds` without an answer: longer than it takes to find
# out that a neighbour failed, and to route around it. Each further try waits twice as long, since
# what is late because too much is under way is only delayed by more of it; up to so many times the
# first pause, at which what was lost comes soon enough after the overlay has been repaired.
LONGEST_PAUSE = 4


@rule
def tell_application(s: State, p: int, kind: int, event: int, out: Outbox) -> None:
    """Write an effect about a publication of our own application."""
    me = s.sampler.handle[p]
    at = open_record(out, kind, me, me, 1)
    if at >= 0:
        out.words[at + BODY] = event
        close_record(out, at, 1)


@rule
def await_answers(s: State, p: int, words: Words, body: int, out: Outbox) -> bool:
    """Remember a publication until it is answered, and let its copies name us as publisher.

    Returns whether it may go out: not if as many as we can remember are unanswered already, which
    the application is told.
    """
    words[body + EVENT_ORIGIN] = NOBODY
    if s.pending.shape[1] == 0:
        return True
    place = pending_place(s, p, words[body + EVENT_ID])
    if place < 0:
        place = pending_place(s, p, NOBODY)
    if place < 0:
        s.counters[p, NOT_TAKEN] += 1
        tell_application(s, p, NOT_PUBLISHED, words[body + EVENT_ID], out)
        return False
    words[body + EVENT_ORIGIN] = s.sampler.handle[p]
    s.pending[p, place, PENDING_EVENT] = words[body + EVENT_ID]
    s.pending[p, place, UNANSWERED] = all_copies(s)
    s.pending[p, place, TRIED_AT] = s.round[p]
    s.pending[p, place, NEXT_TRY_AFTER] = s.params.retry_rounds
    for a in range(s.params.attributes):
        s.pending[p, place, PENDING_VALUES + a] = words[body + EVENT_VALUES + a]
    return True


@rule
def all_copies(s: State) -> int:
    """The coordinates that a copy of an event is sent for, as bits: all, or the key alone."""
    if s.params.key >= 0:
        return 1 << s.params.key
    return (1 << s.params.attributes) - 1


@rule
def pending_place(s: State, p: int, event: int) -> int:
    """Where an unanswered publication is remembered, or, for `NOBODY`, a free place; -1 if none."""
    if s.pending.shape[1] == 0:
        return -1
    return position_in_column(s.pending, p, PENDING_EVENT, event)


@rule
def answer_publisher(s: State, p: int, words: Words, body: int, out: Outbox) -> None:
    """Tell the publisher of an event copy, if it wants to know, that all who should hold it do."""
    origin = words[body + EVENT_ORIGIN]
    if origin < 0:
        return
    if origin == s.sampler.handle[p]:
        take_answer(s, p, words[body + EVENT_ID], words[body + EVENT_ATTRIBUTE], out)
        return
    at = open_record(out, STORED, origin, s.sampler.handle[p], 2)
    if at >= 0:
        out.words[at + BODY] = words[body + EVENT_ID]
        out.words[at + BODY + 1] = words[body + EVENT_ATTRIBUTE]
        close_record(out, at, 2)


@rule
def take_answer(s: State, p: int, event: int, attribute: int, out: Outbox) -> None:
    """One attribute's copy is held; with the last of them the application is told."""
    i = pending_place(s, p, event)
    if event < 0 or i < 0:
        return
    s.pending[p, i, UNANSWERED] &= ~(1 << attribute)
    if s.pending[p, i, UNANSWERED] == 0:
        s.pending[p, i, PENDING_EVENT] = NOBODY
        tell_application(s, p, PUBLISHED, event, out)


@rule
def on_stored(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """A rendezvous node and its successors hold what we published."""
    if words[at + LENGTH] != BODY + 2 or not 0 <= words[at + BODY + 1] < s.params.attributes:
        s.counters[p, MALFORMED] += 1
        return
    take_answer(s, p, words[at + BODY], words[at + BODY + 1], out)


@rule
def answer_over_neighbours(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """An answer came back: have the neighbours on the ring tell the publisher, who may be there.

    Pairs of peers may not reach each other, as behind two firewalls, and both reach a third one.
    """
    publisher, me = words[at + TO], s.sampler.handle[p]
    event, attribute = words[at + BODY], words[at + BODY + 1]
    for k in range(2 * s.params.ring_links):
        if s.links[p, k] >= 0:
            tell_stored(handle_in(s.links[p, k]), me, event, attribute, publisher, out)


@rule
def tell_stored(to: int, me: int, event: int, attribute: int, publisher: int, out: Outbox) -> None:
    """Send the answer to a publisher to it, or to whoever is to pass it on."""
    at = open_record(out, STORED_FOR, to, me, 3)
    if at >= 0:
        out.words[at + BODY] = event
        out.words[at + BODY + 1] = attribute
        out.words[at + BODY + 2] = publisher
        close_record(out, at, 3)


@rule
def on_stored_for(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Take an answer that others pass on, or pass it on, once."""
    if words[at + LENGTH] != BODY + 3 or not 0 <= words[at + BODY + 1] < s.params.attributes:
        s.counters[p, MALFORMED] += 1
        return
    event, attribute, publisher = words[at + BODY], words[at + BODY + 1], words[at + BODY + 2]
    if publisher == s.sampler.handle[p]:
        take_answer(s, p, event, attribute, out)
    elif 0 <= publisher <= HANDLE_MASK and publisher != words[at + FROM]:
        tell_stored(publisher, s.sampler.handle[p], event, attribute, publisher, out)


@rule
def on_withdraw(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
    """The application waits for an acknowledgement no more: do not publish again."""
    if words[at + LENGTH] != BODY + 1 or words[at + BODY] < 0:
        s.counters[p, MALFORMED] += 1
        return
    i = pending_place(s, p, words[at + BODY])
    if i >= 0:
        s.pending[p, i, PENDING_EVENT] = NOBODY


@rule
def is_due_again(s: State, p: int, i: int) -> bool:
    """Whether publication ``i`` has gone unanswered for so long that it is tried again."""
    return (
        s.pending[p, i, PENDING_EVENT] >= 0
        and s.pending[p, i, TRIED_AT] + s.pending[p, i, NEXT_TRY_AFTER] <= s.round[p]
    )


@rule
def note_try(s: State, p: int, i: int) -> None:
    """Publication ``i`` is tried again now; the pause after this try is twice as long."""
    s.pending[p, i, TRIED_AT] = s.round[p]
    longest = LONGEST_PAUSE * s.params.retry_rounds
    s.pending[p, i, NEXT_TRY_AFTER] = min(2 * s.pending[p, i, NEXT_TRY_AFTER], longest)
