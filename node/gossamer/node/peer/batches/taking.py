"""A batch of frames, taken by the protocol one after another, and what it writes as frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.node.peer.batches.buffers import (
    ANSWER_BYTES,
    BEGIN,
    BYTES_WRITTEN,
    CARRIES_EVENT,
    END,
    EVENT_KEY,
    FRAME_KIND,
    FRAMES_TAKEN,
    IS_COMMAND,
    IS_NEW,
    KIND_NUMBERS,
    KIND_WORDS,
    MODE,
    MOST_FORMS,
    NAME_AT,
    ORIGIN,
    ROWS_WRITTEN,
    SOURCE,
    TOLD,
    VALUES_AT,
    WORDS_AT,
    WORDS_TOLD,
    WRITTEN_BEGIN,
    WRITTEN_END,
    WRITTEN_FOR,
    WRITTEN_KIND,
    WRITTEN_TO,
    Batch,
)
from gossamer.node.peer.frames.core import SELF
from gossamer.node.peer.frames.event_frames import HEAD_BYTES, MARK
from gossamer.node.security.sealing import MOST_SEAL_BYTES
from gossamer.node.transport.limits import HEADER_BYTES
from gossamer.protocol.content.limits import MAX_EVENT_BYTES
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    OPEN,
    REFUSED,
    TAIL,
    TO,
    Outbox,
)
from gossamer.protocol.kernel.rows.row_search import copy_words
from gossamer.protocol.kernel.rules import inline_rule, rule, rule_with_interpreted_form
from gossamer.protocol.kernel.struct import WORD_BYTES
from gossamer.protocol.peer.record_table.records import (
    EVENT_ATTRIBUTE,
    EVENT_ID,
    EVENT_MODE,
    EVENT_ORIGIN,
)
from gossamer.protocol.peer.rendezvous.replay import has_seen
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.step import take_about_events

# Words of 64 bits within bytes, little endian, at any place.


BITS = 8


def _read_at_once(data: Any, at: int) -> int:
    return int.from_bytes(data[at : at + WORD_BYTES], "little", signed=True)


@rule_with_interpreted_form(_read_at_once)
def read_word(data: Any, at: int) -> Any:
    """The word in ``data[at : at + 8]``."""
    word = np.int64(0)
    for i in range(WORD_BYTES):
        word |= np.int64(data[at + i]) << np.int64(BITS * i)
    return word


def _write_at_once(data: Any, at: int, word: int) -> None:
    data[at : at + WORD_BYTES] = int(word).to_bytes(WORD_BYTES, "little", signed=True)


@rule_with_interpreted_form(_write_at_once)
def write_word(data: Any, at: int, word: int) -> None:
    """Put a word into ``data[at : at + 8]``."""
    for i in range(WORD_BYTES):
        data[at + i] = (word >> (BITS * i)) & 0xFF


def _copy_at_once(data: Any, at: int, size: int, target: Any, to: int) -> None:
    target[to : to + size] = data[at : at + size]


@rule_with_interpreted_form(_copy_at_once)
def copy_bytes(data: Any, at: int, size: int, target: Any, to: int) -> None:
    """Copy ``data[at:at + size]`` to ``target[to:]``, another array."""
    for i in range(size):
        target[to + i] = data[at + i]


# Which of the bytes that came are whole frames that may go by a batch.


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


LAST_BYTE = 0xFF


@rule
def take(s: State, b: Batch, first: int, count: int, now: int) -> int:
    """Let the peer take the frames that rows ``first`` to ``count`` of ``b.frames`` describe.

    Ends before a frame for which there might not be room; what is written is to be carried out and
    forgotten (``counts`` is 0 again) then, and the rest to be taken.

    Args:
        s: the peer's state; changes as by `step`.
        b: the buffers; ``written``, ``outgoing``, ``told`` and ``counts`` are appended to.
        first: row of the first frame to be taken.
        count: how many rows there are.
        now: the peer's time in rounds.

    Returns:
        The row of the first frame that was not taken.
    """
    row = first
    while row < count and has_room(s, b, row):
        write_record(b, row)
        for i in range(b.cursor.shape[0]):
            b.cursor[i] = 0
        b.frames[row, IS_NEW] = is_new(s, b, row)
        take_about_events(s, SELF, now, b.record, 0, Outbox(b.out, b.cursor))
        if b.cursor[REFUSED] != 0 or b.cursor[OPEN] != 0:
            break
        write_out(b, row)
        row += 1
    b.counts[FRAMES_TAKEN] = row
    return row


@rule
def has_room(s: State, b: Batch, row: int) -> bool:
    """Whether there is room for all that one more frame may be the cause of."""
    size = b.frames[row, END] - b.frames[row, BEGIN] + ANSWER_BYTES
    forms = MOST_FORMS
    if b.kinds[b.frames[row, FRAME_KIND], IS_COMMAND] == 1:
        forms = MOST_FORMS * s.params.attributes
    return bool(
        b.counts[BYTES_WRITTEN] + forms * size <= b.outgoing.shape[0]
        and b.counts[ROWS_WRITTEN] + b.out.shape[0] // BODY <= b.written.shape[0]
        and b.counts[WORDS_TOLD] + b.out.shape[0] <= b.told.shape[0]
    )


@rule
def is_new(s: State, b: Batch, row: int) -> bool:
    """Whether the event of a frame is to be remembered: its copy has not been here.

    Of a command it is remembered already.
    """
    if b.frames[row, EVENT_KEY] < 0 or b.kinds[b.frames[row, FRAME_KIND], IS_COMMAND] == 1:
        return False
    words = b.record
    copy = words[BODY + EVENT_ID] * s.params.attributes + words[BODY + EVENT_ATTRIBUTE]
    return not has_seen(s, SELF, copy)


@rule
def write_record(b: Batch, row: int) -> None:
    """The record that a frame stands for."""
    kind = b.frames[row, FRAME_KIND]
    count = b.kinds[kind, KIND_WORDS]
    b.record[LENGTH] = BODY + count
    b.record[KIND] = kind
    b.record[TO] = SELF
    b.record[FROM] = b.frames[row, SOURCE]
    for w in range(count):
        b.record[BODY + w] = read_word(b.incoming, b.frames[row, WORDS_AT] + WORD_BYTES * w)
    if b.kinds[kind, CARRIES_EVENT] == 1:
        b.record[BODY + EVENT_ORIGIN] = b.frames[row, ORIGIN]


@rule
def write_out(b: Batch, row: int) -> None:
    """Write what `step` wrote: frames where batches know how, else the record itself."""
    at = 0
    last = -1
    while at < b.cursor[TAIL]:
        kind = b.out[at + KIND]
        written = b.counts[ROWS_WRITTEN]
        b.written[written, WRITTEN_TO] = b.out[at + TO]
        b.written[written, WRITTEN_FOR] = row
        if b.out[at + TO] == SELF or not goes_by_batch(b, row, at):
            pass_to_host(b, written, at)
        elif last >= 0 and is_same_frame(b, last, at):
            # An event goes to one receiver after another, unchanged.
            for w in range(WRITTEN_KIND, WRITTEN_END + 1):
                b.written[written, w] = b.written[written - 1, w]
            last = at
        else:
            write_frame(b, written, row, at)
            last = at
        if b.written[written, WRITTEN_KIND] != kind:
            last = -1
        b.counts[ROWS_WRITTEN] += 1
        at += b.out[at + LENGTH]


@rule
def goes_by_batch(b: Batch, row: int, at: int) -> bool:
    """Whether the record at ``b.out[at:]`` is written as a frame here."""
    kind = b.out[at + KIND]
    if kind < 0 or kind >= KIND_NUMBERS or b.kinds[kind, KIND_WORDS] < 0:
        return False
    if b.kinds[kind, IS_COMMAND] == 1:
        return False
    if b.kinds[kind, CARRIES_EVENT] == 0:
        return True
    origin = b.out[at + BODY + EVENT_ORIGIN]
    return bool(
        b.out[at + BODY + EVENT_ID] == b.frames[row, EVENT_KEY]
        and (origin < 0 or origin == b.frames[row, ORIGIN])
    )


@rule
def pass_to_host(b: Batch, written: int, at: int) -> None:
    """Hand the record at ``b.out[at:]`` to the host as it is."""
    begin = b.counts[WORDS_TOLD]
    size = b.out[at + LENGTH]
    copy_words(b.out, at, size, b.told, begin)
    b.counts[WORDS_TOLD] = begin + size
    b.written[written, WRITTEN_KIND] = TOLD
    b.written[written, WRITTEN_BEGIN] = begin
    b.written[written, WRITTEN_END] = begin + size


@rule
def is_same_frame(b: Batch, last: int, at: int) -> bool:
    """Whether two records differ in nothing but whom they go to."""
    size = b.out[at + LENGTH]
    if b.out[last + LENGTH] != size or b.out[last + KIND] != b.out[at + KIND]:
        return False
    for w in range(BODY, size):
        if b.out[last + w] != b.out[at + w]:
            return False
    return True


@rule
def write_frame(b: Batch, written: int, row: int, at: int) -> None:
    """Write the record at ``b.out[at:]`` as a frame, with what the frame in ``row`` carries."""
    kind = b.out[at + KIND]
    count = b.out[at + LENGTH] - BODY
    carries = b.kinds[kind, CARRIES_EVENT] == 1
    named = 0
    values = 0
    if carries:
        values = b.frames[row, END] - b.frames[row, VALUES_AT]
        if b.out[at + BODY + EVENT_ORIGIN] >= 0:
            named = b.frames[row, VALUES_AT] - b.frames[row, NAME_AT]
    begin = b.counts[BYTES_WRITTEN]
    words_at = begin + HEADER_BYTES + HEAD_BYTES
    name_at = words_at + WORD_BYTES * count
    end = name_at + named + values
    write_head(b.outgoing, begin, end - begin - HEADER_BYTES, kind, count, named)
    for w in range(count):
        write_word(b.outgoing, words_at + WORD_BYTES * w, b.out[at + BODY + w])
    if carries:
        if named > 0:
            write_word(b.outgoing, words_at + WORD_BYTES * EVENT_ORIGIN, NAMED)
            copy_bytes(b.incoming, b.frames[row, NAME_AT], named, b.outgoing, name_at)
        copy_bytes(b.incoming, b.frames[row, VALUES_AT], values, b.outgoing, name_at + named)
    b.counts[BYTES_WRITTEN] = end
    b.written[written, WRITTEN_KIND] = kind
    b.written[written, WRITTEN_BEGIN] = begin
    b.written[written, WRITTEN_END] = end


@rule
def write_head(data: Any, at: int, size: int, kind: int, count: int, named: int) -> None:
    """Length and head of a frame, as `event_frames` describes them."""
    for i in range(HEADER_BYTES):
        data[at + i] = (size >> (BYTE * (HEADER_BYTES - 1 - i))) & LAST_BYTE
    head = at + HEADER_BYTES
    data[head] = MARK
    data[head + 1] = kind
    data[head + 2] = count & LAST_BYTE
    data[head + 3] = count >> BYTE
    data[head + 4] = named & LAST_BYTE
    data[head + 5] = named >> BYTE
    data[head + 6] = 0
    data[head + 7] = 0
