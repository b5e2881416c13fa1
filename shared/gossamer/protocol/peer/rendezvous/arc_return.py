"""Events given to the predecessor that were taken in its place, and links that broke.

Goes beyond the paper. A peer answers for the arc that begins at the predecessor it knows of, and
for a moment that may be too much: others took the predecessor for dead, or old news of it came
after newer ones, so that it seemed to be where it was before it took over a part of the arc. What
is published in that moment is held and disseminated here, to those who asked here; the predecessor
and those who asked there would never get it. So whenever the own arc becomes shorter, the events of
the last rounds in the part that is gone go to the predecessor. What it has seen it drops.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, LENGTH, Outbox
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import EVENT
from gossamer.protocol.peer.rendezvous.event_log import first_since, send_held
from gossamer.protocol.peer.rendezvous.refreshing import install_anew
from gossamer.protocol.peer.rendezvous.routing import handle_of_slot, next_hop, rendezvous_value
from gossamer.protocol.peer.rendezvous.routing_table import remove_source
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.state import MALFORMED, NOT_GIVEN_BACK, State

# Events given back at once, at most: what a second or two bring.
GIVEN_BACK = 128


@rule
def predecessor_handle(s: State, p: int) -> int:
    """Who ``p`` takes for its predecessor, or -1."""
    if s.predecessor[p] < 0 or s.params.ring_links == 0:
        return -1
    return handle_of_slot(s, p, s.predecessor[p])


@inline_rule
def arc_begins(s: State, p: int) -> Any:
    """Where the arc begins that ``p`` says it answers for; off the ring it says nothing."""
    if s.params.ring_links == 0:
        return s.sampler.profile[p, IDENTIFIER]
    return s.sampler.profile[p, ARC_START]


@rule
def give_back_what_is_due(s: State, p: int, predecessor: int, arc_start: int, out: Outbox) -> None:
    """Give events back after a step, before which predecessor and start of the arc were these."""
    found = predecessor_handle(s, p)
    if found < 0:
        return
    begins = arc_begins(s, p)
    if found != predecessor:
        give_back_everything(s, p, out)
    elif begins != arc_start:
        me = s.sampler.profile[p, IDENTIFIER]
        if clockwise(begins, me) < clockwise(arc_start, me):
            give_back(s, p, arc_start, out)


@rule
def give_back_everything(s: State, p: int, out: Outbox) -> None:
    """Give the predecessor whatever of the last rounds it answers for."""
    give_back(s, p, (arc_begins(s, p) + 1) & RING_MASK, out)


@rule
def give_back(s: State, p: int, after: int, out: Outbox) -> None:
    """Give the predecessor the events of the last rounds that it answers for.

    Only those with values past ``after``, up to the predecessor itself, and only the newest of
    them if there are many; of the older ones it is counted that they were not given.
    """
    predecessor = handle_of_slot(s, p, s.predecessor[p])
    arc_start = arc_begins(s, p)
    size = s.held_copies.shape[1]
    attributes = s.params.attributes
    oldest = s.round[p] - s.params.replay_rounds
    number = first_since(s, p, oldest) if size > 0 else 0
    first_given = max(number, s.held_next[p] - GIVEN_BACK)
    while number < s.held_next[p]:
        place = number % size
        attribute = s.held_copies[p, place] % attributes
        value = rendezvous_value(s, attribute, s.held_values[p, place, attribute])
        if clockwise(value, arc_start) < clockwise(after, arc_start):
            hop = next_hop(s, p, value)
            if hop >= 0 and handle_of_slot(s, p, hop >> 1) == predecessor:
                if number >= first_given:
                    send_held(s, p, EVENT, place, predecessor, out)
                else:
                    s.counters[p, NOT_GIVEN_BACK] += 1
        number += 1


@rule
def on_link_broke(s: State, p: int, _now: int, words: Any, at: int, out: Outbox) -> None:
    """What was on its way to a peer, which may well live, may be lost.

    What it asked for is forgotten until it asks again, which it does within a round, as we do: that
    is news then, and it is given what it may have missed (`offer_events`). What was given back to
    it may be lost as well.
    """
    if words[at + LENGTH] != BODY + 1:
        s.counters[p, MALFORMED] += 1
        return
    handle = words[at + BODY]
    remove_source(s, p, handle)
    install_anew(s, p)
    if predecessor_handle(s, p) == handle and handle >= 0:
        give_back_everything(s, p, out)
