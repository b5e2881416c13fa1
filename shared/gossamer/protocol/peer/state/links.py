"""The link table: refreshing and dropping links, and the place on the ring that follows from them.

A descriptor is age << 32 | handle, then the profile (see `profile`). Ages count rounds since the
owner wrote the descriptor and serve as heartbeats (Vinifera, Sec. IV-C).
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.records import Words
from gossamer.protocol.kernel.rows.row_search import index
from gossamer.protocol.kernel.rules import inline_rule, rule, rule_with_interpreted_form
from gossamer.protocol.kernel.struct import as_array
from gossamer.protocol.peer.settings.profile import (
    ARC_START,
    HANDLE_BITS,
    IDENTIFIER,
    OFF_THE_RING,
    RANGES_OF_FRIENDS_ALONE,
)
from gossamer.protocol.peer.space.ring import clockwise
from gossamer.protocol.peer.state.resting import install_soon, may_rest, note_finger_changed, stir
from gossamer.protocol.peer.state.state import (
    DISTURBED_IN,
    FAILURES_FORGOTTEN,
    HEARD_IN,
    MISSED_SINCE,
    SILENCE_IN,
    State,
)

# Who suspects more than so many neighbours for each that it has heard of is cut off itself. One is
# heard of who wrote a descriptor in the last rounds.
SUSPECTS_FOR_ONE_HEARD, RECENT_AGE = 4, 1

AGE_SHIFT = HANDLE_BITS
HANDLE_MASK = (1 << AGE_SHIFT) - 1
# What is left of a descriptor's word when its age is taken off; an empty slot stays negative.
_HANDLE_OR_EMPTY = HANDLE_MASK - (1 << 63)


@inline_rule
def handle_in(word: int) -> int:
    """The handle in a descriptor's first word."""
    return word & HANDLE_MASK


@inline_rule
def age_in(word: int) -> int:
    """The age in a descriptor's first word, in rounds."""
    return word >> AGE_SHIFT


@inline_rule
def descriptor_words(s: State) -> Any:
    """How many words a descriptor has."""
    return 1 + s.link_profile.shape[2]


def _write_own_descriptor_at_once(s: State, p: int, words: Any, at: int) -> None:
    profile = as_array(s.sampler.profile)[p].tolist()
    as_array(words)[at : at + 1 + len(profile)] = [s.sampler.handle[p], *profile]


@rule_with_interpreted_form(_write_own_descriptor_at_once, inline=False)
def write_own_descriptor(s: State, p: int, words: Words, at: int) -> None:
    """Write peer ``p``'s own descriptor, of age 0, to ``words`` from ``at`` on."""
    words[at] = s.sampler.handle[p]
    for w in range(s.sampler.profile.shape[1]):
        words[index(at + 1 + w)] = s.sampler.profile[index(p), index(w)]


def _write_link_at_once(s: State, p: int, k: int, words: Any, at: int) -> None:
    profile = as_array(s.link_profile)[p, k].tolist()
    as_array(words)[at : at + 1 + len(profile)] = [s.links[p, k], *profile]


@rule_with_interpreted_form(_write_link_at_once)
def write_link(s: State, p: int, k: int, words: Words, at: int) -> None:
    """Write the descriptor of the neighbour in slot ``k`` to ``words`` from ``at`` on."""
    words[index(at)] = s.links[index(p), index(k)]
    for w in range(s.link_profile.shape[2]):
        words[index(at + 1 + w)] = s.link_profile[index(p), index(k), index(w)]


@rule
def note_neighbour(s: State, p: int, k: int, handle: int, identifier: int) -> None:
    """If this peer at this place is not who has slot ``k``, ``p`` has another neighbour there.

    Which friends and small-world links it has makes no difference to anybody else.
    """
    word = s.links[p, k]
    if word >= 0 and handle_in(word) == handle and s.link_profile[p, k, IDENTIFIER] == identifier:
        return
    install_soon(s, p)
    if s.params.chosen_links <= k < s.params.chosen_links + 2 * s.params.finger_levels:
        note_finger_changed(s, p)
    elif not 2 * s.params.ring_links <= k < s.params.chosen_links:
        stir(s, p)


@rule
def note_arc(s: State, p: int, k: int, profile: Any, at: int) -> None:
    """If the profile at ``profile[at:]`` tells another arc of the neighbour in slot ``k``."""
    if s.params.ring_links > 0 and s.link_profile[p, k, ARC_START] != profile[at + ARC_START]:
        install_soon(s, p)


def _write_to_slot_at_once(s: State, p: int, k: int, words: Any, at: int) -> None:
    s.links[p, k] = words[at]
    as_array(s.link_profile)[p, k] = words[at + 1 : at + 1 + s.link_profile.shape[2]]


@rule_with_interpreted_form(_write_to_slot_at_once, inline=False)
def _write_to_slot(s: State, p: int, k: int, words: Words, at: int) -> None:
    s.links[p, k] = words[at]
    for w in range(s.link_profile.shape[2]):
        s.link_profile[index(p), index(k), index(w)] = words[index(at + 1 + w)]


@rule
def put_link(s: State, p: int, k: int, words: Words, at: int) -> None:
    """Let the descriptor at ``words[at:]`` be the neighbour in slot ``k``."""
    if may_rest(s):
        note_neighbour(s, p, k, handle_in(words[at]), words[at + 1 + IDENTIFIER])
        note_arc(s, p, k, words, at + 1)
    _write_to_slot(s, p, k, words, at)


def _slot_of_at_once(s: State, p: int, handle: int) -> int:
    found = ((as_array(s.links)[p] & _HANDLE_OR_EMPTY) == handle).nonzero()[0]
    return int(found[-1]) if len(found) else -1


@rule_with_interpreted_form(_slot_of_at_once, inline=False)
def slot_of(s: State, p: int, handle: int) -> int:
    """The slot that the neighbour ``handle`` has, -1 if it is none."""
    found = 0
    for k in range(s.links.shape[1]):
        word = s.links[index(p), index(k)]
        # No branch: the loop is short, and its end would be foretold wrongly every time.
        found = max(found, k + 1 if (handle_in(word) == handle) & (word >= 0) else 0)
    return found - 1


@rule
def is_refused(s: State, p: int, word: int, identifier: int) -> bool:
    """Whether a descriptor is too old, or no younger than its owner's known failure.

    So is one that says its owner to be off the ring, or at a place that it has left.
    """
    if identifier >= OFF_THE_RING:
        return True
    age = age_in(word)
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
    return bool(has_left(s, p, handle, identifier))


@rule
def has_left(s: State, p: int, handle: int, identifier: int) -> bool:
    """Whether a peer is known to have left a place, as long as others may still tell of it."""
    for d in range(s.departed.shape[1]):
        mark = s.departed[p, d, 0]
        if mark < 0:
            # Places are taken in order, and none is free again.
            break
        if handle_in(mark) == handle and s.departed[p, d, 1] == identifier:
            return bool((mark >> AGE_SHIFT) + s.params.failure_age >= s.round[p])
    return False


@rule
def remember_departure(s: State, p: int, handle: int, identifier: int) -> None:
    """Note that ``handle`` has left a place, instead of who left another longest ago."""
    chosen = 0
    for d in range(s.departed.shape[1]):
        mark = s.departed[p, d, 0]
        if mark >= 0 and handle_in(mark) == handle:
            chosen = d
            break
        if mark < s.departed[p, chosen, 0]:
            chosen = d
    if s.departed.shape[1] > 0:
        s.departed[p, chosen, 0] = s.round[p] << AGE_SHIFT | handle
        s.departed[p, chosen, 1] = identifier


@inline_rule
def is_off_ring(s: State, p: int) -> Any:
    """Whether ``p`` does not stand on the ring."""
    return s.sampler.profile[p, IDENTIFIER] >= OFF_THE_RING


@rule
def settle_ring(s: State, p: int) -> None:
    """Find peer ``p``'s successor and predecessor among its links, and the arc it answers for.

    The arc is (predecessor, self]; a peer that knows no other says it is empty and answers for
    the whole ring, as does everybody where identifiers are not told.
    """
    me = s.sampler.profile[p, IDENTIFIER]
    s.successor[p] = -1
    s.predecessor[p] = -1
    if s.params.first_range == RANGES_OF_FRIENDS_ALONE:
        return
    nearest = 0
    farthest = 0
    for k in range(0 if is_off_ring(s, p) else s.links.shape[1]):
        if s.links[p, k] < 0:
            continue
        distance = clockwise(me, s.link_profile[p, k, IDENTIFIER])
        if s.successor[p] < 0 or distance < nearest:
            s.successor[p] = k
            nearest = distance
        if s.predecessor[p] < 0 or distance > farthest:
            s.predecessor[p] = k
            farthest = distance
    if s.params.ring_links == 0:
        return
    begins = me
    if s.predecessor[p] >= 0:
        begins = s.link_profile[p, s.predecessor[p], IDENTIFIER]
    s.sampler.profile[p, ARC_START] = begins


@rule
def refresh_link(s: State, p: int, words: Words, at: int) -> None:
    """Take in the descriptor at ``words[at:]``, fresh from its owner: a heartbeat.

    A neighbour's descriptor is replaced; a stranger closer on the ring than the farthest ring
    link of its side takes that link's place, so that a newcomer is seated by its first message.
    """
    handle = handle_in(words[at])
    if words[at] < 0 or handle == s.sampler.handle[p]:
        return
    k = slot_of(s, p, handle)
    if words[at + 1 + IDENTIFIER] >= OFF_THE_RING:
        if k >= 0 and words[at] <= s.links[p, k]:
            remember_departure(s, p, handle, s.link_profile[p, k, IDENTIFIER])
            s.links[p, k] = -1
            stir(s, p)
            settle_ring(s, p)
        return
    if k >= 0:
        if words[at] <= s.links[p, k]:
            was = s.link_profile[p, k, IDENTIFIER]
            moved = was != words[at + 1 + IDENTIFIER]
            if moved and has_left(s, p, handle, words[at + 1 + IDENTIFIER]):
                return
            if moved and words[at] < s.links[p, k]:
                remember_departure(s, p, handle, was)
            put_link(s, p, k, words, at)
            if moved:
                settle_ring(s, p)
        elif k >= s.params.chosen_links:
            return
        if k < s.params.chosen_links:
            return
    if is_off_ring(s, p):
        return
    for side in range(2):
        slot = slot_for_newcomer(s, p, side, words[at + 1 + IDENTIFIER])
        if slot >= 0:
            if is_refused(s, p, words[at], words[at + 1 + IDENTIFIER]):
                return
            put_link(s, p, slot, words, at)
            if k >= 0:
                s.links[p, k] = -1
            settle_ring(s, p)
            return


@rule
def slot_for_newcomer(s: State, p: int, side: int, identifier: int) -> int:
    """The ring slot that a stranger deserves on one side: an empty one or the farthest, or -1."""
    me = s.sampler.profile[p, IDENTIFIER]
    ring = s.params.ring_links
    slot = -1
    farthest = clockwise(me, identifier) if side == 0 else clockwise(identifier, me)
    for k in range(side * ring, side * ring + ring):
        if s.links[p, k] < 0:
            return k
        other = s.link_profile[p, k, IDENTIFIER]
        away = clockwise(me, other) if side == 0 else clockwise(other, me)
        if away > farthest:
            slot = k
            farthest = away
    return slot


@rule
def drop_link(s: State, p: int, handle: int) -> None:
    """Forget the neighbour ``handle`` and remember that it failed (Sec. IV-C)."""
    k = slot_of(s, p, handle)
    if k >= 0:
        s.links[p, k] = -1
        stir(s, p)
    remember_failure(s, p, handle)
    settle_ring(s, p)


@rule
def remember_failure(s: State, p: int, handle: int) -> None:
    """Note that ``handle`` failed, in place of what failed longest ago where there is no room."""
    slots = s.failed.shape[1]
    if slots > 0:
        oldest = 0
        for f in range(slots):
            if s.failed[p, f] < 0 or handle_in(s.failed[p, f]) == handle:
                oldest = f
                break
            if s.failed[p, f] >> AGE_SHIFT < s.failed[p, oldest] >> AGE_SHIFT:
                oldest = f
        held = s.failed[p, oldest]
        if held >= 0 and handle_in(held) != handle:
            # Descriptors of before the failure are too old by themselves after `failure_age`.
            s.counters[p, FAILURES_FORGOTTEN] += (
                held >> AGE_SHIFT
            ) + s.params.failure_age >= s.round[p]
        s.failed[p, oldest] = s.round[p] << AGE_SHIFT | handle


@rule
def note_disturbance(s: State, p: int) -> None:
    """Neighbours on the ring have failed or changed, or events were missed here."""
    if s.alarm.shape[1] > 0:
        s.alarm[p, DISTURBED_IN] = s.round[p]


@rule
def note_asked(s: State, p: int, k: int) -> None:
    """The neighbour in slot ``k`` is asked something, and is to answer."""
    if s.params.suspect_rounds > 0:
        handle = handle_in(s.links[p, k])
        if s.asked[p, k] < 0 or handle_in(s.asked[p, k]) != handle:
            s.asked[p, k] = s.round[p] << AGE_SHIFT | handle


@rule
def note_sent(s: State, p: int, handle: int) -> None:
    """A neighbour is sent an event: if it is silent, it is asked in the next round."""
    if may_rest(s):
        k = slot_of(s, p, handle)
        if k >= 0 and (s.asked[p, k] < 0 or handle_in(s.asked[p, k]) != handle):
            s.asked[p, k] = question_of_next_round(s, p, handle)


@inline_rule
def question_of_next_round(s: State, p: int, handle: int) -> Any:
    """What is noted of a neighbour that is to be asked in the next round."""
    return s.round[p] + 1 << AGE_SHIFT | handle


@rule
def note_heard(s: State, p: int, handle: int) -> None:
    """A peer has sent something: it lives."""
    if may_rest(s):
        s.rest[p, HEARD_IN] = s.round[p]
    if s.params.suspect_rounds > 0:
        k = slot_of(s, p, handle)
        if k >= 0:
            # What it has sent says who it is; that is compared with what is known of it.
            prefetch(s.link_profile, p, k * s.link_profile.shape[2])
            s.asked[p, k] = -1


@rule
def drop_suspects(s: State, p: int) -> None:
    """Let neighbours that have not answered for too long count as failed.

    Who hears from hardly anybody is rather cut off itself, and suspects nobody: local health, as
    Lifeguard has it (Dadgar et al., 2018). A peer that rests, and so has asked hardly anybody, asks
    first.
    """
    if s.params.suspect_rounds == 0:
        return
    suspects = 0
    heard = 0
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0:
            suspects += is_suspect(s, p, k)
            heard += not is_suspect(s, p, k) and age_in(s.links[p, k]) <= RECENT_AGE
    if may_rest(s):
        heard += s.rest[p, HEARD_IN] + RECENT_AGE >= s.round[p]
    if suspects == 0:
        return
    stir(s, p)
    if suspects > SUSPECTS_FOR_ONE_HEARD * heard:
        return
    if suspects > 1 and s.alarm.shape[1] > 0:
        s.alarm[p, SILENCE_IN] = s.round[p]
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0 and is_suspect(s, p, k):
            note_missed_since(s, p, s.asked[p, k] >> AGE_SHIFT)
            remember_failure(s, p, handle_in(s.links[p, k]))
            s.links[p, k] = -1
    settle_ring(s, p)


@rule
def note_missed_since(s: State, p: int, asked: int) -> None:
    """What was sent to a neighbour since shortly before it was asked has come to nobody."""
    if may_rest(s):
        since = max(asked - 1, 1)
        if s.rest[p, MISSED_SINCE] == 0 or since < s.rest[p, MISSED_SINCE]:
            s.rest[p, MISSED_SINCE] = since


@inline_rule
def is_suspect(s: State, p: int, k: int) -> Any:
    """Whether the neighbour in slot ``k`` has not answered for too long."""
    word = s.asked[p, k]
    is_late = (word >> AGE_SHIFT) + s.params.suspect_rounds <= s.round[p]
    return (word >= 0) & (handle_in(word) == handle_in(s.links[p, k])) & is_late


@rule
def age_links(s: State, p: int) -> None:
    """Let a round pass for every link, and drop those without news for too long (Sec. IV-C).

    They count as failed: others, who have not waited as long, would bring them back for ever. So do
    those that have not answered for `suspect_rounds`.
    """
    drop_suspects(s, p)
    oldest = 0
    for k in range(s.links.shape[1]):
        word = s.links[index(p), index(k)]
        word += (word >= 0) << AGE_SHIFT
        s.links[index(p), index(k)] = word
        oldest = max(oldest, age_in(word))
    if oldest > s.params.failure_age:
        for k in range(s.links.shape[1]):
            if age_in(s.links[p, k]) > s.params.failure_age:
                remember_failure(s, p, handle_in(s.links[p, k]))
                s.links[p, k] = -1
                stir(s, p)
        settle_ring(s, p)
