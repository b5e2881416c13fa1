"""Whether a selection of links is worth while: does anybody new deserve a slot?

Once the overlay has formed hardly anybody does. Candidates are compared with the worst link of each
kind; what is younger about neighbours is taken in on the way.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.overlay.links import handle_in, is_refused, slot_of
from gossamer.protocol.overlay.sampling import view_length
from gossamer.protocol.overlay.selection import (
    bars_of,
    either_way,
    may_suit,
    sampled_word,
    set_targets,
    side_distance,
)
from gossamer.protocol.overlay.utility import friend_utility, primary_ranges, utility_along
from gossamer.protocol.rules import rule
from gossamer.protocol.space.ring import RING
from gossamer.protocol.state import IDENTIFIER


@rule
def set_bars_by_links(s: Any, p: int) -> None:
    """Note what a candidate has to equal at least to take the place of a present neighbour."""
    work = s.work
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
    lowest = 2.0
    for k in range(s.links.shape[1] - s.params.friend_links, s.links.shape[1]):
        if s.links[p, k] < 0:
            lowest = -1.0
            break
        lowest = min(lowest, friend_utility(s, p, s.link_profile[p, k], 0))
    work.lowest[0] = lowest


@rule
def received_bring_news(s: Any, p: int, words: Any, at: int, count: int) -> bool:
    """Whether one of the descriptors at ``words[at:]`` might earn a slot.

    Younger descriptors of neighbours take the place of older ones at once.
    """
    size = 1 + s.link_profile.shape[2]
    first = primary_ranges(s, p)
    mine = s.sampler.profile[p, first]
    bars = bars_of(s, p)
    for d in range(count):
        start = at + d * size
        utility = utility_along(s, p, first, mine, words, start + 1)
        if may_suit(s, bars, words[start + 1 + IDENTIFIER], utility) and is_news(
            s, p, words[start], words, start + 1, utility
        ):
            return True
    return False


@rule
def sample_brings_news(s: Any, p: int, now: int) -> bool:
    """The same for the random view of the peer sampling layer."""
    first = primary_ranges(s, p)
    mine = s.sampler.profile[p, first]
    bars = bars_of(s, p)
    for c in range(view_length(s.sampler, p)):
        profile = s.sampler.view_profile[p, c]
        utility = utility_along(s, p, first, mine, profile, 0)
        if may_suit(s, bars, profile[IDENTIFIER], utility) and is_news(
            s, p, sampled_word(s, p, c, now), profile, 0, utility
        ):
            return True
    return False


@rule
def is_news(s: Any, p: int, word: int, profile: Any, at: int, utility: float) -> bool:
    """Whether a descriptor tells of a peer to be seated, or of a neighbour to be seated anew.

    The younger descriptor of a neighbour that is where it was and as good a friend is taken in.
    """
    if word < 0 or handle_in(word) == s.sampler.handle[p]:
        return False
    k = slot_of(s, p, handle_in(word))
    if k < 0:
        return not is_refused(s, p, word)
    if s.links[p, k] <= word:
        return False
    held = s.link_profile[p, k]
    if held[IDENTIFIER] != profile[at + IDENTIFIER] or friend_utility(s, p, held, 0) != utility:
        return True
    s.links[p, k] = word
    for w in range(s.link_profile.shape[2]):
        s.link_profile[p, k, w] = profile[at + w]
    return False
