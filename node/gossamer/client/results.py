"""What a client of a node gets: events, and what became of those that it published."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final, Protocol

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
