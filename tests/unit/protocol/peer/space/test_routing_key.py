"""Routing keys: a curve through the space of values, and intervals of it that hold boxes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.peer.settings.config import kindred, paper
from gossamer.protocol.peer.space import routing_key
from gossamer.protocol.peer.space.ring import RING_MASK

ANYWHERE = st.integers(0, RING_MASK)
NARROW = st.integers(0, 1 << 40)


@pytest.mark.parametrize(("attributes", "bits"), [(1, 5), (2, 4), (3, 3), (5, 2)])
def test_the_curve_passes_every_point_once_in_steps_to_a_neighbour(
    attributes: int, bits: int
) -> None:
    points = list(itertools.product(range(1 << bits), repeat=attributes))
    at = {routing_key.curve_index(point, bits): point for point in points}
    assert sorted(at) == list(range(len(points)))
    for one, other in itertools.pairwise(at[i] for i in range(len(points))):
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1


@given(st.lists(st.integers(0, 255), min_size=1, max_size=5))
def test_an_index_begins_with_that_of_the_cell_around_the_point(point: list[int]) -> None:
    coarse = routing_key.curve_index([axis >> 3 for axis in point], 5)
    assert routing_key.curve_index(point, 8) >> (3 * len(point)) == coarse


@given(st.lists(st.tuples(ANYWHERE, ANYWHERE), min_size=1, max_size=5), st.integers(1, 20))
def test_many_points_at_once_are_as_one_by_one(rows: list[tuple[int, int]], first: int) -> None:
    settings = kindred(100, attributes=2)
    events = np.arange(first, first + len(rows))
    found = routing_key.points_of(settings, np.array(rows, np.int64), events).tolist()
    one_by_one = [
        list(routing_key.point_of(settings, row, event))
        for row, event in zip(rows, events.tolist(), strict=True)
    ]
    assert found == one_by_one


@st.composite
def boxes(draw: st.DrawFn, attributes: int) -> list[int]:
    """A box, narrow or wide along each attribute."""
    ends = []
    for _ in range(attributes):
        low = draw(ANYWHERE)
        width = draw(st.one_of(st.just(0), NARROW, ANYWHERE))
        ends += [low, min(low + width, RING_MASK)]
    return ends


@pytest.mark.parametrize("attributes", [1, 2, 3, 5, 15])
@given(data=st.data(), most=st.integers(1, 9))
def test_intervals_hold_the_keys_of_all_points_of_a_box(
    attributes: int, data: st.DataObject, most: int
) -> None:
    box = data.draw(boxes(attributes))
    intervals = routing_key.key_intervals(attributes, most, box)
    assert 1 <= len(intervals) <= most
    flat = [end for ends in intervals for end in ends]
    assert flat == sorted(set(flat))
    assert flat[0] >= 0
    assert flat[-1] <= RING_MASK
    settings = kindred(100, attributes=attributes)
    ranges = list(zip(box[0::2], box[1::2], strict=True))
    inside = [st.one_of(st.sampled_from(ends), st.integers(*ends)) for ends in ranges]
    corners = data.draw(st.lists(st.tuples(*inside)))
    for event, point in enumerate(corners):
        key = routing_key.point_of(settings, point, event)[-1]
        assert any(low <= key <= high for low, high in intervals)


def test_intervals_fit_a_box_the_closer_the_more_there_are() -> None:
    box = [RING_MASK // 3, RING_MASK // 2, RING_MASK // 5, RING_MASK // 3]
    sizes = [
        sum(high - low + 1 for low, high in routing_key.key_intervals(2, most, box))
        for most in (1, 2, 4, 16)
    ]
    assert sizes == sorted(sizes, reverse=True)
    volume = (1 / 2 - 1 / 3) * (1 / 3 - 1 / 5)
    assert volume <= sizes[-1] / (RING_MASK + 1) <= 1.3 * volume


@pytest.mark.parametrize("attributes", [1, 2])
def test_events_of_one_value_spread_over_an_arc(attributes: int) -> None:
    settings = kindred(100, attributes=attributes)
    values = [RING_MASK // 3] * attributes
    keys = {routing_key.point_of(settings, values, event)[-1] for event in range(100)}
    assert len(keys) == 100
    assert len({key >> routing_key.low_bits(attributes) for key in keys}) == 1
    assert routing_key.low_bits(attributes) == 62 - attributes * routing_key.bits_an_attribute(
        attributes
    )


def test_overlays_that_do_not_route_by_keys_have_none() -> None:
    settings = paper(100, attributes=2)
    assert list(routing_key.point_of(settings, [3, 4], 1)) == [3, 4]
    held, bits = routing_key.held_boxes(settings, np.array([[1, 2, 3, 4]]), np.array([3]))
    assert (held.tolist(), bits.tolist()) == ([[1, 2, 3, 4]], [3])


def test_a_subscription_is_held_once_for_every_interval() -> None:
    settings = kindred(100, attributes=2, key_intervals=3)
    box = [RING_MASK // 3, RING_MASK // 2, RING_MASK // 5, RING_MASK // 3]
    held, bits = routing_key.held_boxes(settings, np.array([box, box]), np.array([3, 1]))
    ends = routing_key.key_intervals(2, 3, box)
    assert len(ends) == 3
    assert held.tolist() == [[*box, low, high] for low, high in ends] * 2
    assert bits.tolist() == [3] * 3 + [1] * 3
