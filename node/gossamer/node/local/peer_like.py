"""What the local socket needs of a peer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from gossamer.protocol.content.values import Value


class EventLike(Protocol):
    """An event that reached a subscriber."""

    @property
    def id(self) -> int:
        """Unique in the overlay."""
        ...

    @property
    def values(self) -> Mapping[str, Value]:
        """By attribute, canonical."""
        ...

    @property
    def publisher(self) -> int:
        """Permanent key of the peer that it names as its publisher."""
        ...

    @property
    def published_at(self) -> float:
        """By the publisher's clock, Unix seconds."""
        ...


class PeerLike(Protocol):
    """A peer that runs; `gossamer.node.peer.peer.Peer` is one."""

    @property
    def key(self) -> int:
        """Its permanent key."""
        ...

    def subscribe(self, expression: str) -> AbstractAsyncContextManager[AsyncIterator[EventLike]]:
        """Events that match, for as long as the context is open; one may come again.

        After that what came before can still be taken; then the iteration ends.

        Raises:
            ExpressionError: the expression does not fit the schema.
            CapacityError: the peer holds as many subscriptions as it may.
        """
        ...

    async def publish(self, values: Mapping[str, object], *, application: Hashable = None) -> int:
        """Publish an event; return its id once others hold it.

        Where too many wait for that, those of each ``application`` take turns.

        Raises:
            ContentError: the values do not fit the schema.
            NotAcknowledged: nobody said in time that they do.
        """
        ...
