"""Greedy lookups end at the rendezvous node and cannot loop (Vinifera, Sec. IV-B2)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.peer.rendezvous.routing import next_hop
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from support.overlays import HANDLE, Hosts, arc_of, misinform, true_rendezvous

ANYWHERE = st.integers(0, RING_MASK)
CROWDED = st.integers(0, 200)
RINGS = st.one_of(
    st.lists(ANYWHERE, min_size=1, max_size=40, unique=True),
    st.lists(CROWDED, min_size=1, max_size=40, unique=True),
)
SHAPES = st.sampled_from([(1, 0), (1, 3), (2, 6), (3, 1)])


def overlay(places: list[int], shape: tuple[int, int], seed: int) -> Hosts:
    """A converged overlay with R ring links a side and K_f random ones."""
    ring, friends = shape
    settings = Settings(
        ring_links=ring, friend_links=friends, view_size=4, shuffle_length=2, hop_limit=64
    )
    return Hosts.ring(settings, places, seed)


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_every_lookup_ends_at_the_rendezvous_node_and_comes_closer_at_every_hop(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    hosts = overlay(places, shape, seed)
    value = data.draw(st.one_of(ANYWHERE, CROWDED, st.sampled_from(places)))
    start = data.draw(st.integers(0, len(places) - 1))
    path = hosts.lookup(start, value)
    rendezvous = true_rendezvous(places, value)
    assert path[-1] == rendezvous
    assert len(path) <= len(places)
    left = [clockwise(places[p], value) for p in path if p != rendezvous]
    assert left == sorted(set(left), reverse=True)


@pytest.mark.parametrize("shape", [(1, 0), (1, 3), (2, 6)])
def test_lookups_are_right_at_every_border_of_arcs(shape: tuple[int, int]) -> None:
    """From everybody, for every identifier, the value before it and the one after."""
    places = [*range(5, 100, 5)]
    hosts = overlay(places, shape, seed=2)
    for start, place, shift in itertools.product(range(len(places)), places, (-1, 0, 1)):
        path = hosts.lookup(start, place + shift)
        rendezvous = true_rendezvous(places, place + shift)
        assert path[-1] == rendezvous
        left = [clockwise(places[p], place + shift) for p in path if p != rendezvous]
        assert left == sorted(set(left), reverse=True)


def test_the_last_hop_is_known_for_what_it_is() -> None:
    """Of a neighbour it is known which values are its own; others it only lies before."""
    hosts = overlay([*range(5, 100, 5)], (1, 3), seed=2)
    state = hosts.state
    for slot, word in enumerate(state.links[0]):
        q = int(word) & HANDLE
        before, end = arc_of(state, q)
        assert int(next_hop(state, 0, end)) == 2 * slot + 1
        assert int(next_hop(state, 0, (before + 1) & RING_MASK)) == 2 * slot + 1
        if int(next_hop(state, 0, end + 1)) >= 0 and end + 1 < 95:
            assert int(next_hop(state, 0, end + 1)) != 2 * slot + 1


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), value=ANYWHERE)
def test_an_event_comes_to_rest_at_the_rendezvous_node(
    places: list[int], shape: tuple[int, int], seed: int, value: int
) -> None:
    hosts = overlay(places, shape, seed)
    hosts.publish(0, 1, value)
    seen = [p for p in range(len(places)) if (hosts.state.event_copies[p] == 1).any()]
    assert seen == [true_rendezvous(places, value)]


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 2**32), value=ANYWHERE)
def test_an_event_comes_to_rest_somewhere_whatever_peers_believe(
    places: list[int], shape: tuple[int, int], seed: int, value: int
) -> None:
    """Arcs and identifiers of neighbours are wrong at random: copies still come to an end."""
    hosts = overlay(places, shape, seed)
    misinform(hosts.state, seed)
    hosts.publish(0, 1, value)
    assert len(hosts.passed) <= 1 + hosts.state.params.hop_limit
