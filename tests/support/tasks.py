"""Tasks that run beside a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio


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
