"""The applications of one node that take events of one queue group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from attrs import define, field

from gossamer.node.local.peer_like import EventLike


@define(eq=False)
class Worker:
    """An application of this node that takes events of the group.

    Attributes:
        window: events that it may have at a time.
        send: gives it one.
        has: ids of those that it has not acknowledged.
    """

    window: int
    send: Callable[[EventLike], Awaitable[None]]
    has: set[int] = field(factory=set)


class Workers:
    """All workers of one group at this node.

    Attributes:
        left: set when a worker leaves; another event then.
        idle_since: trio's time when there was none, or the last one left.
    """

    def __init__(self) -> None:
        self.left = trio.Event()
        self.idle_since = trio.current_time()
        self._workers: list[Worker] = []

    def __len__(self) -> int:
        """How many there are."""
        return len(self._workers)

    def add(self, worker: Worker) -> None:
        """One more."""
        self._workers.append(worker)

    def remove(self, worker: Worker) -> None:
        """One is gone."""
        self._workers.remove(worker)
        self.left.set()
        self.left = trio.Event()
        self.idle_since = trio.current_time()

    def room(self, held: int) -> int:
        """How many events they take beyond the ``held`` that are assigned to this node."""
        given = sum(len(worker.has) for worker in self._workers)
        queued = held - given
        return max(0, sum(worker.window for worker in self._workers) - given - max(0, queued))

    def with_most_room(self) -> Worker | None:
        """The worker that takes most events yet; None if none takes any."""
        free = [one for one in self._workers if len(one.has) < one.window]
        return max(free, key=lambda one: one.window - len(one.has), default=None)
