"""Newscast peer sampling (Jelasity, Kowalczyk, van Steen, 2003).

Once a round a peer exchanges views with a random member of its own; both keep the C freshest of
what they hold together, each other's fresh descriptor included.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.draws import below
from gossamer.protocol.messages import (
    BODY,
    FROM,
    KIND,
    SAMPLE_REPLY,
    SAMPLE_REQUEST,
    SAMPLE_TIMER,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.overlay.descriptors import (
    EMPTY,
    MAX_AGE,
    SamplerState,
    age_of,
    begin_merge,
    count_descriptors,
    draw,
    find,
    forget,
    handle_of,
    is_known,
    mark_known,
    pack,
    seat,
    view_length,
    write_own,
    write_slots,
)
from gossamer.protocol.rules import inline_rule, rule


@rule
def newscast_on_timer(v: SamplerState, p: int, now: int, out: Outbox) -> None:
    """Offer row p's view to a random member of it."""
    length = view_length(v, p)
    if length == 0:
        return
    partner = handle_of(v.views[p, below(draw(v, p), length)])
    write_view(v, p, now, SAMPLE_REQUEST, partner, out)


@rule
def newscast_on_request(
    v: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox
) -> None:
    """Answer with row p's view as it was, then keep the freshest of both."""
    count = count_news(v, words, at)
    if count < 0 or words[at + FROM] == v.handle[p]:
        return
    adjust_to_clock(v, now, words, at, count)
    reply = write_view(v, p, now, SAMPLE_REPLY, words[at + FROM], out)
    if reply < 0:
        return
    stride = 1 + v.view_profile.shape[2]
    theirs = at + BODY + 1
    ours = reply + BODY + 1 + stride
    seat(v, p, 0, words[theirs], words, theirs + 1)
    ours_count = out.words[reply + BODY] - 1
    keep_freshest(v, p, words, theirs + stride, count - 1, out.words, ours, ours_count)


@rule
def newscast_on_reply(v: SamplerState, p: int, now: int, words: Words, at: int) -> None:
    """Keep the freshest of row p's view and the partner's."""
    count = count_news(v, words, at)
    if count < 0 or words[at + FROM] == v.handle[p]:
        return
    adjust_to_clock(v, now, words, at, count)
    length = view_length(v, p)
    write_slots(v, p, 0, length, v.spare, 0)
    stride = 1 + v.view_profile.shape[2]
    theirs = at + BODY + 1
    seat(v, p, 0, words[theirs], words, theirs + 1)
    keep_freshest(v, p, v.spare, 0, length, words, theirs + stride, count - 1)


@inline_rule
def write_view(v: SamplerState, p: int, now: int, kind: int, to: int, out: Outbox) -> Any:
    """Send row p's fresh descriptor and its view; returns where the record is, -1 if refused."""
    length = view_length(v, p)
    stride = 1 + v.view_profile.shape[2]
    body_words = 1 + (1 + length) * stride
    at = open_record(out, kind, to, v.handle[p], body_words)
    if at >= 0:
        out.words[at + BODY] = 1 + length
        write_own(v, p, now, out.words, at + BODY + 1)
        write_slots(v, p, 0, length, out.words, at + BODY + 1 + stride)
        close_record(out, at, body_words)
    return at


@inline_rule
def count_news(v: SamplerState, words: Words, at: int) -> int:
    """The number of descriptors in a Newscast record, or -1 where it is malformed.

    Well-formed is the sender's own descriptor first, and no descriptor fresher than the one
    before it.
    """
    count = count_descriptors(v, words, at)
    first = at + BODY + 1
    if count < 1 or handle_of(words[first]) != words[at + FROM]:
        return -1
    stride = 1 + v.view_profile.shape[2]
    last = first + (count - 1) * stride
    if words[last] < 0 or words[first] >= pack(MAX_AGE, 0):
        return -1
    misplaced = 0
    for i in range(first, last, stride):
        misplaced += (words[i] >> 32) < (words[i + stride] >> 32)
    return -1 if misplaced else count


@inline_rule
def adjust_to_clock(v: SamplerState, now: int, words: Words, at: int, count: int) -> None:
    """Shift the timestamps of a record to the clock of the peer that takes it.

    The sender's own descriptor tells its clock, so that clocks need not agree (Newscast, the
    normalisation of timestamps). Writes the record.
    """
    first = at + BODY + 1
    ahead = age_of(words[first]) - now
    if ahead == 0:
        return
    stride = 1 + v.view_profile.shape[2]
    for i in range(first, first + count * stride, stride):
        words[i] = pack(max(age_of(words[i]) - ahead, 0), handle_of(words[i]))


@rule
def keep_freshest(
    v: SamplerState,
    p: int,
    one: Words,
    one_at: int,
    one_count: int,
    other: Words,
    other_at: int,
    other_count: int,
) -> None:
    """Fill row p's view from slot 1 with the freshest of two lists, both freshest first.

    Slot 0 holds the partner. ``one`` is the list of the peer that began the exchange, so that
    both peers come to the same order. The lists win in turn among equal timestamps, as in
    PeerSim's SimpleNewscast: this changes the clustering of the overlay.
    """
    stride = 1 + v.view_profile.shape[2]
    one_end = one_at + one_count * stride
    other_end = other_at + other_count * stride
    merge = begin_merge(v)
    mark_known(v, merge, v.handle[p])
    mark_known(v, merge, handle_of(v.views[p, 0]))
    length = 1
    one_wins = 0
    while length < v.view_size and (one_at < one_end or other_at < other_end):
        # A list that has ended gives way to the other.
        first = one[one_at] if one_at < one_end else EMPTY
        second = other[other_at] if other_at < other_end else EMPTY
        tie = (first >> 32) == (second >> 32)
        one_wins ^= tie
        take_one = ((first >> 32) > (second >> 32)) | (tie & one_wins)
        word = first if take_one else second
        # A slot written for a handle already known is written over by the next.
        if take_one:
            seat(v, p, length, word, one, one_at + 1)
        else:
            seat(v, p, length, word, other, other_at + 1)
        known = is_known(v, p, length, merge, handle_of(word))
        mark_known(v, merge, handle_of(word))
        length += not known
        one_at += stride * take_one
        other_at += stride * (1 - take_one)
    for slot in range(length, v.view_size):
        v.views[p, slot] = EMPTY


@rule
def add_contact_to_newscast(
    v: SamplerState, p: int, now: int, handle: int, words: Words, at: int
) -> None:
    """Seat ``handle`` as the freshest of row p's view; the oldest leaves a full view."""
    known = find(v, p, handle)
    length = view_length(v, p)
    last = known if known >= 0 else min(length, v.view_size - 1)
    shift_back(v, p, last)
    seat(v, p, 0, pack(now, handle), words, at)


@inline_rule
def shift_back(v: SamplerState, p: int, last: int) -> None:
    """Move slots 0..last-1 of row p's view one slot on, over what slot ``last`` held."""
    for k in range(last):
        slot = last - k
        v.views[p, slot] = v.views[p, slot - 1]
        for i in range(v.view_profile.shape[2]):
            v.view_profile[p, slot, i] = v.view_profile[p, slot - 1, i]


@rule
def newscast_on_unreachable(v: SamplerState, p: int, words: Words, at: int) -> None:
    """Forget the partner that could not be reached."""
    forget(v, p, words[at + TO])


@rule
def newscast_step(
    state: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox
) -> None:
    """Newscast alone as a protocol: the one door for timers and messages."""
    kind = words[at + KIND]
    if kind == SAMPLE_TIMER:
        newscast_on_timer(state, p, now, out)
    elif kind == SAMPLE_REQUEST:
        newscast_on_request(state, p, now, words, at, out)
    elif kind == SAMPLE_REPLY:
        newscast_on_reply(state, p, now, words, at)
    elif kind == SAMPLE_REQUEST + UNREACHABLE:
        newscast_on_unreachable(state, p, words, at)
