"""Who has moved: what a peer says of its new place, and what its neighbours make of that.

Goes beyond the paper, as `moving` does.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, FROM, LENGTH, Outbox, close_record, open_record
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import (
    LEFT_LINKS,
    LEFT_PLACE,
    MOVED,
)
from gossamer.protocol.peer.routing.lookup import (
    handle_of_slot,
)
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.links import (
    descriptor_words,
    handle_in,
    is_refused,
    put_link,
    refresh_link,
    remember_departure,
    settle_ring,
    slot_of,
    write_link,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.state import (
    MALFORMED,
    State,
)


@inline_rule
def first_left_slot(s: State) -> Any:
    """The link slot for who came before a peer at the place it left; who came after follows."""
    return s.links.shape[1] - 2


@inline_rule
def finger_end(s: State) -> Any:
    """The first link slot behind the fingers'."""
    return s.params.chosen_links + 2 * s.params.finger_levels


@rule
def tell_neighbours(s: State, p: int, left: int, out: Outbox) -> None:
    """Tell every neighbour of the new place, and whom ``p`` stood among where it has left."""
    ring = 2 * s.params.ring_links
    for k in range(first_left_slot(s)):
        if s.links[p, k] >= 0:
            send_moved(s, p, handle_of_slot(s, p, k), left, ring, out)


@rule
def send_moved(s: State, p: int, to: int, left: int, told: int, out: Outbox) -> None:
    """Tell a peer the own place, and of the neighbours in the first ``told`` slots.

    Successors come first.
    """
    size = descriptor_words(s)
    most = LEFT_LINKS + 1 + (told + 1) * size
    at = open_record(out, MOVED, to, s.sampler.handle[p], most)
    if at < 0:
        return
    first = at + BODY + LEFT_LINKS + 1
    out.words[at + BODY + LEFT_PLACE] = left & RING_MASK
    write_own_descriptor(s, p, out.words, first)
    count = 1
    for k in range(told):
        if s.links[p, k] >= 0 and handle_of_slot(s, p, k) != to:
            write_link(s, p, k, out.words, first + count * size)
            count += 1
    out.words[at + BODY + LEFT_LINKS] = count
    close_record(out, at, LEFT_LINKS + 1 + count * size)


@rule
def on_moved(s: State, p: int, _now: int, words: Any, at: int, _out: Outbox) -> None:
    """A neighbour stands elsewhere now: those beside its old place are nearer than it is."""
    size = descriptor_words(s)
    first = at + BODY + LEFT_LINKS + 1
    count = 0
    if words[at + LENGTH] > first - at:
        count = words[first - 1]
    is_whole = words[at + LENGTH] == first - at + count * size
    if not is_whole or not 1 <= count <= s.params.chosen_links + 1:
        s.counters[p, MALFORMED] += 1
        return
    mover = handle_in(words[first])
    if mover != words[at + FROM] or mover == s.sampler.handle[p]:
        s.counters[p, MALFORMED] += 1
        return
    left = words[at + BODY + LEFT_PLACE]
    if left != words[first + 1 + IDENTIFIER]:
        remember_departure(s, p, mover, left)
    k = slot_of(s, p, mover)
    if 0 <= k < finger_end(s) and s.link_profile[p, k, IDENTIFIER] == left:
        s.links[p, k] = -1
        settle_ring(s, p)
    refresh_link(s, p, words, first)
    for i in range(1, count):
        told = first + i * size
        if not is_refused(s, p, words[told], words[told + 1 + IDENTIFIER]):
            refresh_link(s, p, words, told)
    if k >= s.params.chosen_links and s.links[p, k] < 0 and count > 1:
        put_in_its_place(s, p, k, words, first + size)


@rule
def put_in_its_place(s: State, p: int, k: int, words: Any, at: int) -> None:
    """Let the peer that stood next to a finger which has moved be the finger in its place."""
    handle = handle_in(words[at])
    if words[at] < 0 or slot_of(s, p, handle) >= 0 or handle == s.sampler.handle[p]:
        return
    if not is_refused(s, p, words[at], words[at + 1 + IDENTIFIER]):
        put_link(s, p, k, words, at)
        settle_ring(s, p)
