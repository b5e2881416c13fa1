"""Whatever bytes come: frames or `BadFrame`, bounded memory, and the same however they are cut."""

from __future__ import annotations

import itertools
import random
import struct
from typing import Any

import cbor2
from hypothesis import assume, given
from hypothesis import strategies as st

from gossamer.node.errors import BadFrame
from gossamer.node.transport.base.frames import (
    MESSAGE_FRAMES,
    FrameReader,
    count_items,
    encode_frame,
)
from gossamer.node.transport.base.limits import HEADER_BYTES, Limits
from gossamer.node.transport.base.schema import shorten
from gossamer.node.transport.handshake import PROTOCOL_VERSION
from support.draws import larger

LIMITS = Limits(frame_bytes=2048, queue_bytes=4096, items=128, depth=4)
PIECE_BYTES = 512
MUTATIONS = larger(6_000, 20_000)
TYPE_NAMES = ("hello", "welcome", "goodbye", "ping", "pong", "message", "ack")
INT64 = st.integers(-(2**63), 2**63 - 1)

leaves = st.none() | st.booleans() | INT64 | st.floats(allow_nan=False) | st.text() | st.binary()
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
maps = st.dictionaries(st.text(), values, max_size=5)


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def read(pieces: list[bytes], limits: Limits = LIMITS) -> tuple[list[Any], str | None, int]:
    """The frames in ``pieces``, the complaint that ended them, and the most bytes ever held."""
    reader = FrameReader(limits)
    frames: list[Any] = []
    most = 0
    try:
        for piece in pieces:
            reader.feed(piece)
            most = max(most, reader.buffered)
            for frame in reader:
                frames.append(frame)
                MESSAGE_FRAMES.check(frame)
    except BadFrame as error:
        return frames, str(error), most
    return frames, None, most


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    ends = list(itertools.accumulate(sizes, initial=0))
    return [data[at:end] for at, end in itertools.pairwise([*ends, None])]


def items_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(1 + items_of(entry) for entry in value.values())
    return 1 + sum(map(items_of, value)) if isinstance(value, list) else 1


@given(maps)
def test_every_plain_map_comes_back_and_is_counted_exactly(content: dict[str, Any]) -> None:
    reader, data = FrameReader(Limits()), cbor2.dumps(content)
    reader.feed(framed(data))
    assert reader.next_frame() == content
    assert count_items(data, 10**6) == items_of(content)


@given(st.binary(max_size=200), st.integers(0, 50))
def test_counting_any_bytes_ends_within_its_limit(body: bytes, limit: int) -> None:
    assert 0 <= count_items(body, limit) <= min(limit + 1, len(body))


@given(
    st.lists(st.integers(0, 2**62), max_size=8),
    st.binary(max_size=300),
    st.lists(st.integers(0, 40), max_size=20),
)
def test_frames_and_rubbish_do_not_depend_on_how_they_are_cut(
    numbers: list[int], rubbish: bytes, sizes: list[int]
) -> None:
    data = b"".join(encode_frame("ping", number=number) for number in numbers)
    frames, complaint, _ = read(cut(data, sizes))
    assert complaint is None
    assert [frame["number"] for frame in frames] == numbers
    for spoilt in (rubbish, data + rubbish):
        assert read([spoilt])[:2] == read(cut(spoilt, sizes))[:2]


@given(maps)
def test_a_map_of_no_known_type_is_a_bad_frame(content: dict[str, Any]) -> None:
    assume(content.get("type") not in TYPE_NAMES)
    frames, complaint, _ = read([framed(cbor2.dumps(content))], Limits())
    assert frames == [content]
    assert complaint is not None
    assert "expected a known type of frame" in complaint


@given(values)
def test_anything_is_shown_shortly(value: object) -> None:
    assert len(shorten(value)) < 80


def sample_frames(draws: random.Random) -> list[bytes]:
    return [
        encode_frame(
            "hello",
            version=PROTOCOL_VERSION,
            software="fuzz",
            cluster="test",
            key=draws.getrandbits(62),
            addresses=["127.0.0.1:4000", "[::1]:4000"],
            nonce=draws.randbytes(16),
            fingerprint=draws.randbytes(32),
        ),
        encode_frame("welcome", echo=draws.randbytes(16)),
        encode_frame("goodbye", reason="shutdown", detail="x" * draws.randrange(200)),
        encode_frame("ping", number=draws.getrandbits(62)),
        encode_frame("message", kind=16, body=draws.randbytes(draws.randrange(1500)), number=1),
        encode_frame("ack", numbers=[draws.getrandbits(62) for _ in range(draws.randrange(100))]),
    ]


def mutate(frame: bytes, draws: random.Random) -> bytes:
    """``frame`` with something wrong in its length, its heads or its values."""
    body = bytearray(frame[HEADER_BYTES:])
    at = draws.randrange(len(body))
    how = draws.randrange(8)
    if how == 0:
        body[at] ^= 1 << draws.randrange(8)
    elif how == 1:
        body[at : at + 1] = bytes([draws.randrange(256)]) * draws.randrange(1, 40)
    elif how == 2:
        del body[at : at + draws.randrange(1, 20)]
    elif how == 3:  # a container or string that claims to be huge
        body[at:at] = bytes([draws.choice((0x5B, 0x7B, 0x9B, 0xBB))]) + draws.randbytes(8)
    elif how == 4:  # deep
        body[at:at] = b"\x81" * draws.randrange(1, 600)
    elif how == 5:  # a tag
        body[at:at] = bytes([0xC0 + draws.randrange(28)])
    elif how == 6:  # no end
        body[at:at] = draws.choice((b"\x9f", b"\xbf", b"\x7f", b"\x5f"))
    else:  # a length that is not that of the body
        return struct.pack(">I", draws.getrandbits(draws.randrange(1, 33))) + bytes(body)
    return framed(bytes(body))


def test_mutated_frames_cost_no_more_than_one_frame_and_one_piece() -> None:
    draws = random.Random(20_000)
    refused = 0
    for _ in range(MUTATIONS // 6):
        for frame in sample_frames(draws):
            data = mutate(frame, draws) + draws.choice((b"", frame))
            pieces = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
            frames, complaint, most = read(pieces)
            assert most < HEADER_BYTES + LIMITS.frame_bytes + PIECE_BYTES
            assert len(frames) <= 2
            assert len(complaint or "") < 400
            refused += complaint is not None
    assert refused > MUTATIONS / 2, "most mutations are to be wrong"
