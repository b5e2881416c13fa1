"""Guest links: a peer with several unrelated interests is a guest where it has no place.

A peer has its place on the ring where one of its subscriptions lies (`placement`). For each of the
others it keeps a link to a *host*: the peer at the place that it would have for that one, so that
what it asks for there is installed in one hop, and comes back in one. Both ends use the link as any
other. Where a neighbour is at that place already there is nothing to keep.

A round looks for one of a peer's hosts, from the present one on: it passes the search on where it
knows somebody nearer, so that the link follows the ring. A host takes twice as many guests as a
peer has hosts; a full one passes the search on along the ring. Guests that do not come back are
forgotten after `failure_age` rounds.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, LENGTH, Outbox, close_record, open_record
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import (
    FIND_HOST,
    HOST_FOUND,
    HOST_TARGET,
    PASSED_ON,
    SEARCH_DESCRIPTOR,
    SEARCH_HOPS,
    SEARCH_TARGET,
)
from gossamer.protocol.peer.rendezvous.routing import handle_of_slot, next_hop
from gossamer.protocol.peer.state.links import (
    descriptor_words,
    handle_in,
    is_refused,
    put_link,
    refresh_link,
    settle_ring,
    slot_of,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.state import MALFORMED, State

# How many full peers pass a guest on along the ring.
MOST_PASSED_ON = 8


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
    """Look for the host of one interest, and forget guests that have not come back."""
    if s.params.guest_links == 0:
        return
    forget_guests(s, p)
    count = 0
    for g in range(s.params.guest_links):
        count += s.guest_targets[p, g] >= 0
    if count == 0:
        return
    g = s.round[p] % count
    slot = first_host_slot(s) + g
    target = s.guest_targets[p, g]
    to = -1
    if s.links[p, slot] >= 0:
        to = handle_in(s.links[p, slot])
    else:
        hop = next_hop(s, p, target)
        # The rendezvous node itself is our neighbour, or we are: nothing to keep.
        if hop >= 0 and hop & 1 == 0:
            to = handle_of_slot(s, p, hop >> 1)
    if to >= 0:
        size = SEARCH_DESCRIPTOR + descriptor_words(s)
        at = open_record(out, FIND_HOST, to, s.sampler.handle[p], size)
        if at >= 0:
            out.words[at + BODY + SEARCH_HOPS] = 0
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
def on_find_host(s: State, p: int, _now: int, words: Any, at: int, out: Outbox) -> None:
    """Take a guest in, or pass its search on: to who is nearer, or along the ring if full."""
    size = SEARCH_DESCRIPTOR + descriptor_words(s)
    body = at + BODY
    if words[at + LENGTH] != BODY + size or words[body + SEARCH_HOPS] < 0:
        s.counters[p, MALFORMED] += 1
        return
    guest = handle_in(words[body + SEARCH_DESCRIPTOR])
    if guest == s.sampler.handle[p] or words[body + SEARCH_HOPS] >= s.params.hop_limit:
        return
    if words[body + PASSED_ON] == 0:
        hop = next_hop(s, p, words[body + SEARCH_TARGET])
        if hop >= 0:
            pass_search_on(s, p, hop >> 1, guest, words, body, out)
            return
    if take_guest(s, p, words, body + SEARCH_DESCRIPTOR):
        at = open_record(out, HOST_FOUND, guest, s.sampler.handle[p], 1 + descriptor_words(s))
        if at >= 0:
            out.words[at + BODY] = words[body + SEARCH_TARGET]
            write_own_descriptor(s, p, out.words, at + BODY + HOST_TARGET + 1)
            close_record(out, at, 1 + descriptor_words(s))
    elif words[body + PASSED_ON] < MOST_PASSED_ON and s.successor[p] >= 0:
        words[body + PASSED_ON] += 1
        pass_search_on(s, p, s.successor[p], guest, words, body, out)


@rule
def pass_search_on(
    s: State, p: int, k: int, guest: int, words: Any, body: int, out: Outbox
) -> None:
    """Send a guest's search on to the neighbour in slot ``k``, unless that is the guest."""
    to = handle_of_slot(s, p, k)
    size = SEARCH_DESCRIPTOR + descriptor_words(s)
    if to == guest:
        return
    at = open_record(out, FIND_HOST, to, s.sampler.handle[p], size)
    if at < 0:
        return
    for w in range(size):
        out.words[at + BODY + w] = words[body + w]
    out.words[at + BODY + SEARCH_HOPS] += 1
    close_record(out, at, size)


@rule
def take_guest(s: State, p: int, words: Any, at: int) -> bool:
    """Let the owner of the descriptor at ``words[at:]`` be our guest; False if there is no room."""
    refresh_link(s, p, words, at)
    first = first_guest_slot(s)
    held = slot_of(s, p, handle_in(words[at]))
    if held < 0:
        if is_refused(s, p, words[at]):
            return False
        for g in range(s.guest_rounds.shape[1]):
            if s.links[p, first + g] < 0:
                held = first + g
                put_link(s, p, held, words, at)
                settle_ring(s, p)
                break
    if held >= first:
        s.guest_rounds[p, held - first] = s.round[p]
    return held >= 0


@rule
def on_host_found(s: State, p: int, _now: int, words: Any, at: int, _out: Outbox) -> None:
    """A peer has taken us in for one of our interests: keep a link to it in place of the last."""
    if words[at + LENGTH] != BODY + HOST_TARGET + 1 + descriptor_words(s):
        s.counters[p, MALFORMED] += 1
        return
    own = at + BODY + HOST_TARGET + 1
    refresh_link(s, p, words, own)
    if slot_of(s, p, handle_in(words[own])) >= 0 or is_refused(s, p, words[own]):
        return
    for g in range(s.params.guest_links):
        if s.guest_targets[p, g] == words[at + BODY + HOST_TARGET] and words[own] >= 0:
            put_link(s, p, first_host_slot(s) + g, words, own)
            settle_ring(s, p)
            return
