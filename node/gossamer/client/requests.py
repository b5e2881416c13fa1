"""Requests of others: events whose publisher waits for replies.

async with node.reply('symbol == "IBM"') as requests:
    async for request in requests:
        await request.reply(f"{request.values['symbol']} is fine")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, Self

from gossamer.client.errors import RefusedByNodeError
from gossamer.client.results import Payload, PayloadLike, ReceivedEvent

TEXT_TYPE: Final = "text/plain; charset=utf-8"


class Replier(Protocol):
    """What replies are sent by."""

    async def reply(self, request: str, payload: PayloadLike, *, failed: bool = False) -> None:
        """Reply to the request of that token."""


class Source(Protocol):
    """A subscription."""

    async def __anext__(self) -> ReceivedEvent: ...

    async def acknowledge(self, event: ReceivedEvent) -> None:
        """Say that an event is dealt with."""


class Request:
    """An event whose publisher waits for replies.

    Attributes:
        event: the event.
    """

    def __init__(self, event: ReceivedEvent, source: Source, replier: Replier) -> None:
        self.event = event
        self._source = source
        self._replier = replier

    @property
    def values(self) -> Mapping[str, Any]:
        """Its values."""
        return self.event.values

    @property
    def payload(self) -> Payload | None:
        """What it carries beside its values."""
        return self.event.payload

    @property
    def timeout_s(self) -> float:
        """For how long the requester waits, from when it was published."""
        return self.event.timeout_s

    async def reply(self, reply: str | bytes | PayloadLike) -> None:
        """Reply, and acknowledge the request; return once the requester's node has the reply.

        Raises:
            RefusedByNodeError: nobody waits for it any more, or the requester's node cannot be
                reached; the request is acknowledged all the same.
            TransportBroken: the connection to the node ended before it was known whether the reply
                arrived; the request is not acknowledged.
        """
        await self._send(as_payload(reply), failed=False)

    async def fail(self, reason: str) -> None:
        """Reply that what was asked for cannot be done; raises as `reply`."""
        await self._send(as_payload(reason), failed=True)

    async def _send(self, payload: PayloadLike, *, failed: bool) -> None:
        try:
            await self._replier.reply(self.event.request, payload, failed=failed)
        except RefusedByNodeError:
            await self._source.acknowledge(self.event)
            raise
        await self._source.acknowledge(self.event)


class Requests:
    """Requests that match; iterate it. Made by `Client.reply`."""

    def __init__(self, source: Source, replier: Replier) -> None:
        self._source = source
        self._replier = replier

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Request:
        """The next request; events that match and are none are passed over.

        Raises:
            NodeError: there will be none any more, and why.
        """
        while True:
            event = await self._source.__anext__()
            if event.request:
                return Request(event, self._source, self._replier)
            await self._source.acknowledge(event)


def as_payload(content: str | bytes | PayloadLike) -> PayloadLike:
    """A payload of what is one, of bytes, or of a text."""
    if isinstance(content, str):
        return Payload(content.encode(), TEXT_TYPE)
    return Payload(content) if isinstance(content, bytes) else content
