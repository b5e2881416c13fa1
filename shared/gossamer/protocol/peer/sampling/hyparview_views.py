"""The active and the passive view of HyParView, which share the slots of `SamplerState.views`.

The active members come first and bear ACTIVE. Passive ones that were sent away or asked since the
peer's last round bear FIRST_MARK, and make room for others first.
"""

from __future__ import annotations

from typing import Any, Final

from gossamer.protocol.kernel.draws import below
from gossamer.protocol.kernel.records import BODY, FROM, LENGTH, Words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.fields import Descriptor, Limit, List, Sort, Table, Word
from gossamer.protocol.peer.sampling.descriptors import (
    ACTIVE,
    EMPTY,
    FIRST_MARK,
    PLAIN,
    SamplerState,
    age_of,
    draw,
    find,
    handle_of,
    move,
    pack,
    seat,
    swap,
    view_length,
    write_slots,
)
from gossamer.protocol.peer.settings.profile import MAX_AGE

# Of a view of 35 are 5 active (Sec. 5.1). Other sizes are divided alike.
_SLOTS_AN_ACTIVE = 7
# From this age on an active member is a contact that has not answered yet: 16 rounds, a guess.
JOINING = MAX_AGE - 16
# With so many passive members that were sent away or asked in this round a peer asks no others
# until its next one: a guess.
MOST_MARKED = 8


def active_slots(view_size: int) -> int:
    """The size of the active view: a seventh, rounded up, at least 2."""
    return min(view_size, max(2, -(-view_size // _SLOTS_AN_ACTIVE)))


@rule
def count_active(v: SamplerState, p: int) -> int:
    """How many active members row p has."""
    count = 0
    while count < v.active_slots and v.views[p, count] >= ACTIVE:
        count += 1
    return count


@rule
def remove(v: SamplerState, p: int, slot: int) -> None:
    """Drop the member in a slot; the last of its view takes its place."""
    active = count_active(v, p)
    last = view_length(v, p) - 1
    if slot < active:
        move(v, p, active - 1, slot)
        slot = active - 1
    move(v, p, last, slot)
    v.views[p, last] = EMPTY


@rule
def make_passive(v: SamplerState, p: int, slot: int) -> None:
    """Let an active member be a passive one."""
    last = count_active(v, p) - 1
    swap(v, p, slot, last)
    v.views[p, last] &= PLAIN


@rule
def yielding_slot(v: SamplerState, p: int, active: int, length: int) -> int:
    """The slot of the passive member that makes room: one with a mark, else a random one."""
    for slot in range(active, length):
        if v.views[p, slot] >= FIRST_MARK:
            return slot
    return int(active + below(draw(v, p), length - active))


@rule
def seat_active(v: SamplerState, p: int, age: int, handle: int, words: Words, at: int) -> None:
    """Seat ``handle``, with its profile at ``words[at:]``, in the active view, which has room."""
    active = count_active(v, p)
    slot = find(v, p, handle)
    if slot < 0:
        slot = view_length(v, p)
        if slot == v.view_size:
            slot = yielding_slot(v, p, active, slot)
    if slot != active:
        move(v, p, active, slot)
    seat(v, p, active, pack(age, handle) | ACTIVE, words, at)


@rule
def is_active(v: SamplerState, p: int, handle: int) -> bool:
    """Whether ``handle`` is an active member."""
    slot = find(v, p, handle)
    return bool(0 <= slot < count_active(v, p))


@rule
def keep_passive(v: SamplerState, p: int, words: Words, at: int) -> None:
    """Take the descriptor at ``words[at:]`` into the passive view, unless it is known as young."""
    handle = handle_of(words[at])
    word = pack(min(age_of(words[at]), MAX_AGE), handle)
    slot = find(v, p, handle)
    active = count_active(v, p)
    length = view_length(v, p)
    if handle == v.handle[p] or 0 <= slot < active:
        return
    if slot >= 0:
        if age_of(word) < age_of(v.views[p, slot]):
            seat(v, p, slot, word, words, at + 1)
        return
    slot = length
    if length - active >= v.view_size - v.active_slots:
        if length == active:
            return
        slot = yielding_slot(v, p, active, length)
    seat(v, p, slot, word, words, at + 1)


@rule
def random_neighbour(v: SamplerState, p: int, apart: int) -> int:
    """The handle of a random active member other than ``apart``, or -1."""
    active = count_active(v, p)
    others = active - is_active(v, p, apart)
    if others == 0:
        return -1
    wanted = below(draw(v, p), others)
    for slot in range(active):
        handle = handle_of(v.views[p, slot])
        if handle != apart:
            if wanted == 0:
                return int(handle)
            wanted -= 1
    return -1


@rule
def write_passive(v: SamplerState, p: int, most: int, words: Words, at: int) -> int:
    """Write random passive members to ``words[at:]`` and mark them; returns how many."""
    active = count_active(v, p)
    passive = view_length(v, p) - active
    count = min(most, passive)
    if count == 0:
        return 0
    first = below(draw(v, p), passive)
    for k in range(count):
        slot = active + (first + k * (passive // count)) % passive
        write_slots(v, p, slot, slot + 1, words, at + k * (1 + v.profile.shape[1]))
        v.views[p, slot] |= FIRST_MARK
    return int(count)


# The messages of HyParView.


# Steps of the walk that a newcomer's descriptor takes until it is a neighbour, and how many are
# left where it becomes a passive member (Sec. 5.1). That shuffles walk as far is a guess.
ARWL, PRWL = 6, 3
LOW, HIGH = 0, 1
REFUSED, ACCEPTED = 0, 1

_sender = Descriptor("the sender's descriptor", 0, of_sender=True)
_member = Descriptor("a view's descriptor", MAX_AGE)
_newcomer = Descriptor("the newcomer's descriptor", 0)
_origin = Descriptor("the first sender's descriptor", 0)
_shuffled = Limit("shuffle_length")

RECORDS: Final = Table()


def _message(number: int, name: str, meaning: str, *fields: Any) -> int:
    return RECORDS.declare(Sort.MESSAGE, number, name, meaning, fields)


JOIN_THROUGH: Final = _message(34, "JOIN_THROUGH", "A newcomer to its contact.", _sender)
FORWARD_JOIN: Final = _message(
    35, "FORWARD_JOIN", "A newcomer on a walk.", Word("steps", 0, ARWL, "that are left"), _newcomer
)
NEIGHBOUR: Final = _message(
    36,
    "NEIGHBOUR",
    "Asks to be a neighbour.",
    Word("priority", LOW, HIGH, "1 if it is not to be refused"),
    _sender,
)
NEIGHBOUR_REPLY: Final = _message(
    37, "NEIGHBOUR_REPLY", "Whether it is one.", Word("accepted", REFUSED, ACCEPTED), _sender
)
DISCONNECT: Final = _message(38, "DISCONNECT", "The sender is a neighbour no longer.")
SHUFFLE: Final = _message(
    39,
    "SHUFFLE",
    "Members of both views, on a walk.",
    Word("steps", 0, ARWL, "that are left"),
    List("descriptors", (_member,), _shuffled, first=(_origin,)),
)
SHUFFLE_REPLY: Final = _message(
    40, "SHUFFLE_REPLY", "Passive members for them.", List("descriptors", (_member,), _shuffled)
)
KEEP_ALIVE: Final = _message(41, "KEEP_ALIVE", "The sender is a neighbour.", _sender)


@inline_rule
def is_from_itself(v: SamplerState, words: Words, at: int, before: int) -> Any:
    """Whether a record is ``before`` words and the descriptor of its sender."""
    if words[at + LENGTH] != BODY + before + 1 + v.profile.shape[1]:
        return False
    return handle_of(words[at + BODY + before]) == words[at + FROM]
