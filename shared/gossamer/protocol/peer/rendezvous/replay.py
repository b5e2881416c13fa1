"""Remembered events, and handing them to subscriptions that come late. Goes beyond the paper.

Each peer remembers the last L event copies it saw, to drop those that come again. With
`replay_rounds` set, a neighbour that asks for something new here is offered the remembered events
that match, and sent those it has not seen: a subscriber whose path broke or who has just joined
catches up through the first peer on its new path that kept receiving.
"""

from __future__ import annotations

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    Outbox,
    Words,
    close_record,
    drop_record,
    open_record,
)
from gossamer.protocol.kernel.rows.hash_chains import chain, place_in_ring
from gossamer.protocol.kernel.rows.row_search import mark_points
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    EVENT_ATTRIBUTE,
    EVENT_HOPS,
    EVENT_ID,
    EVENT_MODE,
    EVENT_ORIGIN,
    EVENT_TREE_HOPS,
    EVENT_VALUES,
    OFFERED_AT_ONCE,
    REPLAY_OFFER,
    REPLAY_WANTED,
    TREE,
)
from gossamer.protocol.peer.state.links import note_disturbance
from gossamer.protocol.peer.state.resting import stir
from gossamer.protocol.peer.state.state import (
    ASKED_FOR,
    FORGOTTEN,
    MALFORMED,
    MISS_LEVEL,
    MISSED_IN,
    REPLAYED,
    SAMPLE,
    SAMPLED,
    State,
)

KNOWN_BOX = 0
# Missed events that may be asked for in the first round in which there are any.
MOST_ASKED_FOR, HIGHEST_MISS_LEVEL = 1024, 8
# Set in `State.event_hops` of a copy that the peer took as its rendezvous node.
TAKEN_AS_OURS = 1 << 62
# Set in its place once it was handed on, until a connection breaks on which it may have been lost.
HANDED_ON = 1 << 61


@rule
def has_seen(s: State, p: int, copy: int) -> bool:
    """Whether ``p`` remembers this event copy."""
    return place_of(s, p, copy) >= 0


@rule
def place_of(s: State, p: int, copy: int) -> int:
    """Where ``p`` remembers this event copy, -1 where it does not."""
    return place_in_ring(s.event_copies, s.event_heads, s.event_older, p, s.event_next[p], copy)


@rule
def remember(s: State, p: int, copy: int, tree_hops: int, words: Words, at: int) -> None:
    """Remember an event copy whose values stand at ``words[at:]``.

    Where the memory is too small for the rate of events it counts what it forgets too soon: copies
    of this round and the last, which may come again, and those still to be offered.
    """
    m = s.event_next[p]
    if s.event_copies[p, m] >= 0:
        needed_until = s.event_rounds[p, m] + max(s.params.replay_rounds, 1)
        s.counters[p, FORGOTTEN] += needed_until >= s.round[p]
    s.event_copies[p, m] = copy
    chain(s.event_heads, s.event_older, p, m, copy)
    s.event_rounds[p, m] = s.round[p]
    s.event_hops[p, m] = tree_hops
    for a in range(s.params.attributes):
        s.event_values[p, m, a] = words[at + a]
    s.event_next[p] = (m + 1) % s.event_copies.shape[1]


@rule
def count_recent(s: State, p: int) -> int:
    """How many of the copies remembered last came within the replay rounds."""
    size = s.event_copies.shape[1]
    low = 0
    high = size
    while low < high:
        back = (low + high) // 2
        m = (s.event_next[p] - 1 - back) % size
        if (
            s.event_copies[p, m] >= 0
            and s.event_rounds[p, m] + s.params.replay_rounds >= s.round[p]
        ):
            low = back + 1
        else:
            high = back
    return low


@rule
def mark_asked_for(s: State, p: int, recent: int, words: Words, first: int, count: int) -> None:
    """Note by which attributes boxes that are news ask for the ``recent`` last events."""
    marks = s.work.marks
    for back in range(1, recent + 1):
        marks[(s.event_next[p] - back) % marks.shape[0]] = 0
    size = s.work.box.shape[0]
    attributes = s.params.attributes
    for i in range(count):
        if s.work.news[i] != KNOWN_BOX:
            at = first + i * size
            mark_points(s.event_values, p, words, at + 1, attributes, 1 << words[at], marks)


@rule
def offer_events(
    s: State, p: int, words: Words, first: int, count: int, to: int, out: Outbox
) -> None:
    """Offer ``to`` the recent events that match a box which is news from it (``work.news``).

    Mostly it has them: its path has moved, or two boxes have become one. So it is told which there
    are, the oldest first, before any is sent. The body is a count, then the copies.
    """
    if s.params.replay_rounds == 0:
        return
    recent = count_recent(s, p)
    if recent == 0:
        return
    mark_asked_for(s, p, recent, words, first, count)
    at = -1
    offered = 0
    for back in range(recent, 0, -1):
        m = (s.event_next[p] - back) % s.event_copies.shape[1]
        copy = s.event_copies[p, m]
        if (s.work.marks[m] >> copy % s.params.attributes) & 1 == 0:
            continue
        if offered == 0:
            at = open_record(out, REPLAY_OFFER, to, s.sampler.handle[p], 1 + OFFERED_AT_ONCE)
            if at < 0:
                return
        out.words[at + BODY + 1 + offered] = copy
        offered += 1
        if offered == OFFERED_AT_ONCE:
            close_list(out, at, offered)
            offered = 0
    if offered > 0:
        close_list(out, at, offered)


@rule
def close_list(out: Outbox, at: int, count: int) -> None:
    """Finish a record that lists ``count`` event copies."""
    out.words[at + BODY] = count
    close_record(out, at, 1 + count)


@rule
def copies_listed(s: State, p: int, words: Words, at: int) -> int:
    """How many event copies a record lists, -1 where it is malformed."""
    count = -1
    if words[at + LENGTH] > BODY:
        count = words[at + BODY]
    if count < 0 or count > OFFERED_AT_ONCE or words[at + LENGTH] != BODY + 1 + count:
        s.counters[p, MALFORMED] += 1
        return -1
    return count


@rule
def on_replay_offer(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Ask for those of the copies offered that were not here, or as many as we may ask for."""
    count = copies_listed(s, p, words, at)
    if count < 0:
        return
    reply = open_record(out, REPLAY_WANTED, words[at + FROM], s.sampler.handle[p], 1 + count)
    if reply < 0:
        return
    most = may_ask_for(s, p)
    missed = 0
    for i in range(count):
        copy = words[at + BODY + 1 + i]
        if not has_seen(s, p, copy):
            if missed < most:
                out.words[reply + BODY + 1 + missed] = copy
            missed += 1
    finish_question(s, p, reply, missed, most, out)


@rule
def finish_question(s: State, p: int, reply: int, missed: int, most: int, out: Outbox) -> None:
    """Ask for the first ``most`` of so many that were ``missed``, by the record at ``reply``."""
    wanted = min(missed, most)
    if wanted > 0:
        close_list(out, reply, wanted)
    else:
        drop_record(out, reply)
    if missed > 0:
        note_missed(s, p, wanted, out.words, reply + BODY + 1)


@rule
def miss_level(s: State, p: int) -> int:
    """How much less a peer asks for: all the less when what it asked for last did not come.

    Each round after that takes one. Who has just joined misses much too, but gets what it asks for.
    """
    level = s.alarm[p, MISS_LEVEL]
    if s.alarm[p, MISSED_IN] != s.round[p]:
        since = s.round[p] - s.alarm[p, MISSED_IN]
        if since <= HIGHEST_MISS_LEVEL and is_sent_too_much(s, p):
            level = HIGHEST_MISS_LEVEL + 1
        level -= since
    return min(max(level, 0), HIGHEST_MISS_LEVEL)


@rule
def is_sent_too_much(s: State, p: int) -> bool:
    """Whether more than a quarter of what was asked for last did not come, by the first of it."""
    asked = max(min(s.alarm[p, ASKED_FOR], SAMPLED), 0)
    lost = 0
    for i in range(asked):
        lost += not has_seen(s, p, s.alarm[p, SAMPLE + i])
    return 4 * lost > asked


@rule
def may_ask_for(s: State, p: int) -> int:
    """How many of the events that it missed a peer may still ask for in this round.

    With `replay_backoff`, who does not get what it asks for is taken to be sent more than it can
    take, and asking makes that worse: so it asks for none in the rounds that follow, then for one,
    and for four times as many each round, up to the next of that kind.
    """
    if s.params.replay_backoff == 0:
        return OFFERED_AT_ONCE
    asked = s.alarm[p, ASKED_FOR] if s.alarm[p, MISSED_IN] == s.round[p] else 0
    return max((MOST_ASKED_FOR >> 2 * miss_level(s, p)) - asked, 0)


@rule
def note_missed(s: State, p: int, wanted: int, words: Words, at: int) -> None:
    """Some events were missed here, of which those at ``words[at:]`` are asked for."""
    if s.alarm.shape[1] == 0:
        return
    if s.alarm[p, MISSED_IN] != s.round[p]:
        s.alarm[p, MISS_LEVEL] = miss_level(s, p)
        s.alarm[p, MISSED_IN] = s.round[p]
        s.alarm[p, ASKED_FOR] = 0
    for i in range(min(wanted, SAMPLED - s.alarm[p, ASKED_FOR])):
        s.alarm[p, SAMPLE + s.alarm[p, ASKED_FOR] + i] = words[at + i]
    s.alarm[p, ASKED_FOR] += wanted
    if wanted > 0:
        note_disturbance(s, p)
        stir(s, p)


@rule
def on_replay_wanted(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Send the copies that a neighbour has not seen, where they are remembered still."""
    for i in range(copies_listed(s, p, words, at)):
        m = place_of(s, p, words[at + BODY + 1 + i])
        if m >= 0 and s.event_copies[p, m] >= 0:
            send_remembered(s, p, m, words[at + FROM], out)
            s.counters[p, REPLAYED] += 1


@rule
def send_remembered(s: State, p: int, m: int, to: int, out: Outbox) -> None:
    """Send remembered event ``m`` down the tree to one neighbour."""
    attributes = s.params.attributes
    at = open_record(out, EVENT, to, s.sampler.handle[p], EVENT_VALUES + attributes)
    if at < 0:
        return
    body = at + BODY
    out.words[body + EVENT_ID] = s.event_copies[p, m] // attributes
    out.words[body + EVENT_ATTRIBUTE] = s.event_copies[p, m] % attributes
    out.words[body + EVENT_MODE] = TREE
    out.words[body + EVENT_HOPS] = (s.event_hops[p, m] & ~(TAKEN_AS_OURS | HANDED_ON)) >> 32
    out.words[body + EVENT_TREE_HOPS] = s.event_hops[p, m] & 0xFFFFFFFF
    out.words[body + EVENT_ORIGIN] = -1
    for a in range(attributes):
        out.words[body + EVENT_VALUES + a] = s.event_values[p, m, a]
    close_record(out, at, EVENT_VALUES + attributes)
