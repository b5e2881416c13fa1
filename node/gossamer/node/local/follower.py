"""Subscriptions that survive the node: each event handed on once, for as long as it takes.

A follower with a name misses nothing that the node was given for it, whether the node or the
connection was away: the node keeps what is not acknowledged. Without a name it gets what comes
while it is connected.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Self

import anyio

from gossamer.client.address import LocalAddress
from gossamer.node.local.client import CONNECTED, LocalClient, ReceivedEvent, open_client
from gossamer.node.local.frames import NEW


class Follower:
    """Iterate it for events; made by `follow`."""

    def __init__(self, client: LocalClient) -> None:
        self._client = client

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedEvent:
        """The next event, none of them twice."""
        try:
            return await self._client.events.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def acknowledge(self, event: ReceivedEvent) -> None:
        """Say that this event and those before it are dealt with; see `LocalClient.acknowledge`."""
        await self._client.acknowledge(event)


@asynccontextmanager
async def follow(
    address: LocalAddress,
    expressions: Mapping[str, str],
    name: str | None = None,
    start: str = NEW,
    on_change: Callable[[str], None] = lambda _: None,
    within: float | None = None,
) -> AsyncIterator[Follower]:
    """Events that match, over as many connections as it takes.

    Args:
        address: where the node's socket is.
        expressions: by the client's own names for them.
        name: under which the node keeps what this client has not acknowledged.
        start: see `LocalClient.subscribe`.
        on_change: told `CONNECTED`, or why the connection was lost.
        within: see `LocalClient.subscribe`.

    Raises:
        NodeError: as of `open_client` and `LocalClient.subscribe`, on the first connection; later
            ones are tried until the node refuses for good.
    """
    async with open_client(address, name, patience_s=math.inf, on_change=on_change) as client:
        for key, expression in expressions.items():
            await client.subscribe(key, expression, start, within)
        on_change(CONNECTED)
        yield Follower(client)
