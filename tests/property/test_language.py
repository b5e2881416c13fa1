"""Texts of subscriptions read back as equal subscriptions; errors point into the text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.content.language import parse_subscription
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.subscription import Subscription
from gossamer.protocol.kernel.errors import ExpressionError
from support.content_strategies import consistent_comparisons, schemas, subscriptions

WORDS = ["price", "name", "and", "in", "startswith", "==", "<", "<=", ">", "!=", "=", "[", ")", ","]
LITERALS = ["80", "-1.5e3", "1/3", "1/0", "2020-01-31", "2020-13-01", '"A"', '"', "\\u00e9", "é"]
FRAGMENTS = st.sampled_from(WORDS + LITERALS)


def refusal(schema: Schema, text: str) -> ExpressionError | None:
    try:
        subscription = parse_subscription(schema, text)
    except ExpressionError as error:
        return error
    assert parse_subscription(schema, subscription.to_text()) == subscription
    return None


@given(schemas(), st.data())
def test_text_round_trip(schema: Schema, data: st.DataObject) -> None:
    subscription = data.draw(subscriptions(schema))
    again = parse_subscription(schema, subscription.to_text())
    assert again == subscription
    assert hash(again) == hash(subscription)
    assert again.to_text() == subscription.to_text()


@given(schemas(), st.data())
def test_the_order_of_comparisons_does_not_matter(schema: Schema, data: st.DataObject) -> None:
    comparisons = data.draw(consistent_comparisons(schema))
    shuffled = data.draw(st.permutations(comparisons))
    assert Subscription.of(schema, comparisons) == Subscription.of(schema, shuffled)


@given(schemas(), st.lists(FRAGMENTS | st.text(max_size=4), max_size=12))
def test_errors_point_into_the_text(schema: Schema, fragments: list[str]) -> None:
    text = " ".join(fragments)
    error = refusal(schema, text)
    assert error is None or (error.text == text and 1 <= error.column <= len(text) + 1)


@given(schemas(), st.data(), st.integers(0, 200))
def test_cut_texts_are_refused_within_what_is_left(
    schema: Schema, data: st.DataObject, kept: int
) -> None:
    text = data.draw(subscriptions(schema)).to_text()[:kept]
    error = refusal(schema, text)
    assert error is None or 1 <= error.column <= len(text) + 1


def test_brackets_do_not_nest() -> None:
    """A text full of them fails at the second one, not by deep recursion."""
    schema = Schema.from_mapping({"x": {"type": "integer", "minimum": 0, "maximum": 1}})
    error = refusal(schema, "x in " + "[" * 4000)
    assert error is not None
    assert error.column == 7
