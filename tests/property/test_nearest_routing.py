"""Kindred: events reach who wants them, once, whoever moves.

`docs/kindred.md` has the proof of which these are the instances, and says why peers move.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, KIND, TO, Words
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.settings.presets import kindred
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER, OFF_THE_RING
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise, held_boxes, points_of
from gossamer.protocol.peer.state.links import settle_ring
from gossamer.protocol.peer.state.lookup import MOST_STRAYS, next_hop, plan_arcs
from gossamer.protocol.peer.state.state import HOPS_EXCEEDED, SHIFTED, WANTED
from gossamer.protocol.peer.step import subscribe
from gossamer.protocol.peer.topology.placement import places_of, want_place
from property.test_routing import ANYWHERE, CROWDED, NEAREST, RINGS, SHAPES, Shape
from property.test_routing import overlay as any_overlay
from support.draws import few_examples, larger
from support.overlays import HANDLE, SMALL, Hosts, misinform, record

Interests = list[tuple[int, int]]
# Rounds by which moves are over, and all that follows from them.
SETTLED = 14
# By which clients have found the first peer that came onto the ring: gossip brings it to them.
FOUND = 40
RANGES = st.tuples(st.integers(0, 60), st.integers(0, 12))
INTERESTS = st.lists(st.lists(RANGES, max_size=2), min_size=2, max_size=14)


def overlay(places: list[int], shape: Shape, seed: int, replicas: int = 0) -> Hosts:
    return any_overlay(places, shape, seed, **NEAREST, replicas=replicas)


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 2**32), data=st.data())
def test_next_hops_of_arcs(places: list[int], shape: Shape, seed: int, data: st.DataObject) -> None:
    """What entering the tree on the way rests on: arcs are exactly where next hops change."""
    state = overlay(places, shape, seed).state
    if data.draw(st.booleans()):
        misinform(state, seed)
        for q in range(len(places)):
            settle_ring(state, q)
    p = data.draw(st.integers(0, len(places) - 1))
    me = int(state.sampler.profile[p, IDENTIFIER])
    arcs = int(plan_arcs(state, p))
    bounds, hops = state.work.bounds[:arcs].tolist(), state.work.hops[:arcs].tolist()
    near = [me + bound + shift for bound in bounds for shift in (0, 1)]
    for value in [*near, *data.draw(st.lists(ANYWHERE, max_size=8))]:
        hop = int(next_hop(state, p, value & RING_MASK))
        wanted = clockwise(me, value & RING_MASK)
        of_arc = next((hops[i] for i in range(arcs) if wanted <= bounds[i]), -1)
        assert (hop >> 1 if hop >= 0 else -1) == (of_arc if wanted else -1)


def subscribe_all(hosts: Hosts, data: st.DataObject) -> list[tuple[int, int]]:
    """Let each peer want a range of any values, or between identifiers."""
    places = hosts.identifiers().tolist()
    bound = st.one_of(ANYWHERE, CROWDED, st.sampled_from(places), st.sampled_from([0, RING_MASK]))
    wanted = []
    for p in range(len(places)):
        low, high = sorted((data.draw(bound), data.draw(bound)))
        hosts.subscribe(p, (low, high))
        wanted.append((low, high))
    return wanted


@pytest.mark.parametrize("replicas", [0, 1])
@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_an_event_reaches_all_who_want_it_and_nobody_takes_it_twice(
    replicas: int, places: list[int], shape: Shape, seed: int, data: st.DataObject
) -> None:
    hosts = overlay(places, shape, seed, replicas)
    wanted = subscribe_all(hosts, data)
    for p in range(len(places)):
        hosts.install(p)
    bounds = [bound for interest in wanted for bound in interest]
    values = data.draw(st.lists(st.one_of(ANYWHERE, CROWDED, st.sampled_from(bounds)), max_size=9))
    for event, value in enumerate(values):
        before = len(hosts.passed)
        served = hosts.publish(data.draw(st.integers(0, len(places) - 1)), event, value)
        assert sorted(served) == [p for p, (low, high) in enumerate(wanted) if low <= value <= high]
        copies = [int(one[TO]) for one in hosts.passed[before:] if one[KIND] == records.EVENT]
        assert replicas or len(copies) == len(set(copies))


def test_copies_come_nearer_by_one_identifier_at_a_time() -> None:
    """They are no strays, however close to each other the peers of a crowd stand."""
    count = 20
    hosts = overlay([*range(count - 2), count - 1, count - 2], (1, 0), seed=0, replicas=1)
    for p in range(count):
        hosts.subscribe(p, (0, 6) if p == count - 1 else (0, 0))
    for p in range(count):
        hosts.install(p)
    for event, publisher in enumerate(range(count)):
        assert hosts.publish(publisher, event, 6) == [count - 1], publisher


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 2**32), data=st.data())
def test_events_come_to_rest(
    places: list[int], shape: Shape, seed: int, data: st.DataObject
) -> None:
    """Arcs and identifiers of neighbours are wrong at random."""
    hosts = overlay(places, shape, seed)
    subscribe_all(hosts, data)
    misinform(hosts.state, seed)
    for p in range(len(places)):
        hosts.install(p)
    assert len(hosts.passed) - len(places) <= 2 * len(places) ** 2 * hosts.state.links.shape[1]
    before = len(hosts.passed)
    served = hosts.publish(0, 1, data.draw(ANYWHERE))
    assert len(served) == len(set(served))
    events = [one for one in hosts.passed[before:] if one[KIND] == records.EVENT]
    assert all(one[BODY + records.EVENT_ID] == 1 for one in events)
    assert len(events) <= len(places) * hosts.state.links.shape[1] + hosts.state.params.hop_limit


def test_a_copy_enters_the_tree_where_it_passes() -> None:
    """Peer 1 subscribes by way of 2, which the event passes: nobody else hands it down."""
    hosts = overlay([10, 20, 30, 40, 50, 60], (1, 0), 1)
    hosts.install(1, (36, 38))
    assert hosts.publish(0, 7, 37) == [1]
    assert [int(one[TO]) for one in hosts.of_kind(records.EVENT)] == [1, 2, 3]
    assert set(hosts.neighbours(1)) == {0, 2}


def box_of(interest: tuple[int, int]) -> tuple[int, int]:
    """A range of values of 64 steps of the ring: its first, and how many more."""
    low, more = interest
    return low << 56, min(((low + more + 1) << 56) - 1, RING_MASK)


def want(hosts: Hosts, p: int, interests: Interests) -> None:
    boxes = np.array([box_of(one) for one in interests], np.int64).reshape(-1, 2)
    bits = np.ones(len(boxes), np.int64)
    subscribe(hosts.state, p, *held_boxes(hosts.settings, boxes, bits))
    want_place(hosts.state, hosts.settings, p, boxes, bits)


def placed(wanted: list[Interests], seed: int, **changes: Any) -> Hosts:
    nodes = len(wanted)
    views = {"view_size": 6, "shuffle_length": 3, "hop_limit": 64}
    memory = {"held_events": 64, "retention_rounds": 40, "subscriptions": 2, "move_rounds": 3}
    settings = kindred(nodes, seed=seed, **views, **memory, **changes)
    boxes = np.zeros((nodes, 2, 2), np.int64)
    bits = np.full((nodes, 2), -1, np.int64)
    for p, interests in enumerate(wanted):
        for i, one in enumerate(interests):
            boxes[p, i], bits[p, i] = box_of(one), 1
    keys = np.random.default_rng(seed).integers(0, RING_MASK, nodes, np.int64)
    places = places_of(settings, boxes, bits, keys)[:, 0]
    hosts = Hosts.ring(settings, np.where(places < 0, keys, places), seed)
    hosts.state.links[:, settings.chosen_links :] = -1
    for p, interests in enumerate(wanted):
        want(hosts, p, interests)
    return hosts


def due(wanted: list[Interests], value: int) -> list[int]:
    ranges = [[box_of(one) for one in interests] for interests in wanted]
    return [p for p, mine in enumerate(ranges) if any(low <= value <= high for low, high in mine)]


def publish_at(hosts: Hosts, p: int, event: int, value: int) -> list[int]:
    point = points_of(hosts.settings, np.array([[value]]), np.array([event]))[0]
    return sorted(hosts.publish(p, event, *point.tolist()))


def cycle(hosts: Hosts) -> None:
    """Let a round pass; nobody links to a peer twice.

    The one of two links that is not heard of would seem dead.
    """
    hosts.cycle()
    for links in hosts.state.links:
        handles = [int(word) & HANDLE for word in links if word >= 0]
        assert len(set(handles)) == len(handles)


def check_ring(hosts: Hosts, wanted: list[Interests]) -> None:
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


@few_examples(6)
@given(wanted=INTERESTS, seed=st.integers(0, 99), data=st.data())
def test_after_moves_each_gets_it_once(
    wanted: list[Interests], seed: int, data: st.DataObject
) -> None:
    hosts = placed(wanted, seed)
    nodes = len(wanted)
    hosts.rounds(3)
    for _ in range(data.draw(st.integers(1, 3))):
        for p in data.draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=nodes)):
            wanted[p] = data.draw(st.lists(RANGES, max_size=2))
            want(hosts, p, wanted[p])
        for _ in range(data.draw(st.integers(0, 4))):
            cycle(hosts)
    for _ in range(SETTLED):
        cycle(hosts)
    assert (hosts.state.seat[:, WANTED] < 0).all()
    check_ring(hosts, wanted)
    for _ in range(FOUND - SETTLED):
        off = hosts.identifiers() >= OFF_THE_RING
        if (off & (hosts.state.links < 0).all(axis=1)).any() and not off.all():
            hosts.cycle()  # clients know nobody yet
    for p, interests in enumerate(wanted):
        assert not interests or p in due(wanted, int(hosts.identifiers()[p]))
    for event in range(8):
        value = data.draw(ANYWHERE)
        before = len(hosts.passed)
        publisher = data.draw(st.integers(0, nodes - 1))
        assert publish_at(hosts, publisher, event, value) == due(wanted, value)
        copies = [int(one[TO]) for one in hosts.passed[before:] if one[KIND] == records.EVENT]
        assert len(copies) <= 2 * nodes


@pytest.mark.parametrize("nodes", [2, 6, 14])
@pytest.mark.parametrize("seed", range(larger(4, 10)))
def test_clients_find_the_first_peer_that_comes_onto_the_ring(nodes: int, seed: int) -> None:
    """It has no neighbours to tell, so that only gossip about peers brings it to others."""
    wanted: list[Interests] = [[] for _ in range(nodes)]
    hosts = placed(wanted, seed)
    hosts.rounds(3)
    wanted[0] = [(0, 0)]
    want(hosts, 0, wanted[0])
    hosts.rounds(FOUND)
    for event, publisher in enumerate(range(1, nodes)):
        assert publish_at(hosts, publisher, event, 0) == [0], f"seed {seed}"


@few_examples(6)
@given(wanted=INTERESTS, seed=st.integers(0, 99), data=st.data())
def test_nothing_is_lost_during_moves(
    wanted: list[Interests], seed: int, data: st.DataObject
) -> None:
    """By those who wanted it before the moves and after; what one missed is handed on to it."""
    hosts = placed(wanted, seed)
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
        publish_at(hosts, data.draw(st.integers(0, nodes - 1)), event, events[event])
        if data.draw(st.booleans()):
            hosts.cycle()
    hosts.rounds(SETTLED)
    for event, value in events.items():
        served = [p for p, one, *_ in hosts.served if one == event]
        assert len(served) == len(set(served))
        assert (set(due(wanted, value)) & set(due(after, value))) <= set(served), (event, value)


def test_a_peer_moves_where_its_interest_has_gone_and_no_farther() -> None:
    wanted = [[(4 * p, 2)] for p in range(12)]
    hosts = placed(wanted, 1)
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
    hosts = placed(wanted, 2, entry_links=2)
    hosts.rounds(3)
    want(hosts, 3, [])
    hosts.rounds(5)
    assert hosts.identifiers()[3] >= OFF_THE_RING
    linked = hosts.state.links[[p for p in range(12) if p != 3]]
    assert 3 not in {int(word) & HANDLE for word in linked[linked >= 0]}
    wanted[3] = []
    for event, value in enumerate(range(1 << 57, 48 << 56, 7 << 56)):
        assert publish_at(hosts, 3, event, value) == due(wanted, value)
    wanted[3] = [(40, 5)]
    want(hosts, 3, wanted[3])
    hosts.rounds(5)
    assert 3 in due(wanted, int(hosts.identifiers()[3]))
    check_ring(hosts, wanted)
    assert publish_at(hosts, 0, 99, 41 << 56) == due(wanted, 41 << 56)


# Nothing that is on its way goes round, wherever peers move meanwhile without telling anybody.


EVENTS = 4
PLACES = st.lists(st.integers(0, RING_MASK), min_size=2, max_size=24, unique=True)
SWITCH = st.booleans()
RULES = st.fixed_dictionaries(
    {"nearest_routing": SWITCH, "enter_on_the_way": SWITCH, "replicas": st.integers(0, 2)}
)


def misled(places: list[int], shape: Shape, rules: dict[str, Any], seed: int, moves: int) -> Hosts:
    """An overlay of wrong views, in which so many peers move while records are under way."""
    ring, friends = shape
    links = {"ring_links": ring, "friend_links": friends, "join_lookup": True}
    hosts = Hosts.ring(SMALL, places, seed, **links, **rules)
    misinform(hosts.state, seed)
    draws, left = random.Random(seed), [moves]

    def move(_: Words) -> bool:
        if left[0] > 0 and draws.random() < 0.2:
            left[0] -= 1
            hosts.identifiers()[draws.randrange(len(places))] = draws.randrange(RING_MASK)
        return False

    hosts.loses = move
    return hosts


@given(places=PLACES, shape=SHAPES, rules=RULES, seed=st.integers(0, 9999), moves=st.integers(0, 8))
def test_no_copy_and_no_lookup_goes_round(
    places: list[int], shape: Shape, rules: dict[str, Any], seed: int, moves: int
) -> None:
    hosts = misled(places, shape, rules, seed, moves)
    draws = random.Random(seed + 1)
    # In each of the two phases after each stray no peer and place comes twice.
    most = 2 * (MOST_STRAYS + 1) * (len(places) + moves) + 1
    for event in range(EVENTS):
        hosts.publish(draws.randrange(len(places)), event, draws.randrange(RING_MASK))
    hops = [
        w[BODY + records.EVENT_HOPS]
        for w in hosts.of_kind(records.EVENT)
        if w[BODY + records.EVENT_MODE] < records.TREE
    ]
    assert max(hops, default=0) <= most
    assert hosts.state.counters[:, HOPS_EXCEEDED].sum() == 0
    hosts = misled(places, shape, rules, seed, moves)
    for p in range(len(places)):
        before = len(hosts.of_kind(records.FIND_PLACE))
        to = draws.choice([q for q in range(len(places)) if q != p])
        hosts.handle(record(records.FIND_PLACE, to, p, [0, 1, *hosts.descriptor(p)]))
        assert len(hosts.of_kind(records.FIND_PLACE)) - before <= most


@given(places=PLACES, rules=RULES, seed=st.integers(0, 9999))
def test_an_empty_ring_brings_all_to_rest(
    places: list[int], rules: dict[str, Any], seed: int
) -> None:
    hosts = misled(places, (2, 6), rules, seed, 0)
    hosts.state.sampler.profile[:, IDENTIFIER] = OFF_THE_RING
    hosts.publish(0, 1, seed)
    assert len(hosts.of_kind(records.EVENT)) <= (1 + rules["replicas"]) * (MOST_STRAYS + 2)
