"""Hashes to the ring, and subscriptions in it: no match is lost, whatever the values."""

from __future__ import annotations

import string
from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from gossamer.protocol.content import schema
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.content.schema import Attribute, Schema
from gossamer.protocol.content.subscription import Subscription
from gossamer.protocol.content.values import canonical
from gossamer.protocol.peer.space import hashing
from gossamer.protocol.peer.space.encoding import encode_event, encode_subscription
from gossamer.protocol.peer.space.hashing import divide_wide, scale_wide
from support.content_strategies import (
    CHARACTERS,
    attributes,
    consistent_comparisons,
    constants_for,
    date_attributes,
    enumeration_attributes,
    events,
    float_attributes,
    holds,
    integer_attributes,
    schemas,
    values_of,
)

NUMBERS = integer_attributes() | float_attributes()
Number = schema.IntegerAttribute | schema.FloatAttribute


@st.composite
def hashes_of(draw: st.DrawFn, attribute: schema.Attribute) -> hashing.OrderPreservingHash:
    variety = draw(st.sampled_from(["uniform", "sample", "quantiles"]))
    if variety == "uniform":
        return hashing.uniform_hash(attribute)
    values = draw(st.lists(values_of(attribute), min_size=1, max_size=30))
    if variety == "sample":
        return hashing.equi_depth_hash(attribute, values, buckets=draw(st.integers(1, 12)))
    return hashing.quantile_hash(attribute, sorted(values, key=hashing.uniform_hash(attribute)))


def two_values(
    data: st.DataObject, attribute: Attribute, values: st.SearchStrategy[Any] | None = None
) -> tuple[Any, Any]:
    """Two values of an attribute, or of others, with the lesser one first."""
    values = values_of(attribute) if values is None else values
    key: Any = canonical
    if isinstance(attribute, schema.EnumerationAttribute):
        key = attribute.values.index
    low, high = sorted((data.draw(values), data.draw(values)), key=key)
    return low, high


@given(st.data())
def test_every_hash_is_monotone_on_all_values_of_its_type(data: st.DataObject) -> None:
    attribute = data.draw(attributes())
    hash_of = data.draw(hashes_of(attribute))
    low, high = two_values(data, attribute, constants_for(attribute))
    assert 0 <= hash_of(low) <= hash_of(high) < hashing.RING_SIZE


@given(integer_attributes(widest=2**62), date_attributes(), enumeration_attributes(), st.data())
def test_neighbouring_discrete_values_differ_in_the_widest_domain(
    number: schema.IntegerAttribute,
    day: schema.DateAttribute,
    choice: schema.EnumerationAttribute,
    data: st.DataObject,
) -> None:
    if number.minimum < number.maximum:
        value = data.draw(st.integers(number.minimum, number.maximum - 1))
        hash_of = hashing.uniform_hash(number)
        assert hash_of(value) < hash_of(value + 1)
    step = timedelta(microseconds=1)
    if day.minimum < day.maximum:
        steps = (day.maximum - day.minimum) // step
        instant = day.minimum + data.draw(st.integers(0, steps - 1)) * step
        hash_of = hashing.uniform_hash(day)
        assert hash_of(instant) < hash_of(instant + step)
    hashed = list(map(hashing.uniform_hash(choice), choice.values))
    assert hashed == sorted(set(hashed))


@given(float_attributes(), st.fractions(0, 1), st.integers(0, 61))
def test_floats_differ_from_2_to_the_minus_61_of_the_width(
    attribute: schema.FloatAttribute, share: Fraction, bits: int
) -> None:
    width = Fraction(attribute.maximum) - Fraction(attribute.minimum)
    low = Fraction(attribute.minimum) + share * (1 - Fraction(1, 2**bits)) * width
    high = low + width / 2**bits
    hash_of = hashing.uniform_hash(attribute)
    assert hash_of(low) < hash_of(high)


@given(st.data(), st.sampled_from([(None, 3), (string.ascii_lowercase, 13), ("ab", 39)]))
def test_short_strings_hash_strictly(data: st.DataObject, case: tuple[str | None, int]) -> None:
    alphabet, length = case
    texts = st.text(CHARACTERS if alphabet is None else st.sampled_from(alphabet), max_size=length)
    low, high = sorted(data.draw(st.lists(texts, min_size=2, max_size=2, unique=True)))
    whole = hashing.uniform_hash(schema.StringAttribute("s", alphabet))
    assert whole(low) < whole(high)
    within = hashing.uniform_hash(schema.StringAttribute("s", alphabet, "ab" + low, "ab" + high))
    assert within("ab" + low) < within("ab" + high)


@given(st.data())
def test_following_a_sample_keeps_values_apart(data: st.DataObject) -> None:
    """Strict for integers of at most 2^50 values, for floats from 2^-50 of the width."""
    attribute = data.draw(integer_attributes(widest=2**50) | float_attributes())
    hash_of = data.draw(hashes_of(attribute))
    low, high = two_values(data, attribute)
    width = Fraction(attribute.maximum) - Fraction(attribute.minimum)
    assume(low != high and (Fraction(high) - Fraction(low)) * 2**50 >= width)
    assert hash_of(low) < hash_of(high)


@given(st.data())
def test_a_bucket_no_narrower_than_before_keeps_places_apart(data: st.DataObject) -> None:
    attribute = schema.FloatAttribute("x", 0, 1)
    sample = data.draw(st.lists(values_of(attribute), min_size=1))
    warp = hashing.equi_depth_hash(attribute, sample).warp
    assert warp is not None
    bucket = data.draw(st.integers(0, len(warp.knots) - 2))
    start, end = warp.knots[bucket], warp.knots[bucket + 1]
    assume(warp.images[bucket + 1] - warp.images[bucket] >= end - start)
    place = data.draw(st.integers(start, end - 1))
    assert warp(place) < (warp(place + 1) if place + 1 < hashing.RING_SIZE else hashing.RING_SIZE)


@given(NUMBERS, st.data())
def test_arc_length_follows_the_mass_of_the_sample(attribute: Number, data: st.DataObject) -> None:
    """Below the hash of a sample value lie its share of the sample and of the ring alike."""
    few = data.draw(st.lists(values_of(attribute), min_size=1, max_size=5))
    sample = data.draw(st.lists(st.sampled_from(few) | values_of(attribute), min_size=1))
    buckets = data.draw(st.integers(1, 20))
    hash_of = hashing.equi_depth_hash(attribute, sample, buckets)
    uniform = hashing.uniform_hash(attribute)
    places = [uniform(value) for value in sample]
    for value, place in zip(sample, places, strict=True):
        share_below = Fraction(sum(other < place for other in places), len(places))
        error = abs(Fraction(hash_of(value), hashing.RING_SIZE) - share_below)
        assert error <= Fraction(2, buckets) + Fraction(1, 2**10)


@given(st.data())
def test_quantiles_divide_the_ring_into_equal_arcs(data: st.DataObject) -> None:
    attribute = data.draw(integer_attributes(widest=2**40))
    drawn: list[Any] = data.draw(st.lists(values_of(attribute), min_size=1, max_size=20))
    boundaries = sorted(drawn)
    hash_of = hashing.quantile_hash(attribute, boundaries)
    for value in boundaries:
        if value == attribute.minimum:
            assert hash_of(value) == 0
            continue
        share = Fraction(boundaries.index(value) + 1, len(boundaries) + 1)
        assert abs(Fraction(hash_of(value), hashing.RING_SIZE) - share) <= Fraction(1, 2**10)


@given(NUMBERS, st.data())
def test_arrays_hash_as_their_elements(attribute: Number, data: st.DataObject) -> None:
    hash_of = data.draw(hashes_of(attribute))
    near = st.sampled_from([attribute.minimum, attribute.maximum]).map(int)
    around = st.builds(int.__add__, near, st.integers(-3, 3))
    integers = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1) | around))
    integers = [min(max(value, -(2**63)), 2**63 - 1) for value in integers]
    hashed = hash_of.array(np.array(integers, dtype=np.int64))
    assert hashed.dtype == np.int64
    assert hashed.tolist() == [hash_of(value) for value in integers]
    anything = st.floats(allow_nan=False, allow_infinity=False)
    numbers: st.SearchStrategy[Any] = values_of(attribute)
    floats = data.draw(st.lists(anything | numbers.map(float) | st.floats(-2, 2)))
    hashed = hash_of.array(np.array(floats, dtype=np.float64))
    assert hashed.tolist() == [hash_of(value) for value in floats]


@given(st.data(), st.integers(1, 2**62))
def test_wide_divisions_are_exact(data: st.DataObject, divisor: int) -> None:
    factor = data.draw(st.integers(0, divisor - 1))
    multiplier = data.draw(st.integers(0, 2**62))
    addend = data.draw(st.integers(0, 2**31 - 1))
    words = (np.array([word], np.int64) for word in (factor, multiplier, addend, divisor))
    factors, multipliers, addends, divisors = words
    quotient, remainder = divide_wide(factors, 1 << 31, addends, divisors)
    assert (quotient[0], remainder[0]) == divmod(factor * 2**31 + addend, divisor)
    assert scale_wide(factors, multipliers, divisors)[0] == factor * multiplier // divisor


@given(schemas(), st.data())
def test_matching_is_the_conjunction_of_comparisons(schema: Schema, data: st.DataObject) -> None:
    comparisons = data.draw(consistent_comparisons(schema))
    event = data.draw(events(schema))
    expected = all(holds(schema, comparison, event) for comparison in comparisons)
    subscription = Subscription.of(schema, comparisons)
    assert subscription.matches(event) == expected
    assert subscription.matcher()(schema.check_event(event)) == expected
    # Its box is whole where nothing is asked for.
    box = encode_subscription(schema, hashing.uniform_hashes(schema), subscription)
    named = dict(subscription.constraints)
    for place, attribute in enumerate(schema):
        ends = box.low[place], box.high[place]
        assert box.constrained[place] == (attribute.name in named)
        assert 0 <= ends[0] <= ends[1] < hashing.RING_SIZE
        assert box.constrained[place] or ends == (0, hashing.RING_SIZE - 1)


@given(schemas(), st.data())
def test_the_box_holds_every_matching_event(schema: Schema, data: st.DataObject) -> None:
    event = data.draw(events(schema))
    drawn = data.draw(consistent_comparisons(schema))
    true_of_event = [comparison for comparison in drawn if holds(schema, comparison, event)]
    if not true_of_event:
        return
    subscription = Subscription.of(schema, true_of_event)
    assert subscription.matches(event)
    few = [data.draw(st.lists(values_of(a), min_size=1, max_size=5)) for a in schema]
    followed = [hashing.equi_depth_hash(*pair, 4) for pair in zip(schema, few, strict=True)]
    for hashes in (hashing.uniform_hashes(schema), followed):
        box = encode_subscription(schema, hashes, subscription)
        assert box.contains(encode_event(schema, hashes, event))


@given(attributes(), st.data())
def test_an_equality_on_a_value_is_one_point(attribute: Attribute, data: st.DataObject) -> None:
    schema = Schema([attribute])
    value = data.draw(values_of(attribute))
    subscription = Subscription.of(schema, [Comparison(attribute.name, Operator.EQUAL, value)])
    box = encode_subscription(schema, hashing.uniform_hashes(schema), subscription)
    assert box.low == box.high == encode_event(schema, hashing.uniform_hashes(schema), {"a": value})
