"""HyParView peer sampling (Leitao, Pereira, Rodrigues, DSN 2007).

A peer keeps a small active view of neighbours that know it as such, too, by which broadcasts
travel, and a large passive view from which a failed neighbour is replaced at once. The active
members come first in `SamplerState.views` and bear ACTIVE; the passive ones follow. What is above
samples from both.

Departs from the paper:

- The paper has a connection to each active neighbour, which breaks when that one fails. Simulated
  peers have none, and a node's may break for other reasons: a peer sends each neighbour a
  KEEP_ALIVE once a round, and at once when a connection to it broke. It comes back from one that
  failed. Neighbours that were silent for SILENT rounds are dropped. Where a KEEP_ALIVE comes from a
  peer that is no neighbour, that one is made one or sent a DISCONNECT: a lost message leaves no
  view one-sided.
- A peer that refuses a neighbour sends a KEEP_ALIVE to its own: after mass failures its view may
  be full of failed ones, which the paper's connections would show.
- Descriptors have ages, as of other samplers, for topology management takes them for news of life.
- A peer that lacks neighbours asks passive members once a round and at every failure or refusal,
  but no more than MOST_MARKED that refuse, in a round.
- The newcomer's contact is an active neighbour of it from the beginning, asked to JOIN in every
  round until it answers. To a peer with a full active view a contact is a passive member.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from gossamer.protocol.kernel.draws import below
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    TO,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.descriptors import (
    ACTIVE,
    FIRST_MARK,
    Sampler,
    SamplerState,
    age_of,
    count_descriptors,
    draw,
    find,
    handle_of,
    pack,
    prefetch_row,
    seat,
    send_copy,
    view_length,
    write_own,
    write_slots,
)
from gossamer.protocol.peer.sampling.hyparview_views import (
    ACCEPTED,
    ARWL,
    DISCONNECT,
    FORWARD_JOIN,
    HIGH,
    JOIN_THROUGH,
    JOINING,
    KEEP_ALIVE,
    LOW,
    MOST_MARKED,
    NEIGHBOUR,
    NEIGHBOUR_REPLY,
    PRWL,
    RECORDS,
    REFUSED,
    SHUFFLE,
    SHUFFLE_REPLY,
    active_slots,
    count_active,
    is_active,
    is_from_itself,
    keep_passive,
    make_passive,
    random_neighbour,
    remove,
    seat_active,
    write_passive,
    yielding_slot,
)
from gossamer.protocol.peer.settings.profile import MAX_AGE

# Of the 8 descriptors of a shuffle 1 is the sender's, 3 active and 4 passive ones (Sec. 5.1). Other
# numbers are divided alike.
_ACTIVE_SENT, _SENT = 3, 7
# Neighbours without a word for so many rounds have failed: a guess, where messages get lost.
SILENT = 10


@rule
def accept(v: SamplerState, p: int, words: Words, at: int, out: Outbox) -> None:
    """Let the peer whose descriptor is at ``words[at:]`` be an active member, fresh.

    A random other one makes room if there is none, and is sent a DISCONNECT (Sec. 4.2).
    """
    handle = handle_of(words[at])
    slot = find(v, p, handle)
    active = count_active(v, p)
    if 0 <= slot < active:
        seat(v, p, slot, pack(0, handle) | ACTIVE, words, at + 1)
        return
    if active == v.active_slots:
        dropped = below(draw(v, p), active)
        send_disconnect(v, p, handle_of(v.views[p, dropped]), out)
        make_passive(v, p, dropped)
    seat_active(v, p, 0, handle, words, at + 1)


@rule
def send_own(v: SamplerState, p: int, kind: int, to: int, said: int, out: Outbox) -> None:
    """Send the word ``said``, unless it is negative, and row p's own descriptor."""
    before = 1 if said >= 0 else 0
    body_words = before + 1 + v.profile.shape[1]
    at = open_record(out, kind, to, v.handle[p], body_words)
    if at < 0:
        return
    if before == 1:
        out.words[at + BODY] = said
    write_own(v, p, 0, out.words, at + BODY + before)
    close_record(out, at, body_words)


@rule
def send_disconnect(v: SamplerState, p: int, to: int, out: Outbox) -> None:
    """Tell a peer that it is a neighbour no longer."""
    at = open_record(out, DISCONNECT, to, v.handle[p], 0)
    if at >= 0:
        close_record(out, at, 0)


@rule
def ask(v: SamplerState, p: int, out: Outbox) -> None:
    """Ask a random passive member to be a neighbour, if one is missing (Sec. 4.3)."""
    active = count_active(v, p)
    length = view_length(v, p)
    marked = 0
    for slot in range(active, length):
        marked += v.views[p, slot] >= FIRST_MARK
    rest = length - active - marked
    if active == v.active_slots or rest == 0 or marked >= MOST_MARKED:
        return
    wanted = below(draw(v, p), rest)
    for slot in range(active, length):
        if v.views[p, slot] < FIRST_MARK:
            if wanted == 0:
                priority = HIGH if active == 0 else LOW
                send_own(v, p, NEIGHBOUR, handle_of(v.views[p, slot]), priority, out)
                v.views[p, slot] |= FIRST_MARK
                return
            wanted -= 1


@rule
def hyparview_on_timer(
    v: SamplerState, p: int, _now: int, _words: Words, _at: int, out: Outbox
) -> None:
    """Drop silent neighbours, greet the others, look for those that are missing, and shuffle."""
    slot = 0
    while slot < view_length(v, p):
        word = v.views[p, slot]
        age = age_of(word) + 1
        is_silent = SILENT < age < JOINING or age > MAX_AGE
        if word >= ACTIVE and is_silent:
            remove(v, p, slot)
            continue
        v.views[p, slot] = pack(min(age, MAX_AGE), handle_of(word)) | (word & ACTIVE)
        slot += 1
    greet(v, p, out)
    ask(v, p, out)
    begin_shuffle(v, p, out)


@rule
def greet(v: SamplerState, p: int, out: Outbox) -> None:
    """Send every neighbour a KEEP_ALIVE, and ask contacts that have not answered to join."""
    for slot in range(count_active(v, p)):
        word = v.views[p, slot]
        kind = JOIN_THROUGH if age_of(word) >= JOINING else KEEP_ALIVE
        send_own(v, p, kind, handle_of(word), -1, out)


@rule
def begin_shuffle(v: SamplerState, p: int, out: Outbox) -> None:
    """Send some members of both views on a walk (Sec. 4.4)."""
    to = random_neighbour(v, p, v.handle[p])
    if to < 0:
        return
    active = count_active(v, p)
    stride = 1 + v.profile.shape[1]
    most = v.shuffle_length - 1
    from_active = most * _ACTIVE_SENT // _SENT
    body_words = 2 + (1 + most) * stride
    at = open_record(out, SHUFFLE, to, v.handle[p], body_words)
    if at < 0:
        return
    end = at + BODY + 2
    write_own(v, p, 0, out.words, end)
    count = 1
    first = below(draw(v, p), active)
    for k in range(active):
        slot = (first + k) % active
        word = v.views[p, slot]
        if count <= from_active and handle_of(word) != to and age_of(word) < JOINING:
            write_slots(v, p, slot, slot + 1, out.words, end + count * stride)
            count += 1
    count += write_passive(v, p, most - from_active, out.words, end + count * stride)
    out.words[at + BODY] = ARWL - 1
    out.words[at + BODY + 1] = count
    close_record(out, at, 2 + count * stride)


@rule
def on_join_through(v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Let a newcomer be a neighbour, and send it on walks by all others (Sec. 4.2)."""
    newcomer = words[at + FROM]
    if not is_from_itself(v, words, at, 0) or newcomer == v.handle[p]:
        return
    is_known = is_active(v, p, newcomer)
    accept(v, p, words, at + BODY, out)
    send_own(v, p, NEIGHBOUR_REPLY, newcomer, ACCEPTED, out)
    if is_known:
        return
    size = 1 + v.profile.shape[1]
    for slot in range(count_active(v, p)):
        to = handle_of(v.views[p, slot])
        if to == newcomer:
            continue
        walk = open_record(out, FORWARD_JOIN, to, v.handle[p], 1 + size)
        if walk < 0:
            return
        out.words[walk + BODY] = ARWL
        out.words[walk + BODY + 1] = pack(0, newcomer)
        for i in range(1, size):
            out.words[walk + BODY + 1 + i] = words[at + BODY + i]
        close_record(out, walk, 1 + size)


@rule
def on_forward_join(v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Send a newcomer on, or let it be a neighbour where its walk ends (Sec. 4.2)."""
    if words[at + LENGTH] != BODY + 2 + v.profile.shape[1]:
        return
    steps = words[at + BODY]
    newcomer = handle_of(words[at + BODY + 1])
    if newcomer == v.handle[p] or not 0 <= steps <= ARWL or is_active(v, p, newcomer):
        return
    if steps == PRWL:
        keep_passive(v, p, words, at + BODY + 1)
    to = -1
    if steps > 0 and count_active(v, p) > 1:
        to = random_neighbour(v, p, words[at + FROM])
    if to >= 0:
        words[at + BODY] = steps - 1
        send_copy(v, p, to, words, at, out)
    else:
        accept(v, p, words, at + BODY + 1, out)
        send_own(v, p, NEIGHBOUR, newcomer, HIGH, out)


@rule
def on_neighbour(v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Accept a neighbour if there is room or its need is great, else refuse it (Sec. 4.3).

    Whoever refuses tries its own neighbours: where many fail at once its view may be full of them.
    """
    asker = words[at + FROM]
    if not is_from_itself(v, words, at, 1) or asker == v.handle[p]:
        return
    has_room = count_active(v, p) < v.active_slots
    answer = REFUSED
    if words[at + BODY] == HIGH or has_room or is_active(v, p, asker):
        accept(v, p, words, at + BODY + 1, out)
        answer = ACCEPTED
    else:
        greet(v, p, out)
    send_own(v, p, NEIGHBOUR_REPLY, asker, answer, out)


@rule
def on_neighbour_reply(
    v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox
) -> None:
    """Take in who has accepted, and ask another one while neighbours are missing."""
    if not is_from_itself(v, words, at, 1) or words[at + FROM] == v.handle[p]:
        return
    if words[at + BODY] == ACCEPTED:
        meet(v, p, words, at + BODY + 1, out)
    ask(v, p, out)


@rule
def meet(v: SamplerState, p: int, words: Words, at: int, out: Outbox) -> None:
    """Take in a peer that has row p for its neighbour, or say that it is none."""
    other = handle_of(words[at])
    if is_active(v, p, other) or count_active(v, p) < v.active_slots:
        accept(v, p, words, at, out)
    else:
        send_disconnect(v, p, other, out)


@rule
def on_keep_alive(v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Note that a neighbour lives, and what it says of itself."""
    if is_from_itself(v, words, at, 0) and words[at + FROM] != v.handle[p]:
        meet(v, p, words, at + BODY, out)


@rule
def on_disconnect(v: SamplerState, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
    """Let a neighbour be a passive member (Sec. 4.2)."""
    slot = find(v, p, words[at + FROM])
    if 0 <= slot < count_active(v, p):
        make_passive(v, p, slot)


@rule
def on_shuffle(v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Send a shuffle on, or trade with its first sender where its walk ends (Sec. 4.4)."""
    stride = 1 + v.profile.shape[1]
    body_words = words[at + LENGTH] - BODY
    if body_words < 2 + stride:
        return
    steps, count = words[at + BODY], words[at + BODY + 1]
    origin = handle_of(words[at + BODY + 2])
    if count < 1 or count > v.shuffle_length or body_words != 2 + count * stride:
        return
    if origin == v.handle[p] or not 0 <= steps <= ARWL:
        return
    if steps > 0 and count_active(v, p) > 1:
        to = random_neighbour(v, p, words[at + FROM])
        if to >= 0 and to != origin:
            words[at + BODY] = steps - 1
            send_copy(v, p, to, words, at, out)
            return
    reply = open_record(out, SHUFFLE_REPLY, origin, v.handle[p], 1 + count * stride)
    if reply >= 0:
        given = write_passive(v, p, count, out.words, reply + BODY + 1)
        out.words[reply + BODY] = given
        close_record(out, reply, 1 + given * stride)
    for k in range(count):
        keep_passive(v, p, words, at + BODY + 2 + k * stride)


@rule
def on_shuffle_reply(
    v: SamplerState, p: int, _now: int, words: Words, at: int, _out: Outbox
) -> None:
    """Take what was given into the passive view, first in place of what was sent (Sec. 4.4)."""
    count = count_descriptors(v, words, at)
    for k in range(count):
        keep_passive(v, p, words, at + BODY + 1 + k * (1 + v.profile.shape[1]))


@rule
def replace_unreachable(
    v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox
) -> None:
    """Drop a peer that failed, and at once ask a passive member in its place (Sec. 4.3)."""
    slot = find(v, p, words[at + TO])
    if slot >= 0:
        remove(v, p, slot)
        ask(v, p, out)


@rule
def on_link_broke(v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Try whether a neighbour lives to which a connection broke."""
    if words[at + LENGTH] == BODY + 1 and is_active(v, p, words[at + BODY]):
        send_own(v, p, KEEP_ALIVE, words[at + BODY], -1, out)


@rule
def add_contact_to_hyparview(
    v: SamplerState, p: int, _now: int, handle: int, words: Words, at: int
) -> None:
    """Seat a contact in the active view, to be joined through, or else in the passive one."""
    active = count_active(v, p)
    slot = find(v, p, handle)
    if 0 <= slot < active:
        return
    if active < v.active_slots:
        seat_active(v, p, JOINING, handle, words, at)
        return
    if slot < 0:
        length = view_length(v, p)
        slot = length
        if length - active >= v.view_size - v.active_slots:
            slot = yielding_slot(v, p, active, length) if length > active else -1
    if slot >= 0:
        seat(v, p, slot, pack(0, handle), words, at)


@rule
def flood(v: SamplerState, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Send the record at ``words[at:]`` to all active members but its sender (Sec. 4.1)."""
    for slot in range(count_active(v, p)):
        to = handle_of(v.views[p, slot])
        if to != words[at + FROM]:
            send_copy(v, p, to, words, at, out)


@inline_rule
def hyparview_hint(state: SamplerState, kind: int, _soon: int, later: int) -> None:
    """Bring near row ``later``."""
    if kind == SAMPLE_TIMER:
        prefetch_row(state, later)


SAMPLER: Final = Sampler(
    records=RECORDS,
    rules=MappingProxyType(
        {
            SAMPLE_TIMER: hyparview_on_timer,
            KEEP_ALIVE: on_keep_alive,
            SHUFFLE: on_shuffle,
            SHUFFLE_REPLY: on_shuffle_reply,
            NEIGHBOUR: on_neighbour,
            NEIGHBOUR_REPLY: on_neighbour_reply,
            DISCONNECT: on_disconnect,
            JOIN_THROUGH: on_join_through,
            FORWARD_JOIN: on_forward_join,
        }
    ),
    unreachable=replace_unreachable,
    rest=hyparview_on_timer,
    link_broke=on_link_broke,
    add_contact=add_contact_to_hyparview,
    broadcast=flood,
    hint=hyparview_hint,
    active_slots=active_slots,
    # Walks of many peers come through one neighbour, and whoever refuses many sends as many
    # KEEP_ALIVE; of the others one comes in a round.
    records_a_round=MappingProxyType(
        {
            **dict.fromkeys((FORWARD_JOIN, SHUFFLE, KEEP_ALIVE), 24),
            **dict.fromkeys((JOIN_THROUGH, SHUFFLE_REPLY, DISCONNECT), 8),
            **dict.fromkeys((NEIGHBOUR, NEIGHBOUR_REPLY), 8),
        }
    ),
)
