"""Frames: what is taken, what is refused, and what it costs before it is refused."""

from __future__ import annotations

import math
import struct
from typing import Any

import cbor2
import pytest

from gossamer.node.errors import BadFrame
from gossamer.node.transport.base import frames, schema
from gossamer.node.transport.base.limits import Limits
from gossamer.protocol.kernel.errors import ConfigError, RemoteProtocolError

SMALL = Limits(frame_bytes=1024, items=64, depth=4)


def decode(body: bytes, limits: Limits = SMALL) -> dict[str, Any]:
    return frames.FrameDecoder(limits).decode(body)


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "premature end"),
        (b"\x01", "is 1, expected a map"),
        (b"\xa0\xa0", "1 bytes too many"),
        (b"\xa1\x01\x01", "key must be a text string"),
        (b"\xa2\x61a\x01\x61a\x02", "Duplicate map key"),
        (b"\xbf\x61a\x01\xff", "indefinite"),
        (b"\xa1\x61a\x9f\x01\xff", "indefinite"),
        (b"\xa1\x61a\x7f\x61b\xff", "indefinite"),
        (b"\xa1\x61a" + b"\x81" * 4 + b"\x01", "depth"),
        (b"\xa1\x61a" + b"\x81" * 600, "more values"),
        (b"\xa1\x61a\x82\x01", "premature end"),
        (b"\xa1\x61a\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", "premature end"),
        (b"\xa1\x61a\x9b\x00\x00\x00\xff\xff\xff\xff\xff", "premature end"),
        (b"\xa1\x61a\xbb\xff\xff\xff\xff\xff\xff\xff\xff", "unreadable"),
        (b"\xa1\x61a\x61\xff", "can't decode byte 0xff"),
        (b"\xa1\x61a\x1c", "subtype 0x1c"),
        (b"\xa1\x61a\xc2\x41\x01", "tags are not"),
        (b"\xa1\xc0\x61a\x01", "unreadable"),
        (b"\xd9\xd9\xf7\xa0", "tags are not"),
    ],
)
def test_what_is_no_plain_map_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(BadFrame, match=why):
        decode(body)


def test_no_tag_is_interpreted() -> None:
    limits = Limits()
    payloads = [b"\x01", b"\x61\x31", b"\x41\x31", b"\x82\x01\x02", b"\xa0"]
    for tag in [*range(2048), 43000, 55799, 65535]:
        for payload in payloads:
            with pytest.raises(BadFrame, match="tag"):
                decode(b"\xa1\x61a\xd9" + tag.to_bytes(2, "big") + payload, limits)


def test_a_decoder_goes_on_after_a_bad_body() -> None:
    decoder = frames.FrameDecoder(SMALL)
    for bad in (b"\xa1\x61a\x83\x01", b"\xa1\x61a" + b"\x81" * 9, b"\xa0\x00"):
        with pytest.raises(BadFrame):
            decoder.decode(bad)
        assert decoder.decode(b"\xa1\x61a\x01") == {"a": 1}


def test_values_are_counted_before_any_is_made_and_no_further_than_the_limit() -> None:
    body = cbor2.dumps({"a": [0] * 62})
    assert len(decode(body, Limits(items=65))["a"]) == 62
    with pytest.raises(BadFrame, match="at most 64 values"):
        decode(body)
    assert frames.count_items(b"\x00" * 10**6, 100) == 101
    for length in (23, 24, 255, 256, 65_535, 65_536):  # a long text is one value
        assert frames.count_items(cbor2.dumps({"a": "x" * length, "b": b"x" * length}), 100) == 5


def test_a_frame_of_the_longest_size_is_taken_and_a_longer_refused_at_its_header() -> None:
    body = cbor2.dumps({"type": "x", "pad": b""})
    body = cbor2.dumps({"type": "x", "pad": bytes(1024 - len(body) - 2)})
    assert len(body) == 1024
    reader = frames.FrameReader(SMALL)
    reader.feed(framed(body) + struct.pack(">I", 1025))
    assert reader.next_frame() is not None
    with pytest.raises(BadFrame, match="length is 1025, expected at most 1024 bytes"):
        reader.next_frame()


def test_a_reader_goes_on_while_somebody_looks_at_what_it_held() -> None:
    """Such as a traceback that is kept: the node would end where the buffer cannot be resized."""
    first, second = (framed(cbor2.dumps({"n": n})) for n in (1, 2))
    reader = frames.FrameReader(SMALL)
    reader.feed(first + second[:3])
    held = reader.waiting()
    reader.feed(second[3:5])
    assert reader.next_frame() == {"n": 1}
    later = reader.waiting()
    reader.feed(second[5:])
    assert reader.next_frame() == {"n": 2}
    assert bytes(held) == first + second[:3]
    assert bytes(later) == second[:5]


def test_frames_arrive_byte_by_byte_and_the_rest_goes_to_another_reader() -> None:
    stream = b"".join(frames.encode_frame("ping", number=i) for i in range(10))
    reader, other = frames.FrameReader(SMALL), frames.FrameReader(SMALL)
    numbers = []
    for at in range(len(stream) - 3):
        reader.feed(stream[at : at + 1])
        numbers += [frame["number"] for frame in reader]
        assert reader.buffered < len(stream) / 10 + 1
    assert numbers == list(range(9))
    other.feed(reader.take_rest() + stream[-3:])
    assert other.next_frame() == {"type": "ping", "number": 9}
    assert reader.buffered == other.buffered == 0


GOOD_AND_BAD: list[tuple[schema.Field, list[Any], list[Any]]] = [
    (schema.Integer(), [0, 2**63 - 1, -(2**63)], [2**63, -(2**63) - 1, 1.0, True, "1", None]),
    (schema.Integer(1, 3), [1, 3], [0, 4]),
    (schema.Number(), [1, 1.5, -0.0], [math.nan, math.inf, True, 2**64 - 1, "1"]),
    (schema.Number(0, 1), [0, 1.0], [-0.1, 2]),
    (schema.Flag(), [True, False], [0, 1, None]),
    (schema.Text(3), ["", "abc", "äöü"], ["abcd", b"abc", 1]),
    (schema.Bytes(3, shortest=1), [b"a", b"abc"], [b"", b"abcd", "a"]),
    (schema.ListOf(schema.Integer(0, 9), 2), [[], [1, 9]], [[1, 2, 3], [10], {}, (1,), "12"]),
    (
        schema.MapOf(schema.Flag(), 1),
        [{}, {"a": True}],
        [{"a": True, "b": True}, {b"a": True}, {"a": 1}, []],
    ),
    (schema.MapOf(schema.Flag(), 1, longest_key=2), [{"ab": True}], [{"abc": True}]),
    (schema.AnyOf(schema.Integer(), schema.Text(2)), [1, "ab"], [1.5, "abc", None]),
    (schema.Optional(schema.Flag()), [True], [None]),
]


@pytest.mark.parametrize(("field", "good", "bad"), GOOD_AND_BAD)
def test_a_field_takes_what_it_says(field: schema.Field, good: list[Any], bad: list[Any]) -> None:
    types = schema.FrameTypes({"t": {"f": field}})
    for value in good:
        types.check({"type": "t", "f": value})
    for value in bad:
        with pytest.raises(BadFrame, match=r"^t: f.* expected "):
            types.check({"type": "t", "f": value})


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        ({}, "frame: type is None, expected a known type"),
        ({"type": "x"}, "frame: type is 'x'"),
        ({"type": ["ping"]}, "frame: type is a list of 1"),
        ({"type": "ping"}, "ping: number is missing"),
        ({"type": "ping", "number": -1}, "ping: number is -1, expected a whole number from 0"),
        ({"type": "ping", "number": 1, "more": 1}, "ping: a field is 'more'"),
        ({"type": "goodbye", "reason": "r", "detail": 1}, "goodbye: detail is 1, expected text"),
        ({"type": "goodbye", "reason": "r" * 40}, "goodbye: reason is 'rrr"),
        ({"type": "ack", "numbers": [1, "a"]}, r"ack: numbers\[1\] is 'a', expected a whole"),
    ],
)
def test_a_complaint_names_frame_field_and_expectation(frame: dict[str, Any], why: str) -> None:
    with pytest.raises(BadFrame, match=why) as caught:
        frames.MESSAGE_FRAMES.check(frame)
    assert isinstance(caught.value, RemoteProtocolError)
    assert len(str(caught.value)) < 300


def test_types_are_added_without_touching_the_old_ones() -> None:
    more = frames.CONTROL_FRAMES.extended({"news": {"text": schema.Text(5)}})
    more.check({"type": "news", "text": "abc"})
    assert "news" in more
    assert "news" not in frames.CONTROL_FRAMES
    for types, words in (
        ({"ping": {}}, "frame type is 'ping'"),
        ({"news": {"type": schema.Flag()}}, "another name"),
    ):
        with pytest.raises(ConfigError, match=words):
            frames.CONTROL_FRAMES.extended(types)


def test_shown_values_are_short() -> None:
    large = ["x" * 10**6, b"x" * 10**6, [1] * 10**6, {"a": "b" * 10**6}, 2**64, cbor2.undefined]
    assert all(len(schema.shorten(value)) < 70 for value in large)
