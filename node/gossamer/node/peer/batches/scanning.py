"""Which of the bytes that came are whole frames that may go by a batch."""

from __future__ import annotations

from typing import Any

from gossamer.node.peer.batches.buffers import (
    BEGIN,
    CARRIES_EVENT,
    END,
    EVENT_KEY,
    FRAME_KIND,
    IS_COMMAND,
    KIND_NUMBERS,
    KIND_WORDS,
    MODE,
    NAME_AT,
    ORIGIN,
    SOURCE,
    VALUES_AT,
    WORDS_AT,
    Batch,
)
from gossamer.node.peer.batches.byte_words import read_word
from gossamer.node.peer.frames.core import SELF
from gossamer.node.peer.frames.event_frames import HEAD_BYTES, MARK
from gossamer.node.security.sealing import MOST_SEAL_BYTES
from gossamer.node.transport.base.limits import HEADER_BYTES
from gossamer.protocol.content.limits import MAX_EVENT_BYTES
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import WORD_BYTES
from gossamer.protocol.peer.record_table.records import EVENT_ID, EVENT_MODE, EVENT_ORIGIN

# Where in the head that `event_frames` describes its parts are.
KIND_AT = 1
COUNT_AT = 2
NAME_LENGTH_AT = 4
NOTHING_AT = 6
BYTE = 8

UNNAMED = -1
NAMED = 0


@inline_rule
def two_bytes(data: Any, at: int) -> Any:
    """The number in ``data[at : at + 2]``, little endian."""
    return int(data[at]) | int(data[at + 1]) << BYTE


@rule
def scan(b: Batch, begin: int, end: int, source: int, most: int, first: int) -> int:
    """Describe the frames in ``b.incoming[begin:end]`` in ``b.frames``.

    It ends where a frame is not whole, or is to go by itself: one of another form, one that breaks
    a rule (the way of single frames says which), one that is too many.

    No byte is read at or past ``end``: what a frame says of its own length, and of its parts, is
    held against ``end`` first, and the number of its words against what its kind has.

    Args:
        b: the buffers; ``frames`` changes.
        begin: where the first frame begins.
        end: where what came ends, at most the size of ``b.incoming``.
        source: handle of the peer that sent them; `SELF` for commands of this peer's applications.
        most: longest body that a frame may have.
        first: row for the first of them.

    Returns:
        The first row that was not written.
    """
    count = first
    at = begin
    while count < b.frames.shape[0] and at + HEADER_BYTES + HEAD_BYTES <= end:
        size = 0
        for i in range(HEADER_BYTES):
            size = size << BYTE | int(b.incoming[at + i])
        body = at + HEADER_BYTES
        if size < HEAD_BYTES or size > most or size > end - body:
            break
        if not describe(b, count, body, body + size, source):
            break
        b.frames[count, SOURCE] = source
        count += 1
        at = body + size
    return count


@rule
def describe(b: Batch, row: int, body: int, end: int, source: int) -> bool:
    """Describe the frame in ``b.incoming[body:end]``; return whether it may go by a batch.

    There are at least `HEAD_BYTES` of it.
    """
    data = b.incoming
    kind = int(data[body + KIND_AT])
    if int(data[body]) != MARK or kind >= KIND_NUMBERS or b.kinds[kind, KIND_WORDS] < 0:
        return False
    if (b.kinds[kind, IS_COMMAND] == 1) != (source == SELF):
        return False
    count = two_bytes(data, body + COUNT_AT)
    named = two_bytes(data, body + NAME_LENGTH_AT)
    words_at = body + HEAD_BYTES
    name_at = words_at + WORD_BYTES * count
    values_at = name_at + named
    if count != b.kinds[kind, KIND_WORDS] or values_at > end:
        return False
    if two_bytes(data, body + NOTHING_AT) != 0:
        return False
    carries = b.kinds[kind, CARRIES_EVENT] == 1
    if carries != (end > values_at) or end - values_at > MAX_EVENT_BYTES + MOST_SEAL_BYTES:
        return False
    if named > 0 and not carries:
        return False
    if not words_are_sane(b, kind, words_at, count):
        return False
    event = -1
    mode = -1
    if carries:
        mode = read_word(data, words_at + WORD_BYTES * EVENT_MODE)
        event = read_word(data, words_at + WORD_BYTES * EVENT_ID)
        said = read_word(data, words_at + WORD_BYTES * EVENT_ORIGIN)
        if said != (NAMED if named > 0 else UNNAMED):
            return False
    b.frames[row, BEGIN] = body - HEADER_BYTES
    b.frames[row, END] = end
    b.frames[row, FRAME_KIND] = kind
    b.frames[row, WORDS_AT] = words_at
    b.frames[row, NAME_AT] = name_at
    b.frames[row, VALUES_AT] = values_at
    b.frames[row, ORIGIN] = UNNAMED
    b.frames[row, EVENT_KEY] = event
    b.frames[row, MODE] = mode
    return True


@rule
def words_are_sane(b: Batch, kind: int, words_at: int, count: int) -> bool:
    """Whether every word of a body is one that records of its kind may have there."""
    for w in range(count):
        word = read_word(b.incoming, words_at + WORD_BYTES * w)
        if word < b.lowest[kind, w] or word > b.highest[kind, w]:
            return False
    return True
