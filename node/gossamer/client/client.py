"""The node of this machine, from trio or asyncio.

    async with open_client("demo/peer1") as node:
        async with node.subscribe("price > 80", name="watcher") as quotes:
            await node.publish({"symbol": "IBM", "price": 81.5, "volume": 100})
            async for quote in quotes:
                print(quote.values["symbol"], quote.values["price"])
                await quotes.acknowledge(quote)

Requests share one connection, and every subscription has its own, so that a subscriber that is busy
holds up nobody else. All of them reconnect by themselves.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

import anyio

from gossamer.client.errors import PublicationUncertainError, RefusedByNodeError
from gossamer.client.frames import LAST, NEW, RETAINED, PlainValues
from gossamer.client.link import Introduction, find_address
from gossamer.client.results import LastMark, Outcome, PayloadLike, ReceivedEvent, Reply, Requests
from gossamer.client.session import Session
from gossamer.protocol.content.limits import FRAME_BYTES, FRAME_ITEMS, MAX_EVENTS

# Of what one request may hold, so that its own fields have room beside the events.
_ROOM: Final = 0.9


class Subscription:
    """Events that match; iterate it. Made by `Client.subscribe`."""

    def __init__(self, session: Session[Any], *, by_id: bool = False) -> None:
        self._session = session
        self._by_id = by_id

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedEvent:
        """The next event, none of them twice.

        Raises:
            NodeError: there will be none any more, and why.
        """
        try:
            return await self._session.events.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            if self._session.ended is not None:
                raise self._session.ended from None
            raise StopAsyncIteration from None

    async def acknowledge(self, event: ReceivedEvent) -> None:
        """Say that this event and those before it are dealt with and need not come again.

        Only of use to a subscription with a name: the node sends it again what is not acknowledged,
        after a restart of the application or of the node. Of a group, and with a name in order,
        each event is acknowledged by itself; of a group, another worker gets it if this one is gone
        before.
        """
        if self._by_id:
            await self._session.settle(event)
        else:
            await self._session.acknowledge(event)

    async def forget(self) -> None:
        """Have the node drop the name of this subscription, and all that it keeps for it."""
        await self._session.forget()


class Client:
    """A client of a node; made by `open_client`."""

    def __init__(
        self, folder: Path, patience_s: float, on_change: Callable[[str], None] | None
    ) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._on_change = on_change
        self._requests = self._session(None)

    @property
    def peer(self) -> str:
        """The permanent key of the node's peer, as text."""
        return self._requests.peer

    @property
    def role(self) -> str:
        """What the node is, "peer" or "broker"."""
        return self._requests.role

    @property
    def schema(self) -> Mapping[str, Mapping[str, Any]]:
        """What events are made of, as in schema.toml; empty at a broker that takes anything."""
        return self._requests.values.schema

    @property
    def alone(self) -> int:
        """How many events of `publish` the node acknowledged while it reached no other node."""
        return self._requests.alone

    async def publish(
        self,
        values: Mapping[str, object],
        *,
        payload: PayloadLike | None = None,
        last: LastMark | None = None,
    ) -> str:
        """Publish an event; return its id once it is acknowledged: others hold it.

        At a peer it may carry a ``payload`` beside its values (`gossamer.client.Payload`), and be
        kept as the ``last`` of its value of an attribute, for those who subscribe later.
        It waits while the node is away. An event whose call is cancelled may be published or not.

        Raises:
            UnacknowledgedError: nobody acknowledged it in time; it may reach all, some or none.
            PublicationUncertainError: the connection ended before it was known; the same.
            RefusedByNodeError: the node does not publish it; it reaches nobody.
            UnusableValueError: a value is of no kind that events have; it reaches nobody.
            NodeLostError: the node was away for longer than the client's patience.
        """
        return await self._requests.publish(values, payload=payload, last=last)

    async def publish_each(self, events: Iterable[Mapping[str, object]]) -> list[Outcome]:
        """Publish any number of events; return what is known about each, in their order.

        The others are published although one is refused, or nothing is known of it because the
        connection ended; `Outcome.fate` says which is which.

        Raises:
            NodeLostError: the node was away for longer than the client's patience.
        """
        outcomes: list[Outcome] = []
        for batch in _batches(events):
            outcomes += await self._publish_batch(batch)
        return outcomes

    @asynccontextmanager
    async def subscribe(
        self,
        *expressions: str,
        name: str | None = None,
        retained: bool = False,
        group: str | None = None,
        ahead: int = 1,
        ordered: bool = False,
        last: bool = False,
        within: float | None = None,
    ) -> AsyncIterator[Subscription]:
        """Events that match one of ``expressions``, each once, for as long as the context is open.

        Args:
            expressions: what is to match, as of `gossamer sub`.
            name: under which the node keeps what is not acknowledged, also while nobody is
                connected; without one, events that come while the connection is away are missed.
            retained: begin a name that is new to the node with what it has kept for others.
            group: name of a queue group: each event goes to one of its subscriptions, at whichever
                peers, and to another one if that is gone before it has acknowledged it.
            ahead: of a group, events that come before earlier ones are acknowledged, 256 at most.
            ordered: have the events of each publisher in the order in which it published them; one
                that comes after a later one all the same is `ReceivedEvent.late`.
            last: begin with the last values that match; without a name, group or order.
            within: at a broker: ``expressions`` are composite subscriptions, such as
                ``'{symbol == "IBM"} -> {symbol == "HPQ"}'``, and publications match together that
                come within so many seconds; they are `ReceivedEvent.match`.

        Raises:
            RefusedByNodeError: the node does not take one of them, or the name is in use.
            NodeError: as of `open_client`.
        """
        if group is not None:
            if name is not None or retained or ordered or last or within is not None:
                reason = (
                    "a worker of a group has no name of its own, no order, no last values and no"
                    " composite subscriptions"
                )
                raise RefusedByNodeError("group", reason)
            async with self._session(None).running() as session:
                await session.join("1", one_of(expressions), group, ahead)
                yield Subscription(session, by_id=True)
            return
        start = LAST if last else RETAINED if retained else NEW
        async with self._session(name, ordered=ordered).running() as session:
            for number, expression in enumerate(expressions, 1):
                await session.subscribe(str(number), expression, start, within)
            if name is not None:
                await _end_earlier(session, len(expressions))
            yield Subscription(session, by_id=ordered and name is not None)

    async def request(
        self,
        values: Mapping[str, object],
        *,
        payload: PayloadLike | None = None,
        timeout_s: float = 10.0,
        replies: int = 1,
    ) -> list[Reply]:
        """Publish an event, and return what those reply who get it by `reply`.

        Args:
            values: of the event.
            payload: what it carries beside them, 47 KiB at most.
            timeout_s: how long to wait for replies, a day at most.
            replies: how many to wait for, 1024 at most; fewer are returned once the time is over.

        Raises:
            NoReplyError: none came in time; who got the request may still be at work.
            UnacknowledgedError: none came in time, and nobody acknowledged the event either.
            PublicationUncertainError: the connection ended first; nothing is known of the request.
            NodeError: as of `publish`.
        """
        return await self._requests.request(
            values, payload=payload, timeout_s=timeout_s, replies=replies
        )

    @asynccontextmanager
    async def reply(
        self, *expressions: str, name: str | None = None, group: str | None = None
    ) -> AsyncIterator[Requests]:
        """Requests that match one of ``expressions``, for as long as the context is open.

        Args:
            expressions: what is to match, as of `subscribe`.
            name: as of `subscribe`: requests come too that were made while nobody was connected;
                their requesters may wait no longer.
            group: as of `subscribe`: one of the group replies to each request.

        Raises:
            NodeError: as of `subscribe`.
        """
        self._requests.check_peer("requests")
        async with self.subscribe(*expressions, name=name, group=group) as subscription:
            yield Requests(subscription, self._requests)

    async def leave_group(self, group: str, *expressions: str) -> None:
        """Have this node keep no more events for a queue group that has no worker here.

        It does so by itself after `delivery.retention_s` without one.

        Raises:
            RefusedByNodeError: it is not of that group, or has workers of it.
        """
        await self._requests.leave(group, one_of(expressions))

    async def advertise(self, key: str, expression: str) -> None:
        """Announce what will be published under a name of the client's choice; only at a broker.

        Raises:
            RefusedByNodeError: the node does not take it, or is a peer, which needs none.
        """
        await self._requests.advertise(key, expression)

    async def unadvertise(self, key: str) -> None:
        """Take an advertisement back.

        Raises:
            RefusedByNodeError: there is none of that name.
        """
        await self._requests.unadvertise(key)

    async def status(self) -> dict[str, Any]:
        """What the node says of itself, as `gossamer node status --json` prints it."""
        return await self._requests.status()

    async def members(self) -> dict[str, Any]:
        """The members of the cluster that the node has met, and what happened to them last.

        `members` and `changes` are as `gossamer node members --json` prints them.
        """
        return await self._requests.members()

    async def tables(self) -> dict[str, Any]:
        """What a broker knows: its links, advertisements and subscriptions, and how many.

        Raises:
            RefusedByNodeError: the node is a peer.
        """
        return await self._requests.tables()

    async def metrics(self) -> str:
        """The metrics in Prometheus' text format."""
        return await self._requests.metrics()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Stay connected; `open_client` has this done."""
        async with self._requests.running():
            yield self

    async def _publish_batch(self, batch: Sequence[Mapping[str, object]]) -> list[Outcome]:
        """What is known of each event; a node refuses as a whole what has one that does not fit."""
        try:
            return await self._requests.publish_each(batch)
        except PublicationUncertainError as error:
            return [Outcome("", error)] * len(batch)
        except RefusedByNodeError as error:
            if len(batch) == 1:
                return [Outcome("", error)]
        half = len(batch) // 2
        return await self._publish_batch(batch[:half]) + await self._publish_batch(batch[half:])

    def _session(self, name: str | None, *, ordered: bool = False) -> Session[PlainValues]:
        folder = self._folder
        return Session(
            folder,
            lambda: find_address(folder),
            PlainValues(),
            Introduction(name, ordered=ordered),
            None,
            self._patience_s,
            self._on_change,
        )


@asynccontextmanager
async def open_client(
    folder: str | Path,
    *,
    patience_s: float = math.inf,
    on_change: Callable[[str], None] | None = None,
) -> AsyncIterator[Client]:
    """Connect to the node in ``folder``, and again whenever it was away; for trio and asyncio.

    Args:
        folder: of the peer or broker.
        patience_s: how long the node may be away at a time before that is an error; with 0 there is
            one connection, whose end is one.
        on_change: told why a connection was lost, and `CONNECTED` once it is back with all of its
            subscriptions; without it that is logged.

    Raises:
        NodeNotRunningError: no node runs in ``folder``, at first.
        LocalSocketError: this user may not use it.
        RefusedByNodeError: the node does not let this client in, at first or later.
        HandshakeFailed: what listens there at first is no node of this version.
        NodeLostError: the node was away for longer than ``patience_s``.
    """
    async with Client(Path(folder), patience_s, on_change).running() as client:
        yield client


def one_of(expressions: Sequence[str]) -> str:
    """The expression that matches what one of some expressions does."""
    if len(expressions) == 1:
        return expressions[0]
    return " or ".join(f"({expression})" for expression in expressions)


async def _end_earlier(session: Session[PlainValues], kept: int) -> None:
    """End what an earlier application of the name asked for beyond the first ``kept``."""
    number = kept + 1
    while True:
        try:
            await session.unsubscribe(str(number))
        except RefusedByNodeError:
            return
        number += 1


def _batches(events: Iterable[Mapping[str, object]]) -> Iterable[list[Mapping[str, object]]]:
    """The events, in lists that each fit into a request."""
    batch: list[Mapping[str, object]] = []
    size = items = 0
    for event in events:
        event_size, event_items = _size(event), 2 * len(event) + 1
        full = size + event_size > _ROOM * FRAME_BYTES or items + event_items > _ROOM * FRAME_ITEMS
        if batch and (full or len(batch) == MAX_EVENTS):
            yield batch
            batch, size, items = [], 0, 0
        batch.append(event)
        size += event_size
        items += event_items
    if batch:
        yield batch


def _size(event: Mapping[str, object]) -> int:
    """How many bytes an event takes at most."""
    return sum(len(name) + 5 + _value_size(value) for name, value in event.items())


def _value_size(value: object) -> int:
    if isinstance(value, str):
        return 5 + len(value.encode(errors="replace"))
    return 9 if isinstance(value, bool | int | float) else 900  # two texts of digits at most
