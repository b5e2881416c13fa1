"""What a peer asks for of what its neighbours on the ring offer."""

from __future__ import annotations

import numpy as np

from gossamer.protocol.kernel.records import BODY, KIND, TO
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING
from gossamer.protocol.peer.step import subscribe
from support.overlays import Hosts, record

NODES = 8
SETTINGS = Settings(
    ring_links=2,
    view_size=4,
    shuffle_length=2,
    subscriptions=2,
    ring_offers=True,
    suspect_rounds=1,
    event_memory=2 * records.OFFERED_ON_RING,
    replay_backoff=True,
)
LOW, HIGH = (0, RING // 8), (RING // 2, RING // 2 + RING // 8)
WANTED, BETWEEN = HIGH[0] + 1, RING // 4


def overlay() -> Hosts:
    """A ring on which all have the same two ranges; in profiles they are one."""
    places = np.arange(NODES, dtype=np.int64) * (RING // NODES)
    hosts = Hosts.ring(SETTINGS, places, 1)
    bounds = np.array([LOW, HIGH], np.int64)
    for p in range(NODES):
        subscribe(hosts.state, p, bounds, np.array([1, 1]))
    return hosts


def take(hosts: Hosts, *copies: int) -> None:
    """Let copies that peer 0 wants come to it down a tree."""
    for copy in copies:
        hosts.step(0, record(records.EVENT, 0, 1, [copy, 0, records.TREE, 1, 1, -1, WANTED]))


def asked(hosts: Hosts, *offered: tuple[int, int]) -> list[int]:
    """The copies that peer 0 asks peer 1 for when it offers copies with these values."""
    body = [len(offered), *(word for event in offered for word in event)]
    sent = hosts.step(0, record(records.RING_OFFER, 0, 1, body))
    found = [list(words[BODY + 1 :]) for words in sent if words[KIND] == records.REPLAY_WANTED]
    assert all(words[TO] == 1 for words in sent)
    return [int(copy) for copies in found for copy in copies]


def test_only_what_is_wanted_is_asked_for() -> None:
    assert asked(overlay(), (11, WANTED), (12, BETWEEN), (13, LOW[1])) == [11, 13]


def test_what_is_not_wanted_leads_to_no_question() -> None:
    assert asked(overlay(), (12, BETWEEN)) == []


def test_what_was_here_is_not_asked_for() -> None:
    hosts = overlay()
    take(hosts, 11)
    assert asked(hosts, (11, WANTED), (13, WANTED)) == [13]


def test_all_of_a_long_offer_is_asked_for() -> None:
    events = range(100, 100 + records.OFFERED_ON_RING)
    assert asked(overlay(), *((event, WANTED) for event in events)) == list(events)


def test_who_gets_what_it_asks_for_may_miss_much_for_long() -> None:
    hosts = overlay()
    for first in range(100, 100 + 20 * 8, 8):
        copies = range(first, first + 8)
        assert asked(hosts, *((copy, WANTED) for copy in copies)) == list(copies)
        take(hosts, *copies)
        hosts.state.round[0] += 1


def test_who_does_not_get_it_asks_for_nothing_then_for_little() -> None:
    hosts = overlay()
    counts = []
    for first in range(100, 100 + 10 * 40, 40):
        copies = range(first, first + 40)
        got = asked(hosts, *((copy, WANTED) for copy in copies))
        counts.append(len(got))
        if first > 100:
            take(hosts, *got)
        hosts.state.round[0] += 1
    assert counts == [40, 0, 0, 0, 1, 4, 16, 40, 40, 40]
