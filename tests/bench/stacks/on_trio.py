"""Processes of peers whose stack is made for trio."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack

import trio

from bench.stacks.application import Applications, Publication, by_peer


class TrioApplications(Applications):
    """Applications in one loop of trio: in its nursery runs what is beside the requests."""

    def __init__(self, nursery: trio.Nursery, opened: AsyncExitStack) -> None:
        super().__init__()
        self.nursery = nursery
        self.opened = opened

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        self.nursery.start_soon(work)

    async def close(self) -> None:
        await self.opened.aclose()

    async def publish_steadily(self, publications: Sequence[Publication]) -> None:
        async with trio.open_nursery() as nursery:
            for one in publications:
                await trio.sleep(max(0.0, one.due_at - time.time()))
                nursery.start_soon(self.publish_one, one)

    async def publish_at_once(self, publications: Sequence[Publication], window: int) -> None:
        async with trio.open_nursery() as nursery:
            for share in by_peer(publications).values():
                waiting = iter(share)
                for _ in range(window):
                    nursery.start_soon(self._publish_in_turn, waiting)

    async def _publish_in_turn(self, waiting: Iterator[Publication]) -> None:
        for one in waiting:
            await self.publish_one(one)
            await trio.lowlevel.checkpoint()
