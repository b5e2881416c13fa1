"""One client's connection: requests in, answers and events out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio
from attrs import define, field

from gossamer.node.errors import (
    BadFrame,
    ClientRequestError,
    NotAcknowledged,
)
from gossamer.node.local.durable import (
    Active,
    DurableClient,
    DurableClients,
    check_room,
)
from gossamer.node.local.frames import NEW, RETAINED, event_frame, id_text, values_from_wire
from gossamer.node.local.history import KeptEvent
from gossamer.node.local.peer_like import EventLike
from gossamer.node.local.requests import GONE, Requests, held_alone
from gossamer.node.local.services import REFUSALS, Services, check_refusal, feed
from gossamer.node.transport.base.base import Cause, Farewell
from gossamer.node.transport.base.frames import encode_frame
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.connection import Connection
from gossamer.protocol.content.language import parse_subscription
from gossamer.protocol.content.values import Value

# Events remembered of a client without a name, so that none comes twice by two subscriptions.
REMEMBERED: Final = 1024


@define(eq=False)
class _Batch:
    """Events of one request that are being published."""

    number: int
    ids: list[str]
    left: int
    single: bool
    errors: dict[int, Exception] = field(factory=dict)
    alone: int = 0


class Session(Requests):
    """Serves one client; `run` does it."""

    def __init__(
        self,
        connection: Connection,
        services: Services,
        clients: DurableClients,
        durable: DurableClient | None,
    ) -> None:
        super().__init__(connection, services)
        self._services: Services = services
        self._clients = clients
        self._durable = durable
        self._active: dict[str, Active] = {}
        self._recent: OrderedDict[int, None] = OrderedDict()
        self._unacknowledged: OrderedDict[int, int] = OrderedDict()
        self._room = trio.Event()
        self._publishing = trio.Semaphore(services.limits.publishing)
        self._handlers |= {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "forget": self._forget,
        }

    async def run(self) -> Farewell:
        """Serve the client until its connection is over; return how it ended."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            if self._durable is not None:
                nursery.start_soon(self._send_kept_events, self._durable)
            farewell = await self._connection.run(self._take)
            nursery.cancel_scope.cancel()
        return farewell

    # Requests

    async def _take(self, frame: Frame) -> None:
        if frame["type"] == "acknowledge":
            await self._acknowledge(frame["position"])
        else:
            await self._take_request(frame)

    # Subscriptions

    async def _subscribe(self, frame: Frame) -> None:
        key, expression, start = frame["id"], frame["expression"], frame.get("start", NEW)
        if start not in (NEW, RETAINED):
            raise ClientRequestError(f"start is {start!r}, expected {NEW!r} or {RETAINED!r}")
        active = self._active if self._durable is None else self._durable.active
        check_room(active, key, self._services.limits.subscriptions)
        if self._durable is not None:
            await self._clients.subscribe(
                self._durable, key, expression, from_start=start == RETAINED
            )
            return
        if start == RETAINED:
            raise ClientRequestError("only clients with a name can start with retained events")
        parsed = parse_subscription(self._services.schema, expression)
        scope = await self._nursery.start(
            partial(feed, self._services.peer, expression, self._offer)
        )
        if key in self._active:
            self._active[key].scope.cancel()
        self._active[key] = Active(expression, parsed, scope)

    async def _unsubscribe(self, frame: Frame) -> None:
        key = frame["id"]
        if self._durable is not None:
            await self._clients.unsubscribe(self._durable, key)
        elif key in self._active:
            self._active.pop(key).scope.cancel()
        else:
            raise ClientRequestError(f"no subscription has the id {key!r}")

    async def _forget(self, _: Frame) -> None:
        if self._durable is None:
            raise ClientRequestError("only clients with a name can be forgotten")
        await self._clients.forget(self._durable)
        self._unacknowledged.clear()
        self._make_room()

    # Events to a client without a name: what it does not take in time is lost, and so is it.

    async def _offer(self, event: EventLike) -> None:
        if event.id in self._recent:
            return
        self._recent[event.id] = None
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        ids = [key for key, one in self._active.items() if one.subscription.matches(event.values)]
        if not ids:
            return
        try:
            taken = self._connection.try_send(event_frame(event, ids))
        except GONE:
            return
        if taken:
            self._services.counts.events_sent += 1
        else:
            self._connection.start_closing(Cause.STALLED, "events came faster than it took them")

    # Events to a client with a name: sent in the log's order, a window ahead of its answers.

    async def _send_kept_events(self, client: DurableClient) -> None:
        history = self._services.history
        with suppress(*GONE):
            while True:
                known = client.known
                await known.wait()
                position = history.place(client.name)
                while client.known is known:  # a client that is forgotten gets another one
                    position = await self._send_kept_batch(client, position)

    async def _send_kept_batch(self, client: DurableClient, position: int) -> int:
        """Send what is next in the log, or wait for it; return the position reached."""
        history = self._services.history
        grown = history.grown
        batch = await history.read(client.name, position, self._services.schema)
        for kept, got in batch:
            ids = client.matching(kept.values)
            if ids and not got:
                await self._send_kept(kept, ids)
            elif not self._unacknowledged:
                history.skip(client.name, kept.position)
            position = kept.position
        await (trio.lowlevel.checkpoint() if batch else grown.wait())
        return position

    async def _send_kept(self, kept: KeptEvent, ids: list[str]) -> None:
        while len(self._unacknowledged) >= self._services.limits.window:
            await self._room.wait()
        self._unacknowledged[kept.position] = kept.id
        await self._connection.send(event_frame(kept, ids, kept.position))
        self._services.counts.events_sent += 1

    async def _acknowledge(self, position: int) -> None:
        if self._durable is None:
            raise BadFrame("acknowledge", "position", str(position), "a client with a name")
        got = [at for at in self._unacknowledged if at <= position]
        ids = [self._unacknowledged.pop(at) for at in got]
        if not ids:
            return
        self._services.counts.acknowledged += len(ids)
        await self._services.history.acknowledge(self._durable.name, got[-1], ids)
        self._make_room()

    def _make_room(self) -> None:
        self._room.set()
        self._room = trio.Event()

    # Publishing

    async def _publish(self, number: int, events: list[Any], *, single: bool) -> None:
        """Publish ``events``, none of them unless the values of all are in order."""
        try:
            checked = [self._check(values, place) for place, values in enumerate(events, 1)]
        except REFUSALS as error:
            await self._refuse(number, error)
            return
        batch = _Batch(number, [""] * len(checked), len(checked), single)
        for place, values in enumerate(checked):
            await self._publishing.acquire()
            self._nursery.start_soon(self._publish_one, batch, place, values)
        if not checked:
            await self._finish(batch)

    def _check(self, values: dict[str, Any], place: int) -> dict[str, Value]:
        try:
            return values_from_wire(self._services.schema, values)
        except BadFrame as error:
            raise ClientRequestError(f"event {place}: {error}") from None

    async def _publish_one(self, batch: _Batch, place: int, values: Mapping[str, Value]) -> None:
        try:
            event = await self._services.peer.publish(values, application=self)
            batch.ids[place] = id_text(event)
            batch.alone += self._services.standing.alone
        except NotAcknowledged as error:
            batch.ids[place] = id_text(error.event)
            batch.errors[place] = error
            self._services.counts.unacknowledged += 1
        except REFUSALS as error:
            check_refusal(error)
            batch.errors[place] = error
        finally:
            self._publishing.release()
        batch.left -= 1
        if batch.left == 0:
            await self._finish(batch)

    async def _finish(self, batch: _Batch) -> None:
        """Answer for a batch of which everything has been tried."""
        if not batch.single:
            await self._tell_outcomes(batch.number, batch.ids, batch.errors, batch.alone)
            return
        (event_id,) = batch.ids
        error = batch.errors.get(0)
        if error is None:
            more = held_alone(batch.alone)
            await self._reply(encode_frame("done", number=batch.number, result=event_id, **more))
        elif event_id:
            regret = encode_frame(
                "unacknowledged",
                number=batch.number,
                ids=[event_id],
                published=1,
                reason=str(error),
            )
            await self._reply(regret)
        else:
            await self._refuse(batch.number, error)
