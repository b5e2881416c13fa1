"""Values survive the local socket exactly, whatever they are."""

from __future__ import annotations

from datetime import UTC, datetime

import cbor2
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.local import frames
from gossamer.node.transport.base.frames import FrameReader, encode_frame
from gossamer.node.transport.base.limits import Limits
from gossamer.protocol.content.schema import Schema

SCHEMA = Schema.from_mapping(
    {
        "text": {"type": "string"},
        "number": {"type": "float", "minimum": -1e300, "maximum": 1e300},
        "whole": {"type": "integer", "minimum": -(10**30), "maximum": 10**30},
        "at": {
            "type": "date",
            "minimum": datetime(1, 1, 2, tzinfo=UTC),
            "maximum": datetime(9999, 12, 30, tzinfo=UTC),
        },
    }
)

NUMBERS = st.one_of(
    st.floats(-1e300, 1e300),
    st.fractions(-(10**20), 10**20, max_denominator=10**20),
    st.integers(-(10**40), 10**40),
)
EVENTS = st.fixed_dictionaries(
    {
        "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
        "number": NUMBERS,
        "whole": st.integers(-(10**30), 10**30),
        "at": st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.just(UTC)),
    }
)


@given(EVENTS)
def test_values_come_back_exactly_without_tags(values: dict[str, object]) -> None:
    checked = SCHEMA.check_event(values)
    wire = frames.values_to_wire(checked)
    reader = FrameReader(Limits())
    reader.feed(encode_frame("publish", number=1, values=wire))
    decoded = reader.next_frame()
    assert decoded is not None
    frames.FRAMES.check(decoded)
    assert frames.values_from_wire(SCHEMA, decoded["values"]) == checked
    data = cbor2.dumps(wire)
    assert cbor2.loads(data, tag_hook=None) == cbor2.loads(data)
    assert all(isinstance(one, str | int | float | list) for one in cbor2.loads(data).values())


def test_a_schema_comes_back_equal() -> None:
    assert frames.schema_from_wire(frames.schema_to_wire(SCHEMA)) == SCHEMA
