"""A connection to the node of this machine, for applications.

    async with open_client(address) as client:
        await client.subscribe("dear", "price > 80")
        async for event in client.events:
            ...

Every connection has one stream of events and any number of requests under way. Whoever takes no
events holds up the answers behind them, so publish and subscribe over connections of their own.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from attrs import define, field, frozen

from gossamer.node.errors import (
    BadFrame,
    HandshakeFailed,
    RefusedByNodeError,
    TransportBroken,
    TransportClosed,
    UnacknowledgedError,
)
from gossamer.node.local.address import LocalAddress, knock
from gossamer.node.local.frames import (
    BROKER,
    BROKER_FRAMES,
    FRAMES,
    NEW,
    PEER,
    VERSION,
    admitted_end,
    schema_from_wire,
    values_from_wire,
    values_to_wire,
)
from gossamer.node.transport.base import Farewell
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.frames import FrameReader, encode_frame
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.schema import Frame
from gossamer.node.unwrap import unwrapped
from gossamer.protocol.content.filters import exact_publication
from gossamer.protocol.content.schema import Schema

# Events taken from the socket before the application takes them.
EVENTS_AHEAD: Final = 1024
_CHUNK: Final = 1 << 16
_LIMITS: Final = Limits(ping_seconds=3600.0, silence_seconds=86_400.0, frames_per_second=10**9)


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
    """

    id: str
    values: Mapping[str, Any]
    publisher: str
    published_at: float
    subscriptions: tuple[str, ...]
    position: int


@frozen
class Resume:
    """What a client with a name knows from an earlier connection.

    Attributes:
        history: id of the node's history then.
        acknowledged: position up to which it has got everything.
    """

    history: str
    acknowledged: int


@define(eq=False)
class _Request:
    done: trio.Event = field(factory=trio.Event)
    answer: Frame | None = None


class LocalClient:
    """One connection; made by `open_client`.

    Attributes:
        peer: permanent key of the node's peer, as text.
        role: what the node is, `frames.PEER` or `frames.BROKER`.
        schema: what events are made of; None: at a broker, of anything.
        history: id of the node's history; "" for clients without a name.
        events: what the subscriptions bring; ends with the connection.
        alone: how many events were acknowledged so far while the node knew other nodes and reached
            none, so that it alone holds them.
    """

    def __init__(self, connection: Connection, attached: Frame) -> None:
        self.peer: str = attached["peer"]
        self.role: str = attached.get("role", PEER)
        self.schema: Schema | None = None
        if attached["schema"]:
            self.schema = schema_from_wire(attached["schema"])
        self.history: str = attached.get("history", "")
        self._connection = connection
        self._requests: dict[int, _Request] = {}
        self._number = 0
        self.alone = 0
        self._send, self.events = trio.open_memory_channel[ReceivedEvent](EVENTS_AHEAD)

    @property
    def farewell(self) -> Farewell | None:
        """How the connection ended, None while it lasts."""
        return self._connection.farewell

    async def subscribe(self, key: str, expression: str, start: str = NEW) -> None:
        """Ask for events that match; those of an earlier subscription ``key`` stop.

        Args:
            key: the client's name for the subscription.
            expression: what is to match.
            start: `frames.NEW`, or `frames.RETAINED` for a client whose name is new to the node,
                to begin with what the node has kept for other clients.

        Raises:
            RefusedByNodeError: the node does not take it.
        """
        await self._request("subscribe", id=key, expression=expression, start=start)

    async def unsubscribe(self, key: str) -> None:
        """End a subscription; a client with a name is forgotten with its last one.

        Raises:
            RefusedByNodeError: there is none of that name.
        """
        await self._request("unsubscribe", id=key)

    async def forget(self) -> None:
        """Have the node drop all that it keeps for this client's name."""
        await self._request("forget")

    async def advertise(self, key: str, expression: str) -> None:
        """Announce what will be published; needed before it, at a broker.

        Raises:
            RefusedByNodeError: the node does not take it.
        """
        self._check_role("advertisements")
        await self._request("advertise", id=key, expression=expression)

    async def unadvertise(self, key: str) -> None:
        """Take an advertisement back.

        Raises:
            RefusedByNodeError: there is none of that name.
        """
        self._check_role("advertisements")
        await self._request("unadvertise", id=key)

    async def acknowledge(self, event: ReceivedEvent) -> None:
        """Say that this event and those before it need not come again."""
        frame = encode_frame("acknowledge", position=event.position)
        await self._connection.send(frame)

    async def publish(self, values: Mapping[str, object]) -> str:
        """Publish an event; return its id once it is acknowledged: others hold it.

        Raises:
            UnacknowledgedError: nobody acknowledged it in time; it may reach all, some or none.
            ContentError: the values do not fit the schema.
            RefusedByNodeError: the node does not publish it.
        """
        checked = self._values_to_wire(values)
        answer = await self._request("publish", values=checked)
        return str(answer["result"])

    async def publish_many(self, events: Sequence[Mapping[str, object]]) -> list[str]:
        """Publish at most `frames.MAX_EVENTS` events; return their ids once all are acknowledged.

        Raises:
            UnacknowledgedError: some were not, in time.
            ContentError: the values of one do not fit the schema; none was published.
            RefusedByNodeError: the node could not publish all of them.
        """
        checked = [self._values_to_wire(values) for values in events]
        answer = await self._request("publish_many", events=checked)
        return list(answer["ids"])

    async def status(self) -> dict[str, Any]:
        """What the node says of itself."""
        return await self._json("status")

    async def snapshot(self) -> dict[str, Any]:
        """The overlay as the peer sees it; see `gossamer.node.page.snapshot`."""
        return await self._json("snapshot")

    async def tables(self) -> dict[str, Any]:
        """The tables of a broker; see `gossamer.node.broker.tables`.

        Raises:
            RefusedByNodeError: the node is none.
        """
        self._check_role("tables")
        return await self._json("tables")

    async def trace(self, event: str) -> list[dict[str, Any]]:
        """The brokers that a publication passed, as far as they remember it.

        Raises:
            RefusedByNodeError: the node is no broker, or does not remember it.
        """
        self._check_role("routes")
        return list(json.loads((await self._request("trace", id=event))["result"]))

    async def metrics(self) -> str:
        """The metrics in Prometheus' text format."""
        return str((await self._request("metrics"))["result"])

    async def shutdown(self) -> None:
        """Stop the node."""
        await self._request("shutdown")

    async def run(self) -> None:
        """Serve the connection until it ends; `open_client` ends it in order, cancelled or not."""
        try:
            with trio.CancelScope(shield=True):
                await self._connection.run(self._take)
        finally:
            self._send.close()
            for request in self._requests.values():
                request.done.set()

    def _check_role(self, what: str) -> None:
        if self.role != BROKER:
            reason = f"the node is a peer and has no {what}, expected a broker (node.role)"
            raise RefusedByNodeError("role", reason)

    def _values_to_wire(self, values: Mapping[str, object]) -> dict[str, object]:
        if self.role == BROKER:
            # Not loaded for the clients of peers, which it would cost a third of their start.
            from gossamer.protocol.broker.plain import plain_values

            return plain_values(exact_publication(values, self.schema))
        assert self.schema is not None, "peers have one"
        return values_to_wire(self.schema.check_event(values))

    def _values_from_wire(self, values: Mapping[str, Any]) -> dict[str, Any]:
        if self.role == BROKER:
            from gossamer.protocol.broker.plain import read_values

            return read_values(values, "values")
        assert self.schema is not None, "peers have one"
        return values_from_wire(self.schema, values)

    async def _json(self, kind: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads((await self._request(kind))["result"])
        return result

    async def _request(self, kind: str, **fields: object) -> Frame:
        self._number += 1
        number = self._number
        request = self._requests[number] = _Request()
        try:
            await self._connection.send(encode_frame(kind, number=number, **fields))
            await request.done.wait()
        finally:
            del self._requests[number]
        if request.answer is None:
            raise TransportBroken("the node", str(self.farewell or "cancelled"))
        if request.answer["type"] == "refused":
            raise RefusedByNodeError(request.answer["cause"], request.answer["reason"])
        if request.answer["type"] == "unacknowledged":
            answer = request.answer
            raise UnacknowledgedError(answer["ids"], answer["published"], answer["reason"])
        self.alone += request.answer.get("alone", 0)
        return request.answer

    async def _take(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "event":
            await self._take_event(frame)
        elif kind in ("done", "published", "unacknowledged", "refused"):
            request = self._requests.get(frame["number"])
            if request is not None:  # nobody waits for the answer of one that was cancelled
                request.answer = frame
                request.done.set()
        else:
            raise BadFrame("frame", "type", repr(kind), "an event or an answer")

    async def _take_event(self, frame: Frame) -> None:
        event = ReceivedEvent(
            frame["id"],
            self._values_from_wire(frame["values"]),
            frame["publisher"],
            frame["published_at"],
            tuple(frame["subscriptions"]),
            frame["position"],
        )
        try:
            await self._send.send(event)
        except trio.BrokenResourceError:  # the application takes no events any more
            return


@asynccontextmanager
async def open_client(
    address: LocalAddress,
    name: str | None = None,
    resume: Resume | None = None,
    *,
    aside: bool = False,
) -> AsyncIterator[LocalClient]:
    """Connect to the node whose socket is at ``address``.

    Args:
        address: see `gossamer.node.local.address.local_address`.
        name: of a client whose subscriptions and undelivered events the node is to keep.
        resume: what an earlier connection of that name left.
        aside: ask and publish for the name of a broker's client that may be connected itself, and
            leave its events to it.

    Raises:
        NodeNotRunningError: no node listens there.
        LocalSocketError: this user may not use it.
        RefusedByNodeError: the node does not let this client in.
        HandshakeFailed: what listens there is no node of this version.
    """
    stream, token = await knock(address)
    attach: dict[str, object] = {"version": VERSION, "software": "gossamer"}
    attach |= {} if name is None else {"client": name}
    attach |= {"aside": True} if aside and name is not None else {}
    attach |= {} if token is None else {"token": token}
    if resume is not None:
        attach |= {"history": resume.history, "acknowledged": resume.acknowledged}
    try:
        attached, rest = await _introduce(stream, attach)
        types = BROKER_FRAMES if attached.get("role") == BROKER else FRAMES
        connection = Connection(admitted_end(stream, attached, rest), _LIMITS, types)
        client = LocalClient(connection, attached)
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    with unwrapped():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.run)
            try:
                yield client
            finally:
                client.events.close()
                with trio.CancelScope(shield=True):
                    await _close(connection)
                nursery.cancel_scope.cancel()


async def _close(connection: Connection) -> None:
    if connection.is_open:
        await connection.close()


async def _introduce(
    stream: trio.SocketStream, attach: Mapping[str, object]
) -> tuple[Frame, bytes]:
    reader = FrameReader(_LIMITS)
    try:
        with trio.fail_after(_LIMITS.handshake_seconds):
            await stream.send_all(encode_frame("attach", **attach))
            while (frame := reader.next_frame()) is None:
                data = await stream.receive_some(_CHUNK)
                if not data:
                    raise HandshakeFailed("the node ended the connection without a word")
                reader.feed(data)
        FRAMES.check(frame)
    except (trio.TooSlowError, trio.BrokenResourceError, BadFrame) as error:
        reason = f"what listens there is no node of this version ({error or 'no answer'})"
        raise HandshakeFailed(reason) from None
    if frame["type"] == "goodbye":
        raise RefusedByNodeError(frame["reason"], str(frame.get("detail", frame["reason"])))
    if frame["type"] != "attached":
        raise HandshakeFailed(f"the node began with {frame['type']!r}, expected 'attached'")
    return frame, reader.take_rest()


GONE: Final = (TransportBroken, TransportClosed)
