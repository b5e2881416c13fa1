"""Boxes that are installed: how they are split among next hops, taken in, and renewed.

A list per arc of the ring gathers, aggregated, the parts of boxes that go to the arc's next hop.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, LENGTH, Words
from gossamer.protocol.kernel.rows.row_search import digest_row, digest_rows
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.space.ring import RING, RING_MASK, clockwise
from gossamer.protocol.peer.state.links import descriptor_words, handle_in
from gossamer.protocol.peer.state.lookup import anchor, handle_of_slot, own_arc_begins, plan_arcs
from gossamer.protocol.peer.state.resting import interval, is_turn
from gossamer.protocol.peer.state.routing_table import (
    aggregate,
    entry_covers,
    is_handed_over,
    listed_box_covers,
    source_of,
)
from gossamer.protocol.peer.state.state import MALFORMED, State

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


# What a peer makes of the boxes that an INSTALL brings, before it takes any of them in.


# What is to be done with a box received.
KNOWN, HELD_ELSEWHERE, NEW = 0, 1, 2


@inline_rule
def head_words(s: State) -> Any:
    """Words of an INSTALL's body before the boxes."""
    return descriptor_words(s) + 2


@rule
def boxes_are_well_formed(s: State, p: int, words: Words, at: int) -> bool:
    """Whether the boxes of a record fit its length, our tables and the schema."""
    head = head_words(s)
    size = s.work.box.shape[0]
    fits = words[at + LENGTH] >= BODY + head
    if fits:
        count = words[at + BODY + head - 1]
        fits = 0 <= count <= s.params.boxes and words[at + LENGTH] == BODY + head + count * size
        for i in range(count if fits else 0):
            attribute = words[at + BODY + head + i * size]
            if attribute < 0 or attribute >= s.params.attributes:
                fits = False
    if not fits:
        s.counters[p, MALFORMED] += 1
    return fits


@rule
def covered_by_own(s: State, p: int, words: Words, at: int) -> bool:
    """Whether a subscription of ``p`` itself covers the box at ``words[at:]``."""
    own = s.links.shape[1] * s.params.boxes
    size = s.work.box.shape[0]
    for k in range(s.constrained.shape[1]):
        if s.constrained[p, k] >= 0:
            take_own_box(s, p, k)
            for w in range(size):
                s.work.lists[own, w] = s.work.box[w]
            if listed_box_covers(s, own, words, at, size):
                return True
    return False


@rule
def classify_box(s: State, p: int, words: Words, at: int, source: int) -> int:
    """What the box at ``words[at:]`` is to the routing table."""
    size = s.work.box.shape[0]
    found = NEW
    for e in range(s.table_count[p]):
        if entry_covers(s, p, e, words, at, size):
            if source_of(s, p, e) == source and not is_handed_over(s, p, e):
                return KNOWN
            found = HELD_ELSEWHERE
    return found


@rule
def classify_boxes(s: State, p: int, words: Words, first: int, count: int, source: int) -> int:
    """Write to ``work.news`` what each box received is; return how many are not known."""
    unknown = 0
    for i in range(count):
        at = first + i * s.work.box.shape[0]
        s.work.news[i] = classify_box(s, p, words, at, source)
        if s.work.news[i] != KNOWN:
            unknown += 1
            if s.work.news[i] == NEW and covered_by_own(s, p, words, at):
                s.work.news[i] = HELD_ELSEWHERE
    return unknown


# When the periodic installation goes out. Goes beyond the paper, which has it in every round.
#
# With ``refresh_rounds`` above 1 a peer installs everything once in so many rounds. In each round
# before which anything changed that its installations follow from (its place, its neighbours and
# theirs, its subscriptions, what others asked for here) it installs anew where that makes a
# difference. So a change travels as it does in the paper, and only repetitions are rarer. Peers
# take turns by their keys.


# Of a digest: nothing is installed, so that everything is to be.
NOTHING_INSTALLED = 0
# What is installed in a round.
NOTHING, HEARTBEATS, CHANGES, EVERYTHING = -1, 0, 1, 2


@rule
def what_to_install(s: State, p: int) -> int:
    """Whether this round is one for all installations, for those that changed, or for none."""
    if s.params.refresh_rounds == 1:
        return EVERYTHING
    digest = digest_sources(s, p)
    before = s.installed_digest[p, 0]
    s.installed_digest[p, 0] = digest
    is_repeated = is_turn(s, p, s.round[p]) and is_turn_in(s, p, s.round[p])
    if is_repeated or before == NOTHING_INSTALLED:
        return EVERYTHING
    return CHANGES if digest != before else HEARTBEATS


@inline_rule
def is_turn_in(s: State, p: int, number: int) -> Any:
    """Whether ``p`` installs everything in its round of this number, after an interval of rest."""
    return (number + s.sampler.key[p]) % s.params.refresh_rounds < interval(s, p)


@rule
def install_anew(s: State, p: int) -> None:
    """Let the next round be one in which everything is installed."""
    if s.params.refresh_rounds > 1:
        s.installed_digest[p, 0] = NOTHING_INSTALLED


@rule
def is_installed(s: State, p: int, to: int, digest: int) -> bool:
    """Whether the boxes with this digest are what was last installed at ``to``."""
    for i in range(s.installed_at.shape[1]):
        if s.installed_at[p, i] == to:
            return bool(s.installed_digest[p, 1 + i] == digest)
    return False


@rule
def digest_boxes(s: State, p: int, first: int, count: int) -> int:
    """A word for the boxes ``work.lists[first:first + count]``, asked for from this place."""
    digest = s.sampler.profile[p, IDENTIFIER]
    for i in range(count):
        digest = digest_row(digest, s.work.lists, first + i)
    return int(digest)


@rule
def note_installed(s: State, p: int, arcs: int) -> None:
    """Remember at whom something is installed now, and what where that matters."""
    for i in range(s.installed_at.shape[1]):
        is_asked = i < arcs and s.work.counts[i] > 0
        s.installed_at[p, i] = handle_of_slot(s, p, s.work.hops[i]) if is_asked else -1
        if is_asked and s.params.refresh_rounds > 1:
            first = i * s.params.boxes
            s.installed_digest[p, 1 + i] = digest_boxes(s, p, first, s.work.counts[i])


@rule
def digest_sources(s: State, p: int) -> int:
    """A word for all that installations follow from; two states share one by rare chance only.

    What changed unnoticed is installed with the next repetition.
    """
    write_places(s, p)
    digest = digest_row(1, s.work.places, 0)
    digest = digest_row(digest, s.constrained, p)
    digest = digest_rows(digest, s.subscriptions, p, s.subscriptions.shape[1])
    return digest_rows(digest, s.table, p, s.table_count[p])


@rule
def write_places(s: State, p: int) -> None:
    """Write to ``work.places`` all that routing reads of ``p`` and of its neighbours."""
    places = s.work.places
    places[0, 0] = s.sampler.profile[p, IDENTIFIER]
    places[0, 1] = s.primary[p]
    places[0, 2] = s.predecessor[p]
    for k in range(s.links.shape[1]):
        at = 3 + 3 * k
        word = s.links[p, k]
        if word < 0:
            places[0, at] = -1
            places[0, at + 1] = -1
            places[0, at + 2] = -1
            continue
        places[0, at] = handle_in(word)
        places[0, at + 1] = s.link_profile[p, k, IDENTIFIER]
        places[0, at + 2] = s.link_profile[p, k, ARC_START] if s.params.ring_links > 0 else -1
