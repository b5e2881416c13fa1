"""Topology management: which candidates become ring, small-world and friend links.

Vinifera, Sec. IV-B1, after T-Man: a peer exchanges its links with one of its neighbours, merges
them with its own and a fresh random sample, and keeps the best of each kind.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.prefetch import prefetch, row_words
from gossamer.protocol.kernel.records import BODY, FROM, LENGTH, Outbox, close_record, open_record
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
from gossamer.protocol.peer.state.links import (
    age_links,
    descriptor_words,
    handle_in,
    is_off_ring,
    note_asked,
    slot_of,
    write_link,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.state import MALFORMED, State
from gossamer.protocol.peer.topology.link_changes import (
    received_bring_news,
    sample_brings_news,
    set_bars_by_links,
)
from gossamer.protocol.peer.topology.selection import (
    begin_selection,
    offer_links,
    offer_received,
    offer_sample,
    write_selection,
)
from gossamer.protocol.peer.topology.utility import select_primary_attribute

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
def on_overlay_timer(s: State, p: int, now: int, _words: Any, _at: int, out: Outbox) -> None:
    """A round of topology management begins: links age, and an exchange is started."""
    s.round[p] += 1
    age_links(s, p)
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
def is_well_formed(s: State, p: int, words: Any, at: int) -> bool:
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
def merge_links(s: State, p: int, now: int, words: Any, at: int) -> None:
    """Merge links received with the own ones and a fresh random sample, and select."""
    if is_off_ring(s, p):
        return
    first = at + BODY + 1
    count = words[at + BODY]
    set_bars_by_links(s, p)
    if received_bring_news(s, p, words, first, count) or sample_brings_news(s, p, now):
        select_offered(s, p, now, words, first, count)


@rule
def select_offered(s: State, p: int, now: int, words: Any, first: int, count: int) -> None:
    """Select among the own links, the descriptors from ``first`` on, and the random view."""
    begin_selection(s, p)
    offer_links(s, p)
    offer_received(s, p, words, first, count)
    offer_sample(s, p, now)
    write_selection(s, p, words, first)


@rule
def select_anew(s: State, p: int, now: int, words: Any, first: int, count: int) -> None:
    """Select likewise at a place that ``p`` has just taken, where all of them are news."""
    set_bars_by_links(s, p)
    select_offered(s, p, now, words, first, count)


@rule
def on_tman_request(s: State, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """Answer with the own links as they were, then merge."""
    if is_well_formed(s, p, words, at):
        send_links(s, p, TMAN_REPLY, words[at + FROM], out)
        merge_links(s, p, now, words, at)


@rule
def on_tman_reply(s: State, p: int, now: int, words: Any, at: int, _out: Outbox) -> None:
    """The second half of an exchange: merge."""
    if is_well_formed(s, p, words, at):
        merge_links(s, p, now, words, at)
