"""Frames to bytes and back: four bytes of length, then one CBOR map with text keys.

The client's side of what docs/local-protocol.md describes. The node is of
the same user, so that its answers are checked for what the client uses of them only.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

import cbor2

from gossamer.client.errors import RefusedByNodeError, UnusableValueError
from gossamer.client.results import UNKNOWN_TYPE, LastMark, Payload, PayloadLike
from gossamer.protocol.content.limits import FRAME_BYTES, MAX_CONTENT_TYPE, MAX_PAYLOAD_BYTES

VERSION: Final = 2

NEW, RETAINED, LAST = "new", "retained", "last"
# What a node is to its clients.
PEER, BROKER = "peer", "broker"

Frame = dict[str, Any]

_HEADER: Final = Struct(">I")


class BadAnswerError(Exception):
    """What came is no frame of a node; never leaves the client."""


def encode_frame(frame_type: str, /, **fields: object) -> bytes:
    """The bytes of a frame, header included.

    Raises:
        RefusedByNodeError: it is longer than any node takes.
        UnusableValueError: a text in it has lone surrogates.
    """
    try:
        body = cbor2.dumps({"type": frame_type, **fields})
    except UnicodeEncodeError as error:
        found = f"the text {error.object!a:.80} has lone surrogates"
        raise UnusableValueError(f"{found}, expected text of Unicode") from None
    if len(body) > FRAME_BYTES:
        reason = f"a request of {len(body)} bytes, expected at most {FRAME_BYTES}"
        raise RefusedByNodeError("FrameTooLarge", reason)
    return _HEADER.pack(len(body)) + body


class FrameReader:
    """Bytes in pieces of any size to frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._buffer += data

    def next_frame(self) -> Frame | None:
        """The next whole frame; None where more bytes are needed.

        Raises:
            BadAnswerError: it is too long or unreadable.
        """
        if len(self._buffer) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._buffer)
        if length > FRAME_BYTES:
            raise BadAnswerError(f"a frame of {length} bytes, expected at most {FRAME_BYTES}")
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        try:
            frame = cbor2.loads(body)
        except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
            raise BadAnswerError(f"a frame that is unreadable ({str(error)[:120]})") from None
        if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
            raise BadAnswerError("a frame without a type, expected a map that has one")
        return frame

    def __iter__(self) -> Iterator[Frame]:
        while (frame := self.next_frame()) is not None:
            yield frame


def _unusable_payload(found: str) -> UnusableValueError:
    expected = f"at most {MAX_PAYLOAD_BYTES} bytes, of a type of at most {MAX_CONTENT_TYPE}"
    return UnusableValueError(f"a payload is {found}, expected {expected} characters")


def payload_fields(payload: PayloadLike | None) -> dict[str, object]:
    """What a request says of a payload; the node refuses a content type that is none.

    Raises:
        UnusableValueError: it cannot travel.
    """
    if payload is None:
        return {}
    if not isinstance(payload.data, bytes):
        raise _unusable_payload(f"of type {type(payload.data).__name__}")
    if len(payload.data) > MAX_PAYLOAD_BYTES:
        raise _unusable_payload(f"of {len(payload.data)} bytes")
    if len(payload.content_type) > MAX_CONTENT_TYPE:
        raise _unusable_payload(f"of a type of {len(payload.content_type)} characters")
    return {"payload": payload.data, "content_type": payload.content_type}


def last_fields(last: LastMark | None) -> dict[str, object]:
    """What a request says of an event that is the last of a value."""
    if last is None:
        return {}
    lasts = {"lasts": last.lasts_s} if last.lasts_s else {}
    return {"last": last.attribute, "deleted": last.deleted, **lasts}


def payload_of(frame: Frame) -> Payload | None:
    """The payload that an event or a reply has."""
    if "payload" not in frame:
        return None
    return Payload(frame["payload"], frame.get("content_type", UNKNOWN_TYPE))
