"""The two rules of batches between a peer's frames and its protocol state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from gossamer.node.peer.batches.buffers import (
    END,
    EVENT_KEY,
    FRAME_KIND,
    IS_NEW,
    MODE,
    MOST_BYTES,
    NAME_AT,
    ORIGIN,
    ROWS_WRITTEN,
    SOURCE,
    TOLD,
    VALUES_AT,
    Batch,
    make_batch,
)
from gossamer.node.peer.frames.core import Core, Record
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.linking import LinkedCode
from gossamer.protocol.kernel.records import KIND, OPEN, REFUSED


class Rules(Protocol):
    """`scan` and `take` in one of their forms."""

    def scan(self, begin: int, end: int, source: int, most: int, first: int) -> int:
        """As `taking.scan`."""
        ...

    def take(self, first: int, count: int, now: int) -> int:
        """As `taking.take`."""
        ...


class LinkedRules:
    """Both rules as machine code."""

    def __init__(self, core: Core, batch: Batch, code: LinkedCode) -> None:
        self._scan, self._take = code.function("scan"), code.function("take")
        self._state, self._batch = core.state.block_address(), batch.block_address()

    def scan(self, begin: int, end: int, source: int, most: int, first: int) -> int:
        return self._scan(self._batch, begin, end, source, most, first)

    def take(self, first: int, count: int, now: int) -> int:
        return self._take(self._state, self._batch, first, count, now)


class FrameRow(NamedTuple):
    """A frame of a batch.

    Attributes:
        kind: of its record.
        source: handle of who sent it.
        event: the identifier of the event that it carries, -1 for none.
        mode: in which it comes, -1 without an event.
        name_at, values_at, end: where its parts are.
    """

    kind: int
    source: int
    event: int
    mode: int
    name_at: int
    values_at: int
    end: int


class WrittenRow(NamedTuple):
    """What follows from a frame.

    Attributes:
        to: handle of whom it is for.
        row: of the frame.
        kind: of the record.
        record: what the host is to carry out, None for a frame.
        begin, end: where the frame stands.
    """

    to: int
    row: int
    kind: int
    record: Record | None
    begin: int
    end: int


class Exchange:
    """Brings frames to a peer's rules and back."""

    def __init__(self, core: Core, rules: Callable[[Core, Batch], Rules]) -> None:
        self._core = core
        self._batch = make_batch(core.settings)
        self._rules = rules(core, self._batch)
        # Bytes are cut out of these in a third of the time that it takes of arrays.
        self._incoming = self._batch.incoming.data
        self._outgoing = self._batch.outgoing.data
        self._filled = self._count = self._scanned = 0

    def load(self, data: bytes | bytearray | memoryview) -> None:
        """Put bytes into the buffer, as many as there is room for, in place of all before."""
        self._filled = self._count = self._scanned = 0
        self.append(memoryview(data)[:MOST_BYTES])

    def append(self, data: bytes | memoryview) -> bool:
        """Put bytes after those that are there, all or none; return whether there was room."""
        end = self._filled + len(data)
        if end > MOST_BYTES:
            return False
        self._incoming[self._filled : end] = data
        self._filled = end
        return True

    def scan(self, source: int, most: int) -> list[FrameRow]:
        """The frames in what was put there since the last time, as far as they may go together.

        Args:
            source: handle of who sent them.
            most: longest body of a frame.
        """
        before, begin = self._count, self._scanned
        self._count = self._rules.scan(begin, self._filled, source, most, before)
        self._scanned = self._filled
        return [self._frame(row) for row in self._batch.frames[before : self._count].tolist()]

    def name(self, row: int, origin: int) -> None:
        """The publisher that a frame names is this one."""
        self._batch.frames[row, ORIGIN] = origin

    def take(self, first: int, count: int) -> tuple[int, list[WrittenRow]]:
        """Let frames be taken; return the first that was not, and what follows from the others.

        Raises:
            CapacityError: a step wrote more than any should.
        """
        batch = self._batch
        batch.counts[:] = 0
        taken = self._rules.take(first, count, self._core.now)
        if batch.cursor[REFUSED] or batch.cursor[OPEN]:
            raise CapacityError("a peer's outbox", len(batch.out))
        rows = batch.written[: int(batch.counts[ROWS_WRITTEN])].tolist()
        return taken, [self._written(row) for row in rows]

    def is_new(self, row: int) -> bool:
        """Whether the event of a frame that was taken is to be remembered."""
        return bool(self._batch.frames[row, IS_NEW])

    def incoming(self, begin: int, end: int) -> bytes:
        """Bytes of what was loaded."""
        return bytes(self._incoming[begin:end])

    def outgoing(self, begin: int, end: int) -> bytes:
        """Bytes of what was written."""
        return bytes(self._outgoing[begin:end])

    def _frame(self, row: Sequence[int]) -> FrameRow:
        return FrameRow(
            row[FRAME_KIND],
            row[SOURCE],
            row[EVENT_KEY],
            row[MODE],
            row[NAME_AT],
            row[VALUES_AT],
            row[END],
        )

    def _written(self, row: Sequence[int]) -> WrittenRow:
        to, of, kind, begin, end = row
        if kind != TOLD:
            return WrittenRow(to, of, kind, None, begin, end)
        record = self._batch.told[begin:end].tolist()
        return WrittenRow(to, of, record[KIND], record, begin, end)
