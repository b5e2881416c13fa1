"""The link table: gathering candidate neighbours, refreshing and dropping links.

A descriptor is 1 + W words: age << 32 | handle, then the profile (see `state`). Ages count rounds
since the owner wrote the descriptor and serve as heartbeats (Vinifera, Sec. IV-C).
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.overlay.descriptors import PLAIN
from gossamer.protocol.overlay.sampling import NEWSCAST
from gossamer.protocol.rules import inline_rule, rule
from gossamer.protocol.space.ring import clockwise
from gossamer.protocol.state import ARC_START, IDENTIFIER, STAMP_SLOTS

AGE_SHIFT = 32
HANDLE_MASK = (1 << AGE_SHIFT) - 1
EPOCH, CANDIDATES = 0, 1


@inline_rule
def handle_in(word: int) -> int:
    """The handle in a descriptor's first word."""
    return word & HANDLE_MASK


@rule
def write_own_descriptor(s: Any, p: int, words: Any, at: int) -> None:
    """Write peer ``p``'s own descriptor, of age 0, to ``words`` from ``at`` on."""
    words[at] = s.sampler.handle[p]
    for w in range(s.sampler.profile.shape[1]):
        words[at + 1 + w] = s.sampler.profile[p, w]


@rule
def begin_candidates(s: Any) -> None:
    """Start an empty list of candidate neighbours."""
    s.work.marks[EPOCH] += 1
    s.work.marks[CANDIDATES] = 0


@rule
def is_refused(s: Any, p: int, word: int) -> bool:
    """Whether a descriptor is too old, or no younger than its owner's known failure."""
    age = word >> AGE_SHIFT
    if age > s.params.failure_age:
        return True
    handle = handle_in(word)
    written = s.round[p] - age
    for f in range(s.failed.shape[1]):
        mark = s.failed[p, f]
        if mark < 0:
            break
        if handle_in(mark) == handle and written <= mark >> AGE_SHIFT:
            return True
    return False


@inline_rule
def claim_candidate(s: Any, p: int, word: int) -> int:
    """Find room among the candidates for a descriptor that begins with ``word``.

    Returns the candidate that the caller has to fill with the profile, or -1 where the
    descriptor is not wanted: empty, peer ``p`` itself, refused, or known already and younger.
    """
    if word < 0:
        return -1
    handle = handle_in(word)
    if handle == s.sampler.handle[p]:
        return -1
    candidates = s.work.candidates
    known = s.work.marks[CANDIDATES]
    stamp = handle & (STAMP_SLOTS - 1)
    place = -1
    if s.work.stamp[stamp] == s.work.marks[EPOCH]:
        place = s.work.stamp_slot[stamp]
        if handle_in(candidates[place, 0]) != handle:
            place = -1
            for c in range(known):
                if handle_in(candidates[c, 0]) == handle:
                    place = c
    if place >= 0 and candidates[place, 0] <= word:
        return -1
    if is_refused(s, p, word):
        return -1
    if place < 0:
        if known == candidates.shape[0]:
            return -1
        place = known
        s.work.marks[CANDIDATES] = known + 1
        s.work.stamp[stamp] = s.work.marks[EPOCH]
        s.work.stamp_slot[stamp] = place
    candidates[place, 0] = word
    return place


@rule
def offer_links(s: Any, p: int) -> None:
    """Make peer ``p``'s present neighbours candidates."""
    for k in range(s.links.shape[1]):
        place = claim_candidate(s, p, s.links[p, k, 0])
        if place >= 0:
            for w in range(1, s.links.shape[2]):
                s.work.candidates[place, w] = s.links[p, k, w]


@rule
def offer_sample(s: Any, p: int, now: int) -> None:
    """Make the random view of the peer sampling layer candidates (Sec. IV-B1).

    Newscast descriptors carry the time they were written at, which becomes an age here.
    """
    for c in range(s.sampler.views.shape[1]):
        word = s.sampler.views[p, c]
        if word < 0:
            break
        word &= PLAIN
        if s.sampler.kind == NEWSCAST:
            age = max(now - (word >> AGE_SHIFT), 0)
            word = age << AGE_SHIFT | handle_in(word)
        place = claim_candidate(s, p, word)
        if place >= 0:
            for w in range(s.sampler.view_profile.shape[2]):
                s.work.candidates[place, 1 + w] = s.sampler.view_profile[p, c, w]


@rule
def offer_received(s: Any, p: int, words: Any, at: int, count: int) -> None:
    """Make ``count`` descriptors, written in ``words`` from ``at`` on, candidates."""
    size = s.links.shape[2]
    for d in range(count):
        start = at + d * size
        place = claim_candidate(s, p, words[start])
        if place >= 0:
            for w in range(1, size):
                s.work.candidates[place, w] = words[start + w]


@rule
def settle_ring(s: Any, p: int) -> None:
    """Find peer ``p``'s successor and predecessor among its links, and the arc it answers for.

    The arc is (predecessor, self]; a peer that knows no other says it is empty and answers for
    the whole ring.
    """
    me = s.sampler.profile[p, IDENTIFIER]
    s.successor[p] = -1
    s.predecessor[p] = -1
    nearest = 0
    farthest = 0
    for k in range(s.links.shape[1]):
        if s.links[p, k, 0] < 0:
            continue
        distance = clockwise(me, s.links[p, k, 1 + IDENTIFIER])
        if s.successor[p] < 0 or distance < nearest:
            s.successor[p] = k
            nearest = distance
        if s.predecessor[p] < 0 or distance > farthest:
            s.predecessor[p] = k
            farthest = distance
    start = me
    if s.predecessor[p] >= 0:
        start = s.links[p, s.predecessor[p], 1 + IDENTIFIER]
    s.sampler.profile[p, ARC_START] = start


@rule
def refresh_link(s: Any, p: int, words: Any, at: int) -> None:
    """Take in the descriptor at ``words[at:]``, fresh from its owner: a heartbeat.

    A neighbour's descriptor is replaced; a stranger closer on the ring than the farthest ring
    link of its side takes that link's place, so that a newcomer is seated by its first message.
    """
    handle = handle_in(words[at])
    if words[at] < 0 or handle == s.sampler.handle[p]:
        return
    for k in range(s.links.shape[1]):
        if s.links[p, k, 0] >= 0 and handle_in(s.links[p, k, 0]) == handle:
            if words[at] <= s.links[p, k, 0]:
                moved = s.links[p, k, 1 + IDENTIFIER] != words[at + 1 + IDENTIFIER]
                for w in range(s.links.shape[2]):
                    s.links[p, k, w] = words[at + w]
                if moved:
                    settle_ring(s, p)
            return
    if is_refused(s, p, words[at]):
        return
    for side in range(2):
        slot = slot_for_newcomer(s, p, side, words[at + 1 + IDENTIFIER])
        if slot >= 0:
            for w in range(s.links.shape[2]):
                s.links[p, slot, w] = words[at + w]
            settle_ring(s, p)
            return


@rule
def slot_for_newcomer(s: Any, p: int, side: int, identifier: int) -> int:
    """The ring slot that a stranger deserves on one side: an empty one or the farthest, or -1."""
    me = s.sampler.profile[p, IDENTIFIER]
    ring = s.params.ring_links
    slot = -1
    farthest = clockwise(me, identifier) if side == 0 else clockwise(identifier, me)
    for k in range(side * ring, side * ring + ring):
        if s.links[p, k, 0] < 0:
            return k
        other = s.links[p, k, 1 + IDENTIFIER]
        away = clockwise(me, other) if side == 0 else clockwise(other, me)
        if away > farthest:
            slot = k
            farthest = away
    return slot


@rule
def drop_link(s: Any, p: int, handle: int) -> None:
    """Forget the neighbour ``handle`` and remember that it failed (Sec. IV-C)."""
    for k in range(s.links.shape[1]):
        if s.links[p, k, 0] >= 0 and handle_in(s.links[p, k, 0]) == handle:
            s.links[p, k, 0] = -1
    slots = s.failed.shape[1]
    if slots > 0:
        oldest = 0
        for f in range(slots):
            if s.failed[p, f] < 0 or handle_in(s.failed[p, f]) == handle:
                oldest = f
                break
            if s.failed[p, f] >> AGE_SHIFT < s.failed[p, oldest] >> AGE_SHIFT:
                oldest = f
        s.failed[p, oldest] = s.round[p] << AGE_SHIFT | handle
    settle_ring(s, p)


@rule
def age_links(s: Any, p: int) -> None:
    """Let a round pass for every link, and drop those without news for too long (Sec. IV-C)."""
    lost = False
    for k in range(s.links.shape[1]):
        if s.links[p, k, 0] >= 0:
            s.links[p, k, 0] += 1 << AGE_SHIFT
            if s.links[p, k, 0] >> AGE_SHIFT > s.params.failure_age:
                s.links[p, k, 0] = -1
                lost = True
    if lost:
        settle_ring(s, p)
