"""The node of this machine, for applications, over as many connections as it takes.

    async with open_client(address) as client:
        await client.subscribe("dear", "price > 80")
        async for event in client.events:
            ...

There is one stream of events and any number of requests under way. Whoever takes no events holds up
the answers behind them, so publish and subscribe by clients of their own.

When the node goes away, the client looks for it again, and asks again for what it had asked for.
What was being published then is reported (`PublicationUncertainError`) and not published again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import trio

from gossamer.node.errors import (
    PublicationUncertainError,
    RefusedByNodeError,
    UnacknowledgedError,
)
from gossamer.node.errors.exception_groups import unwrapped
from gossamer.node.local.address import LocalAddress
from gossamer.node.local.frames import (
    BROKER,
    NEW,
    PEER,
    schema_from_wire,
    values_from_wire,
    values_to_wire,
)
from gossamer.node.local.link import GONE, Introduction, Link, Resume
from gossamer.node.local.links import CONNECTED, Links
from gossamer.node.local.results import Outcome, ReceivedEvent, outcome_of
from gossamer.node.transport.base.base import Farewell
from gossamer.node.transport.base.schema import Frame
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.filters import exact_publication
from gossamer.protocol.content.schema import Schema

__all__ = [
    "CONNECTED",
    "GONE",
    "LocalClient",
    "Outcome",
    "PublicationUncertainError",
    "ReceivedEvent",
    "Resume",
    "open_client",
]

T = TypeVar("T")

# Events taken from the socket before the application takes them.
EVENTS_AHEAD: Final = 1024
# Events remembered by id, for nodes that lost their history and for clients without a name.
REMEMBERED: Final = 4096
# How long a node may be away: longer than a restart takes, also after the machine's own.
PATIENCE_S: Final = 60.0

# What a node that is about to stop answers to what it will not publish.
_STOPPED: Final = "PeerStopped"


class LocalClient:
    """A client of a node; made by `open_client`.

    Attributes:
        peer: permanent key of the node's peer, as text.
        role: what the node is, `frames.PEER` or `frames.BROKER`.
        schema: what events are made of; None: at a broker, of anything.
        history: id of the node's history; "" for clients without a name.
        events: what the subscriptions bring, none of it twice; ends with the last connection.
        alone: how many events were acknowledged so far while the node knew other nodes and reached
            none, so that it alone holds them.
    """

    def __init__(
        self,
        address: LocalAddress,
        who: Introduction,
        resume: Resume | None,
        patience_s: float,
        on_change: Callable[[str], None] | None,
    ) -> None:
        self.peer, self.role, self.history = "", PEER, ""
        self.schema: Schema | None = None
        self.alone = 0
        self._send, self.events = trio.open_memory_channel[ReceivedEvent](0)
        self._take, self._taken = trio.open_memory_channel[ReceivedEvent](EVENTS_AHEAD)
        self._links = Links(address, who, self, patience_s, on_change)
        self._resume = resume
        # What is asked for again over the next connection, by the names that the client gave.
        self._advertisements: dict[str, str] = {}
        self._subscriptions: dict[str, tuple[str, str]] = {}
        self._handed_on = 0  # position in the history that `_resume` names
        self._recent: OrderedDict[str, None] = OrderedDict()

    @property
    def farewell(self) -> Farewell | None:
        """How the last connection ended, None while there is one."""
        return self._links.farewell

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
        self._subscriptions[key] = expression, start

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
        except GONE:
            if not self._links.reconnects:
                raise

    async def publish(self, values: Mapping[str, object]) -> str:
        """Publish an event; return its id once it is acknowledged: others hold it.

        Raises:
            UnacknowledgedError: nobody acknowledged it in time; it may reach all, some or none.
            PublicationUncertainError: the connection ended before it was known; the same.
            ContentError: the values do not fit the schema; it was not published.
            RefusedByNodeError: the node does not publish it.
        """
        checked = self._values_to_wire(values)
        answer = await self._publish("publish", 1, values=checked)
        if answer["type"] == "unacknowledged":
            raise UnacknowledgedError(answer["ids"], answer["published"], answer["reason"])
        return str(answer["result"])

    async def publish_many(self, events: Sequence[Mapping[str, object]]) -> list[str]:
        """Publish at most `frames.MAX_EVENTS` events; return their ids once all are acknowledged.

        Raises:
            UnacknowledgedError: some were not, in time.
            PublicationUncertainError: the connection ended before it was known.
            ContentError: the values of one do not fit the schema; none was published.
            RefusedByNodeError: the node could not publish all of them; `publish_each` tells which.
        """
        outcomes = await self._publish_checked([self._values_to_wire(one) for one in events])
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
                checked.append(self._values_to_wire(values))
            except ContentError as error:
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

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Stay connected; `open_client` has this done."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hand_on)
            with self._take:
                await self._links.run(task_status=task_status)

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
        for key, (expression, start) in self._subscriptions.items():
            await link.request("subscribe", id=key, expression=expression, start=start)

    def adopt(self, link: Link) -> None:
        """Take over what the node says of itself."""
        attached = link.attached
        self.peer = attached["peer"]
        self.role = attached.get("role", PEER)
        self.schema = schema_from_wire(attached["schema"]) if attached["schema"] else None
        self.history = attached.get("history", "")
        known = self._resume.history if self._resume is not None else None
        if self.history and self.history != known:
            self._resume = Resume(self.history, 0)
            self._handed_on = 0

    def _check_role(self, what: str) -> None:
        if self.role != BROKER:
            reason = f"the node is a peer and has no {what}, expected a broker (node.role)"
            raise RefusedByNodeError("role", reason)

    def _values_to_wire(self, values: Mapping[str, object]) -> dict[str, object]:
        if self.role == BROKER:
            # Not loaded for the clients of peers, which it would cost a third of their start.
            from gossamer.protocol.brokers.core.plain import plain_values

            return plain_values(exact_publication(values, self.schema))
        assert self.schema is not None, "peers have one"
        return values_to_wire(self.schema.check_event(values))

    def _values_from_wire(self, values: Mapping[str, Any]) -> dict[str, Any]:
        if self.role == BROKER:
            from gossamer.protocol.brokers.core.plain import read_values

            return read_values(values, "values")
        assert self.schema is not None, "peers have one"
        return values_from_wire(self.schema, values)

    async def take_event(self, frame: Frame) -> None:
        if self._is_known(frame["id"], frame["position"]):
            return
        event = ReceivedEvent(
            frame["id"],
            self._values_from_wire(frame["values"]),
            frame["publisher"],
            frame["published_at"],
            tuple(frame["subscriptions"]),
            frame["position"],
            self.history,
        )
        with suppress(trio.BrokenResourceError):  # the application takes no events any more
            await self._take.send(event)

    async def _hand_on(self) -> None:
        """Give events to the application, those of a new connection once all is in force again."""
        with self._send, self._taken, suppress(trio.BrokenResourceError):
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


@asynccontextmanager
async def open_client(
    address: LocalAddress,
    name: str | None = None,
    resume: Resume | None = None,
    *,
    aside: bool = False,
    patience_s: float = PATIENCE_S,
    on_change: Callable[[str], None] | None = None,
) -> AsyncIterator[LocalClient]:
    """Connect to the node whose socket is at ``address``, and again whenever it was away.

    Args:
        address: see `gossamer.node.local.address.local_address`.
        name: of a client whose subscriptions and undelivered events the node is to keep.
        resume: what an earlier client of that name left.
        aside: ask and publish for the name of a broker's client that may be connected itself, and
            leave its events to it.
        patience_s: how long the node may be away at a time; with 0 the client has one connection,
            whose end ends its events.
        on_change: told why the connection was lost, and `CONNECTED` once there is another and the
            subscriptions are in force again; without it that is logged.

    Raises:
        NodeNotRunningError: no node listens there, at first.
        LocalSocketError: this user may not use it.
        RefusedByNodeError: the node does not let this client in, at first or later, or does not
            take again what it had taken before.
        HandshakeFailed: what listens there at first is no node of this version.
        NodeLostError: the node was away for longer than ``patience_s``.
    """
    client = LocalClient(address, Introduction(name, aside), resume, patience_s, on_change)
    with unwrapped():
        async with trio.open_nursery() as nursery:
            await nursery.start(client.run)
            try:
                yield client
            finally:
                client.events.close()
                nursery.cancel_scope.cancel()
