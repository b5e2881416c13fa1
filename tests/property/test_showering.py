"""Showering reaches the rendezvous nodes of a range, all of them and no others (Algorithm 2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.peer.record_table.records import INSTALL_TIMER
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from support import overlays

ANYWHERE = st.integers(0, RING_MASK)
RINGS = st.lists(ANYWHERE, min_size=2, max_size=30, unique=True)
SHAPES = st.sampled_from([(1, 0), (1, 4), (2, 6), (3, 2)])


@st.composite
def ranges_on(draw: st.DrawFn, places: list[int]) -> tuple[int, int]:
    """A range: of one value, of the whole ring, between identifiers, or any."""
    bound = st.one_of(ANYWHERE, st.sampled_from(places), st.sampled_from([0, RING_MASK]))
    low, high = sorted((draw(bound), draw(bound)))
    return draw(st.sampled_from([(low, high), (low, low), (0, RING_MASK)]))


def overlay(places: list[int], shape: tuple[int, int], seed: int) -> overlays.Hosts:
    """A converged overlay with R ring links a side and K_f random ones."""
    settings = Settings(
        ring_links=shape[0],
        friend_links=shape[1],
        view_size=4,
        shuffle_length=2,
        hop_limit=64,
        load_shifting=False,
    )
    return overlays.Hosts.ring(settings, places, seed)


def rendezvous_nodes(places: list[int], low: int, high: int) -> set[int]:
    """Every peer that answers for a value of [low, high], by the definition."""
    inside = {q for q, place in enumerate(places) if low <= place <= high}
    return inside | {overlays.true_rendezvous(places, high)}


def meets_arc(hosts: overlays.Hosts, q: int, low: int, high: int) -> bool:
    """Whether [low, high] holds a value that peer ``q`` answers for."""
    before, me = overlays.arc_of(hosts.state, q)
    first = (before + 1) & RING_MASK
    length = clockwise(first, me)
    return bool(clockwise(first, low) <= length or clockwise(low, first) <= high - low)


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_a_range_is_installed_at_exactly_its_rendezvous_nodes(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    hosts = overlay(places, shape, seed)
    low, high = data.draw(ranges_on(places))
    hosts.subscribe(0, (low, high))
    hosts.tick(0, INSTALL_TIMER)
    reached = {
        q
        for q in range(len(places))
        for _, _, ((entry_low, entry_high),) in hosts.entries(q)
        if meets_arc(hosts, q, entry_low, entry_high)
    }
    assert reached == rendezvous_nodes(places, low, high) - {0}


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_a_showered_subscriber_is_reached_from_every_value_of_its_range_and_no_other(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    hosts = overlay(places, shape, seed)
    low, high = data.draw(ranges_on(places))
    hosts.subscribe(0, (low, high))
    hosts.tick(0, INSTALL_TIMER)
    values = [low, high, *data.draw(st.lists(st.one_of(ANYWHERE, st.integers(low, high))))]
    for event, value in enumerate(values):
        publisher = data.draw(st.integers(0, len(places) - 1))
        expected = [0] if low <= value <= high else []
        assert hosts.publish(publisher, event, value) == expected


@pytest.mark.parametrize("shape", [(1, 0), (1, 4), (2, 6)])
@pytest.mark.parametrize("ends", [(0, RING_MASK), (13, 71), (20, 65), (96, RING_MASK)])
def test_no_value_of_a_range_is_lost_where_arcs_meet(
    shape: tuple[int, int], ends: tuple[int, int]
) -> None:
    """Every identifier, the value before it and the one after, inside and outside the range."""
    places = [*range(5, 100, 5)]
    hosts = overlay(places, shape, seed=2)
    hosts.subscribe(4, ends)
    hosts.tick(4, INSTALL_TIMER)
    for value in range(3, 98):
        expected = [4] if ends[0] <= value <= ends[1] else []
        assert hosts.publish(value % len(places), value, value) == expected


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_every_part_goes_to_a_neighbour_that_owns_it_or_comes_before_it(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    """The departure from Algorithm 2: no neighbour gets what lies before its own arc."""
    hosts = overlay(places, shape, seed)
    low, high = data.draw(ranges_on(places))
    hosts.subscribe(0, (low, high))
    hosts.tick(0, INSTALL_TIMER)
    for q in hosts.neighbours(0):
        for source, _, ((entry_low, entry_high),) in hosts.entries(q):
            if source == 0 and not meets_arc(hosts, q, entry_low, entry_high):
                assert clockwise(places[0], places[q]) < clockwise(places[0], entry_low)


@pytest.mark.parametrize("shape", [(1, 0), (1, 4), (3, 2)])
@given(places=RINGS, seed=st.integers(0, 2**32), data=st.data())
def test_showering_ends_whatever_peers_believe(
    shape: tuple[int, int], places: list[int], seed: int, data: st.DataObject
) -> None:
    """Arcs and identifiers of neighbours are wrong at random: requests still come to an end."""
    hosts = overlay(places, shape, seed)
    overlays.misinform(hosts.state, seed)
    for p in range(len(places)):
        hosts.subscribe(p, data.draw(ranges_on(places)))
    for p in range(len(places)):
        hosts.tick(p, INSTALL_TIMER)
    installs = len(hosts.passed) - len(places)
    assert installs <= 2 * len(places) ** 2 * hosts.state.links.shape[1]
