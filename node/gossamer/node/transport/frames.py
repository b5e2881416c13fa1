"""Frames to bytes and back: four bytes of length, then one CBOR map with text keys.

Types of frames may have a form of their own, which begins with a byte that no CBOR map does.

What comes from a peer is refused rather than interpreted where it could cost more than its bytes:
values are plain (`plain_cbor`), their number is bounded, and nothing follows the map.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from struct import Struct
from types import MappingProxyType
from typing import Any, Final, NoReturn

import cbor2

from gossamer.node.errors import BadFrame
from gossamer.node.transport.base import PROCESS_BYTES
from gossamer.node.transport.limits import HEADER_BYTES, Limits
from gossamer.node.transport.schema import (
    Bytes,
    Frame,
    FrameTypes,
    Integer,
    ListOf,
    Optional,
    OwnForm,
    Text,
    shorten,
)

# CBOR as it is taken from anybody: values that are no more than what their bytes say.
#
# No tags (they make a decoder build dates, numbers and patterns at the sender's will), no
# indefinite lengths, no duplicate keys, bounded depth.


def plain_decoder(data: bytes | bytearray, depth: int) -> cbor2.CBORDecoder:
    """A decoder of ``data`` that raises `CBORDecodeError` or ValueError at anything but the above.

    Args:
        data: what it begins to read; whether anything is left is for the caller to find out.
        depth: containers within each other.
    """
    return cbor2.CBORDecoder(
        io.BytesIO(data),
        max_depth=depth,
        allow_indefinite=False,
        allow_duplicate_keys=False,
        strict_hashable_types=True,
        tag_hook=_refuse_tag,
        semantic_decoders=_REFUSE_ALL_TAGS,
    )


def plain_value(data: bytes, depth: int) -> Any:
    """The value that ``data`` begins with, as `plain_decoder` reads it; in a third of the time.

    Whether anything is left is for the caller to find out.
    """
    return cbor2.loads(
        data,
        max_depth=depth,
        allow_indefinite=False,
        allow_duplicate_keys=False,
        strict_hashable_types=True,
        tag_hook=_refuse_tag,
        semantic_decoders=_REFUSE_ALL_TAGS,
    )


def _refuse_tag(*_: object) -> NoReturn:
    raise ValueError("tags are not allowed")


class _RefuseAllTags(dict[int, Any]):
    """Stands for a table that maps every tag to the same refusal, and stays empty."""

    def __missing__(self, _: int) -> Any:
        return _refuse_tag


_REFUSE_ALL_TAGS: Final = _RefuseAllTags()


NONCE_BYTES = 16
FINGERPRINT_BYTES = 32
KEY_HIGH = (1 << 62) - 1
MAX_ADDRESSES = 16
MAX_DETAIL = 200
# The authority's word that who is sent away is revoked.
PROOF_BYTES = 64

CONTROL_FRAMES = FrameTypes(
    {
        "hello": {
            "version": Integer(0, 1 << 31),
            "software": Text(64),
            "cluster": Text(64),
            "key": Integer(0, KEY_HIGH),
            "addresses": ListOf(Text(300), MAX_ADDRESSES),
            "nonce": Bytes(NONCE_BYTES, shortest=NONCE_BYTES),
            "fingerprint": Optional(Bytes(FINGERPRINT_BYTES, shortest=FINGERPRINT_BYTES)),
            "schema": Optional(Text(32)),
            "process": Optional(Bytes(PROCESS_BYTES, shortest=PROCESS_BYTES)),
        },
        "welcome": {"echo": Bytes(NONCE_BYTES, shortest=NONCE_BYTES)},
        "goodbye": {
            "reason": Text(32),
            "detail": Optional(Text(MAX_DETAIL)),
            "proof": Optional(Bytes(PROOF_BYTES, shortest=PROOF_BYTES)),
        },
        "ping": {"number": Integer(0)},
        "pong": {"number": Integer(0)},
    }
)

_HEADER = Struct(">I")

# Bytes from one head to the next, by the first byte of the head, for the heads that tell it
# themselves: numbers, short text, and containers, whose entries have heads of their own.
# The others (text and bytes from 24 on) are 0.
_STEP = tuple(
    (1, 1, 1 + (head & 31), 1 + (head & 31), 1, 1, 1, 1)[head >> 5]
    if head & 31 < 24
    else (0 if head >> 5 in (2, 3) else 1 + (1, 2, 4, 8, 0, 0, 0, 0)[(head & 31) - 24])
    for head in range(256)
)
_LENGTH_BYTES = {24: 1, 25: 2, 26: 4, 27: 8}


def encode_frame(frame_type: str, /, **fields: object) -> bytes:
    """The bytes of a frame, header included; encode once, send to many."""
    body = cbor2.dumps({"type": frame_type, **fields})
    return _HEADER.pack(len(body)) + body


def encode_goodbye(reason: str, detail: str, proof: bytes = b"") -> bytes:
    """The frame that ends a connection; a proof of another size than one has is left out."""
    more = {"proof": proof} if len(proof) == PROOF_BYTES else {}
    return encode_frame("goodbye", reason=reason, detail=detail[:MAX_DETAIL], **more)


def count_items(body: bytes | bytearray, limit: int) -> int:
    """How many values ``body`` holds, without making any; stops counting past ``limit``.

    It walks from head to head, 70 ns each, so it costs at most ``limit`` steps whatever the body
    claims. What is no CBOR is counted as something; decoding refuses it.
    """
    at, count, end = 0, 0, len(body)
    while at < end:
        head = body[at]
        step = _STEP[head]
        if step == 0:
            width = _LENGTH_BYTES.get(head & 31, 0)
            step = 1 + width + int.from_bytes(body[at + 1 : at + 1 + width], "big")
        at += step
        count += 1
        if count > limit:
            break
    return count


NO_OWN_FORMS: Mapping[int, OwnForm] = MappingProxyType({})


class FrameDecoder:
    """Bodies of frames to maps; a decoder of its own for each connection, for speed."""

    def __init__(self, limits: Limits, own_forms: Mapping[int, OwnForm] = NO_OWN_FORMS) -> None:
        self._own_forms = own_forms
        self._items = limits.items
        self._depth = limits.depth
        self._decoder = self._fresh()

    def decode(self, body: bytes | bytearray) -> Frame:
        """The map in ``body``, its fields not yet checked.

        Raises:
            BadFrame: it is no map, or breaks a limit; the next call starts afresh.
        """
        own_form = self._own_forms.get(body[0]) if body else None
        if own_form is not None:
            return own_form(body)
        # A value takes a byte at least, so that short bodies need no counting.
        if len(body) > self._items and count_items(body, self._items) > self._items:
            raise BadFrame("frame", "content", "more values", f"at most {self._items} values")
        stream = io.BytesIO(body)
        try:
            self._decoder.fp = stream
            frame = self._decoder.decode()
        except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
            self._decoder = self._fresh()
            raise BadFrame("frame", "content", _why(error), "one plain CBOR map") from None
        if type(frame) is not dict:
            raise BadFrame("frame", "content", shorten(frame), "a map")
        if stream.tell() != len(body):
            rest = len(body) - stream.tell()
            raise BadFrame("frame", "length", f"{rest} bytes too many", "nothing after the map")
        return frame

    def _fresh(self) -> cbor2.CBORDecoder:
        return plain_decoder(b"", self._depth)


def _why(error: BaseException) -> str:
    cause = error.__cause__ if error.__cause__ is not None else error
    return f"unreadable ({str(cause)[:120]})"


class FrameReader:
    """Bytes in pieces of any size to frames.

    Take all frames (`next_frame` until None) before feeding more: then what it holds is less than
    one frame and one piece, whatever the peer sends and however slowly.
    """

    def __init__(
        self,
        limits: Limits,
        frame_bytes: int | None = None,
        own_forms: Mapping[int, OwnForm] = NO_OWN_FORMS,
    ) -> None:
        self.frame_bytes = limits.frame_bytes if frame_bytes is None else frame_bytes
        self.frame_size = 0
        self._decoder = FrameDecoder(limits, own_forms)
        self._buffer = bytearray()
        self._at = 0

    @property
    def buffered(self) -> int:
        """Bytes held."""
        return len(self._buffer) - self._at

    def feed(self, data: bytes | bytearray) -> None:
        """Take the next bytes of the stream; views of what was held before stay as they are."""
        if self._at:
            self._buffer, self._at = self._buffer[self._at :], 0
        try:
            self._buffer += data
        except BufferError:  # a view is left, if only in a traceback that somebody keeps
            self._buffer = self._buffer + data

    def waiting(self) -> memoryview:
        """What is held, from where the next frame begins; best released before more is fed."""
        return memoryview(self._buffer)[self._at :]

    def skip(self, size: int) -> None:
        """Whole frames of so many bytes were taken elsewhere."""
        self._at += size

    def next_frame(self) -> Frame | None:
        """The next whole frame, its size in `frame_size`; None where more bytes are needed.

        Raises:
            BadFrame: the frame is too long or unreadable; the stream is of no use any more.
        """
        at = self._at + HEADER_BYTES
        if len(self._buffer) < at:
            return None
        (length,) = _HEADER.unpack_from(self._buffer, self._at)
        if length > self.frame_bytes:
            raise BadFrame("frame", "length", str(length), f"at most {self.frame_bytes} bytes")
        end = at + length
        if len(self._buffer) < end:
            return None
        self._at = end
        self.frame_size = HEADER_BYTES + length
        return self._decoder.decode(self._buffer[at:end])

    def __iter__(self) -> Iterator[Frame]:
        while (frame := self.next_frame()) is not None:
            yield frame

    def take_rest(self) -> bytes:
        """What is held and no frame yet; it is forgotten here."""
        rest = bytes(self._buffer[self._at :])
        self._buffer.clear()
        self._at = 0
        return rest
