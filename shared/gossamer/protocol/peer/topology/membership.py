"""Joining through one known peer, dealing with peers that are gone, and mending the ring.

The paper lets gossip seat a newcomer (Sec. IV-B1) and drive failed entries out by age (Sec. IV-C).
With `join_lookup` a newcomer also looks its own identifier up and takes over the links of its
successor-to-be; this goes beyond the paper, and makes it a full member within one exchange.
"""

from __future__ import annotations

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
from gossamer.protocol.kernel.rows.row_search import copy_words
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    DESCRIPTOR,
    FIND_PLACE,
    HOLDS_ENTRIES,
    PLACE_FOUND,
    PLACE_PROGRESS,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.rendezvous.delivery import hand_over
from gossamer.protocol.peer.rendezvous.installation import mend_view
from gossamer.protocol.peer.sampling.sampler import add_contact, sample_unreachable
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.state.links import (
    descriptor_words,
    drop_link,
    handle_in,
    is_off_ring,
    note_asked,
    refresh_link,
    slot_of,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.lookup import (
    ANSWERS,
    RESTS,
    handle_of_slot,
    is_stray,
    next_hop_on,
    progress_on,
)
from gossamer.protocol.peer.state.resting import stir
from gossamer.protocol.peer.state.state import DISTURBED_IN, MALFORMED, REPAIRED_IN, REPAIRS, State
from gossamer.protocol.peer.topology.tman import is_well_formed, merge_links, send_links


@rule
def send_find_place(s: State, to: int, words: Words, body: int, own: int, out: Outbox) -> None:
    """Send a lookup for a newcomer's place one hop further."""
    size = DESCRIPTOR + descriptor_words(s)
    at = open_record(out, FIND_PLACE, to, own, size)
    if at < 0:
        return
    copy_words(words, body, size, out.words, at + BODY)
    close_record(out, at, size)


@rule
def on_join(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Join through the peer whose descriptor the command carries."""
    size = descriptor_words(s)
    if words[at + LENGTH] != BODY + size:
        s.counters[p, MALFORMED] += 1
        return
    stir(s, p)
    contact = handle_in(words[at + BODY])
    add_contact(s.sampler, p, now, contact, words, at + BODY + 1)
    refresh_link(s, p, words, at + BODY)
    if s.params.join_lookup == 1 and not is_off_ring(s, p):
        ask_for_place(s, p, contact, out)


@rule
def ask_for_place(s: State, p: int, to: int, out: Outbox) -> None:
    """Begin a lookup for the place that ``p`` is to have on the ring."""
    size = DESCRIPTOR + descriptor_words(s)
    at = open_record(out, FIND_PLACE, to, s.sampler.handle[p], size)
    if at >= 0:
        out.words[at + BODY + PLACE_PROGRESS] = 0
        out.words[at + BODY + HOLDS_ENTRIES] = int(s.table_count[p] > 0)
        write_own_descriptor(s, p, out.words, at + BODY + DESCRIPTOR)
        close_record(out, at, size)


@rule
def on_find_place(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Pass a newcomer's lookup on, or, as its successor-to-be, give it our links and seat it.

    Who is known to stand there already is one that calls, now and then, the peers it has heard of,
    so that parts of an overlay find each other again. It is given entries only if it has none:
    it would send events to peers that have them from their own parents.
    """
    size = DESCRIPTOR + descriptor_words(s)
    if words[at + LENGTH] != BODY + size:
        s.counters[p, MALFORMED] += 1
        return
    body = at + BODY
    newcomer = handle_in(words[body + DESCRIPTOR])
    if newcomer == s.sampler.handle[p]:
        return
    place, word = words[body + DESCRIPTOR + 1 + IDENTIFIER], words[body + PLACE_PROGRESS]
    strayed = is_stray(s, p, place, word)
    hop = next_hop_on(s, p, place, word, strayed)
    is_new = hop == ANSWERS or words[body + HOLDS_ENTRIES] == 0
    if hop != ANSWERS:
        mend_view(s, p, words[at + FROM], strayed, out)
        if hop == RESTS:
            return
        to = handle_of_slot(s, p, hop >> 1)
        if to != newcomer:
            words[body + PLACE_PROGRESS] = progress_on(s, p, hop, place, word, strayed)
            send_find_place(s, to, words, body, s.sampler.handle[p], out)
            return
    send_links(s, p, PLACE_FOUND, newcomer, out)
    if is_new:
        hand_over(s, p, newcomer, words[body + DESCRIPTOR + 1 + IDENTIFIER], out)
    refresh_link(s, p, words, body + DESCRIPTOR)


@rule
def on_place_found(s: State, p: int, now: int, words: Words, at: int, _out: Outbox) -> None:
    """Take over the links of the successor-to-be as candidates."""
    if is_well_formed(s, p, words, at):
        merge_links(s, p, now, words, at)


@rule
def on_failure(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Forget the addressee of a record that came back, in all layers but the routing table."""
    sample_unreachable(s.sampler, p, now, words, at, out)
    drop_link(s, p, words[at + TO])


@rule
def find_place_elsewhere(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Route a newcomer's lookup around the peer that could not be reached."""
    newcomer = handle_in(words[at + BODY + DESCRIPTOR])
    if s.params.reroute == 1 and newcomer != s.sampler.handle[p] and newcomer != words[at + TO]:
        words[at + BODY + PLACE_PROGRESS] = 0
        on_find_place(s, p, now, words, at, out)


# Repairing the ring in the round in which neighbours fail. Goes beyond the paper.
#
# Failures come together: a network, a site or a crowd leaves at once. Who finds one of its
# neighbours on the ring gone therefore trades links with the nearest on both sides at once, instead
# of with one of them a round. That shows whether they live, and tells of those that do further
# along. Who has a new predecessor makes sure of it in the same way; a new successor is greeted in
# any case (`stabilise`). So a gap closes within a round, if anybody known lies past it; fingers do.


@rule
def is_on_ring(s: State, p: int, handle: int) -> bool:
    """Whether ``handle`` is one of the neighbours of ``p`` on the ring."""
    k = slot_of(s, p, handle)
    return k >= 0 and (k < 2 * s.params.ring_links or k == s.successor[p] or k == s.predecessor[p])


@rule
def repair_ring(
    s: State, p: int, has_failed: bool, successor: int, predecessor: int, out: Outbox
) -> None:
    """Make sure of the ring after a step, before which these were the nearest on it.

    Args:
        s: `State`; row ``p`` of it may change.
        p: the row.
        has_failed: whether the step showed that a neighbour on the ring has failed.
        successor, predecessor: handles of the nearest neighbours before the step, -1 for none.
        out: where questions are appended.
    """
    if s.alarm.shape[1] == 0:
        return
    after = handle_at(s, p, s.successor[p])
    before = handle_at(s, p, s.predecessor[p])
    if has_failed or after != successor or before != predecessor:
        s.alarm[p, DISTURBED_IN] = s.round[p]
        if has_failed and after >= 0:
            trade_at_once(s, p, s.successor[p], out)
        if (has_failed or before != predecessor) and before >= 0 and before != after:
            trade_at_once(s, p, s.predecessor[p], out)


@rule
def handle_at(s: State, p: int, k: int) -> int:
    """The handle in link slot ``k``, -1 for no slot."""
    if k < 0:
        return -1
    return handle_in(s.links[p, k])


@rule
def trade_at_once(s: State, p: int, k: int, out: Outbox) -> None:
    """Trade links with the neighbour in slot ``k``, if there were not too many repairs yet."""
    if s.alarm[p, REPAIRED_IN] != s.round[p]:
        s.alarm[p, REPAIRED_IN] = s.round[p]
        s.alarm[p, REPAIRS] = 0
    if s.alarm[p, REPAIRS] < s.params.ring_repairs:
        s.alarm[p, REPAIRS] += 1
        send_links(s, p, TMAN_REQUEST, handle_in(s.links[p, k]), out)
        note_asked(s, p, k)
