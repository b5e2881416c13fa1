"""Whether a selection of links is worth while: does anybody new deserve a slot?

Once the overlay has formed hardly anybody does, and those that suit a slot sit there already. What
is younger about these is taken in on the way.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.rows.row_search import copy_row, index, row_differs
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING
from gossamer.protocol.peer.state.links import handle_in, is_refused
from gossamer.protocol.peer.state.state import LINK_PLACES, State
from gossamer.protocol.peer.topology.candidate_filter import (
    either_way,
    filter_received,
    filter_sample,
    side_distance,
)
from gossamer.protocol.peer.topology.selection import sampled_word, set_targets
from gossamer.protocol.peer.topology.utility import primary_ranges, range_utility, ranges_utility


@rule
def set_bars_by_links(s: State, p: int) -> None:
    """Note what a candidate has to equal at least to take the place of a present neighbour."""
    work = s.work
    note_neighbours(s, p)
    ring = s.params.ring_links
    for side in range(2):
        work.farthest[side] = -1
        for k in range(side * ring, side * ring + ring):
            away = RING
            if s.links[p, k] >= 0:
                away = side_distance(s, p, side, s.link_profile[p, k, IDENTIFIER])
            work.farthest[side] = max(work.farthest[side], away)
    if s.params.small_world_links > 0:
        set_targets(s, p)
    for k in range(s.params.small_world_links):
        slot = 2 * ring + k
        work.reach[k] = RING
        if s.links[p, slot] >= 0:
            identifier = s.link_profile[p, slot, IDENTIFIER]
            work.reach[k] = either_way(work.target[k], identifier)
    work.lowest[0] = lowest_utility(s, p)


@inline_rule
def note_neighbours(s: State, p: int) -> None:
    """Note which slot every neighbour has, for `slot_noted`."""
    work = s.work
    for k in range(s.params.chosen_links):
        word = s.links[index(p), index(k)]
        work.link_handle[index(k)] = handle_in(word) if word >= 0 else -1
    for k in range(s.params.chosen_links):
        work.link_place[index(place_of(work.link_handle[index(k)]))] = k


@inline_rule
def place_of(handle: int) -> Any:
    """Where in `Work.link_place` a handle is noted."""
    return handle & (LINK_PLACES - 1)


@inline_rule
def slot_noted(s: State, handle: int) -> Any:
    """The slot of the neighbour ``handle`` when `note_neighbours` was called, -1 if it was none.

    Two of three descriptors looked up here are neighbours': a scan of all slots for each would be
    a tenth of a peer's turn.
    """
    k = s.work.link_place[index(place_of(handle))]
    held = s.work.link_handle[index(k)]
    if held == handle:
        return k
    # Another neighbour has that place, and may have taken it from this one.
    if place_of(held) == place_of(handle):
        return scan_noted(s, handle)
    return -1


@rule
def scan_noted(s: State, handle: int) -> int:
    """What `slot_noted` finds, wherever places collide."""
    for k in range(s.params.chosen_links):
        if s.work.link_handle[k] == handle:
            return k
    return -1


@rule
def lowest_utility(s: State, p: int) -> float:
    """The utility of the worst friend, -1 where a friend's slot is empty, 2 without such slots.

    Leaves every neighbour's utility in `Work.link_utility`, where it counts.
    """
    if s.params.friend_links == 0:
        return 2.0
    work = s.work
    first = primary_ranges(s, p)
    mine = s.sampler.profile[p, first]
    if s.params.profile_ranges == 1:
        for k in range(s.params.chosen_links):
            other = s.link_profile[index(p), index(k), index(first)]
            work.link_utility[index(k)] = range_utility(mine, other)
    else:
        for k in range(s.params.chosen_links):
            copy_row(s.link_profile, p, k, work.profile)
            work.link_utility[k] = ranges_utility(s, p, work.profile, 0, first)
    lowest = 2.0
    for k in range(s.params.chosen_links - s.params.friend_links, s.params.chosen_links):
        is_filled = s.links[index(p), index(k)] >= 0
        lowest = min(lowest, work.link_utility[index(k)] if is_filled else -1.0)
    return lowest


@rule
def received_bring_news(s: State, p: int, words: Any, at: int, count: int) -> bool:
    """Whether one of the descriptors at ``words[at:]`` might earn a slot.

    Younger descriptors of neighbours take the place of older ones at once.
    """
    work = s.work
    size = 1 + s.link_profile.shape[2]
    for i in range(filter_received(s, p, words, at, count)):
        d = work.suiting[index(i)]
        start = at + d * size
        if is_news(s, p, words[index(start)], words, start + 1, work.utility[index(d)]):
            return True
    return False


@rule
def sample_brings_news(s: State, p: int, now: int) -> bool:
    """The same for the random view of the peer sampling layer."""
    work = s.work
    for i in range(filter_sample(s, p)):
        c = work.suiting[index(i)]
        word = sampled_word(s, p, c, now)
        copy_row(s.sampler.view_profile, p, c, work.profile)
        if is_news(s, p, word, work.profile, 0, work.utility[index(c)]):
            return True
    return False


@inline_rule
def is_news(s: State, p: int, word: int, profile: Any, at: int, utility: float) -> Any:
    """Whether a descriptor tells of a peer to be seated, or of a neighbour to be seated anew.

    The younger descriptor of a neighbour that is where it was and as good a friend is taken in.
    """
    k = slot_noted(s, handle_in(word))
    if k < 0:
        return is_newcomer(s, p, word, profile[index(at + IDENTIFIER)])
    if row_differs(s.link_profile, p, k, profile, at):
        return is_news_of_neighbour(s, p, k, word, profile, at, utility)
    # No branch: which of the two is younger cannot be foretold.
    held = s.links[index(p), index(k)]
    s.links[index(p), index(k)] = min(held, word if word >= 0 else held)
    return False


@rule
def is_newcomer(s: State, p: int, word: int, identifier: int) -> bool:
    """Whether somebody who is no neighbour may become one."""
    is_own = handle_in(word) == s.sampler.handle[p]
    return not (word < 0 or is_own or is_refused(s, p, word, identifier))


@rule
def is_news_of_neighbour(
    s: State, p: int, k: int, word: int, profile: Any, at: int, utility: float
) -> bool:
    """`is_news` where the descriptor differs from that in slot ``k`` in more than its age."""
    if word < 0 or s.links[p, k] <= word:
        return False
    held = s.link_profile[index(p), index(k), IDENTIFIER]
    if held != profile[index(at + IDENTIFIER)] or s.work.link_utility[k] != utility:
        return True
    s.links[p, k] = word
    for w in range(s.link_profile.shape[2]):
        s.link_profile[index(p), index(k), index(w)] = profile[index(at + w)]
    return False
