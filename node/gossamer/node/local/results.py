"""What a client of a node gets: events, and what became of those that it published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from gossamer.node.errors import NodeError, RefusedByNodeError, UnacknowledgedError
from gossamer.protocol.content.errors import ContentError


@frozen
class ReceivedEvent:
    """An event that an application gets.

    Attributes:
        id: unique in the overlay.
        values: by attribute, canonical.
        publisher: permanent key of the peer that it names as its publisher, as text.
        published_at: by the publisher's clock, Unix seconds.
        subscriptions: ids of the client's subscriptions that it matches.
        position: in the node's history; 0 for clients without a name.
        history: id of that history; "" for clients without a name.
    """

    id: str
    values: Mapping[str, Any]
    publisher: str
    published_at: float
    subscriptions: tuple[str, ...]
    position: int
    history: str = ""


@frozen
class Outcome:
    """What became of an event that was to be published.

    Attributes:
        id: of the event; "" where it was not published.
        error: None where it is acknowledged; an `UnacknowledgedError` where it was published, and
            nobody acknowledged it in time; else why it was not published.
    """

    id: str
    error: NodeError | ContentError | None = None


def outcome_of(event_id: str, cause: str, reason: str) -> Outcome:
    """What the node's answer says of one event of many."""
    if not cause:
        return Outcome(event_id)
    if event_id:
        return Outcome(event_id, UnacknowledgedError([event_id], 1, reason))
    return Outcome("", RefusedByNodeError(cause, reason))
