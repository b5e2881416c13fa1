"""Subscriptions: exact matching, contradictions, and every form that their language reads."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from gossamer.protocol.content import schema as content_schema
from gossamer.protocol.content.errors import ContentError, ContradictionError, WrongValueError
from gossamer.protocol.content.grammar import MAX_TEXT, Comparison, Operator
from gossamer.protocol.content.schema import RESERVED_NAMES, Schema
from gossamer.protocol.content.subscription import MAX_COMPARISONS, Subscription, parse_subscription
from gossamer.protocol.kernel.errors import ExpressionError
from support.refusals import check_refused

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
def test_numbers_are_exact(sign: str, constant: object, value: object, expected: bool) -> None:
    assert subscribe(("price", sign, constant)).matches({"price": value}) is expected


def test_strings_compare_by_code_points_and_other_attributes_do_not_matter() -> None:
    assert subscribe(("name", ">", "\uffff")).matches({"name": "\U00010000", "colour": "red"})
    assert not subscribe(("name", "==", "é")).matches({"name": "e\u0301"})
    assert not subscribe(("name", ">", "a"), ("count", ">", 0)).matches({"name": "b"})


def test_startswith_is_a_range() -> None:
    prefix = subscribe(("name", "startswith", "Ab"))
    assert prefix == subscribe(("name", ">=", "Ab"), ("name", "<", "Ac"))
    assert prefix.matches({"name": "Ab"})
    assert prefix.matches({"name": "Ab\U0010ffff"})
    assert not prefix.matches({"name": "A"})
    assert prefix.to_text() == 'name startswith "Ab"'
    assert subscribe(("name", "startswith", "")).matches({"name": ""})


def test_enumerations_are_ordered_by_their_list_and_dates_are_instants() -> None:
    at_least = subscribe(("size", ">=", "medium"))
    assert [size for size in ("small", "medium", "large") if at_least.matches({"size": size})] == [
        "medium",
        "large",
    ]
    assert not at_least.matches({"size": 2})
    assert at_least == subscribe(("size", ">", "small"))
    after = subscribe(("day", ">", date(2020, 1, 31)))
    assert not after.matches({"day": date(2020, 1, 31)})
    assert after.matches({"day": datetime(2020, 1, 31, 0, 0, 0, 1, UTC)})
    assert after == subscribe(("day", ">", "2020-01-31"))
    assert not after.matches({"day": 1e12})


def test_constraints_intersect_and_equal_subscriptions_print_alike() -> None:
    above = [("price", ">", 3), ("price", ">=", 3)]
    narrowed = subscribe(*above, ("price", "<", 9), ("price", "<", 8))
    assert narrowed.to_text() == "price > 3 and price < 8"
    assert subscribe(("price", "<=", 5), ("price", ">=", 5)) == subscribe(("price", "==", 5))
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
def test_contradictions_are_refused(triples: list[tuple[str, str, object]], reason: str) -> None:
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
        *(("price", "<", value) for value in ("5", True, float("nan"))),
        *(("price", "startswith", "5"), ("size", "startswith", "s"), ("size", "<", "huge")),
        *(("name", "<", 5), ("name", "==", "\ud800"), ("count", "==", 5.5), ("day", "<", 5)),
    ],
)
def test_constants_of_the_wrong_type_are_refused(triple: tuple[str, str, object]) -> None:
    with pytest.raises(WrongValueError, match=f"attribute '{triple[0]}' takes"):
        subscribe(triple)


def test_a_subscription_constrains_something_that_no_word_reserves() -> None:
    with pytest.raises(ContentError, match="at least one attribute"):
        subscribe()
    for word in RESERVED_NAMES:
        with pytest.raises(ExpressionError, match="expected an attribute name"):
            parse_subscription(QUOTES, f"{word} == 5")


QUOTES = Schema.from_mapping(
    {
        "symbol": {"type": "enumeration", "values": ["IBM", "HPQ"]},
        "price": {"type": "float", "minimum": -1000, "maximum": 1000},
        "name": {"type": "string"},
        "day": {"type": "date", "minimum": "2020-01-01", "maximum": "2020-12-31"},
    }
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (
            'symbol == "IBM" and price >= 80 and price < 120.5 and name startswith "A"',
            'name startswith "A" and price >= 80 and price < 120.5 and symbol == "IBM"',
        ),
        ("80 <= price < 120", "price >= 80 and price < 120"),
        ("120 > price >= 80", "price >= 80 and price < 120"),
        ("80 == price", "price == 80"),
        ("5<price", "price > 5"),
        ("price in [80, 120.5)", "price >= 80 and price < 120.5"),
        ("price in ( -8 , -2 ]", "price > -8 and price <= -2"),
        ("price<-5", "price < -5"),
        ("price < 1.5e2", "price < 150"),
        ("price < 1/3", "price < 1/3"),
        ("price < 0.5", "price < 0.5"),
        ("price < 1/2", "price < 0.5"),
        ("day > 2020-01-31", "day > 2020-01-31"),
        ('day > "2020-01-31T14:00:00+02:00"', "day > 2020-01-31T12:00:00Z"),
        ("day in [2020-01-31, 2020-02-01)", "day >= 2020-01-31 and day < 2020-02-01"),
        (r'name == "a\"\\\n\t\u00e9\U0001F600"', 'name == "a\\"\\\\\\n\\té😀"'),
        ("\tprice\n>  0 ", "price > 0"),
    ],
)
def test_forms(text: str, canonical: str) -> None:
    assert parse_subscription(QUOTES, text).to_text() == canonical


def test_decimal_literals_are_the_floats_that_programs_publish() -> None:
    assert parse_subscription(QUOTES, "price == 0.1").matches({"price": 0.1})
    assert not parse_subscription(QUOTES, "price == 1/10").matches({"price": 0.1})


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "expected an attribute name, found the end"),
        ("  ", 3, "expected an attribute name, found the end"),
        ("prise > 5", 1, "there is no attribute 'prise', did you mean 'price'?"),
        ("price", 6, "expected a comparison"),
        ("price = 5", 7, "expected a comparison (== < <= > >="),
        ("price != 5", 7, "found '!='"),
        ("price >", 8, "expected a number, date or string in double quotes, found the end"),
        ("price > and", 9, "found 'and'"),
        ("price > 5 price < 6", 11, "expected 'and', found 'price'"),
        ("price > 5 and", 14, "expected an attribute name"),
        ("price > 5 or price < 3", 11, "expected 'and', found 'or'"),
        ('price == "IBM"', 10, "'price' takes a number from -1000 to 1000, not the string \"IBM\""),
        ("symbol == 5", 11, 'one of the enumeration "IBM", "HPQ", not the integer 5'),
        ('name < "a" and name > 2020-01-01', 23, "takes a string, not the date 2020-01-01"),
        ("day < 5", 7, "not the integer 5"),
        ('price startswith "A"', 18, "startswith needs a string attribute, this is of type float"),
        ("name startswith A", 17, "expected a number, date or string in double quotes, found 'A'"),
        ("price > 5 and price < 3", 15, "price > 5 and price < 3 contradict each other"),
        ("price > 5 and 1 < price < 3", 19, "contradict each other"),
        ("price in [5, 3]", 1, "price >= 5 and price <= 3 contradict each other"),
        ("price > 1001", 1, "can never hold"),
        ("5 < price > 3", 11, "a range goes one way, but < is followed by >"),
        ("5 == price < 7", 12, "a range goes one way, but == is followed by <"),
        ("price in {5, 3}", 10, "expected '[' or '(', found '{'"),
        ("price in [5 3]", 13, "expected ',', found '3'"),
        ("price in [5, 3", 15, "expected ']' or ')', found the end"),
        ('name == "abc', 9, "no closing quote"),
        (r'name == "a\q"', 11, r"unknown escape \q"),
        (r'name == "a\ud800"', 11, "a lone surrogate is no character"),
        (r'name == "\U00110000"', 10, r"\U00110000 is no character"),
        ("price > 80abc", 11, "unexpected character after number 80"),
        ("price > 1.2.3", 12, "unexpected character after number 1.2"),
        ("price > 1/0", 9, "1/0 is not a finite number"),
        ("price > 1e1001", 9, "1e1001 is not a finite number"),
        ("day > 2020-02-30", 7, "2020-02-30 is not a date"),
        ("price > \uff15", 9, "unexpected character"),
        ("price $ 5", 7, "unexpected character '$'"),
    ],
)
def test_errors_point_at_the_fault(text: str, column: int, reason: str) -> None:
    check_refused(lambda refused: parse_subscription(QUOTES, refused), text, column, reason)


def test_length_and_number_of_comparisons_are_bounded() -> None:
    longest = "price > 5".ljust(MAX_TEXT)
    assert parse_subscription(QUOTES, longest).to_text() == "price > 5"
    with pytest.raises(ExpressionError, match="more than the 4096 allowed") as caught:
        parse_subscription(QUOTES, longest + " ")
    assert len(str(caught.value)) < 300
    most = ["price > 5"] * MAX_COMPARISONS
    assert parse_subscription(QUOTES, " and ".join(most)).to_text() == "price > 5"
    with pytest.raises(ExpressionError, match="more than 64 comparisons") as caught:
        parse_subscription(QUOTES, " and ".join([*most, "price > 5"]))
    assert caught.value.column == len(" and ".join([*most, ""])) + 1
