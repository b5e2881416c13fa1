"""For how long a peer that rests sends nothing, unless something comes: what a host may sleep for.

Rounds between turns only let things grow old (see `state.resting`), so a host may let them pass one
after another once something comes, or once they are over. Here stands until when that is the same
as to let each pass in its time: until a turn, a question to a silent neighbour, an answer that is
overdue, a publication that is tried again, a comparison, or an entry that expires.
"""

from __future__ import annotations

from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.recovery.comparing import ASK_AGAIN_ROUNDS
from gossamer.protocol.peer.rendezvous.publication import (
    NEXT_TRY_AFTER,
    PENDING_EVENT,
    TRIED_AT,
)
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.state.event_logs import ASKED_IN, NEXT_AT, TASK
from gossamer.protocol.peer.state.links import AGE_SHIFT, age_in, handle_in, is_off_ring
from gossamer.protocol.peer.state.resting import interval, may_rest
from gossamer.protocol.peer.state.state import (
    FINGERS_UNTIL,
    INSTALLS_SOON,
    LEVEL,
    MISSED_SINCE,
    MOVED_IN,
    MOVES_FROM,
    TO_HAND_ON,
    UNDER_WAY,
    WANTED,
    State,
)


@rule
def quiet_rounds(s: State, p: int) -> int:
    """How many rounds from now ``p`` sends nothing in, and nothing stirs it, if nothing comes.

    None where it is awake, or where something waits for the next round.
    """
    if not may_rest(s) or s.rest[p, LEVEL] == 0 or has_work(s, p):
        return 0
    now = s.round[p]
    first = now + interval(s, p) - (now + s.sampler.key[p]) % interval(s, p)
    first = min(first, first_about_links(s, p), first_about_entries(s, p))
    first = min(first, first_about_publications(s, p), first_about_comparing(s, p))
    return int(max(min(first, first_about_place(s, p)) - now - 1, 0))


@rule
def has_work(s: State, p: int) -> bool:
    """Whether the next round has something to do that a turn is not waited for with."""
    now = s.round[p]
    if s.rest[p, FINGERS_UNTIL] > now or s.rest[p, INSTALLS_SOON] == 1:
        return True
    if s.alarm.shape[1] > 0 and max(s.alarm[p, TO_HAND_ON], s.alarm[p, UNDER_WAY]) >= 0:
        return True
    if s.params.ring_offers == 1:
        newest = (s.event_next[p] - 1) % s.event_copies.shape[1]
        came_now = s.event_copies[p, newest] >= 0 and s.event_rounds[p, newest] >= now
        if came_now or s.rest[p, MISSED_SINCE] > 0:
            return True
    k = s.successor[p]
    if s.params.load_shifting == 1 and k >= 0 and age_in(s.links[p, k]) <= 1:
        return True
    # Samplers with active members take who is silent for dead; clients look for entries.
    return bool(s.sampler.active_slots > 0 or is_off_ring(s, p))


@rule
def first_about_links(s: State, p: int) -> int:
    """The first round in which a neighbour is too old, is asked out of turn, or is suspected."""
    now = s.round[p]
    first = now + s.params.failure_age + 1
    for k in range(s.links.shape[1]):
        word = s.links[p, k]
        if word >= 0:
            first = min(first, now + s.params.failure_age + 1 - age_in(word))
            asked = s.asked[p, k]
            if asked >= 0 and handle_in(asked) == handle_in(word):
                is_to_be_asked = asked >> AGE_SHIFT > now
                patience = 0 if is_to_be_asked else s.params.suspect_rounds
                first = min(first, (asked >> AGE_SHIFT) + patience)
    return int(first)


@rule
def first_about_entries(s: State, p: int) -> int:
    """The first round in which an entry of the routing table is expired."""
    first = s.round[p] + s.params.failure_age
    for e in range(s.table_count[p]):
        first = min(first, (s.owner[p, e] >> AGE_SHIFT) + 1)
    return int(first)


@rule
def first_about_publications(s: State, p: int) -> int:
    """The first round in which a publication is tried again."""
    first = s.round[p] + s.params.failure_age
    for i in range(s.pending.shape[1]):
        if s.pending[p, i, PENDING_EVENT] >= 0:
            first = min(first, s.pending[p, i, TRIED_AT] + s.pending[p, i, NEXT_TRY_AFTER])
    return int(first)


@rule
def first_about_comparing(s: State, p: int) -> int:
    """The first round in which a pass begins, or a question of one is asked again."""
    if s.comparison.shape[1] == 0:
        return int(s.round[p] + s.params.failure_age)
    if s.comparison[p, TASK] >= 0:
        return int(s.comparison[p, ASKED_IN] + ASK_AGAIN_ROUNDS)
    return int(s.comparison[p, NEXT_AT])


@rule
def first_about_place(s: State, p: int) -> int:
    """The first round in which ``p`` goes on with a move, or may forget a place that it has left.

    Two that share a place part likewise.
    """
    first = s.round[p] + s.params.failure_age
    if s.params.move_rounds > 0:
        k = s.successor[p]
        shares = k >= 0 and s.link_profile[p, k, IDENTIFIER] == s.sampler.profile[p, IDENTIFIER]
        if s.seat[p, WANTED] >= 0 or shares:
            first = min(first, s.seat[p, MOVES_FROM])
        if s.seat[p, MOVED_IN] >= 0:
            first = min(first, s.seat[p, MOVED_IN] + s.params.failure_age + 1)
    return int(first)
