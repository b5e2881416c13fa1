"""Routing: greedy lookup of a value, showering of a range, and progress, so that nothing loops.

Vinifera, Sec. IV-B2 and Algorithm 2. The rendezvous node of a value is the peer with the closest
identifier at or after it. Seen from one peer the ring is cut into arcs, one a next hop; a value
follows the hop of its arc, a range is split where arcs meet. With distances measured clockwise
from the peer, the arc of neighbour i, which lies at d_i and whose own predecessor lies at s_i, is
(s_i, s_{i+1}]: up to d_i it is the rendezvous node itself, past it the closest peer before the
value. The first arc begins at the peer, the last ends where the peer's own arc begins. Every hop
lies strictly closer before the value, or is its rendezvous node, so that lookups cannot loop.

Departs from the paper: descriptors carry the owner's arc, so that a peer sends a part of the range
only to neighbours that it belongs to or that come before it. Algorithm 2 sends a known neighbour
in the range everything before it as well, up to the next neighbour it knows, although peers in
between may answer for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel.rows.row_search import PAIR_BITS, around_in_column
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.space.ring import RING, RING_MASK, clockwise
from gossamer.protocol.peer.state.links import handle_in, is_off_ring
from gossamer.protocol.peer.state.state import MOVED_IN, State


@rule
def own_arc_begins(s: State, p: int) -> int:
    """Clockwise distance from ``p`` to the beginning of its own arc; values past it are its own.

    0 where it knows no other peer and answers for the whole ring.
    """
    if s.predecessor[p] < 0:
        return 0
    return clockwise(
        s.sampler.profile[p, IDENTIFIER], s.link_profile[p, s.predecessor[p], IDENTIFIER]
    )


@rule
def end_of_arc(s: State, p: int, value: int) -> int:
    """Where the arc with this value ends, as far as ``p`` knows."""
    end = s.sampler.profile[p, IDENTIFIER] & RING_MASK
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0:
            other = s.link_profile[p, k, IDENTIFIER]
            if clockwise(value, other) < clockwise(value, end):
                end = other
    return end


@rule
def neighbour_arc_begins(s: State, p: int, k: int, before: int, distance: int) -> int:
    """Where the own arc of the neighbour in slot ``k``, at ``distance``, begins as far as known.

    It begins at the neighbour's predecessor, or at a peer between the two that we know of and the
    neighbour does not (``before`` is the distance of the nearest).
    """
    if s.params.ring_links == 0:
        return before
    start = clockwise(s.sampler.profile[p, IDENTIFIER], s.link_profile[p, k, ARC_START])
    if start < before or start > distance:
        return before
    return start


@inline_rule
def slot_in_order(s: State, p: int, i: int) -> Any:
    """The link slot that was the ``i``-th on the ring."""
    return (s.clockwise_order[p, i >> 3] >> (8 * (i & 7))) & 0xFF


@rule
def sort_links(s: State, p: int) -> int:
    """Write the filled link slots in clockwise order to ``work.hops``, how far to ``work.bounds``.

    The order found is kept, so that next time there is nothing to sort. Returns their number.
    """
    me = s.sampler.profile[p, IDENTIFIER]
    hops = s.work.hops
    bounds = s.work.bounds
    count = 0
    moved = False
    for i in range(s.links.shape[1]):
        k = slot_in_order(s, p, i)
        if s.links[p, k] < 0:
            continue
        distance = clockwise(me, s.link_profile[p, k, IDENTIFIER])
        place = count
        while place > 0 and bounds[place - 1] > distance:
            bounds[place] = bounds[place - 1]
            hops[place] = hops[place - 1]
            place -= 1
            moved = True
        bounds[place] = distance
        hops[place] = k
        count += 1
    if moved:
        keep_order(s, p, count)
    return count


@rule
def keep_order(s: State, p: int, count: int) -> None:
    """Keep the order of the ``count`` slots in ``work.hops``; empty slots follow."""
    slots = s.links.shape[1]
    empty = count
    for k in range(slots):
        if s.links[p, k] < 0:
            s.work.hops[empty] = k
            empty += 1
    for word in range(s.clockwise_order.shape[1]):
        packed = 0
        for i in range(8 * word, min(8 * word + 8, slots)):
            packed |= s.work.hops[i] << (8 * (i & 7))
        s.clockwise_order[p, word] = packed


@inline_rule
def midpoint(one: int, other: int) -> Any:
    """The last distance that is no farther from ``one`` than from ``other``, which is larger."""
    return one + (other - one) // 2


@rule
def plan_arcs(s: State, p: int) -> int:
    """Cut the ring into the arcs of ``p``'s next hops.

    Writes the link slot of arc i, in clockwise order, to ``work.hops[i]`` and its last distance
    to ``work.bounds[i]``. Returns the number of arcs.
    """
    count = sort_links(s, p)
    hops = s.work.hops
    bounds = s.work.bounds
    # So far bounds holds distances; the arc before neighbour i ends where i's own arc begins.
    for i in range(count):
        if i + 1 < count:
            here, next_ = bounds[i], bounds[i + 1]
            bounds[i] = neighbour_arc_begins(s, p, hops[i + 1], here, next_)
            if s.params.nearest_routing == 1:
                bounds[i] = min(bounds[i], midpoint(here, next_))
        else:
            bounds[i] = own_arc_begins(s, p)
    return count


@rule
def slots_around(s: State, p: int, me: int, wanted: int) -> int:
    """The links closest before distance ``wanted`` from ``me``, and closest at or past it.

    Of either the first slot, plus 1, that of the former above `PAIR_BITS`; 0 where there is none.
    """
    point = (me + wanted) & RING_MASK
    around = around_in_column(s.link_profile, s.links, p, IDENTIFIER, point, RING_MASK)
    if around == 0:
        return 0
    # Seen from the point, all links at or past it come first, and the closest before it last. Where
    # one of the two has none, the other's is met there.
    before = around >> PAIR_BITS
    after = around & ((1 << PAIR_BITS) - 1)
    if clockwise(me, s.link_profile[p, before - 1, IDENTIFIER]) >= wanted:
        before = 0
    if clockwise(me, s.link_profile[p, after - 1, IDENTIFIER]) < wanted:
        after = 0
    return before << PAIR_BITS | after


@rule
def closest_past(s: State, p: int, wanted: int) -> int:
    """The first link slot at or past distance ``wanted`` from ``p``, or -1."""
    around = slots_around(s, p, s.sampler.profile[p, IDENTIFIER], wanted)
    return (around & ((1 << PAIR_BITS) - 1)) - 1


@rule
def next_hop(s: State, p: int, value: int) -> int:
    """The link slot that a lookup of ``value`` goes to, or -1 where ``p`` is its rendezvous node.

    A slot comes back as ``2 * slot + 1`` if the neighbour is believed to be the rendezvous node
    itself and ``2 * slot`` if it only lies closer.
    """
    if is_off_ring(s, p):
        return entry_hop(s, p, value)
    me = s.sampler.profile[p, IDENTIFIER]
    wanted = clockwise(me, value)
    if wanted == 0 or wanted > own_arc_begins(s, p) or s.successor[p] < 0:
        return -1
    around = slots_around(s, p, me, wanted)
    before = (around >> PAIR_BITS) - 1
    after = (around & ((1 << PAIR_BITS) - 1)) - 1
    if after >= 0:
        if before < 0:
            return 2 * after + 1
        before_distance = clockwise(me, s.link_profile[p, before, IDENTIFIER])
        after_distance = clockwise(me, s.link_profile[p, after, IDENTIFIER])
        if wanted > neighbour_arc_begins(s, p, after, before_distance, after_distance):
            return 2 * after + 1
        if s.params.nearest_routing == 1 and wanted > midpoint(before_distance, after_distance):
            return 2 * after
    return 2 * before


@rule
def entry_hop(s: State, p: int, value: int) -> int:
    """`next_hop` of a peer off the ring: whoever it knows to stand nearest, or -1."""
    found = -1
    nearest = RING
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0:
            place = s.link_profile[p, k, IDENTIFIER]
            away = min(clockwise(place, value), clockwise(value, place))
            if away < nearest:
                found = 2 * k
                nearest = away
    return found


@rule
def has_moved(s: State, p: int) -> bool:
    """Whether ``p`` has left another place so lately that others may take it to be there."""
    if s.params.move_rounds == 0 or s.seat[p, MOVED_IN] < 0:
        return False
    return bool(s.seat[p, MOVED_IN] + s.params.failure_age >= s.round[p])


@rule
def handle_of_slot(s: State, p: int, k: int) -> int:
    """The handle of the neighbour in slot ``k``."""
    return handle_in(s.links[p, k])


@rule
def anchor(attribute: int) -> int:
    """The one rendezvous value of an attribute in the baseline: evenly spread, hash-like.

    Ferry hashes attribute names; names are not known here, numbers serve as well.
    """
    golden = 0x278DDE6E5FD29E01 & RING_MASK
    point = golden
    for _ in range(attribute):
        point = (point + golden) & RING_MASK
    return point


# Those of all attributes that there may be.
ANCHORS = np.array([anchor.interpreted(attribute) for attribute in range(16)], np.int64)


@rule
def rendezvous_value(s: State, attribute: int, value: int) -> int:
    """Where on the ring an event with ``value`` for ``attribute`` has its rendezvous node."""
    if s.params.by_value == 1:
        return value
    return anchor(attribute)


# How near to its value something has come on its way, so that nothing goes round.
#
# Goes beyond the paper. Views may be wrong while peers move: who gets an event copy as the one who
# answers for it, and takes another peer for that, sends it where its owner has left, and may get it
# again. So what is on its way carries a *bound* that only falls: sent greedily, the sender's own
# distance to the value; sent as to who answers for the value, a little more than the distance from
# there to where the sender takes the receiver to stand. A receiver that is not below the bound, at
# the place where it really stands, is a *stray*: it tells the sender where it stands, and begins
# anew from there. What has strayed `MOST_STRAYS` times rests at the next.
#
# It ends with any views and whatever moves meanwhile, since (strays left, greedy before final,
# bound) falls with every hop. Below the bound and greedy, the next bound is the own distance, or
# the copy becomes final. Below the bound and final, the value is no value of the receiver's own
# arc, so that by its own table its predecessor, or who else stands closest behind the value, stands
# nearer than itself, and the next bound is at most the receiver's own distance. Each compares its
# own place and its own table at that moment.
#
# A word holds all of it: whether it is final, strays, and how far the bound has fallen; 0 where
# nothing is known.


# What `next_hop_on` gives in place of a hop.
ANSWERS, RESTS = -1, -2
# The sign of the word of what is sent as to who answers for the value.
IS_FINAL = -(1 << 63)
# Up to half the ring, distances are told exactly; those that may be longer in halves.
STRAYS_AT = 61
UNBOUNDED = (1 << STRAYS_AT) - 1
MOST_STRAYS = 3


@inline_rule
def strays_of(word: int) -> Any:
    """How often something strayed on its way."""
    return (word >> STRAYS_AT) & MOST_STRAYS


@rule
def own_distance(s: State, p: int, value: int) -> int:
    """How far ``p`` stands from a value, as the bound of what it sends greedily.

    Off the ring it is as far as can be from all.
    """
    if is_off_ring(s, p):
        return UNBOUNDED - 1
    ahead = clockwise(s.sampler.profile[p, IDENTIFIER], value)
    # One way round it may be more than half the ring.
    ahead = min(ahead, RING - ahead) if s.params.nearest_routing == 1 else ahead >> 1
    return int(min(ahead, UNBOUNDED - 1))


@rule
def is_stray(s: State, p: int, value: int, word: int) -> bool:
    """Whether ``p``, which does not answer for a value, should not have got what is sent to it.

    Args:
        s: the state; unchanged.
        p: the row.
        value: where it is to go.
        word: its progress.
    """
    bound = UNBOUNDED - (word & UNBOUNDED)
    if is_off_ring(s, p):
        return bool(word & IS_FINAL != 0 or bound < UNBOUNDED)
    if bound == UNBOUNDED:
        return False
    if word & IS_FINAL == 0:
        return bool(own_distance(s, p, value) >= bound)
    return bool(clockwise(value, s.sampler.profile[p, IDENTIFIER]) >= bound)


@rule
def next_hop_on(s: State, p: int, value: int, word: int, strayed: bool) -> int:
    """Where what is on its way to a value goes from ``p``: a hop as of `next_hop`.

    `ANSWERS` where ``p`` answers for the value, `RESTS` where it has strayed too often.
    """
    hop = next_hop(s, p, value)
    if hop < 0:
        return ANSWERS
    if strayed:
        return RESTS if strays_of(word) == MOST_STRAYS else hop
    if word & IS_FINAL != 0:
        # Some link is past the value: the predecessor is.
        ahead = clockwise(s.sampler.profile[p, IDENTIFIER], value)
        return int(2 * closest_past(s, p, ahead) + 1)
    return hop


@rule
def progress_on(s: State, p: int, hop: int, value: int, word: int, strayed: bool) -> int:
    """The progress of what goes on from ``p`` by ``hop``."""
    bound = own_distance(s, p, value)
    final = 0
    if hop & 1 == 1:
        past = clockwise(value, s.link_profile[p, hop >> 1, IDENTIFIER])
        bound = min(past, UNBOUNDED - 2) + 1
        final = IS_FINAL
    strays = strays_of(word) + strayed
    return int(final | strays << STRAYS_AT | (UNBOUNDED - bound))
