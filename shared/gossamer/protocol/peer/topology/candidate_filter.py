"""Judging candidates: whom may it be worth while to link to (Vinifera, Sec. IV-B1)?

Once the overlay has formed most candidates suit no slot. A comparison with the worst link of each
kind tells, for all candidates of a list at once and without a branch, and only those that may suit
one are looked at more closely. What is compared with stands in `Work.lowest`, `farthest`, `target`
and `reach`. Where there are no friends, nobody's utility is worked out: all of them stay 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gossamer.protocol.kernel.rows.row_search import copy_row, index
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.sampling.descriptors import view_length
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import clockwise
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.utility import primary_ranges, range_utility, ranges_utility

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
def filter_received(s: State, p: int, words: Any, at: int, count: int) -> int:
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
def note_received_utilities(s: State, p: int, words: Any, at: int, count: int) -> None:
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
