"""Partial views: the descriptors a peer holds of others, and the state that samplers share.

A descriptor is one packed word, freshness above handle, followed by the profile words that
travel with it. Freshness is an age in rounds with most samplers and a timestamp in rounds
with others (`tells_times`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    TO,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rows.row_search import index
from gossamer.protocol.kernel.rules import Rule, inline_rule, rule, rule_with_interpreted_form
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS, Struct, as_array
from gossamer.protocol.peer.record_table.fields import Table
from gossamer.protocol.peer.settings.profile import HANDLE_BITS, HANDLE_MASK

EMPTY = -1

# Descriptors of a view, and of no record, may bear marks above their age. What they mean is up to
# the sampler, but for ACTIVE, which a neighbour bears that knows this peer as such, too.
FIRST_MARK = 1 << 61
OFFERED = ACTIVE = 1 << 62
PLAIN = FIRST_MARK - 1
ONE_ROUND = 1 << HANDLE_BITS

# Random members of a view that a broadcast goes on to; 4 in the HyParView paper (Sec. 5.1).
FANOUT = 4

TABLE_SIZE = 1024
_TABLE_BITS = 10


class SamplerState(Struct, shared=("spare", "seen", "merges")):
    """Peer sampling state of n peers, one row a peer.

    Attributes:
        kind: number of the sampler, its place in `SAMPLERS`.
        tells_times: 1 where freshness is a timestamp, 0 where it is an age.
        active_slots: how many slots, the first, are for neighbours that know each other.
        seed: of the draws.
        view_size: C, descriptors in a full view.
        shuffle_length: descriptors in a shuffle, the sender's own included.
        key: int64[n], permanent keys.
        handle: int64[n], the handle each peer knows itself by.
        draws: int64[n], draws made so far, shared with the layers above.
        profile: int64[n, W], each peer's own profile.
        views: int64[n, C], packed descriptors; used slots are contiguous from 0, the rest EMPTY.
            Their order is the sampler's.
        view_profile: int64[n, C, W], the profile of each descriptor.
        spare: int64[(2C + 1) * (1 + W) + 2], work area: two lists laid out as in a record, each
            with an end mark.
        seen: int64[1024], work area: stamps of the handles met in the current merge.
        merges: int64[1], work area: the current merge, what a valid stamp starts with.
    """

    _varying = frozenset({"seed"})

    kind: int
    tells_times: int
    active_slots: int
    seed: int
    view_size: int
    shuffle_length: int
    key: Words
    handle: Words
    draws: Words
    profile: Words
    views: Words
    view_profile: Words
    spare: Words
    seen: Words
    merges: Words


def sampler_columns(view_size: int, profile_words: int) -> dict[str, tuple[int, ...]]:
    """What a sampler keeps of every peer, and of what shapes."""
    return {
        "key": (),
        "handle": (),
        "draws": (),
        "profile": (profile_words,),
        "views": (view_size,),
        "view_profile": (view_size, profile_words),
    }


@inline_rule
def pack(freshness: int, handle: int) -> int:
    """The descriptor word of ``handle``; freshness from 0 to MAX_AGE, handle below 2^32."""
    return (freshness << 32) | handle


@inline_rule
def age_of(word: int) -> int:
    """The age of a descriptor or its timestamp, in rounds."""
    return (word & PLAIN) >> 32


@inline_rule
def handle_of(word: int) -> int:
    """The handle in a descriptor."""
    return word & HANDLE_MASK


@inline_rule
def draw(v: SamplerState, p: int) -> Any:
    """Row p's next uniform draw from [0, 2^62)."""
    counter = v.draws[p]
    v.draws[p] = counter + 1
    return mix(v.seed, v.key[p], counter)


@inline_rule
def view_length(v: SamplerState, p: int) -> Any:
    """How many descriptors row p holds."""
    length = v.view_size
    while length > 0 and v.views[p, length - 1] < 0:
        length -= 1
    return length


@inline_rule
def prefetch_row(v: SamplerState, p: int) -> None:
    """Bring what an exchange touches of row p near."""
    for at in range(0, sampler_words(v), CACHE_LINE_WORDS):
        prefetch(v.key, p, at)


@inline_rule
def sampler_words(v: SamplerState) -> Any:
    """How many words of a row `sampler_columns` take."""
    return 3 + v.view_profile.shape[2] + v.views.shape[1] * (1 + v.view_profile.shape[2])


@rule
def find(v: SamplerState, p: int, handle: int) -> int:
    """The slot of ``handle`` in row p's view, or -1."""
    for slot in range(view_length(v, p)):
        if handle_of(v.views[p, slot]) == handle:
            return slot
    return -1


def _move_at_once(v: SamplerState, p: int, source: int, target: int) -> None:
    v.views[p, target] = v.views[p, source]
    profiles = as_array(v.view_profile)
    profiles[p, target] = profiles[p, source]


@rule_with_interpreted_form(_move_at_once)
def move(v: SamplerState, p: int, source: int, target: int) -> None:
    """Copy the descriptor in slot ``source`` of row p over that in ``target``."""
    v.views[index(p), index(target)] = v.views[index(p), index(source)]
    for i in range(v.view_profile.shape[2]):
        word = v.view_profile[index(p), index(source), index(i)]
        v.view_profile[index(p), index(target), index(i)] = word


def _swap_at_once(v: SamplerState, p: int, one: int, other: int) -> None:
    v.views[p, one], v.views[p, other] = v.views[p, other], v.views[p, one]
    profiles = as_array(v.view_profile)
    profiles[p, [one, other]] = profiles[p, [other, one]]


@rule_with_interpreted_form(_swap_at_once)
def swap(v: SamplerState, p: int, one: int, other: int) -> None:
    """Exchange two slots of row p's view."""
    word = v.views[index(p), index(one)]
    v.views[index(p), index(one)] = v.views[index(p), index(other)]
    v.views[index(p), index(other)] = word
    for i in range(v.view_profile.shape[2]):
        word = v.view_profile[index(p), index(one), index(i)]
        other_word = v.view_profile[index(p), index(other), index(i)]
        v.view_profile[index(p), index(one), index(i)] = other_word
        v.view_profile[index(p), index(other), index(i)] = word


def _seat_at_once(v: SamplerState, p: int, slot: int, word: int, words: Any, at: int) -> None:
    v.views[p, slot] = word
    as_array(v.view_profile)[p, slot] = words[at : at + v.view_profile.shape[2]]


@rule_with_interpreted_form(_seat_at_once)
def seat(v: SamplerState, p: int, slot: int, word: int, words: Words, at: int) -> None:
    """Put ``word`` into a slot of row p's view, with the profile that begins at ``words[at]``."""
    v.views[index(p), index(slot)] = word
    for i in range(v.view_profile.shape[2]):
        v.view_profile[index(p), index(slot), index(i)] = words[index(at + i)]


@inline_rule
def write_own(v: SamplerState, p: int, freshness: int, words: Words, at: int) -> None:
    """Write row p's own descriptor to ``words[at:]``."""
    words[at] = pack(freshness, v.handle[p])
    for i in range(v.profile.shape[1]):
        words[at + 1 + i] = v.profile[p, i]


def _write_slots_at_once(
    v: SamplerState, p: int, begin: int, end: int, words: Any, at: int
) -> None:
    written = []
    for word, profile in zip(
        as_array(v.views)[p, begin:end].tolist(),
        as_array(v.view_profile)[p, begin:end].tolist(),
        strict=True,
    ):
        written.append(word & PLAIN)
        written += profile
    as_array(words)[at : at + len(written)] = written


@rule_with_interpreted_form(_write_slots_at_once)
def write_slots(v: SamplerState, p: int, begin: int, end: int, words: Words, at: int) -> None:
    """Write slots begin..end-1 of row p's view to ``words[at:]``, one after another."""
    profile_words = v.view_profile.shape[2]
    if profile_words == 0:
        for k in range(end - begin):
            words[index(at + k)] = v.views[index(p), index(begin + k)] & PLAIN
        return
    for slot in range(begin, end):
        words[at] = v.views[p, slot] & PLAIN
        for i in range(profile_words):
            words[index(at + 1 + i)] = v.view_profile[index(p), index(slot), index(i)]
        at += 1 + profile_words


@inline_rule
def seat_all(v: SamplerState, p: int, words: Words, at: int, count: int) -> None:
    """Let row p's view be the ``count`` descriptors from ``words[at]`` on."""
    profile_words = v.view_profile.shape[2]
    if profile_words == 0:
        for slot in range(count):
            v.views[index(p), index(slot)] = words[index(at + slot)]
    else:
        for slot in range(count):
            seat(v, p, slot, words[at], words, at + 1)
            at += 1 + profile_words
    for slot in range(count, v.view_size):
        v.views[index(p), index(slot)] = EMPTY


@inline_rule
def count_descriptors(v: SamplerState, words: Words, at: int) -> Any:
    """The number of descriptors in the record at ``words[at]``, or -1 where it is malformed.

    Well-formed is [count, descriptors] with the length that follows from a count of at most
    C + 1.
    """
    body_words = words[at + LENGTH] - BODY
    if body_words < 1:
        return -1
    count = words[at + BODY]
    if count < 0 or count > v.view_size + 1:
        return -1
    if body_words != 1 + count * (1 + v.view_profile.shape[2]):
        return -1
    return count


@inline_rule
def begin_merge(v: SamplerState) -> Any:
    """Begin to note known handles afresh; returns the number that the notes are stamped with."""
    v.merges[0] += 1
    return v.merges[0]


@inline_rule
def stamp_of(merge: int, handle: int) -> int:
    """What the table of known handles holds for ``handle``, whose low bits its place implies."""
    return (merge << (HANDLE_BITS - _TABLE_BITS)) | (handle >> _TABLE_BITS)


@inline_rule
def mark_known(v: SamplerState, merge: int, handle: int) -> None:
    """Note that ``handle`` is row p itself or in its view."""
    v.seen[index(handle & (TABLE_SIZE - 1))] = stamp_of(merge, handle)


@inline_rule
def is_known(v: SamplerState, p: int, length: int, merge: int, handle: int) -> Any:
    """Whether ``handle`` is row p itself or in the first ``length`` slots of its view.

    All of these must have been marked in this merge; a mark may have been overwritten.
    """
    mark = v.seen[index(handle & (TABLE_SIZE - 1))]
    known = mark == stamp_of(merge, handle)
    # One branch, seldom taken: whether a handle is known cannot be foretold.
    if (mark >= stamp_of(merge, 0)) & (not known):
        return is_held(v, p, length, handle)
    return known


@rule
def is_held(v: SamplerState, p: int, length: int, handle: int) -> bool:
    """Whether ``handle`` is row p itself or in the first ``length`` slots of its view."""
    if handle == v.handle[p]:
        return True
    for slot in range(length):
        if handle_of(v.views[p, slot]) == handle:
            return True
    return False


@rule
def forget(v: SamplerState, p: int, handle: int) -> None:
    """Drop the descriptor of a peer known to have failed from row p's view, if it is there."""
    slot = find(v, p, handle)
    if slot < 0:
        return
    length = view_length(v, p)
    for k in range(slot, length - 1):
        move(v, p, k + 1, k)
    v.views[p, length - 1] = EMPTY


@rule
def forget_unreachable(
    v: SamplerState,
    p: int,
    _now: int,
    words: Words,
    at: int,
    _out: Outbox,
) -> None:
    """Forget the addressee of a record that came back."""
    forget(v, p, words[at + TO])


@rule
def send_to_some(v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Send the record at ``words[at:]`` on to FANOUT random members of row p's view."""
    length = view_length(v, p)
    if length == 0:
        return
    count = min(FANOUT, length)
    first = below(draw(v, p), length)
    for k in range(count):
        to = handle_of(v.views[p, (first + k * (length // count)) % length])
        if to != words[at + FROM]:
            send_copy(v, p, to, words, at, out)


@rule
def send_copy(v: SamplerState, p: int, to: int, words: Words, at: int, out: Outbox) -> None:
    """Send the record at ``words[at:]`` on to ``to``."""
    body_words = words[at + LENGTH] - BODY
    copy = open_record(out, words[at + KIND], to, v.handle[p], body_words)
    if copy < 0:
        return
    for i in range(body_words):
        out.words[copy + BODY + i] = words[at + BODY + i]
    close_record(out, copy, body_words)


# What a sampler declares of itself: all that the layers above, hosts and documents know of it.
#
# A sampler is a module of this folder with an object `SAMPLER` and its name in
# `gossamer.protocol.peer.settings.config.SAMPLERS`. Nothing else names a member of the family.


@rule
def ignore(_v: SamplerState, _p: int, _now: int, _words: Words, _at: int, _out: Outbox) -> None:
    """Do nothing."""


def _none(_view_size: int) -> int:
    return 0


@attrs.frozen(kw_only=True)
class Sampler:
    """A peer sampling protocol.

    Rules are called as ``rule(v, p, now, words, at, out)`` with a `SamplerState`, where nothing
    else is said.

    Attributes:
        records: the messages that its peers send each other. Their numbers are 16 to 47 and none of
            those in `record_table.records`; two samplers may use the same.
        rules: by kind, what takes SAMPLE_TIMER and each of these messages. All kinds of a sampler
            have one.
        unreachable: takes any record of this peer that came back because its addressee, at
            ``words[at + TO]``, cannot be reached.
        link_broke: takes the command LINK_BROKE: a host lost its connection to the peer at
            ``words[at + BODY]``, which may well live. Does nothing if not given.
        rest: takes SAMPLE_TIMER in a round in which the peer rests: ages grow. Nothing is sent but
            by samplers whose peers take who is silent for dead. Does nothing if not given.
        add_contact: seats a peer learnt from outside, ``rule(v, p, now, handle, words, at)``, whose
            profile is ``words[at:]``; never called with the row's own handle.
        broadcast: sends a copy of the record at ``words[at:]`` to each of the peers by which this
            one takes part in a broadcast.
        hint: ``rule(v, kind, soon, later)``, see `CycleEngine`.
        tells_times: whether freshness is the round in which a descriptor was written, and no age.
        active_slots: how many slots of a view of a size are for neighbours that know each other;
            they come first, and bear `ACTIVE` where one is seated.
        records_a_round: by kind, how many messages one peer sends another in a round at most, with
            a margin for rounds that come late; kinds that are not in it are not limited.
    """

    records: Table
    rules: Mapping[int, Rule]
    unreachable: Rule
    add_contact: Rule
    broadcast: Rule
    hint: Rule
    link_broke: Rule = ignore
    rest: Rule = ignore
    tells_times: bool = False
    active_slots: Callable[[int], int] = _none
    records_a_round: Mapping[int, int] = attrs.field(factory=dict)
