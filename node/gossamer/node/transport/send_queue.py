"""Frames waiting to be written: bounded in bytes, and fair between flows."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import trio
from attrs import define, field

from gossamer.node.transport.base import CHUNK_BYTES

# A queue in which nobody's items have to wait for all of somebody else's.
#
# Items belong to flows. A flow is what one publisher's events, brought here by one neighbour, come
# to. Neighbours take turns, by bytes, and so do the publishers of each: whoever sends little waits
# for little, however much others send. A publisher's name is what a frame says it is; by making
# names up a neighbour takes from what else it brings, and from nobody else.
#
# It is start-time fair queueing (Goyal, Vin, Cheng 1996) on two levels: what has been given least
# goes next, and who had nothing waiting is not owed anything for that.


T = TypeVar("T")

# Flows of one neighbour that are told apart in a queue; more share the last place.
FLOWS_TOLD_APART: Final = 64


class Flow(NamedTuple):
    """Whose an item is.

    Attributes:
        source: who brought here what it follows from.
        publisher: whose event that is, as far as is known.
        cost: for how many bytes each of its bytes counts when sources take turns.
    """

    source: Hashable
    publisher: Hashable = None
    cost: int = 1


class Backlog:
    """Bytes that wait in several queues together, by source and publisher."""

    def __init__(self) -> None:
        self._bytes: Counter[tuple[Hashable, Hashable]] = Counter()

    def of(self, flow: Flow) -> int:
        """Bytes of a flow."""
        return self._bytes[flow[:2]]

    def add(self, flow: Flow, size: int) -> None:
        """Note that more, or for a negative number less, waits."""
        whose = flow[:2]
        self._bytes[whose] += size
        if not self._bytes[whose]:
            del self._bytes[whose]


@define(eq=False)
class _Line(Generic[T]):
    """The items of one flow.

    Attributes:
        items: and the size of each, and its flow.
        size: of all.
        given: how much this line has been given, by the clock of its neighbour's lines.
    """

    given: int
    items: deque[tuple[T, int, Flow | None]] = field(factory=deque)
    size: int = 0


@define(eq=False)
class _Lines(Generic[T]):
    """The lines of one neighbour, those that have items.

    Attributes:
        clock: what the line that was last chosen had been given.
    """

    given: int
    lines: dict[Hashable, _Line[T]] = field(factory=dict)
    size: int = 0
    clock: int = 0

    def line_for(self, flow: Flow | None) -> _Line[T]:
        key: Hashable = flow and flow[1:]
        if key not in self.lines and len(self.lines) >= FLOWS_TOLD_APART:
            key = FLOWS_TOLD_APART
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = _Line(self.clock)
        return line


class FairQueue(Generic[T]):
    """Items of flows, and items of none, which are a neighbour's of their own and keep their order.

    Attributes:
        size: of all items together.
        flow_items, flow_bytes: number and size of those that belong to a flow.
    """

    def __init__(self, backlog: Backlog | None = None) -> None:
        """An empty queue whose items count in ``backlog`` as well."""
        self.size = 0
        self.flow_items = self.flow_bytes = 0
        self._backlog = Backlog() if backlog is None else backlog
        self._count = 0
        self._clock = 0
        self._sources: dict[Hashable, _Lines[T]] = {}

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        """All items, in no order."""
        for lines in self._sources.values():
            for line in lines.lines.values():
                for item, _, _ in line.items:
                    yield item

    def put(self, item: T, size: int, flow: Flow | None = None) -> None:
        """Append an item."""
        source = flow and flow.source
        lines = self._sources.get(source)
        if lines is None:
            lines = self._sources[source] = _Lines(self._clock)
        line = lines.line_for(flow)
        line.items.append((item, size, flow))
        for one in (line, lines, self):
            one.size += size
        self._count += 1
        if flow is not None:
            self.flow_items += 1
            self.flow_bytes += size
            self._backlog.add(flow, size)

    def first_size(self) -> int:
        """The size of the item that is next."""
        return self._next()[3].items[0][1]

    def first_of(self, flow: Flow) -> T | None:
        """The item of a flow that is next of its line, None where nothing of it waits."""
        lines = self._sources.get(flow.source)
        line = None if lines is None else lines.lines.get(flow[1:])
        return None if line is None else line.items[0][0]

    def take(self) -> T:
        """Take out the item that is next."""
        source, lines, key, line = self._next()
        self._clock, lines.clock = lines.given, line.given
        item, size, flow = line.items.popleft()
        line.given += size
        lines.given += size if flow is None else size * flow.cost
        self._taken_out(source, key, size, flow)
        return item

    def drop_longest(self) -> tuple[T, Flow] | None:
        """Take out the newest item of the longest flow of who has most waiting; None without."""
        if not self.flow_items:
            return None
        source = max((key for key in self._sources if key is not None), key=self.size_of)
        lines = self._sources[source].lines
        key = max(lines, key=lambda one: lines[one].size)
        item, size, flow = lines[key].items.pop()
        assert flow is not None
        self._taken_out(source, key, size, flow)
        return item, flow

    def clear(self) -> None:
        """Forget all items."""
        while self._count:
            self.take()

    def size_of(self, source: Hashable) -> int:
        """Bytes that wait of what one neighbour brought."""
        lines = self._sources.get(source)
        return 0 if lines is None else lines.size

    def _next(self) -> tuple[Hashable, _Lines[T], Hashable, _Line[T]]:
        source, lines = min(self._sources.items(), key=lambda one: one[1].given)
        key, line = min(lines.lines.items(), key=lambda one: one[1].given)
        return source, lines, key, line

    def _taken_out(self, source: Hashable, key: Hashable, size: int, flow: Flow | None) -> None:
        lines = self._sources[source]
        for one in (lines.lines[key], lines, self):
            one.size -= size
        self._count -= 1
        if not lines.lines[key].items:
            del lines.lines[key]
        if not lines.lines:
            del self._sources[source]
        if flow is not None:
            self.flow_items -= 1
            self.flow_bytes -= size
            self._backlog.add(flow, -size)


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
