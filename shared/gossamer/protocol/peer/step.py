"""The one door of a peer: `step` takes one record and writes what follows from it.

Hosts (the simulator's engines, a network node) turn everything that happens into records: timers,
commands, messages of other peers, and messages that came back because nobody was there. `step`
hands each to its rule. What a peer wants to happen is again records: messages to send and events
to deliver. Nothing else passes between protocol and host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.records import (
    ACKNOWLEDGE,
    BODY,
    CATCH_UP,
    EVENT,
    FIND_PLACE,
    FROM,
    HANDOVER,
    INSTALL,
    INSTALL_NEWS,
    INSTALL_TIMER,
    JOIN,
    KIND,
    LENGTH,
    LINK_BROKE,
    LOAD_SHIFTED,
    OVERLAY_TIMER,
    PLACE_FOUND,
    PUBLISH,
    RECALL,
    RECALL_ANSWER,
    RECALLED,
    REPLAY_OFFER,
    REPLAY_WANTED,
    SAMPLE_REPLY,
    SAMPLE_REQUEST,
    SAMPLE_TIMER,
    STORED,
    TMAN_REPLY,
    TMAN_REQUEST,
    TO,
    UNREACHABLE,
    WITHDRAW,
    Outbox,
    Words,
)
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS
from gossamer.protocol.peer.rendezvous.arc_return import (
    GIVEN_BACK,
    arc_begins,
    give_back_what_is_due,
    on_link_broke,
    predecessor_handle,
)
from gossamer.protocol.peer.rendezvous.delivery import (
    on_event,
    on_publish,
    on_recalled,
    publish_again,
    reroute_event,
)
from gossamer.protocol.peer.rendezvous.event_log import (
    PAGE_EVENTS,
    ask_again,
    on_catch_up,
    on_recall,
    on_recall_answer,
    recall_elsewhere,
)
from gossamer.protocol.peer.rendezvous.handover import on_handover
from gossamer.protocol.peer.rendezvous.installation import (
    greet_successor,
    on_acknowledge,
    on_install,
    on_install_timer,
    reinstall_elsewhere,
)
from gossamer.protocol.peer.rendezvous.publication import on_stored, on_withdraw
from gossamer.protocol.peer.rendezvous.replay import (
    EVENT_ID,
    EVENT_VALUES,
    OFFERED_AT_ONCE,
    on_replay_offer,
    on_replay_wanted,
)
from gossamer.protocol.peer.rendezvous.routing_table import remove_source
from gossamer.protocol.peer.sampling.sampler import (
    sample_on_reply,
    sample_on_request,
    sample_on_timer,
    sample_on_unreachable,
)
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import (
    HALF_BITS,
    LOAD,
    NOTHING,
    range_word,
)
from gossamer.protocol.peer.state.links import handle_in, settle_ring
from gossamer.protocol.peer.state.state import NEXT_SINCE, SINCE, SUBSCRIPTION, State, profile_words
from gossamer.protocol.peer.topology.load_shifting import on_load_shifted, shift_load
from gossamer.protocol.peer.topology.membership import (
    find_place_elsewhere,
    on_failure,
    on_find_place,
    on_join,
    on_place_found,
)
from gossamer.protocol.peer.topology.tman import (
    approach_links,
    approach_rest,
    on_overlay_timer,
    on_tman_reply,
    on_tman_request,
    overlay_hint,
)

# How many cache lines of a routing table are brought near.
TABLE_LINES = 4

TIMERS = (SAMPLE_TIMER, OVERLAY_TIMER, INSTALL_TIMER)


@rule
def step(s: Any, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """Take the record at ``words[at:]`` as peer ``p``; append what follows to ``out``.

    Args:
        s: `State`; row ``p`` of it may change, no other.
        p: the row.
        now: the host's time in rounds; only Newscast's timestamps read it.
        words: int64 words that hold the record; the record itself may be overwritten.
        at: offset of the record's header.
        out: where records are appended; may share memory with ``words`` past the record.
    """
    kind = words[at + KIND]
    if kind == EVENT:
        on_event(s, p, words, at, out)
    elif not take_about_events(s, p, kind, words, at, out):
        take_about_peers(s, p, now, kind, words, at, out)


@rule
def take_about_events(s: Any, p: int, kind: int, words: Any, at: int, out: Outbox) -> bool:
    """Take a record that is about events and leaves all links as they are; False if it is not."""
    if kind == STORED:
        on_stored(s, p, words, at, out)
    elif kind == PUBLISH:
        on_publish(s, p, words, at, out)
    elif kind == WITHDRAW:
        on_withdraw(s, p, words, at)
    elif kind == REPLAY_OFFER:
        on_replay_offer(s, p, words, at, out)
    elif kind == REPLAY_WANTED:
        on_replay_wanted(s, p, words, at, out)
    elif kind == RECALLED:
        on_recalled(s, p, words, at, out)
    elif kind == RECALL:
        on_recall(s, p, words, at, out)
    elif kind == RECALL_ANSWER:
        on_recall_answer(s, p, words, at, out)
    elif kind == CATCH_UP:
        on_catch_up(s, p, words, at, out)
    elif kind == LINK_BROKE:
        on_link_broke(s, p, words, at, out)
    else:
        return False
    return True


@rule
def take_about_peers(s: Any, p: int, now: int, kind: int, words: Any, at: int, out: Outbox) -> None:
    """Take a record that may change links, and do what follows where those on the ring change."""
    successor = successor_handle(s, p)
    predecessor = predecessor_handle(s, p)
    arc_start = arc_begins(s, p)
    if kind == SAMPLE_TIMER:
        sample_on_timer(s.sampler, p, now, out)
    elif kind == OVERLAY_TIMER:
        shift_load(s, p, out)
        on_overlay_timer(s, p, now, out)
    elif kind == INSTALL_TIMER:
        on_install_timer(s, p, out)
        publish_again(s, p, out)
        ask_again(s, p, out)
    elif kind == SAMPLE_REQUEST:
        sample_on_request(s.sampler, p, now, words, at, out)
    elif kind == SAMPLE_REPLY:
        sample_on_reply(s.sampler, p, now, words, at, out)
    elif kind == TMAN_REQUEST:
        on_tman_request(s, p, now, words, at, out)
    elif kind == TMAN_REPLY:
        on_tman_reply(s, p, now, words, at)
    elif kind in (INSTALL, INSTALL_NEWS):
        on_install(s, p, words, at, kind == INSTALL, out)
    elif kind == ACKNOWLEDGE:
        on_acknowledge(s, p, words, at)
    elif kind == JOIN:
        on_join(s, p, now, words, at, out)
    elif kind == FIND_PLACE:
        on_find_place(s, p, words, at, out)
    elif kind == PLACE_FOUND:
        on_place_found(s, p, now, words, at)
    elif kind == HANDOVER:
        on_handover(s, p, words, at)
    elif kind == LOAD_SHIFTED:
        on_load_shifted(s, p, words, at, out)
    elif kind >= UNREACHABLE:
        on_unreachable(s, p, now, words, at, out)
    if s.params.stabilise == 1:
        found = successor_handle(s, p)
        if found >= 0 and found != successor:
            greet_successor(s, p, out)
    give_back_what_is_due(s, p, predecessor, arc_start, out)


@rule
def successor_handle(s: Any, p: int) -> int:
    """Who ``p`` takes for its successor, or -1."""
    if s.successor[p] < 0:
        return -1
    return handle_in(s.links[p, s.successor[p]])


@rule
def on_unreachable(s: Any, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """A record came back: its addressee failed. Forget it, and find another way (Sec. IV-C)."""
    kind = words[at + KIND] - UNREACHABLE
    on_failure(s, p, words[at + TO])
    remove_source(s, p, words[at + TO])
    if kind in (SAMPLE_REQUEST, SAMPLE_REPLY):
        sample_on_unreachable(s.sampler, p, now, words, at)
    elif kind in (INSTALL, INSTALL_NEWS):
        reinstall_elsewhere(s, p, words, at, out)
    elif kind == EVENT:
        reroute_event(s, p, words, at, out)
    elif kind == FIND_PLACE:
        find_place_elsewhere(s, p, words, at, out)
    elif kind == RECALL:
        recall_elsewhere(s, p, words, at, out)


@rule
def hint(s: Any, kind: int, soon: int, later: int) -> None:
    """While a record of a kind is taken, bring near what two other rows will read soon."""
    overlay_hint(s, kind, soon, later)
    if kind == INSTALL_TIMER:
        approach_rest(s, later)
        approach_table(s, later)


@rule
def approach(s: Any, p: int) -> None:
    """Bring near what most records make row ``p`` read: its links and its routing table."""
    prefetch(s.sampler.key, p, 0)
    approach_links(s, p)
    approach_rest(s, p)
    approach_table(s, p)


@rule
def approach_table(s: Any, p: int) -> None:
    """Bring near the beginning of row ``p``'s routing table: most are short."""
    prefetch(s.owner, p, 0)
    words = s.table.shape[1] * s.table.shape[2]
    for at in range(0, min(TABLE_LINES * CACHE_LINE_WORDS, words), CACHE_LINE_WORDS):
        prefetch(s.table, p, at)


def subscribe(
    s: State, p: int, boxes: npt.NDArray[np.int64], constrained: npt.NDArray[np.int64]
) -> None:
    """Let the subscriptions of row ``p`` be these and no others.

    Args:
        s: the state; row ``p`` changes.
        p: the row.
        boxes: int64[k, 2A], lowest and highest hashed value of every attribute.
        constrained: int64[k], bit a set where attribute a is constrained.

    Raises:
        ValueError: there are more than the settings allow; nothing changed.
    """
    count = len(boxes)
    if count > s.constrained.shape[1]:
        raise ValueError(
            f"{count} subscriptions, expected at most {s.constrained.shape[1]} "
            "(setting subscriptions)"
        )
    s.constrained[p] = -1
    s.constrained[p, :count] = constrained
    s.subscriptions[p, :count] = boxes
    write_interest(s, p)
    if s.recall[p, SUBSCRIPTION] >= 0:
        # Which of them were asked for so far is not known any more.
        s.recall[p, NEXT_SINCE] = s.recall[p, SINCE]


def write_interest(s: State, p: int) -> None:
    """Write row ``p``'s ranges to its profile: per attribute the ranges it wants, at most R.

    Where there are more, those with the smallest gap between them become one.
    """
    limit = s.params.profile_ranges
    first_mask = 0
    for a in range(s.params.attributes):
        wanted = sorted(
            (
                int(s.subscriptions[p, k, 2 * a]) >> HALF_BITS,
                int(s.subscriptions[p, k, 2 * a + 1]) >> HALF_BITS,
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
    if first_mask and not first_mask >> int(s.primary[p]) & 1:
        s.primary[p] = (first_mask & -first_mask).bit_length() - 1


@rule
def restart(s: Any, p: int) -> None:
    """Let row ``p`` be as a peer that starts again.

    It keeps key, identifier, subscriptions and draws, and what it has delivered: an application
    outlives its peer's process and is not to be served twice.
    """
    s.sampler.views[p, :] = -1
    s.links[p, :] = -1
    settle_ring(s, p)
    s.failed[p, :] = -1
    s.table_count[p] = 0
    s.installed_at[p, :] = -1
    s.event_copies[p, :] = -1
    s.pending[p, :, :] = -1
    s.held_next[p] = 0
    s.recall[p, SUBSCRIPTION] = -1
    s.load[p] = 0
    if s.params.ring_links > 0:
        s.sampler.profile[p, LOAD] = 0


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
    box = 1 + 2 * settings.attributes
    install = BODY + descriptor + 2 + settings.boxes_per_neighbour * box
    events = settings.routing_table_entries + settings.attributes
    events += settings.pending_publications * settings.attributes
    events += OFFERED_AT_ONCE + PAGE_EVENTS + GIVEN_BACK
    offers = settings.event_memory // OFFERED_AT_ONCE + 1
    return (
        (3 * settings.links + 4) * install
        + (settings.routing_table_entries + settings.subscriptions) * (box + 2)
        + events * (BODY + EVENT_VALUES + settings.attributes + 8)
        + offers * (BODY + 1 + OFFERED_AT_ONCE)
        + 4 * (settings.links + settings.view_size + 2) * descriptor
    )
