"""Sending frames without ever making the protocol wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import trio

from gossamer.node.errors import (
    FrameTooLarge,
    PeerUnreachable,
    TransportBroken,
    TransportClosed,
)
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.core import Record
from gossamer.node.transport.links import ConnectionPool
from gossamer.node.transport.queues.fair_queue import FairQueue, Flow

# Frames that wait for one peer beside those in its connection's queue: a few rounds' worth of
# gossip while it is dialled. What is beyond that is late anyway.
MAX_WAITING: Final = 256

Waiting = tuple[bytes, Record, Flow | None]


class FrameSender(Protocol):
    """Where frames leave."""

    def send(self, key: int, frame: bytes, record: Record, flow: Flow | None = None) -> None:
        """Bring ``frame`` to peer ``key``; what cannot be brought is handed back as ``record``.

        Frames of flows are dropped where too many wait, of the longest flow first.
        """
        ...

    def send_together(self, key: int, frames: Sequence[bytes]) -> bool:
        """Bring frames to peer ``key`` at once, if nothing waits for it; else nothing happens."""
        ...

    def held(self) -> Iterator[Record]:
        """The records that may yet be handed back."""
        ...


class PoolSender:
    """An outlet over the connections of a pool; `run` has to be running.

    Args:
        pool: the connections.
        counters: where frames that are dropped are counted.
        hand_back: takes records whose addressee cannot be reached.
        on_dropped: told that a frame of a flow to a peer was dropped.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        counters: Counters,
        hand_back: Callable[[Record], None],
        on_dropped: Callable[[int, Flow], None],
    ) -> None:
        self._pool = pool
        self._counters = counters
        self._hand_back = hand_back
        self._on_dropped = on_dropped
        self._waiting: dict[int, FairQueue[Waiting]] = {}
        self._under_way: dict[int, Record] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve frames that have to wait, until cancelled."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                # From here on nothing can be started that would wait.
                self._nursery = None

    @property
    def waiting(self) -> int:
        """Frames that wait for a connection, or for room in its queue."""
        return sum(map(len, self._waiting.values())) + len(self._under_way)

    def send(self, key: int, frame: bytes, record: Record, flow: Flow | None = None) -> None:
        """Queue ``frame``, or let it wait until it can be.

        Where too many wait, one of a flow is dropped, and this one if there is none; so it is where
        nothing waits any more: the peer stops.
        """
        waiting = self._waiting.get(key)
        try:
            # What waits already goes first.
            if waiting is None and self._pool.try_send(key, frame, flow):
                return
        except FrameTooLarge:
            self._counters.drop("too large")
            return
        if waiting is None:
            if self._nursery is None:
                self._counters.drop("unreachable")
                return
            waiting = self._waiting[key] = FairQueue(self._pool.backlog)
            self._nursery.start_soon(self._serve, key, waiting)
        is_full = len(waiting) >= MAX_WAITING
        if is_full and flow is None and not waiting.flow_items:
            self._counters.drop("queue full")
            return
        waiting.put((frame, record, flow), len(frame), flow)
        dropped = waiting.drop_longest() if is_full else None
        if dropped is not None:
            self._on_dropped(key, dropped[1])

    def send_together(self, key: int, frames: Sequence[bytes]) -> bool:
        """Queue frames; return whether they were, which is all of them or none."""
        if key in self._waiting:
            return False
        try:
            return self._pool.try_send_together(key, frames)
        except FrameTooLarge:
            return False

    def held(self) -> Iterator[Record]:
        yield from self._under_way.values()
        for waiting in self._waiting.values():
            for _, record, _ in waiting:
                yield record

    async def _serve(self, key: int, waiting: FairQueue[Waiting]) -> None:
        """Send what waits for peer ``key``, or hand all of it back."""
        lost: list[Record] = []
        try:
            while waiting:
                frame, self._under_way[key], flow = waiting.take()
                try:
                    await self._pool.send(key, frame, flow)
                except FrameTooLarge:
                    self._counters.drop("too large")
        except (PeerUnreachable, TransportClosed, TransportBroken):
            lost = [self._under_way[key], *(record for _, record, _ in waiting)]
        finally:
            self._under_way.pop(key, None)
            waiting.clear()
            del self._waiting[key]
        for record in lost:
            self._counters.drop("unreachable")
            self._hand_back(record)
