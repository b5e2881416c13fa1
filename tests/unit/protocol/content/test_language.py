"""The subscription language: every form it reads, and where it points when it cannot."""

from __future__ import annotations

import pytest

from gossamer.protocol.content.language import MAX_COMPARISONS, parse_subscription
from gossamer.protocol.content.schema import RESERVED_NAMES, Schema
from gossamer.protocol.content.tokens import MAX_TEXT
from gossamer.protocol.kernel.errors import ExpressionError
from support.refusals import check_refused

SCHEMA = Schema.from_mapping(
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
    assert parse_subscription(SCHEMA, text).to_text() == canonical


def test_decimal_literals_are_the_floats_that_programs_publish() -> None:
    assert parse_subscription(SCHEMA, "price == 0.1").matches({"price": 0.1})
    assert not parse_subscription(SCHEMA, "price == 1/10").matches({"price": 0.1})


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
        ("price > 1e999", 9, "1e999 is not a finite number"),
        ("day > 2020-02-30", 7, "2020-02-30 is not a date"),
        ("price > \uff15", 9, "unexpected character"),
        ("price $ 5", 7, "unexpected character '$'"),
    ],
)
def test_errors_point_at_the_fault(text: str, column: int, reason: str) -> None:
    check_refused(lambda refused: parse_subscription(SCHEMA, refused), text, column, reason)


def test_length_is_bounded() -> None:
    longest = "price > 5".ljust(MAX_TEXT)
    assert parse_subscription(SCHEMA, longest).to_text() == "price > 5"
    with pytest.raises(ExpressionError, match="more than the 4096 allowed") as caught:
        parse_subscription(SCHEMA, longest + " ")
    assert len(str(caught.value)) < 300


def test_the_number_of_comparisons_is_bounded() -> None:
    most = ["price > 5"] * MAX_COMPARISONS
    assert parse_subscription(SCHEMA, " and ".join(most)).to_text() == "price > 5"
    with pytest.raises(ExpressionError, match="more than 64 comparisons") as caught:
        parse_subscription(SCHEMA, " and ".join([*most, "price > 5"]))
    assert caught.value.column == len(" and ".join([*most, ""])) + 1


def test_every_word_of_the_language_is_reserved() -> None:
    for word in RESERVED_NAMES:
        with pytest.raises(ExpressionError, match="expected an attribute name"):
            parse_subscription(SCHEMA, f"{word} == 5")
