"""One connection to the node of this machine: requests under way, and the events that come.

`gossamer.node.local.client` is what applications use; it goes on over many of these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import trio
from attrs import define, field, frozen

from gossamer.node.errors import (
    BadFrame,
    HandshakeFailed,
    PublicationUncertainError,
    RefusedByNodeError,
    TransportBroken,
    TransportClosed,
)
from gossamer.node.local.address import LocalAddress, knock
from gossamer.node.local.frames import BROKER, BROKER_FRAMES, FRAMES, VERSION, admitted_end
from gossamer.node.transport.base.base import Farewell
from gossamer.node.transport.base.frames import FrameReader, encode_frame
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.connection import Connection

GONE: Final = (TransportBroken, TransportClosed)

_CHUNK: Final = 1 << 16
_LIMITS: Final = Limits(ping_seconds=3600.0, silence_seconds=86_400.0, frames_per_second=10**9)
_ANSWERS: Final = ("done", "published", "outcomes", "unacknowledged", "refused")


@frozen
class Resume:
    """What a client with a name knows from an earlier connection.

    Attributes:
        history: id of the node's history then.
        acknowledged: position up to which it has got everything.
    """

    history: str
    acknowledged: int


@frozen
class Introduction:
    """How a client introduces itself; arguments of `gossamer.node.local.client.open_client`."""

    name: str | None = None
    aside: bool = False


class NotSentError(Exception):
    """The connection was over before the request was sent; never leaves the client."""


@define(eq=False)
class _Request:
    done: trio.Event = field(factory=trio.Event)
    answer: Frame | None = None


class Link:
    """One connection; made by `open_link`.

    Attributes:
        attached: how the node introduced itself.
    """

    def __init__(self, connection: Connection, attached: Frame) -> None:
        self.attached = attached
        self._connection = connection
        self._requests: dict[int, _Request] = {}
        self._number = 0

    @property
    def farewell(self) -> Farewell | None:
        """How the connection ended, None while it lasts."""
        return self._connection.farewell

    async def request(self, kind: str, **fields: object) -> Frame:
        """Send a request; return its answer.

        Raises:
            NotSentError: the connection was over before.
            TransportBroken, TransportClosed: it ended before the answer came.
            RefusedByNodeError: the node refused.
        """
        if not self._connection.is_open:
            raise NotSentError
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
        return request.answer

    async def publish(self, kind: str, count: int, **fields: object) -> Frame:
        """Send a request that publishes ``count`` events; return its answer.

        Raises:
            NotSentError, RefusedByNodeError: as of `request`; nothing was published.
            PublicationUncertainError: the connection ended before the answer came.
        """
        try:
            return await self.request(kind, **fields)
        except GONE as error:
            raise PublicationUncertainError(count, error.reason) from None

    async def acknowledge(self, position: int) -> None:
        """Tell the node that events up to a position need not come again."""
        await self._connection.send(encode_frame("acknowledge", position=position))

    async def run(self, take_event: Callable[[Frame], Awaitable[None]]) -> None:
        """Serve the connection until it ends; `close` ends it in order, cancelled or not."""

        async def take(frame: Frame) -> None:
            if frame["type"] == "event":
                await take_event(frame)
            else:
                self._take_answer(frame)

        try:
            with trio.CancelScope(shield=True):
                await self._connection.run(take)
        finally:
            for request in self._requests.values():
                request.done.set()

    async def close(self) -> None:
        """End the connection in order."""
        if self._connection.is_open:
            await self._connection.close()

    def _take_answer(self, frame: Frame) -> None:
        if frame["type"] not in _ANSWERS:
            raise BadFrame("frame", "type", repr(frame["type"]), "an event or an answer")
        request = self._requests.get(frame["number"])
        if request is not None:  # nobody waits for the answer of one that was cancelled
            request.answer = frame
            request.done.set()


async def open_link(address: LocalAddress, who: Introduction, resume: Resume | None) -> Link:
    """Connect to the node at ``address``; the link is to be run, and closed.

    Raises:
        NodeNotRunningError: no node listens there.
        LocalSocketError: this user may not use it.
        RefusedByNodeError: the node does not let this client in.
        HandshakeFailed: what listens there is no node of this version.
    """
    stream, token = await knock(address)
    attach: dict[str, object] = {"version": VERSION, "software": "gossamer"}
    attach |= {} if who.name is None else {"client": who.name}
    attach |= {"aside": True} if who.aside and who.name is not None else {}
    attach |= {} if token is None else {"token": token}
    if resume is not None:
        attach |= {"history": resume.history, "acknowledged": resume.acknowledged}
    try:
        attached, rest = await _introduce(stream, attach)
        types = BROKER_FRAMES if attached.get("role") == BROKER else FRAMES
        connection = Connection(admitted_end(stream, attached, rest), _LIMITS, types)
        return Link(connection, attached)
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise


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
