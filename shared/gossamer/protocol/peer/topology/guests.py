"""Guest links: a peer with several unrelated interests is a guest where it has no place.

A peer has its place on the ring where one of its subscriptions lies (`placement`). For each of the
others it keeps a link to a *host*: the peer at the place that it would have for that one, so that
what it asks for there is installed in one hop, and comes back in one. Both ends use the link as any
other. Where a neighbour is at that place already there is nothing to keep.

A round looks for one of a peer's hosts, from the present one on: it passes the search on where it
knows somebody nearer, so that the link follows the ring. A host takes twice as many guests as a
peer has hosts; one that is full, or does not want what the guest comes for, passes the search on
along the ring. Guests that do not come back are forgotten after `failure_age` rounds.
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
from gossamer.protocol.kernel.rows.row_search import copy_words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import (
    FIND_HOST,
    HOST_FOUND,
    HOST_TARGET,
    PASSED_ON,
    SEARCH_DESCRIPTOR,
    SEARCH_PROGRESS,
    SEARCH_TARGET,
)
from gossamer.protocol.peer.rendezvous.installation import mend_view
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_BITS, SPREAD_BITS
from gossamer.protocol.peer.state.links import (
    descriptor_words,
    handle_in,
    is_off_ring,
    is_refused,
    put_link,
    refresh_link,
    settle_ring,
    slot_of,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.lookup import (
    ANSWERS,
    RESTS,
    handle_of_slot,
    is_stray,
    next_hop,
    next_hop_on,
    progress_on,
)
from gossamer.protocol.peer.state.resting import interval, is_turn
from gossamer.protocol.peer.state.state import MALFORMED, State
from gossamer.protocol.peer.topology.utility import AFTER, BEFORE

# How many peers pass a guest on along the ring, at most.
MOST_PASSED_ON = 24
# What a search that goes along the ring says of itself: which way it goes, whether it has turned
# round, whether it takes any host that has room; above these the number of peers that passed it on.
_SIDE, _TURNED, _ANY = 1, 2, 4
_STEP = 8


@inline_rule
def first_host_slot(s: State) -> Any:
    """The first link slot for hosts; those for guests follow."""
    return s.params.chosen_links + 2 * s.params.finger_levels


@inline_rule
def first_guest_slot(s: State) -> Any:
    """The first link slot for guests."""
    return first_host_slot(s) + s.params.guest_links


@rule
def visit_host(s: State, p: int, out: Outbox) -> None:
    """Look for the host of one interest, and forget guests that have not come back.

    After rounds of rest, for those of as many interests.
    """
    if s.params.guest_links == 0 or not is_turn(s, p, s.round[p]):
        return
    forget_guests(s, p)
    count = 0
    for g in range(s.params.guest_links):
        count += s.guest_targets[p, g] >= 0
    for i in range(min(count, interval(s, p))):
        look_for_host(s, p, (s.round[p] + i) % count, out)


@rule
def look_for_host(s: State, p: int, g: int, out: Outbox) -> None:
    """Look for the host of interest ``g``."""
    slot = first_host_slot(s) + g
    target = s.guest_targets[p, g]
    to = -1
    if s.links[p, slot] >= 0:
        to = handle_in(s.links[p, slot])
    else:
        # Where we are at that place ourselves there is nothing to keep; a neighbour that is may not
        # want what lies there, and then tells who does.
        hop = next_hop(s, p, target)
        if hop >= 0:
            to = handle_of_slot(s, p, hop >> 1)
    if to >= 0:
        size = SEARCH_DESCRIPTOR + descriptor_words(s)
        at = open_record(out, FIND_HOST, to, s.sampler.handle[p], size)
        if at >= 0:
            out.words[at + BODY + SEARCH_PROGRESS] = 0
            out.words[at + BODY + PASSED_ON] = 0
            out.words[at + BODY + SEARCH_TARGET] = target
            write_own_descriptor(s, p, out.words, at + BODY + SEARCH_DESCRIPTOR)
            close_record(out, at, size)


@rule
def forget_guests(s: State, p: int) -> None:
    """Empty the slots of guests that have not come back for too long."""
    first = first_guest_slot(s)
    for g in range(s.guest_rounds.shape[1]):
        is_late = s.guest_rounds[p, g] + s.params.failure_age < s.round[p]
        if is_late and s.links[p, first + g] >= 0:
            s.links[p, first + g] = -1
            settle_ring(s, p)


@rule
def on_find_host(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Take a guest in, or pass its search on: to who is nearer, or along the ring if full."""
    size = SEARCH_DESCRIPTOR + descriptor_words(s)
    body = at + BODY
    if words[at + LENGTH] != BODY + size:
        s.counters[p, MALFORMED] += 1
        return
    guest = handle_in(words[body + SEARCH_DESCRIPTOR])
    if guest == s.sampler.handle[p]:
        return
    if words[body + PASSED_ON] == 0:
        target, word = words[body + SEARCH_TARGET], words[body + SEARCH_PROGRESS]
        strayed = is_stray(s, p, target, word)
        hop = next_hop_on(s, p, target, word, strayed)
        if hop != ANSWERS:
            mend_view(s, p, words[at + FROM], strayed, out)
            if hop != RESTS:
                words[body + SEARCH_PROGRESS] = progress_on(s, p, hop, target, word, strayed)
                pass_search_on(s, p, hop >> 1, guest, words, body, out)
            return
    if is_off_ring(s, p):
        return
    passed = words[body + PASSED_ON]
    suits = passed & _ANY != 0 or wants_key(s, p, words[body + SEARCH_TARGET])
    if suits and take_guest(s, p, words, body + SEARCH_DESCRIPTOR):
        at = open_record(out, HOST_FOUND, guest, s.sampler.handle[p], 1 + descriptor_words(s))
        if at >= 0:
            out.words[at + BODY] = words[body + SEARCH_TARGET]
            write_own_descriptor(s, p, out.words, at + BODY + HOST_TARGET + 1)
            close_record(out, at, 1 + descriptor_words(s))
    elif passed < MOST_PASSED_ON * _STEP:
        passed = next_pass(s, words[body + SEARCH_TARGET], passed, suits)
        k = s.successor[p] if passed & _SIDE == AFTER else s.predecessor[p]
        if k >= 0:
            words[body + PASSED_ON] = passed
            pass_search_on(s, p, k, guest, words, body, out)


@rule
def wants_key(s: State, p: int, key: int) -> bool:
    """Whether a subscription of ``p`` has events of this routing key, if it is about any.

    Where nothing is routed by keys every peer will do.
    """
    column = 2 * s.params.key
    if s.params.key < 0:
        return True
    for i in range(s.constrained.shape[1]):
        low = s.subscriptions[p, i, column]
        if s.constrained[p, i] >= 0 and low <= key <= s.subscriptions[p, i, column + 1]:
            return True
    return False


@rule
def next_pass(s: State, target: int, passed: int, suits: bool) -> int:
    """Which way a search goes on along the ring that found no room at a peer, which may suit.

    Hosts are to want what their guests come for: they are who passes its events on to them. So the
    search keeps to peers that do. It sets out towards the middle of those at one and the same
    interest, as the low bits of its place tell it; where they end it turns round, and beyond their
    other end it takes whoever has room.
    """
    if passed == 0:
        bits = s.params.key if s.params.key > 0 else 1
        top = RING_BITS - bits * ((RING_BITS - SPREAD_BITS) // bits) - 1
        passed = BEFORE if not suits or target >> top & 1 == 1 else AFTER
    elif not suits:
        if passed & _TURNED == 0:
            passed = passed ^ _SIDE | _TURNED
        else:
            passed |= _ANY
    return int(passed + _STEP)


@rule
def pass_search_on(
    s: State, p: int, k: int, guest: int, words: Words, body: int, out: Outbox
) -> None:
    """Send a guest's search on to the neighbour in slot ``k``, unless that is the guest."""
    to = handle_of_slot(s, p, k)
    size = SEARCH_DESCRIPTOR + descriptor_words(s)
    if to == guest:
        return
    at = open_record(out, FIND_HOST, to, s.sampler.handle[p], size)
    if at < 0:
        return
    copy_words(words, body, size, out.words, at + BODY)
    close_record(out, at, size)


@rule
def take_guest(s: State, p: int, words: Words, at: int) -> bool:
    """Let the owner of the descriptor at ``words[at:]`` be our guest; False if there is no room."""
    refresh_link(s, p, words, at)
    first = first_guest_slot(s)
    held = slot_of(s, p, handle_in(words[at]))
    if held < 0:
        if is_refused(s, p, words[at], words[at + 1 + IDENTIFIER]):
            return False
        for g in range(s.guest_rounds.shape[1]):
            if s.links[p, first + g] < 0:
                held = first + g
                put_link(s, p, held, words, at)
                settle_ring(s, p)
                break
    if first <= held < first + s.guest_rounds.shape[1]:
        s.guest_rounds[p, held - first] = s.round[p]
    return held >= 0


@rule
def on_host_found(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
    """A peer has taken us in for one of our interests: keep a link to it in place of the last."""
    if words[at + LENGTH] != BODY + HOST_TARGET + 1 + descriptor_words(s):
        s.counters[p, MALFORMED] += 1
        return
    own = at + BODY + HOST_TARGET + 1
    refresh_link(s, p, words, own)
    if slot_of(s, p, handle_in(words[own])) >= 0:
        return
    if is_refused(s, p, words[own], words[own + 1 + IDENTIFIER]):
        return
    for g in range(s.params.guest_links):
        if s.guest_targets[p, g] == words[at + BODY + HOST_TARGET] and words[own] >= 0:
            put_link(s, p, first_host_slot(s) + g, words, own)
            settle_ring(s, p)
            return
