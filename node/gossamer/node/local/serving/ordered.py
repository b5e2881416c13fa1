"""Events of one client in the order of their publishers; the rules are `patterns.ordering`."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Generic, TypeVar

import trio

from gossamer.node.errors import NoAnswerError, TransportBroken
from gossamer.node.local.durable import DurableClient
from gossamer.node.local.frames import event_frame
from gossamer.node.local.history import KeptEvent
from gossamer.node.local.peer_like import EventLike, PeerLike
from gossamer.node.local.serving.publishing import Services
from gossamer.node.peer.unicast.order import SERVICE, question, read_answer
from gossamer.node.transport.connection import Connection
from gossamer.protocol.patterns.ordering import Released, Sequencer

EventT = TypeVar("EventT", bound=EventLike)

# Events held back for one client; one more, and the earliest is handed on.
ROOM: Final = 4096
# Publishers of which it is remembered what has come; the one not heard of for longest makes room.
PUBLISHERS: Final = 1024
# Between two looks at what is held back, and until a publisher's answer is given up.
LOOK_S: Final = 0.1
ANSWER_S: Final = 2.0
# What is not acknowledged by then is given up by its publisher; what is acknowledged has come.
PATIENCE_S: Final = 10.0
# Rounds until a subscription is known everywhere, before which events are not promised.
ROUNDS_TO_START: Final = 4


class Ordered(Generic[EventT]):
    """The events of one client, held back until their order is known; `run` has to run.

    Args:
        peer: asks the publishers.
        expressions: of the client's subscriptions, as of now.
        hand_on: is given the events one after another, and whether each is late.
        begins: Unix seconds; earlier events are not waited for.
        is_known: whether the client has got an event before, by its id.
    """

    def __init__(
        self,
        peer: PeerLike,
        expressions: Callable[[], Iterable[str]],
        hand_on: Callable[[EventT, bool], Awaitable[None]],
        begins: float,
        is_known: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._peer = peer
        self._expressions = expressions
        self._hand_on = hand_on
        self._begins = round(begins * 1e6)
        self._is_known = is_known
        self._publishers: OrderedDict[int, Sequencer[EventT]] = OrderedDict()
        self._ready: deque[Released[EventT]] = deque()
        self._asking: set[int] = set()
        self._news = trio.Event()
        self._looked_at = trio.current_time()
        self._clock_s = 0.0

    def __len__(self) -> int:
        """How many events were taken and not handed on."""
        return len(self._ready) + sum(one.waiting for one in self._publishers.values())

    @property
    def _now(self) -> float:
        """Seconds in which what was missed might have come: not while the peer catches up."""
        now = trio.current_time()
        if self._peer.is_whole:
            self._clock_s += now - self._looked_at
        self._looked_at = now
        return self._clock_s

    def take(self, event: EventT) -> None:
        """An event comes, in whatever order."""
        order = self._of(event.publisher)
        latest = round(self._peer.clock.latest() * 1e6)
        self._ready += order.take(_time(event), event, self._now, latest)
        if len(self) > ROOM and order.waiting:
            self._ready.append(order.release_one())
        self._news.set()

    async def run(self) -> None:
        """Ask publishers, and hand on what may be, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                self._news = trio.Event()
                now = self._now
                for key, order in self._publishers.items():
                    self._ready += order.release(now)
                    if key not in self._asking:
                        span = order.question(now)
                        if span is not None:
                            self._asking.add(key)
                            nursery.start_soon(self._ask, key, order, *span)
                while self._ready:
                    released = self._ready.popleft()
                    await self._hand_on(released.item, released.late)
                with trio.move_on_after(LOOK_S if len(self) else math.inf):
                    await self._news.wait()

    async def _ask(self, key: int, order: Sequencer[EventT], after: int, until: int) -> None:
        """Ask a publisher what it published; nothing is known where it does not answer."""
        body = question(after, until, self._expressions())
        try:
            answer = read_answer(await self._peer.messages.ask(key, (), SERVICE, body, ANSWER_S))
        except (NoAnswerError, ValueError):
            answer = None
        self._asking.discard(key)
        if answer is not None:
            since, known_until, listed = answer
            self._ready += order.answer(after, (since, known_until), listed, self._now)
            self._news.set()

    def _of(self, publisher: int) -> Sequencer[EventT]:
        order = self._publishers.get(publisher)
        if order is None:
            order = Sequencer(self._begins, PATIENCE_S, self._is_known)
            self._publishers[publisher] = order
            if len(self._publishers) > PUBLISHERS:
                idle = [key for key, one in self._publishers.items() if not one.waiting]
                for key in idle[:1]:
                    del self._publishers[key]
        self._publishers.move_to_end(publisher)
        return order


def _time(event: EventLike) -> int:
    return round(event.published_at * 1e6)


# Events kept for a client with a name that wants order: each is sent and settled by itself.


class KeptInOrder:
    """Sends a client what its log brings, in the order of the publishers; made by `make`."""

    def __init__(
        self,
        connection: Connection,
        services: Services,
        client: DurableClient,
    ) -> None:
        self._connection = connection
        self._services = services
        self._client = client
        self._taken: dict[int, int] = {}  # by position, the ids of what is not settled
        self._sent: dict[int, int] = {}  # by id, the positions of what the client has
        self._settled = trio.Event()
        self._ordered: Ordered[KeptEvent]

    @classmethod
    async def make(
        cls,
        connection: Connection,
        services: Services,
        client: DurableClient,
        expressions: Callable[[], list[str]],
    ) -> KeptInOrder:
        """One that knows what the client has got before."""
        made = cls(connection, services, client)
        history, name = services.history, client.name
        begins, got = begin_of(services), frozenset[int]()
        if history.is_known(name):
            begins, got = 0.0, frozenset(await history.settled(name))
        made._ordered = Ordered(services.peer, expressions, made._send, begins, got.__contains__)
        return made

    def __len__(self) -> int:
        """How many events were taken and are not settled."""
        return len(self._taken)

    async def run(self) -> None:
        """Hand on what `take` brings until cancelled."""
        await self._ordered.run()

    async def take(self, kept: KeptEvent) -> None:
        """The log brings an event; waits while too many are not settled."""
        while len(self._taken) >= ROOM:
            await self._settled.wait()
        self._taken[kept.position] = kept.id
        self._ordered.take(kept)

    async def settle(self, event: int) -> None:
        """The client has dealt with an event."""
        position = self._sent.pop(event, None)
        if position is None:
            return
        self._taken.pop(position, None)
        self._services.counts.acknowledged += 1
        place = min(self._taken, default=position + 1) - 1
        await self._services.history.acknowledge(self._client.name, place, [event])
        self._notify()

    def forget(self) -> None:
        """The client's name is forgotten with all that was kept for it."""
        self._taken.clear()
        self._sent.clear()
        self._notify()

    async def _send(self, kept: KeptEvent, late: bool) -> None:
        while len(self._sent) >= self._services.limits.window:
            await self._settled.wait()
        self._sent[kept.id] = kept.position
        ids = self._client.matching(kept.values)
        with suppress(TransportBroken):
            await self._connection.send(event_frame(kept, ids, late=late))
            self._services.counts.events_sent += 1

    def _notify(self) -> None:
        self._settled.set()
        self._settled = trio.Event()


def begin_of(services: Services) -> float:
    """Unix seconds from which on a subscription that begins now is promised its events."""
    return services.peer.clock.now() + ROUNDS_TO_START * services.peer.snapshot().round_s
