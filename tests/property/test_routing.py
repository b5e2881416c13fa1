"""Lookups, showering and content routing tables lose nothing (Vinifera, IV-B2 and IV-B3)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, KIND, TO
from gossamer.protocol.peer.record_table.records import INSTALL, INSTALL_TIMER
from gossamer.protocol.peer.rendezvous.installation_boxes import forwarding_limit
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state import routing_table as routing_table
from gossamer.protocol.peer.state.lookup import next_hop, own_arc_begins
from gossamer.protocol.peer.state.state import MERGED, REFUSED_ENTRIES, State, make_state
from support.draws import larger
from support.overlays import (
    HANDLE,
    SMALL,
    Box,
    Hosts,
    arc_of,
    contains,
    entries,
    install_record,
    misinform,
    record,
    true_rendezvous,
)

ANYWHERE = st.integers(0, RING_MASK)
CROWDED = st.integers(0, 200)
RINGS = st.one_of(
    st.lists(ANYWHERE, min_size=1, max_size=40, unique=True),
    st.lists(CROWDED, min_size=1, max_size=40, unique=True),
)
Shape = tuple[int, int]
SHAPES = st.sampled_from([(1, 0), (1, 3), (1, 4), (2, 6), (3, 1), (3, 2)])
NEAREST = {"nearest_routing": True, "enter_on_the_way": True}
# As Vinifera routes, and as kindred does.
both_ways = pytest.mark.parametrize("rules", [{}, NEAREST], ids=["clockwise", "nearest"])
AT_FIVES = [*range(5, 100, 5)]
SEVERAL = st.lists(ANYWHERE, min_size=2, max_size=30, unique=True)
GRID = range(7)
Routed = tuple[int, Box]


def overlay(places: list[int], shape: Shape, seed: int, **rules: Any) -> Hosts:
    """A converged overlay with R ring links a side and K_f random ones."""
    links = {"ring_links": shape[0], "friend_links": shape[1], "hop_limit": 64}
    return Hosts.ring(SMALL, places, seed, **links, **rules)


def check_path(hosts: Hosts, start: int, value: int, rules: dict[str, bool]) -> None:
    """A lookup ends at the rendezvous node, and comes closer at every hop."""
    places = hosts.identifiers().tolist()
    path = hosts.lookup(start, value)
    assert path[-1] == true_rendezvous(places, value)
    assert len(path) <= len(places)
    left = [clockwise(places[p], value) for p in path[:-1]]
    if rules:
        left = [min(away, clockwise(value, places[p])) for away, p in zip(left, path, strict=False)]
    assert left == sorted(set(left), reverse=True)


@both_ways
@given(places=RINGS, shape=SHAPES, seed=st.integers(0, 99), data=st.data())
def test_every_lookup_ends_at_the_rendezvous_node(
    rules: dict[str, bool],
    places: list[int],
    shape: Shape,
    seed: int,
    data: st.DataObject,
) -> None:
    hosts = overlay(places, shape, seed, **rules)
    value = data.draw(st.one_of(ANYWHERE, CROWDED, st.sampled_from(places)))
    check_path(hosts, data.draw(st.integers(0, len(places) - 1)), value, rules)
    hosts.publish(0, 1, value)
    seen = [p for p, copies in enumerate(hosts.state.event_copies) if (copies == 1).any()]
    assert rules or seen == [hosts.rendezvous(value)]


@both_ways
@pytest.mark.parametrize("shape", [(1, 0), (1, 3), (2, 6)])
def test_lookups_are_right_at_every_border_of_arcs(shape: Shape, rules: dict[str, bool]) -> None:
    """From everybody, for every identifier and middle, the value before it and the one after."""
    places = [*range(6, 100, 6)]
    hosts = overlay(places, shape, seed=2, **rules)
    borders = [*places, *(place + 3 for place in places)]
    for start, border, shift in itertools.product(range(len(places)), borders, (-1, 0, 1)):
        check_path(hosts, start, border + shift, rules)


def test_the_last_hop_is_known_for_what_it_is() -> None:
    """Of a neighbour it is known which values are its own; others it only lies before."""
    state = overlay(AT_FIVES, (1, 3), seed=2).state
    for slot, word in enumerate(state.links[0]):
        before, end = arc_of(state, int(word) & HANDLE)
        assert int(next_hop(state, 0, end)) == 2 * slot + 1
        assert int(next_hop(state, 0, (before + 1) & RING_MASK)) == 2 * slot + 1
        if int(next_hop(state, 0, end + 1)) >= 0 and end + 1 < 95:
            assert int(next_hop(state, 0, end + 1)) != 2 * slot + 1


@st.composite
def ranges_on(draw: st.DrawFn, places: list[int]) -> tuple[int, int]:
    """A range: of one value, of the whole ring, between identifiers, or any."""
    bound = st.one_of(ANYWHERE, st.sampled_from(places), st.sampled_from([0, RING_MASK]))
    low, high = sorted((draw(bound), draw(bound)))
    return draw(st.sampled_from([(low, high), (low, low), (0, RING_MASK)]))


@st.composite
def showered(draw: st.DrawFn) -> tuple[Hosts, int, int]:
    hosts = draw(st.builds(overlay, SEVERAL, SHAPES, st.integers(0, 99)))
    low, high = draw(ranges_on(hosts.identifiers().tolist()))
    hosts.install(0, (low, high))
    return hosts, low, high


def meets_arc(hosts: Hosts, q: int, low: int, high: int) -> bool:
    before, me = arc_of(hosts.state, q)
    first = (before + 1) & RING_MASK
    length = clockwise(first, me)
    return bool(clockwise(first, low) <= length or clockwise(low, first) <= high - low)


@given(shower=showered(), data=st.data())
def test_a_shower_reaches_its_range_alone(
    shower: tuple[Hosts, int, int], data: st.DataObject
) -> None:
    """It is installed at the rendezvous nodes of its range.

    The departure from Algorithm 2: no neighbour gets what lies before its own arc.
    """
    hosts, low, high = shower
    places = hosts.identifiers().tolist()
    reached = set()
    for q in range(len(places)):
        for source, _, ((entry_low, entry_high),) in hosts.entries(q):
            if meets_arc(hosts, q, entry_low, entry_high):
                reached.add(q)
            elif source == 0:
                assert clockwise(places[0], places[q]) < clockwise(places[0], entry_low)
    inside = {q for q, place in enumerate(places) if low <= place <= high}
    assert reached == (inside | {hosts.rendezvous(high)}) - {0}
    values = [low, high, *data.draw(st.lists(st.one_of(ANYWHERE, st.integers(low, high))))]
    for event, value in enumerate(values):
        publisher = data.draw(st.integers(0, len(places) - 1))
        assert hosts.publish(publisher, event, value) == [0] * (low <= value <= high)


@pytest.mark.parametrize("shape", [(1, 0), (1, 4), (2, 6)])
@pytest.mark.parametrize("ends", [(0, RING_MASK), (13, 71), (20, 65), (96, RING_MASK)])
def test_no_value_is_lost_where_arcs_meet(shape: Shape, ends: tuple[int, int]) -> None:
    """Every identifier, the value before it and the one after, inside and outside the range."""
    hosts = overlay(AT_FIVES, shape, seed=2)
    hosts.install(4, ends)
    for value in range(3, 98):
        expected = [4] * (ends[0] <= value <= ends[1])
        assert hosts.publish(value % len(AT_FIVES), value, value) == expected


@pytest.mark.parametrize("shape", [(1, 0), (1, 4), (3, 2)])
@given(places=SEVERAL, seed=st.integers(0, 2**32), data=st.data())
def test_showering_ends(shape: Shape, places: list[int], seed: int, data: st.DataObject) -> None:
    """Arcs and identifiers of neighbours are wrong at random: requests still come to an end."""
    hosts = overlay(places, shape, seed)
    misinform(hosts.state, seed)
    for p in range(len(places)):
        hosts.subscribe(p, data.draw(ranges_on(places)))
    for p in range(len(places)):
        hosts.install(p)
    assert len(hosts.passed) - len(places) <= 2 * len(places) ** 2 * hosts.state.links.shape[1]


def in_order(ends: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(ends, ends).map(lambda pair: (min(pair), max(pair)))


SMALL_RANGES, WIDE_RANGES = in_order(st.sampled_from(GRID)), in_order(ANYWHERE)


def routed_boxes(attributes: int) -> st.SearchStrategy[Routed]:
    return st.tuples(st.integers(0, attributes - 1), st.tuples(*[SMALL_RANGES] * attributes))


def points_of(boxes: list[Routed]) -> set[tuple[int, ...]]:
    """Every (attribute, point) of the grid in a box: the slow oracle."""
    return {
        (attribute, *point)
        for attribute, box in boxes
        for point in itertools.product(*(range(low, high + 1) for low, high in box))
    }


def as_rows(boxes: list[Routed]) -> np.ndarray:
    return np.array([[a, *itertools.chain(*box)] for a, box in boxes], np.int64)


def table_state(attributes: int, boxes: int, entries: int) -> State:
    sizes: dict[str, Any] = {"boxes_per_neighbour": boxes, "routing_table_entries": entries}
    return make_state(Settings(attributes=attributes, view_size=2, shuffle_length=1, **sizes), 1)


@given(attributes=st.integers(1, 3), spare=st.integers(1, 6), data=st.data())
def test_aggregation_loses_no_interest(attributes: int, spare: int, data: st.DataObject) -> None:
    """However short the list; what it lets in beside has been counted as a merge."""
    limit = attributes + spare
    state = table_state(attributes, limit, 8)
    boxes = data.draw(st.lists(routed_boxes(attributes), max_size=12))
    count = 0
    for row in as_rows(boxes) if boxes else []:
        state.work.box[:] = row
        count = routing_table.aggregate(state, 0, 0, count)
        assert count <= limit
    listed = [
        (row[0], tuple(zip(row[1::2], row[2::2], strict=True)))
        for row in state.work.lists[:count].tolist()
    ]
    wanted, held = points_of(boxes), points_of(listed)
    assert state.counters[0, REFUSED_ENTRIES] == 0
    assert wanted <= held
    if state.counters[0, MERGED] == 0:
        assert held == wanted


def by_source(state: State) -> dict[int, set[tuple[int, ...]]]:
    found: dict[int, list[Routed]] = {}
    for source, attribute, box in entries(state, 0):
        found.setdefault(source, []).append((attribute, box))
    return {source: points_of(boxes) for source, boxes in found.items()}


@given(attributes=st.integers(1, 2), room=st.integers(8, 14), data=st.data())
def test_a_table_holds_the_last_requests(attributes: int, room: int, data: st.DataObject) -> None:
    """Merging for want of room is counted and loses nothing; what finds no room is counted too."""
    state = table_state(attributes, 8, room)
    asked: dict[int, set[tuple[int, ...]]] = {}
    requests = st.tuples(st.integers(1, 4), st.lists(routed_boxes(attributes), max_size=6))
    for source, boxes in data.draw(st.lists(requests, max_size=8)):
        merged, refused = state.counters[0, [MERGED, REFUSED_ENTRIES]]
        before = by_source(state)
        rows = as_rows(boxes).reshape(len(boxes), 1 + 2 * attributes)
        routing_table.replace_source(state, 0, source, 99, rows, 0, len(boxes), 3)
        asked[source] = points_of(boxes)
        held = by_source(state)
        assert state.table_count[0] <= room
        if state.counters[0, REFUSED_ENTRIES] == refused:
            assert asked[source] <= held.get(source, set())
        if state.counters[0, MERGED] == merged:
            others = {s: points for s, points in before.items() if s != source}
            assert {s: points for s, points in held.items() if s != source} == others
        for other in before.keys() - {source}:
            assert before[other] <= held[other]


@given(attributes=st.integers(1, 3), data=st.data())
def test_a_full_table_finds_room_while_two_can_merge(attributes: int, data: st.DataObject) -> None:
    """Nothing is refused while a neighbour has two entries routed by one attribute."""
    room = 8
    state = table_state(attributes, 16, room)
    sources = room // attributes
    boxes = data.draw(st.lists(routed_boxes(attributes), min_size=1, max_size=12))
    for source in range(sources):
        routing_table.replace_source(state, 0, source, 99, as_rows(boxes), 0, len(boxes), 3)
    held = by_source(state)
    assert state.counters[0, REFUSED_ENTRIES] == 0
    assert all(points_of(boxes) <= held[source] for source in range(sources))


def test_entries_vanish_when_they_are_not_refreshed() -> None:
    state = table_state(1, 8, 8)
    rows = as_rows([(0, ((0, 3),))])
    for source in (1, 2):
        routing_table.replace_source(state, 0, source, 99, rows, 0, 1, 3)
    lifetime = state.params.entry_lifetime
    assert set(state.owner[0, :2] >> 32) == {lifetime}
    state.round[0] = lifetime
    routing_table.replace_source(state, 0, 2, 99, rows, 0, 1, 3)
    routing_table.remove_expired(state, 0)
    assert [source for source, _, _ in entries(state, 0)] == [1, 2]
    state.round[0] = lifetime + 1
    routing_table.remove_expired(state, 0)
    assert [source for source, _, _ in entries(state, 0)] == [2]


def aggregating_overlay(attributes: int, boxes: int, nodes: int, seed: int) -> Hosts:
    """A converged aggregating_overlay whose aggregated messages hold few boxes."""
    sizes = {"attributes": attributes, "boxes_per_neighbour": boxes}
    return Hosts.ring(SMALL, nodes, seed, friend_links=3, **sizes)


@given(
    attributes=st.integers(1, 3), spare=st.integers(1, 3), seed=st.integers(0, 999), data=st.data()
)
def test_output_covers_input(attributes: int, spare: int, seed: int, data: st.DataObject) -> None:
    """Every point asked for, up to where requests of that neighbour travel, is asked for onward."""
    hosts = aggregating_overlay(attributes, attributes + spare, 12, seed)
    state = hosts.state
    box = st.tuples(*[WIDE_RANGES] * attributes)
    hosts.subscribe(0, *data.draw(box))
    wanted = [(0, box, int(own_arc_begins(state, 0))) for _, box in own_boxes(state)]
    for source in hosts.neighbours(0):
        asked = data.draw(
            st.lists(st.tuples(st.integers(0, attributes - 1), box), max_size=attributes + spare)
        )
        hosts.step(0, install_record(state, INSTALL, 0, source, asked))
        limit = int(forwarding_limit(state, 0, hosts.identifiers()[source]))
        wanted += [(attribute, ends, limit) for attribute, ends in asked]
    sent = hosts.step(0, record(INSTALL_TIMER, 0, 0))
    onward = {int(words[TO]): boxes_of(state, words) for words in sent if words[KIND] == INSTALL}
    for attribute, ends, limit in wanted:
        point = [data.draw(st.integers(low, high)) for low, high in ends]
        if 0 < clockwise(int(hosts.identifiers()[0]), point[attribute]) <= limit:
            slot = int(next_hop(state, 0, point[attribute])) >> 1
            to = int(state.links[0, slot]) & HANDLE
            assert any(a == attribute and contains(other, point) for a, other in onward[to])
    assert state.counters[0, REFUSED_ENTRIES] == 0


def own_boxes(state: State) -> list[Routed]:
    bounds = state.subscriptions[0, 0].tolist()
    return [(0, tuple(zip(bounds[::2], bounds[1::2], strict=True)))]


def boxes_of(state: State, words: np.ndarray) -> list[Routed]:
    head = BODY + 1 + state.link_profile.shape[2] + 2
    rows = words[head:].reshape(-1, state.work.box.shape[0]).tolist()
    return [(row[0], tuple(zip(row[1::2], row[2::2], strict=True))) for row in rows]


@pytest.mark.parametrize("attributes", [1, 2, 3])
@given(seed=st.integers(0, 999), spare=st.integers(1, 4), data=st.data())
def test_each_match_is_served_once(
    attributes: int, seed: int, spare: int, data: st.DataObject
) -> None:
    """However small the messages, so that boxes merge: no match is lost or served twice."""
    hosts = aggregating_overlay(attributes, attributes + spare, 12, seed)
    boxes = [data.draw(st.tuples(*[WIDE_RANGES] * attributes)) for _ in range(12)]
    for p, box in enumerate(boxes):
        hosts.subscribe(p, *box)
    hosts.rounds(2, INSTALL_TIMER)
    for event, box in enumerate(boxes):
        point = [data.draw(st.integers(low, high)) for low, high in box]
        expected = [p for p, other in enumerate(boxes) if contains(other, point)]
        assert sorted(hosts.publish(data.draw(st.integers(0, 11)), event, *point)) == expected


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("attributes", [1, 2])
@given(seed=st.integers(0, 999), data=st.data())
@hypothesis_settings(max_examples=larger(3, 80))
def test_nothing_stale_is_left(attributes: int, dies: bool, seed: int, data: st.DataObject) -> None:
    """After path length times entry lifetime rounds no table holds more than the others want."""
    nodes, gone = 12, 5
    hosts = aggregating_overlay(attributes, 64, nodes, seed)
    state = hosts.state
    boxes = [data.draw(st.tuples(*[WIDE_RANGES] * attributes)) for _ in range(nodes)]
    for p, box in enumerate(boxes):
        hosts.subscribe(p, *box)
    hosts.rounds(3)
    point = [data.draw(st.integers(low, high)) for low, high in boxes[gone]]
    hosts.publish(0, 1, *point)
    path_length = 1 + max(tree_hops for _, _, _, tree_hops in hosts.served)
    if dies:
        hosts.alive[gone] = False
    else:
        state.constrained[gone] = -1
    hosts.rounds(path_length * state.params.entry_lifetime)
    living = [box for p, box in enumerate(boxes) if p != gone]
    if not any(contains(box, point) for box in living):
        held = [box for p in np.flatnonzero(hosts.alive).tolist() for _, _, box in hosts.entries(p)]
        assert not any(contains(box, point) for box in held)
    assert state.counters[:, MERGED].sum() == 0
