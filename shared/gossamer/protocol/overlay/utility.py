"""Interest: which attribute a peer clusters by, and how alike two peers are along it.

Vinifera, Sec. IV-B1: Function I and Algorithm 1.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.overlay.links import CANDIDATES
from gossamer.protocol.rules import inline_rule, rule
from gossamer.protocol.state import RANGES


@rule
def overlaps(s: Any, p: int, c: int, attribute: int) -> bool:
    """Whether candidate ``c`` wants anything of ``attribute`` that peer ``p`` wants too."""
    ranges = s.params.profile_ranges
    first = RANGES + 2 * attribute * ranges
    for i in range(ranges):
        low = s.sampler.profile[p, first + 2 * i]
        high = s.sampler.profile[p, first + 2 * i + 1]
        if low > high:
            break
        for j in range(ranges):
            other_low = s.work.candidates[c, 1 + first + 2 * j]
            other_high = s.work.candidates[c, 2 + first + 2 * j]
            if other_low > other_high:
                break
            if low <= other_high and other_low <= high:
                return True
    return False


@inline_rule
def friend_utility(s: Any, p: int, c: int, attribute: int) -> float:
    """Function I: |S_p and S_c| / |S_p or S_c| along ``attribute``, 0 where neither wants any."""
    ranges = s.params.profile_ranges
    first = RANGES + 2 * attribute * ranges
    if ranges == 1:
        return range_utility(
            s.sampler.profile[p, first],
            s.sampler.profile[p, first + 1],
            s.work.candidates[c, 1 + first],
            s.work.candidates[c, 2 + first],
        )
    return ranges_utility(s, p, c, first)


@inline_rule
def range_utility(low: int, high: int, other_low: int, other_high: int) -> float:
    """Function I of two single ranges; a range whose low end is past its high end is empty."""
    shared = min(high, other_high) - max(low, other_low)
    if shared < 0:
        return 0.0
    # Ranges that overlap are not empty, and their union is as long as both without the overlap.
    union = (high - low) + (other_high - other_low) - shared
    if union < shared:
        return 0.0  # only words that no range has make the sum wrap around
    return (shared + 1.0) / (union + 1.0)


@rule
def ranges_utility(s: Any, p: int, c: int, first: int) -> float:
    """Function I of two unions of disjoint ranges, which stand from word ``first`` of a profile."""
    ranges = s.params.profile_ranges
    shared = 0.0
    mine = 0.0
    theirs = 0.0
    for i in range(ranges):
        low = s.sampler.profile[p, first + 2 * i]
        high = s.sampler.profile[p, first + 2 * i + 1]
        if low <= high:
            mine += high - low + 1
        other_low = s.work.candidates[c, 1 + first + 2 * i]
        other_high = s.work.candidates[c, 2 + first + 2 * i]
        if other_low <= other_high:
            theirs += other_high - other_low + 1
        for j in range(ranges):
            other_low = s.work.candidates[c, 1 + first + 2 * j]
            other_high = s.work.candidates[c, 2 + first + 2 * j]
            common = min(high, other_high) - max(low, other_low)
            if low <= high and other_low <= other_high and common >= 0:
                shared += common + 1
    union = mine + theirs - shared
    if union <= 0.0:
        return 0.0
    return shared / union


@rule
def select_primary_attribute(s: Any, p: int) -> None:
    """Algorithm 1: the attribute along which most candidates share an interest becomes primary.

    Only attributes that a subscription of ``p`` constrains are ranked.

    Departs from the paper: the present primary attribute keeps its place unless another is ahead
    by more than an eighth. Without that two attributes of equal rank would swap every round, and
    each swap moves all of the peer's installed subscriptions.
    """
    if s.params.attributes == 1:
        return
    wanted = 0
    for k in range(s.constrained.shape[1]):
        if s.constrained[p, k] > 0:
            wanted |= s.constrained[p, k]
    if wanted == 0:
        return
    candidates = s.work.marks[CANDIDATES]
    present = s.primary[p]
    best = -1
    best_rank = -1
    present_rank = -1
    for a in range(s.params.attributes):
        if (wanted >> a) & 1 == 0:
            continue
        rank = 0
        for c in range(candidates):
            if overlaps(s, p, c, a):
                rank += 1
        if a == present:
            present_rank = rank
        if rank > best_rank:
            best_rank = rank
            best = a
    if present_rank < 0 or 8 * best_rank > 9 * present_rank:
        s.primary[p] = best
