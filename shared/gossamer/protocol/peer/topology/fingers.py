"""Long links: fingers, whose reach doubles in *ranks* on the ring, and small-world links.

The paper's small-world links are sought at distances of identifiers, which makes hubs where
identifiers are uneven; here peers have their places where their interests lie, so they are. A
finger's reach counts peers: that of level 0 is the farthest ring neighbour's farthest ring
neighbour, that of level i + 1 is the level-i finger's level-i finger, as Chord# doubles pointers
(Schuett et al.). With R ring links it lies R * 2^(i + 1) peers away, on either side.

One exchange keeps two of them right. A peer p tells its finger q of a level, on its clockwise side,
whom it has on the other side at that level, and is told whom q has on the clockwise side: q's next
finger counter-clockwise is that peer, and p's next finger clockwise is this one. So who is p's
finger clockwise has p as its finger the other way: a connection serves both its ends, and as many
lead to a peer as it has itself, however uneven identifiers are. A level whose fingers of both sides
would have passed each other is left empty. Levels take turns at being asked; a finger that is new
is asked at once, so that a change at one level does not wait for a turn of each level above it.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import (
    FINGER_DESCRIPTORS,
    FINGER_LEVEL,
    FINGER_REPLY,
    FINGER_REQUEST,
)
from gossamer.protocol.peer.sampling.sampler import draw
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING, RING_BITS, clockwise
from gossamer.protocol.peer.state.links import (
    descriptor_words,
    handle_in,
    is_off_ring,
    is_refused,
    note_asked,
    put_link,
    refresh_link,
    settle_ring,
    slot_of,
    write_link,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.resting import asks_fingers, install_soon, turn_number
from gossamer.protocol.peer.state.state import MALFORMED, State
from gossamer.protocol.peer.topology.utility import AFTER, BEFORE, side_distance

# The level below the first: the farthest of the ring neighbours.
RING_LEVEL = -1


@inline_rule
def finger_slot(s: State, side: int, level: int) -> Any:
    """The link slot of the finger of a level, which may be empty."""
    return s.params.chosen_links + side * s.params.finger_levels + level


@rule
def reach_slot(s: State, p: int, side: int, level: int) -> int:
    """The link slot of whom ``p`` has at a level, or -1; at the ring's the farthest of a full side.

    A side with empty slots tells that there are fewer peers than a finger would reach.
    """
    if level > RING_LEVEL:
        slot = finger_slot(s, side, level)
        return slot if s.links[p, slot] >= 0 else -1
    ring = s.params.ring_links
    found = -1
    farthest = -1
    for k in range(side * ring, side * ring + ring):
        if s.links[p, k] < 0:
            return -1
        away = side_distance(s, p, side, s.link_profile[p, k, IDENTIFIER])
        if away > farthest:
            found = k
            farthest = away
    return found


@rule
def reach(s: State, p: int, side: int, level: int) -> int:
    """How far on the ring it is to whom ``p`` has at a level; -1 where there is nobody."""
    k = reach_slot(s, p, side, level)
    if k < 0:
        return -1
    return side_distance(s, p, side, s.link_profile[p, k, IDENTIFIER])


@rule
def exchange_fingers(s: State, p: int, out: Outbox) -> None:
    """Ask whom ``p`` has at some levels for the next ones; all levels take turns."""
    if s.params.finger_levels == 0 or not asks_fingers(s, p):
        return
    known = 1
    while known <= s.params.finger_levels and reach_slot(s, p, AFTER, known - 1) >= 0:
        known += 1
    asked = min(known, s.params.finger_exchanges)
    for i in range(asked):
        level = (turn_number(s, p) * s.params.finger_exchanges + i) % known - 1
        k = reach_slot(s, p, AFTER, level)
        if k >= 0:
            send_finger(s, p, FINGER_REQUEST, handle_in(s.links[p, k]), level, BEFORE, out)
            note_asked(s, p, k)


@rule
def send_finger(s: State, p: int, kind: int, to: int, level: int, side: int, out: Outbox) -> None:
    """Tell ``to`` whom ``p`` has on a side at a level: level, own descriptor, its if there is."""
    size = descriptor_words(s)
    length = FINGER_DESCRIPTORS + 2 * size
    at = open_record(out, kind, to, s.sampler.handle[p], length)
    if at < 0:
        return
    out.words[at + BODY + FINGER_LEVEL] = level + 1
    write_own_descriptor(s, p, out.words, at + BODY + FINGER_DESCRIPTORS)
    k = reach_slot(s, p, side, level)
    if k >= 0 and handle_in(s.links[p, k]) != to:
        write_link(s, p, k, out.words, at + BODY + FINGER_DESCRIPTORS + size)
    else:
        length -= size
    close_record(out, at, length)


@rule
def finger_level(s: State, p: int, words: Words, at: int) -> int:
    """The level that an exchange is about, or -2 where it is malformed or has no meaning here."""
    size = descriptor_words(s)
    length = words[at + LENGTH] - BODY - FINGER_DESCRIPTORS
    if is_off_ring(s, p):
        return -2
    if length == size or length == 2 * size:
        level = words[at + BODY + FINGER_LEVEL] - 1
        if RING_LEVEL <= level < s.params.finger_levels:
            return int(level)
    s.counters[p, MALFORMED] += 1
    return -2


@rule
def on_finger_request(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Somebody has us as a finger clockwise: it is ours the other way, and what it has our next."""
    level = finger_level(s, p, words, at)
    if level < RING_LEVEL:
        return
    own = at + BODY + FINGER_DESCRIPTORS
    refresh_link(s, p, words, own)
    if level > RING_LEVEL and reach_slot(s, p, BEFORE, level) < 0:
        set_finger(s, p, BEFORE, level, words, own)
    send_finger(s, p, FINGER_REPLY, words[at + FROM], level, AFTER, out)
    take_next_finger(s, p, BEFORE, level, words, at)


@rule
def on_finger_reply(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """A finger told us of its own: it is our next, and is asked at once if it was not before."""
    level = finger_level(s, p, words, at)
    if level < RING_LEVEL:
        return
    refresh_link(s, p, words, at + BODY + FINGER_DESCRIPTORS)
    slot = reach_slot(s, p, AFTER, level + 1) if level + 1 < s.params.finger_levels else -1
    before = handle_in(s.links[p, slot]) if slot >= 0 else -1
    take_next_finger(s, p, AFTER, level, words, at)
    if level + 2 >= s.params.finger_levels:
        return
    slot = reach_slot(s, p, AFTER, level + 1)
    if slot >= 0 and handle_in(s.links[p, slot]) != before:
        send_finger(s, p, FINGER_REQUEST, handle_in(s.links[p, slot]), level + 1, BEFORE, out)
        note_asked(s, p, slot)


@rule
def take_next_finger(s: State, p: int, side: int, level: int, words: Words, at: int) -> None:
    """Let whom the sender told of be the finger of the next level, if it is whom we have at this.

    Others tell of peers that are farther or nearer than that; where we have nobody yet they serve.
    """
    size = descriptor_words(s)
    told = at + BODY + FINGER_DESCRIPTORS + size
    if level + 1 == s.params.finger_levels or words[at + LENGTH] <= told - at:
        return
    k = reach_slot(s, p, side, level)
    is_ours = k >= 0 and handle_in(s.links[p, k]) == words[at + FROM]
    if is_ours or reach_slot(s, p, side, level + 1) < 0:
        set_finger(s, p, side, level + 1, words, told)


@rule
def set_finger(s: State, p: int, side: int, level: int, words: Words, at: int) -> None:
    """Let the owner of the descriptor at ``words[at:]`` be the finger of a level.

    It has to lie farther than that of the level below, and before that of the other side.
    Who is a ring neighbour or a finger of a lower level already stays what it is.
    """
    handle = handle_in(words[at])
    slot = finger_slot(s, side, level)
    held = slot_of(s, p, handle)
    identifier = words[at + 1 + IDENTIFIER]
    is_own = handle == s.sampler.handle[p]
    if words[at] < 0 or is_own or is_refused(s, p, words[at], identifier):
        return
    if held == slot:
        if words[at] <= s.links[p, slot]:
            put_link(s, p, slot, words, at)
        return
    away = side_distance(s, p, side, identifier)
    below = reach(s, p, side, level - 1)
    other = reach(s, p, AFTER + BEFORE - side, level - 1)
    if below < 0 or other < 0 or away <= below or away + other >= RING:
        leave_empty(s, p, slot)
        return
    if held >= 0:
        # Friends and small-world links give way: with an empty level all above it would be lost.
        if held < 2 * s.params.ring_links or s.params.chosen_links <= held < slot:
            leave_empty(s, p, slot)
            return
        s.links[p, held] = -1
    put_link(s, p, slot, words, at)
    settle_ring(s, p)


@rule
def leave_empty(s: State, p: int, slot: int) -> None:
    """Nobody is the finger of a level any more, if anybody was."""
    if s.links[p, slot] >= 0:
        install_soon(s, p)
        s.links[p, slot] = -1
        settle_ring(s, p)


# Small-world links: sought at distances with density 1/d, so that every scale is equally likely.
#
# Kleinberg's model as Symphony builds it (Vinifera, Sec. IV-B1, refs. [24] and [26]).


HALF = 31
HALF_MASK = (1 << HALF) - 1
SMALLEST_OCTAVE = 32


@rule
def draw_offsets(s: State, p: int) -> None:
    """Draw, once, at what distances peer ``p`` seeks its small-world links.

    An offset holds two numbers of 31 bits: the scale, uniform over the octaves of the ring, and
    the place within an octave, accepted with probability 1 / (1 + place), which turns a flat
    octave into 1/d. Integers only, so that every host draws the same.
    """
    for k in range(s.offsets.shape[1]):
        if s.offsets[p, k] >= 0:
            continue
        scale = draw(s.sampler, p) >> HALF
        while True:
            place = draw(s.sampler, p) >> HALF
            if (draw(s.sampler, p) >> (HALF + 1)) * ((1 << HALF) + place) < 1 << (2 * HALF - 1):
                break
        s.offsets[p, k] = scale << HALF | place


@rule
def offset_distance(s: State, p: int, k: int) -> int:
    """The clockwise distance of ``p``'s small-world link ``k``.

    The smallest scale is that of the gap to the successor, so that offsets drawn before the ring
    has formed fit its density when it has.
    """
    octave = SMALLEST_OCTAVE
    if s.successor[p] >= 0:
        gap = clockwise(
            s.sampler.profile[p, IDENTIFIER], s.link_profile[p, s.successor[p], IDENTIFIER]
        )
        while octave < RING_BITS - 1 and gap >> (octave + 1) > 0:
            octave += 1
    scale = s.offsets[p, k] >> HALF
    octave += (scale * (RING_BITS - octave)) >> HALF
    place = s.offsets[p, k] & HALF_MASK
    base = 1 << octave
    if octave >= HALF:
        return base + (place << (octave - HALF))
    return base + (place >> (HALF - octave))
