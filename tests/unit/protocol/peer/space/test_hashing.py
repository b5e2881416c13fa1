"""Places of values, events and subscriptions on the ring, and the keys that they are routed by."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.content import schema
from gossamer.protocol.content.subscription import parse_subscription
from gossamer.protocol.kernel.errors import ConfigError, UnknownAttributeError, WrongValueError
from gossamer.protocol.peer.settings.presets import kindred, paper
from gossamer.protocol.peer.space import hashing, ring
from gossamer.protocol.peer.space import ring as scales
from gossamer.protocol.peer.space.encoding import EncodedBox, encode_event, encode_subscription
from gossamer.protocol.peer.space.ring import RING_MASK

PRICE = schema.FloatAttribute("price", 0, 1000)
DAY = schema.DateAttribute("day", datetime(2020, 1, 1), datetime(2020, 1, 2))
HALF = hashing.RING_SIZE // 2


def test_floats_span_the_ring_which_is_that_of_the_overlay() -> None:
    assert (hashing.RING_BITS, hashing.RING_SIZE) == (ring.RING_BITS, ring.RING)
    price = hashing.uniform_hash(PRICE)
    assert [price(value) for value in (0, 500.0, 1000)] == [0, HALF, hashing.RING_SIZE - 1]
    assert [price(-1), price(10**400)] == [0, hashing.RING_SIZE - 1]
    assert price.array(np.array([-1e300, 1e300])).tolist() == [0, hashing.RING_SIZE - 1]


def test_discrete_values_get_equal_arcs() -> None:
    number = hashing.uniform_hash(schema.IntegerAttribute("n", -2, 1))
    assert [number(n) for n in range(-2, 2)] == [0, HALF // 2, HALF, HALF // 2 * 3]
    assert hashing.uniform_hash(schema.IntegerAttribute("n", 7, 7))(7) == 0
    size = hashing.uniform_hash(schema.EnumerationAttribute("size", ("small", "large")))
    assert [size("small"), size("large")] == [0, HALF]
    day = hashing.uniform_hash(DAY)
    assert day("2020-01-01") == 0
    assert abs(day("2020-01-01T12:00:00Z") - HALF) < hashing.RING_SIZE // 10**10


def test_strings_use_the_ring_behind_the_common_prefix() -> None:
    """Bounds outside the alphabet stand between the strings around them."""
    word = hashing.uniform_hash(schema.StringAttribute("s", "ab", "aaaaa", "aaaab"))
    assert word("aaaaa") == 0
    assert word("aaaab") > hashing.RING_SIZE // 3
    letters = hashing.uniform_hash(schema.StringAttribute("s", "abc"))
    assert [letters(text) * 4 // hashing.RING_SIZE for text in ("", "a", "b", "c")] == [0, 1, 2, 3]
    word = hashing.uniform_hash(schema.StringAttribute("s", "bd"))
    assert word("bdddd") <= word("bde") <= word("d")
    assert word("b") <= word("ba") <= word("bb")


@pytest.mark.parametrize("value", ["5", True, float("nan"), None])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(WrongValueError, match="attribute 'price' takes a number"):
        hashing.uniform_hash(PRICE)(value)


@pytest.mark.parametrize("value", ["5", True, np.nan, np.inf])
def test_arrays_of_other_things_than_numbers_are_refused(value: Any) -> None:
    with pytest.raises(WrongValueError, match="attribute 'price' takes"):
        hashing.uniform_hash(PRICE).array(np.array([value]))
    with pytest.raises(WrongValueError, match="being of type string"):
        hashing.uniform_hash(schema.StringAttribute("s")).array(np.array([1]))


def test_arrays_keep_their_shape() -> None:
    price = hashing.uniform_hash(PRICE)
    grid = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert price.array(grid).tolist() == [[price(n) for n in row] for row in grid.tolist()]
    assert price.array(np.float32(500)).shape == ()  # type: ignore[arg-type]
    assert price.array(np.empty((0, 2))).shape == (0, 2)


def test_equal_mass_gets_equal_arcs_under_a_skewed_sample() -> None:
    """Of 20,000 exponential values, every tenth of the ring receives a tenth, to a hundredth."""
    draw = random.Random(7)
    sample = [min(draw.expovariate(0.1), 1000) for _ in range(20_000)]
    hashed = hashing.equi_depth_hash(PRICE, sample).array(np.array(sample))
    shares = np.histogram(hashed, bins=10, range=(0, hashing.RING_SIZE))[0] / len(sample)
    assert np.abs(shares - 0.1).max() < 0.01
    uniform = hashing.uniform_hash(PRICE).array(np.array(sample))
    assert np.histogram(uniform, bins=10, range=(0, hashing.RING_SIZE))[0][0] > 0.9 * len(sample)


def test_a_repeated_value_and_quantiles_get_their_arcs() -> None:
    hash_of = hashing.quantile_hash(PRICE, [10, 20, 40])
    places = [hash_of(value) / hashing.RING_SIZE for value in (0, 10, 20, 40, 1000)]
    assert places == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=0.001)
    symbols = schema.EnumerationAttribute("symbol", ("A", "B", "C", "D"))
    hash_of = hashing.equi_depth_hash(symbols, ["A"] + ["B"] * 6 + ["C"] * 3)
    starts = [hash_of(symbol) / hashing.RING_SIZE for symbol in symbols.values]
    # The last sampled value shares its arc with the unsampled one behind it.
    assert starts == pytest.approx([0, 0.1, 0.7, 0.85], abs=0.001)
    sample = [1.5, 2.5, 2.5, 900.0]
    assert hashing.equi_depth_hash(PRICE, sample) == hashing.equi_depth_hash(
        PRICE, np.array(sample)
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hashing.equi_depth_hash(PRICE, []), "sample of price is 'empty'"),
        (lambda: hashing.equi_depth_hash(PRICE, [1], buckets=0), "buckets is 0"),
        (lambda: hashing.quantile_hash(PRICE, []), "quantiles of price is 'empty'"),
        (lambda: hashing.quantile_hash(PRICE, [2, 1]), "ascending order"),
    ],
)
def test_impossible_distributions_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()


def test_hashes_travel_between_processes() -> None:
    """Sweeps hand them to worker processes."""
    for attribute, value in (
        (PRICE, 7.5),
        (schema.StringAttribute("s", "ab"), "ab"),
        (DAY, "2020-01-01"),
        (schema.EnumerationAttribute("e", ("x", "y")), "y"),
    ):
        hash_of = hashing.equi_depth_hash(attribute, [value])
        again = pickle.loads(pickle.dumps(hash_of))
        assert (again, again(value)) == (hash_of, hash_of(value))


SCHEMA = schema.Schema(
    [
        PRICE,
        schema.IntegerAttribute("count", 0, 7),
        schema.EnumerationAttribute("size", ("S", "M", "L", "XL")),
    ]
)
HASHES = hashing.uniform_hashes(SCHEMA)


def box_of(text: str) -> EncodedBox:
    return encode_subscription(SCHEMA, HASHES, parse_subscription(SCHEMA, text))


def test_boxes_are_closed_and_events_points() -> None:
    box = box_of('250 < price < 500 and size >= "M" and size < "XL"')
    assert box.constrained == (True, False, True)
    assert box.low == (hashing.RING_SIZE // 4, 0, hashing.RING_SIZE // 4)
    assert box.high == (hashing.RING_SIZE // 2, hashing.RING_SIZE - 1, hashing.RING_SIZE // 2)
    box = box_of("1 < count < 5")
    assert (box.low[1], box.high[1]) == (hashing.RING_SIZE // 4, hashing.RING_SIZE // 2)
    assert box_of("1.5 < count < 4.5") == box
    point = encode_event(SCHEMA, HASHES, {"size": "L", "count": 2, "price": 500})
    assert point == (hashing.RING_SIZE // 2, hashing.RING_SIZE // 4, hashing.RING_SIZE // 2)
    assert [one.attribute.name for one in HASHES] == ["price", "count", "size"]


def test_what_does_not_fit_the_schema_is_refused() -> None:
    with pytest.raises(WrongValueError, match="'price' takes a number from 0 to 1000"):
        encode_event(SCHEMA, HASHES, {"price": 1001, "count": 0, "size": "S"})
    other = schema.Schema([schema.IntegerAttribute("colour", 0, 1)])
    with pytest.raises(UnknownAttributeError, match="no attribute 'colour'"):
        encode_subscription(SCHEMA, HASHES, parse_subscription(other, "colour == 1"))
    retyped = schema.Schema([schema.EnumerationAttribute("price", ("low", "high"))])
    with pytest.raises(WrongValueError, match='not the constraint price == "low"'):
        encode_subscription(SCHEMA, HASHES, parse_subscription(retyped, 'price == "low"'))


ANYWHERE = st.integers(0, RING_MASK)
NARROW = st.integers(0, 1 << 40)


@pytest.mark.parametrize(("attributes", "bits"), [(1, 5), (2, 4), (3, 3), (5, 2)])
def test_the_curve_passes_every_point_once_in_single_steps(attributes: int, bits: int) -> None:
    points = list(itertools.product(range(1 << bits), repeat=attributes))
    at = {scales.curve_index(point, bits): point for point in points}
    assert sorted(at) == list(range(len(points)))
    for one, other in itertools.pairwise(at[i] for i in range(len(points))):
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1


@given(st.lists(st.integers(0, 255), min_size=1, max_size=5))
def test_an_index_begins_with_that_of_the_cell_around_the_point(point: list[int]) -> None:
    coarse = scales.curve_index([axis >> 3 for axis in point], 5)
    assert scales.curve_index(point, 8) >> (3 * len(point)) == coarse


@given(st.lists(st.tuples(ANYWHERE, ANYWHERE), min_size=1, max_size=5), st.integers(1, 20))
def test_many_points_at_once_are_as_one_by_one(rows: list[tuple[int, int]], first: int) -> None:
    settings = kindred(100, attributes=2)
    events = np.arange(first, first + len(rows))
    found = scales.points_of(settings, np.array(rows, np.int64), events).tolist()
    one_by_one = [
        list(scales.point_of(settings, row, event))
        for row, event in zip(rows, events.tolist(), strict=True)
    ]
    assert found == one_by_one


@st.composite
def boxes(draw: st.DrawFn, attributes: int) -> list[int]:
    ends = []
    for _ in range(attributes):
        low = draw(ANYWHERE)
        ends += [low, min(low + draw(st.one_of(st.just(0), NARROW, ANYWHERE)), RING_MASK)]
    return ends


@pytest.mark.parametrize("attributes", [1, 2, 3, 5, 15])
@given(data=st.data(), most=st.integers(1, 9))
def test_intervals_hold_all_keys_of_a_box(attributes: int, data: st.DataObject, most: int) -> None:
    box = data.draw(boxes(attributes))
    intervals = scales.key_intervals(attributes, most, box)
    assert 1 <= len(intervals) <= most
    flat = [end for ends in intervals for end in ends]
    assert flat == sorted(set(flat))
    assert flat[0] >= 0
    assert flat[-1] <= RING_MASK
    settings = kindred(100, attributes=attributes)
    ranges = list(zip(box[0::2], box[1::2], strict=True))
    inside = [st.one_of(st.sampled_from(ends), st.integers(*ends)) for ends in ranges]
    for event, point in enumerate(data.draw(st.lists(st.tuples(*inside)))):
        key = scales.point_of(settings, point, event)[-1]
        assert any(low <= key <= high for low, high in intervals)


def test_intervals_fit_a_box_the_closer_the_more_there_are() -> None:
    box = [RING_MASK // 3, RING_MASK // 2, RING_MASK // 5, RING_MASK // 3]
    sizes = [
        sum(high - low + 1 for low, high in scales.key_intervals(2, most, box))
        for most in (1, 2, 4, 16)
    ]
    assert sizes == sorted(sizes, reverse=True)
    volume = (1 / 2 - 1 / 3) * (1 / 3 - 1 / 5)
    assert volume <= sizes[-1] / (RING_MASK + 1) <= 1.3 * volume


@pytest.mark.parametrize("attributes", [1, 2])
def test_events_of_one_value_spread_over_an_arc(attributes: int) -> None:
    settings = kindred(100, attributes=attributes)
    values = [RING_MASK // 3] * attributes
    keys = {scales.point_of(settings, values, event)[-1] for event in range(100)}
    assert (len(keys), len({key >> scales.low_bits(attributes) for key in keys})) == (100, 1)
    assert scales.low_bits(attributes) == 62 - attributes * scales.bits_an_attribute(attributes)


def test_subscriptions_are_held_by_intervals_where_keys_route() -> None:
    settings = kindred(100, attributes=2, key_intervals=3)
    box = [RING_MASK // 3, RING_MASK // 2, RING_MASK // 5, RING_MASK // 3]
    held, bits = scales.held_boxes(settings, np.array([box, box]), np.array([3, 1]))
    ends = scales.key_intervals(2, 3, box)
    assert len(ends) == 3
    assert held.tolist() == [[*box, low, high] for low, high in ends] * 2
    assert bits.tolist() == [3] * 3 + [1] * 3
    settings = paper(100, attributes=2)
    assert list(scales.point_of(settings, [3, 4], 1)) == [3, 4]
    held, bits = scales.held_boxes(settings, np.array([[1, 2, 3, 4]]), np.array([3]))
    assert (held.tolist(), bits.tolist()) == ([[1, 2, 3, 4]], [3])
