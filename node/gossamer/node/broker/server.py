"""The local socket of a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from gossamer.client.address import LocalAddress
from gossamer.node.broker.session import BrokerServices, BrokerSession
from gossamer.node.errors import ClientRequestError, PeerRefused
from gossamer.node.local.address import Door, close_door, open_door
from gossamer.node.local.frames import BROKER, BROKER_FRAMES, admitted_end, schema_to_wire
from gossamer.node.local.serving.server import LocalService
from gossamer.node.transport.base.base import Cause
from gossamer.node.transport.base.frames import FrameReader
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.connection import Connection
from gossamer.protocol.kernel.errors import ProtocolError

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
            member = await members.attach(frame.get("client"), session, aside=aside)
        except ClientRequestError as error:
            raise PeerRefused(error.reason, Cause.BUSY) from None
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


@asynccontextmanager
async def open_broker_server(
    address: LocalAddress, services: BrokerServices, key: str, queue_id: str
) -> AsyncIterator[BrokerServer]:
    """Serve clients at ``address`` while the context is open.

    Args:
        address: where.
        services: what they are given.
        key: of the broker, as text.
        queue_id: id of the file in which deliveries are kept.

    Raises:
        ListenFailed: the socket cannot be opened.
    """
    door = open_door(address)
    try:
        async with trio.open_nursery() as nursery:
            server = BrokerServer(door, services, key, queue_id)
            nursery.start_soon(trio.serve_listeners, server.serve, [door.listener])
            yield server
            await server.say_goodbye()
            nursery.cancel_scope.cancel()
    finally:
        close_door(door)
