"""Topology management: which candidates become ring, small-world and friend links.

Vinifera, Sec. IV-B1, after T-Man: a peer exchanges its links with one of its neighbours, merges
them with its own and a fresh random sample, and keeps the best of each kind.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.draws import below
from gossamer.protocol.messages import (
    BODY,
    FROM,
    LENGTH,
    TMAN_REPLY,
    TMAN_REQUEST,
    Outbox,
    close_record,
    open_record,
)
from gossamer.protocol.overlay.links import (
    CANDIDATES,
    age_links,
    begin_candidates,
    handle_in,
    offer_links,
    offer_received,
    offer_sample,
    settle_ring,
    write_own_descriptor,
)
from gossamer.protocol.overlay.sampling import draw
from gossamer.protocol.overlay.small_world import draw_offsets, offset_distance
from gossamer.protocol.overlay.utility import friend_utility, select_primary_attribute
from gossamer.protocol.rules import rule
from gossamer.protocol.space.ring import RING_MASK, clockwise
from gossamer.protocol.state import IDENTIFIER, KEY, MALFORMED


@rule
def seat(s: Any, p: int, slot: int, c: int) -> None:
    """Give candidate ``c`` a slot among the links of ``p``; -1 empties the slot."""
    if c < 0:
        s.links[p, slot, 0] = -1
        return
    s.work.chosen[c] = 1
    for w in range(s.links.shape[2]):
        s.links[p, slot, w] = s.work.candidates[c, w]


@rule
def seat_ring_links(s: Any, p: int) -> None:
    """The R nearest candidates on either side of the ring."""
    me = s.sampler.profile[p, IDENTIFIER]
    known = s.work.marks[CANDIDATES]
    for r in range(s.params.ring_links):
        for side in range(2):
            best = -1
            nearest = 0
            for c in range(known):
                if s.work.chosen[c] == 1:
                    continue
                other = s.work.candidates[c, 1 + IDENTIFIER]
                distance = clockwise(me, other) if side == 0 else clockwise(other, me)
                if best < 0 or distance < nearest:
                    best = c
                    nearest = distance
            seat(s, p, side * s.params.ring_links + r, best)
            if r == 0 and side == 0:
                s.successor[p] = 0 if best >= 0 else -1


@rule
def seat_small_world_links(s: Any, p: int) -> None:
    """For each distance drawn, the candidate nearest to it on the ring."""
    me = s.sampler.profile[p, IDENTIFIER]
    first = 2 * s.params.ring_links
    draw_offsets(s, p)
    for k in range(s.params.small_world_links):
        target = (me + offset_distance(s, p, k)) & RING_MASK
        best = -1
        nearest = 0
        for c in range(s.work.marks[CANDIDATES]):
            if s.work.chosen[c] == 1:
                continue
            other = s.work.candidates[c, 1 + IDENTIFIER]
            distance = min(clockwise(target, other), clockwise(other, target))
            if best < 0 or distance < nearest:
                best = c
                nearest = distance
        seat(s, p, first + k, best)


@rule
def seat_friend_links(s: Any, p: int) -> None:
    """The K_f candidates of highest utility along the primary attribute.

    Equal utilities order by the distance of permanent keys (exclusive or), which differs from peer
    to peer: otherwise everybody would choose the same among peers with equal subscriptions.
    """
    wanted = s.params.friend_links
    first = 2 * s.params.ring_links + s.params.small_world_links
    key = s.sampler.key[p]
    attribute = s.primary[p]
    seated = 0
    # The slots themselves hold the ranking while it grows, best first, as candidate numbers.
    for c in range(s.work.marks[CANDIDATES]):
        if s.work.chosen[c] == 1:
            continue
        utility = friend_utility(s, p, c, attribute)
        s.work.score[c] = utility
        tie = s.work.candidates[c, 1 + KEY] ^ key
        place = seated
        while place > 0:
            other = s.links[p, first + place - 1, 0]
            if s.work.score[other] > utility or (
                s.work.score[other] == utility and s.work.candidates[other, 1 + KEY] ^ key <= tie
            ):
                break
            place -= 1
        if place >= wanted:
            continue
        if seated < wanted:
            seated += 1
        for k in range(seated - 1, place, -1):
            s.links[p, first + k, 0] = s.links[p, first + k - 1, 0]
        s.links[p, first + place, 0] = c
    for k in range(wanted):
        seat(s, p, first + k, s.links[p, first + k, 0] if k < seated else -1)


@rule
def select_links(s: Any, p: int) -> None:
    """Refresh the link table of ``p`` from the candidates gathered (Sec. IV-B1)."""
    for c in range(s.work.marks[CANDIDATES]):
        s.work.chosen[c] = 0
    select_primary_attribute(s, p)
    seat_ring_links(s, p)
    seat_small_world_links(s, p)
    seat_friend_links(s, p)
    settle_ring(s, p)


@rule
def select_neighbour(s: Any, p: int) -> int:
    """A neighbour chosen uniformly at random, or -1 where there is none (Sec. IV-B1)."""
    filled = 0
    for k in range(s.links.shape[1]):
        if s.links[p, k, 0] >= 0:
            filled += 1
    if filled == 0:
        return -1
    wanted = below(draw(s.sampler, p), filled)
    for k in range(s.links.shape[1]):
        if s.links[p, k, 0] >= 0:
            if wanted == 0:
                return handle_in(s.links[p, k, 0])
            wanted -= 1
    return -1


@rule
def send_links(s: Any, p: int, kind: int, to: int, out: Outbox) -> None:
    """Send the own descriptor and all links: count, then descriptors."""
    size = s.links.shape[2]
    at = open_record(out, kind, to, s.sampler.handle[p], 1 + (s.links.shape[1] + 1) * size)
    if at < 0:
        return
    words = out.words
    write_own_descriptor(s, p, words, at + BODY + 1)
    count = 1
    for k in range(s.links.shape[1]):
        if s.links[p, k, 0] >= 0:
            start = at + BODY + 1 + count * size
            for w in range(size):
                words[start + w] = s.links[p, k, w]
            count += 1
    words[at + BODY] = count
    close_record(out, at, 1 + count * size)


@rule
def on_overlay_timer(s: Any, p: int, now: int, out: Outbox) -> None:
    """A round of topology management begins: links age, and an exchange is started."""
    s.round[p] += 1
    age_links(s, p)
    partner = select_neighbour(s, p)
    if partner < 0:
        begin_candidates(s)
        offer_sample(s, p, now)
        select_links(s, p)
        partner = select_neighbour(s, p)
    if partner >= 0:
        send_links(s, p, TMAN_REQUEST, partner, out)


@rule
def is_well_formed(s: Any, p: int, words: Any, at: int) -> bool:
    """Whether the number of descriptors that a record claims fits its length and our tables."""
    size = s.links.shape[2]
    count = 0
    if words[at + LENGTH] > BODY:
        count = words[at + BODY]
    if count < 1 or count > s.links.shape[1] + 1 or words[at + LENGTH] != BODY + 1 + count * size:
        s.counters[p, MALFORMED] += 1
        return False
    return True


@rule
def merge_links(s: Any, p: int, now: int, words: Any, at: int) -> None:
    """Merge links received with the own ones and a fresh random sample, and select."""
    begin_candidates(s)
    offer_links(s, p)
    offer_received(s, p, words, at + BODY + 1, words[at + BODY])
    offer_sample(s, p, now)
    select_links(s, p)


@rule
def on_tman_request(s: Any, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """Answer with the own links as they were, then merge."""
    if is_well_formed(s, p, words, at):
        send_links(s, p, TMAN_REPLY, words[at + FROM], out)
        merge_links(s, p, now, words, at)


@rule
def on_tman_reply(s: Any, p: int, now: int, words: Any, at: int) -> None:
    """The second half of an exchange: merge."""
    if is_well_formed(s, p, words, at):
        merge_links(s, p, now, words, at)
