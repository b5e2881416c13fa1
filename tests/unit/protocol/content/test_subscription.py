"""Subscriptions: exact matching, intersection, contradictions, equality."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from gossamer.protocol.content import schema as content_schema
from gossamer.protocol.content.errors import ContentError, ContradictionError, WrongValueError
from gossamer.protocol.content.language import parse_subscription
from gossamer.protocol.content.operators import Comparison, Operator
from gossamer.protocol.content.subscription import Subscription

SCHEMA = content_schema.Schema(
    [
        content_schema.FloatAttribute("price", -1e18, 1e18),
        content_schema.IntegerAttribute("count", 0, 9),
        content_schema.StringAttribute("name"),
        content_schema.EnumerationAttribute("size", ("small", "medium", "large")),
        content_schema.DateAttribute("day", datetime(2020, 1, 1), datetime(2021, 1, 1)),
    ]
)


def subscribe(*triples: tuple[str, str, object]) -> Subscription:
    """The conjunction of (attribute, operator, constant) triples."""
    comparisons = [Comparison(name, Operator(sign), value) for name, sign, value in triples]
    return Subscription.of(SCHEMA, comparisons)


@pytest.mark.parametrize(
    ("sign", "constant", "value", "expected"),
    [
        ("<", 2**53 + 1, float(2**53), True),
        ("==", 2**53 + 1, float(2**53), False),
        ("==", 2**53, float(2**53), True),
        ("<=", Decimal("0.1"), 0.1, False),
        ("<=", Decimal("0.1"), Decimal("0.1"), True),
        ("==", Fraction(1, 3), 1 / 3, False),
        (">", 1 / 3, Fraction(1, 3), True),
        ("==", Decimal("0.5"), Fraction(1, 2), True),
        (">=", 0, -0.0, True),
        ("==", 5, 5.0, True),
        ("==", 5, np.int64(5), True),
        ("==", 1, True, False),
        (">", 5, float("inf"), False),
        ("<", 5, float("nan"), False),
        (">", 5, "6", False),
        (">", 5, None, False),
    ],
)
def test_numbers_compare_as_exact_reals(
    sign: str, constant: object, value: object, expected: bool
) -> None:
    assert subscribe(("price", sign, constant)).matches({"price": value}) is expected


def test_open_and_closed_bounds_differ_at_their_value() -> None:
    half_open = subscribe(("price", ">=", 80), ("price", "<", 120))
    assert half_open.matches({"price": 80})
    assert not half_open.matches({"price": 120})
    assert subscribe(("price", ">", 80), ("price", "<=", 120)).matches({"price": 120.0})


def test_a_missing_attribute_never_matches_and_a_further_one_never_hinders() -> None:
    both = subscribe(("price", ">", 0), ("count", ">", 0))
    assert not both.matches({"price": 1})
    assert both.matches({"price": 1, "count": 1, "colour": "red"})


def test_strings_compare_by_code_point() -> None:
    assert subscribe(("name", "<", "a")).matches({"name": "Z"})
    assert subscribe(("name", ">", "\uffff")).matches({"name": "\U00010000"})
    assert subscribe(("name", ">", "z")).matches({"name": "é"})
    assert not subscribe(("name", "==", "é")).matches({"name": "e\u0301"})


def test_startswith_is_a_range() -> None:
    prefix = subscribe(("name", "startswith", "Ab"))
    assert prefix == subscribe(("name", ">=", "Ab"), ("name", "<", "Ac"))
    assert prefix.matches({"name": "Ab"})
    assert prefix.matches({"name": "Ab\U0010ffff"})
    assert not prefix.matches({"name": "A"})
    assert prefix.to_text() == 'name startswith "Ab"'
    assert subscribe(("name", "startswith", "")).matches({"name": ""})


def test_an_enumeration_is_ordered_by_its_list() -> None:
    at_least = subscribe(("size", ">=", "medium"))
    assert [size for size in ("small", "medium", "large") if at_least.matches({"size": size})] == [
        "medium",
        "large",
    ]
    assert not at_least.matches({"size": 2})
    assert at_least == subscribe(("size", ">", "small"))


def test_dates_are_instants() -> None:
    after = subscribe(("day", ">", date(2020, 1, 31)))
    assert not after.matches({"day": date(2020, 1, 31)})
    assert after.matches({"day": datetime(2020, 1, 31, 0, 0, 0, 1, UTC)})
    assert after == subscribe(("day", ">", "2020-01-31"))
    assert not after.matches({"day": 1e12})


def test_constraints_on_one_attribute_intersect() -> None:
    above = [("price", ">", 3), ("price", ">=", 3)]
    narrowed = subscribe(*above, ("price", "<", 9), ("price", "<", 8))
    assert narrowed.to_text() == "price > 3 and price < 8"
    assert subscribe(("price", "<=", 5), ("price", ">=", 5)) == subscribe(("price", "==", 5))


def test_equal_subscriptions_hash_and_print_alike() -> None:
    one = subscribe(("price", ">=", 80), ("count", "==", 3))
    other = subscribe(("count", "==", 3.0), ("price", ">=", Decimal("80.00")))
    assert one == other
    assert hash(one) == hash(other)
    assert one.to_text() == other.to_text() == "count == 3 and price >= 80"
    assert one != subscribe(("price", ">", 80), ("count", "==", 3))


@pytest.mark.parametrize(
    ("triples", "reason"),
    [
        ([("price", ">", 5), ("price", "<", 3)], "price > 5 and price < 3 contradict each other"),
        ([("price", ">", 5), ("price", "<=", 5)], "price > 5 and price <= 5 contradict"),
        ([("price", "==", 5), ("price", "==", 6)], "price == 5 and price == 6 contradict"),
        ([("count", ">", 5), ("count", "<", 6)], "count > 5 and count < 6 contradict"),
        ([("count", ">", 9)], "count > 9 can never hold: count is an integer from 0 to 9"),
        ([("price", ">", 2e18)], "can never hold"),
        ([("size", ">", "large")], 'size > "large" can never hold'),
        ([("size", "==", "small"), ("size", "==", "large")], "contradict"),
        ([("name", "startswith", "A"), ("name", "startswith", "B")], 'name startswith "B" contrad'),
        ([("name", "<", "")], "can never hold"),
    ],
)
def test_contradictions_are_refused_with_the_reason(
    triples: list[tuple[str, str, object]], reason: str
) -> None:
    with pytest.raises(ContradictionError) as caught:
        subscribe(*triples)
    assert reason in str(caught.value)
    assert caught.value.attribute == triples[0][0]


def test_a_single_text_is_of_the_alphabet_or_none_can_be_meant() -> None:
    schema = content_schema.Schema([content_schema.StringAttribute("letters", "abc")])

    def between(low: str, high: str) -> Subscription:
        pairs = ((Operator.AT_LEAST, low), (Operator.AT_MOST, high))
        return Subscription.of(schema, [Comparison("letters", *pair) for pair in pairs])

    with pytest.raises(ContradictionError, match='letters >= "0" and letters <= "0" contradict'):
        between("0", "0")
    for low, high in (("b", "b"), ("0", "a"), ("0", "1")):
        found = between(low, high)
        assert parse_subscription(schema, found.to_text()) == found


@pytest.mark.parametrize(
    "triple",
    [
        ("price", "<", "5"),
        ("price", "<", True),
        ("price", "<", float("nan")),
        ("price", "startswith", "5"),
        ("size", "startswith", "s"),
        ("size", "<", "huge"),
        ("name", "<", 5),
        ("name", "==", "\ud800"),
        ("count", "==", 5.5),
        ("day", "<", 5),
    ],
)
def test_constants_of_the_wrong_type_are_refused(triple: tuple[str, str, object]) -> None:
    with pytest.raises(WrongValueError, match=f"attribute '{triple[0]}' takes"):
        subscribe(triple)


def test_a_subscription_constrains_something() -> None:
    with pytest.raises(ContentError, match="at least one attribute"):
        subscribe()
