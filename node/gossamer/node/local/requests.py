"""Requests of one client and their answers, whatever the node is."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from gossamer.node.errors import BadFrame, RequestError, TransportBroken
from gossamer.node.local.frames import MAX_REASON, payload_of
from gossamer.node.local.services import REFUSALS, NodeServices, check_refusal
from gossamer.node.transport.base import Cause
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import Frame
from gossamer.protocol.content.values import Payload
from gossamer.protocol.kernel.errors import ContentError

Handler = Callable[[Frame], Awaitable[str | None]]


def held_alone(events: int) -> dict[str, int]:
    """The field that says how many events were acknowledged while the node reached nobody."""
    return {"alone": events} if events else {}


def said(tell: Callable[[], object]) -> Handler:
    """A request whose answer is a text of JSON."""

    async def answer(_: Frame) -> str:
        return json.dumps(tell())

    return answer


def refusing(reason: str) -> Handler:
    """A request that this kind of node does not take."""

    async def refuse(_: Frame) -> str:
        raise RequestError(reason)

    return refuse


class Requests:
    """Answers a client's requests; subclasses know more of them."""

    def __init__(self, connection: Connection, services: NodeServices) -> None:
        self._connection = connection
        self._services = services
        self._handlers: dict[str, Handler] = {
            "status": said(services.describe),
            "snapshot": said(services.snapshot),
            "members": said(services.list_members),
            "cluster": self._cluster,
            "metrics": self._metrics,
            "reload": said(services.reload),
            "shutdown": self._shutdown,
        }

    async def _take_request(self, frame: Frame) -> None:
        """Answer a request.

        Raises:
            BadFrame: it is none.
        """
        kind = frame["type"]
        self._services.counts.requests += 1
        if kind == "publish":
            await self._publish_single(frame)
        elif kind == "publish_many":
            await self._publish(frame["number"], frame["events"], single=False)
        elif kind in self._handlers:
            await self._answer(frame["number"], partial(self._handlers[kind], frame))
        else:
            raise BadFrame("frame", "type", repr(kind), "a request that this node answers")

    async def _publish_single(self, frame: Frame) -> None:
        try:
            payload = payload_of(frame)
        except ContentError as error:
            await self._refuse(frame["number"], error)
            return
        await self._publish(frame["number"], [frame["values"]], single=True, payload=payload)

    async def _publish(
        self, number: int, events: list[Any], *, single: bool, payload: Payload | None = None
    ) -> None:
        """Publish ``events``, a single one with its payload; answer the request of that number."""
        raise NotImplementedError

    async def _tell_outcomes(
        self, number: int, ids: Sequence[str], errors: Mapping[int, Exception], alone: int = 0
    ) -> None:
        """Answer a `publish_many`.

        Args:
            number: of the request.
            ids: of its events, "" of those that were not published.
            errors: by place in ``ids``, of what was not published or not acknowledged.
            alone: how many were acknowledged while the node reached nobody.
        """
        more = held_alone(alone)
        if not errors:
            await self._reply(encode_frame("published", number=number, ids=list(ids), **more))
            return
        causes, reasons = [""] * len(ids), [""] * len(ids)
        for place, error in errors.items():
            check_refusal(error)
            causes[place] = type(error).__name__
            reasons[place] = str(error)[:MAX_REASON]
            if not ids[place]:
                self._services.counts.refused[causes[place]] += 1
        await self._reply(
            encode_frame(
                "outcomes", number=number, ids=list(ids), causes=causes, reasons=reasons, **more
            )
        )

    async def _answer(self, number: int, handle: Callable[[], Awaitable[str | None]]) -> None:
        try:
            result = await handle()
        except REFUSALS as error:
            await self._refuse(number, error)
            return
        fields = {} if result is None else {"result": result}
        await self._reply(encode_frame("done", number=number, **fields))

    async def _refuse(self, number: int, error: Exception) -> None:
        check_refusal(error)
        cause = type(error).__name__
        self._services.counts.refused[cause] += 1
        await self._reply(encode_frame("refused", number=number, cause=cause, reason=str(error)))

    async def _reply(self, frame: bytes) -> None:
        with suppress(TransportBroken):  # it left before its answer
            await self._connection.send(frame)

    def _send_or_cut(self, frame: bytes) -> None:
        """Send an event at once; a client that does not take them in time loses its connection."""
        with suppress(TransportBroken):
            if self._connection.try_send(frame):
                self._services.counts.events_sent += 1
            else:
                stalled = "events came faster than it took them"
                self._connection.start_closing(Cause.STALLED, stalled)

    async def _cluster(self, _: Frame) -> str:
        return json.dumps(await self._services.cluster())

    async def _metrics(self, _: Frame) -> str:
        return self._services.metrics_text().decode()

    async def _shutdown(self, _: Frame) -> None:
        self._services.stop()
