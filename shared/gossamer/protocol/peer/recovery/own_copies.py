"""Copies that a peer holds itself and that its own application lacks (see `comparing`).

A peer that starts anew holds copies before its applications have subscribed again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel.records import Outbox
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
    compared_at_once,
    is_compared,
    note_got,
    place_in_log,
    was_delivered,
)
from gossamer.protocol.peer.state.state import State


def _find_own_at_once(s: Any, p: int, words: Any) -> int:
    places, _ = compared_at_once(s, s.held, p, False, words, 0)
    attributes = s.params.attributes
    events = as_array(s.held.copies)[p, places] // attributes * attributes
    got = as_array(s.got.copies)[p, : min(s.got.next[p], s.got.copies.shape[1])]
    lacking = places[~np.isin(events, got)][:LISTED_AT_ONCE]
    as_array(s.work.compared)[: len(lacking)] = lacking
    return len(lacking)


@rule_with_interpreted_form(_find_own_at_once, inline=False)
def find_own(s: State, p: int, words: Any) -> int:
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
def deliver_own(s: State, p: int, words: Any, out: Outbox) -> bool:
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
