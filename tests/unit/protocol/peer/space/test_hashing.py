"""The order-preserving hash at its landmarks, and what it refuses."""

from __future__ import annotations

import pickle
import random
from datetime import datetime

import numpy as np
import pytest

from gossamer.protocol.content import schema as content_schema
from gossamer.protocol.content.errors import WrongValueError
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.protocol.peer.space import ring
from gossamer.protocol.peer.space.hashing import (
    RING_BITS,
    RING_SIZE,
    equi_depth_hash,
    quantile_hash,
    uniform_hash,
    uniform_hashes,
)

PRICE = content_schema.FloatAttribute("price", 0, 1000)
HALF = RING_SIZE // 2


def test_the_ring_is_that_of_the_overlay() -> None:
    assert (RING_BITS, RING_SIZE) == (ring.RING_BITS, ring.RING)


def test_floats_span_the_ring() -> None:
    price = uniform_hash(PRICE)
    assert [price(value) for value in (0, 500.0, 1000)] == [0, HALF, RING_SIZE - 1]


def test_discrete_values_get_equal_arcs() -> None:
    assert [uniform_hash(content_schema.IntegerAttribute("n", -2, 1))(n) for n in range(-2, 2)] == [
        0,
        HALF // 2,
        HALF,
        HALF // 2 * 3,
    ]
    size = uniform_hash(content_schema.EnumerationAttribute("size", ("small", "large")))
    assert [size("small"), size("large")] == [0, HALF]
    day = uniform_hash(
        content_schema.DateAttribute("day", datetime(2020, 1, 1), datetime(2020, 1, 2))
    )
    assert day("2020-01-01") == 0
    assert abs(day("2020-01-01T12:00:00Z") - HALF) < RING_SIZE // 10**10


def test_one_value_domains_hash_to_the_start() -> None:
    assert uniform_hash(content_schema.IntegerAttribute("n", 7, 7))(7) == 0


def test_strings_use_the_ring_behind_the_common_prefix() -> None:
    word = uniform_hash(content_schema.StringAttribute("s", "ab", "aaaaa", "aaaab"))
    assert word("aaaaa") == 0
    assert word("aaaab") > RING_SIZE // 3
    letters = uniform_hash(content_schema.StringAttribute("s", "abc"))
    assert [letters(text) * 4 // RING_SIZE for text in ("", "a", "b", "c")] == [0, 1, 2, 3]


def test_bounds_outside_the_alphabet_stand_between_the_strings_around_them() -> None:
    word = uniform_hash(content_schema.StringAttribute("s", "bd"))
    assert word("bdddd") <= word("bde") <= word("d")
    assert word("b") <= word("ba") <= word("bb")


def test_values_outside_the_domain_take_its_ends() -> None:
    price = uniform_hash(PRICE)
    assert price(-1) == 0
    assert price(10**400) == RING_SIZE - 1
    assert price.array(np.array([-1e300, 1e300])).tolist() == [0, RING_SIZE - 1]


@pytest.mark.parametrize("value", ["5", True, float("nan"), None])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(WrongValueError, match="attribute 'price' takes a number"):
        uniform_hash(PRICE)(value)


@pytest.mark.parametrize(
    "values", [np.array(["5"]), np.array([True]), np.array([np.nan]), np.array([np.inf])]
)
def test_arrays_of_other_things_are_refused(values: np.ndarray) -> None:
    with pytest.raises(WrongValueError, match="attribute 'price' takes"):
        uniform_hash(PRICE).array(values)


def test_arrays_are_for_numbers_only() -> None:
    with pytest.raises(WrongValueError, match="being of type string"):
        uniform_hash(content_schema.StringAttribute("s")).array(np.array([1]))


def test_arrays_keep_their_shape() -> None:
    price = uniform_hash(PRICE)
    grid = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert price.array(grid).tolist() == [[price(n) for n in row] for row in grid.tolist()]
    assert price.array(np.float32(500)).shape == ()  # type: ignore[arg-type]
    assert price.array(np.empty((0, 2))).shape == (0, 2)


def test_equal_mass_gets_equal_arcs_under_a_skewed_sample() -> None:
    """Of 20,000 exponential values, every tenth of the ring receives a tenth, to a hundredth."""
    draw = random.Random(7)
    sample = [min(draw.expovariate(0.1), 1000) for _ in range(20_000)]
    hashed = equi_depth_hash(PRICE, sample).array(np.array(sample))
    shares = np.histogram(hashed, bins=10, range=(0, RING_SIZE))[0] / len(sample)
    assert np.abs(shares - 0.1).max() < 0.01
    uniform = uniform_hash(PRICE).array(np.array(sample))
    assert np.histogram(uniform, bins=10, range=(0, RING_SIZE))[0][0] > 0.9 * len(sample)


def test_a_repeated_value_keeps_the_arc_up_to_its_successor() -> None:
    symbols = content_schema.EnumerationAttribute("symbol", ("A", "B", "C", "D"))
    hash_of = equi_depth_hash(symbols, ["A"] + ["B"] * 6 + ["C"] * 3)
    starts = [hash_of(symbol) / RING_SIZE for symbol in symbols.values]
    # The last sampled value shares its arc with the unsampled one behind it.
    assert starts == pytest.approx([0, 0.1, 0.7, 0.85], abs=0.001)


def test_array_and_sequence_samples_give_the_same_hash() -> None:
    sample = [1.5, 2.5, 2.5, 900.0]
    assert equi_depth_hash(PRICE, sample) == equi_depth_hash(PRICE, np.array(sample))


def test_quantiles_get_equal_arcs() -> None:
    hash_of = quantile_hash(PRICE, [10, 20, 40])
    places = [hash_of(value) / RING_SIZE for value in (0, 10, 20, 40, 1000)]
    assert places == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=0.001)


def test_impossible_distributions_are_refused() -> None:
    with pytest.raises(ConfigError, match="sample of price is 'empty'"):
        equi_depth_hash(PRICE, [])
    with pytest.raises(ConfigError, match="buckets is 0"):
        equi_depth_hash(PRICE, [1], buckets=0)
    with pytest.raises(ConfigError, match="quantiles of price is 'empty'"):
        quantile_hash(PRICE, [])
    with pytest.raises(ConfigError, match="ascending order"):
        quantile_hash(PRICE, [2, 1])


def test_hashes_come_in_the_order_of_the_schema() -> None:
    schema = content_schema.Schema([PRICE, content_schema.StringAttribute("name")])
    assert [h.attribute.name for h in uniform_hashes(schema)] == ["price", "name"]


def test_hashes_travel_between_processes() -> None:
    """Sweeps hand them to worker processes."""
    attributes: list[content_schema.Attribute] = [
        PRICE,
        content_schema.StringAttribute("s", "ab"),
        content_schema.DateAttribute("d", datetime(2020, 1, 1), datetime(2020, 1, 2)),
        content_schema.EnumerationAttribute("e", ("x", "y")),
    ]
    for attribute, value in zip(attributes, [7.5, "ab", "2020-01-01", "y"], strict=True):
        hash_of = equi_depth_hash(attribute, [value])
        assert pickle.loads(pickle.dumps(hash_of)) == hash_of
        assert pickle.loads(pickle.dumps(hash_of))(value) == hash_of(value)
