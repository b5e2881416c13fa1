"""When a peer compares: soon after anything near it has changed (see `comparing`)."""

from __future__ import annotations

from gossamer.protocol.kernel.records import BODY, LENGTH, Outbox, Words, close_record, open_record
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import COMPARE_SOON
from gossamer.protocol.peer.state.event_logs import FIRST_REST, IS_WHOLE, NEXT_AT, REST
from gossamer.protocol.peer.state.lookup import handle_of_slot
from gossamer.protocol.peer.state.state import MALFORMED, State

# Rounds from a change to a pass.
SOON = FIRST_REST


@rule
def expect_difference(s: State, p: int) -> None:
    """Something near ``p`` has changed: compare soon, and then less and less often."""
    if s.comparison.shape[1] > 0:
        s.comparison[p, NEXT_AT] = min(s.comparison[p, NEXT_AT], s.round[p] + SOON)
        s.comparison[p, REST] = SOON


@rule
def expect_difference_before(s: State, p: int, out: Outbox) -> None:
    """The arc of ``p`` has changed, and with it perhaps that of its predecessor: both compare."""
    expect_difference(s, p)
    if s.comparison.shape[1] > 0 and s.predecessor[p] >= 0:
        to = handle_of_slot(s, p, s.predecessor[p])
        at = open_record(out, COMPARE_SOON, to, s.sampler.handle[p], 0)
        if at >= 0:
            close_record(out, at, 0)


@rule
def on_compare_soon(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
    """Somebody could not send all that was for ``p``, or answers for more or less than before."""
    if words[at + LENGTH] != BODY:
        s.counters[p, MALFORMED] += 1
        return
    expect_difference(s, p)


@rule
def on_catch_up(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
    """All subscriptions are in force for so many rounds at least, in which ``p`` missed some."""
    if words[at + LENGTH] != BODY + 1 or words[at + BODY] < 0:
        s.counters[p, MALFORMED] += 1
        return
    for k in range(s.wanted_since.shape[1]):
        since = s.round[p] - words[at + BODY]
        s.wanted_since[p, k] = min(s.wanted_since[p, k], since)
    miss_something(s, p)


@rule
def on_rounds_skipped(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
    """Others have counted so many rounds that ``p``, held up, has not: all is older by these."""
    if words[at + LENGTH] != BODY + 1 or words[at + BODY] < 0:
        s.counters[p, MALFORMED] += 1
        return
    rounds = words[at + BODY]
    for place in range(s.held.rounds.shape[1]):
        s.held.rounds[p, place] -= rounds
    for place in range(s.got.rounds.shape[1]):
        s.got.rounds[p, place] -= rounds
    for k in range(s.wanted_since.shape[1]):
        s.wanted_since[p, k] -= rounds
    miss_something(s, p)


@rule
def miss_something(s: State, p: int) -> None:
    """Something may be missing until a pass has found nothing."""
    if s.comparison.shape[1] > 0:
        s.comparison[p, IS_WHOLE] = 0
    expect_difference(s, p)
