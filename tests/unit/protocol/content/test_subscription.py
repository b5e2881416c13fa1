"""Subscriptions, exact and in every form of their language; what people write is what it says."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.client.results import ReceivedEvent
from gossamer.node.commands.clients.event_text import (
    event_of_arguments,
    event_of_line,
    line_of_event,
)
from gossamer.node.errors import EventInputError
from gossamer.protocol.content import schema as attributes
from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.protocol.content.filters import parse
from gossamer.protocol.content.grammar import MAX_TEXT, Comparison, Operator
from gossamer.protocol.content.schema import RESERVED_NAMES, Schema
from gossamer.protocol.content.subscription import MAX_COMPARISONS, Subscription, parse_subscription
from gossamer.protocol.content.values import canonical, read_number
from gossamer.protocol.kernel.errors import (
    ContentError,
    ContradictionError,
    ExpressionError,
    WrongValueError,
)
from support.refusals import check_refused

SCHEMA = Schema(
    [
        attributes.FloatAttribute("price", -1e18, 1e18),
        attributes.IntegerAttribute("count", 0, 9),
        attributes.StringAttribute("name"),
        attributes.EnumerationAttribute("size", ("small", "medium", "large")),
        attributes.DateAttribute("day", datetime(2020, 1, 1), datetime(2021, 1, 1)),
    ]
)


def subscribe(*triples: tuple[str, str, object]) -> Subscription:
    """The conjunction of (attribute, operator, constant) triples."""
    comparisons = [Comparison(name, Operator(sign), value) for name, sign, value in triples]
    return Subscription.of(SCHEMA, comparisons)


@pytest.mark.parametrize(
    ("sign", "constant", "value", "expected"),
    [
        *(("<", 2**53 + 1, float(2**53), True), ("==", 2**53 + 1, float(2**53), False)),
        ("==", 2**53, float(2**53), True),
        *(("<=", Decimal("0.1"), 0.1, False), ("<=", Decimal("0.1"), Decimal("0.1"), True)),
        *(("==", Fraction(1, 3), 1 / 3, False), (">", 1 / 3, Fraction(1, 3), True)),
        ("==", Decimal("0.5"), Fraction(1, 2), True),
        *((">=", 0, -0.0, True), ("==", 5, 5.0, True), ("==", 5, np.int64(5), True)),
        *(("==", 1, True, False), (">", 5, float("inf"), False), ("<", 5, float("nan"), False)),
        *((">", 5, other, False) for other in ("6", None)),
    ],
)
def test_numbers_are_exact(sign: str, constant: object, value: object, expected: bool) -> None:
    assert subscribe(("price", sign, constant)).matches({"price": value}) is expected


def test_strings_compare_by_code_points_and_startswith_is_a_range() -> None:
    assert subscribe(("name", ">", "\uffff")).matches({"name": "\U00010000", "colour": "red"})
    assert not subscribe(("name", "==", "é")).matches({"name": "e\u0301"})
    assert not subscribe(("name", ">", "a"), ("count", ">", 0)).matches({"name": "b"})
    prefix = subscribe(("name", "startswith", "Ab"))
    assert prefix == subscribe(("name", ">=", "Ab"), ("name", "<", "Ac"))
    assert prefix.matches({"name": "Ab"})
    assert prefix.matches({"name": "Ab\U0010ffff"})
    assert not prefix.matches({"name": "A"})
    assert prefix.to_text() == 'name startswith "Ab"'
    assert subscribe(("name", "startswith", "")).matches({"name": ""})


def test_enumerations_are_ordered_by_their_list_and_dates_are_instants() -> None:
    at_least = subscribe(("size", ">=", "medium"))
    sizes = ("small", "medium", "large", 2)
    assert [size for size in sizes if at_least.matches({"size": size})] == ["medium", "large"]
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
    assert (one, hash(one)) == (other, hash(other))
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
    schema = Schema([attributes.StringAttribute("letters", "abc")])

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
def test_forms_of_subscriptions(text: str, canonical: str) -> None:
    assert parse_subscription(QUOTES, text).to_text() == canonical


def test_decimal_literals_are_the_floats_that_programs_publish_and_large_ones_exact() -> None:
    assert parse_subscription(QUOTES, "price == 0.1").matches({"price": 0.1})
    assert not parse_subscription(QUOTES, "price == 1/10").matches({"price": 0.1})
    wanted = parse("x > 9007199254740993.0")
    assert [wanted.matches({"x": x}) for x in (2**53 + 1, 2**53 + 2)] == [False, True]


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
def test_errors_in_subscriptions_point_at_the_fault(text: str, column: int, reason: str) -> None:
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


THIRD = Fraction(1, 3)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("-3", -3), ("80.5", 80.5), ("5e-324", 5e-324), ("1/3", THIRD), ("2/4", 0.5)),
        *(("1e500", 10**500), ("9007199254740993.0", 9007199254740993)),
        *((f"1e-{digits}", Fraction(1, 10**digits)) for digits in (400, 500)),
        ("0.1000000000000000055511151231257827", Fraction("0.1000000000000000055511151231257827")),
        *(
            (text, None)
            for text in ("", "x", "inf", "-inf", "nan", "1/0", "1e1001", "1e-999999999")
        ),
    ],
)
def test_a_number_is_what_it_says(text: str, number: object) -> None:
    assert read_number(text) == number
    assert type(read_number(text)) is type(number)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_floats_and_whole_numbers_are_read_as_they_are_written(number: float) -> None:
    assert read_number(repr(number)) == canonical(number)


@pytest.mark.parametrize("value", [10**500, Fraction(1, 10**500), 2**53 + 1, THIRD, inf, -inf, 0.1])
def test_what_is_printed_can_be_published_again(value: object) -> None:
    event = ReceivedEvent("1", {"x": value}, "2", 0.0, (), 0)
    line = line_of_event(event)
    json.loads(line, parse_constant=pytest.fail)
    assert event_of_line(None, line, 1) == {"x": value}


def test_arguments_and_lines_of_json_are_exact() -> None:
    assert event_of_arguments(None, ["x=1e500", "y=inf"]) == {"x": 10**500, "y": "inf"}
    assert event_of_line(None, '{"x": 9007199254740993.0}', 1) == {"x": 9007199254740993}
    with pytest.raises(EventInputError, match=r"line 4: .* more than 1000 digits"):
        event_of_line(None, '{"x": 1e1001}', 4)


@pytest.mark.parametrize("text", ["", "a", "Zürich\r\n\U0001f310", "a\ufeff"])
def test_a_mark_before_the_text_is_no_part_of_it(text: str) -> None:
    assert decoded(text.encode()) == decoded(text.encode("utf-8-sig")) == text


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        *((b"a\xffb", "not UTF-8 at byte 2"), (b"\xef\xbb", "not UTF-8 at byte 1")),
        *(("a".encode(f"utf-16{end}"), "not UTF-8 but UTF-16") for end in ("", "-le", "-be")),
    ],
)
def test_what_is_no_utf_8_is_told(raw: bytes, reason: str) -> None:
    with pytest.raises(EncodingError, match=f"^{reason}$"):
        decoded(raw)
