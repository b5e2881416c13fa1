"""What a client asks of the node itself, over whichever connection there is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from gossamer.client.errors import NoReplyError, RefusedByNodeError, UnacknowledgedError
from gossamer.client.frames import (
    BROKER,
    PEER,
    Frame,
    Values,
    last_fields,
    payload_fields,
    payload_of,
)
from gossamer.client.links import Links
from gossamer.client.results import LastMark, Outcome, Payload, PayloadLike, Reply, outcome_of

ValuesT = TypeVar("ValuesT", bound=Values)

# What a node that is about to stop answers to what it will not publish.
_STOPPED: Final = "PeerStopped"


class Publisher(Generic[ValuesT]):
    """Publishes, and says what became of it; asks the node what it knows, and what it is to do.

    Attributes:
        role: what the node is, `PEER` or `BROKER` of `gossamer.client.frames`.
        values: how the values of events travel.
        alone: how many events were acknowledged so far while the node knew other nodes and reached
            none, so that it alone holds them.
    """

    def __init__(self, links: Links, values: ValuesT) -> None:
        self.role = PEER
        self.values = values
        self.alone = 0
        self._links = links

    async def status(self) -> dict[str, Any]:
        """What the node says of itself."""
        return await self._json("status")

    async def snapshot(self) -> dict[str, Any]:
        """The overlay as the peer sees it; see `gossamer.node.page.snapshot`."""
        return await self._json("snapshot")

    async def members(self) -> dict[str, Any]:
        """The members of the cluster that the node has met, and what happened to them."""
        return await self._json("members")

    async def cluster(self) -> dict[str, Any]:
        """The members of the cluster, and what those of them say of themselves who answer now."""
        return await self._json("cluster")

    async def tables(self) -> dict[str, Any]:
        """The tables of a broker; see `gossamer.node.broker.host`.

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

    async def reload(self) -> dict[str, Any]:
        """Have the node read its configuration anew: `changed` is in force, `restart` is not.

        Raises:
            RefusedByNodeError: it cannot be used; the node goes on as before.
        """
        return await self._json("reload")

    async def shutdown(self) -> None:
        """Stop the node."""
        await self._links.ask(lambda link: link.request("shutdown"), repeat=False)

    async def _json(self, kind: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads((await self._request(kind))["result"])
        return result

    async def _request(self, kind: str, **fields: object) -> Frame:
        """A request that does no harm when it is made twice."""
        return await self._links.ask(lambda link: link.request(kind, **fields), repeat=True)

    def _check_role(self, what: str) -> None:
        if self.role != BROKER:
            reason = f"the node is a peer and has no {what}, expected a broker (node.role)"
            raise RefusedByNodeError("role", reason)

    def check_peer(self, what: str) -> None:
        """Refuse at a broker what only peers have.

        Raises:
            RefusedByNodeError: the node is a broker.
        """
        if self.role == BROKER:
            reason = f"the node is a broker and has no {what}, expected a peer (node.role)"
            raise RefusedByNodeError("role", reason)

    # Events, requests and replies

    async def publish(
        self,
        values: Mapping[str, object],
        *,
        payload: PayloadLike | None = None,
        last: LastMark | None = None,
    ) -> str:
        """Publish an event; return its id once it is acknowledged: others hold it.

        At a peer it may carry a ``payload`` beside its values, and be the ``last`` of a value.

        Raises:
            UnacknowledgedError: nobody acknowledged it in time; it may reach all, some or none.
            PublicationUncertainError: the connection ended before it was known; the same.
            NodeError, ContentError: values or payload cannot travel, or do not fit; it was not
                published.
            RefusedByNodeError: the node does not publish it.
        """
        fields: dict[str, object] = {"values": self.values.to_wire(values)}
        fields |= payload_fields(payload) | last_fields(last)
        if last is not None:
            self.check_peer("last values")
        answer = await self._publish("publish", 1, **fields)
        if answer["type"] == "unacknowledged":
            raise UnacknowledgedError(answer["ids"], answer["published"], answer["reason"])
        return str(answer["result"])

    async def request(
        self,
        values: Mapping[str, object],
        *,
        payload: PayloadLike | None = None,
        timeout_s: float,
        replies: int,
    ) -> list[Reply]:
        """Publish a request; return the first ``replies`` to it, or those that came in time.

        Raises:
            NoReplyError: none came in time.
            NodeError: as of `publish`; it is not known then whether anybody got the request.
        """
        self.check_peer("requests")
        fields: dict[str, object] = {"values": self.values.to_wire(values)}
        fields |= payload_fields(payload) | {"timeout": timeout_s, "replies": replies}
        answer = await self._publish("request", 1, **fields)
        if answer["type"] == "unacknowledged":
            raise UnacknowledgedError(answer["ids"], answer["published"], answer["reason"])
        if not answer["replies"]:
            raise NoReplyError(answer["result"], timeout_s)
        return [
            Reply(one["replier"], payload_of(one) or Payload(b""), one["failed"])
            for one in answer["replies"]
        ]

    async def reply(self, request: str, payload: PayloadLike, *, failed: bool = False) -> None:
        """Reply to the request of that token; return once the requester's node has the reply.

        Raises:
            RefusedByNodeError: nobody waits for it any more, or that node cannot be reached.
            TransportBroken: the connection ended before it was known whether it arrived.
        """
        self.check_peer("requests")
        fields = payload_fields(payload) | {"request": request, "failed": failed}
        await self._links.ask(lambda link: link.request("reply", **fields), repeat=False)

    async def publish_many(self, events: Sequence[Mapping[str, object]]) -> list[str]:
        """Publish at most `limits.MAX_EVENTS` events; return their ids once all are acknowledged.

        Raises:
            UnacknowledgedError: some were not, in time.
            PublicationUncertainError: the connection ended before it was known.
            NodeError, ContentError: those of one cannot travel, or do not fit; none was published.
            RefusedByNodeError: the node could not publish all of them; `publish_each` tells which.
        """
        outcomes = await self._publish_checked([self.values.to_wire(one) for one in events])
        published = [one.id for one in outcomes if one.id]
        for one in outcomes:
            if isinstance(one.error, RefusedByNodeError):
                count = f"({len(published)} of {len(outcomes)} published)"
                raise RefusedByNodeError(one.error.cause, f"{one.error.reason} {count}")
        unacknowledged = [one for one in outcomes if one.error is not None]
        if unacknowledged:
            ids = [one.id for one in unacknowledged]
            raise UnacknowledgedError(ids, len(published), str(unacknowledged[0].error))
        return published

    async def publish_each(self, events: Sequence[Mapping[str, object]]) -> list[Outcome]:
        """Publish what can be published of at most `limits.MAX_EVENTS` events.

        Returns what became of each, in their order, once that is known of all.

        Raises:
            PublicationUncertainError: the connection ended before that.
            RefusedByNodeError: the node refused the request as a whole; none was published.
        """
        outcomes: list[Outcome | None] = []
        checked = []
        for values in events:
            try:
                checked.append(self.values.to_wire(values))
            except self.values.errors as error:
                outcomes.append(Outcome("", error))
            else:
                outcomes.append(None)
        sent = iter(await self._publish_checked(checked))
        return [next(sent) if one is None else one for one in outcomes]

    async def _publish_checked(self, events: list[dict[str, object]]) -> list[Outcome]:
        answer = await self._publish("publish_many", len(events), events=events)
        if answer["type"] == "published":
            return [Outcome(event) for event in answer["ids"]]
        found = zip(answer["ids"], answer["causes"], answer["reasons"], strict=True)
        return [outcome_of(*one) for one in found]

    async def _publish(self, kind: str, count: int, **fields: object) -> Frame:
        """A request that publishes, made again only where it is known that nothing came of it."""
        while True:
            try:
                answer = await self._links.ask(
                    lambda link: link.publish(kind, count, **fields), repeat=False
                )
                self.alone += answer.get("alone", 0)
                return answer
            except RefusedByNodeError as error:
                if error.cause != _STOPPED or not self._links.reconnects:
                    raise
            await self._links.until_another(self._links.link)
