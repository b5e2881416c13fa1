"""One client's connection to a broker: requests in, answers and deliveries out."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, Final

import trio
from attrs import frozen

from gossamer.client.frames import BROKER, NEW
from gossamer.client.link import LocalAddress
from gossamer.node.broker.composites import Composites, Content, check_label, check_window
from gossamer.node.broker.deliveries import event_of
from gossamer.node.broker.host import id_text
from gossamer.node.broker.members import Member, Members
from gossamer.node.broker.routes import Passage
from gossamer.node.errors import BadFrame, PeerRefused, RequestError, TransportBroken
from gossamer.node.local.address import Door
from gossamer.node.local.frames import BROKER_FRAMES, admitted_end, schema_to_wire
from gossamer.node.local.requests import Requests, refusing, said
from gossamer.node.local.services import REFUSALS, NodeServices
from gossamer.node.local.serving.server import LocalService, served_at
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.transport.base import Cause, Farewell
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.frames import FrameReader, encode_frame
from gossamer.node.transport.schema import Frame
from gossamer.protocol.brokers.core.messages import Id, Publish
from gossamer.protocol.content.filters import Filter, Publication
from gossamer.protocol.content.filters.composite import is_composite
from gossamer.protocol.content.values import Payload
from gossamer.protocol.kernel.errors import CapacityError, ProtocolError

# Deliveries read from the disk at a time.
DELIVERIES: Final = 64
NO_REQUESTS: Final = "this node is a broker and carries no requests, expected a peer"
NO_GROUPS: Final = "this node is a broker and has no queue groups, expected a peer"


@frozen(kw_only=True)
class BrokerServices(NodeServices):
    """A node that is a broker, as its clients see it.

    Attributes:
        members: the clients.
        composites: their composite subscriptions.
        content: what filters and publications may be about.
        tables: what `tables` tells, as plain values.
        trace: the route of a publication.
        filters: subscriptions, and advertisements, of one client.
    """

    members: Members
    composites: Composites
    content: Content
    tables: Callable[[], dict[str, Any]]
    trace: Callable[[Id], Awaitable[list[Passage]]]
    filters: int


class BrokerSession(Requests):
    """Serves one client; `run` does it."""

    def __init__(self, connection: Connection, services: BrokerServices) -> None:
        super().__init__(connection, services)
        self._services: BrokerServices = services
        self._member: Member
        self._aside = False
        self._unacknowledged: deque[int] = deque()
        self._room = trio.Event()
        self._handlers |= {
            "request": refusing(NO_REQUESTS),
            "reply": refusing(NO_REQUESTS),
            "leave": refusing(NO_GROUPS),
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "advertise": self._advertise,
            "unadvertise": self._unadvertise,
            "forget": self._forget,
            "tables": said(services.tables),
            "trace": self._trace,
        }

    async def run(self, member: Member, *, aside: bool = False) -> Farewell:
        """Serve the client until its connection is over; return how it ended."""
        self._member = member
        self._aside = aside
        if not aside:
            member.dismiss = partial(self._connection.start_closing, Cause.REFUSED)
        async with trio.open_nursery() as nursery:
            if not (member.nameless or aside):
                nursery.start_soon(self._send_deliveries)
            farewell = await self._connection.run(self._take)
            nursery.cancel_scope.cancel()
        return farewell

    async def _take(self, frame: Frame) -> None:
        if frame["type"] == "acknowledge":
            await self._acknowledge(frame["position"])
        else:
            await self._take_request(frame)

    # What a client asks for and announces

    async def _subscribe(self, frame: Frame) -> None:
        label, text = frame["id"], frame["expression"]
        if "group" in frame:
            raise RequestError(NO_GROUPS)
        if frame.get("start", NEW) != NEW:
            raise RequestError("a broker keeps nothing for those who come later")
        if "within" in frame or is_composite(text):
            await self._subscribe_composite(label, text, frame.get("within"))
            return
        wanted = self._services.content.filter(text)
        if label not in self._member.composites.held:
            self._check_label(self._member.subscriptions, label)
        await self._services.composites.unsubscribe(self._member, label)
        await self._services.members.subscribe(self._member, label, wanted)

    async def _subscribe_composite(self, label: str, text: str, within_s: float | None) -> None:
        check_label(label)
        check_window(text, within_s)
        assert within_s is not None
        composite = self._services.content.composite(text)
        limit = self._services.filters
        await self._services.composites.subscribe(
            self._member, label, text, composite, float(within_s), limit
        )

    async def _unsubscribe(self, frame: Frame) -> None:
        label = frame["id"]
        check_label(label)
        if not await self._services.composites.unsubscribe(self._member, label):
            await self._services.members.unsubscribe(self._member, label)

    async def _advertise(self, frame: Frame) -> None:
        self._check_label(self._member.advertisements, frame["id"])
        announced = self._services.content.filter(frame["expression"])
        await self._services.members.advertise(self._member, frame["id"], announced)

    async def _unadvertise(self, frame: Frame) -> None:
        await self._services.members.unadvertise(self._member, frame["id"])

    def _check_label(self, held: Mapping[str, Filter], label: str) -> None:
        check_label(label)
        limit = self._services.filters
        if len(held) >= limit and label not in held:
            raise CapacityError("filters of a client", limit, "see broker.filters")

    async def _forget(self, _: Frame) -> None:
        if self._member.nameless:
            raise RequestError("only clients with a name can be forgotten")
        await self._services.members.forget(self._member)

    # Publishing

    async def _publish(
        self, number: int, events: list[Any], *, single: bool, payload: Payload | None = None
    ) -> None:
        """Publish ``events`` in their order; none of them if the values of one are none."""
        try:
            if payload is not None:
                raise RequestError("a broker carries no payload, expected values only")
            self._services.standing.check()
            messages = [Publish(self._read(one, place)) for place, one in enumerate(events, 1)]
            outcomes = await self._services.members.ask_all(self._member, messages)
        except REFUSALS as error:
            await self._refuse(number, error)
            return
        # What a broker acknowledges is on its own disk, whether or not neighbours are connected.
        errors = {place: one.error for place, one in enumerate(outcomes) if one.error}
        ids = ["" if one.error else id_text(one.id) for one in outcomes]
        if not single:
            await self._tell_outcomes(number, ids, errors)
        elif errors:
            await self._refuse(number, errors[0])
        else:
            await self._reply(encode_frame("done", number=number, result=ids[0]))

    def _read(self, data: dict[str, Any], place: int) -> Publication:
        try:
            return self._services.content.publication(data)
        except REFUSALS as error:
            raise RequestError(f"event {place}: {error}") from None

    # Looking

    async def _trace(self, frame: Frame) -> str:
        route = await self._services.trace(read_id(frame["id"]))
        return json.dumps([passage_json(one) for one in route])

    # Deliveries to a client without a name: what it does not take in time is lost, and so is it.

    def offer(self, delivery: bytes) -> None:
        """Send a delivery at once, or end the connection."""
        self._send_or_cut(event_of(delivery, 0))

    # Deliveries to a client with a name: in order, a window ahead of its answers.

    async def _send_deliveries(self) -> None:
        member, position = self._member, 0
        with suppress(TransportBroken):
            while True:
                member.grown = grown = trio.Event()
                deliveries = await self._services.members.read(member, position, DELIVERIES)
                for delivery in deliveries:
                    await self._send_delivery(delivery)
                    position = delivery.position
                if not deliveries:
                    await grown.wait()

    async def _send_delivery(self, delivery: QueuedDelivery) -> None:
        while len(self._unacknowledged) >= self._services.limits.window:
            self._room = trio.Event()
            await self._room.wait()
        self._unacknowledged.append(delivery.position)
        await self._connection.send(event_of(delivery.body, delivery.position))
        self._services.counts.events_sent += 1

    async def _acknowledge(self, position: int) -> None:
        if self._member.nameless or self._aside:
            raise BadFrame("acknowledge", "position", str(position), "a client with a name")
        while self._unacknowledged and self._unacknowledged[0] <= position:
            self._unacknowledged.popleft()
            self._services.counts.acknowledged += 1
        await self._services.members.acknowledge(self._member, position)
        self._room.set()


def read_id(text: str) -> Id:
    """The identifier that `id_text` wrote; raises `RequestError`."""
    broker, colon, number = text.partition(":")
    if not colon or not broker or not number.isascii() or not number.isdigit():
        expected = "a broker's key, a colon and a number, as 'gossamer pub' and 'sub' print it"
        raise RequestError(f"the publication is {text!r}, expected {expected}")
    return Id(broker, int(number[:19]))


def passage_json(passage: Passage) -> dict[str, Any]:
    """A hop of a route as plain values."""
    return {
        "broker": passage.broker,
        "name": passage.name,
        "from": passage.source,
        "to": list(passage.onward),
    }


# The local socket of a broker.

ANYTHING: Final = ""


class BrokerServer(LocalService):
    """Serves the clients of a broker; made by `open_broker_server`."""

    def __init__(self, door: Door, services: BrokerServices, key: str, queue_id: str) -> None:
        super().__init__(door, services)
        self._services: BrokerServices = services
        self._key = key
        self._queue = queue_id
        schema = services.content.schema
        self._schema = ANYTHING if schema is None else schema_to_wire(schema)

    async def _welcome(self, stream: trio.SocketStream, reader: FrameReader, frame: Frame) -> None:
        if frame.get("ordered"):
            raise PeerRefused("this node is a broker and has no order (--ordered), expected a peer")
        members = self._services.members
        admitted = admitted_end(stream, frame, reader.take_rest())
        connection = Connection(admitted, self._limits, BROKER_FRAMES, refuse=self._refuse)
        session = BrokerSession(connection, self._services)
        aside = frame.get("aside", False)
        try:
            member = await members.attach(frame.get("client"), session.offer, aside=aside)
        except RequestError as error:
            raise PeerRefused(str(error), Cause.BUSY) from None
        except ProtocolError as error:
            raise PeerRefused(str(error), Cause.REFUSED) from None
        try:
            if not (member.nameless or aside) and frame.get("history") == self._queue:
                await members.acknowledge(member, frame.get("acknowledged", 0))
            fields = {} if member.nameless else {"history": self._queue}
            await self._send_attached(
                stream, role=BROKER, peer=self._key, schema=self._schema, **fields
            )
            with self._attached(connection):
                self._note_end(await session.run(member, aside=aside))
        finally:
            members.leave(member, aside=aside)


def open_broker_server(
    address: LocalAddress, services: BrokerServices, key: str, queue_id: str
) -> AbstractAsyncContextManager[BrokerServer]:
    """Serve clients at ``address`` while the context is open.

    Args:
        address: where.
        services: what they are given.
        key: of the broker, as text.
        queue_id: id of the file in which deliveries are kept.

    Raises:
        ListenFailed: the socket cannot be opened.
    """

    async def make(door: Door, _: trio.Nursery) -> BrokerServer:
        return BrokerServer(door, services, key, queue_id)

    return served_at(address, make)
