"""Filters, subscriptions, expressions and their texts against oracles of single comparisons."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.protocol.content import filters as api
from gossamer.protocol.content.filters import Filter, Relation
from gossamer.protocol.content.filters.expressions import Expression, parse_expression
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.subscription import Subscription, parse_subscription
from gossamer.protocol.kernel.errors import ExpressionError
from gossamer.protocol.peer.space.covering import MOST_BOXES, coarser, cover
from gossamer.protocol.peer.space.encoding import EncodedBox, encode_event
from gossamer.protocol.peer.space.hashing import equi_depth_hash, uniform_hashes
from support.content_strategies import consistent_comparisons, schemas, subscriptions
from support.filter_strategies import (
    SCHEMA,
    VALUES,
    Written,
    all_hold,
    comparison_lists,
    filter_or_none,
    filters,
    publications,
    random_event,
    random_written,
)


def members(wanted: Filter, name: str) -> set[Any]:
    held = wanted.get(name)
    return {value for value in VALUES[name] if held is None or held.contains(value)}


@given(comparison_lists(), publications())
def test_matches_of_comparisons(comparisons: list[Comparison], publication: dict[str, Any]) -> None:
    wanted = filter_or_none(comparisons)
    expected = all_hold(comparisons, publication)
    assert expected is (wanted is not None and wanted.matches(publication))


@given(st.sampled_from("nsdb").flatmap(lambda name: comparison_lists(name, complete=True)))
def test_exactly_what_nothing_matches_is_refused(comparisons: list[Comparison]) -> None:
    name = comparisons[0].attribute
    satisfiable = any(all_hold(comparisons, {name: value}) for value in VALUES[name])
    assert satisfiable is (filter_or_none(comparisons) is not None)


def filters_of_one_name(
    most: int = 5, complete: bool = False
) -> st.SearchStrategy[tuple[str, Filter, Filter]]:
    return st.sampled_from("nsdb").flatmap(
        lambda name: st.tuples(st.just(name), *[filters(name, most, complete)] * 2)
    )


@given(filters_of_one_name())
def test_relations_are_sound(drawn: tuple[str, Filter, Filter]) -> None:
    name, one, other = drawn
    ones, others = members(one, name), members(other, name)
    if api.covers(one, other):
        assert others <= ones
    if not api.intersects(one, other):
        assert not ones & others


@given(filters_of_one_name(4, True))
@example(("s", api.parse('s >= "a" and s endswith "b"'), api.parse('s > "a" and s endswith "b"')))
@example(("s", api.parse('s > "a"'), api.parse('s >= "a" and s endswith "b"')))
def test_relations_are_complete_for_order_and_affixes(drawn: tuple[str, Filter, Filter]) -> None:
    name, one, other = drawn
    ones, others = members(one, name), members(other, name)
    assert api.covers(one, other) is (others <= ones)
    assert api.intersects(one, other) is bool(ones & others)
    found = api.relation(one, other)
    assert (found is Relation.EQUAL) is (ones == others)
    assert (found in (Relation.COVERED_BY, Relation.EQUAL)) is api.covers(other, one)
    assert (found is Relation.DISJOINT) is api.disjoint(one, other)


@given(filters(complete=True), filters(complete=True), filters(complete=True))
def test_covering_orders_filters_up_to_equality(one: Filter, two: Filter, three: Filter) -> None:
    assert api.covers(one, one)
    assert not (api.covers(one, two) and api.covers(two, three)) or api.covers(one, three)
    if api.covers(one, two):
        assert api.relation(one, two) in (Relation.COVERS, Relation.EQUAL)
        assert api.intersects(one, two)


@given(filters(), filters(), publications())
def test_matches_fit_relations(one: Filter, other: Filter, publication: dict[str, Any]) -> None:
    """And what conforms to an advertisement, and matches, shows that both meet."""
    if one.matches(publication) and other.matches(publication):
        assert api.intersects(one, other)
    if api.covers(one, other) and other.matches(publication):
        assert one.matches(publication)
    conforms = api.conforms(publication, other)
    assert conforms is all(api.conforms({name: of}, other) for name, of in publication.items())
    if conforms and one.matches(publication):
        assert api.meets(one, other)
    if conforms and api.advertises_more(one, other):
        assert api.conforms(publication, one)
    if conforms and publication and api.conforms(publication, one):
        assert api.both_allow(one, other)


@given(filters() | filters("s"))
@example(api.parse('s > "a" and s endswith "a"'))
@example(api.parse('s > "a" and s startswith "a" and s not contains "b"'))
def test_gossamer_text_round_trips(wanted: Filter) -> None:
    assert api.parse(api.to_text(wanted)) == wanted


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="`"), min_size=1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.dictionaries(NAMES, TEXTS | st.integers() | st.fractions() | st.booleans(), max_size=4))
def test_publications_and_odd_names_round_trip(values: dict[str, Any]) -> None:
    publication = api.exact_publication(values)
    if values:
        assert api.parse_publication(api.publication_to_text(publication)) == publication
        equals = [Comparison(name, Operator.EQUAL, value) for name, value in values.items()]
        wanted = Filter.of(equals)
        assert api.parse(api.to_text(wanted)) == wanted


WORDS = ["price", "name", "and", "in", "startswith", "==", "<", "<=", ">", "!=", "=", "[", ")", ","]
LITERALS = ["80", "-1.5e3", "1/3", "1/0", "2020-01-31", "2020-13-01", '"A"', '"', "\\u00e9", "é"]
FRAGMENTS = st.sampled_from(WORDS + LITERALS)


def refusal(schema: Schema, text: str) -> ExpressionError | None:
    """Why a text is refused, which points into it; None where it is read, and read back."""
    try:
        subscription = parse_subscription(schema, text)
    except ExpressionError as error:
        refused = error
    else:
        assert parse_subscription(schema, subscription.to_text()) == subscription
        return None
    assert refused.text == text
    assert 1 <= refused.column <= len(text) + 1
    return refused


@given(schemas(), st.integers(0, 200), st.data())
def test_text_round_trip(schema: Schema, kept: int, data: st.DataObject) -> None:
    """A text that is cut is refused within it."""
    subscription = data.draw(subscriptions(schema))
    text = subscription.to_text()
    again = parse_subscription(schema, text)
    assert (again, hash(again), again.to_text()) == (subscription, hash(subscription), text)
    refusal(schema, text[:kept])


@given(schemas(), st.data())
def test_the_order_of_comparisons_does_not_matter(schema: Schema, data: st.DataObject) -> None:
    comparisons = data.draw(consistent_comparisons(schema))
    shuffled = data.draw(st.permutations(comparisons))
    assert Subscription.of(schema, comparisons) == Subscription.of(schema, shuffled)


@given(schemas(), st.lists(FRAGMENTS | st.text(max_size=4), max_size=12))
def test_errors_point_into_the_text(schema: Schema, fragments: list[str]) -> None:
    refusal(schema, " ".join(fragments))


def test_brackets_do_not_nest() -> None:
    """A text full of them fails at the second one, not by deep recursion."""
    schema = Schema.from_mapping({"x": {"type": "integer", "minimum": 0, "maximum": 1}})
    error = refusal(schema, "x in " + "[" * 4000)
    assert error is not None
    assert error.column == 7


EVENTS = 60


def parsed(written: Written) -> Expression | None:
    try:
        return parse_expression(SCHEMA, written.text)
    except ExpressionError as error:
        if "never hold" in error.reason or "contradict" in error.reason:
            return None
        raise


@pytest.mark.parametrize("seed", range(8))
def test_an_expression_matches_what_its_comparisons_say(seed: int) -> None:
    """A refused conjunction matches nothing."""
    rng = Random(seed)
    for _ in range(60):
        written = random_written(rng)
        expression = parsed(written)
        for _ in range(EVENTS if expression is not None else 0):
            event = random_event(rng, absent=0.2)
            assert expression is not None
            assert expression.matches(event) is written.matches(event), (seed, written.text, event)
    rng = Random(seed)
    for _ in range(200):
        written = random_written(rng, depth=1)
        if written.word == "and" and parsed(written) is None:
            events = [random_event(rng) for _ in range(EVENTS)]
            refused = [part for part in written.parts if parsed(part) is None]
            matching = [event for event in events if written.matches(event)]
            assert refused or not matching, (seed, written.text, matching)


@pytest.mark.parametrize("seed", range(8))
def test_a_cover_excludes_nothing_that_matches_however_coarse(seed: int) -> None:
    rng = Random(seed)
    uniform = uniform_hashes(SCHEMA)
    followed = tuple(
        equi_depth_hash(one, [random_event(rng)[one.name] for _ in range(5)], 4) for one in SCHEMA
    )
    for _ in range(40):
        written = random_written(rng)
        expression = parsed(written)
        if expression is None:
            continue
        events = [random_event(rng, absent=0.2) for _ in range(EVENTS)]
        for hashes in (uniform, followed):
            finest = cover(SCHEMA, hashes, expression)
            points = [encode_event(SCHEMA, hashes, one) for one in events if written.matches(one)]
            covers = [finest, *(coarser(finest, most) for most in (8, 4, 2, 1))]
            for most, boxes in zip((MOST_BOXES, 8, 4, 2, 1), covers, strict=True):
                assert len(boxes) <= most
                outside = [point for point in points if not held(boxes, point)]
                assert not outside, (seed, written.text, most)
            for finer, wider in pairwise(covers):
                assert all(is_inside(box, wider) for box in finer), (seed, written.text)


def held(boxes: tuple[EncodedBox, ...], point: tuple[int, ...]) -> bool:
    return any(box.contains(point) for box in boxes)


def is_inside(box: EncodedBox, boxes: tuple[EncodedBox, ...]) -> bool:
    return any(one.contains(box.low) and one.contains(box.high) for one in boxes)


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        ("x > 1", 1),
        ("x != 1", 1),
        ("n != 4", 2),
        ('s in {"a", "b", "abc"}', 3),
        ("x < 1 or n > 7", 2),
        ("x < 1 or x < 2", 1),
        ("(x < 1 or x > 2) and (n < 2 or n > 7)", 4),
        ('s contains "a"', 1),
        ("present(x) or present(n)", 1),
        (" or ".join(f"n == {k % 10} and x > {k % 10}" for k in range(60)), 10),
        (" or ".join(f's == "{chr(97 + k)}" and x > {k % 10}' for k in range(26)), MOST_BOXES),
        ("(x < 1 or n == 3) and x > 2 and n > 5", 0),
    ],
)
def test_covers_have_the_boxes_that_people_would_draw(text: str, boxes: int) -> None:
    assert len(cover(SCHEMA, uniform_hashes(SCHEMA), parse_expression(SCHEMA, text))) == boxes
