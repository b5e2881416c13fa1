"""A connection to the node of this machine that comes back: requests, and one stream of events.

There is one stream of events and any number of requests under way. Whoever takes no events holds up
the answers behind them, so that `gossamer.client.client` publishes and subscribes by sessions of
their own.

When the node goes away, the session looks for it again, and asks again for what it had asked for.
What was being published then is reported (`PublicationUncertainError`) and not published again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import anyio
import anyio.abc

from gossamer.client.address import LocalAddress
from gossamer.client.errors import (
    NoReplyError,
    RefusedByNodeError,
    TransportBroken,
    UnacknowledgedError,
    UnusablePayloadError,
    unwrapped,
)
from gossamer.client.frames import BROKER, NEW, PAYLOAD_BYTES, PEER, Frame
from gossamer.client.link import Farewell, Introduction, Link, Resume
from gossamer.client.links import Links
from gossamer.client.results import (
    UNKNOWN_TYPE,
    LastMark,
    Outcome,
    Payload,
    PayloadLike,
    ReceivedEvent,
    Reply,
    outcome_of,
)
from gossamer.client.values import Values

T = TypeVar("T")
ValuesT = TypeVar("ValuesT", bound=Values)
SessionT = TypeVar("SessionT", bound="Session[Any]")

# Events taken from the socket before the application takes them.
EVENTS_AHEAD: Final = 1024
# Events remembered by id, for nodes that lost their history and for clients without a name.
REMEMBERED: Final = 4096

# What a node that is about to stop answers to what it will not publish.
_STOPPED: Final = "PeerStopped"
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class Session(Generic[ValuesT]):
    """A client of a node; `running` keeps it connected.

    Attributes:
        peer: permanent key of the node's peer, as text.
        role: what the node is, `PEER` or `BROKER` of `gossamer.client.frames`.
        values: how the values of events travel.
        history: id of the node's history; "" for clients without a name.
        events: what the subscriptions bring, none of it twice; ends with the last connection.
        alone: how many events were acknowledged so far while the node knew other nodes and reached
            none, so that it alone holds them.
    """

    def __init__(
        self,
        folder: Path,
        find: Callable[[], LocalAddress],
        values: ValuesT,
        who: Introduction,
        resume: Resume | None,
        patience_s: float,
        on_change: Callable[[str], None] | None,
    ) -> None:
        """A session with the node in ``folder``, which listens where ``find`` says.

        Args:
            folder: of the node, for messages.
            find: asked before every attempt to connect.
            values: how the values of events travel.
            who: how the client introduces itself.
            resume: what an earlier session of that name left.
            patience_s: how long the node may be away at a time; with 0 there is one connection,
                whose end ends the events.
            on_change: told why the connection was lost, and `CONNECTED` once there is another and
                the subscriptions are in force again; without it that is logged.
        """
        self.peer, self.role, self.history = "", PEER, ""
        self.values = values
        self.alone = 0
        self._send, self.events = anyio.create_memory_object_stream[ReceivedEvent](0)
        self._take, self._taken = anyio.create_memory_object_stream[ReceivedEvent](EVENTS_AHEAD)
        self._links = Links(folder, find, who, self, patience_s, on_change)
        self._resume = resume
        # What is asked for again over the next connection, by the names that the client gave.
        self._advertisements: dict[str, str] = {}
        self._subscriptions: dict[str, dict[str, object]] = {}
        self._settled: OrderedDict[str, None] = OrderedDict()  # by a worker of a group
        self._handed_on = 0  # position in the history that `_resume` names
        self._recent: OrderedDict[str, None] = OrderedDict()

    @property
    def ended(self) -> Exception | None:
        """Why the session is over for good, None while it is not."""
        return self._links.ended

    @property
    def farewell(self) -> Farewell | None:
        """How the last connection ended, None while there is one."""
        return self._links.farewell

    async def join(self, key: str, expression: str, group: str, window: int = 1) -> None:
        """Take events of a queue group, of which one worker gets each event that matches.

        Args:
            key: the client's name for the subscription.
            expression: what is to match.
            group: name of the group; the same name with another expression is another group.
            window: events that it gets before it has settled earlier ones.

        Raises:
            RefusedByNodeError: the node does not take it.
        """
        self._check_peer("queue groups")
        fields: dict[str, object] = {"expression": expression, "group": group, "window": window}
        await self._request("subscribe", id=key, **fields)
        self._subscriptions[key] = fields

    async def leave(self, group: str, expression: str) -> None:
        """Have the node be of a queue group no more.

        Raises:
            RefusedByNodeError: it is not, or has workers of it.
        """
        self._check_peer("queue groups")
        await self._request("leave", group=group, expression=expression)

    async def settle(self, event: ReceivedEvent) -> None:
        """Say that an event of a queue group, or of a name that has order, is dealt with.

        Nobody else gets it then. Where the node has gone away meanwhile somebody else may get it
        all the same.
        """
        self._settled[event.id] = None
        if len(self._settled) > REMEMBERED:
            self._settled.popitem(last=False)
        await self._send_settled(event.id)

    async def _send_settled(self, event_id: str) -> None:
        try:
            if self._links.link is not None:
                await self._links.link.settle(event_id)
        except TransportBroken:
            if not self._links.reconnects:
                raise

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
        fields: dict[str, object] = {"expression": expression, "start": start}
        await self._request("subscribe", id=key, **fields)
        self._subscriptions[key] = fields

    async def unsubscribe(self, key: str) -> None:
        """End a subscription; a client with a name is forgotten with its last one.

        Raises:
            RefusedByNodeError: there is none of that name.
        """
        await self._take_back("unsubscribe", key, self._subscriptions)

    async def forget(self) -> None:
        """Have the node drop all that it keeps for this client's name."""
        await self._request("forget")
        self._subscriptions.clear()
        self._advertisements.clear()

    async def advertise(self, key: str, expression: str) -> None:
        """Announce what will be published; needed before it, at a broker.

        Raises:
            RefusedByNodeError: the node does not take it.
        """
        self._check_role("advertisements")
        await self._request("advertise", id=key, expression=expression)
        self._advertisements[key] = expression

    async def unadvertise(self, key: str) -> None:
        """Take an advertisement back.

        Raises:
            RefusedByNodeError: there is none of that name.
        """
        self._check_role("advertisements")
        await self._take_back("unadvertise", key, self._advertisements)

    async def acknowledge(self, event: ReceivedEvent) -> None:
        """Say that this event and those before it need not come again; needed of those with a name.

        While the node is away the client remembers it, and tells the node when it is back.
        """
        resume = self._resume
        if resume is None or event.history != resume.history:
            return  # it has no name, or the node's history that the event was of is gone
        if event.position <= resume.acknowledged:
            return
        self._resume = Resume(resume.history, event.position)
        try:
            if self._links.link is not None:
                await self._links.link.acknowledge(event.position)
        except TransportBroken:
            if not self._links.reconnects:
                raise

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
        fields |= _payload_fields(payload) | _last_fields(last)
        if last is not None:
            self._check_peer("last values")
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
        self._check_peer("requests")
        fields: dict[str, object] = {"values": self.values.to_wire(values)}
        fields |= _payload_fields(payload) | {"timeout": timeout_s, "replies": replies}
        answer = await self._publish("request", 1, **fields)
        if answer["type"] == "unacknowledged":
            raise UnacknowledgedError(answer["ids"], answer["published"], answer["reason"])
        if not answer["replies"]:
            raise NoReplyError(answer["result"], timeout_s)
        return [
            Reply(one["replier"], _payload_of(one) or Payload(b""), one["failed"])
            for one in answer["replies"]
        ]

    async def reply(self, request: str, payload: PayloadLike, *, failed: bool = False) -> None:
        """Reply to the request of that token; return once the requester's node has the reply.

        Raises:
            RefusedByNodeError: nobody waits for it any more, or that node cannot be reached.
            TransportBroken: the connection ended before it was known whether it arrived.
        """
        self._check_peer("requests")
        fields = _payload_fields(payload) | {"request": request, "failed": failed}
        await self._links.ask(lambda link: link.request("reply", **fields), repeat=False)

    async def publish_many(self, events: Sequence[Mapping[str, object]]) -> list[str]:
        """Publish at most `frames.MAX_EVENTS` events; return their ids once all are acknowledged.

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
        """Publish what can be published of at most `frames.MAX_EVENTS` events.

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
        """The tables of a broker; see `gossamer.node.broker.contract.tables`.

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

    @asynccontextmanager
    async def running(self: SessionT) -> AsyncIterator[SessionT]:
        """Stay connected; give the session once it is, and end it afterwards.

        Raises:
            NodeNotRunningError: no node listens there, at first.
            LocalSocketError: this user may not use it.
            RefusedByNodeError: the node does not let this client in, at first or later, or does not
                take again what it had taken before.
            HandshakeFailed: what listens there at first is no node of this version.
            NodeLostError: the node was away for longer than the session's patience.
        """
        with unwrapped(), self.events, self._taken, self._send, self._take:
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._run)
                try:
                    yield self
                finally:
                    self.events.close()
                    tasks.cancel_scope.cancel()

    async def _run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hand_on)
            with self._take:
                await self._links.run(task_status=task_status)

    async def reload(self) -> dict[str, Any]:
        """Have the node read its configuration anew: `changed` is in force, `restart` is not.

        Raises:
            RefusedByNodeError: it cannot be used; the node goes on as before.
        """
        return await self._json("reload")

    async def shutdown(self) -> None:
        """Stop the node."""
        await self._links.ask(lambda link: link.request("shutdown"), repeat=False)

    # Requests, over whichever connection there is

    async def _json(self, kind: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads((await self._request(kind))["result"])
        return result

    async def _request(self, kind: str, **fields: object) -> Frame:
        """A request that does no harm when it is made twice."""
        return await self._links.ask(lambda link: link.request(kind, **fields), repeat=True)

    async def _take_back(self, kind: str, key: str, kept: dict[str, T]) -> None:
        """End what the client calls ``key``; it may be gone already with an earlier connection."""
        asked: list[Link] = []

        async def ask(link: Link) -> None:
            asked.append(link)
            try:
                await link.request(kind, id=key)
            except RefusedByNodeError:
                if len(asked) == 1:
                    raise
            kept.pop(key, None)

        await self._links.ask(ask, repeat=True)

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

    # What the connections ask of it

    @property
    def resume(self) -> Resume | None:
        """What is told to the node when it is found again."""
        return self._resume

    async def ask_again(self, link: Link) -> None:
        """What was asked for before; harmless where the node has kept it."""
        for key, expression in self._advertisements.items():
            await link.request("advertise", id=key, expression=expression)
        for key, fields in self._subscriptions.items():
            await link.request("subscribe", id=key, **fields)

    def adopt(self, link: Link) -> None:
        """Take over what the node says of itself."""
        attached = link.attached
        self.peer = attached["peer"]
        self.role = attached.get("role", PEER)
        self.values.adopt(attached)
        self.history = attached.get("history", "")
        known = self._resume.history if self._resume is not None else None
        if self.history and self.history != known:
            self._resume = Resume(self.history, 0)
            self._handed_on = 0

    def _check_role(self, what: str) -> None:
        if self.role != BROKER:
            reason = f"the node is a peer and has no {what}, expected a broker (node.role)"
            raise RefusedByNodeError("role", reason)

    def _check_peer(self, what: str) -> None:
        if self.role == BROKER:
            reason = f"the node is a broker and has no {what}, expected a peer (node.role)"
            raise RefusedByNodeError("role", reason)

    async def take_event(self, frame: Frame) -> None:
        if self._is_known(frame["id"], frame["position"]):
            if frame["id"] in self._settled:
                await self._send_settled(frame["id"])
            return
        event = ReceivedEvent(
            frame["id"],
            self.values.from_wire(frame["values"]),
            frame["publisher"],
            frame["published_at"],
            tuple(frame["subscriptions"]),
            frame["position"],
            self.history,
            _payload_of(frame),
            frame.get("request", ""),
            frame.get("timeout", 0.0),
            frame.get("late", False),
            frame.get("last", ""),
            frame.get("deleted", False),
        )
        with suppress(*_GONE):  # the application takes no events any more
            await self._take.send(event)

    async def _hand_on(self) -> None:
        """Give events to the application, those of a new connection once all is in force again."""
        with self._send, self._taken, suppress(*_GONE):
            async for event in self._taken:
                await self._links.settled()
                await self._send.send(event)

    def _is_known(self, event_id: str, position: int) -> bool:
        if 0 < position <= self._handed_on:
            return True
        self._handed_on = position
        if event_id in self._recent:
            return True
        self._recent[event_id] = None
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        return False


def _payload_fields(payload: PayloadLike | None) -> dict[str, object]:
    """What a request says of a payload; the node refuses a content type that is none."""
    if payload is None:
        return {}
    if not isinstance(payload.data, bytes):
        raise UnusablePayloadError(f"of type {type(payload.data).__name__}")
    if len(payload.data) > PAYLOAD_BYTES:
        raise UnusablePayloadError(f"of {len(payload.data)} bytes")
    return {"payload": payload.data, "content_type": payload.content_type}


def _last_fields(last: LastMark | None) -> dict[str, object]:
    """What a request says of an event that is the last of a value."""
    if last is None:
        return {}
    lasts = {"lasts": last.lasts_s} if last.lasts_s else {}
    return {"last": last.attribute, "deleted": last.deleted, **lasts}


def _payload_of(frame: Frame) -> Payload | None:
    if "payload" not in frame:
        return None
    return Payload(frame["payload"], frame.get("content_type", UNKNOWN_TYPE))
