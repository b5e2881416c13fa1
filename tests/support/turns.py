"""How often others have their turn of the event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def turns_of_others() -> AsyncIterator[Callable[[], int]]:
    """Count, while the context is open, the turns that another task has; call it for the number."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        yield lambda: turns
        nursery.cancel_scope.cancel()
