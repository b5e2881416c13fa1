"""Cyclon peer sampling (Voulgaris, Gavidia, van Steen, 2005).

Once a round a peer trades a few descriptors with the one of its view that it has known longest:
what one gives away the other keeps, so that the number of descriptors of each peer stays even.

The paper has overlays in mind whose views are full. In those of a few peers, or where messages are
lost, what is given away may come back from nobody: two peers would take each other's only
descriptor away by turns, and never know each other in their own turn. So the last descriptor of a
view stays for some rounds, unless an answer brings another one, and who knows nobody but the asker
gives itself.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

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
    ONE_ROUND,
    PLAIN,
    Sampler,
    SamplerState,
    age_of,
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
    send_to_some,
    swap,
    view_length,
    write_own,
    write_slots,
)
from gossamer.protocol.peer.settings.config import MAX_VIEW_SIZE
from gossamer.protocol.peer.settings.profile import MAX_AGE

# A draw is used up as a fraction of this many bits, a few picks a draw.
_FRACTION_BITS = 54
_PICKS_A_DRAW = 4

# Up to this age the last descriptor of a view is kept though its peer has not answered: of messages
# that are lost every other time, one arrives within it but for once in 2^16 times.
_LAST_KEPT_AGE = 16


@inline_rule
def cyclon_on_timer(
    v: SamplerState, p: int, _now: int, _words: Words, _at: int, out: Outbox
) -> None:
    """Age row p's view and trade with the oldest of it, which leaves the view (Sec. 3.2).

    The last one known leaves when it answers (`cyclon_on_reply`), or has not done so for long.
    """
    length = view_length(v, p)
    if length == 0:
        return
    grow_older(v, p, length)
    oldest = find_oldest(v, p, length)
    partner = handle_of(v.views[p, oldest])
    length -= 1
    if length > 0 or age_of(v.views[p, 0]) > _LAST_KEPT_AGE:
        move(v, p, length, oldest)
        v.views[p, length] = EMPTY

    offered = min(v.shuffle_length - 1, length)
    bring_random_last(v, p, length, offered)
    stride = 1 + v.view_profile.shape[2]
    body_words = 1 + (1 + offered) * stride
    at = open_record(out, SAMPLE_REQUEST, partner, v.handle[p], body_words)
    if at < 0:
        return
    out.words[at + BODY] = 1 + offered
    write_own(v, p, 0, out.words, at + BODY + 1)
    write_slots(v, p, length - offered, length, out.words, at + BODY + 1 + stride)
    close_record(out, at, body_words)
    for slot in range(length - offered, length):
        v.views[index(p), index(slot)] |= OFFERED


@inline_rule
def cyclon_on_request(
    v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox
) -> None:
    """Give a random part of row p's view for the part received."""
    count = count_descriptors(v, words, at)
    if count < 0 or words[at + FROM] == v.handle[p]:
        return
    length = view_length(v, p)
    knows_others = knows_others_than(v, p, length, words[at + FROM])
    given = min(v.shuffle_length, length) if knows_others else 1
    body_words = 1 + given * (1 + v.view_profile.shape[2])
    reply = open_record(out, SAMPLE_REPLY, words[at + FROM], v.handle[p], body_words)
    if reply < 0:
        return
    out.words[reply + BODY] = given
    if knows_others:
        bring_random_last(v, p, length, given)
        write_slots(v, p, length - given, length, out.words, reply + BODY + 1)
    else:
        write_own(v, p, 0, out.words, reply + BODY + 1)
    close_record(out, reply, body_words)
    take_in(v, p, words, at, count, length - given if knows_others else length, 0)


@inline_rule
def knows_others_than(v: SamplerState, p: int, length: int, asker: int) -> Any:
    """Whether row p's view holds anybody whom ``asker`` does not know to be there."""
    return length > 1 or (length == 1 and handle_of(v.views[p, 0]) != asker)


@inline_rule
def cyclon_on_reply(
    v: SamplerState, p: int, _now: int, words: Words, at: int, _out: Outbox
) -> None:
    """Take what the partner gave for what row p offered."""
    count = count_descriptors(v, words, at)
    if count < 0:
        return
    last = v.views[p, 0]
    if view_length(v, p) == 1 and handle_of(last) == words[at + FROM]:
        v.views[p, 0] = EMPTY
    take_in(v, p, words, at, count, 0, OFFERED)
    if v.views[p, 0] == EMPTY:
        # Nothing was seated, so that the profile still stands there.
        v.views[p, 0] = last


@inline_rule
def grow_older(v: SamplerState, p: int, length: int) -> None:
    """Add a round to every age; what an exchange without reply still offered is row p's again."""
    for slot in range(length):
        v.views[index(p), index(slot)] = (v.views[index(p), index(slot)] & PLAIN) + ONE_ROUND


@inline_rule
def cyclon_rest(v: SamplerState, p: int, _now: int, _words: Words, _at: int, _out: Outbox) -> None:
    """Age row p's view in a round without an exchange."""
    grow_older(v, p, view_length(v, p))


@inline_rule
def find_oldest(v: SamplerState, p: int, length: int) -> Any:
    """The first slot of the greatest age."""
    greatest = 0
    for slot in range(length):
        age = age_of(v.views[index(p), index(slot)])
        greatest = max(greatest, age * MAX_VIEW_SIZE + MAX_VIEW_SIZE - 1 - slot)
    return MAX_VIEW_SIZE - 1 - greatest % MAX_VIEW_SIZE


@inline_rule
def bring_random_last(v: SamplerState, p: int, length: int, count: int) -> None:
    """Swap ``count`` random descriptors of row p's view to its end (Fisher-Yates)."""
    fraction = 0
    for k in range(count):
        if k % _PICKS_A_DRAW == 0:
            fraction = draw(v, p) >> (62 - _FRACTION_BITS)
        rest = length - k
        scaled = fraction * rest
        fraction = scaled & ((1 << _FRACTION_BITS) - 1)
        swap(v, p, scaled >> _FRACTION_BITS, rest - 1)


@inline_rule
def take_in(
    v: SamplerState, p: int, words: Words, at: int, count: int, slot: int, mark: int
) -> None:
    """Seat the descriptors received that row p lacks (Sec. 3.2, steps 6 and 7).

    Empty slots first, then those of what was sent: slots from ``slot`` on that bear ``mark``.
    """
    stride = 1 + v.view_profile.shape[2]
    length = view_length(v, p)
    sent_end = length
    merge = begin_merge(v)
    mark_known(v, merge, v.handle[p])
    for k in range(length):
        mark_known(v, merge, handle_of(v.views[index(p), index(k)]))
    begin = at + BODY + 1
    for received in range(begin, begin + count * stride, stride):
        handle = handle_of(words[index(received)])
        if is_known(v, p, length, merge, handle):
            continue
        if length < v.view_size:
            target = length
            length += 1
        else:
            while slot < sent_end and (v.views[index(p), index(slot)] & mark) != mark:
                slot += 1
            if slot == sent_end:
                return
            target = slot
            slot += 1
        mark_known(v, merge, handle)
        word = pack(min(age_of(words[index(received)]), MAX_AGE), handle)
        seat(v, p, target, word, words, received + 1)


@rule
def add_contact_to_cyclon(
    v: SamplerState, p: int, _now: int, handle: int, words: Words, at: int
) -> None:
    """Seat ``handle`` at age 0: in its own slot, else an empty one, else that of the oldest."""
    slot = find(v, p, handle)
    if slot < 0:
        length = view_length(v, p)
        slot = length if length < v.view_size else find_oldest(v, p, length)
    seat(v, p, slot, pack(0, handle), words, at)


@inline_rule
def cyclon_hint(state: SamplerState, kind: int, soon: int, later: int) -> None:
    """Bring near row ``later``, and whom row ``soon`` will choose unless its view changes."""
    if kind == SAMPLE_TIMER:
        prefetch_row(state, later)
    elif kind == SAMPLE_REQUEST:
        length = view_length(state, soon)
        if length > 0:
            prefetch_row(state, handle_of(state.views[soon, find_oldest(state, soon, length)]))


_member = Descriptor("a view's descriptor", MAX_AGE)
_sender = Descriptor("the sender's descriptor", MAX_AGE, of_sender=True)
RECORDS: Final = Table()
RECORDS.declare(
    Sort.MESSAGE,
    SAMPLE_REQUEST,
    "SAMPLE_REQUEST",
    "Peers of the random view, to trade.",
    (List("descriptors", (_member,), Limit("shuffle_length"), first=(_sender,)),),
)
RECORDS.declare(
    Sort.MESSAGE,
    SAMPLE_REPLY,
    "SAMPLE_REPLY",
    "Others for them.",
    (List("descriptors", (_member,), Limit("shuffle_length")),),
)

SAMPLER: Final = Sampler(
    records=RECORDS,
    rules=MappingProxyType(
        {
            SAMPLE_TIMER: cyclon_on_timer,
            SAMPLE_REQUEST: cyclon_on_request,
            SAMPLE_REPLY: cyclon_on_reply,
        }
    ),
    unreachable=forget_unreachable,
    rest=cyclon_rest,
    add_contact=add_contact_to_cyclon,
    broadcast=send_to_some,
    hint=cyclon_hint,
    # One in each of its rounds, of which several fall in one of ours where a process is held up;
    # three were counted at most while overlays formed on a busy machine.
    records_a_round=MappingProxyType({SAMPLE_REQUEST: 4}),
)
