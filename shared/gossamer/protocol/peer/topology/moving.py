"""Moving: a peer goes where its subscriptions have gone.

Goes beyond the paper, whose identifiers say nothing of interests. Where no subscription of a peer
lies at its place any more (`placement.want_place`), and it has not moved for `move_rounds`, it

- looks the place up that it wants, as a guest does a host: who answers for it tells its links;
- hands its entries over to its successor, takes the new place, and tells its old neighbours, which
  take one another for neighbours from then on;
- asks its successor-to-be for a seat as a newcomer does, and is handed what goes with it.

So it answers for one arc or for the other. Copies that others still bring to its old place, as
`failure_age` rounds some may, it sends on to those who stood beside it there, whom it remembers
that long: one of them is at least as near to a value as that place was, so that every hop still
comes nearer.

A peer that has dropped all subscriptions leaves the ring in the same way, where there are
clients (`placement`), and one that has got its first comes onto it.

Two peers that share a place draw its low bits anew, which say nothing of values.
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
    FIND_SEAT,
    SEAT_DESCRIPTOR,
    SEAT_FOUND,
    SEAT_LINKS,
    SEAT_PLACE,
    SEAT_PROGRESS,
    SEAT_TARGET,
)
from gossamer.protocol.peer.rendezvous.delivery import hand_over
from gossamer.protocol.peer.rendezvous.installation import mend_view
from gossamer.protocol.peer.sampling.sampler import draw
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER, OFF_THE_RING
from gossamer.protocol.peer.space.ring import SPREAD_BITS, clockwise
from gossamer.protocol.peer.state.links import (
    descriptor_words,
    handle_in,
    is_off_ring,
    settle_ring,
    slot_of,
    write_link,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.lookup import (
    ANSWERS,
    RESTS,
    handle_of_slot,
    has_moved,
    is_stray,
    next_hop,
    next_hop_on,
    progress_on,
)
from gossamer.protocol.peer.state.resting import stir
from gossamer.protocol.peer.state.state import (
    MALFORMED,
    MOVED_IN,
    MOVES_FROM,
    OLD_PREDECESSOR,
    OLD_SUCCESSOR,
    SHIFTED,
    WANTED,
    State,
)
from gossamer.protocol.peer.topology.fingers import set_finger
from gossamer.protocol.peer.topology.membership import ask_for_place
from gossamer.protocol.peer.topology.placement import (
    NOWHERE,
    finger_end,
    first_left_slot,
    send_moved,
    take_place,
    tell_neighbours,
)
from gossamer.protocol.peer.topology.tman import select_anew

NOBODY = -1
_LOW_BITS = (1 << SPREAD_BITS) - 1


# Looking for a seat


@rule
def continue_move(s: State, p: int, out: Outbox) -> None:
    """Once a round: go on with a move that is due, and forget a place that was left long ago."""
    if s.params.move_rounds == 0:
        return
    if s.seat[p, MOVED_IN] >= 0 and not has_moved(s, p):
        forget_old_place(s, p)
    if s.round[p] < s.seat[p, MOVES_FROM]:
        return
    me = s.sampler.profile[p, IDENTIFIER]
    k = s.successor[p]
    if s.seat[p, WANTED] < 0 and k >= 0 and s.link_profile[p, k, IDENTIFIER] == me:
        s.seat[p, WANTED] = with_low_bits_anew(s, p, me)
    wanted = s.seat[p, WANTED]
    if wanted < 0:
        return
    if wanted >= OFF_THE_RING:
        leave_ring(s, p, out)
        return
    hop = next_hop(s, p, wanted)
    if hop >= 0:
        send_find_seat(s, p, handle_of_slot(s, p, hop >> 1), wanted, out)
    elif k >= 0:
        move_within_arc(s, p, wanted, out)
    else:
        begin_at(s, p, wanted)


@rule
def with_low_bits_anew(s: State, p: int, place: int) -> int:
    """A place that says the same of values, drawn."""
    return int((place & ~_LOW_BITS) | (draw(s.sampler, p) & _LOW_BITS))


@rule
def send_find_seat(s: State, p: int, to: int, wanted: int, out: Outbox) -> None:
    """Begin the search for the seat at a place: hops, the place, the own descriptor."""
    size = SEAT_DESCRIPTOR + descriptor_words(s)
    at = open_record(out, FIND_SEAT, to, s.sampler.handle[p], size)
    if at >= 0:
        out.words[at + BODY + SEAT_PROGRESS] = 0
        out.words[at + BODY + SEAT_TARGET] = wanted
        write_own_descriptor(s, p, out.words, at + BODY + SEAT_DESCRIPTOR)
        close_record(out, at, size)


@rule
def on_find_seat(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Pass a search on, or, as who answers for the place, tell who stands there."""
    size = SEAT_DESCRIPTOR + descriptor_words(s)
    body = at + BODY
    if words[at + LENGTH] != BODY + size:
        s.counters[p, MALFORMED] += 1
        return
    seeker = handle_in(words[body + SEAT_DESCRIPTOR])
    if seeker == s.sampler.handle[p]:
        return
    place, word = words[body + SEAT_TARGET], words[body + SEAT_PROGRESS]
    strayed = is_stray(s, p, place, word)
    hop = next_hop_on(s, p, place, word, strayed)
    if hop == ANSWERS:
        if not is_off_ring(s, p):
            send_seat_found(s, p, seeker, place, out)
        return
    mend_view(s, p, words[at + FROM], strayed, out)
    # The seeker may answer for the place itself, as it finds in its next round.
    if hop == RESTS or handle_of_slot(s, p, hop >> 1) == seeker:
        return
    to = handle_of_slot(s, p, hop >> 1)
    at = open_record(out, FIND_SEAT, to, s.sampler.handle[p], size)
    if at >= 0:
        copy_words(words, body, size, out.words, at + BODY)
        out.words[at + BODY + SEAT_PROGRESS] = progress_on(s, p, hop, place, word, strayed)
        close_record(out, at, size)


@rule
def send_seat_found(s: State, p: int, to: int, place: int, out: Outbox) -> None:
    """Tell the place, the own descriptor with all chosen links, and the fingers with their slots.

    The fingers of a peer are about those of who comes to stand before it.
    """
    size = descriptor_words(s)
    chosen = s.params.chosen_links
    most = SEAT_LINKS + 1 + (chosen + 1) * size + 1 + 2 * s.params.finger_levels * (1 + size)
    at = open_record(out, SEAT_FOUND, to, s.sampler.handle[p], most)
    if at < 0:
        return
    words = out.words
    words[at + BODY + SEAT_PLACE] = place
    end = at + BODY + SEAT_LINKS + 1
    write_own_descriptor(s, p, words, end)
    end += size
    links = 1
    for k in range(chosen):
        if s.links[p, k] >= 0:
            write_link(s, p, k, words, end)
            end += size
            links += 1
    words[at + BODY + SEAT_LINKS] = links
    counted = end
    end += 1
    fingers = 0
    for k in range(chosen, finger_end(s)):
        if s.links[p, k] >= 0:
            words[end] = k - chosen
            write_link(s, p, k, words, end + 1)
            end += 1 + size
            fingers += 1
    words[counted] = fingers
    close_record(out, at, end - at - BODY)


@rule
def count_fingers(s: State, p: int, words: Words, at: int) -> int:
    """How many fingers the answer to a search lists, or -1 where it is malformed."""
    size = descriptor_words(s)
    first = BODY + SEAT_LINKS + 1
    if words[at + LENGTH] > first:
        links = words[at + BODY + SEAT_LINKS]
        if 1 <= links <= s.params.chosen_links + 1:
            counted = first + links * size
            if words[at + LENGTH] > counted:
                fingers = words[at + counted]
                whole = counted + 1 + fingers * (1 + size)
                if 0 <= fingers <= 2 * s.params.finger_levels and words[at + LENGTH] == whole:
                    return int(fingers)
    s.counters[p, MALFORMED] += 1
    return -1


@rule
def on_seat_found(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Move to the place that was looked for, unless somebody stands just there."""
    fingers = count_fingers(s, p, words, at)
    if fingers < 0:
        return
    place = words[at + BODY + SEAT_PLACE]
    if place < 0 or place != s.seat[p, WANTED]:
        return
    if s.round[p] < s.seat[p, MOVES_FROM] or words[at + FROM] == s.sampler.handle[p]:
        return
    size = descriptor_words(s)
    first = at + BODY + SEAT_LINKS + 1
    links = words[first - 1]
    for i in range(links):
        if words[first + i * size + 1 + IDENTIFIER] == place:
            s.seat[p, WANTED] = with_low_bits_anew(s, p, place)
            return
    move(s, p, now, words, first, links, fingers, out)


# Moving


@rule
def begin_at(s: State, p: int, place: int) -> None:
    """Stand at a place from now on, and not at another for some rounds."""
    s.seat[p, MOVES_FROM] = s.round[p] + s.params.move_rounds
    s.seat[p, WANTED] = NOWHERE
    s.counters[p, SHIFTED] += 1
    stir(s, p)
    take_place(s, p, place)
    settle_ring(s, p)


@rule
def move_within_arc(s: State, p: int, place: int, out: Outbox) -> None:
    """Move back within the own arc: the successor takes the rest over, neighbours stay."""
    successor = handle_of_slot(s, p, s.successor[p])
    hand_over(s, p, successor, s.sampler.profile[p, IDENTIFIER], out)
    left = s.sampler.profile[p, IDENTIFIER]
    begin_at(s, p, place)
    tell_neighbours(s, p, left, out)


@rule
def move(
    s: State, p: int, now: int, words: Words, first: int, links: int, fingers: int, out: Outbox
) -> None:
    """Leave the present place, and stand before the peer whose links are told.

    Args:
        words: holds, from ``first`` on, the descriptors of that peer and of ``links - 1`` others,
            then the number of fingers, and these.
    """
    place = s.seat[p, WANTED]
    seat_giver = handle_in(words[first])
    left = s.sampler.profile[p, IDENTIFIER]
    leave_place(s, p, seat_giver, place, out)
    begin_at(s, p, place)
    ask_for_place(s, p, seat_giver, out)
    tell_neighbours(s, p, left, out)
    for k in range(s.params.chosen_links, finger_end(s)):
        s.links[p, k] = -1
    select_anew(s, p, now, words, first, links)
    take_fingers(s, p, words, first + links * descriptor_words(s) + 1, fingers)
    for k in range(2 * s.params.ring_links):
        if s.links[p, k] >= 0:
            send_moved(s, p, handle_of_slot(s, p, k), left, 0, out)


@rule
def leave_ring(s: State, p: int, out: Outbox) -> None:
    """Stand off the ring from now on: fingers become the links into it, or else neighbours do."""
    left = s.sampler.profile[p, IDENTIFIER]
    leave_place(s, p, NOBODY, left, out)
    begin_at(s, p, OFF_THE_RING | s.sampler.key[p])
    tell_neighbours(s, p, left, out)
    for k in range(first_left_slot(s)):
        if not 0 <= k - s.params.chosen_links < s.params.entry_links:
            s.links[p, k] = -1
    for side in range(2):
        enter_by(s, p, first_left_slot(s) + side)
    settle_ring(s, p)


@rule
def enter_by(s: State, p: int, k: int) -> None:
    """Let who stood beside the place that ``p`` left be a link into the ring, if one is free.

    Nobody is linked to twice: of two links one alone would be heard of.
    """
    if s.links[p, k] < 0:
        return
    if slot_of(s, p, handle_of_slot(s, p, k)) != k:
        s.links[p, k] = -1
        return
    for slot in range(s.params.chosen_links, s.params.chosen_links + s.params.entry_links):
        if s.links[p, slot] < 0:
            copy_link(s, p, k, slot)
            s.links[p, k] = -1
            return


@rule
def leave_place(s: State, p: int, seat_giver: int, place: int, out: Outbox) -> None:
    """Hand entries over to the successor, and remember who stood on either side.

    Who moves on before the next peer stays its predecessor and keeps the arc.
    """
    after = s.successor[p]
    before = s.predecessor[p]
    if after < 0:
        return
    me = s.sampler.profile[p, IDENTIFIER]
    successor = handle_of_slot(s, p, after)
    is_next = clockwise(me, place) <= clockwise(me, s.link_profile[p, after, IDENTIFIER])
    if successor == seat_giver and is_next:
        return
    hand_over(s, p, successor, me, out)
    s.seat[p, MOVED_IN] = s.round[p]
    s.seat[p, OLD_PREDECESSOR] = handle_of_slot(s, p, before)
    s.seat[p, OLD_SUCCESSOR] = successor
    copy_link(s, p, before, first_left_slot(s))
    copy_link(s, p, after, first_left_slot(s) + 1)
    # The successor answers for that arc from now on.
    begins = s.link_profile[p, before, IDENTIFIER]
    s.link_profile[p, first_left_slot(s) + 1, ARC_START] = begins
    if successor == handle_of_slot(s, p, before):
        s.links[p, first_left_slot(s)] = -1


@rule
def copy_link(s: State, p: int, k: int, slot: int) -> None:
    """Let the neighbour in slot ``k`` stand in another slot, too, until links are selected."""
    s.links[p, slot] = s.links[p, k]
    for w in range(s.link_profile.shape[2]):
        s.link_profile[p, slot, w] = s.link_profile[p, k, w]


@rule
def forget_old_place(s: State, p: int) -> None:
    """Give up the links to those who stood beside the place that was left."""
    s.seat[p, MOVED_IN] = -1
    s.seat[p, OLD_PREDECESSOR] = -1
    s.seat[p, OLD_SUCCESSOR] = -1
    for side in range(2):
        s.links[p, first_left_slot(s) + side] = -1
    settle_ring(s, p)


@rule
def take_fingers(s: State, p: int, words: Words, at: int, count: int) -> None:
    """Let the fingers told be the own ones, those that reach least first."""
    size = 1 + descriptor_words(s)
    levels = s.params.finger_levels
    for level in range(levels):
        for i in range(count):
            slot = words[at + i * size]
            if 0 <= slot < 2 * levels and slot % levels == level:
                told = at + i * size + 1
                if slot_of(s, p, handle_in(words[told])) < 0:
                    set_finger(s, p, slot // levels, level, words, told)
