"""Waiting for what happens elsewhere, and tasks that run beside a test.

A test that waits longer than its patience has failed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs
import psutil
import trio
import trio.testing

PATIENCE_S = 300
# Between two looks: on a clock that runs, and on one that jumps, where each look takes time.
POLL_S, JUMPING_POLL_S = 0.01, 0.05


def started_by(process: int, word: str) -> list[psutil.Process]:
    """What descends from a process, with a word in its command line; others may end meanwhile."""
    found = []
    for one in psutil.Process(process).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any(word in part for part in one.cmdline()):
                found.append(one)
    return found


async def eventually(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for what other tasks, threads, processes or sockets bring about."""
    jumps = isinstance(trio.lowlevel.current_clock(), trio.testing.MockClock)
    with trio.fail_after(patience_s):
        while not condition():
            await trio.sleep(JUMPING_POLL_S if jumps else POLL_S)


async def comes_true(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """Wait as `eventually`, for a test that has more to tell when this does not come true."""
    with suppress(trio.TooSlowError):
        await eventually(condition, patience_s)
    return condition()


async def soon(condition: Callable[[], bool]) -> None:
    """Wait for what tasks nearby are about to do; a clock that jumps stands still meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "what was to happen soon did not"
        await trio.sleep(0)


async def at_once(call: Callable[[], None]) -> None:
    """Make a call here and now: a clock that jumps does not wait for threads."""
    call()
    await trio.lowlevel.checkpoint()


@attrs.define(eq=False, slots=False)
class Changing:
    """Something that says when it has changed, so that tests need not look again and again."""

    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)

    def changed(self) -> None:
        self._changed.unpark_all()

    async def until(self, condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait until ``condition`` holds, which something that changes this makes true."""
        with trio.fail_after(patience_s):
            while not condition():
                await self._changed.park()


@asynccontextmanager
async def running(*tasks: Callable[[], Awaitable[Any]]) -> AsyncIterator[trio.Nursery]:
    """Run tasks, and what is started in the nursery, until the context is left."""
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)
        yield nursery
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def turns_of_others() -> AsyncIterator[Callable[[], int]]:
    """Count, while the context is open, the turns that another task has; call it for the number."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with running(count):
        yield lambda: turns


async def from_host(host: str, port: int) -> trio.SocketStream:
    """A connection to 127.0.0.1 from 127.0.0.2 or the like, as if from another machine."""
    return await trio.open_tcp_stream("127.0.0.1", port, local_address=host)
