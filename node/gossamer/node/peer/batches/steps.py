"""Any record, taken by the protocol's `step` as machine code."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gossamer.node.peer.frames.core import SELF, Core, Record, Written
from gossamer.protocol.kernel.linking import LinkedCode
from gossamer.protocol.kernel.records import CURSORS, TAIL, Outbox
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.step import largest_step, step

Words = npt.NDArray[np.int64]


class StepBuffers(Struct, shared=True):
    """What `take_one` reads and writes.

    Attributes:
        record: the record that is taken.
        out, cursor: the outbox of `step`.
    """

    record: Words
    out: Words
    cursor: Words


def make_step_buffers(settings: Settings) -> StepBuffers:
    """The buffers of a peer of these settings; the system gives memory to what is written."""
    most = largest_step(settings)
    return StepBuffers(
        # What a peer takes is a part of what some peer wrote.
        record=np.zeros(most, np.int64),
        out=np.zeros(most, np.int64),
        cursor=np.zeros(CURSORS, np.int64),
    )


@rule
def take_one(s: State, b: StepBuffers, now: int) -> int:
    """Let the peer take the record in ``b.record``; return where in ``b.out`` its effects end.

    Args:
        s: the peer's state; changes as by `step`.
        b: the buffers; ``out`` and ``cursor`` are begun anew.
        now: the peer's time in rounds.
    """
    for i in range(b.cursor.shape[0]):
        b.cursor[i] = 0
    step(s, SELF, now, b.record, 0, Outbox(b.out, b.cursor))
    return int(b.cursor[TAIL])


class BufferedStep:
    """Takes the records of one peer by a form of `take_one`.

    Args:
        core: the peer.
        take_one: that form, with the buffers and the time in rounds.
    """

    def __init__(self, core: Core, take_one: Callable[[StepBuffers, int], object]) -> None:
        self._take_one = take_one
        self._buffers = make_step_buffers(core.settings)
        self._record = self._buffers.record.data.cast("B")
        self._out, self._cursor = self._buffers.out.data, self._buffers.cursor.data

    def take(self, record: Record, now: int) -> Written:
        """Take a record."""
        given = memoryview(array("q", record)).cast("B")
        self._record[: len(given)] = given
        self._take_one(self._buffers, now)
        return self._out, self._cursor


def linked_step(core: Core, code: LinkedCode) -> BufferedStep:
    """Takes records by machine code, which has `step`."""
    call, state = code.function("step"), core.state.block_address()

    def take_one_linked(buffers: StepBuffers, now: int) -> int:
        return call(state, buffers.block_address(), now)

    return BufferedStep(core, take_one_linked)
