"""Frames waiting to be written, bounded in bytes."""

from __future__ import annotations

from collections import deque

import trio

from gossamer.node.transport.base import CHUNK_BYTES


class SendQueue:
    """A queue of frames for one writer.

    Attributes:
        size: bytes queued, those being written included.
        high_water: most bytes that were ever queued.
    """

    def __init__(self, capacity: int) -> None:
        self.size = 0
        self.high_water = 0
        self._capacity = capacity
        self._frames: deque[bytes] = deque()
        self._under_way = 0
        self._frames_under_way = 0
        self._room = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        """Frames queued, those being written not included."""
        return len(self._frames)

    @property
    def unsent(self) -> int:
        """Frames queued, those being written included."""
        return len(self._frames) + self._frames_under_way

    def fits(self, frame: bytes) -> bool:
        """Whether there is room for ``frame``."""
        return self.size + len(frame) <= self._capacity

    def put(self, frame: bytes) -> None:
        """Append ``frame``, whether it fits or not."""
        self._frames.append(frame)
        self.size += len(frame)
        if self.size > self.high_water:
            self.high_water = self.size

    async def wait_for_room(self) -> None:
        """Wait until something was written, or `wake` is called; look again then."""
        await self._room.park()

    def wake(self) -> None:
        """Let everybody who waits look again."""
        self._room.unpark_all()

    @property
    def bytes_under_way(self) -> int:
        """Bytes of the batch that is being written."""
        return self._under_way

    def take_batch(self) -> bytes:
        """As many whole frames as make up `CHUNK_BYTES`, at least one.

        They count as queued until `written` is called.
        """
        frames = [self._frames.popleft()]
        size = len(frames[0])
        while self._frames and size + len(self._frames[0]) <= CHUNK_BYTES:
            size += len(self._frames[0])
            frames.append(self._frames.popleft())
        self._under_way = size
        self._frames_under_way = len(frames)
        return b"".join(frames)

    def written(self) -> tuple[int, int]:
        """The batch taken last is out: make room; return how many frames and bytes it had."""
        batch = self._frames_under_way, self._under_way
        self.size -= self._under_way
        self._under_way = self._frames_under_way = 0
        if self._room:
            self._room.unpark_all()
        return batch

    def drop(self) -> int:
        """Forget all frames that are not being written; return how many."""
        dropped = len(self._frames)
        self._frames.clear()
        self.size = self._under_way
        self.wake()
        return dropped
