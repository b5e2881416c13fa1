"""What a host has a peer do: publish, join and subscribe, and the room that a step needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import BODY, FROM, KIND, LENGTH, TO, Words
from gossamer.protocol.kernel.rules import rule
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
from gossamer.protocol.peer.recovery.occasions import expect_difference
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import HALF_BITS, LOAD, NOTHING, range_word
from gossamer.protocol.peer.state.event_logs import IS_WHOLE, LONG_AGO, NEXT_AT, TASK
from gossamer.protocol.peer.state.links import settle_ring
from gossamer.protocol.peer.state.resting import stir
from gossamer.protocol.peer.state.state import WANTED, State, profile_words
from gossamer.protocol.peer.topology.placement import take_place


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


# What a peer wants: its subscriptions, and what its profile tells others of them.


# Hosts tell since when a subscription is in force by another clock than that of rounds.
UNCERTAIN_ROUNDS = 2


def subscribe(
    s: State,
    p: int,
    boxes: npt.NDArray[np.int64],
    constrained: npt.NDArray[np.int64],
    past: npt.NDArray[np.int64] | None = None,
) -> None:
    """Let the subscriptions of row ``p`` be these and no others.

    Args:
        s: the state; row ``p`` changes.
        p: the row.
        boxes: int64[k, 2A], lowest and highest hashed value of every attribute.
        constrained: int64[k], bit a set where attribute a is constrained.
        past: int64[k], for how many rounds each is in force already: since now where not given,
            and those that are there for as long as they are.

    Raises:
        ValueError: there are more than the settings allow; nothing changed.
    """
    count = len(boxes)
    if count > s.constrained.shape[1]:
        raise ValueError(
            f"{count} subscriptions, expected at most {s.constrained.shape[1]} "
            "(setting subscriptions)"
        )
    note_since_when(s, p, boxes, np.zeros(count, np.int64) if past is None else past)
    s.constrained[p] = -1
    s.constrained[p, :count] = constrained
    s.subscriptions[p, :count] = boxes
    write_interest(s, p)
    stir.interpreted(s, p)


def note_since_when(
    s: State, p: int, boxes: npt.NDArray[np.int64], past: npt.NDArray[np.int64]
) -> None:
    """Note since when each of the ``boxes`` is wanted; what a new one has missed is looked for.

    What is compared is begun anew, as subscriptions have other numbers now.
    """
    if s.comparison.shape[1] == 0:
        return
    before = {
        s.subscriptions[p, k].tobytes(): int(s.wanted_since[p, k])
        for k in range(s.constrained.shape[1])
        if s.constrained[p, k] >= 0
    }
    now = int(s.round[p])
    for k, box in enumerate(np.asarray(boxes, np.int64)):
        known = before.get(box.tobytes(), now)
        s.wanted_since[p, k] = known
        if now - past[k] < known - UNCERTAIN_ROUNDS:
            s.wanted_since[p, k] = now - past[k]
            s.comparison[p, IS_WHOLE] = 0
            expect_difference.interpreted(s, p)
    if s.comparison[p, TASK] >= 0:
        s.comparison[p, TASK] = -1
        s.comparison[p, NEXT_AT] = now


def write_interest(s: State, p: int) -> None:
    """Write row ``p``'s ranges to its profile: per attribute the ranges it wants, at most R.

    Where there are more, those with the smallest gap between them become one.
    """
    limit = s.params.profile_ranges
    first_mask = 0
    for a in range(s.params.ranked_attributes):
        column = max(a, s.params.key)
        wanted = sorted(
            (
                int(s.subscriptions[p, k, 2 * column]) >> HALF_BITS,
                int(s.subscriptions[p, k, 2 * column + 1]) >> HALF_BITS,
            )
            for k in range(s.constrained.shape[1])
            if s.constrained[p, k] >= 0
        )
        ranges: list[tuple[int, int]] = []
        for low, high in wanted:
            if ranges and low <= ranges[-1][1] + 1:
                ranges[-1] = (ranges[-1][0], max(high, ranges[-1][1]))
            else:
                ranges.append((low, high))
        while len(ranges) > limit:
            gaps = [ranges[i + 1][0] - ranges[i][1] for i in range(len(ranges) - 1)]
            i = gaps.index(min(gaps))
            ranges[i : i + 2] = [(ranges[i][0], ranges[i + 1][1])]
        for i in range(limit):
            word = range_word(*ranges[i]) if i < len(ranges) else NOTHING
            s.sampler.profile[p, s.params.first_range + a * limit + i] = word
    for k in range(s.constrained.shape[1]):
        if s.constrained[p, k] > 0:
            first_mask |= int(s.constrained[p, k])
    if s.params.ranked_attributes > 1 and first_mask and not first_mask >> int(s.primary[p]) & 1:
        s.primary[p] = (first_mask & -first_mask).bit_length() - 1


@rule
def restart(s: State, p: int) -> None:
    """Let row ``p`` be as a peer that starts again.

    It keeps key, identifier, subscriptions and draws, and what it has delivered: an application
    outlives its peer's process and is not to be served twice. One that was to move is there now.
    """
    s.sampler.views[p, :] = -1
    s.links[p, :] = -1
    if s.params.move_rounds > 0:
        if s.seat[p, WANTED] >= 0:
            take_place(s, p, s.seat[p, WANTED])
        s.seat[p, :] = -1
    settle_ring(s, p)
    s.rest[p, :] = 0
    stir(s, p)
    s.failed[p, :] = -1
    s.departed[p, :, :] = -1
    s.table_count[p] = 0
    s.installed_at[p, :] = -1
    s.event_copies[p, :] = -1
    s.pending[p, :, :] = -1
    s.under_way[p, :, :] = -1
    s.alarm[p, :] = -1
    s.asked[p, :] = -1
    s.held.next[p] = 0
    s.held.heads[p, :] = 0
    s.held.shares[p, :] = 0
    s.held.whole_since[p, :] = LONG_AGO
    s.comparison[p, TASK : TASK + 1] = -1
    s.comparison[p, NEXT_AT : NEXT_AT + 1] = s.round[p]
    s.load[p] = 0
    if s.params.ring_links > 0:
        s.sampler.profile[p, LOAD] = 0
