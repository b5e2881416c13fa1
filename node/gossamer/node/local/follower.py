"""Subscriptions that survive the node: reconnected as often as need be, each event handed on once.

A follower with a name misses nothing that the node was given for it, whether the node or the
connection was away: the node keeps what is not acknowledged. Without a name it gets what comes
while it is connected.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, Self

import trio

from gossamer.node.errors import HandshakeFailed, NodeNotRunningError, RefusedByNodeError
from gossamer.node.local.address import LocalAddress
from gossamer.node.local.client import GONE, LocalClient, ReceivedEvent, Resume, open_client
from gossamer.node.local.frames import NEW
from gossamer.node.transport.back_off import BackOff
from gossamer.node.transport.base import Cause
from gossamer.node.unwrap import unwrapped

# Events remembered by id, for nodes that lost their history and for clients without a name.
REMEMBERED: Final = 4096

CONNECTED: Final = "connected"

_BACK_OFF: Final = BackOff(first_s=0.2, longest_s=5.0)
_TRANSIENT: Final = (NodeNotRunningError, HandshakeFailed, *GONE)


class Follower:
    """Iterate it for events; made by `follow`."""

    def __init__(
        self,
        address: LocalAddress,
        expressions: Mapping[str, str],
        name: str | None,
        start: str,
        on_change: Callable[[str], None],
    ) -> None:
        self._address = address
        self._expressions = dict(expressions)
        self._name = name
        self._start = start
        self._on_change = on_change
        self._client: LocalClient | None = None
        self._resume: Resume | None = None
        self._handed_on = 0  # position in the history that `_resume` names
        self._recent: OrderedDict[str, None] = OrderedDict()
        self._send, self._events = trio.open_memory_channel[ReceivedEvent](0)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedEvent:
        """The next event, none of them twice."""
        try:
            return await self._events.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    async def acknowledge(self, event: ReceivedEvent) -> None:
        """Say that this event and those before it are dealt with; needed of those with a name.

        While the node is away the follower remembers it, and tells the node when it is back.
        """
        if self._resume is None or event.position <= self._resume.acknowledged:
            return
        self._resume = Resume(self._resume.history, event.position)
        if self._client is not None:
            with suppress(*GONE):
                await self._client.acknowledge(event)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Stay connected, until cancelled or refused."""
        failures = 0
        draws = random.Random()
        started = False
        while True:
            try:
                async with open_client(self._address, self._name, self._resume) as client:
                    await self._take_up(client)
                    if not started:
                        task_status.started()
                    started, failures = True, 0
                    self._on_change(CONNECTED)
                    await self._hand_on_all(client)
                    reason = str(client.farewell)
            except _TRANSIENT as error:
                if not started:
                    raise
                reason = str(error)
            except RefusedByNodeError as error:
                if not started or error.cause not in (Cause.BUSY, Cause.SHUTDOWN):
                    raise
                reason = str(error)
            finally:
                self._client = None
            failures += 1
            self._on_change(reason)
            await trio.sleep(_BACK_OFF.delay_s(failures, draws))

    async def _take_up(self, client: LocalClient) -> None:
        if self._name is not None and (
            self._resume is None or self._resume.history != client.history
        ):
            self._resume = Resume(client.history, 0)
            self._handed_on = 0
        self._client = client
        for key, expression in self._expressions.items():
            await client.subscribe(key, expression, self._start)

    async def _hand_on_all(self, client: LocalClient) -> None:
        async for event in client.events:
            if not self._is_known(event):
                await self._send.send(event)

    def _is_known(self, event: ReceivedEvent) -> bool:
        if 0 < event.position <= self._handed_on:
            return True
        self._handed_on = event.position
        if event.id in self._recent:
            return True
        self._recent[event.id] = None
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        return False


@asynccontextmanager
async def follow(
    address: LocalAddress,
    expressions: Mapping[str, str],
    name: str | None = None,
    start: str = NEW,
    on_change: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Follower]:
    """Events that match, over as many connections as it takes.

    Args:
        address: where the node's socket is.
        expressions: by the client's own names for them.
        name: under which the node keeps what this client has not acknowledged.
        start: see `LocalClient.subscribe`.
        on_change: told `CONNECTED`, or why the connection was lost.

    Raises:
        NodeError: as of `open_client` and `LocalClient.subscribe`, on the first connection; later
            ones are tried until the node refuses for good.
    """
    follower = Follower(address, expressions, name, start, on_change)
    with unwrapped():
        async with trio.open_nursery() as nursery:
            await nursery.start(follower.run)
            yield follower
            nursery.cancel_scope.cancel()
