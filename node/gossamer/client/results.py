"""What a client of a node gets: events, and what became of those that it published."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final, Protocol, Self

from attrs import frozen

from gossamer.client.errors import (
    PublicationUncertainError,
    RefusedByNodeError,
    UnacknowledgedError,
)

UNKNOWN_TYPE: Final = "application/octet-stream"


@frozen
class Payload:
    """What an event carries beside its values; the node checks it.

    Attributes:
        data: the bytes, at most 48 KiB.
        content_type: what they are, as of MIME (RFC 6838), such as "text/plain; charset=utf-8".
    """

    data: bytes
    content_type: str = UNKNOWN_TYPE


class PayloadLike(Protocol):
    """A `Payload`, or whatever else has its attributes."""

    @property
    def data(self) -> bytes:
        """The bytes."""

    @property
    def content_type(self) -> str:
        """What they are."""


@frozen
class LastMark:
    """Says that an event is the last of the value that it has of an attribute.

    Attributes:
        attribute: the attribute.
        lasts_s: seconds for which it is kept for newcomers; 0 for good.
        deleted: whether nothing is kept of that value any more.
    """

    attribute: str
    lasts_s: float = 0.0
    deleted: bool = False


@frozen
class Reply:
    """A reply to a request.

    Attributes:
        replier: permanent key of the peer that it came from, as text.
        payload: what was replied.
        failed: whether the replier says that it could not do what was asked.
    """

    replier: str
    payload: Payload
    failed: bool = False


@frozen
class ReceivedEvent:
    """An event that an application gets.

    Attributes:
        id: unique in the overlay.
        values: by attribute, canonical.
        publisher: permanent key of the peer that published it, as text; the node has verified
            that, unless its cluster has no certificates.
        published_at: by the publisher's clock, Unix seconds.
        subscriptions: ids of the client's subscriptions that it matches.
        position: in the node's history; 0 for clients without a name.
        history: id of that history; "" for clients without a name.
        payload: what it carries beside its values.
        request: where to reply to, "" where it is no request; see `gossamer.client.Request`.
        timeout_s: how long the requester waits for replies, from when it was published.
        last: the attribute of whose value it is the last event, "" if of none.
        deleted: whether it says that there is no last value any more.
        late: of a subscription in order, whether a later event of the same publisher came before.
        match: of a composite subscription, the publications that match together, one for each part
            of the alternative; `values` is empty then, and `publisher` too.
    """

    id: str
    values: Mapping[str, Any]
    publisher: str
    published_at: float
    subscriptions: tuple[str, ...]
    position: int
    history: str = ""
    payload: Payload | None = None
    request: str = ""
    timeout_s: float = 0.0
    late: bool = False
    last: str = ""
    deleted: bool = False
    match: tuple[ReceivedEvent, ...] = ()


class Fate(enum.StrEnum):
    """What is known about an event that was to be published."""

    ACKNOWLEDGED = "acknowledged"  # others hold it; what docs/promises.md says holds from here on
    UNKNOWN = "unknown"  # it may reach all of its subscribers, some or none
    REFUSED = "refused"  # it was not published


@frozen
class Outcome:
    """What became of an event that was to be published.

    Attributes:
        id: of the event; "" where the node has not said that it was published.
        error: None where it is acknowledged; an `UnacknowledgedError` where it was published, and
            nobody acknowledged it in time; a `PublicationUncertainError` where the connection ended
            first; else why it was not published.
    """

    id: str
    error: Exception | None = None

    @property
    def fate(self) -> Fate:
        """What is known of it, in a word."""
        if self.error is None:
            return Fate.ACKNOWLEDGED
        uncertain = isinstance(self.error, UnacknowledgedError | PublicationUncertainError)
        return Fate.UNKNOWN if uncertain else Fate.REFUSED


def outcome_of(event_id: str, cause: str, reason: str) -> Outcome:
    """What the node's answer says of one event of many."""
    if not cause:
        return Outcome(event_id)
    if event_id:
        return Outcome(event_id, UnacknowledgedError([event_id], 1, reason))
    return Outcome("", RefusedByNodeError(cause, reason))


# Requests of others: events whose publisher waits for replies.
#
# async with node.reply('symbol == "IBM"') as requests:
#     async for request in requests:
#         await request.reply(f"{request.values['symbol']} is fine")

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
