"""The node's side of the local socket: who comes in, and how many."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from hmac import compare_digest
from typing import TypeVar

import trio
from attrs import evolve

from gossamer.client.frames import VERSION
from gossamer.client.link import LocalAddress
from gossamer.node.config.node import Local
from gossamer.node.errors import BadFrame, HandshakeFailed, PeerRefused, RequestError
from gossamer.node.local.address import Door, close_door, open_door
from gossamer.node.local.durable import DurableClient, DurableClients
from gossamer.node.local.frames import FRAMES, admitted_end, id_text, refusal, schema_to_wire
from gossamer.node.local.services import NodeServices, transport_limits
from gossamer.node.local.serving.publishing import Services
from gossamer.node.local.serving.session import Session
from gossamer.node.monitoring.logs import log
from gossamer.node.transport.base import Cause, Farewell
from gossamer.node.transport.byte_streams import drain
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.frames import MAX_DETAIL, FrameReader, encode_frame
from gossamer.node.transport.limits import Doors, warn_of_crowd
from gossamer.node.transport.schema import Frame

ServiceT = TypeVar("ServiceT", bound="LocalService")

# Read at once from a client that has not said yet who it is.
_CHUNK = 4096
_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)
# Connections that have not attached, or as many as there may be clients: commands start at once.
_LEAST_ROOM = 32
_HERE = "the local socket"


class LocalService:
    """Lets clients in that introduce themselves; subclasses serve them.

    Attributes:
        address: where.
        clients: how many have attached.
    """

    def __init__(self, door: Door, services: NodeServices) -> None:
        self.address = door.address
        self.clients = 0
        self._token = door.token
        self._services = services
        self._connections: set[Connection] = set()
        self.limit(services.limits)

    def limit(self, limits: Local) -> None:
        """Bound what clients may cost by these, those that are connected as before."""
        self._services = evolve(self._services, limits=limits)
        self._limits = transport_limits(limits)
        # All are of this machine, so that there is no telling whose they are.
        room = max(_LEAST_ROOM, limits.clients)
        self._doors = Doors(room, room, warn_of_crowd)

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one client until it leaves or breaks a rule."""
        counts = self._services.counts
        try:
            reader = FrameReader(self._limits, self._limits.hello_bytes)
            await self._admit(stream, reader, await self._receive(stream, reader))
        except PeerRefused as error:
            counts.turned_away[error.cause] += 1
            await self._say_why(stream, error.cause, error.reason)
        except BadFrame as error:
            counts.turned_away[Cause.BAD_FRAME] += 1
            await self._say_why(stream, Cause.BAD_FRAME, str(error))
        except (HandshakeFailed, *_BROKEN):
            counts.turned_away[Cause.LOST] += 1
        finally:
            await trio.aclose_forcefully(stream)

    async def _receive(self, stream: trio.SocketStream, reader: FrameReader) -> Frame:
        """The introduction of a client that comes in time, and before it has to make room."""
        with self._doors.enter(_HERE) as guest:
            if guest is not None:
                with guest.scope, trio.move_on_after(self._limits.handshake_seconds):
                    frame = await _first_frame(stream, reader)
                    self._check(frame)
                    return frame
                if not guest.is_turned_out:
                    raise PeerRefused("it did not attach in time", Cause.SILENT)
            most = max(_LEAST_ROOM, self._services.limits.clients)
            reason = f"more than {most} clients come in at once (local.clients); try again"
            raise PeerRefused(reason, Cause.FULL)

    async def _admit(self, stream: trio.SocketStream, reader: FrameReader, frame: Frame) -> None:
        limit = self._services.limits.clients
        if self.clients >= limit:
            raise PeerRefused(f"more than {limit} clients (local.clients)", Cause.FULL)
        self.clients += 1
        try:
            await self._welcome(stream, reader, frame)
        except trio.TooSlowError:
            raise HandshakeFailed("it does not read") from None
        finally:
            self.clients -= 1

    async def _welcome(self, stream: trio.SocketStream, reader: FrameReader, frame: Frame) -> None:
        """Serve a client that introduced itself by ``frame``.

        Raises:
            PeerRefused: it is not let in.
            TooSlowError: it does not read.
        """
        raise NotImplementedError

    async def _send_attached(self, stream: trio.SocketStream, **fields: object) -> None:
        attached = encode_frame("attached", version=VERSION, software=_software(), **fields)
        with trio.fail_after(self._limits.stall_seconds):
            await stream.send_all(attached)

    async def say_goodbye(self) -> None:
        """Send clients what waits for them, and that the node stops; wait a moment for them."""
        with trio.move_on_after(self._limits.close_seconds):
            async with trio.open_nursery() as nursery:
                for connection in self._connections:
                    nursery.start_soon(connection.close, Cause.SHUTDOWN, "the node stops")

    def _refuse(self, frame: Frame, error: BadFrame) -> bytes | None:
        """Answer a request that is none, and count it; what has no number costs the connection."""
        answer = refusal(frame, error)
        if answer is not None:
            self._services.counts.requests += 1
            self._services.counts.refused[type(error).__name__] += 1
        return answer

    @contextmanager
    def _attached(self, connection: Connection) -> Iterator[None]:
        """A client is served over a connection."""
        self._services.counts.attached += 1
        self._connections.add(connection)
        try:
            yield
        finally:
            self._connections.discard(connection)

    def _note_end(self, farewell: Farewell) -> None:
        self._services.counts.ended[farewell.cause] += 1
        if farewell.cause in (Cause.BAD_FRAME, Cause.FLOOD, Cause.STALLED):
            log.warning("client cut", cause=str(farewell.cause), detail=farewell.detail)

    def _check(self, frame: Frame) -> None:
        if frame.get("type") != "attach":
            raise BadFrame("frame", "type", repr(frame.get("type"))[:40], "attach first")
        # Before its fields are checked: those of another version may differ.
        version = frame.get("version")
        if type(version) is int and version != VERSION:
            reason = f"it speaks version {version} of the client protocol, expected {VERSION}"
            raise PeerRefused(reason, Cause.VERSION)
        FRAMES.check(frame)
        if self._token is not None:
            shown = frame.get("token", "")
            if not compare_digest(shown.encode(), self._token.encode()):
                raise PeerRefused("its token is not that of client.token", Cause.REFUSED)

    async def _say_why(self, stream: trio.SocketStream, cause: str, reason: str) -> None:
        goodbye = encode_frame("goodbye", reason=str(cause), detail=reason[:MAX_DETAIL])
        with trio.move_on_after(self._limits.close_seconds):
            try:
                await stream.send_all(goodbye)
                await drain(stream)
            except _BROKEN:
                return


class LocalServer(LocalService):
    """Serves the applications of this machine; made by `open_local_server`."""

    def __init__(self, door: Door, services: Services, durable: DurableClients) -> None:
        super().__init__(door, services)
        self._services: Services = services
        self._durable = durable

    async def _welcome(self, stream: trio.SocketStream, reader: FrameReader, frame: Frame) -> None:
        name = frame.get("client")
        if "aside" in frame:
            raise PeerRefused("this node is no broker, and has one client of a name (--name)")
        durable = None if name is None else await self._attach(name)
        try:
            if durable is not None:
                await self._take_up(durable, frame)
            fields = {} if durable is None else {"history": self._services.history.id}
            peer = id_text(self._services.peer.key)
            schema = schema_to_wire(self._services.peer.schema)
            await self._send_attached(stream, peer=peer, schema=schema, **fields)
            await self._serve_attached(stream, reader.take_rest(), frame, durable)
        finally:
            if durable is not None:
                self._durable.detach(durable)

    async def _serve_attached(
        self, stream: trio.SocketStream, rest: bytes, frame: Frame, durable: DurableClient | None
    ) -> None:
        admitted = admitted_end(stream, frame, rest)
        connection = Connection(admitted, self._limits, FRAMES, refuse=self._refuse)
        ordered = frame.get("ordered", False)
        session = Session(connection, self._services, self._durable, durable, ordered=ordered)
        with self._attached(connection):
            self._note_end(await session.run())

    async def _attach(self, name: str) -> DurableClient:
        if not name.isprintable() or not name:
            raise PeerRefused("its name is not printable, or empty", Cause.REFUSED)
        try:
            return await self._durable.attach(name)
        except RequestError as error:
            raise PeerRefused(str(error), Cause.BUSY) from None

    async def _take_up(self, client: DurableClient, frame: Frame) -> None:
        """Believe what a returning client says that it has got."""
        history = self._services.history
        if frame.get("history") == history.id and "acknowledged" in frame:
            await history.acknowledge(client.name, frame["acknowledged"], [])


def open_local_server(
    address: LocalAddress, services: Services, retention_s: float
) -> AbstractAsyncContextManager[LocalServer]:
    """Serve clients at ``address`` while the context is open.

    Args:
        address: where.
        services: what they are given.
        retention_s: how long a client with a name may be away.

    Raises:
        ListenFailed: the socket cannot be opened.
    """

    async def make(door: Door, nursery: trio.Nursery) -> LocalServer:
        durable = DurableClients(services.peer, services.history, retention_s, nursery)
        await durable.restore()
        nursery.start_soon(durable.run)
        return LocalServer(door, services, durable)

    return served_at(address, make)


@asynccontextmanager
async def served_at(
    address: LocalAddress, make: Callable[[Door, trio.Nursery], Awaitable[ServiceT]]
) -> AsyncIterator[ServiceT]:
    """Serve clients at ``address`` by what ``make`` makes, while the context is open."""
    door = open_door(address)
    try:
        async with trio.open_nursery() as nursery:
            server = await make(door, nursery)
            nursery.start_soon(trio.serve_listeners, server.serve, [door.listener])
            yield server
            await server.say_goodbye()
            nursery.cancel_scope.cancel()
    finally:
        close_door(door)


async def _first_frame(stream: trio.SocketStream, reader: FrameReader) -> Frame:
    while (frame := reader.next_frame()) is None:
        data = await stream.receive_some(_CHUNK)
        if not data:
            raise HandshakeFailed("it ended the connection without a word")
        reader.feed(data)
    return frame


def _software() -> str:
    from gossamer.command.main import installed_version

    return f"gossamer {installed_version()}"[:64]
