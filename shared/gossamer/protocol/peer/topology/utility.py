"""Interest: which attribute a peer clusters by, and how alike two peers are along it.

Vinifera, Sec. IV-B1: Function I and Algorithm 1, on ranges as profiles tell them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from gossamer.protocol.kernel.records import Words
from gossamer.protocol.kernel.rows.row_search import copy_row, index
from gossamer.protocol.kernel.rules import inline_rule, rule, rule_with_interpreted_form
from gossamer.protocol.peer.sampling.descriptors import view_length
from gossamer.protocol.peer.settings.profile import IDENTIFIER, NOTHING, high_end, low_end
from gossamer.protocol.peer.space.ring import clockwise
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


# Judging candidates: whom may it be worth while to link to (Vinifera, Sec. IV-B1)?
#
# Once the overlay has formed most candidates suit no slot. A comparison with the worst link of each
# kind tells, for all candidates of a list at once and without a branch, and only those that may
# suit one are looked at more closely. What is compared with stands in `Work.lowest`, `farthest`,
# `target` and `reach`. Where there are no friends, nobody's utility is worked out: all of them stay
# 0.


# The sides of the ring, by which `Work.farthest` counts.
AFTER, BEFORE = 0, 1


@inline_rule
def side_distance(s: State, p: int, side: int, identifier: int) -> Any:
    """How far an identifier is from peer ``p``, going to one side of the ring."""
    me = s.sampler.profile[p, IDENTIFIER]
    return clockwise(me, identifier) if side == AFTER else clockwise(identifier, me)


@inline_rule
def either_way(one: int, other: int) -> Any:
    """The distance of two places on the ring, the shorter way around."""
    return min(clockwise(one, other), clockwise(other, one))


class Bars(NamedTuple):
    """What a candidate has to equal at least, for loops to hold in registers.

    Attributes:
        place: the own place on the ring.
        lowest, after, before: `Work.lowest` and the two of `Work.farthest`.
    """

    place: int
    lowest: float
    after: int
    before: int


@inline_rule
def bars_of(s: State, p: int) -> Bars:
    """The bars as they are now."""
    return Bars(
        s.sampler.profile[p, IDENTIFIER],
        s.work.lowest[0],
        s.work.farthest[AFTER],
        s.work.farthest[BEFORE],
    )


@inline_rule
def may_suit(s: State, bars: Bars, identifier: int, utility: float) -> Any:
    """Whether a candidate equals the worst that any kind of slot holds."""
    # No branch: which candidates do cannot be foretold.
    suits = utility >= bars.lowest
    if s.params.ring_links > 0:
        suits |= clockwise(bars.place, identifier) <= bars.after
        suits |= clockwise(identifier, bars.place) <= bars.before
    for k in range(s.params.small_world_links):
        suits |= either_way(s.work.target[index(k)], identifier) <= s.work.reach[index(k)]
    return suits


@rule
def filter_received(s: State, p: int, words: Words, at: int, count: int) -> int:
    """Find those of ``count`` descriptors, written in ``words`` from ``at`` on, that may suit.

    There are at most K + 1, as many as a record of links holds.
    Which they are is left in `Work.suiting`, their utilities as friends in `Work.utility`. Returns
    their number.
    """
    work = s.work
    size = 1 + s.link_profile.shape[2]
    if s.params.friend_links > 0:
        note_received_utilities(s, p, words, at, count)
    bars = bars_of(s, p)
    suiting = 0
    for d in range(count):
        identifier = words[index(at + d * size + 1 + IDENTIFIER)]
        work.suiting[index(suiting)] = d
        suiting += may_suit(s, bars, identifier, work.utility[index(d)])
    return suiting


@inline_rule
def note_received_utilities(s: State, p: int, words: Words, at: int, count: int) -> None:
    """Work out the utilities of ``count`` descriptors as friends."""
    work = s.work
    size = 1 + s.link_profile.shape[2]
    first = primary_ranges(s, p)
    mine = s.sampler.profile[p, first]
    if s.params.profile_ranges == 1:
        begin = at + 1 + first
        for d in range(count):
            work.utility[index(d)] = range_utility(mine, words[index(begin + d * size)])
    else:
        for d in range(count):
            work.utility[d] = ranges_utility(s, p, words, at + d * size + 1, first)


@rule
def filter_sample(s: State, p: int) -> int:
    """The same for the slots of the random view of the peer sampling layer."""
    work = s.work
    profiles = s.sampler.view_profile
    count = view_length(s.sampler, p)
    if s.params.friend_links > 0:
        note_sampled_utilities(s, p, count)
    bars = bars_of(s, p)
    suiting = 0
    for c in range(count):
        identifier = profiles[index(p), index(c), IDENTIFIER]
        work.suiting[index(suiting)] = c
        suiting += may_suit(s, bars, identifier, work.utility[index(c)])
    return suiting


@inline_rule
def note_sampled_utilities(s: State, p: int, count: int) -> None:
    """Work out the utilities of the first ``count`` of the random view as friends."""
    work = s.work
    profiles = s.sampler.view_profile
    first = primary_ranges(s, p)
    mine = s.sampler.profile[p, first]
    if s.params.profile_ranges == 1:
        for c in range(count):
            other = profiles[index(p), index(c), index(first)]
            work.utility[index(c)] = range_utility(mine, other)
    else:
        for c in range(count):
            copy_row(profiles, p, c, work.profile)
            work.utility[c] = ranges_utility(s, p, work.profile, 0, first)
