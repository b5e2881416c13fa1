"""One client's connection: requests in, answers and events out."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from gossamer.client.frames import LAST, NEW, RETAINED
from gossamer.node.errors import BadFrame, RequestError, TransportBroken
from gossamer.node.local.durable import Active, DurableClient, DurableClients
from gossamer.node.local.frames import event_frame
from gossamer.node.local.groups.service import Joined
from gossamer.node.local.history import KeptEvent
from gossamer.node.local.peer_like import EventLike
from gossamer.node.local.services import feed
from gossamer.node.local.serving.ordered import KeptInOrder, Ordered, begin_of
from gossamer.node.local.serving.publishing import PublishingRequests, Services
from gossamer.node.peer.unicast.last_values import key_of, mark_of
from gossamer.node.transport.base import Farewell
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.schema import Frame
from gossamer.protocol.content.filters.expressions import Expression, parse_expression
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.patterns.last_values import MOST_VALUES

# Events remembered of a client without a name, so that none comes twice by two subscriptions.
REMEMBERED: Final = 1024


class Session(PublishingRequests):
    """Serves one client; `run` does it."""

    def __init__(
        self,
        connection: Connection,
        services: Services,
        clients: DurableClients,
        durable: DurableClient | None,
        *,
        ordered: bool = False,
    ) -> None:
        super().__init__(connection, services)
        self._clients = clients
        self._durable = durable
        self._active: dict[str, Active] = {}
        self._joined: dict[str, Joined] = {}
        self._at_work: dict[int, Joined] = {}
        self._ordered: Ordered[EventLike] | None = None
        self._kept_in_order: KeptInOrder | None = None
        self._wants_order = ordered
        self._recent: OrderedDict[int, None] = OrderedDict()
        self._newest: dict[bytes, tuple[float, int]] | None = None  # of last values, by key
        self._unacknowledged: OrderedDict[int, int] = OrderedDict()
        self._room = trio.Event()
        self._handlers |= {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "forget": self._forget,
            "leave": self._leave,
        }

    async def run(self) -> Farewell:
        """Serve the client until its connection is over; return how it ended."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            if self._wants_order:
                await self._begin_order(nursery)
            if self._durable is not None:
                nursery.start_soon(self._send_kept_events, self._durable)
            try:
                farewell = await self._connection.run(self._take)
            finally:
                for joined in self._joined.values():
                    joined.leave()
            nursery.cancel_scope.cancel()
        return farewell

    async def _begin_order(self, nursery: trio.Nursery) -> None:
        services = self._services
        if self._durable is None:
            self._ordered = Ordered(
                services.peer, self._expressions, self._send_now, begin_of(services)
            )
            nursery.start_soon(self._ordered.run)
        else:
            self._kept_in_order = await KeptInOrder.make(
                self._connection, services, self._durable, self._expressions
            )
            nursery.start_soon(self._kept_in_order.run)

    # Requests

    async def _take(self, frame: Frame) -> None:
        if frame["type"] == "acknowledge":
            await self._acknowledge(frame["position"])
        elif frame["type"] == "settle":
            await self._settle(frame["id"])
        elif frame["type"] in ("request", "reply"):
            await self._take_slow(frame)
        else:
            await self._take_request(frame)

    # Subscriptions

    async def _subscribe(self, frame: Frame) -> None:
        key, expression, start = frame["id"], frame["expression"], frame.get("start", NEW)
        if start not in (NEW, RETAINED, LAST):
            expected = f"{NEW!r}, {RETAINED!r} or {LAST!r}"
            raise RequestError(f"start is {start!r}, expected {expected}")
        if start == LAST and (self._durable is not None or self._wants_order):
            raise RequestError("last values come to clients without a name or order")
        if "within" in frame:
            raise RequestError("this node is a peer and has no composite subscriptions")
        active = self._active if self._durable is None else self._durable.active
        limit = self._services.limits.subscriptions
        if key not in active and len(active) >= limit:
            raise CapacityError("subscriptions of a client", limit, "see local.subscriptions")
        if "group" in frame:
            await self._join(frame)
            return
        if self._durable is not None:
            await self._clients.subscribe(
                self._durable, key, expression, from_start=start == RETAINED
            )
            return
        if start == RETAINED:
            raise RequestError("only clients with a name can start with retained events")
        parsed = parse_expression(self._services.peer.schema, expression)
        scope = await self._nursery.start(
            partial(feed, self._services.peer, expression, self._offer)
        )
        if key in self._active:
            self._active[key].scope.cancel()
        self._active[key] = Active(expression, parsed, scope)
        if start == LAST:
            await self._send_last(parsed)

    async def _send_last(self, wanted: Expression) -> None:
        """Begin with the last values that match; older ones of the same key come no more."""
        self._newest = {} if self._newest is None else self._newest
        for event in self._services.peer.last_values():
            if wanted.matches(event.values):
                await self._offer(event)

    def _is_outdated(self, event: EventLike) -> bool:
        if self._newest is None:
            return False
        _, mark = mark_of(event.payload)
        key = None if mark is None else key_of(mark, event.values)
        if key is None:
            return False
        stamp = (event.published_at, event.id)
        if self._newest.get(key, stamp) > stamp:
            return True
        self._newest.pop(key, None)
        self._newest[key] = stamp
        if len(self._newest) > MOST_VALUES:
            del self._newest[next(iter(self._newest))]
        return False

    async def _unsubscribe(self, frame: Frame) -> None:
        key = frame["id"]
        if self._durable is not None:
            await self._clients.unsubscribe(self._durable, key)
        elif key in self._joined:
            self._joined.pop(key).leave()
        elif key in self._active:
            self._active.pop(key).scope.cancel()
        else:
            raise RequestError(f"no subscription has the id {key!r}")

    async def _forget(self, _: Frame) -> None:
        if self._durable is None:
            raise RequestError("only clients with a name can be forgotten")
        await self._clients.forget(self._durable)
        self._unacknowledged.clear()
        if self._kept_in_order is not None:
            self._kept_in_order.forget()
        self._make_room()

    # Queue groups: events come as they are assigned, and each is settled by its id

    async def _join(self, frame: Frame) -> None:
        key, name = frame["id"], frame["group"]
        if self._durable is not None or self._wants_order or "start" in frame:
            raise RequestError("a worker of a group has no name, no start and no order")
        if key in self._joined:
            raise RequestError(f"the subscription {key!r} is in force, end it first")
        joined: Joined

        async def send(event: EventLike) -> None:
            self._at_work[event.id] = joined
            with suppress(TransportBroken):
                await self._connection.send(event_frame(event, [key]))
                self._services.counts.events_sent += 1

        window, groups = frame.get("window", 1), self._services.groups
        joined = await groups.join(name, frame["expression"], window, send)
        self._joined[key] = joined

    async def _settle(self, event_id: str) -> None:
        """A client has dealt with an event, which may be another worker's by now."""
        event = _event_number(event_id)
        if self._kept_in_order is not None:
            await self._kept_in_order.settle(event)
            return
        joined = self._at_work.pop(event, None)
        if joined is not None:
            self._services.counts.acknowledged += 1
            joined.finish(event)

    async def _leave(self, frame: Frame) -> None:
        await self._services.groups.forget(frame["group"], frame["expression"])

    # Events to a client without a name: what it does not take in time is lost, and so is it.

    async def _offer(self, event: EventLike) -> None:
        if event.id in self._recent:
            return
        self._recent[event.id] = None
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        ids = [key for key, one in self._active.items() if one.subscription.matches(event.values)]
        if not ids or self._is_outdated(event):
            return
        if self._ordered is None:
            await self._send_now(event, late=False)
        else:
            self._ordered.take(event)

    async def _send_now(self, event: EventLike, late: bool) -> None:
        ids = [key for key, one in self._active.items() if one.subscription.matches(event.values)]
        self._send_or_cut(event_frame(event, ids, late=late))

    # Events to a client with a name: sent in the log's order, a window ahead of its answers.

    async def _send_kept_events(self, client: DurableClient) -> None:
        history = self._services.history
        with suppress(TransportBroken):
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
        batch = await history.read(client.name, position, self._services.peer.schema)
        for kept, got in batch:
            ids = client.matching(kept.values)
            if ids and not got and self._kept_in_order is not None:
                await self._kept_in_order.take(kept)
            elif ids and not got:
                await self._send_kept(kept, ids)
            elif not (self._unacknowledged or self._kept_in_order):
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

    def _expressions(self) -> list[str]:
        active = self._active if self._durable is None else self._durable.active
        return [one.expression for one in active.values()]

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


def _event_number(event_id: str) -> int:
    """The event of that id; one that is none is of no event."""
    try:
        return int(event_id, 16)
    except ValueError:
        return -1
