"""Interest: which attribute a peer clusters by, and how alike two peers are along it.

Vinifera, Sec. IV-B1: Function I and Algorithm 1, on ranges as profiles tell them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from gossamer.protocol.kernel.rows.row_search import copy_row, index
from gossamer.protocol.kernel.rules import inline_rule, rule, rule_with_interpreted_form
from gossamer.protocol.peer.settings.profile import NOTHING, high_end, low_end
from gossamer.protocol.peer.state.state import State

# Pairs of profiles whose likeness an interpreter remembers: a few rounds' worth, at 300 bytes each.
KNOWN_UTILITIES: Final = 1 << 13


@inline_rule
def shared_length(word: int, other: int) -> Any:
    """How many coarse values two ranges share, less one; negative where they share none."""
    return min(high_end(word), high_end(other)) - max(low_end(word), low_end(other))


@rule
def overlaps(s: State, p: int, profile: Any, at: int, attribute: int) -> bool:
    """Whether the owner of a profile wants anything of ``attribute`` that peer ``p`` wants too.

    The profile stands at ``profile[at:]``.
    """
    ranges = s.params.profile_ranges
    first = s.params.first_range + attribute * ranges
    for i in range(ranges):
        mine = s.sampler.profile[p, first + i]
        if mine == NOTHING:
            continue
        for j in range(ranges):
            if shared_length(mine, profile[at + first + j]) >= 0:
                return True
    return False


@inline_rule
def friend_utility(s: State, p: int, profile: Any, at: int) -> float:
    """Function I of ``p`` and the owner of the profile at ``profile[at:]``.

    |S_p and S_c| / |S_p or S_c| along p's primary attribute, 0 where they share nothing.
    """
    first = primary_ranges(s, p)
    return utility_along(s, p, first, s.sampler.profile[p, first], profile, at)


@inline_rule
def primary_ranges(s: State, p: int) -> Any:
    """The word of a profile at which the ranges of p's primary attribute begin."""
    return s.params.first_range + s.primary[p] * s.params.profile_ranges


@inline_rule
def utility_along(s: State, p: int, first: int, mine: int, profile: Any, at: int) -> float:
    """`friend_utility`, for loops: with `primary_ranges` and the own first range given."""
    if s.params.profile_ranges == 1:
        return range_utility(mine, profile[index(at + first)])
    return ranges_utility(s, p, profile, at, first)


@inline_rule
def range_utility(word: int, other: int) -> float:
    """Function I of two single ranges."""
    shared = shared_length(word, other)
    # Ranges that overlap are not empty, and their union is as long as both without the overlap;
    # no branch for those that do not, since which do cannot be foretold.
    lengths = high_end(word) - low_end(word) + high_end(other) - low_end(other)
    return max(shared + 1, 0) / (max(lengths - shared, 0) + 1.0)


@rule
def utility_of_ranges(rows: Any, p: int, first: int, profile: Any, begin: int, count: int) -> float:
    """Function I of two unions of disjoint ranges.

    Args:
        rows: profiles, of which row ``p`` has ``count`` ranges from word ``first`` on.
        profile: words that have as many from ``begin`` on.
    """
    shared = 0
    lengths = 0
    for i in range(count):
        theirs = profile[begin + i]
        if theirs != NOTHING:
            lengths += high_end(theirs) - low_end(theirs) + 1
        mine = rows[p, first + i]
        if mine == NOTHING:
            continue
        lengths += high_end(mine) - low_end(mine) + 1
        for j in range(count):
            theirs = profile[begin + j]
            if theirs != NOTHING:
                shared += max(shared_length(mine, theirs) + 1, 0)
    if shared == 0 or lengths <= shared:
        return 0.0
    return shared / (lengths - shared)


@lru_cache(KNOWN_UTILITIES)
def _known_utility(mine: tuple[int, ...], theirs: tuple[int, ...]) -> float:
    rows = np.array([mine], np.int64).data
    return float(utility_of_ranges.interpreted(rows, 0, 0, theirs, 0, len(mine)))


def _remembered_utility(s: State, p: int, profile: Any, at: int, first: int) -> float:
    count = s.params.profile_ranges
    mine = tuple([s.sampler.profile[p, first + i] for i in range(count)])
    return _known_utility(mine, tuple(profile[at + first : at + first + count]))


@rule_with_interpreted_form(_remembered_utility)
def ranges_utility(s: State, p: int, profile: Any, at: int, first: int) -> float:
    """Function I of two unions of disjoint ranges, which stand from word ``first`` of a profile.

    Interpreted it is remembered: a peer compares itself with the same few others in every round.
    """
    return utility_of_ranges(
        s.sampler.profile, p, first, profile, at + first, s.params.profile_ranges
    )


@rule
def select_primary_attribute(s: State, p: int) -> None:
    """Algorithm 1: the attribute along which most candidates share an interest becomes primary.

    Candidates are the present neighbours and the random view. Only attributes that a subscription
    of ``p`` constrains are ranked.

    Departs from the paper: the present primary attribute keeps its place unless another is ahead
    by more than an eighth. Without that two attributes of equal rank would swap every round, and
    each swap moves all of the peer's installed subscriptions.
    """
    if s.params.ranked_attributes == 1:
        return
    wanted = 0
    for k in range(s.constrained.shape[1]):
        if s.constrained[p, k] > 0:
            wanted |= s.constrained[p, k]
    if wanted == 0:
        return
    present = s.primary[p]
    best = -1
    best_rank = -1
    present_rank = -1
    for a in range(s.params.ranked_attributes):
        if (wanted >> a) & 1 == 0:
            continue
        rank = rank_of_attribute(s, p, a)
        if a == present:
            present_rank = rank
        if rank > best_rank:
            best_rank = rank
            best = a
    if present_rank < 0 or 8 * best_rank > 9 * present_rank:
        s.primary[p] = best


@rule
def rank_of_attribute(s: State, p: int, attribute: int) -> int:
    """How many neighbours and members of the random view share an interest in ``attribute``."""
    rank = 0
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0:
            copy_row(s.link_profile, p, k, s.work.profile)
            rank += overlaps(s, p, s.work.profile, 0, attribute)
    for c in range(s.sampler.views.shape[1]):
        if s.sampler.views[p, c] < 0:
            break
        copy_row(s.sampler.view_profile, p, c, s.work.profile)
        rank += overlaps(s, p, s.work.profile, 0, attribute)
    return rank
