"""Requests of one client and their answers, whatever the node is."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from gossamer.node.errors import BadFrame, TransportBroken, TransportClosed
from gossamer.node.local.services import REFUSALS, NodeServices, check_refusal
from gossamer.node.transport.connection import Connection
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import Frame

GONE: Final = (TransportClosed, TransportBroken)

Handler = Callable[[Frame], Awaitable[str | None]]


def published_frame(number: int, ids: list[str], alone: int, *, single: bool) -> bytes:
    """The answer where all events of a request were published, and acknowledged.

    Args:
        number: of the request.
        ids: of the events.
        alone: how many of them were acknowledged while the node reached nobody.
        single: whether the request was for one event.
    """
    more = {"alone": alone} if alone else {}
    if single:
        return encode_frame("done", number=number, result=ids[0], **more)
    return encode_frame("published", number=number, ids=ids, **more)


class Requests:
    """Answers a client's requests; subclasses know more of them."""

    def __init__(self, connection: Connection, services: NodeServices) -> None:
        self._connection = connection
        self._services = services
        self._handlers: dict[str, Handler] = {
            "status": self._status,
            "snapshot": self._snapshot,
            "metrics": self._metrics,
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
            await self._publish(frame["number"], [frame["values"]], single=True)
        elif kind == "publish_many":
            await self._publish(frame["number"], frame["events"], single=False)
        elif kind in self._handlers:
            await self._answer(frame["number"], partial(self._handlers[kind], frame))
        else:
            raise BadFrame("frame", "type", repr(kind), "a request that this node answers")

    async def _publish(self, number: int, events: list[Any], *, single: bool) -> None:
        """Publish ``events``, and answer the request of that number."""
        raise NotImplementedError

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
        with suppress(*GONE):  # it left before its answer
            await self._connection.send(frame)

    async def _status(self, _: Frame) -> str:
        return json.dumps(self._services.describe())

    async def _snapshot(self, _: Frame) -> str:
        return json.dumps(self._services.snapshot())

    async def _metrics(self, _: Frame) -> str:
        return self._services.metrics_text().decode()

    async def _shutdown(self, _: Frame) -> None:
        self._services.stop()
