"""Content routing tables lose no interest and keep none that is gone (Vinifera, Sec. IV-B3)."""

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
from gossamer.protocol.peer.rendezvous import routing_table
from gossamer.protocol.peer.rendezvous.box_aggregation import forwarding_limit
from gossamer.protocol.peer.rendezvous.routing import next_hop, own_arc_begins
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.state import MERGED, REFUSED_ENTRIES, State, make_state
from support.draws import larger
from support.overlays import HANDLE, Box, Hosts, contains, entries, install_record, record

GRID = range(7)
Routed = tuple[int, Box]


def ranges() -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.sampled_from(GRID), st.sampled_from(GRID)).map(
        lambda ends: (min(ends), max(ends))
    )


def routed_boxes(attributes: int) -> st.SearchStrategy[Routed]:
    return st.tuples(st.integers(0, attributes - 1), st.tuples(*[ranges()] * attributes))


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
    settings = Settings(
        attributes=attributes,
        boxes_per_neighbour=boxes,
        routing_table_entries=entries,
        view_size=2,
        shuffle_length=1,
    )
    return make_state(settings, 1)


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
        routing_table.replace_source(state, 0, source, 99, rows, 0, len(boxes))
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
def test_a_full_table_finds_room_as_long_as_any_two_entries_can_be_merged(
    attributes: int, data: st.DataObject
) -> None:
    """Nothing is refused while a neighbour has two entries routed by one attribute."""
    room = 8
    state = table_state(attributes, 16, room)
    sources = room // attributes
    boxes = data.draw(st.lists(routed_boxes(attributes), min_size=1, max_size=12))
    for source in range(sources):
        routing_table.replace_source(state, 0, source, 99, as_rows(boxes), 0, len(boxes))
    held = by_source(state)
    assert state.counters[0, REFUSED_ENTRIES] == 0
    assert all(points_of(boxes) <= held[source] for source in range(sources))


def test_entries_vanish_when_they_are_not_refreshed() -> None:
    state = table_state(1, 8, 8)
    rows = as_rows([(0, ((0, 3),))])
    for source in (1, 2):
        routing_table.replace_source(state, 0, source, 99, rows, 0, 1)
    lifetime = state.params.entry_lifetime
    assert set(state.owner[0, :2] >> 32) == {lifetime}
    state.round[0] = lifetime
    routing_table.replace_source(state, 0, 2, 99, rows, 0, 1)
    routing_table.remove_expired(state, 0)
    assert [source for source, _, _ in entries(state, 0)] == [1, 2]
    state.round[0] = lifetime + 1
    routing_table.remove_expired(state, 0)
    assert [source for source, _, _ in entries(state, 0)] == [2]


def wide_ranges() -> st.SearchStrategy[tuple[int, int]]:
    value = st.integers(0, RING_MASK)
    return st.tuples(value, value).map(lambda ends: (min(ends), max(ends)))


def overlay(attributes: int, boxes: int, nodes: int, seed: int, **changes: Any) -> Hosts:
    """A converged overlay whose aggregated messages hold few boxes."""
    settings = Settings(
        attributes=attributes,
        boxes_per_neighbour=boxes,
        friend_links=3,
        view_size=4,
        shuffle_length=2,
        load_shifting=False,
    )
    return Hosts.ring(settings, nodes, seed, **changes)


@given(
    attributes=st.integers(1, 3),
    spare=st.integers(1, 3),
    seed=st.integers(0, 999),
    data=st.data(),
)
def test_output_covers_input(attributes: int, spare: int, seed: int, data: st.DataObject) -> None:
    """Every point asked for, up to where requests of that neighbour travel, is asked for onward."""
    hosts = overlay(attributes, attributes + spare, 12, seed)
    state = hosts.state
    box = st.tuples(*[wide_ranges()] * attributes)
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
        distance = clockwise(int(hosts.identifiers()[0]), point[attribute])
        if 0 < distance <= limit:
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
def test_every_match_is_served_once_and_nobody_else(
    attributes: int, seed: int, spare: int, data: st.DataObject
) -> None:
    """However small the messages, so that boxes merge: no match is lost or served twice."""
    hosts = overlay(attributes, attributes + spare, 12, seed)
    boxes = [data.draw(st.tuples(*[wide_ranges()] * attributes)) for _ in range(12)]
    for p, box in enumerate(boxes):
        hosts.subscribe(p, *box)
    hosts.rounds(2, INSTALL_TIMER)
    for event, box in enumerate(boxes):
        point = [data.draw(st.integers(low, high)) for low, high in box]
        expected = [p for p, other in enumerate(boxes) if contains(other, point)]
        publisher = data.draw(st.integers(0, 11))
        assert sorted(hosts.publish(publisher, event, *point)) == expected


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("attributes", [1, 2])
@given(seed=st.integers(0, 999), data=st.data())
@hypothesis_settings(max_examples=larger(3, 80))
def test_nothing_stale_is_left_after_a_subscriber_goes(
    attributes: int, dies: bool, seed: int, data: st.DataObject
) -> None:
    """After path length times entry lifetime rounds no table holds more than the others want."""
    nodes, gone = 12, 5
    hosts = overlay(attributes, 64, nodes, seed)
    state = hosts.state
    boxes = [data.draw(st.tuples(*[wide_ranges()] * attributes)) for _ in range(nodes)]
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
