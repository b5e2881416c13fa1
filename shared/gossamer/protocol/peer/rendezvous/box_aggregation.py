"""Splitting boxes among next hops: the lists that installation sends (Algorithm 2, showering).

A list per arc of the ring gathers, aggregated, the parts of boxes that go to the arc's next hop.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.routing.lookup import anchor, own_arc_begins, plan_arcs
from gossamer.protocol.peer.routing.table import aggregate
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING, RING_MASK, clockwise
from gossamer.protocol.peer.state.state import State

# More than any distance: of requests that nobody sent.
NO_LIMIT = RING


@rule
def spread_arc(
    s: State, p: int, i: int, low: int, high: int, attribute: int, box: Any, at: int
) -> None:
    """List the part of the box ``box[at:]`` at clockwise distances [low, high] for hop ``i``."""
    if low > high:
        return
    me = s.sampler.profile[p, IDENTIFIER]
    for w in range(s.work.box.shape[0]):
        s.work.box[w] = box[at + w]
    if s.params.by_value == 1:
        s.work.box[1 + 2 * attribute] = (me + low) & RING_MASK
        s.work.box[2 + 2 * attribute] = (me + high) & RING_MASK
    s.work.counts[i] = aggregate(s, p, i * s.params.boxes, s.work.counts[i])


@rule
def spread_segment(
    s: State, p: int, arcs: int, first: int, last: int, attribute: int, box: Any, at: int
) -> None:
    """Split clockwise distances [first, last] among the arcs and list the parts by next hop."""
    begins = 1
    for i in range(arcs):
        if begins > last:
            return
        ends = s.work.bounds[i]
        if ends >= first:
            spread_arc(s, p, i, max(first, begins), min(last, ends), attribute, box, at)
        begins = ends + 1


@rule
def spread(s: State, p: int, arcs: int, limit: int, box: Any, at: int) -> None:
    """List the parts of a box by next hop (Algorithm 2, showering).

    Values at clockwise distances up to ``limit`` follow the arcs; from there to the own arc they
    are final for the sender but not ours, and go back; the own arc stays here.
    """
    me = s.sampler.profile[p, IDENTIFIER]
    attribute = box[at]
    if s.params.by_value == 1:
        first = clockwise(me, box[at + 1 + 2 * attribute])
        last = clockwise(me, box[at + 2 + 2 * attribute])
    else:
        first = clockwise(me, anchor(attribute))
        last = first
    if first <= last:
        spread_both_ways(s, p, arcs, limit, first, last, attribute, box, at)
    else:
        spread_both_ways(s, p, arcs, limit, 1, last, attribute, box, at)
        spread_both_ways(s, p, arcs, limit, first, RING_MASK, attribute, box, at)


@rule
def spread_both_ways(
    s: State,
    p: int,
    arcs: int,
    limit: int,
    first: int,
    last: int,
    attribute: int,
    box: Any,
    at: int,
) -> None:
    """List distances [first, last]: onwards up to ``limit``, back from there to the own arc.

    Only what belongs to one of the R predecessors that we know goes back. Requests are forwarded
    at once but vanish hop by hop, a round each: one that went back further, as happens while the
    ring forms, would haunt it for as many rounds as it went back hops.
    """
    begins = own_arc_begins(s, p)
    if s.params.nearest_routing == 1:
        if limit == NO_LIMIT:
            spread_segment(s, p, arcs, first, min(last, begins), attribute, box, at)
            return
        # What is nearer to us than to the sender, on either side, goes on; the rest is final.
        halfway = limit + (RING - limit) // 2
        onwards = min((limit - 1) // 2, begins)
        spread_segment(s, p, arcs, first, min(last, onwards), attribute, box, at)
        spread_segment(s, p, arcs, max(first, halfway + 1), min(last, begins), attribute, box, at)
        last = min(last, halfway)
    else:
        spread_segment(s, p, arcs, first, min(last, limit), attribute, box, at)
    known_from = limit
    if arcs > s.params.ring_links:
        known_from = max(limit, s.work.bounds[arcs - 1 - s.params.ring_links])
    if known_from < begins:
        low = max(first, known_from + 1)
        spread_segment(s, p, arcs, low, min(last, begins), attribute, box, at)


@rule
def forwarding_limit(s: State, p: int, source_identifier: int) -> int:
    """The clockwise distance up to which what a sender asked for is forwarded.

    With routing to the nearest it is how far the sender is, from which `spread` finds what is
    nearer to us.
    """
    source = clockwise(s.sampler.profile[p, IDENTIFIER], source_identifier)
    if s.params.nearest_routing == 1:
        return source
    return min(own_arc_begins(s, p), source)


@rule
def limit_of_own(s: State, p: int) -> int:
    """The limit for what ``p`` asks for itself: none."""
    return NO_LIMIT if s.params.nearest_routing == 1 else own_arc_begins(s, p)


@rule
def begin_lists(s: State, p: int) -> int:
    """Empty the lists of boxes by next hop, and return the number of arcs."""
    arcs = plan_arcs(s, p)
    for i in range(arcs):
        s.work.counts[i] = 0
    return arcs


@rule
def routing_attribute(s: State, p: int, k: int) -> int:
    """The attribute by which subscription ``k`` of ``p`` is installed.

    The primary attribute. A subscription that does not constrain it would have to be installed
    all over the ring; it goes by the first attribute that it does constrain (the paper does not
    say what happens to it). Where keys are routed by it is the key.
    """
    if s.params.key >= 0:
        return s.params.key
    mask = s.constrained[p, k]
    if mask == 0 or (mask >> s.primary[p]) & 1 == 1:
        return s.primary[p]
    a = 0
    while (mask >> a) & 1 == 0:
        a += 1
    return a


@rule
def take_own_box(s: State, p: int, k: int) -> None:
    """Let ``work.box`` be subscription ``k`` of ``p``."""
    s.work.box[0] = routing_attribute(s, p, k)
    for w in range(s.subscriptions.shape[2]):
        s.work.box[1 + w] = s.subscriptions[p, k, w]
