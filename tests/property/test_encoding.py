"""Encoding a subscription loses no match, and matching agrees with the plainest evaluation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.content.operators import Comparison, Operator
from gossamer.protocol.content.schema import Attribute, Schema
from gossamer.protocol.content.subscription import Subscription
from gossamer.protocol.peer.space.encoding import encode_event, encode_subscription
from gossamer.protocol.peer.space.hashing import RING_SIZE, equi_depth_hash, uniform_hashes
from support.content_strategies import (
    attributes,
    consistent_comparisons,
    events,
    holds,
    schemas,
    values_of,
)


@given(schemas(), st.data())
def test_matching_is_the_conjunction_of_the_comparisons(
    schema: Schema, data: st.DataObject
) -> None:
    comparisons = data.draw(consistent_comparisons(schema))
    event = data.draw(events(schema))
    expected = all(holds(schema, comparison, event) for comparison in comparisons)
    subscription = Subscription.of(schema, comparisons)
    assert subscription.matches(event) == expected
    assert subscription.matcher()(schema.check_event(event)) == expected


@given(schemas(), st.data())
def test_the_box_holds_every_matching_event(schema: Schema, data: st.DataObject) -> None:
    event = data.draw(events(schema))
    true_of_event = [
        comparison
        for comparison in data.draw(consistent_comparisons(schema))
        if holds(schema, comparison, event)
    ]
    if not true_of_event:
        return
    subscription = Subscription.of(schema, true_of_event)
    assert subscription.matches(event)
    followed = [
        equi_depth_hash(a, data.draw(st.lists(values_of(a), min_size=1, max_size=5)), 4)
        for a in schema
    ]
    for hashes in (uniform_hashes(schema), followed):
        box = encode_subscription(schema, hashes, subscription)
        assert box.contains(encode_event(schema, hashes, event))


@given(schemas(), st.data())
def test_boxes_are_ranges_of_the_ring_and_whole_where_unconstrained(
    schema: Schema, data: st.DataObject
) -> None:
    subscription = Subscription.of(schema, data.draw(consistent_comparisons(schema)))
    box = encode_subscription(schema, uniform_hashes(schema), subscription)
    named = dict(subscription.constraints)
    for place, attribute in enumerate(schema):
        assert box.constrained[place] == (attribute.name in named)
        assert 0 <= box.low[place] <= box.high[place] < RING_SIZE
        if not box.constrained[place]:
            assert (box.low[place], box.high[place]) == (0, RING_SIZE - 1)


@given(attributes(), st.data())
def test_an_equality_on_a_value_is_one_point(attribute: Attribute, data: st.DataObject) -> None:
    schema = Schema([attribute])
    value = data.draw(values_of(attribute))
    subscription = Subscription.of(schema, [Comparison(attribute.name, Operator.EQUAL, value)])
    box = encode_subscription(schema, uniform_hashes(schema), subscription)
    assert box.low == box.high == encode_event(schema, uniform_hashes(schema), {"a": value})
