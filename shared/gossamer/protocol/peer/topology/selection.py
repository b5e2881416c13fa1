"""Selecting links: which candidates get which slots of the link table (Vinifera, Sec. IV-B1).

Every candidate goes along the slots in order: successors, predecessors, small-world links,
friends. Where it suits a slot better than who holds it, it takes the slot and the other goes on;
who comes to the end holding nothing is no neighbour. So each slot ends up with the best of those
that no slot before it took, whatever the order of the candidates. Fingers are offered the ring
alone: as friends besides they would be emptied, and offered again, for ever.

Only those candidates are offered anything that `judging` finds to suit some slot.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import Words
from gossamer.protocol.kernel.rows.row_search import index
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.sampling.descriptors import PLAIN
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING, RING_MASK
from gossamer.protocol.peer.state.links import (
    AGE_SHIFT,
    age_in,
    handle_in,
    is_refused,
    settle_ring,
    slot_of,
)
from gossamer.protocol.peer.state.resting import install_soon, may_rest, stir
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.fingers import draw_offsets, offset_distance
from gossamer.protocol.peer.topology.utility import (
    AFTER,
    BEFORE,
    bars_of,
    either_way,
    filter_received,
    filter_sample,
    may_suit,
    side_distance,
)

# The third of the ordered kinds of links, by which `Work.seated` counts.
FRIENDS = 2


@rule
def begin_selection(s: State, p: int) -> None:
    """Empty all seats, and decide where small-world links are sought."""
    work = s.work
    for k in range(work.seat_word.shape[0]):
        work.seat_word[k] = -1
    for kind in range(work.seated.shape[0]):
        work.seated[kind] = 0
    if s.params.small_world_links > 0:
        set_targets(s, p)
    set_bars(s, p)


@rule
def set_bars(s: State, p: int) -> None:
    """Note what a candidate has to equal at least to be worth a closer look."""
    work = s.work
    ring = s.params.ring_links
    for side in range(2):
        work.farthest[side] = RING
        if work.seated[side] == ring:
            work.farthest[side] = -1
            if ring > 0:
                last = work.seat_identifier[side * ring + ring - 1]
                work.farthest[side] = side_distance(s, p, side, last)
    for k in range(s.params.small_world_links):
        slot = 2 * ring + k
        work.reach[k] = RING
        if work.seat_word[slot] >= 0:
            work.reach[k] = either_way(work.target[k], work.seat_identifier[slot])
    work.lowest[0] = -1.0
    if work.seated[FRIENDS] == s.params.friend_links:
        work.lowest[0] = 2.0
        if s.params.friend_links > 0:
            work.lowest[0] = work.seat_utility[s.params.chosen_links - 1]


@inline_rule
def sampled_word(s: State, p: int, c: int, now: int) -> Any:
    """The first word of the descriptor in slot ``c`` of the random view.

    Where descriptors carry the time they were written at, that becomes an age here.
    """
    word = s.sampler.views[p, c] & PLAIN
    if s.sampler.tells_times == 1:
        word = max(now - age_in(word), 0) << AGE_SHIFT | handle_in(word)
    return word


@rule
def set_targets(s: State, p: int) -> None:
    """Decide where on the ring small-world links are sought."""
    draw_offsets(s, p)
    for k in range(s.params.small_world_links):
        distance = offset_distance(s, p, k)
        s.work.target[k] = (s.sampler.profile[p, IDENTIFIER] + distance) & RING_MASK


@rule
def offer_links(s: State, p: int) -> None:
    """Seat peer ``p``'s present neighbours, of the utilities that `set_bars_by_links` found.

    Nobody else may be seated yet.
    """
    if s.params.friend_links == s.params.chosen_links and seat_friends_in_order(s, p):
        set_bars(s, p)
        return
    for k in range(s.params.chosen_links):
        if s.links[p, k] >= 0:
            identifier = s.link_profile[p, k, IDENTIFIER]
            find_seat(s, p, s.links[p, k], k, identifier, s.work.link_utility[k])
    set_bars(s, p)


@rule
def seat_friends_in_order(s: State, p: int) -> bool:
    """Seat all neighbours where they are, if all are friends and in order; else leave no seats.

    They are in order unless interests have changed. To offer one after another takes far longer.
    """
    work = s.work
    friends = s.params.friend_links
    filled = 0
    for k in range(friends):
        filled += s.links[index(p), index(k)] >= 0
        work.seat_word[index(k)] = s.links[index(p), index(k)]
        work.seat_identifier[index(k)] = s.link_profile[index(p), index(k), IDENTIFIER]
        work.seat_source[index(k)] = k
        work.seat_utility[index(k)] = work.link_utility[index(k)]
    misplaced = friends - filled
    for k in range(1, friends):
        misplaced += is_better_friend(s, p, k, k - 1)
    if misplaced == 0:
        work.seated[FRIENDS] = friends
        return True
    for k in range(friends):
        work.seat_word[index(k)] = -1
    return False


@rule
def offer_received(s: State, p: int, words: Words, at: int, count: int) -> None:
    """Offer the slots to ``count`` descriptors, written in ``words`` from ``at`` on."""
    work = s.work
    size = 1 + s.link_profile.shape[2]
    for i in range(filter_received(s, p, words, at, count)):
        d = work.suiting[i]
        start = at + d * size
        identifier = words[start + 1 + IDENTIFIER]
        # The bar rises with everyone seated.
        if may_suit(s, bars_of(s, p), identifier, work.utility[d]):
            source = s.params.chosen_links + d
            seat_candidate(s, p, words[start], source, identifier, work.utility[d])


@rule
def offer_sample(s: State, p: int, now: int) -> None:
    """Offer the slots to the random view of the peer sampling layer."""
    work = s.work
    first = 2 * s.params.chosen_links + 1
    for i in range(filter_sample(s, p)):
        c = work.suiting[i]
        identifier = s.sampler.view_profile[p, c, IDENTIFIER]
        if may_suit(s, bars_of(s, p), identifier, work.utility[c]):
            word = sampled_word(s, p, c, now)
            seat_candidate(s, p, word, first + c, identifier, work.utility[c])


@rule
def seat_candidate(
    s: State, p: int, word: int, source: int, identifier: int, utility: float
) -> None:
    """Find a seat for a candidate, unless it is no peer to be linked to, or seated already.

    Of two descriptors of one peer the younger counts.
    """
    work = s.work
    if word < 0 or handle_in(word) == s.sampler.handle[p] or is_refused(s, p, word, identifier):
        return
    k = seat_of(s, handle_in(word))
    if k >= 0:
        if work.seat_word[k] <= word:
            return
        if work.seat_identifier[k] == identifier and work.seat_utility[k] == utility:
            work.seat_word[k] = word
            work.seat_source[k] = source
            return
        vacate(s, k)
    find_seat(s, p, word, source, identifier, utility)
    set_bars(s, p)


@rule
def seat_of(s: State, handle: int) -> int:
    """Which seat a peer has, -1 if none."""
    found = 0
    for k in range(s.params.chosen_links):
        word = s.work.seat_word[index(k)]
        # No branch: the loop is short, and its end would be foretold wrongly every time.
        found = max(found, k + 1 if (handle_in(word) == handle) & (word >= 0) else 0)
    return found - 1


@rule
def vacate(s: State, k: int) -> None:
    """Empty a seat; among ordered ones those behind it move up."""
    ring = s.params.ring_links
    s.work.seat_word[k] = -1
    if 2 * ring <= k < 2 * ring + s.params.small_world_links:
        return
    kind, last = FRIENDS, s.params.chosen_links - 1
    if k < 2 * ring:
        kind = k // ring
        last = kind * ring + ring - 1
    s.work.seated[kind] -= 1
    while k < last:
        swap_seats(s, k, k + 1)
        k += 1


@inline_rule
def swap_seats(s: State, one: int, other: int) -> None:
    """Exchange who sits in two seats."""
    work = s.work
    word, identifier = work.seat_word[one], work.seat_identifier[one]
    source, utility = work.seat_source[one], work.seat_utility[one]
    work.seat_word[one] = work.seat_word[other]
    work.seat_identifier[one] = work.seat_identifier[other]
    work.seat_source[one] = work.seat_source[other]
    work.seat_utility[one] = work.seat_utility[other]
    work.seat_word[other], work.seat_identifier[other] = word, identifier
    work.seat_source[other], work.seat_utility[other] = source, utility


@rule
def find_seat(s: State, p: int, word: int, source: int, identifier: int, utility: float) -> None:
    """Send a candidate along the slots: it, or whom it displaces, until somebody holds nothing."""
    work = s.work
    hand = s.params.chosen_links
    work.seat_word[hand] = word
    work.seat_source[hand] = source
    work.seat_identifier[hand] = identifier
    work.seat_utility[hand] = utility
    ring = s.params.ring_links
    if ring > 0 and (enter_ring(s, p, AFTER) or enter_ring(s, p, BEFORE)):
        return
    if is_finger(s, p, handle_in(work.seat_word[hand])):
        return
    for k in range(s.params.small_world_links):
        slot = 2 * ring + k
        if work.seat_word[slot] < 0:
            swap_seats(s, slot, hand)
            return
        away = either_way(work.target[k], work.seat_identifier[hand])
        if away < either_way(work.target[k], work.seat_identifier[slot]):
            swap_seats(s, slot, hand)
    if s.params.friend_links > 0:
        enter_friends(s, p)


@rule
def is_finger(s: State, p: int, handle: int) -> bool:
    """Whether a peer is a neighbour in a slot that is not chosen for: a finger, host or guest.

    That is asked where there are such slots, and others to choose for than those on the ring.
    """
    chosen = s.params.chosen_links
    if s.links.shape[1] == chosen or chosen == 2 * s.params.ring_links:
        return False
    return bool(slot_of(s, p, handle) >= chosen)


@rule
def suits_ring(s: State, p: int, identifier: int) -> bool:
    """Whether a place is as near as that of the farthest neighbour of one side of the ring."""
    is_after = side_distance(s, p, AFTER, identifier) <= s.work.farthest[AFTER]
    return bool(is_after or side_distance(s, p, BEFORE, identifier) <= s.work.farthest[BEFORE])


@rule
def enter_ring(s: State, p: int, side: int) -> bool:
    """Let the candidate in hand have its place among the nearest of one side, the last leaving.

    Returns whether nobody is in hand now.
    """
    work = s.work
    hand = s.params.chosen_links
    first = side * s.params.ring_links
    place = first + work.seated[side]
    away = side_distance(s, p, side, work.seat_identifier[hand])
    if work.seated[side] == s.params.ring_links:
        place -= 1
        if side_distance(s, p, side, work.seat_identifier[place]) <= away:
            return False
    else:
        work.seated[side] += 1
    swap_seats(s, place, hand)
    while place > first and side_distance(s, p, side, work.seat_identifier[place - 1]) > away:
        swap_seats(s, place, place - 1)
        place -= 1
    return bool(work.seat_word[hand] < 0)


@rule
def enter_friends(s: State, p: int) -> None:
    """Let the candidate in hand have its place among the friends of highest utility.

    Equal utilities order by the distance of identifiers (exclusive or), which differs from peer to
    peer: otherwise everybody would choose the same among peers with equal subscriptions.
    """
    work = s.work
    hand = s.params.chosen_links
    first = hand - s.params.friend_links
    place = first + work.seated[FRIENDS]
    if work.seated[FRIENDS] == s.params.friend_links:
        place -= 1
        if not is_better_friend(s, p, hand, place):
            return
    else:
        work.seated[FRIENDS] += 1
    swap_seats(s, place, hand)
    while place > first and is_better_friend(s, p, place, place - 1):
        swap_seats(s, place, place - 1)
        place -= 1


@inline_rule
def is_better_friend(s: State, p: int, one: int, other: int) -> Any:
    """Whether who sits in one seat makes a better friend than who sits in the other."""
    work = s.work
    if work.seat_utility[one] != work.seat_utility[other]:
        return work.seat_utility[one] > work.seat_utility[other]
    me = s.sampler.profile[p, IDENTIFIER]
    return work.seat_identifier[one] ^ me < work.seat_identifier[other] ^ me


@rule
def write_selection(s: State, p: int, words: Words, at: int) -> None:
    """Let those seated be the neighbours of ``p``, profiles and all.

    Args:
        words, at: where the descriptors stand that `offer_received` was given.
    """
    work = s.work
    slots = s.params.chosen_links
    size = s.link_profile.shape[2]
    if may_rest(s):
        install_soon(s, p)
        note_new_on_ring(s, p)
    for k in range(slots):
        source = work.seat_source[k]
        if work.seat_word[k] < 0 or source == k:
            continue
        if source < slots:
            for w in range(size):
                work.seat_profile[k, w] = s.link_profile[p, source, w]
        elif source < 2 * slots + 1:
            start = at + (source - slots) * (1 + size) + 1
            for w in range(size):
                work.seat_profile[k, w] = words[start + w]
        else:
            for w in range(size):
                work.seat_profile[k, w] = s.sampler.view_profile[p, source - 2 * slots - 1, w]
    for k in range(slots):
        s.links[p, k] = work.seat_word[k]
        if work.seat_word[k] >= 0 and work.seat_source[k] != k:
            for w in range(size):
                s.link_profile[p, k, w] = work.seat_profile[k, w]
    empty_fingers_on_ring(s, p)
    settle_ring(s, p)


@rule
def note_new_on_ring(s: State, p: int) -> None:
    """Stir ``p`` if somebody gets a seat on the ring that had none there, or another place."""
    for k in range(2 * s.params.ring_links):
        word = s.work.seat_word[k]
        if word >= 0:
            held = slot_of(s, p, handle_in(word))
            is_new = not 0 <= held < 2 * s.params.ring_links
            if is_new or s.link_profile[p, held, IDENTIFIER] != s.work.seat_identifier[k]:
                stir(s, p)


@rule
def empty_fingers_on_ring(s: State, p: int) -> None:
    """Nobody is a neighbour twice: who has got a place on the ring is no finger any more."""
    for f in range(s.params.chosen_links, s.links.shape[1]):
        for k in range(2 * s.params.ring_links):
            if handle_in(s.links[p, k]) == handle_in(s.links[p, f]) and s.links[p, k] >= 0:
                s.links[p, f] = -1
                break
