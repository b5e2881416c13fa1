"""What people write: bytes of files are UTF-8, numbers stay what they say."""

from __future__ import annotations

import json
from fractions import Fraction
from math import inf

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
from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.protocol.content.filters import parse
from gossamer.protocol.content.values import canonical, read_number

THIRD = Fraction(1, 3)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-3", -3),
        ("80.5", 80.5),
        ("1e500", 10**500),
        ("1e-500", Fraction(1, 10**500)),
        ("9007199254740993.0", 9007199254740993),
        ("0.1000000000000000055511151231257827", Fraction("0.1000000000000000055511151231257827")),
        ("1e-400", Fraction(1, 10**400)),
        ("5e-324", 5e-324),
        ("1/3", THIRD),
        ("2/4", 0.5),
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


def test_a_filter_compares_with_the_number_that_it_says() -> None:
    wanted = parse("x > 9007199254740993.0")
    assert [wanted.matches({"x": x}) for x in (2**53 + 1, 2**53 + 2)] == [False, True]


@pytest.mark.parametrize("text", ["", "a", "Zürich\r\n\U0001f310", "a\ufeff"])
def test_a_mark_before_the_text_is_no_part_of_it(text: str) -> None:
    assert decoded(text.encode()) == decoded(text.encode("utf-8-sig")) == text


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        *((b"a\xffb", "not UTF-8 at byte 2"), (b"\xef\xbb", "not UTF-8 at byte 1")),
        *(
            ("a".encode(name), "not UTF-8 but UTF-16")
            for name in ("utf-16", "utf-16-le", "utf-16-be")
        ),
    ],
)
def test_what_is_no_utf_8_is_told(raw: bytes, reason: str) -> None:
    with pytest.raises(EncodingError, match=f"^{reason}$"):
        decoded(raw)
