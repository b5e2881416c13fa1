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
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    EVENT_ATTRIBUTE,
    EVENT_HOPS,
    EVENT_ID,
    EVENT_ORIGIN,
    EVENT_VALUES,
    FINAL,
    GREEDY,
)
from gossamer.protocol.peer.rendezvous.delivery import send_event
from gossamer.protocol.peer.rendezvous.event_log import first_since, send_held
from gossamer.protocol.peer.rendezvous.hop_acknowledgements import NO_OTHER_WAY, await_next_hop
from gossamer.protocol.peer.rendezvous.publication import NOBODY
from gossamer.protocol.peer.rendezvous.refreshing import install_anew
from gossamer.protocol.peer.rendezvous.replay import HANDED_ON, TAKEN_AS_OURS, count_recent
from gossamer.protocol.peer.rendezvous.routing import handle_of_slot, next_hop, rendezvous_value
from gossamer.protocol.peer.rendezvous.routing_table import remove_source
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.state import MALFORMED, NOT_GIVEN_BACK, TO_HAND_ON, State

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
    if s.params.hand_on == 1 and (found != predecessor or begins != arc_start):
        hand_on(s, p, out)
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
    them if there are many; of the older ones it is counted that they were not given, unless those
    of them that were taken in its place follow one after another (`hand_on`).
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
                elif s.params.hand_on == 0:
                    s.counters[p, NOT_GIVEN_BACK] += 1
        number += 1


@rule
def hand_on(s: State, p: int, out: Outbox) -> None:
    """Send on what was taken as rendezvous node where another peer turns out to be that.

    Where many peers fail at once, whoever has lost its neighbours takes more of the ring for its
    own than it should, and what it takes reaches those only who asked there. As the ring mends it
    learns who is nearer, and the events of the last rounds follow: once from each who took them.
    Those that find no room among the copies that wait for acknowledgements follow in later turns.
    """
    attributes = s.params.attributes
    for back in range(count_recent(s, p), 0, -1):
        m = (s.event_next[p] - back) % s.event_copies.shape[1]
        if s.event_hops[p, m] & TAKEN_AS_OURS == 0:
            continue
        attribute = s.event_copies[p, m] % attributes
        hop = next_hop(s, p, rendezvous_value(s, attribute, s.event_values[p, m, attribute]))
        if hop < 0:
            continue
        event = s.work.event
        event[EVENT_ID] = s.event_copies[p, m] // attributes
        event[EVENT_ATTRIBUTE] = attribute
        event[EVENT_HOPS] = (s.event_hops[p, m] & ~(TAKEN_AS_OURS | HANDED_ON)) >> 32
        event[EVENT_ORIGIN] = NOBODY
        for a in range(attributes):
            event[EVENT_VALUES + a] = s.event_values[p, m, a]
        to = handle_of_slot(s, p, hop >> 1)
        if not await_next_hop(s, p, to, NO_OTHER_WAY, event, 0):
            s.alarm[p, TO_HAND_ON] = 1
            return
        s.event_hops[p, m] = (s.event_hops[p, m] & ~TAKEN_AS_OURS) | HANDED_ON
        send_event(s, p, to, FINAL if hop & 1 == 1 else GREEDY, 0, event, 0, out)


@rule
def hand_on_again(s: State, p: int, out: Outbox) -> None:
    """Once a round: hand on what went by another way, and what was not acknowledged since."""
    if s.params.hand_on == 1 and s.alarm[p, TO_HAND_ON] >= 0:
        s.alarm[p, TO_HAND_ON] = -1
        hand_on(s, p, out)


@rule
def expect_to_hand_on_again(s: State, p: int) -> None:
    """Let all that was handed on of late be so again: it may have been lost with a connection."""
    if s.params.hand_on == 0:
        return
    for back in range(count_recent(s, p), 0, -1):
        m = (s.event_next[p] - back) % s.event_copies.shape[1]
        if s.event_hops[p, m] & HANDED_ON != 0:
            s.event_hops[p, m] = (s.event_hops[p, m] & ~HANDED_ON) | TAKEN_AS_OURS
            s.alarm[p, TO_HAND_ON] = 1


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
    expect_to_hand_on_again(s, p)
    if predecessor_handle(s, p) == handle and handle >= 0:
        give_back_everything(s, p, out)
