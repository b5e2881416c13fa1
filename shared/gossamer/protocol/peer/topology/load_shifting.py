"""Load shifting: identifiers move towards loaded successors (Vinifera, Sec. IV-B5).

A peer's load is the events it takes as rendezvous node without wanting them, fading over a window
of rounds (the paper counts them and does not say for how long). It travels in the peer's profile.
When the successor's load exceeds the own by more than beta, the peer moves its identifier so far
into the successor's arc that both would carry the same, taking load to be even over the arc, and
both take the average as their load. Links stay; neighbours learn of the move from the next
message.
"""

from __future__ import annotations

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import LOAD_SHIFTED
from gossamer.protocol.peer.rendezvous.delivery import hand_over
from gossamer.protocol.peer.settings.config import LOAD_WINDOW
from gossamer.protocol.peer.settings.profile import IDENTIFIER, LOAD, MAX_LOAD
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import (
    AGE_SHIFT,
    descriptor_words,
    handle_in,
    refresh_link,
    settle_ring,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.resting import stir
from gossamer.protocol.peer.state.state import MALFORMED, SHIFTED, State


@rule
def shifted_distance(gap: int, own_load: int, successor_load: int) -> int:
    """How far to move into an arc of length ``gap`` so that both loads become the average.

    Equals gap * (successor - own) / (2 * successor), exactly rounded down, at most half the gap.
    Loads lie in [0, 2^31), so that no product overflows.
    """
    whole = 2 * successor_load
    difference = successor_load - own_load
    return gap // whole * difference + gap % whole * difference // whole


@rule
def shift_load(s: State, p: int, out: Outbox) -> None:
    """Let load fade by a round, and move the identifier if the successor carries too much."""
    if s.params.ring_links == 0:
        return
    s.load[p] -= s.load[p] // LOAD_WINDOW
    s.sampler.profile[p, LOAD] = s.load[p]
    k = s.successor[p]
    if s.params.load_shifting == 0 or k < 0 or s.links[p, k] >> AGE_SHIFT > 1:
        return
    successor_load = s.link_profile[p, k, LOAD]
    if not 0 <= successor_load <= MAX_LOAD:
        return
    if successor_load - s.load[p] <= s.params.shift_threshold:
        return
    me = s.sampler.profile[p, IDENTIFIER]
    gap = clockwise(me, s.link_profile[p, k, IDENTIFIER])
    distance = shifted_distance(gap, s.load[p], successor_load)
    if distance < 1 or distance >= gap:
        return
    average = (s.load[p] + successor_load) // 2
    s.sampler.profile[p, IDENTIFIER] = (me + distance) & RING_MASK
    s.load[p] = average
    s.sampler.profile[p, LOAD] = average
    s.link_profile[p, k, LOAD] = average
    s.counters[p, SHIFTED] += 1
    stir(s, p)
    settle_ring(s, p)
    size = descriptor_words(s)
    to = handle_in(s.links[p, k])
    at = open_record(out, LOAD_SHIFTED, to, s.sampler.handle[p], size)
    if at >= 0:
        write_own_descriptor(s, p, out.words, at + BODY)
        close_record(out, at, size)


@rule
def on_load_shifted(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """The predecessor has taken over part of our arc: our load is its new one, the average.

    It gets what we know of subscribers there (the paper does not say how it learns of them).
    """
    if words[at + LENGTH] != BODY + descriptor_words(s) or s.params.ring_links == 0:
        s.counters[p, MALFORMED] += 1
        return
    k = s.predecessor[p]
    if k < 0 or handle_in(s.links[p, k]) != words[at + FROM]:
        return
    hand_over(s, p, words[at + FROM], words[at + BODY + 1 + IDENTIFIER], out)
    refresh_link(s, p, words, at + BODY)
    average = words[at + BODY + 1 + LOAD]
    if 0 <= average < s.load[p]:
        s.load[p] = average
        s.sampler.profile[p, LOAD] = average
