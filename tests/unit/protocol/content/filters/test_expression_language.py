"""Expressions: what their text means, and where a fault is said to be."""

from __future__ import annotations

import pytest

from gossamer.protocol.content import schema
from gossamer.protocol.content.filters.expressions import MAX_DEPTH, parse_expression
from support.refusals import check_refused

SCHEMA = schema.Schema(
    [
        schema.FloatAttribute("price", 0, 1000),
        schema.StringAttribute("symbol"),
        schema.IntegerAttribute("n", 0, 10),
        schema.EnumerationAttribute("size", ("S", "M", "L")),
    ]
)
EVENT = {"price": 80, "symbol": "IBM", "n": 3}
NEWER = {"size": "XL"}  # of a schema that appends to the enumeration


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        # Beside what random expressions of property/test_content.py have.
        ("not price in (80, 90]", EVENT, True),
        ("price in [80, 90]", EVENT, True),
        ("n == 1 or n == 3 and price == 80", EVENT, True),
        ("n == 3 or n == 1 and price == 79", EVENT, True),
        ("not not n == 3", EVENT, True),
        ("not n == 3 or price == 79", EVENT, False),
        ('symbol not startswith "H"', EVENT, True),
        ('symbol == "ibm"', EVENT, False),
        ("`n` == 3", EVENT, True),
        ("(" * MAX_DEPTH + "n == 3" + ")" * MAX_DEPTH, EVENT, True),
        ('size > "S" and size != "L"', NEWER, True),
        ('size < "L"', NEWER, False),
    ],
)
def test_expressions_match(text: str, event: dict[str, object], expected: bool) -> None:
    assert parse_expression(SCHEMA, text).matches(event) is expected


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
