"""Boxes and points of the hashed space, and the weight of importing them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gossamer.protocol.content import schema
from gossamer.protocol.content.errors import UnknownAttributeError, WrongValueError
from gossamer.protocol.content.language import parse_subscription
from gossamer.protocol.peer.space.encoding import encode_event, encode_subscription
from gossamer.protocol.peer.space.hashing import RING_SIZE, uniform_hashes

SCHEMA = schema.Schema(
    [
        schema.FloatAttribute("price", 0, 1000),
        schema.IntegerAttribute("count", 0, 7),
        schema.EnumerationAttribute("size", ("S", "M", "L", "XL")),
    ]
)
HASHES = uniform_hashes(SCHEMA)


def test_a_box_is_closed_and_whole_where_unconstrained() -> None:
    subscription = parse_subscription(SCHEMA, '250 < price < 500 and size >= "M" and size < "XL"')
    box = encode_subscription(SCHEMA, HASHES, subscription)
    assert box.constrained == (True, False, True)
    assert box.low == (RING_SIZE // 4, 0, RING_SIZE // 4)
    assert box.high == (RING_SIZE // 2, RING_SIZE - 1, RING_SIZE // 2)


def test_open_bounds_on_integers_move_to_the_next_value() -> None:
    box = encode_subscription(SCHEMA, HASHES, parse_subscription(SCHEMA, "1 < count < 5"))
    assert (box.low[1], box.high[1]) == (RING_SIZE // 4, RING_SIZE // 2)
    halves = encode_subscription(SCHEMA, HASHES, parse_subscription(SCHEMA, "1.5 < count < 4.5"))
    assert halves == box


def test_events_are_points() -> None:
    point = encode_event(SCHEMA, HASHES, {"size": "L", "count": 2, "price": 500})
    assert point == (RING_SIZE // 2, RING_SIZE // 4, RING_SIZE // 2)


def test_what_does_not_fit_the_schema_is_refused() -> None:
    with pytest.raises(WrongValueError, match="'price' takes a number from 0 to 1000"):
        encode_event(SCHEMA, HASHES, {"price": 1001, "count": 0, "size": "S"})
    other = schema.Schema([schema.IntegerAttribute("colour", 0, 1)])
    with pytest.raises(UnknownAttributeError, match="no attribute 'colour'"):
        encode_subscription(SCHEMA, HASHES, parse_subscription(other, "colour == 1"))
    retyped = schema.Schema([schema.EnumerationAttribute("price", ("low", "high"))])
    with pytest.raises(WrongValueError, match='not the constraint price == "low"'):
        encode_subscription(SCHEMA, HASHES, parse_subscription(retyped, 'price == "low"'))


def test_importing_the_content_layer_loads_no_compiler() -> None:
    modules = "gossamer.protocol.content.language, gossamer.protocol.peer.space.encoding"
    code = f"import sys, {modules}; print('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
