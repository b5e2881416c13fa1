"""Writing the state of a running node: many writes a commit, and commits off the event loop.

Statements are quick and run in the event loop: in a thread, each would wait for the interpreter
again. Waiting for another process's lock and for the disk happens in a thread.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import trio
from attrs import define, field

from gossamer.node.errors import StoreError
from gossamer.node.store.store import Store, StoreLimits
from gossamer.protocol.kernel.errors import CapacityError

P = ParamSpec("P")
T = TypeVar("T")

# How long a write that nobody waits for may wait for others to share its commit.
GATHER_S: Final = 0.005
# Writes in a commit, and between two turns of the event loop.
GROUP: Final = 512
TURN: Final = 64

# For how long it is told that something could not be written; a node that runs writes more often.
TOLD_S: Final = 60.0

# How a call that may have to wait for a lock or the disk is made.
Aside = Callable[[Callable[[], None]], Awaitable[None]]

# What a write may meet with no defect being to blame.
_REFUSALS: Final = (StoreError, CapacityError)


@define
class _Write:
    """One write and, where somebody waits for it, how it went."""

    carry_out: Callable[[Store], Any]
    awaited: bool
    done: trio.Event = field(factory=trio.Event)
    result: Any = None
    error: Exception | None = None


class StoreWriter:
    """Takes writes and commits them in the order in which they came; made by `open_writer`.

    Attributes:
        counts: "writes" and "commits" done, and "failed" writes that nobody waited for.
    """

    def __init__(self, store: Store, pending: int, aside: Aside | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._store = store
        self._send, self._receive = trio.open_memory_channel[_Write](pending)
        self._urgent = trio.Event()
        self._first_failure: StoreError | CapacityError | None = None
        self._refused, self._refused_at = "", -math.inf
        self._aside = _in_a_thread() if aside is None else aside
        # Held while a group is written: the connection then shows what is not on the disk yet.
        self._turn = trio.Lock()

    def complaint(self) -> str:
        """What could not be written a moment ago, and why, in a sentence; "" where nothing was."""
        lasts = trio.current_time() - self._refused_at < TOLD_S
        return f"what is to last is not written: {self._refused}" if lasts else ""

    async def read(
        self, method: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of ``method(store, ...)``, which only reads what is on the disk by now.

        It waits for the commit under way, and not for the writes behind it.
        """
        async with self._turn:
            return method(self._store, *args, **kwargs)

    async def write(
        self, method: Callable[Concatenate[Store, P], object], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Have ``method(store, ...)`` carried out soon; returns when there is room in the queue.

        If it fails with a `StoreError` or `CapacityError`, the next `flush` raises that.
        """
        await self._send.send(_Write(lambda store: method(store, *args, **kwargs), awaited=False))

    async def run(
        self, method: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Carry out ``method(store, ...)``; return its result once it is on the disk.

        It is carried out even if the caller is cancelled while it waits for that.

        Raises:
            Exception: whatever the method raised; what it had written is taken back.
            StoreError: the commit failed; nothing of it was written.
        """
        write = _Write(lambda store: method(store, *args, **kwargs), awaited=True)
        await self._submit_urgent(write)
        if write.error is not None:
            raise write.error
        result: T = write.result
        return result

    async def flush(self) -> None:
        """Return when every earlier write is on the disk.

        Raises:
            StoreError: since the last call a write failed; it left no trace, others may be there.
            CapacityError: the same, because a table is full.
        """
        await self._submit_urgent(_Write(lambda _: None, awaited=True))
        failure, self._first_failure = self._first_failure, None
        if failure is not None:
            raise failure

    async def _submit_urgent(self, write: _Write) -> None:
        await self._send.send(write)
        self._urgent.set()
        await write.done.wait()

    def _close(self) -> None:
        """Take no more writes; what was taken is still carried out."""
        self._urgent.set()
        self._send.close()

    async def _serve(self) -> None:
        """Commit groups of writes until closed, whatever is cancelled meanwhile."""
        with trio.CancelScope(shield=True):
            async for first in self._receive:
                with trio.move_on_after(GATHER_S):
                    await self._urgent.wait()
                self._urgent = trio.Event()
                async with self._turn:
                    await self._commit(self._gather(first))

    def _gather(self, first: _Write) -> list[_Write]:
        group = [first]
        while len(group) < GROUP:
            try:
                group.append(self._receive.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        return group

    async def _commit(self, group: list[_Write]) -> None:
        """Carry out ``group`` in one transaction and tell those who wait."""
        database = self._store.database
        try:
            await self._aside(database.begin)
            with _rolled_back_on_error(database.roll_back):
                for number, write in enumerate(group, 1):
                    self._attempt(write)
                    if number % TURN == 0:
                        await trio.lowlevel.checkpoint()
            await self._aside(database.commit)
        except StoreError as error:
            for write in group:
                write.error = write.error or error
        self.counts["commits"] += 1
        self._note_refusal(group)
        for write in group:
            self._finish(write)

    def _note_refusal(self, group: Sequence[_Write]) -> None:
        """Note whether the disk, or the file, refused writes."""
        refused = [one.error for one in group if isinstance(one.error, StoreError)]
        self._refused_at = trio.current_time() if refused else -math.inf
        self._refused = str(refused[0]) if refused else ""

    def _attempt(self, write: _Write) -> None:
        """Carry out one write; if it fails, it alone is taken back."""
        try:
            with self._store.transaction():
                write.result = write.carry_out(self._store)
        except Exception as error:
            # A defect in a write that nobody waits for must not pass unnoticed.
            if not write.awaited and not isinstance(error, _REFUSALS):
                raise
            write.error = error

    def _finish(self, write: _Write) -> None:
        self.counts["writes"] += 1
        if not write.awaited and isinstance(write.error, _REFUSALS):
            self.counts["failed"] += 1
            self._first_failure = self._first_failure or write.error
        write.done.set()


def _in_a_thread() -> Aside:
    # Its own limiter, so that slow name look-ups cannot keep the state from the disk.
    limiter = trio.CapacityLimiter(1)

    async def aside(call: Callable[[], None]) -> None:
        await trio.to_thread.run_sync(call, limiter=limiter)

    return aside


@contextmanager
def _rolled_back_on_error(roll_back: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        roll_back()
        raise


@asynccontextmanager
async def open_writer(
    path: Path,
    limits: StoreLimits | None = None,
    *,
    pending: int = 4096,
    max_pages: int | None = None,
    aside: Aside | None = None,
) -> AsyncIterator[StoreWriter]:
    """A writer of the state file ``path``, on the one connection that this process has to it.

    Leaving, cancelled or not, commits what was taken. While it is open, read and write through it
    only.

    Args:
        path: the state file.
        limits: bounds of its parts.
        pending: writes that may wait; callers wait for room beyond that.
        max_pages: as of `Store`.
        aside: how calls that may wait for a lock or the disk are made; in a thread by default.

    Raises:
        StoreError: the file cannot be used.
    """
    with Store(path, limits, max_pages=max_pages) as store:
        async with writing_to(store, pending=pending, aside=aside) as writer:
            yield writer


@asynccontextmanager
async def writing_to(
    store: Store, *, pending: int = 4096, aside: Aside | None = None
) -> AsyncIterator[StoreWriter]:
    """A writer of a store that is open; arguments as of `open_writer`."""
    writer = StoreWriter(store, pending, aside)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer._serve)
        try:
            yield writer
        finally:
            writer._close()
