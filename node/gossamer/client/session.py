"""A connection to the node of this machine that comes back: requests, and one stream of events.

There is one stream of events and any number of requests under way. Whoever takes no events holds up
the answers behind them, so that `gossamer.client.client` publishes and subscribes by sessions of
their own.

When the node goes away, the session looks for it again, and asks again for what it had asked for.
What was being published then is reported (`PublicationUncertainError`) and not published again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.abc

from gossamer.client.errors import RefusedByNodeError, TransportBroken, unwrapped
from gossamer.client.frames import NEW, PEER, Frame, Values, payload_of
from gossamer.client.link import Farewell, Introduction, Link, LocalAddress, Resume
from gossamer.client.links import Links
from gossamer.client.node_requests import Publisher
from gossamer.client.results import ReceivedEvent

T = TypeVar("T")
ValuesT = TypeVar("ValuesT", bound=Values)
SessionT = TypeVar("SessionT", bound="Session[Any]")

# Events taken from the socket before the application takes them.
EVENTS_AHEAD: Final = 1024
# Events remembered by id, for nodes that lost their history and for clients without a name.
REMEMBERED: Final = 4096

_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class Session(Publisher[ValuesT]):
    """A client of a node; `running` keeps it connected.

    Attributes:
        role, values, alone: see `Publisher`.
        peer: permanent key of the node's peer, as text.
        history: id of the node's history; "" for clients without a name.
        resume: what is told to the node when it is found again.
        events: what the subscriptions bring, none of it twice; ends with the last connection.
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
        super().__init__(Links(folder, find, who, self, patience_s, on_change), values)
        self.peer, self.history = "", ""
        self._send, self.events = anyio.create_memory_object_stream[ReceivedEvent](0)
        self._take, self._taken = anyio.create_memory_object_stream[ReceivedEvent](EVENTS_AHEAD)
        self.resume = resume
        # What is asked for again over the next connection, by the names that the client gave.
        self._advertisements: dict[str, str] = {}
        self._subscriptions: dict[str, dict[str, object]] = {}
        self._settled: OrderedDict[str, None] = OrderedDict()  # by a worker of a group
        self._handed_on = 0  # position in the history that `resume` names
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
        self.check_peer("queue groups")
        fields: dict[str, object] = {"expression": expression, "group": group, "window": window}
        await self._request("subscribe", id=key, **fields)
        self._subscriptions[key] = fields

    async def leave(self, group: str, expression: str) -> None:
        """Have the node be of a queue group no more.

        Raises:
            RefusedByNodeError: it is not, or has workers of it.
        """
        self.check_peer("queue groups")
        await self._request("leave", group=group, expression=expression)

    async def settle(self, event: ReceivedEvent) -> None:
        """Say that an event of a queue group, or of a name that has order, is dealt with.

        Nobody else gets it then. Where the node has gone away meanwhile somebody else may get it
        all the same.
        """
        self._settled[event.id] = None
        if len(self._settled) > REMEMBERED:
            self._settled.popitem(last=False)
        await self._tell("settle", id=event.id)

    async def subscribe(
        self, key: str, expression: str, start: str = NEW, within: float | None = None
    ) -> None:
        """Ask for events that match; those of an earlier subscription ``key`` stop.

        Args:
            key: the client's name for the subscription.
            expression: what is to match.
            start: `frames.NEW`, or `frames.RETAINED` for a client whose name is new to the node,
                to begin with what the node has kept for other clients.
            within: of a composite subscription, which begins with a brace: seconds in which
                publications have to come to match together; only at a broker.

        Raises:
            RefusedByNodeError: the node does not take it.
        """
        fields: dict[str, object] = {"expression": expression, "start": start}
        if within is not None:
            self._check_role("composite subscriptions")
            fields["within"] = float(within)
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
        resume = self.resume
        if resume is None or event.history != resume.history:
            return  # it has no name, or the node's history that the event was of is gone
        if event.position <= resume.acknowledged:
            return
        self.resume = Resume(resume.history, event.position)
        await self._tell("acknowledge", position=event.position)

    async def _tell(self, kind: str, **fields: object) -> None:
        try:
            if self._links.newest is not None:
                await self._links.newest.tell(kind, **fields)
        except TransportBroken:
            if not self._links.reconnects:
                raise

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

    # Requests, over whichever connection there is

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

    # What the connections ask of it

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
        known = self.resume.history if self.resume is not None else None
        if self.history and self.history != known:
            self.resume = Resume(self.history, 0)
            self._handed_on = 0

    async def take_event(self, link: Link, frame: Frame) -> None:
        """Give an event to the application, unless it has got it before.

        What it has dealt with comes again where the connection ended before the node was told, or
        where it was dealt with after the node of the new connection was told how far it is.
        """
        if self._is_known(frame["id"], frame["position"]):
            with suppress(TransportBroken):  # it comes once more over the next one
                await self._tell_again(link, frame)
            return
        event = self._match_of(frame) if frame["type"] == "match" else self._event_of(frame)
        with suppress(*_GONE):  # the application takes no events any more
            await self._take.send(event)

    async def _tell_again(self, link: Link, frame: Frame) -> None:
        """Say over ``link`` that an event which came again was dealt with, if it was."""
        if frame["id"] in self._settled:
            await link.tell("settle", id=frame["id"])
        elif self.resume is not None and 0 < frame["position"] <= self.resume.acknowledged:
            await link.tell("acknowledge", position=frame["position"])

    def _match_of(self, frame: Frame) -> ReceivedEvent:
        labels = tuple(frame["subscriptions"])
        events = tuple(
            ReceivedEvent(
                one["id"],
                self.values.from_wire(one["values"]),
                one["publisher"],
                one["published_at"],
                labels,
                0,
            )
            for one in frame["events"]
        )
        return ReceivedEvent(
            frame["id"],
            {},
            "",
            frame["published_at"],
            labels,
            frame["position"],
            self.history,
            match=events,
        )

    def _event_of(self, frame: Frame) -> ReceivedEvent:
        return ReceivedEvent(
            frame["id"],
            self.values.from_wire(frame["values"]),
            frame["publisher"],
            frame["published_at"],
            tuple(frame["subscriptions"]),
            frame["position"],
            self.history,
            payload_of(frame),
            frame.get("request", ""),
            frame.get("timeout", 0.0),
            frame.get("late", False),
            frame.get("last", ""),
            frame.get("deleted", False),
        )

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
