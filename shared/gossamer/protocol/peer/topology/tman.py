"""Topology management: which candidates become ring, small-world and friend links.

Vinifera, Sec. IV-B1, after T-Man: a peer exchanges its links with one of its neighbours, merges
them with its own and a fresh random sample, and keeps the best of each kind.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.prefetch import prefetch, row_words
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rows.row_search import copy_row, index, row_differs
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS
from gossamer.protocol.peer.record_table.records import (
    OVERLAY_TIMER,
    SAMPLE_REPLY,
    TMAN_REPLY,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.sampling.descriptors import prefetch_row, sampler_words
from gossamer.protocol.peer.sampling.sampler import draw, sample_hint
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING
from gossamer.protocol.peer.state.links import (
    age_links,
    descriptor_words,
    handle_in,
    is_off_ring,
    is_refused,
    note_arc,
    note_asked,
    slot_of,
    write_link,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.resting import is_turn, may_rest
from gossamer.protocol.peer.state.state import LINK_PLACES, MALFORMED, State
from gossamer.protocol.peer.topology.consistency import stir_if_inconsistent
from gossamer.protocol.peer.topology.sampling_records import SAMPLING
from gossamer.protocol.peer.topology.selection import (
    begin_selection,
    is_finger,
    offer_links,
    offer_received,
    offer_sample,
    sampled_word,
    set_targets,
    suits_ring,
    write_selection,
)
from gossamer.protocol.peer.topology.utility import (
    either_way,
    filter_received,
    filter_sample,
    primary_ranges,
    range_utility,
    ranges_utility,
    select_primary_attribute,
    side_distance,
)

# Whether a selection of links is worth while: does anybody new deserve a slot?
#
# Once the overlay has formed hardly anybody does, and those that suit a slot sit there already.
# What is younger about these is taken in on the way.


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
def received_bring_news(s: State, p: int, words: Words, at: int, count: int) -> bool:
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
    """Whether somebody who has none of the chosen slots may get one."""
    is_own = handle_in(word) == s.sampler.handle[p]
    if word < 0 or is_own or is_refused(s, p, word, identifier):
        return False
    return suits_ring(s, p, identifier) or not is_finger(s, p, handle_in(word))


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
    if may_rest(s):
        note_arc(s, p, k, profile, at)
    s.links[p, k] = word
    for w in range(s.link_profile.shape[2]):
        s.link_profile[index(p), index(k), index(w)] = profile[index(at + w)]
    return False


# What a sampler draws in a turn of its own, in most turns.
SAMPLER_DRAWS = 2
# Round and primary attribute stand before the links in a row, successor and predecessor behind.
WORDS_BEFORE_LINKS = 2


@rule
def select_neighbour(s: State, p: int) -> int:
    """A neighbour chosen uniformly at random, or -1 where there is none (Sec. IV-B1)."""
    filled = count_links(s, p)
    if filled == 0:
        return -1
    return nth_neighbour(s, p, filled, below(draw(s.sampler, p), filled))


@rule
def likely_neighbour(s: State, p: int) -> int:
    """Whom `select_neighbour` will choose unless ``p`` draws before; -1 if nobody."""
    filled = count_links(s, p)
    if filled == 0:
        return -1
    v = s.sampler
    chosen = below(mix(v.seed, v.key[p], v.draws[p] + SAMPLER_DRAWS), filled)
    return nth_neighbour(s, p, filled, chosen)


@rule
def overlay_hint(s: State, kind: int, soon: int, later: int) -> None:
    """Bring near row ``later``, and whom row ``soon`` will choose unless it draws before.

    A part with each of the records that a turn consists of: the processor fetches a few lines at a
    time, and what asks for more waits.
    """
    sample_hint(s.sampler, kind, soon, later)
    if kind == SAMPLE_REPLY:
        approach_links(s, later)
    elif kind == OVERLAY_TIMER:
        partner = likely_neighbour(s, soon)
        if partner >= 0:
            approach_links(s, partner)
            prefetch_row(s.sampler, partner)


@inline_rule
def approach_links(s: State, p: int) -> None:
    """Bring near the links of row ``p``, and what an exchange of them touches."""
    for at in range(0, exchanged_words(s), CACHE_LINE_WORDS):
        prefetch(s.round, p, at)


@inline_rule
def approach_rest(s: State, p: int) -> None:
    """Bring near what lies behind the links in row ``p``, which routing reads."""
    end = row_words(s.round) - sampler_words(s.sampler)
    for at in range(exchanged_words(s), end, CACHE_LINE_WORDS):
        prefetch(s.round, p, at)


@inline_rule
def exchanged_words(s: State) -> Any:
    """How many words of a row an exchange of links touches, from `State.round` on."""
    return WORDS_BEFORE_LINKS + 2 + s.links.shape[1] * descriptor_words(s)


@inline_rule
def count_links(s: State, p: int) -> Any:
    """How many link slots are filled."""
    filled = 0
    for k in range(s.params.chosen_links):
        filled += s.links[p, k] >= 0
    return filled


@rule
def nth_neighbour(s: State, p: int, filled: int, wanted: int) -> int:
    """The handle in the filled slot that ``wanted`` others come before."""
    if filled == s.params.chosen_links:
        return handle_in(s.links[p, wanted])
    for k in range(s.params.chosen_links):
        if s.links[p, k] >= 0:
            if wanted == 0:
                return handle_in(s.links[p, k])
            wanted -= 1
    return -1


@rule
def send_links(s: State, p: int, kind: int, to: int, out: Outbox) -> None:
    """Send the own descriptor and all links: count, then descriptors."""
    size = descriptor_words(s)
    at = open_record(out, kind, to, s.sampler.handle[p], 1 + (s.params.chosen_links + 1) * size)
    if at < 0:
        return
    write_own_descriptor(s, p, out.words, at + BODY + 1)
    count = 1
    for k in range(s.params.chosen_links):
        if s.links[p, k] >= 0:
            write_link(s, p, k, out.words, at + BODY + 1 + count * size)
            count += 1
    out.words[at + BODY] = count
    close_record(out, at, 1 + count * size)


@rule
def on_overlay_timer(s: State, p: int, now: int, _words: Words, _at: int, out: Outbox) -> None:
    """A round of topology management begins: links age, and an exchange is started."""
    s.round[p] += 1
    age_links(s, p)
    if not is_turn(s, p, s.round[p]):
        return
    select_primary_attribute(s, p)
    partner = select_neighbour(s, p)
    if partner < 0:
        begin_selection(s, p)
        offer_sample(s, p, now)
        write_selection(s, p, out.words, 0)
        partner = select_neighbour(s, p)
    if partner >= 0:
        send_links(s, p, TMAN_REQUEST, partner, out)
        note_asked(s, p, slot_of(s, p, partner))


@rule
def is_well_formed(s: State, p: int, words: Words, at: int) -> bool:
    """Whether the number of descriptors that a record claims fits its length and our tables."""
    size = descriptor_words(s)
    count = 0
    if words[at + LENGTH] > BODY:
        count = words[at + BODY]
    most = s.params.chosen_links + 1
    if count < 1 or count > most or words[at + LENGTH] != BODY + 1 + count * size:
        s.counters[p, MALFORMED] += 1
        return False
    return True


@rule
def merge_links(s: State, p: int, now: int, words: Words, at: int) -> None:
    """Merge links received with the own ones and a fresh random sample, and select."""
    if is_off_ring(s, p):
        return
    first = at + BODY + 1
    count = words[at + BODY]
    set_bars_by_links(s, p)
    if received_bring_news(s, p, words, first, count) or sample_brings_news(s, p, now):
        select_offered(s, p, now, words, first, count)


@rule
def select_offered(s: State, p: int, now: int, words: Words, first: int, count: int) -> None:
    """Select among the own links, the descriptors from ``first`` on, and the random view."""
    begin_selection(s, p)
    offer_links(s, p)
    offer_received(s, p, words, first, count)
    offer_sample(s, p, now)
    write_selection(s, p, words, first)


@rule
def select_anew(s: State, p: int, now: int, words: Words, first: int, count: int) -> None:
    """Select likewise at a place that ``p`` has just taken, where all of them are news."""
    set_bars_by_links(s, p)
    select_offered(s, p, now, words, first, count)


@rule
def on_tman_request(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Answer with the own links as they were, then merge."""
    if is_well_formed(s, p, words, at):
        stir_if_inconsistent(s, p, words, at)
        send_links(s, p, TMAN_REPLY, words[at + FROM], out)
        merge_links(s, p, now, words, at)


@rule
def on_tman_reply(s: State, p: int, now: int, words: Words, at: int, _out: Outbox) -> None:
    """The second half of an exchange: merge."""
    if is_well_formed(s, p, words, at):
        stir_if_inconsistent(s, p, words, at)
        merge_links(s, p, now, words, at)


# Which rule takes which record of peer sampling and topology management.
GOSSIP: Final = MappingProxyType(
    {
        **SAMPLING,
        OVERLAY_TIMER: on_overlay_timer,
        TMAN_REQUEST: on_tman_request,
        TMAN_REPLY: on_tman_reply,
    }
)
