"""Handing over the part of the routing table that goes with a part of the ring."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.protocol.kernel.records import BODY, KIND, make_outbox
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.rendezvous.handover import hand_over
from gossamer.protocol.peer.rendezvous.routing_table import remove_expired
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import LOAD
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.state import SHIFTED, State
from support import overlays


def handed_over(state: State, identifier: int) -> list[tuple[int, overlays.Box]]:
    out = make_outbox(64 * state.table.shape[2])
    hand_over(state, 5, 99, identifier, out)
    (words,) = overlays.written(out)
    assert words[KIND] == records.HANDOVER
    rows = words[BODY + 1 :].reshape(int(words[BODY]), 5).tolist()
    return [(row[0], ((row[3], row[4]),)) for row in rows]


def test_a_newcomer_is_handed_the_entries_of_its_arc() -> None:
    """Peer 5 answers for 501 to 600; a newcomer at 550 takes over up to there."""
    hosts = overlays.ten_in_a_row()
    state = hosts.state
    boxes = [(0, ((501, 505),)), (0, ((540, 560),)), (0, ((570, 580),)), (0, ((700, 800),))]
    hosts.step(5, overlays.install_record(state, records.INSTALL, 5, 4, boxes))
    assert handed_over(state, 550) == [(4, ((501, 505),)), (4, ((540, 560),))]


def test_a_handover_is_taken_by_a_peer_without_entries_or_from_its_successor() -> None:
    """The successor of peer 5 is peer 6."""
    hosts = overlays.ten_in_a_row()
    first, second, third = ((3, 0, ((510, 520),)), (2, 0, ((530, 540),)), (2, 0, ((550, 560),)))
    hosts.step(5, overlays.record(records.HANDOVER, 5, 8, [1, 3, 400, 0, 510, 520]))
    assert hosts.entries(5) == [first]
    hosts.step(5, overlays.record(records.HANDOVER, 5, 8, [1, 2, 300, 0, 530, 540]))
    assert hosts.entries(5) == [first]
    hosts.step(5, overlays.record(records.HANDOVER, 5, 6, [1, 2, 300, 0, 530, 540]))
    assert hosts.entries(5) == [first, second]
    hosts.step(
        5, overlays.record(records.HANDOVER, 5, 6, [2, 2, 300, 0, 531, 539, 2, 300, 0, 550, 560])
    )
    assert hosts.entries(5) == [first, second, third]


def test_entries_handed_over_live_as_long_as_others() -> None:
    """Until whoever asked for them should have installed them anew, and no longer."""
    hosts = overlays.ten_in_a_row()
    state = hosts.state
    state.round[5] = 7
    hosts.step(5, overlays.record(records.HANDOVER, 5, 6, [1, 3, 400, 0, 510, 520]))
    state.round[5] += state.params.entry_lifetime
    remove_expired(state, 5)
    assert len(hosts.entries(5)) == 1
    state.round[5] += 1
    remove_expired(state, 5)
    assert hosts.entries(5) == []


def test_a_newcomer_serves_at_once_from_what_it_was_handed() -> None:
    """Nobody has installed anything anew when the event comes."""
    hosts = overlays.ten_in_a_row(join_lookup=True, ring_links=2)
    state = hosts.state
    peer.restart(state, 5)
    hosts.alive[5] = False
    hosts.subscribe(2, (550, 560))
    hosts.rounds(6)
    hosts.alive[5] = True
    hosts.handle(peer.join_record(5, 0, state.sampler.profile[0]))
    assert hosts.publish(5, 1, 555) == [2]


@pytest.mark.parametrize(("lost_entries", "handed"), [(False, 0), (True, 1)])
def test_a_peer_in_company_that_calls_another_is_handed_what_it_has_lost_alone(
    lost_entries: bool, handed: int
) -> None:
    """Peers call those they have heard of now and then; the ring knows this one's place."""
    hosts = overlays.ten_in_a_row(join_lookup=True, ring_links=2)
    state = hosts.state
    hosts.subscribe(2, (550, 560))
    hosts.rounds(6)
    before = hosts.entries(5)
    assert before
    if lost_entries:
        state.table_count[5] = 0
    hosts.passed.clear()
    hosts.handle(peer.join_record(5, 0, state.sampler.profile[0]))
    kinds = [int(words[KIND]) for words in hosts.passed]
    assert kinds.count(records.PLACE_FOUND) == 1
    assert kinds.count(records.HANDOVER) == handed
    if not lost_entries:
        assert hosts.entries(5) == before


# Load shifting: a peer that moves into the arc of its successor.

NODES = 16


def busy_overlay(
    seed: int, share: float, attributes: int
) -> tuple[overlays.Hosts, list[overlays.Box]]:
    """Peers that have installed what they want, a random box each, and what that is."""
    settings = Settings(
        attributes=attributes,
        ring_links=2,
        friend_links=4,
        view_size=6,
        shuffle_length=3,
        boxes_per_neighbour=32,
        shift_threshold=0.0,
        seed=seed,
    )
    hosts = overlays.Hosts.ring(settings, NODES, seed)
    draws = np.random.default_rng(seed)
    boxes: list[overlays.Box] = []
    for p in range(NODES):
        width = int(share * RING_MASK)
        lows = draws.integers(0, RING_MASK - width, attributes).tolist()
        boxes.append(tuple((low, low + width) for low in lows))
        hosts.subscribe(p, *boxes[p])
    hosts.rounds(3, records.INSTALL_TIMER)
    return hosts, boxes


def relieve_successor(hosts: overlays.Hosts, p: int) -> tuple[int, int]:
    """Let ``p`` take half the arc of its successor; return who that is, and how far ``p`` moved."""
    state = hosts.state
    slot = state.successor[p]
    successor = int(state.links[p, slot]) & overlays.HANDLE
    state.load[successor] = 5000
    state.link_profile[p, slot, LOAD] = 5000
    before = int(hosts.identifiers()[p])
    hosts.tick(p, records.OVERLAY_TIMER)
    assert state.counters[p, SHIFTED] == 1
    assert {records.LOAD_SHIFTED, records.HANDOVER} <= {int(words[KIND]) for words in hosts.passed}
    return successor, clockwise(before, int(hosts.identifiers()[p]))


def events_after_a_shift(
    seed: int, share: float, attributes: int
) -> tuple[int, list[tuple[list[int], list[int]]]]:
    """Events for the part of an arc given away, before anybody installs anything anew.

    Returns who gave it away, and per event who was served and who should have been.
    """
    hosts, boxes = busy_overlay(seed, share, attributes)
    moved = seed % NODES
    before = int(hosts.identifiers()[moved])
    successor, distance = relieve_successor(hosts, moved)
    assert distance > 0
    draws = np.random.default_rng(seed + 1)
    outcomes = []
    for event in range(60):
        point = draws.integers(0, RING_MASK, attributes).tolist()
        point[event % attributes] = (before + 1 + int(draws.integers(0, distance))) & RING_MASK
        wanting = [p for p, box in enumerate(boxes) if overlays.contains(box, point)]
        served = hosts.publish(int(draws.integers(NODES)), event, *point)
        outcomes.append((sorted(served), wanting))
    return successor, outcomes


@pytest.mark.parametrize("attributes", [1, 2])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(6))
def test_a_handover_after_a_shift_loses_no_event(seed: int, share: float, attributes: int) -> None:
    """Everybody whose requests stood at the peer relieved is served, once, and nobody else."""
    relieved, outcomes = events_after_a_shift(seed, share, attributes)
    assert any(wanting for _, wanting in outcomes), f"seed {seed}"
    for served, wanting in outcomes:
        assert [p for p in served if p != relieved] == [p for p in wanting if p != relieved]
        assert served.count(relieved) <= wanting.count(relieved)


def test_a_handover_after_a_load_shift_loses_no_event_of_the_peer_relieved() -> None:
    for seed in range(6):
        for served, wanting in events_after_a_shift(seed, 0.6, 1)[1]:
            assert served == wanting, f"seed {seed}"
