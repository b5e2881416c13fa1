"""Values of events on their way to the node and back."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from gossamer.client import UnusableValueError
from gossamer.client.client import _batches
from gossamer.client.frames import BROKER, FRAME_BYTES, MAX_EVENTS, PEER, encode_frame
from gossamer.client.values import PlainValues

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LARGE = 3**100


def values_of(role: str) -> PlainValues:
    values = PlainValues()
    schema = '{"day": {"type": "date"}, "text": {"type": "string"}}' if role == PEER else ""
    values.adopt({"schema": schema, "role": role})
    return values


@pytest.mark.parametrize("role", [PEER, BROKER])
@pytest.mark.parametrize(
    ("value", "comes_as"),
    [
        (7, 7),
        (-(1 << 63), -(1 << 63)),
        (LARGE, LARGE),
        (0.25, 0.25),
        (True, True),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.int64(7), 7),
        (np.float64(0.5), 0.5),
    ],
)
def test_numbers_come_as_they_went(role: str, value: object, comes_as: object) -> None:
    values = values_of(role)
    found = values.from_wire(values.to_wire({"price": value}))["price"]
    assert (type(found), found) == (type(comes_as), comes_as)


@pytest.mark.parametrize("role", [PEER, BROKER])
@pytest.mark.parametrize(
    ("day", "comes_as"),
    [
        (NOON, NOON),
        (NOON.replace(tzinfo=None), NOON),
        (NOON.astimezone(timezone(timedelta(hours=5))), NOON),
        (date(2026, 11, 20), datetime(2026, 11, 20, tzinfo=UTC)),
    ],
)
def test_dates_come_as_instants_in_utc(role: str, day: date, comes_as: datetime) -> None:
    values = values_of(role)
    assert values.from_wire(values.to_wire({"day": day})) == {"day": comes_as}


def test_a_text_that_looks_like_a_date_is_none() -> None:
    text = {"text": "2026-11-20"}
    assert values_of(PEER).from_wire(values_of(PEER).to_wire(text)) == text


@pytest.mark.parametrize("value", [None, math.nan, math.inf, Decimal("1e9999"), [1], b"x", 1j])
def test_what_no_event_can_have_is_named(value: object) -> None:
    with pytest.raises(UnusableValueError, match=r"attribute 'price' is .* expected a finite"):
        values_of(PEER).to_wire({"price": value})


@pytest.mark.parametrize("length", [1, 4000])
def test_batches_fit_into_requests(length: int) -> None:
    events = [{"text": "x" * length, "price": float(number)} for number in range(700)]
    batches = list(_batches(iter(events)))
    assert [event for batch in batches for event in batch] == events
    for batch in batches:
        assert 0 < len(batch) <= MAX_EVENTS
        assert len(encode_frame("publish_many", number=1, events=batch)) < FRAME_BYTES
