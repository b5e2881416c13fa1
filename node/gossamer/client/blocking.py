"""The node of this machine, for programs without an event loop.

    with connect("demo/peer1") as node:
        node.publish({"symbol": "IBM", "price": 81.5, "volume": 100})
        for quote in node.subscribe("price > 80"):
            print(quote.values["symbol"], quote.values["price"])

A thread runs the client of `gossamer.client.client`; every call here waits for its own there, so
that all threads of a program may share one connection.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import anyio
import anyio.from_thread

from gossamer.client.client import Client, Subscription, open_client
from gossamer.client.results import (
    LastMark,
    Outcome,
    Payload,
    PayloadLike,
    ReceivedEvent,
    Reply,
    Request,
    Requests,
)

T = TypeVar("T")
SourceT = TypeVar("SourceT")


class _Opened(Generic[SourceT]):
    """What is open on the client's thread until it, or the client, is closed."""

    def __init__(
        self, portal: anyio.from_thread.BlockingPortal, source: SourceT, stack: ExitStack
    ) -> None:
        self._portal = portal
        self._source = source
        self._stack = stack

    def __iter__(self) -> Self:
        return self

    def close(self) -> None:
        """Take no more; the end of the client does so as well."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self, take: Callable[[], Awaitable[T]]) -> T:
        try:
            return self._portal.call(take)
        except StopAsyncIteration:
            raise StopIteration from None


class BlockingSubscription(_Opened[Subscription]):
    """Events that match; iterate it. Made by `BlockingClient.subscribe`, ended by `close`."""

    def __next__(self) -> ReceivedEvent:
        """Wait for the next event, none of them twice.

        Raises:
            NodeError: there will be none any more, and why.
        """
        return self._next(self._source.__anext__)

    def receive(self, timeout_s: float) -> ReceivedEvent:
        """Wait for the next event for so long at most; none is lost by waiting in vain.

        Raises:
            TimeoutError: none came.
            NodeError: there will be none any more, and why.
        """
        return self._portal.call(_within, self._source, timeout_s)

    def acknowledge(self, event: ReceivedEvent) -> None:
        """Say that this event and those before it are dealt with; see `Subscription`."""
        self._portal.call(self._source.acknowledge, event)

    def forget(self) -> None:
        """Have the node drop the name of this subscription, and all that it keeps for it."""
        self._portal.call(self._source.forget)


class BlockingRequest:
    """An event whose publisher waits for replies.

    Attributes:
        event: the event.
    """

    def __init__(self, portal: anyio.from_thread.BlockingPortal, request: Request) -> None:
        self.event = request.event
        self._portal = portal
        self._request = request

    @property
    def values(self) -> Mapping[str, Any]:
        """Its values."""
        return self.event.values

    @property
    def payload(self) -> Payload | None:
        """What it carries beside its values."""
        return self.event.payload

    def reply(self, reply: str | bytes | PayloadLike) -> None:
        """Reply, and acknowledge the request; raises as `Request.reply`."""
        self._portal.call(self._request.reply, reply)

    def fail(self, reason: str) -> None:
        """Reply that what was asked for cannot be done; raises as `Request.reply`."""
        self._portal.call(self._request.fail, reason)


class BlockingRequests(_Opened[Requests]):
    """Requests that match; iterate it. Made by `BlockingClient.reply`, ended by `close`."""

    def __next__(self) -> BlockingRequest:
        """Wait for the next request.

        Raises:
            NodeError: there will be none any more, and why.
        """
        return BlockingRequest(self._portal, self._next(self._source.__anext__))


class BlockingClient:
    """A client of a node whose calls wait; made by `connect`."""

    def __init__(
        self, portal: anyio.from_thread.BlockingPortal, client: Client, stack: ExitStack
    ) -> None:
        self._portal = portal
        self._client = client
        self._stack = stack

    @property
    def peer(self) -> str:
        """The permanent key of the node's peer, as text."""
        return self._client.peer

    @property
    def role(self) -> str:
        """What the node is, "peer" or "broker"."""
        return self._client.role

    @property
    def schema(self) -> Mapping[str, Mapping[str, Any]]:
        """What events are made of, as in schema.toml; empty at a broker that takes anything."""
        return self._client.schema

    @property
    def alone(self) -> int:
        """How many events the node acknowledged while it reached no other node."""
        return self._client.alone

    def publish(
        self,
        values: Mapping[str, object],
        *,
        payload: PayloadLike | None = None,
        last: LastMark | None = None,
    ) -> str:
        """Publish an event; return its id once it is acknowledged: others hold it.

        Raises:
            NodeError: as of `Client.publish`; the error says what is known about the event.
        """
        return self._portal.call(partial(self._client.publish, values, payload=payload, last=last))

    def publish_each(self, events: Iterable[Mapping[str, object]]) -> list[Outcome]:
        """Publish any number of events; return what is known about each, in their order.

        Raises:
            NodeLostError: the node was away for longer than the client's patience.
        """
        return self._portal.call(self._client.publish_each, list(events))

    def subscribe(
        self,
        *expressions: str,
        name: str | None = None,
        retained: bool = False,
        group: str | None = None,
        ahead: int = 1,
        ordered: bool = False,
        last: bool = False,
        within: float | None = None,
    ) -> BlockingSubscription:
        """Events that match one of ``expressions``, each once, until it or the client is closed.

        All arguments are as of `Client.subscribe`.

        Raises:
            RefusedByNodeError: the node does not take one of them, or the name is in use.
            NodeError: as of `connect`.
        """
        opened = self._client.subscribe(
            *expressions,
            name=name,
            retained=retained,
            group=group,
            ahead=ahead,
            ordered=ordered,
            last=last,
            within=within,
        )
        return BlockingSubscription(self._portal, *self._entered(opened))

    def request(
        self,
        values: Mapping[str, object],
        *,
        payload: PayloadLike | None = None,
        timeout_s: float = 10.0,
        replies: int = 1,
    ) -> list[Reply]:
        """Publish an event, and return what those reply who get it by `reply`.

        Args and errors as of `Client.request`.
        """
        return self._portal.call(
            partial(
                self._client.request, values, payload=payload, timeout_s=timeout_s, replies=replies
            )
        )

    def reply(
        self, *expressions: str, name: str | None = None, group: str | None = None
    ) -> BlockingRequests:
        """Requests that match one of ``expressions``, until it or the client is closed.

        Args and errors as of `Client.reply`.
        """
        opened = self._client.reply(*expressions, name=name, group=group)
        return BlockingRequests(self._portal, *self._entered(opened))

    def leave_group(self, group: str, *expressions: str) -> None:
        """Have this node keep no more events for a group; see `Client.leave_group`."""
        self._portal.call(self._client.leave_group, group, *expressions)

    def advertise(self, key: str, expression: str) -> None:
        """Announce what will be published; only at a broker. See `Client.advertise`."""
        self._portal.call(self._client.advertise, key, expression)

    def unadvertise(self, key: str) -> None:
        """Take an advertisement back. See `Client.unadvertise`."""
        self._portal.call(self._client.unadvertise, key)

    def status(self) -> dict[str, Any]:
        """What the node says of itself, as `gossamer node status --json` prints it."""
        return self._portal.call(self._client.status)

    def members(self) -> dict[str, Any]:
        """The members of the cluster that the node has met; see `Client.members`."""
        return self._portal.call(self._client.members)

    def tables(self) -> dict[str, Any]:
        """What a broker knows; see `Client.tables`."""
        return self._portal.call(self._client.tables)

    def metrics(self) -> str:
        """The metrics in Prometheus' text format."""
        return self._portal.call(self._client.metrics)

    def _entered(self, opened: AbstractAsyncContextManager[T]) -> tuple[T, ExitStack]:
        stack = ExitStack()
        source = stack.enter_context(self._portal.wrap_async_context_manager(opened))
        self._stack.callback(stack.close)
        return source, stack


@contextmanager
def connect(
    folder: str | Path,
    *,
    patience_s: float = math.inf,
    on_change: Callable[[str], None] | None = None,
) -> Iterator[BlockingClient]:
    """Connect to the node in ``folder``, and again whenever it was away; needs no event loop.

    Args:
        folder: as of `gossamer.client.open_client`.
        patience_s: as there.
        on_change: as there; called in a thread of the client's.

    Raises:
        NodeError: as of `gossamer.client.open_client`.
    """
    with anyio.from_thread.start_blocking_portal("asyncio") as portal:
        opened = open_client(folder, patience_s=patience_s, on_change=on_change)
        with portal.wrap_async_context_manager(opened) as client, ExitStack() as stack:
            yield BlockingClient(portal, client, stack)


async def _within(subscription: Subscription, timeout_s: float) -> ReceivedEvent:
    with anyio.fail_after(timeout_s):
        return await subscription.__anext__()
