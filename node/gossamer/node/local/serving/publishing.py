"""What a peer gives to its clients, and what one asks for that publishes.

These are events, requests to others, and replies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio
from attrs import Factory, define, field, frozen

from gossamer.client.frames import payload_fields
from gossamer.node.errors import BadFrame, NotAcknowledged, RequestError
from gossamer.node.local.frames import id_text, payload_of, values_from_wire
from gossamer.node.local.groups.service import Groups
from gossamer.node.local.history import History
from gossamer.node.local.peer_like import PeerLike
from gossamer.node.local.replies import Replies, Reply
from gossamer.node.local.requests import Requests, held_alone
from gossamer.node.local.services import REFUSALS, NodeServices, check_refusal
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import Frame
from gossamer.protocol.content.values import UNKNOWN_TYPE, Payload, Value

# Events of a client that are published together.
MOST_TOGETHER: Final = 64


@frozen(kw_only=True)
class Services(NodeServices):
    """A node that is a peer, as its clients see it.

    Attributes:
        peer: the peer.
        history: what is kept for clients with a name.
        groups: queue groups that clients are workers of.
        replies: to requests, of clients and of others.
    """

    peer: PeerLike
    history: History
    groups: Groups
    replies: Replies = field(default=Factory(lambda self: Replies(self.peer), takes_self=True))


@define(eq=False)
class _Batch:
    number: int
    ids: list[str]
    left: int
    single: bool
    payload: Payload | None = None
    errors: dict[int, Exception] = field(factory=dict)
    alone: int = 0


class PublishingRequests(Requests):
    """Publishes for a client; `_nursery` has to be there before the first request."""

    _nursery: trio.Nursery

    def __init__(self, connection: Connection, services: Services) -> None:
        super().__init__(connection, services)
        self._services: Services = services
        self._publishing = trio.Semaphore(services.limits.publishing)
        self._slow = trio.Semaphore(services.limits.publishing)  # requests, and replies to them

    async def _publish(
        self, number: int, events: list[Any], *, single: bool, payload: Payload | None = None
    ) -> None:
        """Publish ``events``, none of them unless the values of all are in order."""
        try:
            checked = [self._check(values, place) for place, values in enumerate(events, 1)]
        except REFUSALS as error:
            await self._refuse(number, error)
            return
        batch = _Batch(number, [""] * len(checked), len(checked), single, payload)
        first = 0
        while first < len(checked):
            count = await self._take_places(min(len(checked) - first, MOST_TOGETHER))
            events = checked[first : first + count]
            reserved = [self._services.peer.reserve() for _ in events]
            self._nursery.start_soon(self._publish_together, batch, first, events, reserved)
            first += count
        if not checked:
            await self._finish(batch)

    async def _take_places(self, most: int) -> int:
        """Wait for room to publish; return for how many events there is."""
        await self._publishing.acquire()
        count = 1
        with suppress(trio.WouldBlock):
            while count < most:
                self._publishing.acquire_nowait()
                count += 1
        return count

    def _check(self, values: dict[str, Any], place: int) -> dict[str, Value]:
        try:
            return values_from_wire(self._services.peer.schema, values)
        except BadFrame as error:
            raise RequestError(f"event {place}: {error}") from None

    async def _publish_together(
        self,
        batch: _Batch,
        first: int,
        events: Sequence[Mapping[str, Value]],
        reserved: Sequence[int],
    ) -> None:
        peer = self._services.peer
        try:
            outcomes = await peer.publish_many(
                events, payload=batch.payload, application=self, reserved=reserved
            )
        except REFUSALS as error:
            outcomes = [error] * len(events)
        finally:
            for _ in events:
                self._publishing.release()
        is_alone = self._services.standing.alone
        for place, outcome in enumerate(outcomes, first):
            if isinstance(outcome, int):
                batch.ids[place] = id_text(outcome)
                batch.alone += is_alone
                continue
            batch.errors[place] = outcome
            if isinstance(outcome, NotAcknowledged):
                batch.ids[place] = id_text(outcome.event)
                self._services.counts.unacknowledged += 1
            else:
                check_refusal(outcome)
        batch.left -= len(events)
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

    # Requests and replies: these take time, which others of the client do not wait for

    async def _take_slow(self, frame: Frame) -> None:
        handle = self._request if frame["type"] == "request" else self._reply_to
        self._services.counts.requests += 1
        await self._slow.acquire()
        self._nursery.start_soon(self._answer_slowly, frame["number"], partial(handle, frame))

    async def _answer_slowly(self, number: int, handle: Callable[[], Awaitable[None]]) -> None:
        try:
            await handle()
        except REFUSALS as error:
            await self._refuse(number, error)
        finally:
            self._slow.release()

    async def _request(self, frame: Frame) -> None:
        number = frame["number"]

        async def hand_on(reply: Reply) -> None:
            fields = {"replier": id_text(reply.replier), "failed": reply.failed}
            fields |= payload_fields(reply.payload)
            await self._reply(encode_frame("replied", number=number, **fields))

        payload, values = payload_of(frame), self._check(frame["values"], 1)
        result = await self._services.replies.request(
            values,
            payload,
            wanted=frame["replies"],
            patience_s=float(frame["timeout"]),
            hand_on=hand_on,
            application=self,
        )
        if not (result.came or result.acknowledged) and result.error is not None:
            self._services.counts.unacknowledged += 1
            ids, reason = [id_text(result.event)], str(result.error)
            await self._reply(
                encode_frame("unacknowledged", number=number, ids=ids, published=1, reason=reason)
            )
            return
        alone = held_alone(result.acknowledged and self._services.standing.alone)
        await self._reply(
            encode_frame("done", number=number, result=id_text(result.event), **alone)
        )

    async def _reply_to(self, frame: Frame) -> None:
        payload = payload_of(frame) or Payload(b"", UNKNOWN_TYPE)
        failed = frame.get("failed", False)
        await self._services.replies.reply(frame["request"], payload, failed=failed)
        await self._reply(encode_frame("done", number=frame["number"]))
