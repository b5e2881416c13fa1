"""Events as bytes and back, in events and over the local socket: exact values survive."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.local import frames as local
from gossamer.node.peer.frames.events import Event, EventFormat, EventMemory
from gossamer.node.security.identity import encode
from gossamer.node.security.sealing import publisher_of
from gossamer.node.transport.base.frames import FrameReader, encode_frame
from gossamer.node.transport.base.limits import Limits
from gossamer.protocol.content import schema
from gossamer.protocol.content.schema import SchemaVersion, changed
from gossamer.protocol.content.values import Payload

DAYS = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
SCHEMA = schema.Schema(
    [
        schema.IntegerAttribute("whole", -(10**30), 10**30),
        schema.FloatAttribute("real", -1e300, 1e300),
        schema.StringAttribute("text"),
        schema.DateAttribute("day", *DAYS),
        schema.EnumerationAttribute("side", ["buy", "sell"]),
    ]
)
FORMAT = EventFormat(SchemaVersion.first(SCHEMA))
REAL = st.one_of(
    st.integers(-(10**40), 10**40),
    st.floats(-1e300, 1e300),
    st.fractions(-(10**20), 10**20, max_denominator=10**20),
    st.decimals(-(10**9), 10**9, allow_nan=False),
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "whole": st.integers(-(10**30), 10**30),
        "real": REAL,
        "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
        "day": st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.just(UTC)),
        "side": st.sampled_from(["buy", "sell"]),
    },
).filter(bool)


@given(values=VALUES, publisher=st.integers(0, (1 << 62) - 1), at=st.floats(0, 4e9))
def test_events_come_back_exactly(values: dict[str, object], publisher: int, at: float) -> None:
    exact = SCHEMA.check_event(values)
    event = FORMAT.from_bytes(7, FORMAT.to_bytes(exact, publisher, at))
    assert event.values == exact
    assert list(map(type, event.values.values())) == list(map(type, exact.values()))
    assert (event.id, event.publisher) == (7, publisher)
    assert event.published_at == pytest.approx(at, abs=1e-6)


@given(values=VALUES)
def test_values_come_back_exactly_over_the_local_socket(values: dict[str, object]) -> None:
    exact = SCHEMA.check_event(values)
    wire = local.values_to_wire(exact)
    reader = FrameReader(Limits())
    reader.feed(encode_frame("publish", number=1, values=wire))
    decoded = reader.next_frame()
    assert decoded is not None
    local.FRAMES.check(decoded)
    assert local.values_from_wire(SCHEMA, decoded["values"]) == exact
    # Programs in other languages need to know of no tags.
    data = cbor2.dumps(wire)
    assert cbor2.loads(data, tag_hook=None) == cbor2.loads(data)
    assert all(isinstance(one, str | int | float | list) for one in cbor2.loads(data).values())


def test_a_schema_comes_back_equal() -> None:
    assert local.schema_from_wire(local.schema_to_wire(SCHEMA)) == SCHEMA


@given(data=st.binary(max_size=200), version=st.integers(1, 5))
def test_payloads_come_back(data: bytes, version: int) -> None:
    payload = Payload(data, "image/png")
    written = EventFormat(SchemaVersion(version, SCHEMA)).to_bytes({"whole": 5}, 1, 2.0, payload)
    assert publisher_of(written) == publisher_of(FORMAT.to_bytes({"whole": 5}, 1, 2.0))
    assert FORMAT.from_bytes(7, written) == Event(7, {"whole": 5}, 1, 2.0, payload)


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    first = SchemaVersion.first(SCHEMA)
    wider = changed(SCHEMA["side"], {"values": ["buy", "sell", "short"]})
    later = first.added(schema.BooleanAttribute("open")).widened(wider)
    values = later.check_event({"whole": 5, "side": "short", "open": True})
    data = EventFormat(later).to_bytes(values, 1, 2.0)
    assert FORMAT.from_bytes(7, data).values == {"whole": 5, "side": "short"}
    early = FORMAT.to_bytes({"whole": 5}, 1, 2.0)
    assert EventFormat(later.without("whole")).from_bytes(7, early).values == {"whole": 5}
    wrong = encode([1, 2, later.number, [None, None, 5]])
    with pytest.raises(ValueError, match="'text' takes"):
        FORMAT.from_bytes(7, wrong)


GOOD = [1, 5, "a", 0, "buy"]


@pytest.mark.parametrize(
    "content",
    [
        *([], [1, 2], [1, 2, 1, GOOD, 3], [1.0, 2, 1, GOOD], [1, 2, 0, GOOD]),
        *([1, 2, 1, GOOD, payload] for payload in ([], ["image/png"], ["image/png", "text"])),
        *([1, 2, 1, GOOD, payload] for payload in (["image", b"data"], [5, b"data"], b"data")),
        *([1, 2, 1, values] for values in ([], [*GOOD[:-1], None], [*GOOD, 1])),
        *([1, 2, 1, [whole, *GOOD[1:]]] for whole in ("1/0", "1/", "9" * 401, 1.5, True)),
        [1, 2, 1, [1, float("nan"), *GOOD[2:]]],
        [1, 2, 1, [1, 5, 6, 0, "buy"]],
        [1, 2, 1, [1, 5, "a", 1 << 62, "buy"]],
        [1, 2, 1, [1, 5, "a", "1970-13-13", "buy"]],
        [1, 2, 1, [1, 5, "a", 0, "hold"]],
    ],
)
def test_what_is_no_event_of_the_schema_is_refused(content: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        FORMAT.from_bytes(7, encode(content))


@given(st.binary(max_size=60))
def test_random_bytes_are_refused_or_an_event(data: bytes) -> None:
    with suppress(ValueError):
        assert set(FORMAT.from_bytes(7, data).values) <= set(SCHEMA.names)


@given(
    kept=st.lists(st.tuples(st.integers(0, 20), st.binary(max_size=30))),
    events=st.integers(1, 5),
    size=st.integers(1, 60),
)
def test_the_memory_keeps_the_newest(kept: list[tuple[int, bytes]], events: int, size: int) -> None:
    memory = EventMemory(events, size)
    for event, values in kept:
        known = memory.find(event)
        memory.keep(event, values)
        assert len(memory) <= events
        assert memory.bytes <= size
        if known is not None:
            assert memory.find(event) == known
        elif len(values) <= size:
            assert memory.find(event) == values
