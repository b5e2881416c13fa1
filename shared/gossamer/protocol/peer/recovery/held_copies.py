"""Copies that a peer holds itself and that its own application lacks (see `comparing`).

A peer that starts anew holds copies before its applications have subscribed again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import Outbox, Words
from gossamer.protocol.kernel.rules import rule, rule_with_interpreted_form
from gossamer.protocol.kernel.struct import as_array
from gossamer.protocol.peer.record_table.records import (
    EVENT_HOPS,
    EVENT_ID,
    EVENT_VALUES,
    LISTED_AT_ONCE,
)
from gossamer.protocol.peer.rendezvous.delivery import deliver
from gossamer.protocol.peer.rendezvous.event_log import (
    YOUNGEST,
    compared_at_once,
    is_compared,
    is_held_for,
    note_got,
    place_in_log,
    was_delivered,
)
from gossamer.protocol.peer.settings.profile import IDENTIFIER, OFF_THE_RING
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import is_off_ring
from gossamer.protocol.peer.state.lookup import (
    ANCHORS,
    rendezvous_value,
)
from gossamer.protocol.peer.state.state import State

Int64s = npt.NDArray[np.int64]


def _find_own_at_once(s: Any, p: int, words: Any) -> int:
    places, _ = compared_at_once(s, s.held, p, False, words, 0)
    attributes = s.params.attributes
    events = as_array(s.held.copies)[p, places] // attributes * attributes
    got = as_array(s.got.copies)[p, : min(s.got.next[p], s.got.copies.shape[1])]
    lacking = places[~np.isin(events, got)][:LISTED_AT_ONCE]
    as_array(s.work.compared)[: len(lacking)] = lacking
    return len(lacking)


@rule_with_interpreted_form(_find_own_at_once, inline=False)
def find_own(s: State, p: int, words: Words) -> int:
    """Write to ``work.compared`` where held copies of a part are that were not got; how many.

    Args:
        s: the state; its scratch space changes.
        p: the row.
        words: say what part, as a question does.
    """
    found = 0
    # Of what is held, a copy itself says by which attribute.
    for place in range(min(s.held.next[p], s.held.copies.shape[1])):
        if found < LISTED_AT_ONCE and is_compared(s, s.held, p, place, -1, words, 0):
            event = s.held.copies[p, place] // s.params.attributes
            if place_in_log(s.got, p, event * s.params.attributes) < 0:
                s.work.compared[found] = place
                found += 1
    return found


@rule
def deliver_own(s: State, p: int, words: Words, out: Outbox) -> bool:
    """Deliver what ``p`` holds of a part and its application lacks; return whether that is all."""
    count = find_own(s, p, words)
    event = s.work.event
    for i in range(count):
        place = s.work.compared[i]
        age = s.round[p] - s.held.rounds[p, place]
        event[EVENT_ID] = s.held.copies[p, place] // s.params.attributes
        event[EVENT_HOPS] = 0
        for a in range(s.params.attributes):
            event[EVENT_VALUES + a] = s.held.values[p, place, a]
        if was_delivered(s, p, event[EVENT_ID]):
            note_got(s, p, event[EVENT_ID], age, event, EVENT_VALUES)
        else:
            deliver(s, p, event, 0, 0, age, out)
    return bool(count < LISTED_AT_ONCE)


# Copies that a peer holds for nobody any more (see `comparing`).


@rule
def value_held(s: State, p: int, place: int) -> int:
    """Where on the ring the copy at a place of the log belongs."""
    attribute = s.held.copies[p, place] % s.params.attributes
    return rendezvous_value(s, attribute, s.held.values[p, place, attribute])


@rule
def is_stray(s: State, p: int, place: int, start: int, end: int) -> bool:
    """Whether a place has a copy from ``start`` to ``end`` that others are to hold."""
    age = s.round[p] - s.held.rounds[p, place]
    if s.held.copies[p, place] < 0 or age < YOUNGEST or age > s.params.retention_rounds:
        return False
    value = value_held(s, p, place)
    if clockwise(start, value) > clockwise(start, end):
        return False
    return is_off_ring(s, p) or not is_held_for(s, p, value)


def _strays_at_once(s: Any, p: int, start: int, end: int) -> tuple[Int64s, Int64s]:
    """Places of all strays, and their distances from ``start``."""
    places = np.arange(min(s.held.next[p], s.held.copies.shape[1]))
    copies, values = as_array(s.held.copies)[p, places], as_array(s.held.values)[p, places]
    ages = s.round[p] - as_array(s.held.rounds)[p, places]
    stray = (copies >= 0) & (ages >= YOUNGEST) & (ages <= s.params.retention_rounds)
    attributes = copies % s.params.attributes
    own = values[places, attributes] if s.params.by_value else ANCHORS[attributes]
    distances = (own - start) & RING_MASK
    stray &= distances <= ((end - start) & RING_MASK)
    if s.sampler.profile[p, IDENTIFIER] < OFF_THE_RING:
        me, between = s.sampler.profile[p, IDENTIFIER], np.zeros(len(places), np.int64)
        for k in range(s.links.shape[1]):
            if s.links[p, k] >= 0:
                other = s.link_profile[p, k, IDENTIFIER]
                between += ((other - own) & RING_MASK) < ((me - own) & RING_MASK)
        stray &= between > s.params.replicas
    return places[stray], distances[stray]


def _next_stray_at_once(s: Any, p: int, start: int, end: int) -> int:
    _, distances = _strays_at_once(s, p, start, end)
    return int(start + distances.min()) & RING_MASK if len(distances) else -1


@rule_with_interpreted_form(_next_stray_at_once, inline=False)
def next_stray(s: State, p: int, start: int, end: int) -> int:
    """The first value from ``start`` to ``end`` on the ring of which ``p`` has a stray, or -1."""
    nearest = -1
    for place in range(min(s.held.next[p], s.held.copies.shape[1])):
        if is_stray(s, p, place, start, end):
            value = value_held(s, p, place)
            if nearest < 0 or clockwise(start, value) < clockwise(start, nearest):
                nearest = value
    return nearest


def _find_strays_at_once(s: Any, p: int, start: int, end: int, most: int) -> int:
    found = _strays_at_once(s, p, start, end)[0][:most]
    as_array(s.work.compared)[: len(found)] = found
    return len(found)


@rule_with_interpreted_form(_find_strays_at_once, inline=False)
def find_strays(s: State, p: int, start: int, end: int, most: int) -> int:
    """Write to ``work.compared`` where copies are that ``p`` is not to hold; return how many.

    Args:
        s: the state; its scratch space changes.
        p: the row.
        start, end: the first and the last value on the ring.
        most: how many, at most `LISTED_AT_ONCE`.
    """
    found = 0
    for place in range(min(s.held.next[p], s.held.copies.shape[1])):
        if found < most and is_stray(s, p, place, start, end):
            s.work.compared[found] = place
            found += 1
    return found
