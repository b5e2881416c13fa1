"""Newscast peer sampling (Jelasity, Kowalczyk, van Steen, 2003).

Once a round a peer exchanges views with a random member of its own; both keep the C freshest of
what they hold together, each other's fresh descriptor included.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rows.row_search import index
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.fields import Descriptor, Limit, List, Sort, Table
from gossamer.protocol.peer.record_table.records import SAMPLE_REPLY, SAMPLE_REQUEST, SAMPLE_TIMER
from gossamer.protocol.peer.sampling.descriptors import (
    EMPTY,
    OFFERED,
    PLAIN,
    Sampler,
    SamplerState,
    begin_merge,
    count_descriptors,
    draw,
    find,
    forget_unreachable,
    handle_of,
    is_known,
    mark_known,
    move,
    pack,
    prefetch_row,
    seat,
    seat_all,
    send_to_some,
    view_length,
    write_own,
    write_slots,
)
from gossamer.protocol.peer.settings.profile import MAX_AGE


@inline_rule
def newscast_on_timer(
    v: SamplerState, p: int, now: int, _words: Words, _at: int, out: Outbox
) -> None:
    """Offer row p's view to a random member of it."""
    length = view_length(v, p)
    if length == 0:
        return
    withdraw_offer(v, p)
    chosen = below(draw(v, p), length)
    send_view(v, p, now, 0, SAMPLE_REQUEST, handle_of(v.views[p, chosen]), out)
    v.views[p, chosen] |= OFFERED


@inline_rule
def newscast_on_request(
    v: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox
) -> None:
    """Keep the freshest of both views, and answer with the result.

    The partner would come to the same result, itself in the place of row p.
    """
    count = take_news(v, p, now, words, at)
    if count < 0:
        return
    keep_freshest(v, p, count)
    send_view(v, p, now, 1, SAMPLE_REPLY, words[at + FROM], out)


@inline_rule
def newscast_on_reply(
    v: SamplerState, p: int, now: int, words: Words, at: int, _out: Outbox
) -> None:
    """Keep the freshest of both views: what the partner found, if row p's is still as it was."""
    count = take_news(v, p, now, words, at)
    if count < 0:
        return
    if offered_to(v, p) == words[at + FROM] and may_be_view(v, p, count):
        seat_all(v, p, v.spare, 0, count)
    else:
        keep_freshest(v, p, count)


@inline_rule
def send_view(
    v: SamplerState, p: int, now: int, begin: int, kind: int, to: int, out: Outbox
) -> None:
    """Send row p's fresh descriptor and its view from slot ``begin`` on."""
    length = view_length(v, p)
    stride = 1 + v.view_profile.shape[2]
    body_words = 1 + (1 + length - begin) * stride
    at = open_record(out, kind, to, v.handle[p], body_words)
    if at >= 0:
        out.words[at + BODY] = 1 + length - begin
        write_own(v, p, now, out.words, at + BODY + 1)
        write_slots(v, p, begin, length, out.words, at + BODY + 1 + stride)
        close_record(out, at, body_words)


@inline_rule
def offered_to(v: SamplerState, p: int) -> Any:
    """The handle row p offered its view to, -1 if the view has changed since.

    The offer marks the partner's descriptor, and a change of the view leaves no mark.
    """
    marked = 0
    for slot in range(v.view_size):
        word = v.views[index(p), index(slot)]
        marked |= word if word >= OFFERED else 0
    return handle_of(marked) if marked else -1


@inline_rule
def may_be_view(v: SamplerState, p: int, count: int) -> Any:
    """Whether the list in the work area fits row p's view and lacks row p itself.

    That nobody is in it twice is taken on trust: a sender that lies could as well name its friends.
    """
    stride = 1 + v.view_profile.shape[2]
    own = v.handle[p]
    found = lists(v, own, count, 1) if stride == 1 else lists(v, own, count, stride)
    return count <= v.view_size and not found


@inline_rule
def lists(v: SamplerState, handle: int, count: int, stride: int) -> Any:
    """Whether the list in the work area holds ``handle``."""
    found = 0
    for k in range(count):
        found |= handle_of(v.spare[index(k * stride)]) == handle
    return found != 0


@inline_rule
def take_news(v: SamplerState, p: int, now: int, words: Words, at: int) -> Any:
    """Copy the descriptors of a record to the work area; returns how many, -1 if malformed.

    Well-formed is the sender's own descriptor first, and none fresher than the one before it.
    The sender's own tells its clock: timestamps are shifted to row p's, so that clocks need not
    agree (Newscast, normalisation of timestamps).
    """
    count = count_descriptors(v, words, at)
    source = words[at + FROM]
    first = at + BODY + 1
    if count < 1 or handle_of(words[first]) != source or source == v.handle[p]:
        return -1
    stride = 1 + v.view_profile.shape[2]
    if words[first] >= pack(MAX_AGE, 0) or words[first + (count - 1) * stride] < 0:
        return -1
    if stride == 1:
        ordered = shift_clock(v, now, words, first, count, 1)
    else:
        ordered = shift_clock(v, now, words, first, count, stride)
        for k in range(count):
            for i in range(1, stride):
                v.spare[index(k * stride + i)] = words[index(first + k * stride + i)]
    return count if ordered else -1


@inline_rule
def shift_clock(
    v: SamplerState, now: int, words: Words, first: int, count: int, stride: int
) -> Any:
    """Copy descriptor words to the work area with timestamps as of the clock that shows ``now``.

    Returns whether they were in order, freshest first.
    """
    shift = pack((words[first] >> 32) - now, 0)
    misplaced = 0
    for k in range(count - 1):
        word = words[index(first + k * stride)]
        misplaced |= (word >> 32) < (words[index(first + (k + 1) * stride)] >> 32)
        v.spare[index(k * stride)] = max(word - shift, handle_of(word))
    last = words[first + (count - 1) * stride]
    v.spare[(count - 1) * stride] = max(last - shift, handle_of(last))
    return misplaced == 0


@inline_rule
def keep_freshest(v: SamplerState, p: int, count: int) -> None:
    """Let row p's view be the C freshest of itself and the list in the work area.

    The sender's own descriptor, first in the list, takes the first slot. The lists win in turn
    among equal timestamps, as in PeerSim's SimpleNewscast: this changes the clustering of the
    overlay.
    """
    stride = 1 + v.view_profile.shape[2]
    length = view_length(v, p)
    v.spare[count * stride] = EMPTY
    ours = count * stride + 1
    write_slots(v, p, 0, length, v.spare, ours)
    v.spare[ours + length * stride] = EMPTY
    theirs = stride

    seat(v, p, 0, v.spare[0], v.spare, 1)
    merge = begin_merge(v)
    mark_known(v, merge, v.handle[p])
    mark_known(v, merge, handle_of(v.spare[0]))
    length = 1
    our_turn = draw(v, p) & 1
    while length < v.view_size:
        our_word = v.spare[index(ours)]
        their_word = v.spare[index(theirs)]
        tie = (our_word >> 32) == (their_word >> 32)
        our_turn ^= tie
        take_ours = ((our_word >> 32) > (their_word >> 32)) | (tie & our_turn)
        word = our_word if take_ours else their_word
        source = ours if take_ours else theirs
        if word < 0:
            break
        # A slot written for a handle already known is written over by the next.
        seat(v, p, length, word, v.spare, source + 1)
        known = is_known(v, p, length, merge, handle_of(word))
        mark_known(v, merge, handle_of(word))
        length += not known
        ours += stride * take_ours
        theirs += stride * (1 - take_ours)
    for slot in range(length, v.view_size):
        v.views[index(p), index(slot)] = EMPTY


@rule
def add_contact_to_newscast(
    v: SamplerState, p: int, now: int, handle: int, words: Words, at: int
) -> None:
    """Seat ``handle`` as the freshest of row p's view; the oldest leaves a full view."""
    known = find(v, p, handle)
    length = view_length(v, p)
    withdraw_offer(v, p)
    last = known if known >= 0 else min(length, v.view_size - 1)
    shift_back(v, p, last)
    seat(v, p, 0, pack(now, handle), words, at)


@inline_rule
def withdraw_offer(v: SamplerState, p: int) -> None:
    """Remove the mark that `offered_to` looks for."""
    for slot in range(view_length(v, p)):
        v.views[index(p), index(slot)] &= PLAIN


@inline_rule
def shift_back(v: SamplerState, p: int, last: int) -> None:
    """Move slots 0..last-1 of row p's view one slot on, over what slot ``last`` held."""
    for k in range(last):
        move(v, p, last - k - 1, last - k)


@inline_rule
def newscast_hint(state: SamplerState, kind: int, soon: int, later: int) -> None:
    """Bring near row ``later``, and whom row ``soon`` will choose unless it draws before."""
    if kind == SAMPLE_TIMER:
        prefetch_row(state, later)
    elif kind == SAMPLE_REQUEST:
        length = view_length(state, soon)
        if length > 0:
            chosen = below(mix(state.seed, state.key[soon], state.draws[soon]), length)
            prefetch_row(state, handle_of(state.views[soon, chosen]))


_member = Descriptor("a view's descriptor", MAX_AGE)
# Freshness is a timestamp, so that the sender's own is of any age.
_sender = Descriptor("the sender's descriptor", MAX_AGE, of_sender=True)
_view = List("descriptors", (_member,), Limit("view_size", 1), first=(_sender,))
RECORDS: Final = Table()
RECORDS.declare(
    Sort.MESSAGE,
    SAMPLE_REQUEST,
    "SAMPLE_REQUEST",
    "The sender's view, to be merged with the receiver's.",
    (_view,),
)
RECORDS.declare(Sort.MESSAGE, SAMPLE_REPLY, "SAMPLE_REPLY", "What that led to.", (_view,))

SAMPLER: Final = Sampler(
    records=RECORDS,
    rules=MappingProxyType(
        {
            SAMPLE_TIMER: newscast_on_timer,
            SAMPLE_REQUEST: newscast_on_request,
            SAMPLE_REPLY: newscast_on_reply,
        }
    ),
    unreachable=forget_unreachable,
    add_contact=add_contact_to_newscast,
    broadcast=send_to_some,
    hint=newscast_hint,
    tells_times=True,
    # As for Cyclon, whose rounds are the same.
    records_a_round=MappingProxyType({SAMPLE_REQUEST: 4}),
)
