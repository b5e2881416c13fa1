"""Expressions: what their text means, and where a fault is said to be."""

from __future__ import annotations

import pytest

from gossamer.protocol.content import schema
from gossamer.protocol.content.expressions.language import MAX_DEPTH, parse_expression
from support.refusals import check_refused

SCHEMA = schema.Schema(
    [
        schema.FloatAttribute("price", 0, 1000),
        schema.StringAttribute("symbol"),
        schema.IntegerAttribute("n", 0, 10),
        schema.EnumerationAttribute("size", ("S", "M", "L")),
    ]
)
EVENT = {"price": 80, "symbol": "IBM", "n": 3, "size": "M"}


@pytest.mark.parametrize(
    "text",
    [
        'symbol in {"HPQ", "IBM"}',
        'symbol not in {"HPQ", "DEC"}',
        "not price in (80, 90]",
        "not (price > 80 or n > 3)",
        "n == 1 or n == 3 and price == 80",
        "not not n == 3",
        "present(size)",
        'size > "S" and size < "L"',
        'size != "S"',
        'not (symbol startswith "H" and symbol contains "x")',
        'symbol not startswith "H"',
        "`n` == 3",
    ],
)
def test_these_match(text: str) -> None:
    assert parse_expression(SCHEMA, text).matches(EVENT)


@pytest.mark.parametrize(
    "text",
    [
        'symbol in {"HPQ"}',
        "(n == 1 or n == 3) and price == 79",
        "not (n == 3 or price > 100)",
        'symbol == "ibm"',
        'size >= "L"',
    ],
)
def test_these_do_not_match(text: str) -> None:
    assert not parse_expression(SCHEMA, text).matches(EVENT)


@pytest.mark.parametrize(
    "text",
    ["not price < 80", "price != 3", "not (price < 80 and n == 3)", "present(price)", "price >= 0"],
)
def test_a_missing_attribute_meets_neither_a_demand_nor_its_negation(text: str) -> None:
    assert not parse_expression(SCHEMA, text).matches({"n": 3})


def test_what_is_missing_does_not_matter_where_the_rest_decides() -> None:
    assert parse_expression(SCHEMA, "price > 80 or n == 3").matches({"n": 3})
    assert parse_expression(SCHEMA, "not (price < 80 and n == 4)").matches({"n": 3})


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("price > 5 and price < 3", 15, "contradict each other"),
        ("price > 2000 or n == 3", 1, "price > 2000 can never hold: it is a number from 0 to"),
        ("n > 1 and n < 2", 11, "can never hold, with what else is asked of n"),
        ('size < "S"', 1, "can never hold"),
        ('size > "S" and size < "M"', 16, "can never hold, with what else"),
        ("not present(price)", 5, "presence cannot be negated"),
        ('n startswith "3"', 14, "startswith needs a string attribute, this is of type integer"),
        ("symbol > 3", 10, "takes a string, not the integer 3"),
        ("n == 1.5", 6, "takes an integer from 0 to 10, not the number 1.5"),
        ("(n == 1", 8, "expected 'and', 'or' or ')', found the end"),
        ("n == 1)", 7, "expected 'and' or 'or', found ')'"),
        ("n == 1 or", 10, "expected an attribute name, found the end"),
        ("n in {}", 7, "expected a number"),
        ("n in {1, 2", 11, "expected ',' or '}', found the end"),
        ("prise == 3", 1, "there is no attribute 'prise', did you mean 'price'?"),
        ("price == $x", 10, "a variable means something in composite subscriptions only"),
        ("(" * (MAX_DEPTH + 1) + "n == 1", MAX_DEPTH + 1, "parentheses at most 32 deep"),
        (" or ".join(f"n == {k % 9}" for k in range(257)), 2561, "more than 256 comparisons"),
    ],
)
def test_a_fault_is_told_with_its_column(text: str, column: int, reason: str) -> None:
    check_refused(lambda refused: parse_expression(SCHEMA, refused), text, column, reason)


def test_parentheses_as_deep_as_allowed_are_read() -> None:
    text = "(" * MAX_DEPTH + "n == 3" + ")" * MAX_DEPTH
    assert parse_expression(SCHEMA, text).matches(EVENT)


def test_what_a_newer_schema_appends_to_an_enumeration_comes_last() -> None:
    newer = {"size": "XL"}
    assert parse_expression(SCHEMA, 'size > "S" and size != "L"').matches(newer)
    assert not parse_expression(SCHEMA, 'size < "L"').matches(newer)
