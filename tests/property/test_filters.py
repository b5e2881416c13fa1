"""Filters against an oracle that evaluates every comparison, and relations against enumeration."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.protocol.content import filters as api
from gossamer.protocol.content.filters import Filter, Relation
from gossamer.protocol.content.operators import Comparison, Operator
from support.filter_strategies import (
    VALUES,
    all_hold,
    comparison_lists,
    filter_or_none,
    filters,
    publications,
)


def members(wanted: Filter, name: str) -> set[Any]:
    """The values around the constants that an attribute's constraint takes."""
    held = wanted.get(name)
    return {value for value in VALUES[name] if held is None or held.contains(value)}


@given(comparison_lists(), publications())
def test_a_filter_matches_what_its_comparisons_match(
    comparisons: list[Comparison], publication: dict[str, Any]
) -> None:
    wanted = filter_or_none(comparisons)
    expected = all_hold(comparisons, publication)
    assert expected is (wanted is not None and wanted.matches(publication))


@given(st.sampled_from("nsdb").flatmap(lambda name: comparison_lists(name, complete=True)))
def test_exactly_what_nothing_matches_is_refused(comparisons: list[Comparison]) -> None:
    name = comparisons[0].attribute
    satisfiable = any(all_hold(comparisons, {name: value}) for value in VALUES[name])
    assert satisfiable is (filter_or_none(comparisons) is not None)


@given(st.sampled_from("nsdb").flatmap(lambda n: st.tuples(st.just(n), filters(n), filters(n))))
def test_relations_are_sound(drawn: tuple[str, Filter, Filter]) -> None:
    name, one, other = drawn
    ones, others = members(one, name), members(other, name)
    if api.covers(one, other):
        assert others <= ones
    if not api.intersects(one, other):
        assert not ones & others


@given(
    st.sampled_from("nsdb").flatmap(
        lambda n: st.tuples(st.just(n), filters(n, 4, True), filters(n, 4, True))
    )
)
@example(("s", api.parse('s >= "a" and s endswith "b"'), api.parse('s > "a" and s endswith "b"')))
@example(("s", api.parse('s > "a"'), api.parse('s >= "a" and s endswith "b"')))
def test_relations_are_complete_for_order_prefix_and_suffix(
    drawn: tuple[str, Filter, Filter],
) -> None:
    name, one, other = drawn
    ones, others = members(one, name), members(other, name)
    assert api.covers(one, other) is (others <= ones)
    assert api.intersects(one, other) is bool(ones & others)
    assert api.equal(one, other) is (ones == others)
    found = api.relation(one, other)
    assert (found is Relation.EQUAL) is api.equal(one, other)
    assert (found in (Relation.COVERED_BY, Relation.EQUAL)) is api.covered_by(one, other)
    assert (found is Relation.DISJOINT) is api.disjoint(one, other)


@given(filters(complete=True), filters(complete=True), filters(complete=True))
def test_covering_is_a_partial_order_up_to_equality(
    one: Filter, two: Filter, three: Filter
) -> None:
    assert api.covers(one, one)
    assert not (api.covers(one, two) and api.covers(two, three)) or api.covers(one, three)
    if api.covers(one, two):
        assert api.relation(one, two) in (Relation.COVERS, Relation.EQUAL)
        assert api.intersects(one, two)


@given(filters(), filters(), publications())
def test_relations_agree_with_publications(
    one: Filter, other: Filter, publication: dict[str, Any]
) -> None:
    if api.covers(one, other) and other.matches(publication):
        assert one.matches(publication)
    if one.matches(publication) and other.matches(publication):
        assert api.intersects(one, other)


@given(filters(), filters(), publications())
def test_what_conforms_and_matches_shows_that_both_meet(
    subscription: Filter, advertisement: Filter, publication: dict[str, Any]
) -> None:
    conforms = api.conforms(publication, advertisement)
    single = [api.conforms({name: value}, advertisement) for name, value in publication.items()]
    assert conforms is all(single)
    if conforms and subscription.matches(publication):
        assert api.meets(subscription, advertisement)
    if conforms and api.advertises_more(subscription, advertisement):
        assert api.conforms(publication, subscription)
    if conforms and publication and api.conforms(publication, subscription):
        assert api.both_allow(subscription, advertisement)


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
