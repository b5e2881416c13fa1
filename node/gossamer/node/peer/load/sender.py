"""Sending without making the protocol wait: losses, and how many publications are under way."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, Protocol

import trio
from attrs import define

from gossamer.node.errors import FrameTooLarge, PeerUnreachable, TransportBroken
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.core import Record
from gossamer.node.transport.links import ConnectionPool
from gossamer.node.transport.send_queue import FairQueue, Flow

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


@define(eq=False, slots=False)
class PoolSender:
    """An outlet over the connections of a pool; `run` has to be running.

    Args:
        on_dropped: told that a frame of a flow to a peer was dropped.
    """

    _pool: ConnectionPool
    _counters: Counters
    _on_dropped: Callable[[int, Flow], None]

    def __attrs_post_init__(self) -> None:
        self._hand_back: Callable[[Record], None]
        self._waiting: dict[int, FairQueue[Waiting]] = {}
        self._under_way: dict[int, Record] = {}
        self._nursery: trio.Nursery | None = None

    async def run(
        self,
        hand_back: Callable[[Record], None],
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve frames that have to wait, until cancelled; hand back what cannot be sent."""
        self._hand_back = hand_back
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
        except (PeerUnreachable, TransportBroken):
            lost = [self._under_way[key], *(record for _, record, _ in waiting)]
        finally:
            self._under_way.pop(key, None)
            waiting.clear()
            del self._waiting[key]
        for record in lost:
            self._counters.drop("unreachable")
            self._hand_back(record)


# How many publications may be under way at a time: fewer where acknowledgements are slow.
#
# What is published faster than the overlay can take it waits somewhere. If it waits on its way,
# every event is late, is published again, and makes all others later still, until none is
# acknowledged in time and all of the work is for nothing. So it waits here, and applications with
# it: the window is halved where an acknowledgement is slow, and grows again with those that are
# quick, as congestion windows do (Jacobson 1988).


# However slow acknowledgements are, so many are waited for at a time.
FEWEST: Final = 4


class Window:
    """Places for publications, given to applications in turn, and to each in the order it asks.

    Attributes:
        size: how many there are now.

    Args:
        most: how many there are at most, and at first.
        slow_s: an acknowledgement that takes so long says that too much is under way.
    """

    def __init__(self, most: int, slow_s: float) -> None:
        self.size = float(most)
        self._most = most
        self._fewest = min(FEWEST, most)
        self._slow_s = slow_s
        # Up to here it grows by one with each acknowledgement, from there on with a windowful.
        self._careful_from = float(most)
        self._shrunk_at = -math.inf
        self._taken = 0
        self._lots: OrderedDict[Hashable, trio.lowlevel.ParkingLot] = OrderedDict()

    async def take(self, whose: Hashable = None, most: int = 1) -> int:
        """Take places, once it is the turn of ``whose`` they are to be; return how many.

        At least one, and up to ``most`` while nobody waits; each is to be given back.
        """
        if self._lots or self._taken >= self._places:
            await self._wait(whose)
        else:
            self._taken += 1
        more = 0 if self._lots else max(0, min(most - 1, self._places - self._taken))
        self._taken += more
        return 1 + more

    def give_back(self, places: int = 1) -> None:
        """Let others have these places."""
        self._taken -= places
        self._give_places()

    def note(self, took_s: float) -> None:
        """An acknowledgement took so long, or was waited for in vain for so long."""
        if took_s < self._slow_s:
            grown = 1.0 if self.size < self._careful_from else 1.0 / self.size
            self.size = min(float(self._most), self.size + grown)
            return
        now = trio.current_time()
        # Others that went out before it was noticed are late for the same reason.
        if now - self._shrunk_at >= self._slow_s:
            self._shrunk_at = now
            self.size = self._careful_from = max(float(self._fewest), self.size / 2)

    @property
    def _places(self) -> int:
        return int(self.size)

    async def _wait(self, whose: Hashable) -> None:
        lot = self._lots.setdefault(whose, trio.lowlevel.ParkingLot())
        try:
            await lot.park()
        finally:
            # Who gave up may have been the last of its own.
            if not lot and self._lots.get(whose) is lot:
                del self._lots[whose]

    def _give_places(self) -> None:
        while self._lots and self._taken < self._places:
            whose, lot = next(iter(self._lots.items()))
            self._lots.move_to_end(whose)
            self._taken += 1
            lot.unpark()
            if not lot:
                del self._lots[whose]
