"""What the local socket needs of a peer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from gossamer.node.page.snapshot import Snapshot
from gossamer.node.peer.unicast.cluster_time import ClusterTime
from gossamer.node.peer.unicast.messages import Unicast
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Payload, Value


class EventLike(Protocol):
    """An event that reached a subscriber."""

    @property
    def id(self) -> int:
        """Unique in the overlay."""

    @property
    def values(self) -> Mapping[str, Value]:
        """By attribute, canonical."""

    @property
    def publisher(self) -> int:
        """Permanent key of the peer that published it, verified where there are certificates."""

    @property
    def published_at(self) -> float:
        """By the publisher's clock, Unix seconds; by its neighbours', while it is ahead of them."""

    @property
    def payload(self) -> Payload | None:
        """What it carries beside its values."""


class PeerLike(Protocol):
    """A peer that runs; `gossamer.node.peer.peer.Peer` is one."""

    @property
    def key(self) -> int:
        """Its permanent key."""

    @property
    def schema(self) -> Schema:
        """All attributes that events have or had, which may become more."""

    @property
    def messages(self) -> Unicast:
        """Questions to other peers, and answers to theirs."""

    @property
    def clock(self) -> ClusterTime:
        """What time it is for events."""

    @property
    def is_whole(self) -> bool:
        """Whether it misses nothing as far as it knows."""

    def subscribe(
        self, expression: str, *, past_s: float = 0.0
    ) -> AbstractAsyncContextManager[AsyncIterator[EventLike]]:
        """Events that match, for as long as the context is open; one may come again.

        After that what came before can still be taken; then the iteration ends.

        Raises:
            ExpressionError: the expression does not fit the schema.
            CapacityError: the peer holds as many subscriptions as it may.
        """

    def has_got(self, events: Iterable[int]) -> None:
        """These events need not come: all who may want them have them from before."""

    async def publish(
        self,
        values: Mapping[str, object],
        *,
        payload: Payload | None = None,
        application: Hashable = None,
        reserved: int | None = None,
    ) -> int:
        """Publish an event; return its id once others hold it.

        Where too many wait for that, those of each ``application`` take turns. Its place in the
        order of all is that of the call, or of the call of `reserve` that returned ``reserved``.

        Raises:
            ContentError: the values do not fit the schema.
            NotAcknowledged: nobody said in time that they do.
        """

    async def publish_many(
        self,
        events: Sequence[Mapping[str, object]],
        *,
        payload: Payload | None = None,
        application: Hashable = None,
        reserved: Sequence[int] | None = None,
    ) -> Sequence[int | Exception]:
        """Publish events; return the id of each once others hold it, or what `publish` raises."""

    def reserve(self) -> int:
        """The place of an event that is to be published soon in the order of all."""

    def last_values(self) -> Sequence[EventLike]:
        """The newest event of every key that last values have, those set longest ago first."""

    def snapshot(self) -> Snapshot:
        """The overlay as it sees it."""

    async def announce(self, expression: str, data: bytes) -> None:
        """Tell something to the peers that subscribe to ``expression``, as an event is published.

        Raises:
            NodeError: as of `publish`.
        """

    def hear_announcements(self, hear: Callable[[EventLike], None]) -> None:
        """Have ``hear`` called with what others announce to subscribers, this peer being one."""
