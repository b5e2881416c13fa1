"""Events as people write them, and what is wrong with those that are none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from gossamer.client.results import Payload
from gossamer.node.commands.clients.event_text import (
    event_of_arguments,
    event_of_line,
    line_of_event,
)
from gossamer.node.errors import EventInputError
from gossamer.node.local.client import ReceivedEvent
from gossamer.protocol.content.schema import BooleanAttribute, DecimalAttribute, Schema

SCHEMA = Schema.from_mapping(
    {
        "symbol": {"type": "string"},
        "price": {"type": "float", "minimum": 0, "maximum": 10_000},
        "volume": {"type": "integer", "minimum": 0, "maximum": 10**9},
        "day": {"type": "date", "minimum": "2020-01-01", "maximum": "2030-01-01"},
        "side": {"type": "enumeration", "values": ["buy", "sell"]},
    }
)
GIVEN = ["symbol=a=b", "price=80.5", "volume=100", "day=2026-11-20", "side=buy"]
MEANT = {
    "symbol": "a=b",
    "price": 80.5,
    "volume": 100,
    "day": datetime(2026, 11, 20, tzinfo=UTC),
    "side": "buy",
}


def test_arguments_mean_what_the_schema_says() -> None:
    assert event_of_arguments(SCHEMA, GIVEN) == MEANT
    # A symbol of digits stays text, a price may be whole or a fraction.
    odd = event_of_arguments(SCHEMA, ["symbol=7", "price=1/3", *GIVEN[2:]])
    assert (odd["symbol"], odd["price"]) == ("7", Fraction(1, 3))


@pytest.mark.parametrize(
    ("place", "argument", "words"),
    [
        (1, "price", "price: expected attribute=value"),
        (1, "prize=80", "no attribute 'prize', did you mean 'price'"),
        (1, "price=dear", 'takes a number from 0 to 10000, not "dear"'),
        (1, "price=1/0", "takes a number"),
        (1, "price=nan", "takes a number"),
        (1, "price=-1", "takes a number from 0"),
        (1, "symbol=x", "symbol=x: attribute 'symbol' has a value already"),
        (2, "volume=1.5", "takes an integer"),
        (3, "day=yesterday", "takes a date"),
        (4, "side=hold", "one of the enumeration"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(place: int, argument: str, words: str) -> None:
    arguments = [*GIVEN[:place], argument, *GIVEN[place + 1 :]]
    with pytest.raises(EventInputError) as caught:
        event_of_arguments(SCHEMA, arguments)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_attributes_may_be_absent_but_not_all_of_them() -> None:
    assert "side" not in event_of_arguments(SCHEMA, GIVEN[:-1])
    with pytest.raises(EventInputError, match="a value for at least one attribute"):
        event_of_arguments(SCHEMA, [])


def test_booleans_and_decimals_are_read_by_their_type() -> None:
    schema = Schema([BooleanAttribute("open"), DecimalAttribute("fee", 0, 100, 2)])
    assert event_of_arguments(schema, ["open=true", "fee=0.1"]) == {"open": True, "fee": 0.1}
    with pytest.raises(EventInputError, match="'open' takes true or false"):
        event_of_arguments(schema, ["open=yes"])
    with pytest.raises(EventInputError, match=r"a decimal from 0 to 100 with 2 after the point"):
        event_of_arguments(schema, ["fee=0.125"])


def test_what_is_printed_of_an_event_can_be_published_again() -> None:
    values = {**MEANT, "price": Fraction(1, 3)}
    line = line_of_event(ReceivedEvent("1f", values, "2a", 12.5, ("sub",), 7))
    assert json.loads(line)["values"]["day"] == "2026-11-20"
    assert event_of_line(SCHEMA, line, 1) == values


def test_a_payload_is_printed_and_not_published_by_lines() -> None:
    payload = Payload(b"\x00\xff", "image/png")
    line = line_of_event(ReceivedEvent("1f", MEANT, "2a", 12.5, ("sub",), 7, payload=payload))
    assert json.loads(line)["payload"] == {"content_type": "image/png", "base64": "AP8="}
    with pytest.raises(EventInputError, match="line 3: carries a payload, expected values only"):
        event_of_line(SCHEMA, line, 3)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 7: no JSON"),
        ("[" * 100_000, "line 7: no JSON"),
        ("[1]", "line 7: no object"),
        ('{"prize": 1}', "line 7: there is no attribute 'prize'"),
        ('{"symbol": 1}', "line 7: attribute 'symbol' takes"),
        ('{"id": "x", "values": {}}', "line 7: an event has a value for"),
    ],
)
def test_a_line_that_is_no_event_is_named(line: str, words: str) -> None:
    with pytest.raises(EventInputError) as caught:
        event_of_line(SCHEMA, line, 7)
    assert str(caught.value).startswith(words)


def test_a_value_of_a_line_is_no_number_because_it_looks_like_one() -> None:
    line = json.dumps({**dict(part.split("=", 1) for part in GIVEN), "volume": 1})
    with pytest.raises(EventInputError, match="'price' takes"):
        event_of_line(SCHEMA, line, 1)
