"""Frames of records that are about single events: a fixed head, words, and bytes that stay opaque.

Nearly all frames of a busy peer are of these. A head of fixed places is read by compiled rules and
by the interpreter alike, and an event is passed on without a look at what it says. All in little
endian, after the four bytes of length that every frame begins with:

    byte 0     `MARK`, by which no CBOR map begins
    byte 1     kind of the record, one of `KINDS`
    bytes 2-3  how many words its body has
    bytes 4-5  how many bytes name the publisher, 0 where nobody is to be answered
    bytes 6-7  0
    bytes 8..  the words, the name of the publisher, and to the end the event's values
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from gossamer.node.errors import BadFrame
from gossamer.node.transport.schema import Frame
from gossamer.protocol.kernel.struct import WORD_BYTES
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    EVENT_MESSAGES,
    EVENT_TAKEN,
    PUBLISH,
    STORED,
)

MARK: Final = 1
KINDS: Final = frozenset({*EVENT_MESSAGES, EVENT_TAKEN, STORED})
# The same, those first of which there are most.
BY_BATCH: Final = (EVENT, EVENT_TAKEN, STORED, *sorted(KINDS - {EVENT, EVENT_TAKEN, STORED}))
# What a peer's own applications have it do goes by batches in the same form, and never comes from
# another peer: `read_event_frame` knows none of it.
COMMANDS: Final = (PUBLISH,)
HEAD_BYTES: Final = 8

_HEAD: Final = Struct("<BBHHH")
_LENGTH: Final = Struct(">I")


def event_frame(kind: int, words: bytes, name: bytes = b"", values: bytes = b"") -> bytes:
    """The bytes of a frame, its length before them.

    Args:
        kind: of the record, one of `KINDS`, or of `COMMANDS` for this peer's own rules.
        words: of its body, little endian.
        name: of the publisher, as lists of peers in other frames have it.
        values: of the event, for the kinds that carry one.
    """
    size = HEAD_BYTES + len(words) + len(name) + len(values)
    head = _HEAD.pack(MARK, kind, len(words) // WORD_BYTES, len(name), 0)
    return b"".join((_LENGTH.pack(size), head, words, name, values))


def read_event_frame(body: bytes | bytearray) -> Frame:
    """The frame in ``body``, which begins with `MARK`, as one of type "record".

    Raises:
        BadFrame: it is cut short, of another kind, or its reserved bytes say something.
    """
    if len(body) < HEAD_BYTES:
        raise BadFrame("event", "length", str(len(body)), f"at least {HEAD_BYTES} bytes")
    _, kind, count, named, nothing = _HEAD.unpack_from(body)
    if kind not in KINDS or nothing:
        raise BadFrame("event", "kind", str(kind), "one that is about an event, then zeros")
    words_end = HEAD_BYTES + WORD_BYTES * count
    name_end = words_end + named
    if name_end > len(body):
        raise BadFrame("event", "length", str(len(body)), f"at least {name_end} bytes")
    frame = {
        "type": "record",
        "kind": kind,
        "words": bytes(body[HEAD_BYTES:words_end]),
        "peers": [bytes(body[words_end:name_end])] if named else [],
    }
    if name_end < len(body):
        frame["event"] = bytes(body[name_end:])
    return frame
