"""A batch of frames, taken by the protocol one after another, and what it writes as frames."""

from __future__ import annotations

from typing import Any

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
from gossamer.node.peer.batches.byte_words import copy_bytes, read_word, write_word
from gossamer.node.peer.batches.scanning import BYTE, NAMED
from gossamer.node.peer.frames.core import SELF
from gossamer.node.peer.frames.event_frames import HEAD_BYTES, MARK
from gossamer.node.transport.base.limits import HEADER_BYTES
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
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import WORD_BYTES
from gossamer.protocol.peer.record_table.records import EVENT_ATTRIBUTE, EVENT_ID, EVENT_ORIGIN
from gossamer.protocol.peer.rendezvous.replay import has_seen
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.step import take_about_events

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
