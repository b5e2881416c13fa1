"""Places by interest."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.peer.settings.presets import kindred
from gossamer.protocol.peer.space.ring import RING_MASK, bits_an_attribute, curve_index, low_bits
from gossamer.protocol.peer.topology.placement import NOWHERE, places_of

KEYS = np.arange(1000, dtype=np.int64) * 7919


def cell_of(box: list[int], attributes: int) -> int:
    bits = bits_an_attribute(attributes)
    ends = zip(box[0::2], box[1::2], strict=True)
    return int(curve_index([(low + (high - low) // 2) >> (62 - bits) for low, high in ends], bits))


@given(data=st.data(), attributes=st.integers(1, 3), count=st.integers(0, 4))
def test_a_place_for_each_subscription(data: st.DataObject, attributes: int, count: int) -> None:
    settings = kindred(100, attributes=attributes, subscriptions=4)
    ends = st.integers(0, RING_MASK)
    boxes = np.zeros((1, 4, 2 * attributes), np.int64)
    there = data.draw(st.permutations(range(4)))[:count]
    constrained = np.full((1, 4), -1, np.int64)
    for row in there:
        box = [end for _ in range(attributes) for end in sorted((data.draw(ends), data.draw(ends)))]
        boxes[0, row] = box
        constrained[0, row] = (1 << attributes) - 1
    places = places_of(settings, boxes, constrained, KEYS[:1])[0].tolist()
    assert places[count:] == [NOWHERE] * (4 - count)
    found = sorted(place >> low_bits(attributes) for place in places[:count])
    assert found == sorted(cell_of(boxes[0, row].tolist(), attributes) for row in there)


def test_interests_share_peers_which_have_places_of_their_own() -> None:
    settings = kindred(1000, subscriptions=3)
    box = np.array([[1 << 50, 1 << 51], [1 << 55, 1 << 56], [1 << 60, 1 << 61]])
    boxes = np.repeat(box[np.newaxis], 1000, axis=0)
    places = places_of(settings, boxes, np.ones((1000, 3), np.int64), KEYS)
    _, counts = np.unique(places[:, 0] >> low_bits(1), return_counts=True)
    assert len(counts) == 3
    assert counts.min() > 250
    settings = kindred(1000)
    boxes = np.repeat(np.array([[[1 << 50, 1 << 51]]]), 1000, axis=0)
    places = places_of(settings, boxes, np.ones((1000, 1), np.int64), KEYS)[:, 0]
    assert (len(np.unique(places)), len(np.unique(places >> low_bits(1)))) == (1000, 1)


def test_along_an_attribute_that_is_left_out_places_are_drawn() -> None:
    settings = kindred(1000, attributes=2)
    boxes = np.repeat(np.array([[1 << 60, 1 << 60, 0, RING_MASK]])[np.newaxis], 1000, axis=0)
    drawn = places_of(settings, boxes, np.ones((1000, 1), np.int64), KEYS)[:, 0]
    assert len(np.unique(drawn >> low_bits(2))) > 900
    centred = places_of(settings, boxes, np.full((1000, 1), 3), KEYS)[:, 0]
    assert len(np.unique(centred >> low_bits(2))) == 1


@given(
    spread=st.floats(0, 1),
    ends=st.tuples(st.integers(0, RING_MASK), st.integers(0, RING_MASK)).map(sorted),
)
def test_places_are_drawn_around_the_centre_of_the_range(spread: float, ends: list[int]) -> None:
    low, high = ends
    boxes = np.repeat(np.array([[[low, high]]]), 1000, axis=0)
    settings = kindred(1000, place_spread=spread)
    places = places_of(settings, boxes, np.ones((1000, 1), np.int64), KEYS)[:, 0] >> low_bits(1)
    low, high = low >> low_bits(1), high >> low_bits(1)
    half = (high - low) / 2
    aside = np.abs(places - (low + half))
    assert low <= places.min()
    assert places.max() <= high
    assert aside.max() <= spread * half + 2 + half * 1e-9
    assert aside.max() >= 0.95 * spread * half - 2
