"""Frames waiting to be written, bounded in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import trio

from gossamer.node.transport.base.base import CHUNK_BYTES
from gossamer.node.transport.queues.fair_queue import Backlog, FairQueue, Flow

# Frames that go out together without turns being taken, which would cost more than all else that a
# queue does: one record of TLS. So much is written at once while flows wait, too.
FAIR_BATCH_BYTES = 1 << 14


class SendQueue:
    """A queue of frames for one writer.

    Frames of flows take turns, get at most half of the room, and make room for each other: of who
    has most waiting the newest is dropped. All others keep their order.

    Attributes:
        high_water: most bytes that were ever queued.
    """

    def __init__(self, capacity: int, backlog: Backlog | None = None) -> None:
        self.high_water = 0
        self._capacity = capacity
        self._next: deque[bytes] = deque()
        self._next_bytes = 0
        self._frames: FairQueue[bytes] = FairQueue(backlog)
        self._under_way = 0
        self._frames_under_way = 0
        self._room = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        """Frames queued, those being written not included."""
        return len(self._next) + len(self._frames)

    @property
    def size(self) -> int:
        """Bytes queued, those being written included."""
        return self._next_bytes + self._frames.size + self._under_way

    @property
    def unsent(self) -> int:
        """Frames queued, those being written included."""
        return len(self) + self._frames_under_way

    def fits(self, frame: bytes) -> bool:
        """Whether there is room for ``frame``."""
        return self.size + len(frame) <= self._capacity

    def put(self, frame: bytes, flow: Flow | None = None) -> list[Flow]:
        """Append ``frame``; one of no flow whether it fits or not.

        Returns of which flows a frame was dropped instead, this one's perhaps.
        """
        dropped: list[Flow] = []
        if not self._frames and self._next_bytes + len(frame) <= FAIR_BATCH_BYTES:
            self._next.append(frame)
            self._next_bytes += len(frame)
        else:
            self._frames.put(frame, len(frame), flow)
            if flow is not None:
                dropped = self._make_room()
        self.high_water = max(self.high_water, self.size)
        return dropped

    def put_together(self, frames: Sequence[bytes]) -> bool:
        """Append frames if they may go out before turns are taken; return whether they were."""
        size = sum(map(len, frames))
        if self._frames or self._next_bytes + size > FAIR_BATCH_BYTES:
            return False
        self._next.extend(frames)
        self._next_bytes += size
        self.high_water = max(self.high_water, self.size)
        return True

    def _make_room(self) -> list[Flow]:
        dropped = []
        while self._is_too_full():
            found = self._frames.drop_longest()
            if found is None:
                break
            dropped.append(found[1])
        return dropped

    def _is_too_full(self) -> bool:
        frames = self._frames
        # One frame has room however large it is.
        crowded = frames.flow_bytes > self._capacity // 2 and frames.flow_items > 1
        return crowded or self.size > self._capacity

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
        """Whole frames for one write, at least one.

        They count as queued until `written` is called.
        """
        frames, size = [*self._next], self._next_bytes
        self._next.clear()
        self._next_bytes = 0
        most = FAIR_BATCH_BYTES if self._frames.flow_items else CHUNK_BYTES
        while self._frames and (not frames or size + self._frames.first_size() <= most):
            frame = self._frames.take()
            size += len(frame)
            frames.append(frame)
        self._under_way = size
        self._frames_under_way = len(frames)
        return b"".join(frames)

    def written(self) -> tuple[int, int]:
        """The batch taken last is out: make room; return how many frames and bytes it had."""
        batch = self._frames_under_way, self._under_way
        self._under_way = self._frames_under_way = 0
        if self._room:
            self._room.unpark_all()
        return batch

    def drop(self) -> int:
        """Forget all frames that are not being written; return how many."""
        dropped = len(self)
        self._next.clear()
        self._next_bytes = 0
        self._frames.clear()
        self.wake()
        return dropped
