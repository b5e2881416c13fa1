"""Routing to the nearest: lookups end where they must, and events reach who wants them, once.

`docs/kindred.md` has the proof of which these are the instances.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, KIND, TO
from gossamer.protocol.peer.record_table.records import EVENT, EVENT_ID
from gossamer.protocol.peer.rendezvous.routing import next_hop, plan_arcs
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import settle_ring
from support import overlays

ANYWHERE = st.integers(0, RING_MASK)
CROWDED = st.integers(0, 200)
RINGS = st.one_of(
    st.lists(ANYWHERE, min_size=1, max_size=30, unique=True),
    st.lists(CROWDED, min_size=1, max_size=30, unique=True),
)
SHAPES = st.sampled_from([(1, 0), (1, 4), (2, 6), (3, 2)])


def overlay(places: list[int], shape: tuple[int, int], seed: int, **changes: Any) -> overlays.Hosts:
    """A converged overlay with R ring links a side and other links anywhere."""
    settings = Settings(
        ring_links=shape[0],
        friend_links=shape[1],
        view_size=4,
        shuffle_length=2,
        hop_limit=64,
        load_shifting=False,
        nearest_routing=True,
        **{"enter_on_the_way": True, **changes},
    )
    return overlays.Hosts.ring(settings, places, seed)


def distance(one: int, other: int) -> int:
    """The distance of two places, the shorter way around."""
    return int(min(clockwise(one, other), clockwise(other, one)))


def check_path(hosts: overlays.Hosts, places: list[int], start: int, value: int) -> None:
    """A lookup ends at the rendezvous node, and each hop but the last comes nearer to the value."""
    path = hosts.lookup(start, value)
    assert path[-1] == overlays.true_rendezvous(places, value)
    assert len(path) <= len(places)
    left = [distance(places[p], value) for p in path[:-1]]
    assert left == sorted(set(left), reverse=True)


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_every_lookup_ends_at_the_rendezvous_node_and_comes_nearer_at_every_hop(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    hosts = overlay(places, shape, seed)
    value = data.draw(st.one_of(ANYWHERE, CROWDED, st.sampled_from(places)))
    check_path(hosts, places, data.draw(st.integers(0, len(places) - 1)), value)


@pytest.mark.parametrize("shape", [(1, 0), (1, 3), (2, 6)])
def test_lookups_are_right_at_every_border(shape: tuple[int, int]) -> None:
    """From everybody, for every identifier and middle, the value before it and the one after."""
    places = [*range(6, 100, 6)]
    hosts = overlay(places, shape, seed=2)
    borders = [*places, *(place + 3 for place in places)]
    for start, border, shift in itertools.product(range(len(places)), borders, (-1, 0, 1)):
        check_path(hosts, places, start, border + shift)


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 2**32), data=st.data())
def test_requests_and_events_of_a_value_take_the_same_next_hop_whatever_peers_believe(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    """What entering the tree on the way rests on: arcs are exactly where next hops change."""
    state = overlay(places, shape, seed).state
    if data.draw(st.booleans()):
        overlays.misinform(state, seed)
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


@st.composite
def ranges(draw: st.DrawFn, places: list[int]) -> tuple[int, int]:
    """A range of any values, or between identifiers."""
    bound = st.one_of(ANYWHERE, CROWDED, st.sampled_from(places), st.sampled_from([0, RING_MASK]))
    low, high = sorted((draw(bound), draw(bound)))
    return low, high


@pytest.mark.parametrize("replicas", [0, 1])
@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_an_event_reaches_all_who_want_it_and_nobody_takes_it_twice(
    replicas: int, places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    hosts = overlay(places, shape, seed, replicas=replicas)
    wanted = [data.draw(ranges(places)) for _ in places]
    for p, interest in enumerate(wanted):
        hosts.subscribe(p, interest)
    for p in range(len(places)):
        hosts.install(p)
    bounds = [bound for interest in wanted for bound in interest]
    values = data.draw(st.lists(st.one_of(ANYWHERE, CROWDED, st.sampled_from(bounds)), max_size=9))
    for event, value in enumerate(values):
        before = len(hosts.passed)
        served = hosts.publish(data.draw(st.integers(0, len(places) - 1)), event, value)
        due = [p for p, (low, high) in enumerate(wanted) if low <= value <= high]
        assert sorted(served) == due
        copies = [int(one[TO]) for one in hosts.passed[before:] if one[KIND] == EVENT]
        if replicas == 0:
            assert len(copies) == len(set(copies))


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 2**32), data=st.data())
def test_an_event_comes_to_rest_and_is_taken_once_whatever_peers_believe(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    """Arcs and identifiers of neighbours are wrong at random."""
    hosts = overlay(places, shape, seed)
    for p in range(len(places)):
        hosts.subscribe(p, data.draw(ranges(places)))
    overlays.misinform(hosts.state, seed)
    for p in range(len(places)):
        hosts.install(p)
    installs = len(hosts.passed) - len(places)
    assert installs <= 2 * len(places) ** 2 * hosts.state.links.shape[1]
    before = len(hosts.passed)
    served = hosts.publish(0, 1, data.draw(ANYWHERE))
    assert len(served) == len(set(served))
    events = [one for one in hosts.passed[before:] if one[KIND] == EVENT]
    assert all(one[BODY + EVENT_ID] == 1 for one in events)
    assert len(events) <= len(places) * hosts.state.links.shape[1] + hosts.state.params.hop_limit


def test_a_copy_enters_the_tree_where_it_passes() -> None:
    """Peer 1 subscribes by way of 2, which the event passes: nobody else hands it down."""
    places = [10, 20, 30, 40, 50, 60]
    hosts = overlay(places, (1, 0), 1)
    hosts.install(1, (36, 38))
    assert hosts.publish(0, 7, 37) == [1]
    assert [(int(one[TO])) for one in hosts.of_kind(EVENT)] == [1, 2, 3]
    assert set(hosts.neighbours(1)) == {0, 2}
