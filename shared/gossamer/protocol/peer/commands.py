"""Records by which a host has a peer publish and join, and the room that a step needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import BODY, FROM, KIND, LENGTH, TO, Words
from gossamer.protocol.peer.record_table.layouts import most_of
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    EVENT_ID,
    EVENT_VALUES,
    INSTALL,
    JOIN,
    LISTED,
    LISTED_AT_ONCE,
    OFFERED_AT_ONCE,
    OFFERED_ON_RING,
    PUBLISH,
    REPLAY_OFFER,
    RING_OFFER,
    TABLE,
)
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import profile_words


def publish_record(row: int, event: int, values: npt.NDArray[np.int64]) -> Words:
    """The command that makes row ``row`` publish an event.

    Args:
        row: handle of the publisher.
        event: identifier of the event, unique in the overlay, in [0, 2^58).
        values: int64[A], hashed values.
    """
    record = np.zeros(BODY + EVENT_VALUES + len(values), np.int64)
    record[[LENGTH, KIND, TO, FROM]] = len(record), PUBLISH, row, row
    record[BODY + EVENT_ID] = event
    record[BODY + EVENT_VALUES :] = values
    return record


def join_record(row: int, contact: int, contact_profile: npt.NDArray[np.int64]) -> Words:
    """The command that makes row ``row`` join through ``contact``, whose profile is given."""
    record = np.zeros(BODY + 1 + len(contact_profile), np.int64)
    record[[LENGTH, KIND, TO, FROM]] = len(record), JOIN, row, row
    record[BODY] = contact
    record[BODY + 1 :] = contact_profile
    return record


def largest_step(settings: Settings) -> int:
    """Words that one step writes at most: the reserve that a host keeps free in its outbox."""
    descriptor = 1 + profile_words(settings)
    box = 1 + 2 * settings.coordinates
    layouts = TABLE.layouts(settings)
    install, event, offer, listed = (
        BODY + most_of(layouts[kind], profile_words(settings)).words
        for kind in (INSTALL, EVENT, REPLAY_OFFER, LISTED)
    )
    events = settings.routing_table_entries + settings.coordinates
    events += settings.pending_publications * settings.coordinates
    events += OFFERED_AT_ONCE + 2 * LISTED_AT_ONCE
    events += settings.acknowledged_hops + settings.hand_on * settings.event_memory
    offers = settings.event_memory // OFFERED_AT_ONCE + 1
    on_ring = 0
    if settings.ring_offers:
        longest = BODY + most_of(layouts[RING_OFFER], profile_words(settings)).words
        on_ring = settings.links * (settings.event_memory // OFFERED_ON_RING + 1) * longest
    return (
        (4 * settings.links + 4 + settings.acknowledged_hops) * install
        + (settings.routing_table_entries + settings.rows) * (box + 2)
        + events * (event + 8)
        + offers * offer
        + 2 * listed
        + on_ring
        + 4 * (settings.links + settings.view_size + 2) * descriptor
    )
