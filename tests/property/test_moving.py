"""Peers that move: whatever moves there were, events reach all who want them, once.

`docs/kindred.md` says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import KIND, TO
from gossamer.protocol.peer.places.placement import places_of, want_place
from gossamer.protocol.peer.record_table.records import EVENT
from gossamer.protocol.peer.settings.config import kindred
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER, OFF_THE_RING
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.space.routing_key import held_boxes, points_of
from gossamer.protocol.peer.state.state import SHIFTED, WANTED
from gossamer.protocol.peer.step import subscribe
from support.draws import few_examples, larger
from support.overlays import HANDLE, Hosts

# Rounds by which moves are over, and all that follows from them.
SETTLED = 14
# By which clients have found the first peer that came onto the ring: gossip brings it to them.
FOUND = 40
RANGES = st.tuples(st.integers(0, 60), st.integers(0, 12))


def box_of(interest: tuple[int, int]) -> tuple[int, int]:
    """A range of values of 64 steps of the ring: its first, and how many more."""
    low, more = interest
    return low << 56, min(((low + more + 1) << 56) - 1, RING_MASK)


def want(hosts: Hosts, p: int, interests: list[tuple[int, int]]) -> None:
    """Let a peer subscribe to these ranges and to nothing else, from now on."""
    boxes = np.array([box_of(one) for one in interests], np.int64).reshape(-1, 2)
    bits = np.ones(len(boxes), np.int64)
    subscribe(hosts.state, p, *held_boxes(hosts.settings, boxes, bits))
    want_place(hosts.state, hosts.settings, p, boxes, bits)


def overlay(wanted: list[list[tuple[int, int]]], seed: int, **changes: Any) -> Hosts:
    """A converged overlay whose peers stand where they want to."""
    nodes = len(wanted)
    changed = {"subscriptions": 2, "move_rounds": 3, "seed": seed, **changes}
    memory = {"held_events": 64, "retention_rounds": 40, "hop_limit": 64}
    settings = kindred(nodes, **{"view_size": 6, "shuffle_length": 3, **memory, **changed})
    boxes = np.zeros((nodes, 2, 2), np.int64)
    bits = np.full((nodes, 2), -1, np.int64)
    for p, interests in enumerate(wanted):
        for i, one in enumerate(interests):
            boxes[p, i], bits[p, i] = box_of(one), 1
    keys = np.random.default_rng(seed).integers(0, RING_MASK, nodes, np.int64)
    places = places_of(settings, boxes, bits, keys)[:, 0]
    places = np.where(places < 0, keys, places)
    hosts = Hosts.ring(settings, places, seed)
    hosts.state.links[:, settings.chosen_links :] = -1
    for p, interests in enumerate(wanted):
        want(hosts, p, interests)
    return hosts


def due(wanted: list[list[tuple[int, int]]], value: int) -> list[int]:
    """Who wants an event of this value."""
    ranges = [[box_of(one) for one in interests] for interests in wanted]
    return [p for p, mine in enumerate(ranges) if any(low <= value <= high for low, high in mine)]


def publish(hosts: Hosts, p: int, event: int, value: int) -> list[int]:
    """Publish at ``p``; return who was served so far."""
    point = points_of(hosts.settings, np.array([[value]]), np.array([event]))[0]
    return sorted(hosts.publish(p, event, *point.tolist()))


def check_links(hosts: Hosts) -> None:
    """Nobody links to a peer twice: the one of two links that is not heard of would seem dead."""
    for links in hosts.state.links:
        handles = [int(word) & HANDLE for word in links if word >= 0]
        assert len(set(handles)) == len(handles)


def check_ring(hosts: Hosts, wanted: list[list[tuple[int, int]]]) -> None:
    """Those who want something stand on the ring, and know their true neighbours there."""
    places = hosts.identifiers()
    assert len(set(places.tolist())) == len(places)
    order = [p for p in np.argsort(places).tolist() if places[p] < OFF_THE_RING]
    assert set(order) >= {p for p, interests in enumerate(wanted) if interests}
    for i, p in enumerate(order):
        state = hosts.state
        if len(order) > 1:
            assert state.sampler.profile[p, ARC_START] == int(places[order[i - 1]])
            after = int(places[order[(i + 1) % len(order)]])
            assert state.link_profile[p, state.successor[p], IDENTIFIER] == after


def clients_wait(hosts: Hosts) -> bool:
    """Whether somebody is on the ring, and a peer that is not knows nobody there."""
    off = hosts.identifiers() >= OFF_THE_RING
    alone = (hosts.state.links < 0).all(axis=1)
    return bool((off & alone).any() and not off.all())


INTERESTS = st.lists(st.lists(RANGES, max_size=2), min_size=2, max_size=14)


@few_examples(6)
@given(wanted=INTERESTS, seed=st.integers(0, 99), data=st.data())
def test_after_moves_every_event_reaches_all_who_want_it_and_nobody_twice(
    wanted: list[list[tuple[int, int]]], seed: int, data: st.DataObject
) -> None:
    hosts = overlay(wanted, seed)
    nodes = len(wanted)
    hosts.rounds(3)
    for _ in range(data.draw(st.integers(1, 3))):
        for p in data.draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=nodes)):
            wanted[p] = data.draw(st.lists(RANGES, max_size=2))
            want(hosts, p, wanted[p])
        for _ in range(data.draw(st.integers(0, 4))):
            hosts.cycle()
            check_links(hosts)
    for _ in range(SETTLED):
        hosts.cycle()
        check_links(hosts)
    assert (hosts.state.seat[:, WANTED] < 0).all()
    check_ring(hosts, wanted)
    for _ in range(FOUND - SETTLED):
        if clients_wait(hosts):
            hosts.cycle()
    for p, interests in enumerate(wanted):
        place = int(hosts.identifiers()[p])
        assert not interests or p in due(wanted, place)
    for event in range(8):
        value = data.draw(st.integers(0, RING_MASK))
        before = len(hosts.passed)
        publisher = data.draw(st.integers(0, nodes - 1))
        assert publish(hosts, publisher, event, value) == due(wanted, value)
        copies = [int(one[TO]) for one in hosts.passed[before:] if one[KIND] == EVENT]
        assert len(copies) <= 2 * nodes


@pytest.mark.parametrize("nodes", [2, 6, 14])
@pytest.mark.parametrize("seed", range(larger(4, 10)))
def test_clients_find_the_first_peer_that_comes_onto_the_ring(nodes: int, seed: int) -> None:
    """It has no neighbours to tell, so that only gossip about peers brings it to others."""
    wanted: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    hosts = overlay(wanted, seed)
    hosts.rounds(3)
    wanted[0] = [(0, 0)]
    want(hosts, 0, wanted[0])
    hosts.rounds(FOUND)
    for event, publisher in enumerate(range(1, nodes)):
        assert publish(hosts, publisher, event, 0) == [0], f"seed {seed}"


@few_examples(6)
@given(wanted=INTERESTS, seed=st.integers(0, 99), data=st.data())
def test_what_is_published_during_moves_is_not_lost(
    wanted: list[list[tuple[int, int]]], seed: int, data: st.DataObject
) -> None:
    """By those who wanted it before the moves and after; what one missed is handed on to it."""
    hosts = overlay(wanted, seed)
    nodes = len(wanted)
    hosts.rounds(3)
    movers = data.draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=nodes, unique=True))
    after = list(wanted)
    for p in movers:
        after[p] = data.draw(st.lists(RANGES, min_size=1, max_size=2))
    events: dict[int, int] = {}
    for event in range(12):
        if event < len(movers):
            want(hosts, movers[event], after[movers[event]])
        events[event] = data.draw(st.integers(0, RING_MASK))
        publish(hosts, data.draw(st.integers(0, nodes - 1)), event, events[event])
        if data.draw(st.booleans()):
            hosts.cycle()
    hosts.rounds(SETTLED)
    for event, value in events.items():
        served = [p for p, one, *_ in hosts.served if one == event]
        assert len(served) == len(set(served))
        always = set(due(wanted, value)) & set(due(after, value))
        assert always <= set(served), (event, value)


def test_a_peer_moves_where_its_interest_has_gone_and_no_farther() -> None:
    wanted = [[(4 * p, 2)] for p in range(12)]
    hosts = overlay(wanted, 1)
    hosts.rounds(2)
    before = hosts.identifiers().copy()
    want(hosts, 3, [(41, 1)])
    want(hosts, 5, [(20, 3)])
    hosts.rounds(4)
    low, high = box_of((41, 1))
    assert low <= hosts.identifiers()[3] <= high
    still = [p for p in range(12) if p != 3]
    assert hosts.identifiers()[still].tolist() == before[still].tolist()
    assert hosts.state.counters[:, SHIFTED].tolist() == [int(p == 3) for p in range(12)]
    check_ring(hosts, wanted)


def test_a_peer_that_wants_nothing_leaves_the_ring_and_comes_back_when_it_does() -> None:
    wanted = [[(4 * p, 3)] for p in range(12)]
    hosts = overlay(wanted, 2, entry_links=2)
    hosts.rounds(3)
    want(hosts, 3, [])
    hosts.rounds(5)
    assert hosts.identifiers()[3] >= OFF_THE_RING
    others = [p for p in range(12) if p != 3]
    linked = hosts.state.links[others]
    assert 3 not in {int(word) & HANDLE for word in linked[linked >= 0]}
    wanted[3] = []
    for event, value in enumerate(range(1 << 57, 48 << 56, 7 << 56)):
        assert publish(hosts, 3, event, value) == due(wanted, value)
    wanted[3] = [(40, 5)]
    want(hosts, 3, wanted[3])
    hosts.rounds(5)
    assert 3 in due(wanted, int(hosts.identifiers()[3]))
    check_ring(hosts, wanted)
    assert publish(hosts, 0, 99, 41 << 56) == due(wanted, 41 << 56)
