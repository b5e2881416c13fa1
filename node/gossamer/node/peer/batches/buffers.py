"""What rules and host hand each other of a batch of frames.

All of it is made once for a peer; the system gives memory to the parts that are written.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.node.peer.frames.event_frames import COMMANDS, HEAD_BYTES, KINDS
from gossamer.node.transport.limits import HEADER_BYTES
from gossamer.protocol.kernel.records import BODY, CURSORS
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.codec import layouts_of
from gossamer.protocol.peer.record_table.layouts import bounds_of
from gossamer.protocol.peer.record_table.records import EVENT, EVENT_MESSAGES
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.step import largest_step

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int64]

# Frames of a batch, and their bytes: a few reads of a socket. A larger frame goes by itself.
MOST_FRAMES: Final = 64
MOST_BYTES: Final = 1 << 16
# Of one frame there are at most so many others that follow from it: on its way, down the tree, to
# a successor, and answers. Of a command to publish, so many for each coordinate.
MOST_FORMS: Final = 4
ANSWER_BYTES: Final = 64

# Words of a row of `Batch.frames`.
BEGIN, END, FRAME_KIND, WORDS_AT, NAME_AT, VALUES_AT = range(6)
SOURCE, ORIGIN, EVENT_KEY, MODE, IS_NEW = range(6, 11)
FRAME_WORDS: Final = 11
# Words of a row of `Batch.written`: to whom, for which frame, and where what is written stands:
# a frame in `Batch.outgoing` (kind, begin, end), or a record in `Batch.told` (-1, begin, end).
WRITTEN_TO, WRITTEN_FOR, WRITTEN_KIND, WRITTEN_BEGIN, WRITTEN_END = range(5)
WRITTEN_WORDS: Final = 5
TOLD: Final = -1
# Words of `Batch.counts`.
FRAMES_TAKEN, ROWS_WRITTEN, BYTES_WRITTEN, WORDS_TOLD = range(4)
COUNTS: Final = 4
# What `Batch.kinds` says of the kinds that go by batches: their words, whether a publisher may be
# named and values follow, and whether it is a command, which no other peer may send.
KIND_WORDS, CARRIES_EVENT, IS_COMMAND = range(3)
KIND_COLUMNS: Final = 3
KIND_NUMBERS: Final = 128


class Batch(Struct, shared=True):
    """Buffers of one peer.

    Attributes:
        kinds: int64[KIND_NUMBERS, KIND_COLUMNS], see there; -1 for what does not go by batches.
        lowest, highest: int64[KIND_NUMBERS, words], what each word may be.
        incoming: frames, one after another, their lengths before them.
        frames: int64[MOST_FRAMES, FRAME_WORDS], see there.
        record: the record being taken.
        out, cursor: the outbox of `step`.
        written: int64[..., WRITTEN_WORDS], what follows from the frames, in order.
        outgoing: frames that follow from the frames.
        told: records that follow and are not frames of batches.
        counts: see there.
    """

    kinds: Words
    lowest: Words
    highest: Words
    incoming: Bytes
    frames: Words
    record: Words
    out: Words
    cursor: Words
    written: Words
    outgoing: Bytes
    told: Words
    counts: Words


def make_batch(settings: Settings) -> Batch:
    """The buffers of a peer of these settings."""
    layouts = layouts_of(settings)
    bounds = {kind: bounds_of(layouts[kind]) for kind in KINDS if kind in layouts}
    fixed = {kind: words for kind, words in bounds.items() if words is not None}
    # The body of a command to publish is that of an event.
    fixed |= dict.fromkeys(COMMANDS, fixed[EVENT])
    longest = max(map(len, fixed.values()))
    kinds = np.full((KIND_NUMBERS, KIND_COLUMNS), -1, np.int64)
    lowest = np.zeros((KIND_NUMBERS, longest), np.int64)
    highest = np.zeros_like(lowest)
    for kind, words in fixed.items():
        carries_event = kind in EVENT_MESSAGES or kind in COMMANDS
        kinds[kind] = len(words), carries_event, kind in COMMANDS
        lowest[kind, : len(words)] = [one.start for one in words]
        highest[kind, : len(words)] = [one.stop - 1 for one in words]
    step_words = largest_step(settings)
    frame_bytes = HEADER_BYTES + HEAD_BYTES
    return Batch(
        kinds=kinds,
        lowest=lowest,
        highest=highest,
        incoming=np.zeros(MOST_BYTES, np.uint8),
        frames=np.zeros((MOST_FRAMES, FRAME_WORDS), np.int64),
        record=np.zeros(BODY + longest, np.int64),
        out=np.zeros(step_words, np.int64),
        cursor=np.zeros(CURSORS, np.int64),
        written=np.zeros((2 * step_words // BODY, WRITTEN_WORDS), np.int64),
        outgoing=np.zeros(MOST_FORMS * MOST_BYTES + frame_bytes, np.uint8),
        told=np.zeros(2 * step_words, np.int64),
        counts=np.zeros(COUNTS, np.int64),
    )
