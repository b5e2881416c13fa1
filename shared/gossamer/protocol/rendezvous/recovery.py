"""Remembered events, and handing them to subscriptions that come late. Goes beyond the paper.

Each peer remembers the last L event copies it saw, to drop those that come again. With
`replay_rounds` set, a neighbour that asks for something new here gets the remembered events it
matches: a subscriber whose path broke or who has just joined catches up through the first peer on
its new path that kept receiving.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.messages import BODY, EVENT, Outbox, close_record, open_record
from gossamer.protocol.rules import rule
from gossamer.protocol.scans import position
from gossamer.protocol.state import REPLAYED

# Words of an event record's body.
EVENT_ID, EVENT_ATTRIBUTE, EVENT_MODE, EVENT_HOPS, EVENT_TREE_HOPS = 0, 1, 2, 3, 4
EVENT_ORIGIN = 5  # handle of a publisher that wants to know when the event is held, or -1
EVENT_VALUES = 6

# How an event copy travels: greedily to its rendezvous node, on its believed last hop there, down
# a delivery tree, or along successors of the rendezvous node (mode REPLICA + how many are left).
GREEDY, FINAL, TREE, REPLICA = 0, 1, 2, 3

KNOWN_BOX = 0


@rule
def has_seen(s: Any, p: int, copy: int) -> bool:
    """Whether ``p`` remembers this event copy."""
    return position(s.event_copies, p, copy) >= 0


@rule
def remember(s: Any, p: int, copy: int, tree_hops: int, words: Any, at: int) -> None:
    """Remember an event copy whose values stand at ``words[at:]``."""
    m = s.event_next[p]
    s.event_copies[p, m] = copy
    s.event_rounds[p, m] = s.round[p]
    s.event_hops[p, m] = tree_hops
    for a in range(s.params.attributes):
        s.event_values[p, m, a] = words[at + a]
    s.event_next[p] = (m + 1) % s.event_copies.shape[1]


@rule
def box_matches_remembered(s: Any, p: int, m: int, words: Any, at: int) -> bool:
    """Whether the box at ``words[at:]`` matches remembered event ``m``."""
    if s.event_copies[p, m] % s.params.attributes != words[at]:
        return False
    for a in range(s.params.attributes):
        value = s.event_values[p, m, a]
        if value < words[at + 1 + 2 * a] or value > words[at + 2 + 2 * a]:
            return False
    return True


@rule
def replay_events(s: Any, p: int, words: Any, first: int, count: int, to: int, out: Outbox) -> None:
    """Send ``to`` the recent events that match a box which is news from it (``work.news``)."""
    if s.params.replay_rounds == 0:
        return
    size = s.work.box.shape[0]
    for m in range(s.event_copies.shape[1]):
        if s.event_copies[p, m] < 0:
            continue
        if s.event_rounds[p, m] + s.params.replay_rounds < s.round[p]:
            continue
        for i in range(count):
            if s.work.news[i] != KNOWN_BOX and box_matches_remembered(
                s, p, m, words, first + i * size
            ):
                send_remembered(s, p, m, to, out)
                s.counters[p, REPLAYED] += 1
                break


@rule
def send_remembered(s: Any, p: int, m: int, to: int, out: Outbox) -> None:
    """Send remembered event ``m`` down the tree to one neighbour."""
    attributes = s.params.attributes
    at = open_record(out, EVENT, to, s.sampler.handle[p], EVENT_VALUES + attributes)
    if at < 0:
        return
    body = at + BODY
    out.words[body + EVENT_ID] = s.event_copies[p, m] // attributes
    out.words[body + EVENT_ATTRIBUTE] = s.event_copies[p, m] % attributes
    out.words[body + EVENT_MODE] = TREE
    out.words[body + EVENT_HOPS] = s.event_hops[p, m] >> 32
    out.words[body + EVENT_TREE_HOPS] = s.event_hops[p, m] & 0xFFFFFFFF
    out.words[body + EVENT_ORIGIN] = -1
    for a in range(attributes):
        out.words[body + EVENT_VALUES + a] = s.event_values[p, m, a]
    close_record(out, at, EVENT_VALUES + attributes)
