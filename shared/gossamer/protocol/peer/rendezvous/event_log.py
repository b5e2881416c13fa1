"""The log of events that a peer holds for others, and of those that its application got.

Goes beyond the paper. The rendezvous node of an event and its successors hold it when it has been
acknowledged, each the last M of such copies (`held_events`), for `retention_rounds`; a subscriber
notes as many that it got. `comparing` finds what somebody lacks by comparing logs: a part of the
ring, or of that the copies in a box, is told by the number of its copies and the sum of their
hashes, for each sixteenth of the range of hashes where the whole differs.

Publishers share a log by classes. Once it is full, a class that has less than an equal share keeps
what it has, and others lose their oldest (as by the clock of page replacement: what is kept counts
as written anew). Each class is whole since its own last loss. So a flood leaves what others
published, and that is compared by class, for longer than all of it together.

Copies are compared from `YOUNGEST` rounds after their publication, since what is under way is not
missing, until they are too old to be given to anybody. Peers count the rounds by themselves: a copy
that is given to a peer is as old there as where it came from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix, mix_many
from gossamer.protocol.kernel.records import Outbox, Words
from gossamer.protocol.kernel.rows.hash_chains import chain, place_in_ring
from gossamer.protocol.kernel.rules import inline_rule, rule, rule_with_interpreted_form
from gossamer.protocol.kernel.struct import as_array
from gossamer.protocol.peer.record_table.records import (
    CLASS_AT,
    COMPARED_BOX,
    COMPARED_CLASSES,
    COMPARED_FROM,
    COMPARED_LEVEL,
    COMPARED_PREFIX,
    COMPARED_ROUNDS,
    COMPARED_SALT,
    COMPARED_TO,
    EVENT_ATTRIBUTE,
    EVENT_ID,
    EVENT_VALUES,
    HELD,
    PARTS,
    PUBLISHER_CLASSES,
)
from gossamer.protocol.peer.rendezvous.publication import tell_application
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_BITS, RING_MASK, clockwise
from gossamer.protocol.peer.state.event_logs import Log
from gossamer.protocol.peer.state.lookup import ANCHORS, rendezvous_value
from gossamer.protocol.peer.state.state import PUSHED_OUT, State

Int64s = npt.NDArray[np.int64]

# Rounds from publication on in which a copy may be under way.
YOUNGEST = 4
# Bits by which a range of hashes is cut to sixteenths.
LEVEL_BITS = 4
TAKEN_OUT = -1


@rule
def note(s: State, log: Log, p: int, copy: int, published: int, words: Words, at: int) -> bool:
    """Write a copy with the values at ``words[at:]`` to a log; False if one made room too soon."""
    size = log.copies.shape[1]
    while log.next[p] >= size and is_kept(s, log, p, log.next[p] % size):
        chain(log.heads, log.older, p, log.next[p] % size, log.copies[p, log.next[p] % size])
        log.next[p] += 1
    place = log.next[p] % size
    early = False
    if log.next[p] >= size and log.copies[p, place] >= 0:
        early = is_young(s, log, p, place)
        loser = class_of(s, log.copies[p, place])
        log.whole_since[p, loser] = max(log.whole_since[p, loser], log.rounds[p, place] + 1)
        take_out(s, log, p, place)
    log.copies[p, place] = copy
    log.shares[p, class_of(s, copy)] += 1
    chain(log.heads, log.older, p, place, copy)
    log.rounds[p, place] = published
    for a in range(s.params.attributes):
        log.values[p, place, a] = words[at + a]
    log.next[p] += 1
    return early


@rule
def is_young(s: State, log: Log, p: int, place: int) -> bool:
    """Whether the retention time of a copy is not over."""
    return bool(log.rounds[p, place] + s.params.retention_rounds >= s.round[p])


@rule
def is_kept(s: State, log: Log, p: int, place: int) -> bool:
    """Whether the oldest copy stays, since its publisher's class has less than an equal share."""
    if log.copies[p, place] < 0 or not is_young(s, log, p, place):
        return False
    present = 0
    for k in range(PUBLISHER_CLASSES):
        present += log.shares[p, k] > 0
    share = log.shares[p, class_of(s, log.copies[p, place])]
    return bool(share * present < log.copies.shape[1])


@rule
def take_out(s: State, log: Log, p: int, place: int) -> None:
    """Have a log know no more of the copy at a place."""
    log.shares[p, class_of(s, log.copies[p, place])] -= 1
    log.copies[p, place] = TAKEN_OUT


@inline_rule
def class_of(s: State, copy: int) -> Any:
    """The class of a copy's publisher, which the first bits of its event's identifier tell."""
    return (copy // s.params.attributes >> CLASS_AT) % PUBLISHER_CLASSES


@rule
def place_in_log(log: Log, p: int, copy: int) -> int:
    """Where a log has a copy, -1 where it has not."""
    size = log.copies.shape[1]
    if size == 0 or log.next[p] == 0:
        return -1
    place = place_in_ring(log.copies, log.heads, log.older, p, log.next[p] % size, copy)
    return place if place < log.next[p] else -1


@rule
def hold(s: State, p: int, words: Words, body: int, age: int, out: Outbox) -> None:
    """Hold the event copy at ``words[body:]``, unless ``p`` does; tell the host."""
    copy = words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
    if s.held.copies.shape[1] == 0 or place_in_log(s.held, p, copy) >= 0:
        return
    s.counters[p, PUSHED_OUT] += note(
        s, s.held, p, copy, s.round[p] - age, words, body + EVENT_VALUES
    )
    tell_application(s, p, HELD, words[body + EVENT_ID], out)


@rule
def note_got(s: State, p: int, event: int, age: int, words: Words, at: int) -> None:
    """Note that the application has an event with the values at ``words[at:]``."""
    copy = event * s.params.attributes
    if s.got.copies.shape[1] > 0 and place_in_log(s.got, p, copy) < 0:
        note(s, s.got, p, copy, s.round[p] - age, words, at)


@rule
def was_delivered(s: State, p: int, event: int) -> bool:
    """Whether the application has got an event of late."""
    place = s.delivered_next[p]
    found = place_in_ring(s.delivered, s.delivered_heads, s.delivered_older, p, place, event)
    return bool(found >= 0)


@rule
def is_held_for(s: State, p: int, value: int) -> bool:
    """Whether events of this value are for ``p`` to hold.

    Their rendezvous node and `replicas` successors hold them, so that no more than these stand
    between the value and ``p``.
    """
    me = s.sampler.profile[p, IDENTIFIER]
    between = 0
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0:
            other = s.link_profile[p, k, IDENTIFIER]
            between += clockwise(value, other) < clockwise(value, me)
    return between <= s.params.replicas


# What is compared, as a question says it: a part of the ring, of that a box or all, a range of
# hashes, and how old copies are at most.


@inline_rule
def hash_of(copy: int, salt: int) -> Any:
    """By what a copy is compared; who asks chooses the salt, so that nobody can foresee it."""
    return mix(salt, copy, 0)


@rule
def is_compared(
    s: State, log: Log, p: int, place: int, attribute: int, words: Words, at: int
) -> bool:
    """Whether the range at ``words[at:]`` has a copy; ``attribute`` as of `copy_at`."""
    age = s.round[p] - log.rounds[p, place]
    if log.copies[p, place] < 0 or age < YOUNGEST or age > words[at + COMPARED_ROUNDS]:
        return False
    if (words[at + COMPARED_CLASSES] >> class_of(s, log.copies[p, place])) & 1 == 0:
        return False
    copy = copy_at(log, p, place, attribute)
    if not is_in_part(s, log, p, place, copy, words, at):
        return False
    hashed = hash_of(copy, words[at + COMPARED_SALT])
    return is_in_range(words[at + COMPARED_LEVEL], words[at + COMPARED_PREFIX], hashed)


@rule
def is_in_part(s: State, log: Log, p: int, place: int, copy: int, words: Words, at: int) -> bool:
    """Whether the part at ``words[at:]`` has a copy, whatever its age and hash."""
    attribute = copy % s.params.attributes
    value = rendezvous_value(s, attribute, log.values[p, place, attribute])
    start = words[at + COMPARED_FROM]
    if clockwise(start, value) > clockwise(start, words[at + COMPARED_TO]):
        return False
    box = at + COMPARED_BOX
    if words[box] < 0:
        return True
    if words[box] != attribute:
        return False
    for a in range(s.params.attributes):
        of_it = log.values[p, place, a]
        if of_it < words[box + 1 + 2 * a] or of_it > words[box + 2 + 2 * a]:
            return False
    return True


@rule
def copy_at(log: Log, p: int, place: int, attribute: int) -> int:
    """The copy at a place; of what an application got, that of the attribute (-1 as it is)."""
    return log.copies[p, place] + max(attribute, 0)


@rule
def is_in_range(level: int, prefix: int, hashed: int) -> bool:
    """Whether a hash begins with this prefix of so many sixteenths."""
    return hashed >> (RING_BITS - LEVEL_BITS * level) == prefix


def compared_at_once(
    s: Any, log: Any, p: int, is_got: bool, words: Any, at: int
) -> tuple[Int64s, Int64s]:
    """Places and hashes of the copies that are compared, by arrays."""
    count = min(log.next[p], log.copies.shape[1])
    copies, values = as_array(log.copies)[p, :count], as_array(log.values)[p, :count]
    box = at + COMPARED_BOX
    ages = s.round[p] - as_array(log.rounds)[p, :count]
    chosen = (copies >= 0) & (ages >= YOUNGEST) & (ages <= words[at + COMPARED_ROUNDS])
    classes = (np.maximum(copies, 0) // s.params.attributes >> CLASS_AT) % PUBLISHER_CLASSES
    chosen &= (words[at + COMPARED_CLASSES] >> classes) & 1 == 1
    if is_got:
        copies = copies + max(words[box], 0)
    attributes = copies % s.params.attributes
    own = values[np.arange(count), attributes] if s.params.by_value else ANCHORS[attributes]
    start, end = words[at + COMPARED_FROM], words[at + COMPARED_TO]
    chosen &= ((own - start) & RING_MASK) <= ((end - start) & RING_MASK)
    if words[box] >= 0:
        chosen &= attributes == words[box]
        for a in range(s.params.attributes):
            chosen &= values[:, a] >= words[box + 1 + 2 * a]
            chosen &= values[:, a] <= words[box + 2 + 2 * a]
    places = chosen.nonzero()[0]
    hashes = mix_many(words[at + COMPARED_SALT], copies[places], 0)
    shift = RING_BITS - LEVEL_BITS * words[at + COMPARED_LEVEL]
    in_range = hashes >> shift == words[at + COMPARED_PREFIX]
    return places[in_range], hashes[in_range]


def _find_compared_at_once(
    s: Any, log: Any, p: int, is_got: bool, words: Any, at: int, most: int
) -> int:
    places, _ = compared_at_once(s, log, p, is_got, words, at)
    count = min(len(places), most)
    as_array(s.work.compared)[:count] = places[:count]
    return count


@rule_with_interpreted_form(_find_compared_at_once, inline=False)
def find_compared(
    s: State, log: Log, p: int, is_got: bool, words: Words, at: int, most: int
) -> int:
    """Write to ``work.compared`` the places of ``most`` copies that are compared; their number.

    Args:
        s: the state; its scratch space changes.
        log: ``p``'s; of what its application got if ``is_got``.
        p: the row.
        is_got: see there.
        words: hold what is compared, as a question has it, from ``at`` on.
        at: see there.
        most: at most `LISTED_AT_ONCE`.
    """
    attribute = words[at + COMPARED_BOX] if is_got else -1
    found = 0
    for place in range(min(log.next[p], log.copies.shape[1])):
        if found < most and is_compared(s, log, p, place, attribute, words, at):
            s.work.compared[found] = place
            found += 1
    return found


def _sum_up_at_once(s: Any, log: Any, p: int, is_got: bool, words: Any, at: int) -> None:
    _, hashes = compared_at_once(s, log, p, is_got, words, at)
    shift = RING_BITS - LEVEL_BITS * (words[at + COMPARED_LEVEL] + 1)
    parts = (hashes >> shift) & (PARTS - 1)
    sums = np.zeros((PARTS, 2), np.uint64)
    np.add.at(sums, parts, np.stack([np.ones_like(hashes), hashes], axis=1).astype(np.uint64))
    as_array(s.work.sums)[:] = (sums & np.uint64(RING_MASK)).astype(np.int64).reshape(-1)


@rule_with_interpreted_form(_sum_up_at_once, inline=False)
def sum_up(s: State, log: Log, p: int, is_got: bool, words: Words, at: int) -> None:
    """Write to ``work.sums`` count and sum of hashes of each sixteenth of what is compared.

    Arguments as of `find_compared`.
    """
    sums = s.work.sums
    for i in range(2 * PARTS):
        sums[i] = 0
    attribute = words[at + COMPARED_BOX] if is_got else -1
    shift = RING_BITS - LEVEL_BITS * (words[at + COMPARED_LEVEL] + 1)
    for place in range(min(log.next[p], log.copies.shape[1])):
        if is_compared(s, log, p, place, attribute, words, at):
            copy = copy_at(log, p, place, attribute)
            hashed = hash_of(copy, words[at + COMPARED_SALT])
            part = (hashed >> shift) & (PARTS - 1)
            sums[2 * part] += 1
            sums[2 * part + 1] = (sums[2 * part + 1] + hashed) & RING_MASK


@rule
def all_sums(s: State, which: int) -> int:
    """Of all sixteenths in ``work.sums`` together the count, or for 1 the sum."""
    found = 0
    for part in range(PARTS):
        found = (found + s.work.sums[2 * part + which]) & RING_MASK
    return found


@rule
def whole_rounds(s: State, log: Log, p: int, rounds: int) -> int:
    """How many of so many rounds a log is whole for: none younger had to make room."""
    if log.copies.shape[1] == 0:
        return 0
    whole = min(rounds, s.params.retention_rounds)
    for k in range(PUBLISHER_CLASSES):
        whole = min(whole, s.round[p] - log.whole_since[p, k])
    return max(0, whole)


@rule
def whole_classes(s: State, log: Log, p: int, rounds: int) -> int:
    """The classes, as bits, for which a log is whole for so many rounds."""
    found = 0
    for k in range(PUBLISHER_CLASSES if log.copies.shape[1] > 0 else 0):
        found |= (s.round[p] - log.whole_since[p, k] >= rounds) << k
    return found
