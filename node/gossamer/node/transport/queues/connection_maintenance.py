"""What connections do by turns in two tasks for all of them, instead of two tasks each.

A peer of forty has 39 connections. A task of its own that writes costs each frame a switch, one
that pings costs a timer, and both cost memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

# How often connections are looked after, in parts of the time from ping to ping.
LOOKS_PER_PING = 10


class MaintainedConnection(Protocol):
    """What is taken care of."""

    def look_after(self, now: float) -> None:
        """Do what is due at ``now``, by trio's clock."""
        ...


class ConnectionMaintenance:
    """Writes what connections have queued, and looks after them now and then; `run` does both.

    Attributes:
        charges: what is looked after.
    """

    def __init__(self, ping_seconds: float) -> None:
        self.connections: set[MaintainedConnection] = set()
        self._pause_s = ping_seconds / LOOKS_PER_PING
        self._due: list[Callable[[], None]] = []
        self._work = trio.lowlevel.ParkingLot()

    def soon(self, write: Callable[[], None]) -> None:
        """Let ``write``, which must not wait, be called once all that is to happen now has.

        Frames that follow from the same frames read are written together that way.
        """
        self._due.append(write)
        if self._work:
            self._work.unpark()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            await self._look_after()

    async def _write(self) -> None:
        while True:
            if not self._due:
                await self._work.park()
            due, self._due = self._due, []
            for write in due:
                write()
            if self._due:
                await trio.lowlevel.checkpoint()

    async def _look_after(self) -> None:
        while True:
            await trio.sleep(self._pause_s)
            now = trio.current_time()
            for connection in list(self.connections):
                connection.look_after(now)
