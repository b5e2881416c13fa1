"""Events kept for a client with a name that wants order: each is sent and settled by itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import trio

from gossamer.node.local.durable import DurableClient
from gossamer.node.local.frames import event_frame
from gossamer.node.local.history import KeptEvent
from gossamer.node.local.requests import GONE
from gossamer.node.local.services import Services
from gossamer.node.local.serving.ordered import ROOM, ROUNDS_TO_START, Ordered
from gossamer.node.transport.connection import Connection


class KeptInOrder:
    """Sends a client what its log brings, in the order of the publishers; made by `make`."""

    def __init__(
        self,
        connection: Connection,
        services: Services,
        client: DurableClient,
    ) -> None:
        self._connection = connection
        self._services = services
        self._client = client
        self._taken: dict[int, int] = {}  # by position, the ids of what is not settled
        self._sent: dict[int, int] = {}  # by id, the positions of what the client has
        self._settled = trio.Event()
        self._ordered: Ordered[KeptEvent]

    @classmethod
    async def make(
        cls,
        connection: Connection,
        services: Services,
        client: DurableClient,
        expressions: Callable[[], list[str]],
    ) -> KeptInOrder:
        """One that knows what the client has got before."""
        made = cls(connection, services, client)
        history, name = services.history, client.name
        begins, got = begin_of(services), frozenset[int]()
        if history.is_known(name):
            begins, got = 0.0, frozenset(await history.settled(name))
        made._ordered = Ordered(services.peer, expressions, made._send, begins, got.__contains__)
        return made

    def __len__(self) -> int:
        """How many events were taken and are not settled."""
        return len(self._taken)

    async def run(self) -> None:
        """Hand on what `take` brings until cancelled."""
        await self._ordered.run()

    async def take(self, kept: KeptEvent) -> None:
        """The log brings an event; waits while too many are not settled."""
        while len(self._taken) >= ROOM:
            await self._settled.wait()
        self._taken[kept.position] = kept.id
        self._ordered.take(kept)

    async def settle(self, event: int) -> None:
        """The client has dealt with an event."""
        position = self._sent.pop(event, None)
        if position is None:
            return
        self._taken.pop(position, None)
        self._services.counts.acknowledged += 1
        place = min(self._taken, default=position + 1) - 1
        await self._services.history.acknowledge(self._client.name, place, [event])
        self._notify()

    def forget(self) -> None:
        """The client's name is forgotten with all that was kept for it."""
        self._taken.clear()
        self._sent.clear()
        self._notify()

    async def _send(self, kept: KeptEvent, late: bool) -> None:
        while len(self._sent) >= self._services.limits.window:
            await self._settled.wait()
        self._sent[kept.id] = kept.position
        ids = self._client.matching(kept.values)
        with suppress(*GONE):
            await self._connection.send(event_frame(kept, ids, late=late))
            self._services.counts.events_sent += 1

    def _notify(self) -> None:
        self._settled.set()
        self._settled = trio.Event()


def begin_of(services: Services) -> float:
    """Unix seconds from which on a subscription that begins now is promised its events."""
    return services.peer.clock.now() + ROUNDS_TO_START * services.peer.snapshot().round_s
