"""Events offered to neighbours on the ring, which want the same. Goes beyond the paper.

Who stands side by side wants the same events where places follow interests. So each round a peer
tells, of each event that it took in the round before, the nearest neighbours on the ring that want
it by their profiles, one on either side, and its guests; they ask for what they want and has not
reached them (`replay`). It is the second phase of bimodal multicast (Birman et al., 1999), among
those who want the event: whatever broke in a delivery tree, an event that came to one of them comes
to all, from neighbour to neighbour. Offers carry values: several ranges make one in a profile, and
who wants a part of it only would ask for all of it.

While the ring is disturbed, because neighbours failed or changed or events were missed, each event
is offered at once, so that what was missed passes along the ring within the round.
"""

from __future__ import annotations

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rows.row_search import copy_words
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    EVENT_ATTRIBUTE,
    EVENT_ID,
    EVENT_VALUES,
    OFFERED_ON_RING,
    REPLAY_WANTED,
    RING_OFFER,
)
from gossamer.protocol.peer.rendezvous.replay import finish_question, has_seen, may_ask_for
from gossamer.protocol.peer.settings.profile import HALF_BITS, IDENTIFIER, high_end, low_end
from gossamer.protocol.peer.space.ring import RING, clockwise
from gossamer.protocol.peer.state.lookup import handle_of_slot
from gossamer.protocol.peer.state.resting import may_rest
from gossamer.protocol.peer.state.routing_table import is_interested
from gossamer.protocol.peer.state.state import DISTURBED_IN, MALFORMED, MISSED_SINCE, State


@rule
def seems_to_want(s: State, p: int, k: int, attribute: int, value: int) -> bool:
    """Whether by its profile the neighbour in slot ``k`` wants a value of an attribute."""
    ranges = s.params.profile_ranges
    ranked = attribute if s.params.ranked_attributes > 1 else 0
    first = s.params.first_range + ranked * ranges
    for i in range(ranges):
        word = s.link_profile[p, k, first + i]
        if low_end(word) <= value >> HALF_BITS <= high_end(word):
            return True
    return False


@rule
def taken_since(s: State, p: int, since: int) -> int:
    """How many of the copies remembered last came in round ``since`` or later."""
    size = s.event_copies.shape[1]
    for back in range(1, size + 1):
        m = (s.event_next[p] - back) % size
        if s.event_copies[p, m] < 0 or s.event_rounds[p, m] < since:
            return back - 1
    return size


@rule
def nearest_wanting(s: State, p: int, side: int, attribute: int, value: int) -> int:
    """The link slot of the nearest neighbour on a side that seems to want a value, or -1.

    A side is half the ring. Those in between need not want it: interests have different widths.
    """
    me = s.sampler.profile[p, IDENTIFIER]
    found = -1
    nearest = RING // 2
    for k in range(s.links.shape[1]):
        if s.links[p, k] < 0 or not seems_to_want(s, p, k, attribute, value):
            continue
        other = s.link_profile[p, k, IDENTIFIER]
        away = clockwise(me, other) if side == 0 else clockwise(other, me)
        if away < nearest:
            found = k
            nearest = away
    return found


@rule
def offer_last_round(s: State, p: int, out: Outbox) -> None:
    """Offer what came in the last round to the nearest on either side that want it, and guests.

    So is, again, what was sent to a neighbour that has failed since.
    """
    if s.params.ring_offers == 0:
        return
    since = s.round[p] - 1
    if may_rest(s) and s.rest[p, MISSED_SINCE] > 0:
        since = min(since, s.rest[p, MISSED_SINCE])
        s.rest[p, MISSED_SINCE] = 0
    count = taken_since(s, p, since)
    newer = taken_since(s, p, s.round[p])
    if count == newer:
        return
    note_receivers(s, p, count, newer)
    guests = s.links.shape[1] - 2 * s.params.guest_links
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0:
            offer_copies(s, p, k, k >= guests, count, newer, out)


@rule
def note_receivers(s: State, p: int, count: int, newer: int) -> None:
    """Note in ``work.marks`` to whom the last copies are to be offered: two slots, plus 1 each."""
    for back in range(newer + 1, count + 1):
        m = (s.event_next[p] - back) % s.event_copies.shape[1]
        attribute = s.event_copies[p, m] % s.params.attributes
        value = s.event_values[p, m, attribute]
        after = nearest_wanting(s, p, 0, attribute, value) + 1
        s.work.marks[m] = (nearest_wanting(s, p, 1, attribute, value) + 1) << 16 | after


@rule
def is_to_have(s: State, p: int, m: int, k: int, is_guest: bool) -> bool:
    """Whether remembered copy ``m`` is to be offered to the neighbour in slot ``k``."""
    if is_guest:
        attribute = s.event_copies[p, m] % s.params.attributes
        return seems_to_want(s, p, k, attribute, s.event_values[p, m, attribute])
    return s.work.marks[m] & 0xFFFF == k + 1 or s.work.marks[m] >> 16 == k + 1


@rule
def offer_copies(
    s: State, p: int, k: int, is_guest: bool, count: int, newer: int, out: Outbox
) -> None:
    """Offer the neighbour in slot ``k`` what it is to have of the last ``count`` copies.

    The ``newer`` last are left out.
    """
    at = -1
    offered = 0
    for back in range(count, newer, -1):
        m = (s.event_next[p] - back) % s.event_copies.shape[1]
        if not is_to_have(s, p, m, k, is_guest):
            continue
        if offered == 0:
            at = open_offer(s, p, k, OFFERED_ON_RING, out)
            if at < 0:
                return
        event = at + BODY + 1 + offered * (1 + s.params.attributes)
        out.words[event] = s.event_copies[p, m]
        for a in range(s.params.attributes):
            out.words[event + 1 + a] = s.event_values[p, m, a]
        offered += 1
        if offered == OFFERED_ON_RING:
            close_offer(s, out, at, offered)
            offered = 0
    if offered > 0:
        close_offer(s, out, at, offered)


@rule
def open_offer(s: State, p: int, k: int, events: int, out: Outbox) -> int:
    """Begin an offer of at most so many events to the neighbour in slot ``k``; -1 without room."""
    size = 1 + events * (1 + s.params.attributes)
    return open_record(out, RING_OFFER, handle_of_slot(s, p, k), s.sampler.handle[p], size)


@rule
def close_offer(s: State, out: Outbox, at: int, events: int) -> None:
    """Finish an offer of so many events."""
    out.words[at + BODY] = events
    close_record(out, at, 1 + events * (1 + s.params.attributes))


@rule
def offer_at_once(s: State, p: int, source: int, words: Words, body: int, out: Outbox) -> None:
    """Offer an event that came from ``source`` to both sides, if the ring is disturbed."""
    if s.params.ring_offers == 0 or s.alarm[p, DISTURBED_IN] + 1 < s.round[p]:
        return
    attribute = words[body + EVENT_ATTRIBUTE]
    value = words[body + EVENT_VALUES + attribute]
    for side in range(2):
        k = nearest_wanting(s, p, side, attribute, value)
        if k < 0 or handle_of_slot(s, p, k) == source:
            continue
        at = open_offer(s, p, k, 1, out)
        if at < 0:
            return
        event = at + BODY + 1
        out.words[event] = words[body + EVENT_ID] * s.params.attributes + attribute
        copy_words(words, body + EVENT_VALUES, s.params.attributes, out.words, event + 1)
        close_offer(s, out, at, 1)


@rule
def on_ring_offer(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Ask for those of the events offered that are wanted and were not here, within bounds."""
    size = 1 + s.params.attributes
    count = words[at + BODY] if words[at + LENGTH] > BODY else -1
    if count < 0 or count > OFFERED_ON_RING or words[at + LENGTH] != BODY + 1 + count * size:
        s.counters[p, MALFORMED] += 1
        return
    reply = open_record(out, REPLAY_WANTED, words[at + FROM], s.sampler.handle[p], 1 + count)
    if reply < 0:
        return
    most = may_ask_for(s, p)
    missed = 0
    for i in range(count):
        event = at + BODY + 1 + i * size
        if is_interested(s, p, words, event + 1) and not has_seen(s, p, words[event]):
            if missed < most:
                out.words[reply + BODY + 1 + missed] = words[event]
            missed += 1
    finish_question(s, p, reply, missed, most, out)
