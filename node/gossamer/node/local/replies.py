"""Requests of this node's applications, the replies to them, and replies to others' requests.

A request is an event whose payload says where to reply to. A reply goes from the replier's peer to
the requester's, past the overlay, and is sent again until that peer says that it has it.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Final

import trio
from attrs import define, frozen

from gossamer.client.errors import unwrapped
from gossamer.node.errors import NoAnswerError, NotAcknowledged, RequestError
from gossamer.node.local.peer_like import PeerLike
from gossamer.node.peer.unicast.messages import ReplyTo, enclosed
from gossamer.node.security.identity import decode, encode
from gossamer.protocol.content.values import Payload, Value
from gossamer.protocol.kernel.errors import ContentError
from gossamer.protocol.patterns.replies import Arrival, OpenRequests

SERVICE: Final = "reply"
NUMBER_BITS: Final = 62
# How long the requester's peer may take to answer before the reply is sent again, and the pause
# before that.
ANSWER_S: Final = 3.0
PAUSE_S: Final = 0.3


@frozen
class Reply:
    """What came of a request at one replier.

    Attributes:
        replier: permanent key of its peer.
        payload: what it replied.
        failed: whether it says that it could not do what was asked.
    """

    replier: int
    payload: Payload
    failed: bool = False


@define
class Requested:
    """What came of a request.

    Attributes:
        event: its id; 0 as long as nothing is known of it.
        acknowledged: whether others hold it.
        came: how many replies came.
        error: why it was not published, or not acknowledged in time.
    """

    event: int = 0
    acknowledged: bool = False
    came: int = 0
    error: Exception | None = None


class Replies:
    """All requests and replies of one node."""

    def __init__(self, peer: PeerLike) -> None:
        self._peer = peer
        self._open = OpenRequests()
        self._waiting: dict[int, trio.MemorySendChannel[Reply]] = {}
        peer.messages.offer(SERVICE, self._take)

    @property
    def open_requests(self) -> int:
        """How many requests of this node wait for replies."""
        return len(self._open)

    async def request(
        self,
        values: Mapping[str, Value],
        payload: Payload | None,
        *,
        wanted: int,
        patience_s: float,
        hand_on: Callable[[Reply], Awaitable[None]],
        application: Hashable = None,
    ) -> Requested:
        """Publish a request, and hand on ``wanted`` replies, or those that come in time.

        Returns once these are there and the event is acknowledged, or the time is over.

        Raises:
            ContentError: the payload is too large for a request; nothing was published.
            CapacityError: too many requests wait for replies; nothing was published.
            NodeError: as of `PeerLike.publish`, but for `NotAcknowledged`, which is returned.
        """
        request = secrets.randbits(NUMBER_BITS)
        reply_to = ReplyTo(
            self._peer.key, request, tuple(self._peer.messages.addresses), patience_s
        )
        carried = enclosed(payload, reply_to)
        self._open.open(request, wanted)
        self._waiting[request], replies = trio.open_memory_channel[Reply](wanted)
        result = Requested()
        published = trio.Event()

        async def publish() -> None:
            try:
                result.event = await self._peer.publish(
                    values, payload=carried, application=application
                )
                result.acknowledged = True
            except NotAcknowledged as error:
                result.event, result.error = error.event, error
            published.set()

        try:
            with unwrapped():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(publish)
                    with trio.move_on_after(patience_s):
                        while result.came < wanted:
                            await hand_on(await replies.receive())
                            result.came += 1
                        await published.wait()
                    nursery.cancel_scope.cancel()
        finally:
            self._open.close(request)
            del self._waiting[request]
        return result

    async def reply(self, token: str, payload: Payload, *, failed: bool = False) -> None:
        """Reply to a request; return once the requester's peer has the reply.

        Raises:
            ContentError: ``token`` is of no request.
            RequestError: the reply came too late.
            NoAnswerError: the requester's peer cannot be reached in the time that it waits; it may
                have got the reply.
        """
        try:
            to = ReplyTo.from_token(token)
        except ValueError as error:
            raise ContentError("", f"{error}, expected that of an event") from None
        number = secrets.randbits(NUMBER_BITS)
        body = encode([to.request, number, failed, payload.content_type, payload.data])
        deadline = trio.current_time() + to.patience_s
        while True:
            left_s = max(0.0, deadline - trio.current_time())
            try:
                patience_s = min(ANSWER_S, left_s)
                raw = await self._peer.messages.ask(to.key, to.addresses, SERVICE, body, patience_s)
                if _arrival(raw) is Arrival.NOBODY_WAITS:
                    raise RequestError(
                        f"nobody waits at peer {to.key:016x} for a reply to this request any more: "
                        "its time is over, it has all the replies that it wants, or its requester "
                        "has gone"
                    )
                return
            except NoAnswerError:
                if left_s <= PAUSE_S:
                    raise
            await trio.sleep(PAUSE_S)

    def _take(self, sender: int, body: bytes) -> bytes:
        parts = decode(body)
        if type(parts) is not list or [type(one) for one in parts] != [int, int, bool, str, bytes]:
            raise ValueError("no reply")
        request, number, failed, content_type, data = parts
        try:
            reply = Reply(sender, Payload(data, content_type), failed)
        except ContentError as error:
            raise ValueError(str(error)) from None
        arrival = self._open.take(request, sender, number)
        if arrival is Arrival.TAKEN:
            self._waiting[request].send_nowait(reply)
        return encode(int(arrival))


def _arrival(raw: bytes) -> Arrival:
    """What the requester's peer said; one that says nothing sensible waits for nothing."""
    try:
        return Arrival(decode(raw))
    except ValueError:
        return Arrival.NOBODY_WAITS
