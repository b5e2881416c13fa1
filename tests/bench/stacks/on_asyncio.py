"""Processes of peers whose stack is made for asyncio, or for threads."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable

from bench.stacks.application import Applications
from support.peer_requests import answers_stream, serve


class AsyncioApplications(Applications):
    """Applications in one loop of asyncio."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: set[asyncio.Future[None]] = set()

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(work())
        self._tasks.add(task)  # the loop holds it by a weak reference only
        task.add_done_callback(self._tasks.discard)


def run(make: Callable[[], Applications]) -> None:
    answers = answers_stream()

    async def read_line() -> str:
        return await asyncio.to_thread(sys.stdin.readline)

    async def work() -> None:
        await serve(make(), read_line, answers)

    gc.freeze()
    asyncio.run(work())
