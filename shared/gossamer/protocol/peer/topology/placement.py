"""Placement by interest: where on the ring a peer belongs, and who stands off it.

Goes beyond the paper, whose identifiers are uniform draws. The peers that answer for a value are
then those that want it, so that installing a subscription hardly leaves its neighbourhood, and an
event that has come there is among its subscribers. Mercury (Bharambe et al., SIGCOMM 2004) places
nodes by the values they hold; here it is by those they ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix_many
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
    LEFT_LINKS,
    LEFT_PLACE,
    MOVED,
)
from gossamer.protocol.peer.sampling.descriptors import view_length
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER, OFF_THE_RING
from gossamer.protocol.peer.space.ring import (
    RING_BITS,
    RING_MASK,
    bits_an_attribute,
    curve_index,
    low_bits,
)
from gossamer.protocol.peer.state.links import (
    age_links,
    descriptor_words,
    handle_in,
    is_refused,
    note_neighbour,
    put_link,
    refresh_link,
    remember_departure,
    settle_ring,
    slot_of,
    write_link,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.lookup import (
    handle_of_slot,
)
from gossamer.protocol.peer.state.resting import may_rest
from gossamer.protocol.peer.state.routing_table import source_of
from gossamer.protocol.peer.state.state import (
    MALFORMED,
    WANTED,
    State,
)
from gossamer.protocol.peer.topology.selection import sampled_word

Int64s = npt.NDArray[np.int64]

NOWHERE: Final = -1
# Streams of draws: which subscription decides, the low bits, and from here on where along an
# attribute that it leaves out.
_WHICH, _OWN, _ALONG = 0x77686963, 0x6F776E, 0x616C6F6E67


def places_of(settings: Settings, boxes: Int64s, constrained: Int64s, keys: Int64s) -> Int64s:
    """Where peers belong, one place after the other, and where else they have interests.

    Each place is the key of a point of a subscription, drawn around its centre (`place_spread`),
    its low bits the peer's own. The first is that of a random one, which stays the same while there
    are as many: to stand where most others do would make hubs there, and leave rare interests
    without anybody near; so would the centres themselves, where many ranges share one. Along
    attributes that a subscription leaves out, the point is drawn from all values.

    Args:
        settings: of the overlay.
        boxes: int64[n, S, 2A], lowest and highest hashed value of every attribute.
        constrained: int64[n, S], bits of the attributes constrained, -1 for no subscription.
        keys: int64[n], the peers' permanent keys.

    Returns:
        int64[n, S], `NOWHERE` after the last.
    """
    columns, count = np.arange(boxes.shape[1]), (constrained >= 0).sum(axis=1)
    draws = mix_many(settings.seed, keys, _WHICH) >> 31
    first = draws * count >> 31
    # Those that there are come first, and of these the one drawn and those after it.
    turned = (columns - first[:, np.newaxis]) % np.maximum(count, 1)[:, np.newaxis]
    there = np.argsort(constrained < 0, axis=1, kind="stable")
    rank = np.argsort(there, axis=1, kind="stable")
    order = np.where(constrained < 0, len(columns), np.take_along_axis(turned, rank, axis=1))
    which = np.argsort(order, axis=1, kind="stable")
    boxes = np.take_along_axis(boxes, which[:, :, np.newaxis], axis=1)
    bits = np.take_along_axis(constrained, which, axis=1)
    attributes = settings.attributes
    point = []
    for a in range(attributes):
        low, high = boxes[:, :, 2 * a], boxes[:, :, 2 * a + 1]
        along = (mix_many(settings.seed, keys, _ALONG + a) & RING_MASK)[:, np.newaxis]
        is_constrained = (bits >> a & 1 == 1) | (attributes == 1)
        point.append(np.where(is_constrained, _around_centre(settings, low, high, along), along))
    shift = RING_BITS - bits_an_attribute(attributes)
    index = curve_index([value >> shift for value in point], bits_an_attribute(attributes))
    own = mix_many(settings.seed, keys, _OWN) & ((1 << low_bits(attributes)) - 1)
    return np.where(bits >= 0, index << low_bits(attributes) | own[:, np.newaxis], NOWHERE)


def _around_centre(settings: Settings, low: Int64s, high: Int64s, drawn: Int64s) -> Int64s:
    """Values of ranges as far from the centre, in parts of the spread, as drawn ring values are."""
    half = (high - low) // 2
    aside = (half * (settings.place_spread * (drawn / RING_MASK * 2 - 1))).astype(np.int64)
    return np.clip(low + half + aside, low, high)


def want_place(s: State, settings: Settings, p: int, boxes: Int64s, constrained: Int64s) -> None:
    """Let row ``p``, whose subscriptions have become these, want to stand where they lie.

    It stays where one of them lies at its place. Who wants nothing at all leaves the ring, or stays
    as well where there are no clients. Who has no neighbour yet is at its place at once, others
    move (`moving`). Where else it has interests are
    places of its hosts.

    Args:
        s: the state, in which the subscriptions are in force already; row ``p`` of it changes.
        settings: of the overlay.
        p: the row.
        boxes: int64[k, 2A], lowest and highest hashed value of every attribute.
        constrained: int64[k], bits of the attributes constrained.
    """
    key = s.sampler.key[p : p + 1]
    places: list[int] = []
    if len(boxes):
        places = places_of(settings, boxes[np.newaxis], constrained[np.newaxis], key)[0].tolist()
    intervals = s.subscriptions[p, s.constrained[p] >= 0, 2 * s.params.key :][:, :2]
    home, wanted = int(s.sampler.profile[p, IDENTIFIER]), NOWHERE
    if places and not _around(intervals, home).any():
        home = wanted = places[0]
    if not places and settings.entry_links > 0:
        wanted = off_the_ring(s.sampler.key[p]) if home < OFF_THE_RING else NOWHERE
    if wanted != NOWHERE and (s.links[p] < 0).all():
        take_place(s, p, wanted)
        wanted = NOWHERE
    if s.params.move_rounds > 0:
        s.seat[p, WANTED] = wanted
    at_home = _around(intervals, home)
    elsewhere = [place for place in places if not (at_home & _around(intervals, place)).any()]
    look_for_hosts(s, p, elsewhere)


def off_the_ring(key: Any) -> Any:
    """What a peer with a permanent key, or several, says of its place where it has none."""
    return OFF_THE_RING | key


def _around(intervals: Int64s, place: int) -> npt.NDArray[np.bool_]:
    """bool[k]: which of the intervals int64[k, 2] a place lies in."""
    return np.asarray((intervals[:, 0] <= place) & (place <= intervals[:, 1]))


def look_for_hosts(s: State, p: int, places: Sequence[int]) -> None:
    """Let row ``p`` look for hosts at the first of these places, and leave those elsewhere."""
    most, first = s.params.guest_links, s.links.shape[1] - 3 * s.params.guest_links
    first -= 2 * (s.params.move_rounds > 0)
    targets = [*places[:most], *[NOWHERE] * (most - len(places))]
    for g, target in enumerate(targets):
        if s.guest_targets[p, g] != target:
            s.links[p, first + g] = -1
    s.guest_targets[p] = targets
    settle_ring(s, p)


@rule
def take_place(s: State, p: int, place: int) -> None:
    """Let a peer that nobody knows to be on the ring have a place."""
    s.sampler.profile[p, IDENTIFIER] = place
    s.sampler.profile[p, ARC_START] = place


# Clients: peers without subscriptions, which do not stand on the ring.
#
# Goes beyond the paper. Where peers stand where their interests lie, one that wants nothing would
# only stand in the way of events. It keeps `entry_links` to peers of the ring, which it takes from
# the random view, so that they lie evenly among them; they use the slots that are fingers' on the
# ring. It publishes through the one that is nearest. Nobody links to it, and it answers for
# nothing.
#
# With its first subscription it looks for a seat on the ring, and having dropped the last it
# leaves, as a peer does that moves (`moving`).


@rule
def keep_entries(s: State, p: int, now: int) -> None:
    """A round of a client: links age, and those that are missing are taken from the random view."""
    s.round[p] += 1
    age_links(s, p)
    candidate = 0
    known = view_length(s.sampler, p)
    first = s.params.chosen_links
    for k in range(first, first + s.params.entry_links):
        while s.links[p, k] < 0 and candidate < known:
            take_entry(s, p, k, candidate, now)
            candidate += 1


@rule
def take_entry(s: State, p: int, k: int, candidate: int, now: int) -> None:
    """Link to a peer of the random view, if it is on the ring and no neighbour yet."""
    word = sampled_word(s, p, candidate, now)
    identifier = s.sampler.view_profile[p, candidate, IDENTIFIER]
    if word < 0 or slot_of(s, p, handle_in(word)) >= 0 or is_refused(s, p, word, identifier):
        return
    s.links[p, k] = word
    for w in range(s.link_profile.shape[2]):
        s.link_profile[p, k, w] = s.sampler.view_profile[p, candidate, w]


# Who has moved: what a peer says of its new place, and what its neighbours make of that.
#
# Goes beyond the paper, as `moving` does.


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
    """Tell every neighbour of the new place, and whom ``p`` stood among where it has left.

    Who rests would not find out for long: then those are told, too, who ask for something here and
    are no neighbours.
    """
    ring = 2 * s.params.ring_links
    for k in range(first_left_slot(s)):
        if s.links[p, k] >= 0:
            send_moved(s, p, handle_of_slot(s, p, k), left, ring, out)
    told = 0
    for e in range(s.table_count[p] if may_rest(s) else 0):
        source = source_of(s, p, e)
        is_known = slot_of(s, p, source) >= 0
        for other in range(e):
            is_known = is_known or source_of(s, p, other) == source
        if not is_known and told < s.links.shape[1]:
            told += 1
            send_moved(s, p, source, left, ring, out)


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
def on_moved(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
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
        note_neighbour(s, p, k, mover, words[first + 1 + IDENTIFIER])
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
def put_in_its_place(s: State, p: int, k: int, words: Words, at: int) -> None:
    """Let the peer that stood next to a finger which has moved be the finger in its place."""
    handle = handle_in(words[at])
    if words[at] < 0 or slot_of(s, p, handle) >= 0 or handle == s.sampler.handle[p]:
        return
    if not is_refused(s, p, words[at], words[at + 1 + IDENTIFIER]):
        put_link(s, p, k, words, at)
        settle_ring(s, p)
