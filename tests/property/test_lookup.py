"""Lookups and showering end at the rendezvous nodes, all and no others (Vinifera, IV-B2)."""

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
SHAPES = st.sampled_from([(1, 0), (1, 3), (1, 4), (2, 6), (3, 1), (3, 2)])


def overlay(places: list[int], shape: tuple[int, int], seed: int) -> Hosts:
    """A converged overlay with R ring links a side and K_f random ones."""
    settings = Settings(
        ring_links=shape[0],
        friend_links=shape[1],
        view_size=4,
        shuffle_length=2,
        hop_limit=64,
        load_shifting=False,
    )
    return Hosts.ring(settings, places, seed)


@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_every_lookup_ends_at_the_rendezvous_node_and_comes_closer_at_every_hop(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    hosts = overlay(places, shape, seed)
    value = data.draw(st.one_of(ANYWHERE, CROWDED, st.sampled_from(places)))
    path = hosts.lookup(data.draw(st.integers(0, len(places) - 1)), value)
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
    state = overlay([*range(5, 100, 5)], (1, 3), seed=2).state
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


SEVERAL = st.lists(ANYWHERE, min_size=2, max_size=30, unique=True)


@st.composite
def ranges_on(draw: st.DrawFn, places: list[int]) -> tuple[int, int]:
    """A range: of one value, of the whole ring, between identifiers, or any."""
    bound = st.one_of(ANYWHERE, st.sampled_from(places), st.sampled_from([0, RING_MASK]))
    low, high = sorted((draw(bound), draw(bound)))
    return draw(st.sampled_from([(low, high), (low, low), (0, RING_MASK)]))


@st.composite
def showered(
    draw: st.DrawFn, places: list[int], shape: tuple[int, int], seed: int
) -> tuple[Hosts, int, int]:
    hosts = overlay(places, shape, seed)
    low, high = draw(ranges_on(places))
    hosts.install(0, (low, high))
    return hosts, low, high


def rendezvous_nodes(places: list[int], low: int, high: int) -> set[int]:
    """Every peer that answers for a value of [low, high], by the definition."""
    inside = {q for q, place in enumerate(places) if low <= place <= high}
    return inside | {true_rendezvous(places, high)}


def meets_arc(hosts: Hosts, q: int, low: int, high: int) -> bool:
    before, me = arc_of(hosts.state, q)
    first = (before + 1) & RING_MASK
    length = clockwise(first, me)
    return bool(clockwise(first, low) <= length or clockwise(low, first) <= high - low)


@given(places=SEVERAL, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_a_range_is_installed_at_exactly_its_rendezvous_nodes(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    hosts, low, high = data.draw(showered(places, shape, seed))
    reached = {
        q
        for q in range(len(places))
        for _, _, ((entry_low, entry_high),) in hosts.entries(q)
        if meets_arc(hosts, q, entry_low, entry_high)
    }
    assert reached == rendezvous_nodes(places, low, high) - {0}


@given(places=SEVERAL, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_a_showered_subscriber_is_reached_from_every_value_of_its_range_and_no_other(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    hosts, low, high = data.draw(showered(places, shape, seed))
    values = [low, high, *data.draw(st.lists(st.one_of(ANYWHERE, st.integers(low, high))))]
    for event, value in enumerate(values):
        publisher = data.draw(st.integers(0, len(places) - 1))
        expected = [0] if low <= value <= high else []
        assert hosts.publish(publisher, event, value) == expected


@pytest.mark.parametrize("shape", [(1, 0), (1, 4), (2, 6)])
@pytest.mark.parametrize("ends", [(0, RING_MASK), (13, 71), (20, 65), (96, RING_MASK)])
def test_no_value_is_lost_where_arcs_meet(shape: tuple[int, int], ends: tuple[int, int]) -> None:
    """Every identifier, the value before it and the one after, inside and outside the range."""
    places = [*range(5, 100, 5)]
    hosts = overlay(places, shape, seed=2)
    hosts.install(4, ends)
    for value in range(3, 98):
        expected = [4] if ends[0] <= value <= ends[1] else []
        assert hosts.publish(value % len(places), value, value) == expected


@given(places=SEVERAL, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_every_part_goes_to_a_neighbour_that_owns_it_or_comes_before_it(
    places: list[int], shape: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    """The departure from Algorithm 2: no neighbour gets what lies before its own arc."""
    hosts, *_ = data.draw(showered(places, shape, seed))
    for q in hosts.neighbours(0):
        for source, _, ((entry_low, entry_high),) in hosts.entries(q):
            if source == 0 and not meets_arc(hosts, q, entry_low, entry_high):
                assert clockwise(places[0], places[q]) < clockwise(places[0], entry_low)


@pytest.mark.parametrize("shape", [(1, 0), (1, 4), (3, 2)])
@given(places=SEVERAL, seed=st.integers(0, 2**32), data=st.data())
def test_showering_ends_whatever_peers_believe(
    shape: tuple[int, int], places: list[int], seed: int, data: st.DataObject
) -> None:
    """Arcs and identifiers of neighbours are wrong at random: requests still come to an end."""
    hosts = overlay(places, shape, seed)
    misinform(hosts.state, seed)
    for p in range(len(places)):
        hosts.subscribe(p, data.draw(ranges_on(places)))
    for p in range(len(places)):
        hosts.install(p)
    installs = len(hosts.passed) - len(places)
    assert installs <= 2 * len(places) ** 2 * hosts.state.links.shape[1]
