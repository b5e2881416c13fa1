"""Events handed on that were taken in another peer's place, and links that broke.

Goes beyond the paper.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, LENGTH, Outbox, Words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import (
    EVENT_ATTRIBUTE,
    EVENT_HOPS,
    EVENT_ID,
    EVENT_ORIGIN,
    EVENT_VALUES,
    FINAL,
    GREEDY,
)
from gossamer.protocol.peer.rendezvous.delivery import send_event
from gossamer.protocol.peer.rendezvous.event_routing import NO_OTHER_WAY, await_next_hop
from gossamer.protocol.peer.rendezvous.installation_boxes import install_anew
from gossamer.protocol.peer.rendezvous.publication import NOBODY
from gossamer.protocol.peer.rendezvous.replay import HANDED_ON, TAKEN_AS_OURS, count_recent
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.state.lookup import handle_of_slot, next_hop, rendezvous_value
from gossamer.protocol.peer.state.routing_table import remove_source
from gossamer.protocol.peer.state.state import MALFORMED, TO_HAND_ON, State


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
def hand_on_what_is_due(s: State, p: int, predecessor: int, arc_start: int, out: Outbox) -> None:
    """Hand events on after a step, before which predecessor and start of the arc were these."""
    found = predecessor_handle(s, p)
    has_changed = found != predecessor or arc_begins(s, p) != arc_start
    if s.params.hand_on == 1 and found >= 0 and has_changed:
        hand_on(s, p, out)


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
def on_link_broke(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
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
