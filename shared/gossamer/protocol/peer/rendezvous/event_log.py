"""Events held for peers that are away, which ask for them when they are back.

Goes beyond the paper. What `recovery` remembers is of the last seconds and of whatever passes a
peer. A peer that was away for longer asks those who answered for the events: the rendezvous nodes
and the successors that held them when they were acknowledged keep the last M of those copies
(`held_events`) for `retention_rounds`. The one that was away walks along the arc of the ring that
its subscription lies on, peer by peer and page by page, and goes on to the next peer once it has an
answer; a question that is not answered is asked again. So it takes no more at a time than it asks
for, and it knows when it has everything.

Peers that joined since hold nothing of what came before, and where a partition has healed the
holders no longer stand side by side. The walk therefore goes some peers further than its arc.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, FROM, LENGTH, Outbox, close_record, open_record
from gossamer.protocol.kernel.rows.hash_chains import chain, place_in_ring
from gossamer.protocol.kernel.rows.row_search import is_in_ring
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    ANSWER_FROM,
    ANSWER_IDENTIFIER,
    ANSWER_MORE,
    ANSWER_VALUE,
    ANSWER_WORDS,
    ASKER,
    CAUGHT_UP,
    EVENT_ATTRIBUTE,
    EVENT_HOPS,
    EVENT_ID,
    EVENT_MODE,
    EVENT_ORIGIN,
    EVENT_TREE_HOPS,
    EVENT_VALUES,
    GREEDY,
    HELD,
    RECALL,
    RECALL_ANSWER,
    RECALL_HOPS,
    RECALLED,
    WANTED_BOX,
    WANTED_FROM,
    WANTED_ROUNDS,
    WANTED_VALUE,
)
from gossamer.protocol.peer.rendezvous.box_aggregation import take_own_box
from gossamer.protocol.peer.rendezvous.publication import NOBODY, tell_application
from gossamer.protocol.peer.rendezvous.routing import handle_of_slot, next_hop, rendezvous_value
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.state import (
    ANSWERER,
    ARC_LENGTH,
    ASKED_IN,
    FROM_VALUE,
    FURTHER,
    HOPS_EXCEEDED,
    MALFORMED,
    NEXT_SINCE,
    PAGE_FROM,
    PUSHED_OUT,
    SINCE,
    SUBSCRIPTION,
    TRAVELLED,
    State,
)

# Events in one answer, and places of the log searched for it: what one step may take.
PAGE_EVENTS = 32
PAGE_PLACES = 1024
# Peers past the end of its arc that a walk goes on to; of halves that were apart, the nearest
# holder is further away than that once in 2^16 times.
BEYOND = 16
# Rounds without an answer after which a question is asked again.
ASK_AGAIN_ROUNDS = 2
# Rounds within which a copy that comes a second time is recognised as held.
RECENT_ROUNDS = 16

NO_TIME = -(1 << 62)


@rule
def hold(s: State, p: int, copy: int, again: bool, words: Any, at: int, out: Outbox) -> None:
    """Keep a copy that ``p`` answers for, with the values at ``words[at:]``; tell the host.

    One that comes ``again`` may be held already, or have come down a tree before.
    """
    size = s.held_copies.shape[1]
    if size == 0 or (again and holds(s, p, copy)):
        return
    place = s.held_next[p] % size
    if s.held_next[p] >= size:
        held_until = s.held_rounds[p, place] + s.params.retention_rounds
        s.counters[p, PUSHED_OUT] += held_until >= s.round[p]
    s.held_copies[p, place] = copy
    chain(s.held_heads, s.held_older, p, place, copy)
    s.held_rounds[p, place] = s.round[p]
    for a in range(s.params.attributes):
        s.held_values[p, place, a] = words[at + a]
    s.held_next[p] += 1
    tell_application(s, p, HELD, copy // s.params.attributes, out)


@rule
def holds(s: State, p: int, copy: int) -> bool:
    """Whether a copy was taken into the log within the last rounds."""
    since = s.round[p] - RECENT_ROUNDS
    if s.held_heads.shape[1] == 0:
        return is_in_ring(s.held_copies, p, first_since(s, p, since), s.held_next[p], copy)
    place = s.held_next[p] % s.held_copies.shape[1]
    found = place_in_ring(s.held_copies, s.held_heads, s.held_older, p, place, copy)
    return found >= 0 and s.held_rounds[p, found] >= since


@rule
def first_since(s: State, p: int, since: int) -> int:
    """The number in the log of the first copy that came in round ``since`` or later."""
    size = s.held_copies.shape[1]
    low = max(0, s.held_next[p] - size)
    high = s.held_next[p]
    while low < high:
        middle = (low + high) // 2
        if s.held_rounds[p, middle % size] < since:
            low = middle + 1
        else:
            high = middle
    return low


# The peer that holds


@rule
def on_recall(s: State, p: int, _now: int, words: Any, at: int, out: Outbox) -> None:
    """Bring a question one hop closer to the peer it is for, or answer it."""
    if not recall_is_well_formed(s, p, words, at):
        return
    body = at + BODY
    if words[body + RECALL_HOPS] >= s.params.hop_limit:
        s.counters[p, HOPS_EXCEEDED] += 1
        return
    if words[body + WANTED_FROM] == 0:
        hop = next_hop(s, p, words[body + WANTED_VALUE])
        if hop >= 0:
            pass_recall_on(s, p, handle_of_slot(s, p, hop >> 1), words, body, out)
            return
    # A question that came back to its asker, whose ring has changed, is asked again in time.
    if words[body + ASKER] != s.sampler.handle[p]:
        answer_recall(s, p, words, body, out)


@rule
def recall_is_well_formed(s: State, p: int, words: Any, at: int) -> bool:
    """Whether a question has the schema's number of values and possible numbers."""
    body = at + BODY
    if (
        words[at + LENGTH] == BODY + WANTED_BOX + s.work.box.shape[0]
        and 0 <= words[body + ASKER] <= HANDLE_MASK
        and words[body + RECALL_HOPS] >= 0
        and words[body + WANTED_FROM] >= 0
        and words[body + WANTED_ROUNDS] >= 0
        and 0 <= words[body + WANTED_BOX] < s.params.attributes
    ):
        return True
    s.counters[p, MALFORMED] += 1
    return False


@rule
def pass_recall_on(s: State, p: int, to: int, words: Any, body: int, out: Outbox) -> None:
    """Send a question one hop further."""
    size = WANTED_BOX + s.work.box.shape[0]
    at = open_record(out, RECALL, to, s.sampler.handle[p], size)
    if at < 0:
        return
    for w in range(size):
        out.words[at + BODY + w] = words[body + w]
    out.words[at + BODY + RECALL_HOPS] += 1
    close_record(out, at, size)


@rule
def answer_recall(s: State, p: int, words: Any, body: int, out: Outbox) -> None:
    """Send the asker the next of the events it missed, and whether there are more."""
    rounds = min(words[body + WANTED_ROUNDS], s.params.retention_rounds)
    number = max(first_since(s, p, s.round[p] - rounds), words[body + WANTED_FROM] - 1)
    last = min(s.held_next[p], number + PAGE_PLACES)
    found = 0
    while number < last and found < PAGE_EVENTS:
        place = number % s.held_copies.shape[1]
        if held_matches(s, p, place, words, body + WANTED_BOX):
            send_held(s, p, RECALLED, place, words[body + ASKER], out)
            found += 1
        number += 1
    at = open_record(out, RECALL_ANSWER, words[body + ASKER], s.sampler.handle[p], ANSWER_WORDS)
    if at < 0:
        return
    out.words[at + BODY + ANSWER_VALUE] = words[body + WANTED_VALUE]
    out.words[at + BODY + ANSWER_FROM] = words[body + WANTED_FROM]
    out.words[at + BODY + ANSWER_IDENTIFIER] = s.sampler.profile[p, IDENTIFIER]
    out.words[at + BODY + ANSWER_MORE] = number + 1 if number < s.held_next[p] else 0
    close_record(out, at, ANSWER_WORDS)


@rule
def held_matches(s: State, p: int, place: int, words: Any, at: int) -> bool:
    """Whether the box at ``words[at:]`` asks, by its attribute, for the copy at ``place``."""
    if s.held_copies[p, place] % s.params.attributes != words[at]:
        return False
    for a in range(s.params.attributes):
        value = s.held_values[p, place, a]
        if value < words[at + 1 + 2 * a] or value > words[at + 2 + 2 * a]:
            return False
    return True


@rule
def send_held(s: State, p: int, kind: int, place: int, to: int, out: Outbox) -> None:
    """Send the copy at ``place`` to a peer that missed it."""
    attributes = s.params.attributes
    at = open_record(out, kind, to, s.sampler.handle[p], EVENT_VALUES + attributes)
    if at < 0:
        return
    body = at + BODY
    out.words[body + EVENT_ID] = s.held_copies[p, place] // attributes
    out.words[body + EVENT_ATTRIBUTE] = s.held_copies[p, place] % attributes
    out.words[body + EVENT_MODE] = GREEDY
    out.words[body + EVENT_HOPS] = 1
    out.words[body + EVENT_TREE_HOPS] = 1
    out.words[body + EVENT_ORIGIN] = NOBODY
    for a in range(attributes):
        out.words[body + EVENT_VALUES + a] = s.held_values[p, place, a]
    close_record(out, at, EVENT_VALUES + attributes)


# The peer that was away


@rule
def on_catch_up(s: State, p: int, _now: int, words: Any, at: int, out: Outbox) -> None:
    """Ask for what the subscriptions of ``p`` missed in so many rounds.

    While it is asking already it begins again afterwards.
    """
    if words[at + LENGTH] != BODY + 1 or words[at + BODY] < 0:
        s.counters[p, MALFORMED] += 1
        return
    since = s.round[p] - words[at + BODY]
    if s.recall[p, SUBSCRIPTION] >= 0:
        if s.recall[p, NEXT_SINCE] == NO_TIME or since < s.recall[p, NEXT_SINCE]:
            s.recall[p, NEXT_SINCE] = since
        return
    s.recall[p, NEXT_SINCE] = NO_TIME
    s.recall[p, SINCE] = since
    begin_walk(s, p, 0)
    proceed(s, p, out)


@rule
def on_rounds_skipped(s: State, p: int, _now: int, words: Any, at: int, _out: Outbox) -> None:
    """Ask for as much more as others have counted while ``p``, held up, has not."""
    if words[at + LENGTH] != BODY + 1 or words[at + BODY] < 0:
        s.counters[p, MALFORMED] += 1
        return
    rounds = min(words[at + BODY], s.params.retention_rounds)
    s.recall[p, SINCE] -= rounds
    if s.recall[p, NEXT_SINCE] != NO_TIME:
        s.recall[p, NEXT_SINCE] -= rounds


@rule
def begin_walk(s: State, p: int, k: int) -> None:
    """Make ready to walk for subscription ``k``, or the next one that there is."""
    while k < s.constrained.shape[1] and s.constrained[p, k] < 0:
        k += 1
    s.recall[p, SUBSCRIPTION] = NOBODY
    if k < s.constrained.shape[1]:
        take_own_box(s, p, k)
        attribute = s.work.box[0]
        low = rendezvous_value(s, attribute, s.work.box[1 + 2 * attribute])
        high = rendezvous_value(s, attribute, s.work.box[2 + 2 * attribute])
        s.recall[p, SUBSCRIPTION] = k
        s.recall[p, FROM_VALUE] = low
        s.recall[p, ARC_LENGTH] = high - low
        s.recall[p, TRAVELLED] = 0
        s.recall[p, FURTHER] = BEYOND
        s.recall[p, PAGE_FROM] = 0


@rule
def walk_on(s: State, p: int, identifier: int) -> None:
    """Go on to the peer after the one at ``identifier``, or to the next subscription."""
    s.recall[p, PAGE_FROM] = 0
    s.recall[p, TRAVELLED] += clockwise(s.recall[p, FROM_VALUE], identifier) + 1
    s.recall[p, FROM_VALUE] = (identifier + 1) & RING_MASK
    if s.recall[p, TRAVELLED] > s.recall[p, ARC_LENGTH]:
        s.recall[p, FURTHER] -= 1
    # Once around the ring it has met everybody.
    if s.recall[p, FURTHER] < 0 or s.recall[p, TRAVELLED] > RING_MASK:
        begin_walk(s, p, s.recall[p, SUBSCRIPTION] + 1)
    if s.recall[p, SUBSCRIPTION] < 0 and s.recall[p, NEXT_SINCE] != NO_TIME:
        s.recall[p, SINCE] = s.recall[p, NEXT_SINCE]
        s.recall[p, NEXT_SINCE] = NO_TIME
        begin_walk(s, p, 0)


@rule
def proceed(s: State, p: int, out: Outbox) -> None:
    """Ask the peer that the walk has come to, or tell the host that there is none left.

    What ``p`` holds itself it has.
    """
    while s.recall[p, SUBSCRIPTION] >= 0:
        to = s.recall[p, ANSWERER]
        if s.recall[p, PAGE_FROM] == 0:
            hop = next_hop(s, p, s.recall[p, FROM_VALUE])
            to = NOBODY if hop < 0 else handle_of_slot(s, p, hop >> 1)
        if to >= 0:
            ask(s, p, to, out)
            return
        walk_on(s, p, s.sampler.profile[p, IDENTIFIER])
    tell_application(s, p, CAUGHT_UP, 0, out)


@rule
def ask(s: State, p: int, to: int, out: Outbox) -> None:
    """Send a question on its way."""
    s.recall[p, ASKED_IN] = s.round[p]
    take_own_box(s, p, s.recall[p, SUBSCRIPTION])
    size = s.work.box.shape[0]
    at = open_record(out, RECALL, to, s.sampler.handle[p], WANTED_BOX + size)
    if at < 0:
        return
    body = at + BODY
    out.words[body + ASKER] = s.sampler.handle[p]
    out.words[body + RECALL_HOPS] = 0
    out.words[body + WANTED_VALUE] = s.recall[p, FROM_VALUE]
    out.words[body + WANTED_FROM] = s.recall[p, PAGE_FROM]
    out.words[body + WANTED_ROUNDS] = s.round[p] - s.recall[p, SINCE]
    for w in range(size):
        out.words[body + WANTED_BOX + w] = s.work.box[w]
    close_record(out, at, WANTED_BOX + size)


@rule
def on_recall_answer(s: State, p: int, _now: int, words: Any, at: int, out: Outbox) -> None:
    """Ask on where a peer has more, else go on to the next."""
    body = at + BODY
    if words[at + LENGTH] != BODY + ANSWER_WORDS:
        s.counters[p, MALFORMED] += 1
        return
    if (
        s.recall[p, SUBSCRIPTION] < 0
        or words[body + ANSWER_VALUE] != s.recall[p, FROM_VALUE]
        or words[body + ANSWER_FROM] != s.recall[p, PAGE_FROM]
    ):
        return
    if words[body + ANSWER_MORE] > s.recall[p, PAGE_FROM]:
        s.recall[p, PAGE_FROM] = words[body + ANSWER_MORE]
        s.recall[p, ANSWERER] = words[at + FROM]
    else:
        walk_on(s, p, words[body + ANSWER_IDENTIFIER] & RING_MASK)
    proceed(s, p, out)


@rule
def ask_again(s: State, p: int, out: Outbox) -> None:
    """Once a round: find the peer anew that has not answered."""
    if s.recall[p, SUBSCRIPTION] >= 0 and s.recall[p, ASKED_IN] + ASK_AGAIN_ROUNDS <= s.round[p]:
        s.recall[p, PAGE_FROM] = 0
        proceed(s, p, out)


@rule
def recall_elsewhere(s: State, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """Route a question around a peer that could not be reached."""
    if s.params.reroute == 1 and words[at + BODY + WANTED_FROM] == 0:
        on_recall(s, p, now, words, at, out)
