"""Frames about events: what goes by batches is just what goes alone, and nothing else is read."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.errors import BadFrame
from gossamer.node.peer.batches import buffers
from gossamer.node.peer.batches.taking import scan
from gossamer.node.peer.frames.core import header
from gossamer.node.peer.frames.event_frames import KINDS, MARK, event_frame, read_event_frame
from gossamer.node.peer.frames.frame_types import frame_types
from gossamer.node.transport.base.limits import HEADER_BYTES
from gossamer.protocol.kernel.errors import MalformedRecordError
from gossamer.protocol.kernel.struct import WORD_BYTES
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table.records import EVENT_ID, EVENT_MESSAGES, EVENT_ORIGIN
from gossamer.protocol.peer.settings import presets

SETTINGS = presets.kindred(16, attributes=2, subscriptions=4, acknowledged_hops=4)
CODEC = Codec(SETTINGS)
TYPES = frame_types(CODEC)
BATCH = buffers.make_batch(SETTINGS)
UNBOXED = BATCH.unboxed()
MOST = 1 << 10
FROM = 7
WORDS = st.one_of(
    st.integers(-2, 3),
    st.sampled_from([(1 << 58) - 1, 1 << 58, (1 << 62) - 1, 1 << 62, -(1 << 63), (1 << 63) - 1]),
    st.integers(-(1 << 63), (1 << 63) - 1),
)


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A frame that is right, or nearly."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    count = int(BATCH.kinds[kind, 0]) + draw(st.sampled_from([0] * 8 + [-1, 1]))
    words = draw(st.lists(WORDS, min_size=count, max_size=count))
    good = draw(st.integers(0, 3))
    if good:
        words = [
            min(max(word, int(BATCH.lowest[kind, w])), int(BATCH.highest[kind, w]))
            if w < BATCH.lowest.shape[1]
            else word
            for w, word in enumerate(words)
        ]
    carries = kind in EVENT_MESSAGES or not good
    name = draw(st.sampled_from([b"", b"somebody"])) if carries else b""
    if len(words) > EVENT_ORIGIN and kind in EVENT_MESSAGES and good > 1:
        words[EVENT_ORIGIN] = 0 if name else -1
    values = draw(st.binary(min_size=good > 0, max_size=20)) if carries else b""
    data = bytearray(event_frame(kind, struct.pack(f"<{count}q", *words), name, values))
    if draw(st.integers(0, 4)) == 0:
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


def goes_alone(data: bytes) -> tuple[int, list[int], bytes, bytes] | None:
    """A frame as the way of single frames reads it; None where that refuses it."""
    if data[HEADER_BYTES : HEADER_BYTES + 1] != bytes([MARK]):
        return None
    try:
        frame = read_event_frame(data[HEADER_BYTES:])
        TYPES.check(frame)
        words = list(struct.unpack(f"<{len(frame['words']) // WORD_BYTES}q", frame["words"]))
        if frame["kind"] in EVENT_MESSAGES and "event" not in frame:
            return None
        CODEC.check(header(frame["kind"], FROM, words))
    except (BadFrame, MalformedRecordError):
        return None
    name = b"".join(frame["peers"])
    return frame["kind"], words, name, frame.get("event", b"")


def lengths_are_right(data: bytes) -> bool:
    return len(data) - HEADER_BYTES == int.from_bytes(data[:HEADER_BYTES], "big") <= MOST


@pytest.mark.parametrize("form", ["interpreted", "compiled"])
@given(st.lists(frames(), max_size=6), st.integers(0, 30), st.binary(max_size=30))
def test_batches_take_what_is_whole_and_sane_and_nothing_after_it(
    form: str, made: list[bytes], cut: int, rest: bytes
) -> None:
    data = b"".join(made) + rest
    data = data[: max(0, len(data) - cut)]
    BATCH.incoming[: len(data)] = np.frombuffer(data, np.uint8)
    # What is no part of it is a frame, too: were it read, more would be found.
    BATCH.incoming[len(data) : len(data) + 40] = 1
    if form == "compiled":
        count = int(scan.compiled(BATCH, 0, len(data), FROM, MOST, 0))
    else:
        count = int(scan.linked(UNBOXED, 0, len(data), FROM, MOST, 0))
    assert count <= buffers.MOST_FRAMES
    at = 0
    for row in range(count):
        size = HEADER_BYTES + int.from_bytes(data[at : at + HEADER_BYTES], "big")
        frame = data[at : at + size]
        assert len(frame) == size
        assert lengths_are_right(frame)
        expected = goes_alone(frame)
        assert expected is not None, frame
        kind, words, name, values = expected
        told = BATCH.frames[row]
        key = words[EVENT_ID] if kind in EVENT_MESSAGES else -1
        columns = (buffers.FRAME_KIND, buffers.SOURCE, buffers.END, buffers.EVENT_KEY)
        assert [told[column] for column in columns] == [kind, FROM, at + size, key]
        assert told[buffers.WORDS_AT] + WORD_BYTES * len(words) == told[buffers.NAME_AT]
        assert data[told[buffers.NAME_AT] : told[buffers.VALUES_AT]] == name
        assert data[told[buffers.VALUES_AT] : told[buffers.END]] == values
        at += size
    # The one at which it ended is not whole, or breaks a rule, or says of its publisher what no
    # peer of this program does.
    following = made[count] if count < len(made) else b""
    if following and data[at : at + len(following)] == following and lengths_are_right(following):
        read = goes_alone(following)
        assert read is None or not says_plainly_who_published(read)


def says_plainly_who_published(read: tuple[int, list[int], bytes, bytes]) -> bool:
    kind, words, name, values = read
    if kind not in EVENT_MESSAGES:
        return not name and not values
    return words[EVENT_ORIGIN] == (0 if name else -1)
